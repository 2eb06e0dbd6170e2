"""Inside one run: DeepTweak's figures (A8-A15, A23), small examples by hand, and what must not change an answer."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import assume, example, given
from hypothesis import strategies as st

from analysis.stats.ranks import mann_whitney, shift
from analysis.stats.within import (
    autocorrelation,
    batch_half_width,
    block_bootstrap,
    block_length,
    detectable_within,
    effective_size,
    friedman,
    halves,
    kolmogorov_smirnov,
    median_interval,
    omnibus,
    stalls,
    warmup_steps,
    welch,
)
from tests.conftest import REFERENCE

CONFIGURATIONS = ("base", "exp1", "exp2", "exp3")
deeptweak = pytest.mark.needs("reference")
series = st.lists(st.integers(1, 4000).map(lambda whole: whole / 64), min_size=3, max_size=40)


@cache
def steps_s(configuration: str) -> np.ndarray:
    return pd.read_csv(REFERENCE / "deeptweak" / "one_node_one_gpu" / configuration / "benchmark.csv")["step_time"].to_numpy()


@deeptweak
@pytest.mark.parametrize(("configuration", "lag_1"), list(zip(CONFIGURATIONS, (-0.0045, 0.0190, -0.0202, 0.0463), strict=True)))
def test_a8_lag_1_autocorrelation(configuration: str, lag_1: float) -> None:
    assert autocorrelation(steps_s(configuration))[1] == pytest.approx(lag_1, abs=5e-5)


@deeptweak
@pytest.mark.parametrize(("configuration", "worth"), list(zip(CONFIGURATIONS, (1569, 1452, 1416, 1429), strict=True)))
def test_a9_effective_size(configuration: str, worth: float) -> None:
    """These steps hang together so little that each run's are worth about their number; the problem lies elsewhere."""
    assert effective_size(steps_s(configuration)) == pytest.approx(worth, abs=0.5)
    assert 0.85 <= effective_size(steps_s(configuration)) / len(steps_s(configuration)) <= 1.05


@deeptweak
def test_a10_welch() -> None:
    found = welch(steps_s("exp1"), steps_s("base"))
    assert [found.low, found.high] == pytest.approx([-0.01316, 0.03484], abs=2e-5)
    assert found.t == pytest.approx(0.886, abs=5e-4)
    assert found.p == pytest.approx(0.376, abs=5e-4)


@deeptweak
def test_a11_block_bootstrap() -> None:
    assert block_bootstrap(steps_s("exp1"), steps_s("base"), 25) == pytest.approx((-0.0134, 0.0346), abs=5e-4)


@deeptweak
def test_a12_ranks_call_it_different_where_the_means_do_not() -> None:
    """Short, host-bound steps differ and long ones do not: with one run each that is a difference of runs."""
    assert mann_whitney(steps_s("exp1"), steps_s("base")).p == pytest.approx(8.57e-9, rel=0.01)
    assert shift(steps_s("exp1"), steps_s("base")).estimate == pytest.approx(0.0150)


@deeptweak
def test_a13_kolmogorov_smirnov() -> None:
    assert kolmogorov_smirnov(steps_s("exp1"), steps_s("base")).d == pytest.approx(0.2614, abs=5e-5)
    assert kolmogorov_smirnov(steps_s("exp3"), steps_s("base")).d == pytest.approx(0.2457, abs=5e-5)


@deeptweak
def test_a14_by_their_means_four_runs_are_alike_and_by_ranks_they_are_not() -> None:
    found = omnibus([steps_s(configuration) for configuration in CONFIGURATIONS])
    assert found is not None
    assert [found.f, found.h] == pytest.approx([0.3371, 39.622], rel=1e-4)
    assert [found.f_p, found.h_p] == pytest.approx([0.799, 1.3e-8], rel=0.02)


def test_runs_without_any_spread_have_no_omnibus() -> None:
    assert omnibus([[1.0, 1.0], [2.0, 2.0]]) is None


@deeptweak
@pytest.mark.parametrize(("configuration", "p"), list(zip(CONFIGURATIONS, (0.075, 0.0043, 0.0040, 0.017), strict=True)))
def test_a15_three_of_four_runs_differ_from_themselves(configuration: str, p: float) -> None:
    assert halves(steps_s(configuration)).ks_p == pytest.approx(p, rel=0.02)


@deeptweak
def test_a15_by_the_other_two_tests() -> None:
    found = halves(steps_s("exp1"))
    assert [found.welch_p, found.mann_whitney_p] == pytest.approx([0.013, 0.0016], rel=0.05)


