"""From runs to series, and from series to changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.load import from_json
from analysis.studies.history.history import History, gather, judge, regressions
from analysis.terms import Refused, Run
from tests.made_history import CPU, night, noisy, stepped
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, in_turns, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


FASTER = Arm("faster", gain=0.25, requested={"vm.swappiness": "1"})
THREE_ARMS = Made(arms=(STOCK, AGAIN, FASTER), blocks=3, steps=4)
THROUGHPUT = "throughput_samples_per_s"


def nightly(at: int, cpu: Mapping[str, object] = CPU, **times_s: float) -> Run:
    return from_json(night(at, times_s, cpu), f"{at}.json")


def ours(day: int, made: Made = THREE_ARMS) -> Run:
    return replace(
        from_json(saved_run(made), f"{day}.json"),
        run_id=f"run-{day}",
        started_utc=f"2026-01-{day:02}T00:00:00+00:00",
    )


def values(gathered: History, tweakset: str, metric: str = THROUGHPUT) -> list[float]:
    ((*points,),) = [
        one.points
        for one in gathered.series
        if (one.tweakset, one.metric.name) == (tweakset, metric)
    ]
    return [point.value for point in points]


def cells(run: Run, tweakset: str) -> list[float]:
    return [
        cell.metrics[THROUGHPUT]
        for cell in sorted(run.cells, key=lambda one: one.block)
        if cell.tweakset == tweakset and cell.metrics
    ]


def geometric_mean(numbers: Iterable[float]) -> float:
    logs = [math.log(number) for number in numbers]
    return math.exp(sum(logs) / len(logs))


def test_a_run_is_one_value_the_geometric_mean_over_its_blocks() -> None:
    run = ours(1)
    assert values(gather([run]), "stock") == [pytest.approx(geometric_mean(cells(run, "stock")))]


def test_points_are_in_order_of_time_whatever_the_order_of_files() -> None:
    gathered = gather([nightly(at, sort=1 / at) for at in (3, 1, 2)])
    assert values(gathered, "as-run") == [pytest.approx(at) for at in (1, 2, 3)]
    assert (gathered.runs, gathered.first_utc, gathered.last_utc) == (
        3,
        "2026-01-02T02:00:00+00:00",
        "2026-01-04T02:00:00+00:00",
    )


def test_times_of_other_zones_are_put_in_order_too() -> None:
    """01:00 in UTC+2 is 23:00 UTC of the day before, and earlier than midnight UTC."""
    runs = [ours(2), replace(ours(3), started_utc="2026-01-02T01:00:00+02:00")]
    marks = [point.mark for point in gather(runs).series[0].points]
    assert [(mark.run_id, mark.started_utc) for mark in marks] == [
        ("run-3", "2026-01-01T23:00:00+00:00"),
        ("run-2", "2026-01-02T00:00:00+00:00"),
    ]


def test_relative_to_stock_machine_effects_on_a_block_cancel() -> None:
    """Each cell is divided by stock's in its block; a machine at half speed changes nothing."""
    run, slow = ours(1), ours(2, replace(THREE_ARMS, base_s=2 * THREE_ARMS.base_s))
    gathered = gather([run, slow], relative_to="stock")
    ratios = [a / b for a, b in zip(cells(run, "faster"), cells(run, "stock"), strict=True)]
    assert values(gathered, "faster") == [pytest.approx(geometric_mean(ratios))] * 2
    assert {one.tweakset for one in gathered.series} == {"faster", "stock-again"}
    assert {one.relative_to for one in gathered.series} == {"stock"}


def test_other_parameters_are_another_series() -> None:
    small, large = ours(1), ours(2)
    workload = replace(large.workloads["cnn_train"], params={"batch": 16})
    gathered = gather([small, replace(large, workloads={"cnn_train": workload})], THROUGHPUT)
    stock = [
        (one.variant, one.name, len(one.points))
        for one in gathered.series
        if one.tweakset == "stock"
    ]
    assert stock == [
        ("batch=16", "cnn_train (batch=16), stock", 1),
        ("batch=8", "cnn_train (batch=8), stock", 1),
    ]


def stock_alone(change: Callable[[JSON, JSON], None]) -> Run:
    saved = saved_run(Made(arms=(STOCK,), blocks=2, steps=4))
    change(*(one["extra_info"] for one in saved["benchmarks"]))
    return from_json(saved, "x.json")


def contradict(first: JSON, _second: JSON) -> None:
    first["metrics"][THROUGHPUT] *= 2


def lose_jobs(first: JSON, second: JSON) -> None:
    for one, outcome in ((first, "failed"), (second, "done")):
        one["report"] = {
            "job": [{"job": at, "outcome": outcome} for at in range(len(one["steps"]["wall_s"]))]
        }


