"""Student's t, central and noncentral: what every interval, its p and its power rest on."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

ALPHA = 0.05
POWER = 0.80
LARGEST_LOG = 700.0  # its exponential is still a float


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, p))


def t_tail(t: float, df: float) -> float:
    from scipy.special import stdtr

    return float(stdtr(df, -t))


class TInterval(NamedTuple):
    """An estimate with its two-sided interval, and the two-sided p of there being nothing."""

    value: float
    low: float
    high: float
    p: float


def t_interval(value: float, error: float, df: float, alpha: float = ALPHA) -> TInterval:
    """Interval and p of an estimate with this standard error, which is above 0, on so many degrees of freedom."""
    half = t_quantile(1 - alpha / 2, df) * error
    return TInterval(value, value - half, value + half, min(1.0, 2 * t_tail(abs(value) / error, df)))


@lru_cache(maxsize=4096)
def detectable_errors(df: float, alpha: float = ALPHA, power: float = POWER) -> float:
    """Answer how many standard errors away an effect must be for a two-sided t-test to find it with the given power.

    Solves P(T' > t_crit) = power for the noncentrality of T', the noncentral t; with few blocks and a small alpha the
    usual t_crit + t_power of statistics texts promises up to a fifth too much.
    """
    from scipy.special import nctdtrinc

    return float(nctdtrinc(df, 1 - power, t_quantile(1 - alpha / 2, df)))


def detectable_gain(log_sd: float, n: int, alpha: float = ALPHA, power: float = POWER) -> float:
    return math.expm1(min(detectable_errors(n - 1, alpha, power) * log_sd / math.sqrt(n), LARGEST_LOG))
