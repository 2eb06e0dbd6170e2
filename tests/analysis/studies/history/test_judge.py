"""From series to a history: which changed, by how much, for better or worse, and how sure all of it is together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.load import from_json
from analysis.studies.history.history import gather, is_judged, judge, regressions
from tests.made_history import night, noisy, stepped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.studies.history.history import History

THROUGHPUT = "throughput_samples_per_s"


def looked_back(series: Mapping[str, Sequence[float]], metric: str | None = THROUGHPUT) -> History:
    count = len(next(iter(series.values())))
    runs = (from_json(night(at, {name: times_s[at] for name, times_s in series.items()}), f"{at}.json") for at in range(count))
    return judge(gather(runs, metric))


def test_a_change_has_its_runs_its_size_and_its_direction() -> None:
    """A quarter more time a call is 1/1.25 of the throughput: -20 %, whichever way the metric runs."""
    history = looked_back({"sort": noisy(stepped((30, 0.1), (40, 0.125)))}, None)
    assert len(history.changes) == 2
    for change in history.changes:
        assert (change.last_before.origin, change.first.origin, change.runs_since) == ("29.json", "30.json", 40)
        assert change.verdict == "regressed"
        assert change.gain == pytest.approx(-0.2, abs=0.01)
        assert change.low < change.gain < change.high
        ratio = change.after / change.before
        assert ratio == pytest.approx(1 + change.gain if change.series.metric.better == "higher" else 1 / (1 + change.gain))
    assert {change.series.metric.name: change.before for change in history.changes} == {
        THROUGHPUT: pytest.approx(10, rel=0.01),
        "step_time_median_s": pytest.approx(0.099, rel=0.01),
    }


def test_less_time_is_an_improvement() -> None:
    (change,) = looked_back({"sort": noisy(stepped((30, 0.1), (40, 0.08)))}, "step_time_median_s").changes
    assert change.verdict == "improved"
    assert change.gain == pytest.approx(0.25, abs=0.015)


def test_the_newest_change_comes_first_and_of_equally_new_ones_the_largest() -> None:
    series = {
        "early": noisy(stepped((20, 1), (40, 2)), 1),
        "late": noisy(stepped((40, 1), (20, 1.2)), 2),
        "late and large": noisy(stepped((40, 1), (20, 3)), 3),
    }
    assert [change.series.workload for change in looked_back(series).changes] == [
        "bench.py::late and large",
        "bench.py::late",
        "bench.py::early",
    ]


def test_many_quiet_series_raise_no_alarm_together() -> None:
    """100 series of noise: at 5 % each by itself a few would alarm; adjusted for all of them none does."""
    rng = np.random.default_rng(3)
    history = looked_back({f"s{at}": np.exp(0.02 * rng.standard_normal(50)).tolist() for at in range(100)})
    assert any(one.p is not None and one.p <= 0.05 for one in history.judged)
    assert history.changes == []
    assert all(one.p_adjusted is not None and one.p is not None and one.p_adjusted >= one.p for one in history.judged)


def test_a_series_that_is_too_short_is_not_judged_and_says_so() -> None:
    history = looked_back({"sort": noisy(stepped((4, 1), (5, 9)))})
    assert not is_judged(history)
    (one,) = history.judged
    assert (one.p, one.changes) == (None, ())
    assert (one.reason or "").startswith("9 runs")


def test_recent_regressions_are_those_that_began_among_the_last_runs() -> None:
    history = looked_back({"sort": noisy(stepped((30, 1), (20, 1.2), (8, 1)))})
    assert [(change.verdict, change.runs_since) for change in history.changes] == [("improved", 8), ("regressed", 28)]
    assert [len(regressions(history, recent)) for recent in (27, 28)] == [0, 1]
