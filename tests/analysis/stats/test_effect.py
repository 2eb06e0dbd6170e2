"""The arithmetic of one contrast, by hand, against scipy, and by what must not change it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from analysis.stats.effect import paired_effect, two_sample_effect
from analysis.terms import Metric, NotComparable
from control.t_test import detectable_gain

THROUGHPUT = Metric("throughput_samples_per_s", "higher")
STEP_TIME = Metric("step_time_p10_s", "lower")
MARGIN = 0.03

values = st.floats(0.05, 20.0)  # wider ratios are lost in exp(x) - 1, and no machine shows them
arms = st.integers(3, 12).flatmap(lambda n: st.tuples(st.lists(values, min_size=n, max_size=n), st.lists(values, min_size=n, max_size=n)))


def spread(pair: tuple[list[float], list[float]]) -> float:
    return float(np.std(np.log(pair[1]) - np.log(pair[0]), ddof=1))


def close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)


def test_a_worked_example_comes_out_as_by_hand() -> None:
    """Log ratios 0.01, 0.02, 0.03: mean 0.02, s = 0.01, s/√3 = 0.0057735, t = 3.4641 with 2 d.f.

    p = 1 - t/√(t²+2) = 1 - 3.4641/√14 = 0.07418. The 95 % interval is 0.02 ± 4.302653 · 0.0057735 = 0.02 ± 0.0248414,
    the 90 % interval 0.02 ± 2.919986 · 0.0057735 = 0.02 ± 0.0168586.
    """
    effect = paired_effect(THROUGHPUT, [100.0] * 3, [100 * math.exp(x) for x in (0.01, 0.02, 0.03)], MARGIN)
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
    """The same example against a margin of 3 %: the nearer edge is ln 1.03 = 0.0295588, (0.0295588 - 0.02) / 0.0057735 = 1.65562.

    With 2 d.f. the upper tail of t is (1 - t/√(t²+2)) / 2 = (1 - 1.65562/2.17740) / 2 = 0.119817.
    """
    effect = paired_effect(THROUGHPUT, [100.0] * 3, [100 * math.exp(x) for x in (0.01, 0.02, 0.03)], MARGIN)
    assert effect.p_equivalent == pytest.approx(0.119817, abs=1e-5)


@given(arms)
def test_p_is_that_of_scipys_paired_t_test_on_logarithms(pair: tuple[list[float], list[float]]) -> None:
    assume(spread(pair) > 1e-6)
    expected = scipy.stats.ttest_rel(np.log(pair[1]), np.log(pair[0]))
    interval = expected.confidence_interval(0.95)
    effect = paired_effect(THROUGHPUT, *pair, MARGIN)
    assert effect.p == pytest.approx(expected.pvalue, rel=1e-6)
    assert math.log1p(effect.low) == pytest.approx(interval.low, rel=1e-6, abs=1e-9)
    assert math.log1p(effect.high) == pytest.approx(interval.high, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("n", "m"), [(3, 8), (8, 3), (1, 5), (5, 2)])
def test_two_samples_are_scipys_welch_or_pooled_where_an_arm_has_no_spread(n: int, m: int) -> None:
    """The second arm scatters four times as far, so the degrees of freedom show which arm had how many units."""
    rng = np.random.default_rng([n, m])
    base, after = rng.normal(0, 0.01, n), rng.normal(0.02, 0.04, m)
    expected = scipy.stats.ttest_ind(after, base, equal_var=min(n, m) < 3)
    interval = expected.confidence_interval(0.95)
    effect = two_sample_effect(THROUGHPUT, np.exp(base).tolist(), np.exp(after).tolist(), MARGIN)
    assert [effect.p, effect.df] == pytest.approx([expected.pvalue, expected.df])
    assert [math.log1p(effect.low), math.log1p(effect.high)] == pytest.approx([interval.low, interval.high])


@given(arms)
def test_equivalence_agrees_with_the_90_percent_interval(pair: tuple[list[float], list[float]]) -> None:
    """Both one-sided tests are below 5 % exactly when the 90 % interval lies between 1/(1+margin) and 1+margin."""
    assume(spread(pair) > 1e-6)
    effect = paired_effect(THROUGHPUT, *pair, 2.0)
    assume(abs(effect.p_equivalent - 0.05) > 1e-9)
    assert (effect.p_equivalent < 0.05) == (effect.low90 > 1 / 3 - 1 and effect.high90 < 2.0)


@given(arms)
def test_time_and_throughput_give_one_answer(pair: tuple[list[float], list[float]]) -> None:
    """A step time is the inverse of a rate: the gain, its interval and its p are the same whichever a study declares."""
    assume(spread(pair) > 1e-6)
    base, candidate = ([1 / value for value in arm] for arm in pair)
    one, other = paired_effect(THROUGHPUT, *pair, MARGIN), paired_effect(STEP_TIME, base, candidate, MARGIN)
    assert all(close(getattr(one, name), getattr(other, name)) for name in ("gain", "low", "high", "p", "p_equivalent"))


@pytest.mark.parametrize("ratio", [1.0, 1.1])
def test_blocks_without_any_spread_are_no_measurement(ratio: float) -> None:
    """Their t would be infinite or undefined; p = 0 must not come of it."""
    with pytest.raises(NotComparable):
        paired_effect(THROUGHPUT, [100.0, 110.0, 120.0], [100 * ratio, 110 * ratio, 120 * ratio], MARGIN)


@pytest.mark.parametrize("blocks", [3, 6, 10])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 9])
def test_the_detectable_gain_is_found_four_times_in_five(blocks: int, alpha: float) -> None:
    """Simulated: 40,000 runs with a true effect of exactly the MDE; 80 % ± 0.7 % (3.3 standard errors) are called."""
    rng = np.random.default_rng([blocks, int(alpha * 1000)])
    sd = 0.02
    true = math.log1p(detectable_gain(sd, blocks, alpha))
    draws = rng.normal(true, sd, (40_000, blocks))
    p = scipy.stats.ttest_1samp(draws, 0, axis=1).pvalue
    assert abs((p < alpha).mean() - 0.80) < 0.007


def test_the_detectable_gain_by_hand() -> None:
    """10 blocks: (t.975,9 + t.80,9) · s/√10 = (2.26216 + 0.88340) · 0.02/3.16228 = 0.019894; the exact solution is within 0.2 %."""
    assert math.log1p(detectable_gain(0.02, 10)) == pytest.approx(0.019894, rel=2e-3)


def test_a_hopeless_spread_still_gives_a_number() -> None:
    assert math.isfinite(detectable_gain(50.0, 3, 0.05 / 40))
