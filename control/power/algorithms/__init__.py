"""Power-capping algorithms by name, one file per family.

An algorithm is a function of its family's file, called as it is in `ALGORITHMS`: it answers a
question with a controller at work on it.
Raises: Unsupported, if it needs what the back-end or the question lacks; Infeasible, if nothing
    that can be set stays within the cap.

A controller knows the question and what each iteration showed, and nothing of the machine behind
it. What it is shown are settings as they were: it goes on from these, not from what it asked for.
Without a reading of power it is not called; the settings stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from control.errors import UnknownName
from control.power.terms import Controller, Decision, Question, Seen, Unsupported


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm's description and file, and whether it supports the shadow optimiser."""

    description: str
    module: str
    shadow: bool = False


ALGORITHMS = {
    "batchdvfs": Algorithm("one process; binary search of the batch, then the clock", "ladder"),
    "directcap": Algorithm(
        "greedy partition, the driver's power limit, a search of the memory clock", "limited"
    ),
    "morak": Algorithm(
        "two processes; batch by latency, clock by the cap, in steps of 1 to 10 states", "ladder"
    ),
    "pctodl": Algorithm(
        "greedy partition, then the clock by the model's slope; no dead band", "pctodl", shadow=True
    ),
    "powercap": Algorithm("the driver's power limit alone, over an even split", "limited"),
    "steady": Algorithm(
        "best partition, then the fastest state below the cap; learns a guard band and moves only "
        "for a reason",
        "steady",
    ),
}


def names() -> tuple[str, ...]:
    return tuple(sorted(ALGORITHMS))


def load(name: str) -> Algorithm:
    """Return an algorithm by name. Raises: UnknownName, with the available names."""
    if name not in ALGORITHMS:
        raise UnknownName(f"No algorithm {name!r}. Available: {', '.join(names())}.")
    return ALGORITHMS[name]


def at_work(question: Question) -> Controller:
    """Start the question's algorithm. Raises: UnknownName, Unsupported, Infeasible."""
    algorithm = load(question.algorithm)
    if question.shadow and not algorithm.shadow:
        shadowed = ", ".join(name for name in names() if ALGORITHMS[name].shadow)
        raise Unsupported(
            f"the shadow optimiser changes the partition of {shadowed}, but {question.algorithm} "
            "has no partition."
        )
    return cast(
        "Controller",
        getattr(import_module(f"{__name__}.{algorithm.module}"), question.algorithm)(question),
    )


def following(controller: Controller, seen: Seen) -> Decision:
    """Return what to set after an iteration: the controller's decision, or no change."""
    if (seen.power_max is None or seen.power_mean is None) and not seen.oom:
        return Decision(seen.settings, "no reading of power: held")
    return controller.then(seen)
