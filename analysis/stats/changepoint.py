"""Change points of a series with one value per run: lasting changes of level, and their size.

Isolated outliers are pulled in; three or more at an end, all on one side, keep their values.
`step_evidence` tests whether steps explain the series better than noise; if so, it is cut at them
and its parts are tested again. Last, each change is relocated between its neighbours, and dropped
if it no longer convinces.

A test for white noise takes every excursion for a change. So two explanations compete, both with
stationary AR(1) noise of unknown size and correlation phi: one level, or up to twelve steps. For
each phi the likelihood is exact; the Bayes factor is the ratio of the weighted means of both. Steps
are searched by orthogonal matching pursuit (Pati et al. 1993), which finds a rise and a fall that
cancel out.

Priors are chosen for the false-alarm rate: at most 5 % of series of pure noise, white, heavy-tailed
(Student t3) or AR(1) with phi up to 0.5, get a change point, at any length from 10 on. 1/(2·BF)
serves as a p-value (docs/ci.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from control.t_test import t_quantile, t_tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Whole = NDArray[np.int64]
    from numpy.typing import ArrayLike

# Two odd points are outliers, three are a level: the fewest points on either side of a step.
SHORTEST_LEVEL = 3
# A rise and fall is two steps only if it lasts: a shock that decays through memory is not.
SHORTEST_EPISODE = 6
# In a shorter series, noise with memory cannot be distinguished from a step.
SHORTEST = 10
MOST_STEPS = 12
PHI = np.arange(10) / 10
# Up to this length, memory, many steps and one step in the middle look alike; priors help there,
# and fade with length.
SHORT = 30
# A step that leaves no noise at all is a step, but its likelihood is infinite.
LEAST_LEFT = 1e-13
# A step that earlier steps explain almost wholly; their own places are excluded, so this only keeps
# arithmetic finite.
SLIGHTEST = 1e-9


@dataclass(frozen=True, slots=True)
class StepEvidence:
    """Result of `step_evidence`: a log Bayes factor above 0 favours steps.

    `splits`: the first point of each new level. `memory`: the weight of each of `PHI`.
    """

    log_bayes_factor: float
    splits: tuple[int, ...]
    memory: Floats


@dataclass(frozen=True, slots=True)
class _Design:
    """Quantities that depend on the length alone, filtered for each phi to whiten AR(1) noise.

    `steps`: inner product of two filtered steps, of the later place with the earlier, shape (phi,
    places); `size`: their squared length; `along`: their product with the filtered constant,
    `level`. Priors are logarithms.
    """

    places: Whole
    level: Floats
    steps: Floats
    size: Floats
    along: Floats
    common: Floats
    prior_memory: Floats
    prior_place: Floats
    another: float


@lru_cache(maxsize=32)
def _design(n: int) -> _Design:
    places = np.arange(SHORTEST_LEVEL, n - SHORTEST_LEVEL + 1)
    level = _filtered(np.ones(n))
    squared = np.einsum("pt,pt->p", level, level)
    level /= np.sqrt(squared)[:, None]
    gain = 1 - PHI[:, None]
    after = (n - places - 1) * gain
    short = min(1.0, SHORT / n)
    calm = np.exp(-(1 + 2 * short) * PHI)
    middle = 4 * places * (n - places) / n**2
    return _Design(
        places=places,
        level=level,
        steps=gain * (1 + after),
        size=1 + gain * after,
        along=_onto_steps(level),
        common=0.5 * np.log((1 - PHI**2) / squared),
        prior_memory=np.log(calm / calm.sum()),
        prior_place=(0.5 + 1.75 * short) * np.log(middle) - np.log(len(places)),
        another=0.25 - 0.2 * short,
    )


def _filtered(series: Floats) -> Floats:
    """Filter a series for each phi to whiten AR(1) noise, the first value by √(1-phi²)."""
    phi = PHI[:, None]
    white = np.empty((len(PHI), len(series)))
    white[:, :1] = np.sqrt(1 - phi**2) * series[0]
    white[:, 1:] = series[1:] - phi * series[:-1]
    return white


def _onto_steps(white: Floats) -> Floats:
    """Return inner products with the filtered step at each place: 1 at the rise, then 1 - phi."""
    inside = slice(SHORTEST_LEVEL, white.shape[1] - SHORTEST_LEVEL + 1)
    to_end = np.cumsum(white[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(PHI[:, None] * white[:, inside] + (1 - PHI[:, None]) * to_end[:, inside])


class _Pursuit:
    """The part of a series that the level and the steps so far leave unexplained, for each phi.

    `noise` is the residual sum of squares, `along` the product of the residual with each step,
    `size` the squared residual length of the step, `taken` a Cholesky factor, column by column.
    """

    def __init__(self, series: Floats, design: _Design) -> None:
        white = _filtered(series - series.mean())
        level = np.einsum("pt,pt->p", white, design.level)
        self.design = design
        self.taken = [design.along]
        self.noise = np.einsum("pt,pt->p", white, white) - level**2
        self.none_left = 2 * LEAST_LEFT * self.noise
        self.along = _onto_steps(white) - level[:, None] * design.along
        self.size = design.size - design.along**2
        self.allowed = np.ones(self.size.shape, dtype=bool)

    def can_go_on(self) -> bool:
        return bool(self.allowed.any(axis=1).all())

    def gains(self) -> Floats:
        """Return the log posterior gain of one more step at each place, shape (phi, places)."""
        noise = np.where(self.noise > self.none_left, self.noise, np.inf)  # else all is explained
        left = np.maximum(1 - self.along**2 / (self.size * noise[:, None]), LEAST_LEFT)
        first = len(self.taken) == 1
        gains = (len(self.taken) - self.design.level.shape[1] + 1) / 2 * np.log(left)
        gains += self.design.prior_place if first else -math.log(len(self.design.places))
        gains[~self.allowed] = -np.inf
        return np.asarray(gains)

    def take(self, chosen: Whole) -> None:
        """Add the step at one place per phi to the model."""
        entry = np.arange(len(PHI)), chosen
        earlier = np.arange(len(self.design.places)) < chosen[:, None]
        direction = np.where(earlier, self.design.steps[entry][:, None], self.design.steps)
        direction[entry] = self.design.size[entry]
        for known in self.taken:
            direction -= known[entry][:, None] * known
        length = np.sqrt(self.size[entry])
        direction /= length[:, None]
        share = self.along[entry] / length
        self.taken.append(direction)
        self.noise = self.noise - share**2
        self.along = self.along - share[:, None] * direction
        self.size = np.maximum(self.size - direction**2, SLIGHTEST)
        places = self.design.places
        self.allowed &= np.abs(places - places[chosen][:, None]) >= SHORTEST_EPISODE


def step_evidence(series: Floats, most: int = MOST_STEPS) -> StepEvidence:
    """Weigh up to `most` steps against none, in six points or more that are not constant."""
    design = _design(len(series))
    left = _Pursuit(series, design)
    flat = design.common - (len(series) - 1) / 2 * np.log(left.noise)
    score = design.prior_memory + flat - _log_sum(flat - math.log(len(PHI)))
    gains = left.gains()
    joint = score[:, None] + gains
    single = int(_log_sum(joint.T).argmax())
    memory = np.exp(joint[:, single] - joint[:, single].max())
    weights, chosen = [score + _log_sum(gains)], [gains.argmax(axis=1)]
    while len(chosen) < most:
        score = score + gains[np.arange(len(PHI)), chosen[-1]]
        left.take(chosen[-1])
        if not left.can_go_on():
            break
        gains = left.gains()
        weights.append(score + _log_sum(gains))
        chosen.append(gains.argmax(axis=1))
    if most > 1:
        weights = [
            math.log1p(-design.another) + more * math.log(design.another) + weight
            for more, weight in enumerate(weights)
        ]
    count, phi = np.unravel_index(np.argmax(weights), (len(weights), len(PHI)))
    best = [single] if count == 0 else sorted(one[phi] for one in chosen[: count + 1])
    return StepEvidence(
        float(_log_sum(np.concatenate(weights))),
        tuple(int(design.places[at]) for at in best),
        memory / memory.sum(),
    )


def _log_sum(logs: Floats) -> Floats:
    top = logs.max(axis=-1)
    return np.asarray(top + np.log(np.exp(logs - top[..., None]).sum(axis=-1)))


LEVEL = 0.05
CONVINCING = math.log(0.5 / LEVEL)
# An outlier is off by more than ten times the typical distance of four fifths of the points from
# the median of those around them (about 4 sd). Among the eleven around, six are the majority:
# the shortest episode that counts.
REACH = SHORTEST_EPISODE - 1
TYPICAL = 0.8
LIMIT = 10.0
MOST_STEPS_OF_A_PART = 4
SWEEPS = 3
# Relative spread below which numbers count as equal.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A lasting change of level at `index`, the first point of the new level.

    `before` and `after` are the mean levels up to the neighbouring changes, without outliers.
    `shift` is their difference, with its 95 % interval widened for the memory of the noise.
    Of the raw values: `energy`, the divergence Q of Matteson and James (alpha 1), and the plain
    t-test (None if neither side varies).
    """

    index: int
    before: float
    after: float
    shift: float
    low: float
    high: float
    energy: float
    df: int
    student_t: float | None
    student_p: float | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The change points of one series in order, and the p-value of no change."""

    points: tuple[ChangePoint, ...]
    p: float


def change_points(values: ArrayLike) -> Changes:
    """Find the lasting changes of level in a series, in time order.

    Raises: ValueError, for fewer than `SHORTEST` values or a non-finite value.
    """
    series = np.asarray(values, dtype=np.float64)
    n = len(series)
    if n < SHORTEST:
        raise ValueError(f"{n} values; at least {SHORTEST} are required")
    if not np.isfinite(series).all():
        raise ValueError("a value is not a finite number")
    first, last = odd_end(series[::-1]), odd_end(series)
    ends = [first] * (first >= SHORTEST_LEVEL) + [n - last] * (last >= SHORTEST_LEVEL)
    tame = without_outliers(series, ends)
    if _constant(tame):
        return Changes((), 1.0)
    evidence = step_evidence(tame).log_bayes_factor
    settled = _settled(tame, _segmented(tame)) if evidence > CONVINCING else []
    edges = [0, *(step.splits[0] for step in settled), n]
    levels = without_outliers(series, edges[1:-1])
    points = (
        _described(series, levels, edges[at : at + 3], step.memory)
        for at, step in enumerate(settled)
    )
    return Changes(tuple(points), min(1.0, 0.5 * math.exp(-max(evidence, -1.0))))


def without_outliers(series: Floats, splits: Sequence[int] = ()) -> Floats:
    """Pull outliers in towards the median around them; `splits` begin new levels."""
    local = np.concatenate([_medians_around(part) for part in np.split(series, splits)])
    off = series - local
    limit = LIMIT * _typical(off)
    return np.asarray(local + np.clip(off, -limit, limit))


def odd_end(series: Floats) -> int:
    """Count the last points (at most five) that all lie as far off as outliers, on the same side.

    One or two are outliers so far; from three on they may be a new level. Takes: shape (points,),
    at least `SHORTEST` points.
    """
    inside = _medians_inside(series)
    for count in range(REACH, 0, -1):
        head = series[:-count]
        off = series[-count - 1 :] - median(head[-(2 * REACH + 1) :].tolist())
        if not ((off[1:] > 0).all() or (off[1:] < 0).all()):
            continue
        limit = LIMIT * _typical(head - _medians_around(head, inside[:-count]))
        for beyond in (off > limit, off < -limit):
            # If the point before is odd too, they are more than `count`.
            if beyond[1:].all() and not beyond[0]:
                return count
    return 0


def _typical(off: Floats) -> float:
    return float(np.sort(np.abs(off))[: math.ceil(TYPICAL * len(off))].mean())


def _medians_around(series: Floats, inside: Floats | None = None) -> Floats:
    n = len(series)
    inside = _medians_inside(series) if inside is None else inside
    values = series.tolist()
    places = sorted({*range(min(REACH, n)), *range(max(0, n - REACH), n)})
    ends = [median(values[max(0, at - REACH) : at + REACH + 1]) for at in places]
    return np.concatenate([ends[:REACH], inside, ends[REACH:]])


def _medians_inside(series: Floats) -> Floats:
    width = 2 * REACH + 1
    return (
        np.sort(sliding_window_view(series, width), axis=1)[:, REACH]
        if len(series) >= width
        else np.empty(0)
    )


def _segmented(series: Floats, start: int = 0, most: int = MOST_STEPS) -> list[int]:
    if len(series) < SHORTEST or _constant(series):
        return []
    evidence = step_evidence(series, most)
    if evidence.log_bayes_factor <= CONVINCING:
        return []
    cuts = [0, *evidence.splits, len(series)]
    result = []
    for begin, end in pairwise(cuts):
        result += [start + begin] * (begin > 0) + _segmented(
            series[begin:end], start + begin, MOST_STEPS_OF_A_PART
        )
    return result


def _settled(series: Floats, splits: list[int]) -> list[StepEvidence]:
    steps = _between(series, splits)
    for _ in range(SWEEPS):
        moved = [step.splits[0] for step in steps]
        if moved == splits or min(np.diff([0, *moved, len(series)])) < SHORTEST_LEVEL:
            break
        splits, steps = moved, _between(series, moved)
    while steps and min(step.log_bayes_factor for step in steps) <= CONVINCING:
        weakest = min(range(len(steps)), key=lambda at: steps[at].log_bayes_factor)
        splits = splits[:weakest] + splits[weakest + 1 :]
        steps = _between(series, splits)
    return [replace(step, splits=(split,)) for step, split in zip(steps, splits, strict=True)]


def _between(series: Floats, splits: list[int]) -> list[StepEvidence]:
    edges = [0, *splits, len(series)]
    result = []
    for begin, split, end in zip(edges, splits, edges[2:], strict=False):
        part = series[begin:end]
        if _constant(part):
            result.append(StepEvidence(-math.inf, (split,), PHI))
        else:
            evidence = step_evidence(part, most=1)
            result.append(replace(evidence, splits=(begin + evidence.splits[0],)))
    return result


def _described(series: Floats, levels: Floats, edges: list[int], memory: Floats) -> ChangePoint:
    start, split, stop = edges
    before, after = levels[start:split], levels[split:stop]
    shift = float(after.mean() - before.mean())
    df = stop - start - 2
    spread = math.sqrt(
        (((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum()) / df
    )
    error = spread * math.sqrt(
        float(memory @ (_mean_variance(len(before)) + _mean_variance(len(after))))
    )
    half = t_quantile(1 - LEVEL / 2, df) * error
    raw = series[start:split], series[split:stop]
    student_t, student_p = student(*raw) or (None, None)
    return ChangePoint(
        index=split,
        before=float(before.mean()),
        after=float(after.mean()),
        shift=shift,
        low=shift - half,
        high=shift + half,
        energy=energy_divergence(*raw),
        df=df,
        student_t=student_t,
        student_p=student_p,
    )


def _constant(series: Floats) -> bool:
    return bool(np.ptp(series) <= ROUNDING * np.abs(series).max())


def _mean_variance(n: int) -> Floats:
    return np.asarray(((1 + PHI) / (1 - PHI) - 2 * PHI * (1 - PHI**n) / (n * (1 - PHI) ** 2)) / n)


def energy_divergence(before: Floats, after: Floats) -> float:
    """Return the energy divergence Q of two samples of two or more values, in their unit.

    mn/(m+n) · (2·mean|x-y| - mean|x-x'| - mean|y-y'|), the statistic of E-divisive with alpha 1.
    Source: Matteson and James, JASA 2014, arXiv 1306.4933, equation 5.
    """
    m, n = len(before), len(after)
    within = _pair_sum(before), _pair_sum(after)
    between = _pair_sum(np.concatenate([before, after])) - sum(within)
    return float(
        2 / (m + n) * between
        - m * n / (m + n) * (within[0] / (m * (m - 1) / 2) + within[1] / (n * (n - 1) / 2))
    )


def _pair_sum(values: Floats) -> float:
    n = len(values)
    return float(np.sort(values) @ (2 * np.arange(n) - (n - 1)))


def student(before: Floats, after: Floats) -> tuple[float, float] | None:
    """Return Student's t (second sample against first) and p; None if neither varies."""
    m, n = len(before), len(after)
    squares = ((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum()
    if not squares:
        return None
    t = float((after.mean() - before.mean()) / np.sqrt(squares / (m + n - 2) * (1 / m + 1 / n)))
    return t, 2 * t_tail(abs(t), m + n - 2)
