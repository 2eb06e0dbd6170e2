"""What decides: one file per algorithm, found by its name.

An algorithm is a module of this folder whose name does not begin with `_`. It has

- `DESCRIPTION`: one line;
- `controller(question) -> Controller`: at work on one question. Raises: Unsupported, if it needs what the back-end or the question lacks;
  Infeasible, if nothing that can be set stays within the cap.

It may have

- `SHADOW = True`: the shadow optimiser can run beside it.

A controller knows what was asked and what was seen, and nothing of the machine behind it. What was seen are settings as they were: it goes
on from these, not from what it asked for. Without a reading of power it is not called; the settings stay.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from control.errors import UnknownName
from control.power.terms import Decision, Unsupported

if TYPE_CHECKING:
    from control.power.terms import Controller, Question, Seen


class Algorithm(Protocol):
    """An algorithm's file."""

    DESCRIPTION: str

    def controller(self, question: Question) -> Controller:
        """See above."""


def names() -> tuple[str, ...]:
    """Every algorithm there is, in alphabetical order."""
    return tuple(sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py")))


def load(name: str) -> Algorithm:
    """An algorithm by its name. Raises: UnknownName with the names that exist."""
    if name not in names():
        raise UnknownName(f"No algorithm {name!r}. There are: {', '.join(names())}.")
    return cast("Algorithm", import_module(f"{__name__}.{name}"))


def at_work(question: Question) -> Controller:
    """The question's algorithm at work on it. Raises: UnknownName; Unsupported; Infeasible."""
    algorithm = load(question.algorithm)
    if question.shadow and not getattr(algorithm, "SHADOW", False):
        raise Unsupported(f"the shadow optimiser moves the partition of {', '.join(_shadowed())}; {question.algorithm} has none for it.")
    return algorithm.controller(question)


def following(controller: Controller, seen: Seen) -> Decision:
    """What to set after an iteration: what the controller says, or all as it was where power was not measured and all fitted."""
    if (seen.power_max is None or seen.power_mean is None) and not seen.oom:
        return Decision(seen.settings, "no reading of power: held")
    return controller.then(seen)


def _shadowed() -> list[str]:
    return [name for name in names() if getattr(load(name), "SHADOW", False)]
