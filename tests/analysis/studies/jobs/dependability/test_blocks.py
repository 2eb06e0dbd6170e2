"""Means and ratios over blocks."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.estimates import FEW, SAME, grouped, mean, ratio

VALUES = st.floats(0.01, 100)


def test_a_block_counts_once_however_much_is_in_it() -> None:
    """Blocks of mean 2, 4 and 6: 4 ± 4.3027·2/√3."""
    found = mean({("r", 1): [1, 3], ("r", 2): [4], ("r", 3): [6, 6, 6]})
    assert found is not None
    assert found.value == 4
    assert found.low == pytest.approx(4 - 4.302653 * 2 / math.sqrt(3))
    assert found.high == pytest.approx(4 + 4.302653 * 2 / math.sqrt(3))


def test_a_ratio_is_of_pairs() -> None:
    """Twice, four times and eight times as long: 4, and t = ln 4/(ln 2/√3) = 3.464 with 2 d.f., p = 0.0742."""
    found = ratio({("r", at): [(1.0, 2.0**at)] for at in (1, 2, 3)})
    assert found is not None
    assert found.value == pytest.approx(4)
    assert found.p == pytest.approx(0.0742, abs=1e-4)
    assert found.low is not None
    assert found.low90 is not None
    assert found.low90 == pytest.approx(4 * math.exp(-2.919986 * math.log(2) / math.sqrt(3)), rel=1e-5)
    assert found.low == pytest.approx(4 * math.exp(-4.302653 * math.log(2) / math.sqrt(3)), rel=1e-5)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=3, max_size=8))
def test_the_inverse_of_a_ratio_has_the_inverse_interval(pairs: list[tuple[float, float]]) -> None:
    there = ratio({("r", at): [pair] for at, pair in enumerate(pairs)})
    back = ratio({("r", at): [(pair[1], pair[0])] for at, pair in enumerate(pairs)})
    assert there is not None
    assert back is not None
    assert there.value * back.value == pytest.approx(1)
    if there.low is not None and back.high is not None:
        assert there.low * back.high == pytest.approx(1, rel=1e-6)
        assert there.p == pytest.approx(back.p)


@pytest.mark.parametrize(("values", "why"), [([1.0, 2.0], FEW), ([1.0], FEW), ([2.0, 2.0, 2.0], SAME)])
def test_what_has_no_interval_says_why(values: list[float], why: str) -> None:
    one = mean({("r", at): [value] for at, value in enumerate(values)})
    two = ratio({("r", at): [(1.0, value)] for at, value in enumerate(values)})
    assert one is not None
    assert two is not None
    assert (one.low, one.why) == (None, why)
    assert (two.low, two.p, two.why) == (None, None, why)


def test_nothing_is_nothing_and_not_nought() -> None:
    assert mean(grouped([(("r", 1), None)])) is None
    assert ratio({("r", 1): []}) is None
