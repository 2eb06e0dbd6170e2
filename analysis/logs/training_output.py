"""What a small PyTorch training prints: a loss now and then, an accuracy after each epoch, and its wall time at the end (`time: …`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._lines import CUT, Ignored, lines_of, none_of_it

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

WHAT = "the output of a training"
VALUE = r"([+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|nan|inf))"
LOSS = re.compile(rf"Train Epoch: (\d{{1,12}}) \[(\d{{1,12}})/(\d{{1,12}}) \(\d+(?:\.\d+)?%\)\]\s+Loss: {VALUE}\s*", re.ASCII)
TEST = re.compile(rf"Test set: Average loss: {VALUE}, Accuracy: (\d{{1,12}})/(\d{{1,12}}) \(\d+(?:\.\d+)?%\)\s*", re.ASCII)
TIME = re.compile(r"time:\s+(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Test:
    """One look at the held-out samples: how many of them were named rightly."""

    average_loss: float
    correct: int
    samples: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.samples


@dataclass(frozen=True, slots=True)
class TrainingLog:
    """One training. A loss that diverged is NaN, as it was printed. Without `time_s` the last field says why."""

    origin: str
    epoch: NDArray[np.int64]
    seen: NDArray[np.int64]
    loss: NDArray[np.float64]
    tests: tuple[Test, ...]
    time_s: float | None
    ignored: tuple[str, ...]
    why_no_time: str = ""


def read(path: Path) -> TrainingLog:
    """Read an output.

    Raises: Unreadable, where there is neither a loss nor an accuracy nor a time in it.
    """
    ignored = Ignored()
    losses: list[tuple[int, int, float]] = []
    tests: list[Test] = []
    times: list[float] = []
    for line in lines_of(path):
        if not line.whole:
            ignored(line, CUT)
        elif found := LOSS.fullmatch(line.text):
            losses.append((int(found[1]), int(found[2]), float(found[4])))
        elif (found := TEST.fullmatch(line.text)) and 0 < int(found[3]) >= int(found[2]):
            tests.append(Test(float(found[1]), int(found[2]), int(found[3])))
        elif (found := TIME.fullmatch(line.text)) and 0 < float(found[1]) < np.inf:
            times.append(float(found[1]))
        else:
            ignored(line, "neither a loss nor an accuracy nor a time")
    if not (losses or tests or times):
        raise none_of_it(path, WHAT, ignored)
    why = {0: "it says no time: it did not end, or its output was cut", 1: ""}
    return TrainingLog(
        origin=str(path),
        epoch=np.array([loss[0] for loss in losses], dtype=np.int64),
        seen=np.array([loss[1] for loss in losses], dtype=np.int64),
        loss=np.array([loss[2] for loss in losses]),
        tests=tuple(tests),
        time_s=times[0] if len(times) == 1 else None,
        ignored=tuple(ignored.said),
        why_no_time=why.get(len(times), f"it says {len(times)} times: outputs of several runs in one file"),
    )
