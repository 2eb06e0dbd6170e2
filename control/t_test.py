"""Student's t, central and noncentral: what an effect's interval and its power rest on."""

from __future__ import annotations

import math
from functools import lru_cache

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
