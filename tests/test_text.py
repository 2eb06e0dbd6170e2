"""Numbers as somebody wrote them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.terms import BadInput
from fixtures.text import number, positive, whole


@given(st.floats(0.001, 60))
def test_a_number_is_its_own_name(value: float) -> None:
    """Written down and given again it means the same, and whole numbers have no point."""
    found = number("interval_s", str(value), 0.001, 60)
    assert found == value
    assert number("interval_s", str(found), 0.001, 60) == found
    assert isinstance(found, int) == value.is_integer()


@pytest.mark.parametrize("text", ["", "nan", "inf", "0", "61", "0x1"])
def test_what_is_no_number_of_that_range_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=rf"interval_s={text}: a number from 0\.001 to 60 is needed\."):
        number("interval_s", text, 0.001, 60)
    with pytest.raises(BadInput, match=rf"interval_s={text}: a number above 0 and at most 60 is needed\."):
        positive("interval_s", text, 60)


@pytest.mark.parametrize("text", ["inf", "nan", "-1"])
def test_a_range_without_an_end_has_finite_numbers_only(text: str) -> None:
    with pytest.raises(BadInput, match=rf"lag_s={text}: a number from 0 on is needed\."):
        number("lag_s", text, 0)
    with pytest.raises(BadInput, match=rf"lag_s={text}: a number above 0 is needed\."):
        positive("lag_s", text)


@pytest.mark.parametrize("text", ["8", "08", "8.0"])
def test_a_whole_number_is_written_in_digits(text: str) -> None:
    assert whole("words", text, 1, 8) == 8


@pytest.mark.parametrize("text", ["", "0", "9", "+8", "1.5", "8.", "٣", "8\n", "9" * 5000])
def test_what_is_no_whole_number_of_that_range_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=f"words={text}: a whole number from 1 to 8 is needed".replace("+", r"\+")):
        whole("words", text, 1, 8)