IDLE = Arm("idle", requested={"vm.swappiness": "1"}, observed={"vm.swappiness": "60"})
BROKEN = replace(
    THREE_ARMS, arms=(replace(STOCK, broken={2: ("failed", "out of memory")}), AGAIN, FASTER)
)
# What is left out or kept apart, and how many points of the series of stock (or faster) are left.
NOTED: dict[str, tuple[int, Callable[[], History]]] = {
    "not in force": (1, lambda: gather([ours(1, Made(arms=(STOCK, IDLE), blocks=2, steps=4))])),
    "contradicting": (1, lambda: gather([stock_alone(contradict)])),
    "lost jobs": (1, lambda: gather([stock_alone(lose_jobs)])),
    "copies": (1, lambda: gather([ours(1), replace(ours(1), origin="copy.json")])),
    "no time": (0, lambda: gather([replace(ours(1), started_utc="")])),
    "no control": (1, lambda: gather([ours(1, BROKEN)], relative_to="stock")),
    "machines": (
        1,
        lambda: gather(
            [nightly(1, sort=0.1), nightly(2, {"brand_raw": "Other CPU", "count": 8}, sort=0.2)]
        ),
    ),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_is_left_out_or_kept_apart_is_said(name: str, snapshot: SnapshotAssertion) -> None:
    points, gathered = NOTED[name][0], NOTED[name][1]()
    assert {len(one.points) for one in gathered.series} == ({points} if points else set())
    assert "idle" not in {one.tweakset for one in gathered.series}
    assert gathered.notes == snapshot


def test_a_name_that_nobody_has_is_refused() -> None:
    for name, asked in (("speed", {"metric": "speed"}), ("base", {"relative_to": "base"})):
        with pytest.raises(Refused, match=f"'{name}'"):
            gather([ours(1)], **asked)


def in_two_turns(saved: JSON) -> JSON:
    return in_turns(saved, slice_steps=2)


def test_cells_in_turns_are_a_separate_series_in_their_metric() -> None:
    runs = [
        replace(
            from_json(change(saved_run(replace(THREE_ARMS, seed=day))), f"{day}.json"),
            run_id=f"run-{day}",
        )
        for day, change in ((1, dict), (2, dict), (3, in_two_turns), (4, in_two_turns))
    ]
    found = gather(runs)
    stock = {
        (one.variant, one.metric.name): [point.mark.run_id for point in one.points]
        for one in found.series
        if one.tweakset == "stock"
    }
    assert stock == {
        ("cells=in turns", THROUGHPUT): ["run-3", "run-4"],
        ("cells=in turns", "step_time_round_adjusted_s"): ["run-3", "run-4"],
        ("cells=whole", THROUGHPUT): ["run-1", "run-2"],
        ("cells=whole", "step_time_p10_s"): ["run-1", "run-2"],
    }
    assert {one.variant for one in gather(runs[2:]).series} == {""}
    relative = gather(runs[2:], relative_to="stock")
    cells = {
        (cell.tweakset, cell.block): cell.metrics["step_time_round_adjusted_s"]
        for cell in runs[2].cells
    }
    ratios = [cells["faster", block] / cells["stock", block] for block in (1, 2, 3)]
    assert values(relative, "faster", "step_time_round_adjusted_s")[0] == pytest.approx(
        geometric_mean(ratios)
    )


def looked_back(series: Mapping[str, Sequence[float]], metric: str | None = THROUGHPUT) -> History:
    count = len(next(iter(series.values())))
    runs = (
        from_json(night(at, {name: times_s[at] for name, times_s in series.items()}), f"{at}.json")
        for at in range(count)
    )
    return judge(gather(runs, metric))


def test_a_change_has_its_runs_its_size_and_its_direction() -> None:
    """A quarter more time per call is 1/1.25 of the throughput: -20 %, whatever the metric."""
    history = looked_back({"sort": noisy(stepped((30, 0.1), (40, 0.125)))}, None)
    assert len(history.changes) == 2
    for change in history.changes:
        assert (change.last_before.origin, change.first.origin, change.runs_since) == (
            "29.json",
            "30.json",
            40,
        )
        assert change.verdict == "regressed"
        assert change.gain == pytest.approx(-0.2, abs=0.01)
        assert change.low < change.gain < change.high
        ratio = change.after / change.before
        assert ratio == pytest.approx(
            1 + change.gain if change.series.metric.better == "higher" else 1 / (1 + change.gain)
        )
    assert {change.series.metric.name: change.before for change in history.changes} == {
        THROUGHPUT: pytest.approx(10, rel=0.01),
        "step_time_median_s": pytest.approx(0.099, rel=0.01),
    }


def test_changes_are_sorted_newest_first_then_largest_first() -> None:
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
    """100 noise series: unadjusted, a few would alarm at 5 %; adjusted, none does."""
    rng = np.random.default_rng(3)
    history = looked_back(
        {f"s{at}": np.exp(0.02 * rng.standard_normal(50)).tolist() for at in range(100)}
    )
    assert any(one.p is not None and one.p <= 0.05 for one in history.judged)
    assert history.changes == []
    assert all(
        one.p_adjusted is not None and one.p is not None and one.p_adjusted >= one.p
        for one in history.judged
    )


def test_a_series_that_is_too_short_is_not_judged_and_says_so() -> None:
    history = looked_back({"sort": noisy(stepped((4, 1), (5, 9)))})
    assert all(judged.p is None for judged in history.judged)
    (one,) = history.judged
    assert (one.p, one.changes) == (None, ())
    assert (one.reason or "").startswith("9 runs")


def test_recent_regressions_began_among_the_last_runs() -> None:
    history = looked_back({"sort": noisy(stepped((30, 1), (20, 1.2), (8, 1)))})
    assert [(change.verdict, change.runs_since) for change in history.changes] == [
        ("improved", 8),
        ("regressed", 28),
    ]
    assert [len(regressions(history, recent)) for recent in (27, 28)] == [0, 1]
