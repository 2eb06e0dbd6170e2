"""The arithmetic of one contrast: by hand, against scipy, and by invariants."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from analysis.stats.effect import (
    ADJUSTMENTS,
    ENOUGH_PROCESSES,
    benjamini_hochberg,
    holm,
    paired_effect,
    switched_effect,
    two_sample_effect,
    unequal,
)
from analysis.terms import Metric, NotComparable
from control.t_test import detectable_gain

THROUGHPUT = Metric("throughput_samples_per_s", "higher")
STEP_TIME = Metric("step_time_p10_s", "lower")
MARGIN = 0.03

values = st.floats(0.05, 20.0)  # wider ratios are lost in exp(x) - 1, and no machine shows them
arms = st.integers(3, 12).flatmap(
    lambda n: st.tuples(
        st.lists(values, min_size=n, max_size=n), st.lists(values, min_size=n, max_size=n)
    )
)


def spread(pair: tuple[list[float], list[float]]) -> float:
    return float(np.std(np.log(pair[1]) - np.log(pair[0]), ddof=1))


def close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)


def test_a_worked_example_comes_out_as_by_hand() -> None:
    """Log ratios 0.01, 0.02, 0.03: mean 0.02, s = 0.01, s/√3 = 0.0057735, t = 3.4641 with 2 d.f.

    p = 1 - t/√(t²+2) = 1 - 3.4641/√14 = 0.07418. The 95 % interval is 0.02 ± 4.302653 · 0.0057735 =
    0.02 ± 0.0248414, the 90 % interval 0.02 ± 2.919986 · 0.0057735 = 0.02 ± 0.0168586.
    """
    effect = paired_effect(
        THROUGHPUT, [100.0] * 3, [100 * math.exp(x) for x in (0.01, 0.02, 0.03)], MARGIN
    )
    assert effect.gain == pytest.approx(math.exp(0.02) - 1)
    assert effect.log_sd == pytest.approx(0.01)
    assert effect.p == pytest.approx(0.0741799, abs=1e-7)
    assert effect.low == pytest.approx(math.exp(0.02 - 0.0248414) - 1, abs=1e-7)
    assert effect.high == pytest.approx(math.exp(0.02 + 0.0248414) - 1, abs=1e-7)
    assert effect.low90 == pytest.approx(math.exp(0.02 - 0.0168586) - 1, abs=1e-7)
    assert effect.high90 == pytest.approx(math.exp(0.02 + 0.0168586) - 1, abs=1e-7)
    assert effect.baseline == pytest.approx(100)
    assert effect.n_baseline == 3


def test_equivalence_is_two_one_sided_tests_by_hand() -> None:
    """The same example against 3 %: (ln 1.03 - 0.02) / 0.0057735 = 1.65562 for the nearer edge.

    With 2 d.f. the upper tail of t is (1 - t/√(t²+2)) / 2 = (1 - 1.65562/2.17740) / 2 = 0.119817.
    """
    effect = paired_effect(
        THROUGHPUT, [100.0] * 3, [100 * math.exp(x) for x in (0.01, 0.02, 0.03)], MARGIN
    )
    assert effect.p_equivalent == pytest.approx(0.119817, abs=1e-5)


@given(arms)
def test_p_is_that_of_scipys_paired_t_test_on_logarithms(
    pair: tuple[list[float], list[float]],
) -> None:
    assume(spread(pair) > 1e-6)
    expected = scipy.stats.ttest_rel(np.log(pair[1]), np.log(pair[0]))
    interval = expected.confidence_interval(0.95)
    effect = paired_effect(THROUGHPUT, *pair, MARGIN)
    assert effect.p == pytest.approx(expected.pvalue, rel=1e-6)
    assert math.log1p(effect.low) == pytest.approx(interval.low, rel=1e-6, abs=1e-9)
    assert math.log1p(effect.high) == pytest.approx(interval.high, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("n", "m"), [(3, 8), (8, 3), (1, 5), (5, 2)])
def test_two_samples_are_welch_or_pooled_if_an_arm_has_no_spread(n: int, m: int) -> None:
    """The second arm scatters four times as far, so the d.f. show which arm had how many units."""
    rng = np.random.default_rng([n, m])
    base, after = rng.normal(0, 0.01, n), rng.normal(0.02, 0.04, m)
    expected = scipy.stats.ttest_ind(after, base, equal_var=min(n, m) < 3)
    interval = expected.confidence_interval(0.95)
    effect = two_sample_effect(THROUGHPUT, np.exp(base).tolist(), np.exp(after).tolist(), MARGIN)
    assert [effect.p, effect.df] == pytest.approx([expected.pvalue, expected.df])
    assert [math.log1p(effect.low), math.log1p(effect.high)] == pytest.approx(
        [interval.low, interval.high]
    )


@given(arms)
def test_time_and_throughput_give_one_answer(pair: tuple[list[float], list[float]]) -> None:
    assume(spread(pair) > 1e-6)
    base, candidate = ([1 / value for value in arm] for arm in pair)
    one, other = (
        paired_effect(THROUGHPUT, *pair, MARGIN),
        paired_effect(STEP_TIME, base, candidate, MARGIN),
    )
    assert all(
        close(getattr(one, name), getattr(other, name))
        for name in ("gain", "low", "high", "p", "p_equivalent")
    )


@pytest.mark.parametrize("ratio", [1.0, 1.1])
def test_blocks_without_any_spread_are_no_measurement(ratio: float) -> None:
    with pytest.raises(NotComparable):
        paired_effect(
            THROUGHPUT, [100.0, 110.0, 120.0], [100 * ratio, 110 * ratio, 120 * ratio], MARGIN
        )


@pytest.mark.parametrize("blocks", [3, 6, 10])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 9])
def test_the_detectable_gain_is_found_four_times_in_five(blocks: int, alpha: float) -> None:
    """40,000 simulated runs with an effect of exactly the MDE: 80 % ± 0.7 % (3.3 SE) are called."""
    rng = np.random.default_rng([blocks, int(alpha * 1000)])
    sd = 0.02
    true = math.log1p(detectable_gain(sd, blocks, alpha))
    draws = rng.normal(true, sd, (40_000, blocks))
    p = scipy.stats.ttest_1samp(draws, 0, axis=1).pvalue
    assert abs((p < alpha).mean() - 0.80) < 0.007


RATE = Metric("throughput_samples_per_s", "higher")
SESSIONS, PAIRS, SIGMA = 400, 16, 0.05
BAND = scipy.stats.binom.ppf([0.005, 0.995], SESSIONS, 0.05)


def missed(processes: int, tau: float, mu: float, *, of_these: bool, seed: int = 1) -> int:
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
def test_with_enough_processes_the_interval_covers_their_kind(tau: float, mu: float) -> None:
    for processes in (ENOUGH_PROCESSES, 8):
        assert BAND[0] <= missed(processes, tau, mu, of_these=False) <= BAND[1]


@pytest.mark.parametrize("tau", [0.0, 0.05])
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_with_few_it_is_for_these_processes(processes: int, tau: float) -> None:
    assert BAND[0] <= missed(processes, tau, 0.05, of_these=True) <= BAND[1]


def test_the_arithmetic_of_two_processes() -> None:
    """Mean log gain 0.3; s² within = (0.02 + 0.08) / 2, standard error sqrt(s²·(1/2 + 1/2)) / 2."""
    gains = [[0.1, 0.3], [0.2, 0.6]]
    found = switched_effect(
        RATE, [[1, 1], [1, 1]], [[math.exp(gain) for gain in process] for process in gains], 0.03
    )
    assert math.log1p(found.gain) == pytest.approx(0.3)
    assert found.log_se == pytest.approx(math.sqrt(0.05) / 2)
    assert (found.df, found.n_baseline) == (2, 4)


def test_processes_that_differ_are_noticed_as_by_scipy() -> None:
    rng = np.random.default_rng(5)
    gains = [rng.normal(0, 0.05, 16), rng.normal(0.05, 0.05, 16), rng.normal(0, 0.05, 12)]
    assert unequal([one.tolist() for one in gains]) == pytest.approx(
        scipy.stats.f_oneway(*gains).pvalue
    )
    assert unequal([[0.1, 0.2]]) is None
    assert unequal([[0.1], [0.2]]) is None


# Benjamini & Hochberg 1995, thrombolysis in acute myocardial infarction.
INFARCTION = [
    0.0001,
    0.0004,
    0.0019,
    0.0095,
    0.0201,
    0.0278,
    0.0298,
    0.0344,
    0.0459,
    0.3240,
    0.4262,
    0.5719,
    0.6528,
    0.7590,
    1.0,
]
probabilities = st.lists(st.floats(0, 1), max_size=20)


@pytest.mark.parametrize(("name", "called"), [("holm", 3), ("bh", 4)])
def test_v14_how_many_of_fifteen_are_called_at_five_percent(name: str, called: int) -> None:
    assert sum(p <= 0.05 for p in ADJUSTMENTS[name](INFARCTION)) == called


def test_v14_adjusted_values() -> None:
    """BH: 15/1 · .0001, 15/2 · .0004, 15/3 · .0019, 15/4 · .0095; Holm's fourth: 12 · .0095."""
    assert benjamini_hochberg(INFARCTION)[:4] == pytest.approx([0.0015, 0.003, 0.0095, 0.035625])
    assert holm(INFARCTION)[3] == pytest.approx(0.114)


@given(probabilities)
def test_the_false_discovery_rate_is_scipys(ps: list[float]) -> None:
    if ps:
        assert benjamini_hochberg(ps) == pytest.approx(
            false_discovery_control(ps, method="bh").tolist()
        )