@deeptweak
def test_a23_what_two_such_runs_could_show_at_best() -> None:
    """2.8016 · √(2 · .3387²/1555)/.612958 = 5.55 %, as if runs of one configuration never differed."""
    assert detectable_within(steps_s("base")) == pytest.approx(0.0555, abs=5e-5)


@deeptweak
@pytest.mark.parametrize(
    ("configuration", "median", "batches", "warmup"),
    [
        ("base", (0.472, 0.475), 0.0205, 0),
        ("exp1", (0.477, 0.482), 0.0230, 0),
        ("exp2", (0.475, 0.478), 0.0167, 0),
        ("exp3", (0.475, 0.479), 0.0153, 5),
    ],
)
def test_a6_median_batch_means_and_warmup(configuration: str, median: tuple[float, float], batches: float, warmup: int) -> None:
    x = steps_s(configuration)
    assert median_interval(x) == median
    assert batch_half_width(x) == pytest.approx(batches, abs=5e-5)
    assert warmup_steps(x) == warmup


def test_autocorrelation_by_hand() -> None:
    """1, 2, 3 around 2: squares sum to 2; one step later -1·0 + 0·1 = 0; two steps later -1·1 = -1, over 2."""
    assert autocorrelation([1, 2, 3]) == pytest.approx([1, 0, -0.5], abs=1e-12)
    assert autocorrelation([5, 5, 5]).tolist() == [1, 0, 0]


@given(series, st.floats(0.01, 100))
def test_autocorrelation_is_the_sum_it_stands_for(values: list[float], unit: float) -> None:
    """Whatever the unit; and none exceeds 1."""
    assume(len(set(values)) > 1)
    x = np.array(values) - np.mean(values)
    expected = [float((x[: len(x) - lag] * x[lag:]).sum() / (x**2).sum()) for lag in range(len(x))]
    assert autocorrelation(np.array(values) * unit) == pytest.approx(expected, abs=1e-9)


@given(series)
@example([at / 8 + 2 * (at % 4 == 0) for at in range(40)])  # a drift with a spike every fourth step: pairs rise again
def test_effective_size_is_the_sum_it_stands_for(values: list[float]) -> None:
    """Pairs of neighbouring autocorrelations, added while above 0, none taken for more than the one before it."""
    assume(len(set(values)) > 1)
    r = autocorrelation(values).tolist()
    total, last = 0.0, math.inf
    for even, odd in zip(r[::2], r[1::2], strict=False):
        if even + odd <= 0:
            break
        last = min(last, even + odd)
        total += last
    assert effective_size(values) == pytest.approx(len(r) / max(-1 + 2 * total, 1 / len(r)))


@pytest.mark.parametrize(("n", "length"), [(1, 1), (27, 3), (1555, 12)])
def test_block_length_is_the_cube_root(n: int, length: int) -> None:
    assert block_length(n) == length


