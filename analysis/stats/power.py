"""How many blocks it takes: a pilot's spread and the effect to be found in, blocks out."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, ndtr, ndtri

from control.t_test import ALPHA, POWER, detectable_errors

from .linear import base_columns, coded_levels, rss

LEVEL = 0.95
FEWEST = 3  # blocks, below which nothing is compared
MOST = 100_000  # blocks, beyond which no number helps


def blocks_needed(log_sd: float, gain: float, alpha: float = ALPHA, power: float = POWER) -> int | None:
    """Fewest blocks with which a two-sided paired t-test finds the gain (a fraction) with the given power; None beyond 100,000.

    Exact, by the noncentral t: with few blocks the z of texts promises too much. `log_sd` is the spread of the log ratio of a block.
    """
    log_gain = math.log1p(gain)
    result = FEWEST + bisect_left(
        range(FEWEST, MOST + 1), x=True, key=lambda n: detectable_errors(n - 1, alpha, power) * log_sd / math.sqrt(n) <= log_gain
    )
    return result if result <= MOST else None


def pair_spread(cells: Sequence[tuple[int, str, float]]) -> tuple[float, int]:
    """Standard deviation of the log ratio of two arms in one block, and its degrees of freedom, from (block, arm, log value) of all cells.

    What is left after each arm's and each block's own level are taken off, times √2: every pair of arms has its say, not only those
    with the baseline, and all are taken to scatter alike. With a arms in b complete blocks there are (a - 1)(b - 1) degrees of freedom.

    Raises: ValueError, where none is left.
    """
    blocks, arms, values = zip(*cells, strict=True)
    left, df = rss([base_columns(blocks), coded_levels(arms)], np.array(values))
    if not df:
        raise ValueError("one cell an arm and block: nothing is left to see a spread in")
    return math.sqrt(2 * left / df), df


def spread_interval(log_sd: float, df: int) -> tuple[float, float]:
    """95 % interval of a standard deviation estimated with `df` degrees of freedom (chi-square)."""
    low, high = chdtri(df, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return log_sd * math.sqrt(df / low), log_sd * math.sqrt(df / high)


NODES = 80  # Gauss-Legendre nodes a look: bounds of 30 looks agree with those of 240 nodes in ten digits
ABSCISSAE, WEIGHTS = np.polynomial.legendre.leggauss(NODES)
WIDEST = 9.0  # standard deviations, beyond which no mass is left to integrate
LARGEST = 37.0  # a bound whose tail is still a number


@dataclass(frozen=True, slots=True)
class _Walk:
    """Runs that have not stopped yet: where their scores lie and how many lie there. The score at look k of K is √(k/K)·z.

    It is a random walk: from look to look it moves by `mean` on average, with standard deviation `spread`.
    """

    mean: float
    spread: float
    scores: np.ndarray = field(default_factory=lambda: np.zeros(1))
    mass: np.ndarray = field(default_factory=lambda: np.ones(1))

    def beyond(self, edge: float) -> float:
        upper, lower = self.scores + self.mean - edge, -edge - self.scores - self.mean
        return float(self.mass @ (ndtr(upper / self.spread) + ndtr(lower / self.spread)))

    def on(self, edge: float) -> _Walk:
        scores = edge * ABSCISSAE
        density = np.exp(-(((scores[:, None] - self.scores - self.mean) / self.spread) ** 2) / 2) / (self.spread * math.sqrt(2 * math.pi))
        return replace(self, scores=scores, mass=(density @ self.mass) * WEIGHTS * edge)


def crossings(bounds: Sequence[float], drift: float = 0.0) -> list[float]:
    """Find the probability that |z| first crosses its bound at each of equally spaced looks.

    drift: what z is expected to be at the last look; 0 where nothing differs. Their sum is the type I error, or the power.
    """
    looks = len(bounds)
    walk = _Walk(drift / looks, 1 / math.sqrt(looks))
    result = []
    for look, bound in enumerate(bounds, start=1):
        information = math.sqrt(look / looks)
        result.append(walk.beyond(bound * information))
        walk = walk.on(min(bound, WIDEST + abs(drift)) * information)
    return result


def naive_type_i(looks: int, alpha: float) -> float:
    """How often a difference is called where there is none, when every look is taken for the only one."""
    return sum(crossings([_z(alpha)] * looks))


def pocock(looks: int, alpha: float) -> list[float]:
    """Bounds on |z|, the same at every look (Pocock 1977)."""
    return _scaled([1.0] * looks, alpha)


def obrien_fleming(looks: int, alpha: float) -> list[float]:
    """Bounds on |z| that fall with √(K/k): hard to cross early, and hardly dearer than one look at the end (O'Brien & Fleming 1979)."""
    return _scaled([math.sqrt(looks / look) for look in range(1, looks + 1)], alpha)


def spent(fraction: float, alpha: float) -> float:
    """How much of the level may be spent when this fraction of the blocks is in: 2 - 2Φ(z/√t) (Lan & DeMets 1983)."""
    return 2 * float(ndtr(-_z(alpha) / math.sqrt(fraction)))


def spending(looks: int, alpha: float) -> list[float]:
    """Bounds on |z| that spend the level as O'Brien & Fleming's do, yet hold where looks come at other times than planned."""
    walk, bounds, before = _Walk(0.0, 1 / math.sqrt(looks)), list[float](), 0.0
    for look in range(1, looks + 1):
        information, allowed = math.sqrt(look / looks), spent(look / looks, alpha)
        bounds.append(_bound(walk, information, allowed - before))
        walk, before = walk.on(min(bounds[-1], WIDEST) * information), allowed
    return bounds


def blocks_factor(bounds: Sequence[float], alpha: float, power: float) -> float:
    single = _z(alpha) + float(ndtri(power))
    drift = float(brentq(lambda drift: sum(crossings(bounds, drift)) - power, single / 2, 3 * single, xtol=1e-8))
    return (drift / single) ** 2


def expected_share(bounds: Sequence[float], alpha: float, power: float) -> float:
    """Share of the planned blocks that is run on average where the effect planned for is real and the run stops at its bound."""
    drift = math.sqrt(blocks_factor(bounds, alpha, power)) * (_z(alpha) + float(ndtri(power)))
    stops, looks = crossings(bounds, drift), len(bounds)
    return sum(stop * look / looks for look, stop in enumerate(stops, start=1)) + (1 - sum(stops))


def _z(alpha: float) -> float:
    return float(ndtri(1 - alpha / 2))


def _bound(walk: _Walk, information: float, allowed: float) -> float:
    return float(brentq(lambda bound: walk.beyond(bound * information) - allowed, 0.0, LARGEST, xtol=1e-8))


def _scaled(shape: Sequence[float], alpha: float) -> list[float]:
    """Find the multiple of a shape of bounds that keeps the level; it lies between one look's and what as many tests would need."""
    ends = _z(alpha), _z(alpha / len(shape))
    constant = (
        float(brentq(lambda c: sum(crossings([c * value for value in shape])) - alpha, *ends, xtol=1e-8)) if len(shape) > 1 else ends[0]
    )
    return [constant * value for value in shape]
