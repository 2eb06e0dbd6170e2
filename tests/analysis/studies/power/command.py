"""One call of `python -m analysis power …` and what it printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.studies.power import parameters

if TYPE_CHECKING:
    from control.power.terms import Model


@dataclass(frozen=True)
class Printed:
    """Code and output of a call."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Output for programs."""
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def page(self) -> str:
        """Output for people."""
        assert self.code == 0, self.err
        assert max(map(len, self.out.splitlines())) <= 100
        assert "\x1b" not in self.out
        return self.out


Power = Callable[..., Printed]


def refusals(power: Power, step: str, calls: Iterable[Sequence[object]]) -> dict[str, str]:
    """Map each call of a step to its message; all must be refused with code 2 and no output."""
    messages = {}
    for args in calls:
        printed = power(step, *args)
        assert (printed.code, printed.out) == (2, ""), args
        messages[" ".join(map(str, args))] = printed.err.strip()
    return messages


def model_at(path: Path, *key: object) -> Model:
    """The folder's first model whose key (network, GPU, memory clock) begins with `key`."""
    return next(
        read() for known, read in parameters.available(path).items() if known[: len(key)] == key
    )
