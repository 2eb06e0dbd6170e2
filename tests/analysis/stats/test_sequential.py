"""Looks at an unfinished run: the printed bounds (V17), and simulated that they keep their level and their power."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from analysis.stats.sequential import blocks_factor, crossings, expected_share, naive_type_i, obrien_fleming, pocock, spending, spent


@pytest.mark.parametrize(("looks", "rate"), [(1, 0.05), (2, 0.0831), (5, 0.1417), (10, 0.1933)])
def test_v17_looking_at_1_96_every_time(looks: int, rate: float) -> None:
    assert naive_type_i(looks, 0.05) == pytest.approx(rate, abs=1e-4)


@pytest.mark.parametrize(("looks", "bound"), [(3, 2.289), (5, 2.413), (20, 2.672)])
def test_v17_pocock(looks: int, bound: float) -> None:
    assert pocock(looks, 0.05) == pytest.approx([bound] * looks, abs=5e-4)


def test_v17_obrien_fleming() -> None:
    """2.040 · √(5/k) and 2.004 · √(3/k); with 20 looks the last is at 2.126 (Jennison & Turnbull 2000, table 2.3)."""
    assert obrien_fleming(5, 0.05) == pytest.approx([4.562, 3.226, 2.634, 2.281, 2.040], abs=5e-4)
    assert obrien_fleming(3, 0.05) == pytest.approx([2.004 * math.sqrt(3 / k) for k in (1, 2, 3)], abs=5e-4)
    assert obrien_fleming(20, 0.05)[-1] == pytest.approx(2.126, abs=5e-4)


def test_v17_spending() -> None:
    assert [spent(t, 0.05) for t in (0.2, 0.4, 0.6, 0.8)] == pytest.approx([1.1726e-5, 0.0019419, 0.0113964, 0.0284296], rel=1e-4)
    assert spent(1, 0.05) == pytest.approx(0.05)


def test_spending_bounds_spend_what_they_may_at_every_look() -> None:
    """Also at the level of one contrast among fifty, where the first bound is 10 standard deviations away."""
    for looks, alpha in ((5, 0.05), (12, 0.001)):
        crossed = np.cumsum(crossings(spending(looks, alpha)))
        assert crossed == pytest.approx([spent(k / looks, alpha) for k in range(1, looks + 1)], rel=1e-4)


@pytest.mark.parametrize("bounds", [pocock(4, 0.05), obrien_fleming(4, 0.05), spending(4, 0.05)], ids=["pocock", "obf", "spending"])
@pytest.mark.parametrize("drift", [0.0, 2.8])
def test_crossings_are_those_of_simulated_walks(bounds: list[float], drift: float) -> None:
    """50,000 walks; each look's share of first crossings within 4 standard errors."""
    steps = np.random.default_rng(4).normal(drift / 4, 0.5, (50_000, 4))
    beyond = np.abs(steps.cumsum(axis=1)) / np.sqrt([0.25, 0.5, 0.75, 1.0]) >= bounds
    first = np.where(beyond.any(axis=1), beyond.argmax(axis=1), 4)
    for look, share in enumerate(crossings(bounds, drift)):
        assert (first == look).mean() == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 50_000) + 1e-9)


def test_what_looking_costs_and_saves() -> None:
    """Five looks at 5 % for 80 % power: Pocock needs 1.229 times the blocks, O'Brien & Fleming 1.028 (Jennison & Turnbull, table 2.2).

    Where the effect is real, either stops early: on average after 65 % and 79 % of those.
    """
    assert blocks_factor(pocock(5, 0.05), 0.05, 0.8) == pytest.approx(1.229, abs=1e-3)
    assert blocks_factor(obrien_fleming(5, 0.05), 0.05, 0.8) == pytest.approx(1.028, abs=1e-3)
    assert expected_share(pocock(5, 0.05), 0.05, 0.8) == pytest.approx(0.650, abs=1e-3)
    assert expected_share(obrien_fleming(5, 0.05), 0.05, 0.8) == pytest.approx(0.795, abs=1e-3)


@given(st.integers(1, 12), st.floats(0.0005, 0.2))
def test_every_plan_keeps_the_level(looks: int, alpha: float) -> None:
    single = float(scipy.stats.norm.ppf(1 - alpha / 2))
    for plan in (pocock, obrien_fleming, spending):
        bounds = plan(looks, alpha)
        assert sum(crossings(bounds)) == pytest.approx(alpha, rel=1e-4)
        assert bounds[-1] >= single - 1e-6
        assert bounds == sorted(bounds, reverse=True)
