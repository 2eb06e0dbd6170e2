"""Values of parameters as users write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.parameters import Parameter
from fixtures.terms import BadInput

INTERVAL, WORDS = Parameter(least=0.001, most=60), Parameter(kind=int, least=1, most=8)
BYTES = Parameter(kind=int, above=True, unit="bytes")


@given(st.floats(0.001, 60))
def test_a_number_is_its_own_name(value: float) -> None:
    found = INTERVAL.read("interval_s", str(value))
    assert found == value
    assert INTERVAL.read("interval_s", str(found)) == found
    assert isinstance(found, int) == value.is_integer()


@pytest.mark.parametrize(
    ("parameter", "texts", "says"),
    [
        (INTERVAL, ["", "nan", "inf", "0", "61", "0x1"], "a number from 0.001 to 60."),
        (Parameter(above=True, most=60), ["", "nan", "0"], "a number above 0 and at most 60."),
        (Parameter(), ["inf", "nan", "-1"], "a number of at least 0."),
        (Parameter(above=True), ["inf", "nan", "-1"], "a number above 0."),
        (BYTES, ["1Zi", "0", "-1Mi", "1e30", "1/0"], "a size such as 1048576, 1Mi or 64k above 0"),
        (WORDS, ["", "0", "9", "8 ", "1.5", "2k", "٣"], "a whole number from 1 to 8"),
    ],
)
def test_what_is_no_value_of_that_range_is_refused(
    parameter: Parameter, texts: list[str], says: str
) -> None:
    for text in texts:
        with pytest.raises(BadInput, match=re.escape(f"x={text}: must be {says}")):
            parameter.read("x", text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1048576", 1048576),
        ("1Mi", 1048576),
        ("64k", 64000),
        ("64Ki", 65536),
        ("1.5Mi", 1572864),
        ("2GB", 2 * 10**9),
        ("10MiB", 10485760),
        ("1e6", 10**6),
    ],
)
def test_sizes_are_read_as_kubernetes_writes_them(text: str, size: int) -> None:
    assert BYTES.read("transfer_size", text) == size


def test_a_value_is_shown_in_one_line() -> None:
    with pytest.raises(BadInput, match=r"words='3\\n': must be a whole"):
        WORDS.read("words", "3\n")


@pytest.mark.parametrize("text", ["8", "08", "8.0"])
def test_a_whole_number_is_written_in_digits(text: str) -> None:
    assert WORDS.read("words", text) == 8


def test_a_word_is_one_of_those_there_are() -> None:
    shuffle = Parameter("off", "order of the files", words=("off", "seed"))
    assert shuffle.read("shuffle", "seed") == "seed"
    with pytest.raises(
        BadInput, match=r"shuffle=sed: no such value\. Did you mean 'seed'\? Available: off, seed\."
    ):
        shuffle.read("shuffle", "sed")


@pytest.mark.parametrize(
    ("parameter", "text"),
    [
        (Parameter(0.5, "seconds"), "seconds (default: 0.5)"),
        (Parameter(0, "how often"), "how often (default: 0)"),
        (Parameter(None, "the cap"), "the cap"),
        (Parameter(None, "the clock", usual="as it is"), "the clock (default: as it is)"),
    ],
)
def test_its_help_has_its_default(parameter: Parameter, text: str) -> None:
    assert parameter.text == text
