"""Which model is better: shown only where p stands after the adjustment for all of them."""

from __future__ import annotations

import pytest

from analysis.studies.jobs.prediction.validation import Difference, Scored, adjusted


@pytest.mark.parametrize(
    ("p", "verdict"), [(0.01, "better"), (0.049, "better"), (0.051, "not shown"), (0.5, "not shown"), (0.96, "not shown")]
)
def test_a_difference_is_shown_below_five_percent_and_nowhere_else(p: float, verdict: str) -> None:
    (one,) = adjusted([Scored("line", 9, 9, difference=Difference(0.1, -0.1, 0.3, p, "better"))])
    assert one.difference
    assert (one.difference.p, one.difference.verdict) == (p, verdict)


def test_of_three_models_each_is_adjusted() -> None:
    """Holm: 3 · .02 = .06 is not shown, nor are those after it; without a difference there is nothing to adjust."""
    scored = [Scored("none", 2, 2), *(Scored("model", 9, 9, difference=Difference(0.1, 0.0, 0.3, p, "worse")) for p in (0.02, 0.03, 0.5))]
    found = [one.difference and (one.difference.p, one.difference.verdict) for one in adjusted(scored)]
    assert found == [None, (pytest.approx(0.06), "not shown"), (pytest.approx(0.06), "not shown"), (0.5, "not shown")]
