"""Names fit their places and stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.plots.labels import fitted, measure_of, room_for, width_in, wrapped
from analysis.plots.marks import round_ticks

LETTERS = st.characters(codec="ascii", exclude_categories=["C"])
NAMES = st.lists(
    st.text(LETTERS, min_size=1, max_size=60),
    unique_by=lambda name: " ".join(name.split()),
    max_size=6,
)


def test_a_name_is_folded_at_a_hyphen_before_it_is_shortened() -> None:
    assert fitted(["deeptweak-exp2-sysctl"], 1.2) == {
        "deeptweak-exp2-sysctl": "deeptweak-exp2-\nsysctl"
    }
    assert fitted(["stock", "stock"], 1.2) == {"stock": "stock"}, "the same name twice is one name"
    assert fitted(["deeptweak-exp2-sysctl"], 1.2, lines=1)["deeptweak-exp2-sysctl"].count("…") == 1
    assert room_for(["stock", "stock-again"], 3.0) == pytest.approx(width_in("stock-again") + 0.18)
    assert room_for(["x" * 500], 1.5) == 1.5


@given(NAMES, st.floats(0.6, 3.0), st.integers(1, 2))
def test_names_fit_their_column_on_so_many_lines(
    names: list[str], room_in: float, lines: int
) -> None:
    shown = fitted(names, room_in, lines=lines)
    assert len(set(shown.values())) == len(names)
    for text in shown.values():
        assert len(text.split("\n")) <= lines
        assert all(width_in(line) <= room_in for line in text.split("\n"))


@given(st.text(LETTERS, max_size=200), st.floats(0.5, 6.0))
def test_wrapped_text_fits_and_loses_no_letter(text: str, room_in: float) -> None:
    lines = wrapped(text, room_in)
    assert all(width_in(line) <= room_in for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.floats(1e-6, 1e6), st.floats(1.5, 1e5), st.integers(2, 8))
def test_ticks_lie_on_the_axis_and_are_few(low: float, ratio: float, most: int) -> None:
    ticks = round_ticks(low, low * ratio, most)
    assert len(ticks) <= most
    assert ticks == sorted(ticks)
    assert all(low <= tick <= low * ratio for tick in ticks)


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [(2e-8, "ns", "20.00"), (4e-5, "µs", "40.00"), (0.04, "ms", "40.00"), (2.0, "s", "2.000")],
)
def test_times_are_shown_in_the_unit_that_suits_them(value: float, unit: str, written: str) -> None:
    """An unknown metric keeps its own name, which carries its unit."""
    measure = measure_of("step_time_mean_s", [value])
    assert (measure.label, measure.value(value)) == (f"mean step, {unit}", f"{written} {unit}")
    assert measure_of("parsing_time_h", [value]).label == "parsing_time_h"
