"""The picture of a history: a dot per run, a line per level, one mark per change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.plots.scene import NothingToDraw
from analysis.studies.history import pictures as picture
from analysis.studies.history.history import History, gather, judge
from tests.analysis.plots.reading import faults, lines_of, points, said
from tests.made_history import night, noisy, stepped

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def looked_back(series: Mapping[str, Sequence[float]]) -> History:
    count = len(next(iter(series.values())))
    return judge(
        gather(
            from_json(
                night(at, {name: times_s[at] for name, times_s in series.items()}), f"{at}.json"
            )
            for at in range(count)
        )
    )


@pytest.fixture(scope="module")
def history() -> History:
    """Two changes of one benchmark and an outlier; a long name; a steady benchmark."""
    parse = noisy(stepped((30, 0.1), (8, 0.13), (42, 0.1)), 1, 0.02)
    parse[60] *= 10
    long = noisy(stepped((60, 2e-4), (20, 1e-4)), 2, 0.02)
    return looked_back(
        {
            "parse": parse,
            "sort_a_long_name_with_parameters[1000000-float64-True]": long,
            "quiet": noisy([1.0] * 80, 3),
        }
    )


@pytest.fixture(scope="module")
def figure(history: History) -> Figure:
    return picture.draw(history)


def test_levels_match_the_history_and_each_change_is_marked_once(
    figure: Figure, history: History
) -> None:
    """Throughput: 1/1.3 is a loss, the way back a gain."""
    assert faults(figure) == []
    of_parse = (
        one
        for one in history.changes
        if (one.series.workload, one.series.metric.better) == ("bench.py::parse", "higher")
    )
    changes = sorted(of_parse, key=lambda one: one.found.index)
    lines = figure.axes[0].lines
    levels = [
        [y for _, y in points(line)]
        for line in lines
        if line.get_linewidth() == 1.6 and len(points(line)) == 2
    ]
    assert levels == [
        pytest.approx([level, level])
        for level in (changes[0].before, *(change.after for change in changes))
    ]
    upright = [
        line for line in lines if line.get_linewidth() == 1.2 and line.get_marker() == "None"
    ]
    assert [line.get_color() for line in upright] == [picture.WORSE, picture.BETTER]
    assert [points(line)[0][0] for line in upright] == [29.5, 37.5]


def test_a_run_beyond_the_scale_stands_at_the_edge(figure: Figure) -> None:
    """Ten times the time is a tenth of the throughput: a triangle on the edge, no dot missing."""
    low, dots = (
        [place for line in lines_of(figure.axes[0], mark) for place in points(line)]
        for mark in "vo"
    )
    assert low == [(60.0, 0.0)]
    assert len(dots) == 80


def test_excess_changes_are_counted_and_short_series_not_drawn() -> None:
    history = looked_back(
        {
            f"test_{at:02}": noisy(stepped((20, 1), (20, 2)), 100 + at)
            for at in range(picture.MOST + 4)
        }
    )
    figure = picture.draw(history)
    assert len(figure.axes) == picture.MOST
    assert "4 more workloads" in said(figure)
    with pytest.raises(NothingToDraw, match="enough runs"):
        picture.draw(looked_back({"short": [1.0, 2.0]}))
