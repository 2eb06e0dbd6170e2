"""The picture of a history: each run a dot, each level a line where the history says, each change marked once."""

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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def looked_back(series: Mapping[str, Sequence[float]]) -> History:
    count = len(next(iter(series.values())))
    return judge(gather(from_json(night(at, {name: times_s[at] for name, times_s in series.items()}), f"{at}.json") for at in range(count)))


@pytest.fixture(scope="module")
def history() -> History:
    """Two changes of one benchmark and an outlier; a long name; a benchmark that stays as it is."""
    parse = noisy(stepped((30, 0.1), (8, 0.13), (42, 0.1)), 1, 0.02)
    parse[60] *= 10
    long = noisy(stepped((60, 2e-4), (20, 1e-4)), 2, 0.02)
    return looked_back({"parse": parse, "sort_a_long_name_with_parameters[1000000-float64-True]": long, "quiet": noisy([1.0] * 80, 3)})


@pytest.fixture(scope="module")
def figure(history: History) -> Figure:
    return picture.draw(history)


def levels(axes: Axes) -> list[tuple[float, float]]:
    """Heights of the level lines, begin and end."""
    return [(ends[0][1], ends[1][1]) for line in axes.lines if line.get_linewidth() == 1.6 and len(ends := points(line)) == 2]


def test_every_level_is_where_the_history_says(figure: Figure, history: History) -> None:
    changes = sorted(
        (one for one in history.changes if one.series.workload == "bench.py::parse" and one.series.metric.better == "higher"),
        key=lambda one: one.found.index,
    )
    expected = [changes[0].before, *(change.after for change in changes)]
    for ends, level in zip(levels(figure.axes[0]), expected, strict=True):
        assert ends == pytest.approx((level, level))


def test_a_run_beyond_the_scale_stands_at_the_edge(figure: Figure) -> None:
    """Ten times as long is a tenth of the throughput: a triangle at the lower edge, on its day; no dot is missing."""
    low = [place for line in lines_of(figure.axes[0], "v") for place in points(line)]
    dots = [place for line in lines_of(figure.axes[0], "o") for place in points(line)]
    assert low == [(60.0, 0.0)]
    assert len(dots) == 80


def test_each_change_is_marked_once_in_the_colour_of_its_kind(figure: Figure) -> None:
    """Throughput: 1/1.3 is for the worse, back again for the better."""
    upright = [line for line in figure.axes[0].lines if line.get_linewidth() == 1.2 and line.get_marker() == "None"]
    assert [line.get_color() for line in upright] == [picture.WORSE, picture.BETTER]
    assert [points(line)[0][0] for line in upright] == [29.5, 37.5]


def test_nothing_is_cut_or_lies_over_anything(figure: Figure) -> None:
    assert faults(figure) == []


def test_more_than_a_page_of_changes_is_counted() -> None:
    history = looked_back({f"test_{at:02}": noisy(stepped((20, 1), (20, 2)), 100 + at) for at in range(picture.MOST + 4)})
    figure = picture.draw(history)
    assert len(figure.axes) == picture.MOST
    assert "4 more workloads" in said(figure)


def test_short_series_are_not_drawn() -> None:
    with pytest.raises(NothingToDraw, match="enough runs"):
        picture.draw(looked_back({"short": [1.0, 2.0]}))
