"""The arithmetic of one contrast: paired log ratios in, effect, interval, p-values and detectable effect out.

One number per block and arm is all that enters here: steps inside a cell are not replicates (pseudo-replication), blocks are.
Everything is computed on the logarithm of the ratio, where "a quarter faster" and its inverse are equally far from nothing, so
that the answer does not depend on whether a reader thinks in time or in throughput, nor on which arm is called the baseline.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .terms import Effect, Metric, NotComparable

if TYPE_CHECKING:
    from collections.abc import Sequence

ALPHA = 0.05
POWER = 0.80
# Relative spread under which two numbers of a saved file are the same number: no two measurements agree this well.
ROUNDING = 1e-9
LARGEST_LOG = 700.0  # its exponential is still a float


def t_quantile(p: float, df: int) -> float:
    """Return the p-quantile of Student's t with `df` degrees of freedom."""
    from scipy.special import stdtrit  # noqa: PLC0415  # a fifth of a second that reading a file need not pay

    return float(stdtrit(df, p))


def t_tail(t: float, df: int) -> float:
    """Return the probability that Student's t exceeds `t`."""
    from scipy.special import stdtr  # noqa: PLC0415

    return float(stdtr(df, -t))


def detectable_gain(log_sd: float, n: int, alpha: float = ALPHA, power: float = POWER) -> float:
    """Smallest gain (a fraction) that a two-sided paired t-test of n blocks finds with the given power.

    Solves P(T' > t_crit) = power for the noncentrality of T', the noncentral t; with few blocks and a small alpha the
    usual (t_crit + t_power)·sd/√n of statistics texts promises up to a fifth too much.
    """
    from scipy.special import nctdtrinc  # noqa: PLC0415

    critical = t_quantile(1 - alpha / 2, n - 1)
    log_gain = float(nctdtrinc(n - 1, 1 - power, critical)) * log_sd / math.sqrt(n)
    return math.expm1(min(log_gain, LARGEST_LOG))


def holm(ps: Sequence[float]) -> list[float]:
    """Adjust p-values for their number (Holm 1979, step-down): each may be read against the level itself.

    The smallest is multiplied by m, the next by m-1 and so on, none falls below a smaller one's, none exceeds 1.
    """
    m = len(ps)
    adjusted = [1.0] * m
    floor = 0.0
    for rank, index in enumerate(sorted(range(m), key=lambda i: ps[i])):
        floor = max(floor, min(1.0, (m - rank) * ps[index]))
        adjusted[index] = floor
    return adjusted


def log_gains(metric: Metric, baseline: Sequence[float], candidate: Sequence[float]) -> list[float]:
    """Logarithm of how many times better the candidate is, block by block; above 0 is better whichever way the metric runs."""
    sign = 1.0 if metric.better == "higher" else -1.0
    return [sign * math.log(after / before) for before, after in zip(baseline, candidate, strict=True)]


def paired_effect(metric: Metric, baseline: Sequence[float], candidate: Sequence[float], margin: float) -> Effect:
    """Compare two arms block by block: paired t on the log ratio, d.f. = blocks - 1.

    The equivalence margin is symmetric on the log scale: from 1/(1+margin) to 1+margin, which lies inside ±margin.

    Raises: NotComparable, where the blocks do not differ at all: that is no measurement, and its p would be 0 or undefined.
    """
    gains = log_gains(metric, baseline, candidate)
    n = len(gains)
    mean = math.fsum(gains) / n
    sd = math.sqrt(math.fsum((gain - mean) ** 2 for gain in gains) / (n - 1))
    if sd < ROUNDING:
        what = "identical values" if abs(mean) < ROUNDING else f"a ratio of exactly {math.exp(mean):.6g}"
        raise NotComparable(
            f"{what} of {metric.name} in all {n} blocks of both arms: these are not independent measurements; "
            "see whether the workload reports its own times."
        )
    error = sd / math.sqrt(n)
    df = n - 1
    half, half90 = (t_quantile(1 - tail, df) * error for tail in (ALPHA / 2, ALPHA))
    edge = math.log1p(margin)
    return Effect(
        metric=metric,
        pairs=n,
        baseline=math.exp(math.fsum(math.log(value) for value in baseline) / n),
        gain=math.expm1(mean),
        low=math.expm1(mean - half),
        high=math.expm1(mean + half),
        low90=math.expm1(mean - half90),
        high90=math.expm1(mean + half90),
        log_sd=sd,
        p=2 * t_tail(abs(mean) / error, df),
        p_equivalent=max(t_tail((edge - mean) / error, df), t_tail((edge + mean) / error, df)),
    )
