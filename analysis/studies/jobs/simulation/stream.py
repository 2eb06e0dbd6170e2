"""The jobs of one seed: gaps, classes, times and errors of prediction from streams of their own, so that changing one leaves the others.

Source: L'Ecuyer, Management Science 36, 1990 (common random numbers need synchronised streams).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.terms import Refused
from control.scheduling import allocation
from control.scheduling.terms import Job

from .laws import Law, errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .mix import Class

PURPOSES = ("gaps", "classes", "times", "errors")  # in this order for ever: a seed's numbers hang on it


@dataclass(frozen=True, slots=True)
class Coming:
    """A job, and what no policy sees: how long it takes on each kind of slot that can run it."""

    job: Job
    takes_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Source:
    """Where jobs come from. `load` is the part of the slots that is busy if each class runs where it should (`allocation`).

    `error` is the standard deviation of log(predicted / true).
    """

    classes: tuple[Class, ...]
    slots: Mapping[str, int]
    load: float
    arrivals_cv2: float = 1.0
    error: float = 0.0

    @property
    def gap_s(self) -> float:
        """The mean time between two jobs."""
        demand_s = {
            one.name: {kind: one.probability * one.replicas * one.mean_s.get(kind, np.inf) for kind in self.slots} for one in self.classes
        }
        return allocation.load(demand_s, self.slots) / self.load

    def must_be_stable(self) -> None:
        """Raises: Refused, where more comes than can be done: there is no mean then to speak of. And where a class fits nowhere."""
        if not 0 < self.load < 1:
            raise Refused(
                f"load {self.load:g}: unstable, the queue grows for as long as jobs come and no wait has a mean; say one below 1."
                if self.load >= 1
                else f"load {self.load:g}: say one above 0 and below 1."
            )
        for one in self.classes:
            if all(self.slots[kind] < one.replicas for kind in one.mean_s):
                raise Refused(f"class {one.name}: {one.replicas} replicas at once fit on no kind of slot of {dict(self.slots)}.")


def jobs(source: Source, many: int, seed: int) -> list[Coming]:
    """The first `many` jobs of a seed, in the order of submission."""
    numbers = _uniform(seed, many)
    submit_s = np.cumsum(Law(source.gap_s, source.arrivals_cv2).times_s(numbers["gaps"])).tolist()
    bounds = np.cumsum([one.probability for one in source.classes])
    which = np.minimum(np.searchsorted(bounds, numbers["classes"], side="right"), len(source.classes) - 1).tolist()
    # Relative to its class's mean: a job that is long on one kind of slot is long on every kind.
    lengths = [Law(1.0, one.cv2).times_s(numbers["times"]).tolist() for one in source.classes]
    off = errors(numbers["errors"], source.error).tolist()
    return [_coming(at, submit_s[at], source.classes[one], lengths[one][at], off[at]) for at, one in enumerate(which)]


def _uniform(seed: int, many: int) -> dict[str, np.ndarray]:
    spawned: Sequence[np.random.SeedSequence] = np.random.SeedSequence(seed).spawn(len(PURPOSES))
    return {purpose: np.random.default_rng(one).random(many) for purpose, one in zip(PURPOSES, spawned, strict=True)}


def _coming(number: int, submit_s: float, class_: Class, length: float, off: float) -> Coming:
    takes_s = {kind: mean_s * length for kind, mean_s in class_.mean_s.items()}
    predicted_s = {kind: seconds * off for kind, seconds in takes_s.items()}
    due_s = None if class_.due_factor is None else submit_s + class_.due_factor * min(class_.mean_s.values())
    job = Job(
        number=number,
        submit_s=submit_s,
        predicted_s=predicted_s,
        class_=class_.name,
        priority=class_.priority,
        replicas=class_.replicas,
        due_s=due_s,
        tenant=class_.tenant,
    )
    return Coming(job, takes_s)
