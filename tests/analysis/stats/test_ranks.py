"""Ranks and signs: the published examples V15 and V16, against scipy and brute force, and what must not change an answer."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from analysis.stats.ranks import centre, mann_whitney, shift, sign_flip_p
from analysis.switched import EXACT, signed_rank_p

# Hollander & Wolfe, permeability of the human chorioamnion; the example of R's wilcox.test.
TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLY = [1.15, 0.88, 0.90, 0.74, 1.21]
# Student 1908: hours of sleep gained, the same ten patients with either drug.
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
SLEEP = [after - before for before, after in zip(DRUG_1, DRUG_2, strict=True)]

steps = st.integers(-2000, 2000).map(lambda whole: whole / 64)  # in binary, so that sums and differences are exact
samples = st.lists(steps, min_size=1, max_size=9)


def test_v15_mann_whitney_exact() -> None:
    """U = 35 of 50; one-sided .1272061, so .2544123 two-sided; 35/50 of the pairs go one way."""
    found = mann_whitney(TERM, EARLY)
    assert (found.u, found.a12) == (35, 0.7)
    assert found.p == pytest.approx(0.2544123, abs=1e-7)


def test_v15_shift_and_its_exact_interval() -> None:
    """The 9th smallest and largest of the 50 differences: P(U ≤ 8) = .01998, so the confidence is 1 - 2 · .01998 = .96004."""
    found = shift(TERM, EARLY)
    assert found.estimate == pytest.approx(0.305)
    assert [found.low, found.high] == pytest.approx([-0.15, 0.76])
    assert found.confidence == pytest.approx(0.96004, abs=1e-5)


def test_v16_sign_flips_and_the_centre_of_paired_differences() -> None:
    """9 of 10 differences are positive and one is 0: 4 of 1,024 patterns (all +, all -, either sign of the 0) are as far out."""
    assert sign_flip_p(SLEEP) == 4 / 1024
    assert centre(SLEEP).estimate == pytest.approx(1.3)


def test_the_signed_rank_interval_is_the_tabulated_one() -> None:
    """10 pairs: P(T ≤ 8) = 25/1024 is the last below .025, so the 9th of 55 Walsh averages; the confidence is 1 - 50/1024."""
    values = [float(2**at) for at in range(10)]
    walsh = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    found = centre(values)
    assert (found.low, found.high) == (walsh[8], walsh[-9])
    assert found.confidence == 1 - 50 / 1024


@given(samples, samples, st.sampled_from([0.5, 0.9, 0.95]))
def test_the_shift_is_the_median_of_all_differences(x: list[float], y: list[float], level: float) -> None:
    found = shift(x, y, level)
    differences = sorted(a - b for a in x for b in y)
    assert found.estimate == np.median(differences)
    assert found.low in differences
    assert found.high in differences
    assert found.low <= found.estimate <= found.high


@given(st.lists(steps, min_size=51, max_size=70), st.lists(steps, min_size=1, max_size=70))
def test_the_shift_of_many_values_too(x: list[float], y: list[float]) -> None:
    """Above 50 values the interval's rank is the normal distribution's; it is found by counting, not by sorting all pairs."""
    differences = sorted(a - b for a in x for b in y)
    found = shift(x, y)
    assert found.estimate == np.median(differences)
    assert found.low in differences
    assert found.high in differences


def test_ties_and_many_values_are_left_to_the_normal_distribution() -> None:
    """With ties the counted distribution is not the right one; above 50 values both agree."""
    tied = mann_whitney([1, 2, 2, 3], [2, 3, 4, 5])
    assert tied.p == scipy.stats.mannwhitneyu([1, 2, 2, 3], [2, 3, 4, 5], method="asymptotic").pvalue
    x = np.random.default_rng(1).normal(size=(2, 60))
    assert mann_whitney(*x).p == pytest.approx(scipy.stats.mannwhitneyu(*x, method="exact").pvalue, rel=0.01)


def test_equal_values_say_nothing() -> None:
    assert mann_whitney([3.0] * 60, [3.0] * 60).p == 1.0
    assert shift([3.0, 3.0], [3.0]).estimate == 0.0


@given(st.lists(steps, min_size=1, max_size=9))
def test_sign_flips_by_brute_force(differences: list[float]) -> None:
    sums = [abs(sum(sign * d for sign, d in zip(signs, differences, strict=True))) for signs in product((-1, 1), repeat=len(differences))]
    assert sign_flip_p(differences) == sum(each >= abs(sum(differences)) for each in sums) / len(sums)


def test_sign_flips_of_sixteen_blocks_are_scipys() -> None:
    differences = np.random.default_rng(16).normal(0.3, 1, 16)
    everything = scipy.stats.permutation_test((differences,), np.sum, permutation_type="samples", n_resamples=2**16)
    assert sign_flip_p(differences) == pytest.approx(everything.pvalue)


def test_sign_flips_of_many_blocks_are_drawn() -> None:
    """20 blocks: within 3 standard errors, 3 · √(p(1-p)/9,999) = .015, of what all 1,048,576 patterns give."""
    differences = np.random.default_rng(20).normal(0.3, 1, 20)
    sums = np.zeros(1)
    for each in differences:
        sums = np.concatenate([sums + each, sums - each])
    assert sign_flip_p(differences) == pytest.approx((np.abs(sums) >= abs(differences.sum()) - 1e-9).mean(), abs=0.015)
    assert sign_flip_p(np.ones(40)) == 1 / 10_000  # none drawn is as far out; the one seen is counted


@given(st.lists(steps, min_size=1, max_size=12))
def test_the_centre_is_the_median_of_walsh_averages(differences: list[float]) -> None:
    walsh = [(a + b) / 2 for i, a in enumerate(differences) for b in differences[i:]]
    found = centre(differences)
    assert found.estimate == np.median(walsh)
    assert found.low <= found.estimate <= found.high


@pytest.mark.parametrize("n", [8, 60])
def test_the_interval_of_the_centre_covers_as_often_as_it_says(n: int) -> None:
    """600 samples of a heavy-tailed distribution around 0, at 50 pairs counted and above from the normal distribution."""
    rng = np.random.default_rng(n)
    found = [centre(rng.standard_t(3, n)) for _ in range(600)]
    covered = sum(one.low <= 0 <= one.high for one in found)
    low, high = scipy.stats.binom.interval(0.999, 600, found[0].confidence)
    assert low <= covered <= high


unique = st.lists(st.integers(1, 10**6), min_size=1, max_size=EXACT, unique=True)


@given(unique, st.data())
def test_without_ties_it_is_the_exact_test(sizes: list[int], data: st.DataObject) -> None:
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(sizes), max_size=len(sizes)))
    values = [size * sign for size, sign in zip(sizes, signs, strict=True)]
    assert signed_rank_p(values) == pytest.approx(scipy.stats.wilcoxon(values, method="exact").pvalue, abs=1e-12)


@given(st.lists(st.integers(-5, 5).filter(bool), min_size=30, max_size=80))
def test_with_ties_or_many_values_it_is_the_normal_approximation(values: list[int]) -> None:
    expected = scipy.stats.wilcoxon(values, method="asymptotic", correction=True).pvalue
    assert signed_rank_p([float(value) for value in values]) == pytest.approx(expected, rel=1e-9)


def test_zeros_say_nothing() -> None:
    assert signed_rank_p([0.0, 0.0]) == 1.0
    assert signed_rank_p([0.0, 1, 2, 3, 4, 5, 6]) == signed_rank_p([1.0, 2, 3, 4, 5, 6]) == pytest.approx(2 / 2**6)
