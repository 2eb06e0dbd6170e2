"""The words of scaling: a law of how long a job takes by its size and replicas, what it was fitted to, and what was chosen by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Law:
    """How long a job takes: startup + cost · work · (1 + serial·(n - 1) + crosstalk·n·(n - 1)) / n with n replicas, in seconds.

    Gunther's universal scalability law (2007), as a time; without crosstalk it is Amdahl's (1967) with that serial part. `cost_s` is what
    one unit of work takes one replica, `startup_s` what no replica shortens.
    """

    cost_s: float
    serial: float = 0.0
    crosstalk: float = 0.0
    startup_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """One measured job: replicas, size in whatever unit the work is counted, and how long it ran."""

    replicas: int
    work: float
    time_s: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A law fitted to points. `intervals`: 95 %, by parameter; those held at 0, for want of points that could tell, are not there.

    `aicc` is Akaike's criterion for few points, on log times: the smaller law is better by. `held_out` is the mean absolute error, as a
    fraction of the time, of points whose replicas and size were left out of the fit; None where that was not asked, or leaves too few.
    """

    name: str
    law: Law
    points: int
    spread: float
    aicc: float
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    held_out: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """Replicas for a job of that size. `within`: predicted to take the target, give or take the tolerance; `why` says why not."""

    work: float
    replicas: int
    predicted_s: float
    within: bool
    why: str = ""
