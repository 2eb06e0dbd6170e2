"""Intervals of settings alternated inside processes: whether they hold what they promise, on processes whose truth is known.

A process's effect is μ plus something of its own (standard deviation tau), its pairs scatter around that by 5 %. Of 400 sessions each the
number of intervals that miss must lie in the exact binomial 99 % band of 5 %.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from analysis.stats.effect import ENOUGH_PROCESSES, paired_effect, switched_effect, unequal
from analysis.terms import Metric

RATE = Metric("throughput_samples_per_s", "higher")
SESSIONS, PAIRS, SIGMA = 400, 16, 0.05
BAND = scipy.stats.binom.ppf([0.005, 0.995], SESSIONS, 0.05)


def missed(processes: int, tau: float, mu: float, *, of_these: bool, seed: int = 1) -> int:
    """How many intervals do not hold the truth: that of these very processes, or of processes of this kind."""
    rng = np.random.default_rng([seed, processes, round(tau * 1e4)])
    count = 0
    for _ in range(SESSIONS):
        own = rng.normal(mu, tau, processes)
        gains = own[:, None] + rng.normal(0, SIGMA, (processes, PAIRS))
        found = np.exp(rng.normal(0, 0.3, (processes, 1)) + rng.normal(0, 0.1, (processes, PAIRS)))
        effect = switched_effect(RATE, found.tolist(), (found * np.exp(gains)).tolist(), 0.03)
        truth = math.expm1(own.mean() if of_these else mu)
        count += not effect.low <= truth <= effect.high
    return count


@pytest.mark.parametrize("mu", [0.0, 0.05])
@pytest.mark.parametrize("tau", [0.0, 0.02, 0.05])
def test_with_enough_processes_the_interval_is_for_processes_of_this_kind(tau: float, mu: float) -> None:
    for processes in (ENOUGH_PROCESSES, 8):
        assert BAND[0] <= missed(processes, tau, mu, of_these=False) <= BAND[1]


@pytest.mark.parametrize("tau", [0.0, 0.05])
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_with_few_it_is_for_these_processes(processes: int, tau: float) -> None:
    assert BAND[0] <= missed(processes, tau, 0.05, of_these=True) <= BAND[1]


def test_with_few_it_says_nothing_of_others() -> None:
    """Why the verdict then says of which processes it speaks: three whose effects differ by 5 % miss the kind's own half the time."""
    assert missed(3, 0.05, 0.05, of_these=False) > SESSIONS / 3
    assert BAND[0] <= missed(3, 0.0, 0.05, of_these=False) <= BAND[1]


def test_means_of_processes_are_compared_where_there_are_enough() -> None:
    """Five processes of two pairs: what `paired_effect` says of their geometric means."""
    rng = np.random.default_rng(3)
    base, other = np.exp(rng.normal(0, 0.1, (2, 5, 2)))
    before, after = (np.exp(np.log(arm).mean(axis=1)).tolist() for arm in (base, other))
    found, expected = switched_effect(RATE, base.tolist(), other.tolist(), 0.03), paired_effect(RATE, before, after, 0.03)
    assert (found.gain, found.low, found.p, found.df) == pytest.approx((expected.gain, expected.low, expected.p, 4))
    assert found.design == "switched"


def test_the_arithmetic_of_two_processes() -> None:
    """Log gains 0.1, 0.3 and 0.2, 0.6: the mean is 0.3, inside them s² = (0.02 + 0.08) / 2, the error is sqrt(s²·(1/2 + 1/2)) / 2."""
    gains = [[0.1, 0.3], [0.2, 0.6]]
    found = switched_effect(RATE, [[1, 1], [1, 1]], [[math.exp(gain) for gain in process] for process in gains], 0.03)
    assert math.log1p(found.gain) == pytest.approx(0.3)
    assert found.log_se == pytest.approx(math.sqrt(0.05) / 2)
    assert (found.df, found.n_baseline) == (2, 4)


def test_processes_that_differ_are_noticed_as_by_scipy() -> None:
    rng = np.random.default_rng(5)
    gains = [rng.normal(0, 0.05, 16), rng.normal(0.05, 0.05, 16), rng.normal(0, 0.05, 12)]
    assert unequal([one.tolist() for one in gains]) == pytest.approx(scipy.stats.f_oneway(*gains).pvalue)
    assert unequal([[0.1, 0.2]]) is None
    assert unequal([[0.1], [0.2]]) is None
