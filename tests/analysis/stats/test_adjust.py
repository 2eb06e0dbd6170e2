"""Adjusted p-values: the published example (V14), by hand, and what must hold of every one of them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from analysis.stats.adjust import ADJUSTMENTS, benjamini_hochberg, benjamini_yekutieli, bonferroni, hochberg, holm

# Benjamini & Hochberg 1995, thrombolysis in acute myocardial infarction.
INFARCTION = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
probabilities = st.lists(st.floats(0, 1), max_size=20)
each = pytest.mark.parametrize("name", ADJUSTMENTS)


@pytest.mark.parametrize(("name", "called"), [("bonferroni", 3), ("holm", 3), ("hochberg", 3), ("bh", 4), ("by", 3)])
def test_v14_how_many_of_fifteen_are_called_at_five_percent(name: str, called: int) -> None:
    assert sum(p <= 0.05 for p in ADJUSTMENTS[name](INFARCTION)) == called


def test_v14_adjusted_values() -> None:
    """BH: 15/1 · .0001, 15/2 · .0004 = .003, 15/3 · .0019 = .0095, 15/4 · .0095 = .035625; Holm's fourth: 12 · .0095 = .114."""
    assert benjamini_hochberg(INFARCTION)[:4] == pytest.approx([0.0015, 0.003, 0.0095, 0.035625])
    assert holm(INFARCTION)[3] == pytest.approx(0.114)


def test_the_others_by_hand() -> None:
    """From .01, .04, .03: three times each; from above 1 · .04, min(.04, 2 · .03), min(.04, 3 · .01).

    Yekutieli: 1 + 1/2 + 1/3 = 11/6, so 11/6 · 1 · .04 = .0733, min(.0733, 11/6 · 3/2 · .03 = .0825), 11/6 · 3 · .01 = .055.
    """
    assert bonferroni([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.12, 0.09])
    assert hochberg([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.04, 0.04])
    assert benjamini_yekutieli([0.01, 0.04, 0.03]) == pytest.approx([0.055, 11 / 6 * 0.04, 11 / 6 * 0.04])


@given(probabilities)
def test_the_false_discovery_rates_are_scipys(ps: list[float]) -> None:
    if ps:
        assert benjamini_hochberg(ps) == pytest.approx(false_discovery_control(ps, method="bh").tolist())
        assert benjamini_yekutieli(ps) == pytest.approx(false_discovery_control(ps, method="by").tolist())


@each
@given(ps=probabilities)
def test_adjusting_never_helps_and_keeps_the_order(name: str, ps: list[float]) -> None:
    adjusted = ADJUSTMENTS[name](ps)
    assert len(adjusted) == len(ps)
    assert all(p <= q <= 1 for p, q in zip(ps, adjusted, strict=True))
    ordered = [adjusted[index] for index in sorted(range(len(ps)), key=lambda i: ps[i])]
    assert ordered == sorted(ordered)


@given(probabilities)
def test_from_strict_to_lenient(ps: list[float]) -> None:
    """Bonferroni, Holm, Hochberg, Benjamini-Hochberg: each calls at least what the one before calls."""
    columns = [bonferroni(ps), holm(ps), hochberg(ps), benjamini_hochberg(ps)]
    for strict, lenient in pairwise(columns):
        assert all(p >= q - 1e-12 for p, q in zip(strict, lenient, strict=True))
