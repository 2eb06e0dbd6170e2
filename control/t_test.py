"""Student's t, central and noncentral, the basis of all intervals, p-values and power.

Computed here and held to scipy's by a test: importing `scipy.special` takes half as long as a whole
comparison does.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

ALPHA = 0.05
POWER = 0.80
LARGEST_LOG = 700.0  # its exponential is still a float


NORMAL = NormalDist()
NEARLY_NORMAL = 1e7  # degrees of freedom from which on t is the normal distribution to seven digits
SETTLED = 1e-14
MOST_TERMS, MOST_STEPS = 10_000, 200
# Of the integral over the chi distribution; an exponent beyond which nothing is left of it.
NODES, FAR = (240, 37.0)
FEW = 4  # degrees of freedom


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """Solve P(T <= t) = p by Newton's method from the normal quantile, without overshooting."""
    if p < 1 / 2:
        return -t_quantile(1 - p, df)
    t = NORMAL.inv_cdf(p)
    for _ in range(MOST_STEPS):
        step = (t_tail(t, df) - (1 - p)) / t_density(t, df)
        t += step
        if abs(step) <= SETTLED * t:
            break
    return t


def t_density(t: float, df: float) -> float:
    if df >= NEARLY_NORMAL:
        return NORMAL.pdf(t)
    scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    return math.exp(scale - (df + 1) / 2 * math.log1p(t * t / df))


def t_tail(t: float, df: float) -> float:
    """Return P(T > t), by the regularized incomplete beta function."""
    if t < 0:
        return 1 - t_tail(-t, df)
    if df >= NEARLY_NORMAL:
        return math.erfc(t / math.sqrt(2)) / 2
    inner, outer = t * t / (df + t * t), df / (df + t * t)
    if outer * (df / 2 + 5 / 2) < df / 2 + 1:
        return _beta(df / 2, 1 / 2, outer, inner) / 2
    return (1 - _beta(1 / 2, df / 2, inner, outer)) / 2


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """Return I_x(a, b) by its continued fraction (Lentz; DLMF 8.17.22); `rest` is 1 - x."""
    if x <= 0:
        return 0.0
    front = (
        math.exp(
            math.lgamma(a + b)
            - math.lgamma(a)
            - math.lgamma(b)
            + a * math.log(x)
            + b * math.log(rest)
        )
        / a
    )
    fraction, above, below = 1.0, 1.0, 0.0
    for term in range(MOST_TERMS):
        half = term // 2
        if term == 0:
            numerator = 1.0
        elif term % 2:
            numerator = -(a + half) * (a + b + half) * x / ((a + term - 1) * (a + term))
        else:
            numerator = half * (b - half) * x / ((a + term - 1) * (a + term))
        below = 1 / (1 + numerator * below)
        above = 1 + numerator / above
        fraction *= above * below
        if abs(above * below - 1) < SETTLED:
            break
    return front * (fraction - 1)


class TInterval(NamedTuple):
    """An estimate with its two-sided interval, and the two-sided p against 0."""

    value: float
    low: float
    high: float
    p: float


def t_interval(value: float, error: float, df: float, alpha: float = ALPHA) -> TInterval:
    """Return the interval and p of an estimate, from its standard error (> 0) and df."""
    half = t_quantile(1 - alpha / 2, df) * error
    return TInterval(
        value, value - half, value + half, min(1.0, 2 * t_tail(abs(value) / error, df))
    )


@lru_cache(maxsize=4096)
def detectable_errors(df: float, alpha: float = ALPHA, power: float = POWER) -> float:
    """Return the effect, in standard errors, that a two-sided t-test detects with this power.

    Solves P(T' > t_crit) = power for the noncentrality of T', the noncentral t; with few blocks and
    a small alpha the usual t_crit + t_power of statistics texts promises up to a fifth too much. P
    is an integral over the chi distribution of the standard error, in whose logarithm the integrand
    is smooth; with few degrees of freedom it is too steep for that.
    """
    critical = t_quantile(1 - alpha / 2, df)
    if df < FEW:
        from scipy.special import nctdtrinc

        return float(nctdtrinc(df, 1 - power, critical))
    if df >= NEARLY_NORMAL:
        return critical + NORMAL.inv_cdf(power)
    scale = math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2)
    low, high = -FAR / df - math.sqrt(FAR / df), math.sqrt(FAR / df)
    width = (high - low) / NODES
    logs = [low + node * width for node in range(NODES + 1)]
    shares = [
        (critical * math.exp(log), width * math.exp(scale + df * (log - math.exp(2 * log) / 2)))
        for log in logs
    ]
    errors = critical
    for _ in range(MOST_STEPS):
        missed = (
            math.fsum(
                share * math.erfc((errors - spread) / math.sqrt(2)) for spread, share in shares
            )
            / 2
        )
        density = math.fsum(share * NORMAL.pdf(errors - spread) for spread, share in shares)
        # Newton's steps on the normal quantile of what is missed, which is nearly a straight line.
        quantile = NORMAL.inv_cdf(missed)
        step = (quantile - NORMAL.inv_cdf(1 - power)) * NORMAL.pdf(quantile) / density
        errors += step
        if abs(step) < SETTLED * 1000:
            break
    return errors


def detectable_gain(log_sd: float, n: int, alpha: float = ALPHA, power: float = POWER) -> float:
    return math.expm1(
        min(detectable_errors(n - 1, alpha, power) * log_sd / math.sqrt(n), LARGEST_LOG)
    )
