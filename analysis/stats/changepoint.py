"""Change points of a series with one value a run: where its level changed to stay, and by how much.

Three steps. Isolated outliers are pulled in, since one bad run is no new level. Then the series is asked whether steps explain it better
than noise (`step_evidence`); where they do it is cut at them and the parts are asked again (binary segmentation). Last, each change is
placed anew between its neighbours and dropped where it no longer convinces.

Of series that are noise alone at most 5 % get any change point, whatever their length from 10 on: white, heavy-tailed (Student t3) or
autocorrelated (AR(1), phi up to 0.5). `alarm_rates` measures it; the table, and the power, are in `docs/history.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from control.t_test import t_quantile, t_tail

from .step_evidence import MOST_STEPS, PHI, SHORTEST, SHORTEST_EPISODE, SHORTEST_LEVEL, Evidence, step_evidence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .step_evidence import Floats


LEVEL = 0.05
CONVINCING = math.log(0.5 / LEVEL)
# An outlier is out by more than ten times what four fifths of the points lie off the median of those around them (about 4 sd). Of
# eleven around, six are the majority: the shortest episode that counts.
REACH = SHORTEST_EPISODE - 1
TYPICAL = 0.8
LIMIT = 10.0
MOST_STEPS_OF_A_PART = 4
SWEEPS = 3
# Relative spread under which numbers are the same number.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A lasting change of level at `index`, the first point of the new level.

    `before` and `after` are the mean levels up to the neighbouring changes, outliers pulled in; `shift` is their difference with its
    95 % interval, widened for the memory of the noise. What other tools go by stands beside it, from the values as they are: `energy`,
    the divergence Q of Matteson and James (alpha 1), and the plain t-test (None where neither side varies), whose p-value knows neither of
    the search nor of memory and is far too small.
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
    """The change points of one series in order, and the p-value of there being any."""

    points: tuple[ChangePoint, ...]
    p: float


def change_points(values: ArrayLike) -> Changes:
    """Find the lasting changes of level in a series, in time order.

    Shift and scale of the values make no difference, nor does the direction of time.

    Raises: ValueError, for fewer than `SHORTEST` values or one that is not finite.
    """
    series = np.asarray(values, dtype=np.float64)
    n = len(series)
    if n < SHORTEST:
        raise ValueError(f"{n} values, at least {SHORTEST} are needed")
    if not np.isfinite(series).all():
        raise ValueError("a value is not a finite number")
    tame = without_outliers(series)
    if _constant(tame):
        return Changes((), 1.0)
    evidence = step_evidence(tame).log_bayes_factor
    settled = _settled(tame, _segmented(tame)) if evidence > CONVINCING else []
    edges = [0, *(step.splits[0] for step in settled), n]
    points = (_described(series, tame, edges[at : at + 3], step.memory) for at, step in enumerate(settled))
    return Changes(tuple(points), min(1.0, 0.5 * math.exp(-max(evidence, -1.0))))


def without_outliers(series: Floats) -> Floats:
    """Pull outliers in towards the median of the points around them; steps stay, as do the last three of a new level.

    Takes and returns: shape (points,), at least `SHORTEST` of them.
    """
    n, width = len(series), 2 * REACH + 1
    ends = [np.median(series[max(0, at - REACH) : at + REACH + 1]) for at in (*range(REACH), *range(n - REACH, n))]
    inside = np.median(sliding_window_view(series, width), axis=1) if n >= width else np.empty(0)
    local = np.concatenate([ends[:REACH], inside, ends[REACH:]])
    off = series - local
    typical = np.sort(np.abs(off))[: math.ceil(TYPICAL * len(series))].mean()
    return np.asarray(local + np.clip(off, -LIMIT * typical, LIMIT * typical))


def _segmented(series: Floats, start: int = 0, most: int = MOST_STEPS) -> list[int]:
    if len(series) < SHORTEST or _constant(series):
        return []
    evidence = step_evidence(series, most)
    if evidence.log_bayes_factor <= CONVINCING:
        return []
    cuts = [0, *evidence.splits, len(series)]
    result = []
    for begin, end in pairwise(cuts):
        result += [start + begin] * (begin > 0) + _segmented(series[begin:end], start + begin, MOST_STEPS_OF_A_PART)
    return result


def _settled(series: Floats, splits: list[int]) -> list[Evidence]:
    """Place each change anew between its neighbours; then drop the least convincing, one at a time, until all convince."""
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


def _between(series: Floats, splits: list[int]) -> list[Evidence]:
    edges = [0, *splits, len(series)]
    result = []
    for begin, split, end in zip(edges, splits, edges[2:], strict=False):
        part = series[begin:end]
        if _constant(part):
            result.append(Evidence(-math.inf, (split,), PHI))
        else:
            evidence = step_evidence(part, most=1)
            result.append(replace(evidence, splits=(begin + evidence.splits[0],)))
    return result


def _described(series: Floats, tame: Floats, edges: list[int], memory: Floats) -> ChangePoint:
    start, split, stop = edges
    before, after = tame[start:split], tame[split:stop]
    shift = float(after.mean() - before.mean())
    df = stop - start - 2
    spread = math.sqrt((((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum()) / df)
    error = spread * math.sqrt(float(memory @ (_mean_variance(len(before)) + _mean_variance(len(after)))))
    half = t_quantile(1 - LEVEL / 2, df) * error
    plain = student(series[start:split], series[split:stop])
    return ChangePoint(
        index=split,
        before=float(before.mean()),
        after=float(after.mean()),
        shift=shift,
        low=shift - half,
        high=shift + half,
        energy=energy_divergence(series[start:split], series[split:stop]),
        df=df,
        student_t=plain[0] if plain else None,
        student_p=plain[1] if plain else None,
    )


def _constant(series: Floats) -> bool:
    return bool(np.ptp(series) <= ROUNDING * np.abs(series).max())


def _mean_variance(n: int) -> Floats:
    """Variance of the mean of n points of AR(1) noise of variance 1, for each of `PHI`."""
    return np.asarray(((1 + PHI) / (1 - PHI) - 2 * PHI * (1 - PHI**n) / (n * (1 - PHI) ** 2)) / n)


def energy_divergence(before: Floats, after: Floats) -> float:
    """Energy divergence Q of two samples of at least two values each, in the unit of the values.

    mn/(m+n) · (2·mean|x-y| - mean|x-x'| - mean|y-y'|), the statistic of E-divisive with alpha 1.
    Source: Matteson and James, JASA 2014, arXiv 1306.4933, equation 5.
    """
    m, n = len(before), len(after)
    within = _pair_sum(before), _pair_sum(after)
    between = _pair_sum(np.concatenate([before, after])) - sum(within)
    return float(2 / (m + n) * between - m * n / (m + n) * (within[0] / (m * (m - 1) / 2) + within[1] / (n * (n - 1) / 2)))


def _pair_sum(values: Floats) -> float:
    """Sum of |x - x'| over all pairs, by ranks instead of pair by pair."""
    n = len(values)
    return float(np.sort(values) @ (2 * np.arange(n) - (n - 1)))


def student(before: Floats, after: Floats) -> tuple[float, float] | None:
    """Student's t of the second sample against the first, and its two-sided p-value; None where neither varies."""
    m, n = len(before), len(after)
    squares = ((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum()
    if not squares:
        return None
    t = float((after.mean() - before.mean()) / np.sqrt(squares / (m + n - 2) * (1 / m + 1 / n)))
    return t, 2 * t_tail(abs(t), m + n - 2)
