"""Arithmetic of one contrast: effect, interval, p-values, detectable effect from a value per unit.

A unit is a block (a cell) or a run: steps inside a cell are not replicates. Everything is computed
on the logarithm of the ratio, so that neither time or throughput nor the baseline's choice matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.terms import Effect, Metric, NotComparable
from control.t_test import ALPHA, LARGEST_LOG, t_interval, t_quantile, t_tail

if TYPE_CHECKING:
    Times = tuple[Sequence[float], Sequence[float]]  # of the baseline's and candidate's units

# With fewer processes, an interval from their means is too wide: ±2.8 standard errors and more.
ENOUGH_PROCESSES = 5
# Relative spread below which saved numbers count as equal: no two measurements agree this well.
ROUNDING = 1e-9
FEW = 3  # units; an arm with fewer has no spread of its own


def log_gains(metric: Metric, baseline: Sequence[float], candidate: Sequence[float]) -> list[float]:
    """Return the candidate's log gain per block; above 0 is better."""
    sign = 1.0 if metric.better == "higher" else -1.0
    return [
        sign * math.log(after / before) for before, after in zip(baseline, candidate, strict=True)
    ]


def paired_effect(
    metric: Metric, baseline: Sequence[float], candidate: Sequence[float], margin: float
) -> Effect:
    """Compare two arms block by block: paired t on the log ratio, d.f. = blocks - 1.

    Raises: NotComparable, if a value is 0, or if blocks do not differ at all: that is not a
    measurement, and its p would be 0 or undefined.
    """
    if not all(value > 0 for value in (*baseline, *candidate)):
        raise NotComparable(
            f"{metric.name} is 0 in at least one block, so no ratio can be computed."
        )
    gains = log_gains(metric, baseline, candidate)
    n = len(gains)
    mean, sd = moments(gains)
    if sd < ROUNDING:
        what = (
            "identical values"
            if abs(mean) < ROUNDING
            else f"a ratio of exactly {math.exp(mean):.6g}"
        )
        raise NotComparable(
            f"{what} of {metric.name} in all {n} blocks of both arms: these are not independent "
            "measurements; "
            "check whether the workload reports its own times."
        )
    return _effect(metric, (baseline, candidate), mean, (sd, sd / math.sqrt(n), n - 1), margin)


def switched_effect(
    metric: Metric,
    baseline: Sequence[Sequence[float]],
    candidate: Sequence[Sequence[float]],
    margin: float,
) -> Effect:
    """Compare two arms that took turns within processes: a list per process, of its segment pairs.

    From five processes on, a process counts once, by the mean of its pairs. With fewer, the pairs
    are the units, and the interval is for the effect in these processes only.

    Raises: NotComparable, as `paired_effect`.
    """
    if len(baseline) >= ENOUGH_PROCESSES:
        before, after = (
            [_geometric_mean(process) for process in arm] for arm in (baseline, candidate)
        )
        return replace(paired_effect(metric, before, after, margin), design="switched")
    base, other = ([value for process in arm for value in process] for arm in (baseline, candidate))
    gains = [log_gains(metric, *pair) for pair in zip(baseline, candidate, strict=True)]
    pooled = paired_effect(metric, base, other, margin)
    df = len(base) - len(gains)
    if df < len(gains):  # fewer than two pairs per process: no repetition inside
        return replace(pooled, design="switched")
    inside = [moments(process) for process in gains]
    sd = math.sqrt(
        math.fsum(
            spread**2 * (len(process) - 1)
            for (_, spread), process in zip(inside, gains, strict=True)
        )
        / df
    )
    mean = math.fsum(mean for mean, _ in inside) / len(gains)
    error = sd * math.sqrt(math.fsum(1 / len(process) for process in gains)) / len(gains)
    return replace(_effect(metric, (base, other), mean, (sd, error, df), margin), design="switched")


def unequal(gains: Sequence[Sequence[float]]) -> float | None:
    """Return p for equal mean log gains in all processes (one-way ANOVA); None if undefined."""
    from scipy.stats import f_oneway

    if len(gains) < 2 or all(len(set(process)) < 2 for process in gains):
        return None
    return float(f_oneway(*gains).pvalue)


