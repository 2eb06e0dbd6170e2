"""The words of a search under a cap: what was found, and that nothing can be."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from control.errors import Refused

if TYPE_CHECKING:
    from control.power.terms import Setting


@dataclass(frozen=True, slots=True)
class Answer:
    """A setting and what the model predicts of it.

    `cap_w` is the cap that was searched under, the margin taken off. `evaluations` counts the partitions that the model was asked for,
    one a memory clock. `profiled`: all processes are alike and that was on the profiling grid; elsewhere the model extrapolates.
    `best_profiled` is the best answer of that kind, where one that was not profiled is predicted to be better still.
    """

    setting: Setting
    throughput_images_per_s: float
    power_w: float
    sm_util_percent: float
    mem_util_percent: float
    cap_w: float
    evaluations: int
    profiled: bool
    best_profiled: Answer | None = None

    @property
    def feasible(self) -> bool:
        """Whether the predicted power is within the cap. Our own search answers nothing else; the original's does."""
        return self.power_w <= self.cap_w


def rounded_up(cap_w: float) -> str:
    """Write a smallest cap so that what is read can still be kept."""
    return f"{ceil(cap_w * 100) / 100:.2f}"


class Infeasible(Refused):
    """No setting that was searched is within the cap; `smallest_cap_w` is the smallest one with an answer, the margin included."""

    def __init__(self, said: str, smallest_cap_w: float) -> None:
        super().__init__(said)
        self.smallest_cap_w = smallest_cap_w
