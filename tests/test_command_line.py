"""What is written wrongly on the command line is refused there, in a line."""

from __future__ import annotations

import argparse

import pytest

from fixtures.command_line import _values


def test_values_of_a_parameter_are_read_in_their_order() -> None:
    assert _values("format=raw, npz") == ("format", ("raw", "npz"))


@pytest.mark.parametrize(
    "text", ["format=raw,,npz", "format=raw,", "format=,", "format=", "format", "=raw", "format=raw\nnpz", "format=raw\n", "format=raw,raw"]
)
def test_values_that_are_empty_twice_there_or_on_two_lines_are_refused(text: str) -> None:
    with pytest.raises(
        argparse.ArgumentTypeError, match="write NAME=A,B: a parameter and its values, each once and none of them empty"
    ) as why:
        _values(text)
    assert "\n" not in str(why.value)
