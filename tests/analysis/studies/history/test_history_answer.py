"""A history on one screen: changes shown, the rest counted, lines of at most 100 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.load import from_json
from analysis.render import text
from analysis.studies.history.answer import RAMP, answer, sparkline
from analysis.studies.history.history import History, gather, judge
from tests.made_history import night, noisy, stepped

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


def looked_back(series: Mapping[str, Sequence[float]], refused: Sequence[str] = ()) -> History:
    count = len(next(iter(series.values())))
    runs = (
        from_json(night(at, {name: times_s[at] for name, times_s in series.items()}), f"{at}.json")
        for at in range(count)
    )
    return judge(gather(runs), refused)


def render(history: History, width: int = 100) -> str:
    return text.render(answer(history, []), width)


@pytest.fixture(scope="module")
def history() -> History:
    slower, faster = (
        noisy(stepped((30, 0.1), (40, 0.125)), 1),
        noisy(stepped((50, 1), (20, 0.5)), 2),
    )
    return looked_back(
        {"sort": slower, "parse": faster, "quiet": noisy([1.0] * 70, 3)}, ["bad.json: not JSON"]
    )


def test_a_change_is_one_row_with_both_summaries_side_by_side(
    history: History, snapshot: SnapshotAssertion
) -> None:
    assert [render(history, width) for width in (100, 160)] == snapshot


def test_a_letter_of_several_runs_is_their_median() -> None:
    """Four runs per letter: one 9 among zeros changes nothing."""
    assert sparkline([0, 0, 9, 0, 1, 1, 1, 1], 2) == RAMP[0] + RAMP[-1]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=100), st.integers(1, 60))
def test_a_sparkline_fits_its_width_and_reaches_both_ends(values: list[float], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    assert set(line) <= set(RAMP)
    assert len(set(line)) == 1 or {RAMP[0], RAMP[-1]} <= set(line)
