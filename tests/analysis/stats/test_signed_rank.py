"""The signed-rank test against SciPy's."""

from __future__ import annotations

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from analysis.stats.signed_rank import EXACT, signed_rank_p

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