def two_sample_effect(
    metric: Metric,
    baseline: Sequence[float],
    candidate: Sequence[float],
    margin: float,
    times: Times | None = None,
) -> Effect:
    """Compare two arms that share no blocks, on the log scale.

    Welch's t if both arms have at least three units; else the pooled t, with the other arm's
    spread. For runs at different `times`, drift, memory and outlying runs are modelled instead
    (`in_time`).

    Raises: NotComparable, for fewer than three units in both arms, or units that do not differ.
    """
    sign = 1.0 if metric.better == "higher" else -1.0
    n, m = len(baseline), len(candidate)
    (base, base_sd), (after, after_sd) = (
        moments([sign * math.log(value) for value in arm]) for arm in (baseline, candidate)
    )
    if max(n, m) < FEW:
        raise NotComparable(
            f"{n} and {m} runs: at least 3 in one arm are required to know how far equal runs "
            "differ."
        )
    if max(base_sd, after_sd) < ROUNDING:
        raise NotComparable(
            f"identical values of {metric.name} within each arm: these are not independent "
            "measurements."
        )
    if times:
        return _in_time(metric, (baseline, candidate), margin, times)
    pooled = math.sqrt(((n - 1) * base_sd**2 + (m - 1) * after_sd**2) / (n + m - 2))
    if min(n, m) < FEW:
        error, df = pooled * math.sqrt(1 / n + 1 / m), float(n + m - 2)
    else:
        parts = base_sd**2 / n, after_sd**2 / m
        error = math.sqrt(sum(parts))
        df = sum(parts) ** 2 / (parts[0] ** 2 / (n - 1) + parts[1] ** 2 / (m - 1))
    return _effect(
        metric, (baseline, candidate), after - base, (pooled, error, df), margin, paired=False
    )


def _in_time(
    metric: Metric, arms: tuple[Sequence[float], Sequence[float]], margin: float, times: Times
) -> Effect:
    import numpy as np

    from .in_time import step_in_time

    sign = 1.0 if metric.better == "higher" else -1.0
    runs = [zip(when, (arm,) * len(when), arms[arm], strict=True) for arm, when in enumerate(times)]
    when, turns, values = zip(*sorted([*runs[0], *runs[1]]), strict=True)
    mean, error, df = map(float, step_in_time(sign * np.log(values), turns, when))
    # The spread at which independent runs would be equally uncertain.
    sd = error / math.sqrt(1 / len(arms[0]) + 1 / len(arms[1]))
    return _effect(metric, arms, mean, (sd, error, df), margin, paired=False)


def _effect(
    metric: Metric,
    arms: tuple[Sequence[float], Sequence[float]],
    mean: float,
    spread: tuple[float, float, float],
    margin: float,
    *,
    paired: bool = True,
) -> Effect:
    """Make the record of a t-test; `spread` is SD, standard error and d.f. of the log gain.

    The equivalence margin is symmetric on the log scale: from 1/(1+margin) to 1+margin, which lies
    inside ±margin.
    """
    sd, error, df = spread
    _, low, high, p = t_interval(mean, error, df)
    half90 = t_quantile(1 - ALPHA, df) * error
    return Effect(
        metric=metric,
        n_baseline=len(arms[0]),
        n_candidate=len(arms[1]),
        baseline=_geometric_mean(arms[0]),
        gain=_gain(mean),
        low=_gain(low),
        high=_gain(high),
        low90=_gain(mean - half90),
        high90=_gain(mean + half90),
        log_sd=sd,
        log_se=error,
        df=df,
        p=p,
        p_equivalent=t_tail(
            (math.log1p(margin) - abs(mean)) / error, df
        ),  # of the nearer edge: the larger of the two
        values_baseline=tuple(arms[0]),
        values_candidate=tuple(arms[1]),
        design="paired" if paired else "two-sample",
    )


def _gain(log_gain: float) -> float:
    return math.expm1(min(log_gain, LARGEST_LOG))


def moments(values: Sequence[float]) -> tuple[float, float]:
    n = len(values)
    mean = math.fsum(values) / n
    return mean, math.sqrt(
        math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    ) if n > 1 else 0.0


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and 95 % interval by Student's t, of zero width if all values are equal."""
    mean, sd = moments(values)
    return (
        t_interval(mean, sd / math.sqrt(len(values)), len(values) - 1)[:3]
        if sd
        else (mean, mean, mean)
    )


# Holm's adjustment suits the few contrasts of a study, Benjamini and Hochberg's a screen of many.
def holm(ps: Sequence[float]) -> list[float]:
    """Adjust by Holm (1979): multiply m p-values, ascending, by m, m - 1, …; keep their order."""
    result, least = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = result[index] = max(least, min(1.0, (len(ps) - rank) * ps[index]))
    return result


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Adjust by Benjamini-Hochberg (1995): multiply p of rank k of m by m / k; keep the order."""
    result, most = [0.0] * len(ps), 1.0
    for rank, index in reversed(
        list(enumerate(sorted(range(len(ps)), key=ps.__getitem__), start=1))
    ):
        most = result[index] = min(most, len(ps) / rank * ps[index])
    return result


ADJUSTMENTS: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
}
