"""A law at work: the time of a job, and the replicas under which it takes as long as every other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .terms import Choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .terms import Law

    Floats = NDArray[np.float64]

TOLERANCE = 0.1  # of the target, either way


def time_s(law: Law, work: ArrayLike, replicas: ArrayLike) -> Floats:
    """How long jobs take, in seconds; sizes and replicas are broadcast against each other."""
    n = np.asarray(replicas, dtype=float)
    share = (1 + law.serial * (n - 1) + law.crosstalk * n * (n - 1)) / n
    found: Floats = law.startup_s + law.cost_s * np.asarray(work, dtype=float) * share
    return found


def most_useful(law: Law, most: int) -> int:
    """The number of replicas, up to `most`, beyond which a job takes longer: √((1 - serial)/crosstalk)."""
    if law.crosstalk <= 0:
        return most if law.serial < 1 else 1
    best = math.sqrt(max(0.0, 1 - law.serial) / law.crosstalk)
    if best >= most:
        return most
    near = [max(1, math.floor(best)), min(most, math.floor(best) + 1)]
    return min(near, key=lambda n: float(time_s(law, 1.0, n)))


def choose(law: Law, work: float, target_s: float, most: int, tolerance: float = TOLERANCE) -> Choice:
    """The replicas, up to `most` and as long as more are faster, that bring a job nearest the target, as a ratio; of equals the fewest.

    From few replicas to one more the time falls by more than the band is wide (from 1 to 2 by half): a job that is done by few may have
    no number that fits.
    """
    numbers = np.arange(1, most_useful(law, most) + 1)
    times_s = time_s(law, work, numbers)
    at = int(np.argmin(np.abs(np.log(times_s / target_s))))
    predicted_s = float(times_s[at])
    within = abs(predicted_s / target_s - 1) <= tolerance
    return Choice(work, int(numbers[at]), predicted_s, within, "" if within else _why(law, times_s, at, target_s, most))


def _why(law: Law, times_s: Floats, at: int, target_s: float, most: int) -> str:
    if times_s[at] < target_s:
        return "one replica is faster" if at == 0 else "one replica less is too slow, and so many are too fast"
    if at + 1 < len(times_s):
        return "one replica more is too fast, and so many are too slow"
    limit = "the most there are" if len(times_s) == most else "more make it slower"
    return f"{at + 1} replicas are too slow and {limit}" if law.startup_s < target_s else "starting alone takes longer"