def test_blocks_of_one_are_the_ordinary_bootstrap() -> None:
    """The interval of a difference is ±1.96 · √(s²/200 + s²/300) around it, within the bootstrap's own noise."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(3, 1, 200), rng.normal(2, 1, 300)
    low, high = block_bootstrap(x, y, 1)
    assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(x.var() / 200 + y.var() / 300), rel=0.05)
    assert (high + low) / 2 == pytest.approx(x.mean() - y.mean(), abs=0.01)


def test_blocks_see_what_neighbours_share() -> None:
    """Steps that come in runs of ten equal ones: the interval must be about √10 times as wide as the one that ignores it."""
    rng = np.random.default_rng(2)
    x, y = (np.repeat(rng.normal(size=400), 10) for _ in range(2))
    ignoring, seeing = block_bootstrap(x, y, 1), block_bootstrap(x, y, 100)
    assert 2.7 < (seeing[1] - seeing[0]) / (ignoring[1] - ignoring[0]) < 3.6


def test_blocks_begin_anywhere_and_go_round() -> None:
    """The last of nine values is in a third of all blocks of three: all three blocks of a mean have it in 1/27 of draws, above 2.5 %."""
    assert block_bootstrap([0.0] * 8 + [9.0], [0.0, 0.0], 3) == (0, 3)


def test_a_block_as_long_as_the_series_is_always_all_of_it() -> None:
    low, high = block_bootstrap([1.0, 2.0, 6.0], [1.0, 1.0], 5)
    assert (low, high) == pytest.approx((2, 2))


def test_batch_means_by_hand() -> None:
    """Two batches of 3, the 7th step left over: means 2 and 4, s = √2, 12.7062 · √2/√2."""
    assert batch_half_width([1, 2, 3, 3, 4, 5, 99], batches=2) == pytest.approx(12.7062, abs=1e-4)
    assert batch_half_width([1.0] * 39) is None


def test_the_median_interval_is_the_tabulated_one() -> None:
    """10 values: P(B ≤ 1) = 11/1024 is the last below .025, so the 2nd and the 9th; of 5 no interval has 95 %."""
    assert median_interval(range(1, 11)) == (2, 9)
    assert median_interval([5, 3, 1, 2, 4]) == (1, 5)


def test_warmup_is_found_in_fives() -> None:
    x = np.concatenate([np.linspace(3, 1.5, 13), np.random.default_rng(3).normal(1, 0.01, 187)])
    assert warmup_steps(x) == 15
    assert warmup_steps([1.0] * 4) == 0


def test_a_run_that_changed_under_way_is_seen_and_one_that_did_not_is_not() -> None:
    rng = np.random.default_rng(4)
    changed = halves(np.concatenate([rng.normal(1.00, 0.02, 300), rng.normal(1.02, 0.02, 300)]))
    assert max(changed.ks_p, changed.mann_whitney_p, changed.welch_p) < 1e-6
    steady = halves(rng.normal(1, 0.02, 600))
    assert min(steady.ks_p, steady.mann_whitney_p, steady.welch_p) > 0.05


@given(series, series)
def test_welch_is_scipys_and_turns_with_its_arguments(x: list[float], y: list[float]) -> None:
    assume(len(set(x)) > 1)
    assume(len(set(y)) > 1)
    expected = scipy.stats.ttest_ind(x, y, equal_var=False)
    found, turned = welch(x, y), welch(y, x)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.difference, found.low, found.high) == pytest.approx((-turned.difference, -turned.high, -turned.low), abs=1e-9)


@pytest.mark.parametrize(("y", "p"), [(1.0, 1.0), (2.0, 0.0)])
def test_welch_of_values_without_spread(y: float, p: float) -> None:
    found = welch([1.0, 1.0], [y, y, y])
    assert found.t is None
    assert (found.low, found.difference, found.high, found.p) == (1 - y, 1 - y, 1 - y, p)


def test_detectable_by_hand() -> None:
    """With s = 1, mean 10, n = 2: 2.8016 · √(2/2)/10."""
    half = math.sqrt(0.5)
    assert detectable_within([10 - half, 10 + half]) == pytest.approx(0.28016)


def test_a_stall_is_neighbouring_steps_and_no_long_step_by_itself() -> None:
    """Three of 1500 steps ten times as long: 27 steps more, 1.8 %. Strewn about, the same steps are none, nor is a slower half."""
    usual = np.random.default_rng(3).normal(1, 0.05, 1500)
    stalled, strewn, halved = usual.copy(), usual.copy(), usual.copy()
    stalled[700:703] *= 10
    strewn[[100, 700, 1300]] *= 10
    halved[750:] *= 2
    (found,) = stalls(stalled)
    assert (found.first, found.steps) == (701, 3)
    assert found.times == pytest.approx(10, rel=0.05)
    assert [stalls(one) for one in (usual, strewn, halved, np.ones(50), np.zeros(50))] == [[]] * 5


def test_unlike_steps_have_stalls_by_chance_only() -> None:
    """Lognormal steps whose middle half spans a factor of four: in fewer than one run of twenty."""
    draws = np.random.default_rng(4).lognormal(0, 1, (400, 500))
    assert sum(bool(stalls(one)) for one in draws) < 20


def test_friedman_is_that_of_the_textbook_and_has_no_answer_of_too_little() -> None:
    """Three arms in one order in four blocks: 12/(4·3·4)·(16 + 64 + 144) - 3·4·4 = 8, p e^-4. Two arms, one block, all equal: none."""
    table = [[1, 2, 3], [10, 20, 30], [5, 6, 7], [1, 3, 9]]
    found = friedman(table)
    assert found is not None
    assert [found.chi2, found.p] == pytest.approx([8, math.exp(-4)])
    assert (found.blocks, found.arms) == (4, 3)
    assert [friedman(one) for one in ([[1, 2], [2, 3]], [[1, 2, 3]], [[1, 1, 1], [2, 2, 2]])] == [None] * 3
