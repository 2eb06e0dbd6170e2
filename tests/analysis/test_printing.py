"""A page of 100 columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analysis.printing import in_lines

PARTS = st.lists(st.text("abcdefgh=_.0123", min_size=1, max_size=40), min_size=1, max_size=12)


@given(PARTS, st.integers(20, 100))
def test_a_long_name_is_broken_between_its_parameters_and_nowhere_else(parts: list[str], width: int) -> None:
    """Each further line begins with a colon; only a parameter that is itself wider stands out."""
    name = ":".join(parts)
    first, *further = in_lines(name, width).split("\n")
    assert first + "".join(line.removeprefix("  ") for line in further) == name
    assert all(line.startswith("  :") for line in further)
    for line in (first, *further):
        assert len(line) <= width or line.strip().removeprefix(":") in parts


def test_a_name_that_fits_stays_as_it_is() -> None:
    assert in_lines("io_train:format=raw:cache=warm") == "io_train:format=raw:cache=warm"
