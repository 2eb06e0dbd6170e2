"""Pictures of raw values: what is plotted is what was measured, cell by cell and step by step."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.load import from_json
from analysis.plots import run_order, steps
from analysis.plots.runs import timeline_of
from analysis.plots.scene import Scene, scene_of
from analysis.terms import Cell, Run
from tests.analysis.plots.reading import faults, lines_of, points, said
from tests.synthetic import STOCK, Made, saved_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cells(scene: Scene, workload: str, tweakset: str) -> list[Cell]:
    """The measured cells of one arm, in the order they ran."""
    found = [cell for cell in scene.runs[0].cells if (cell.workload, cell.tweakset, cell.outcome) == (workload, tweakset, "measured")]
    return sorted(found, key=lambda cell: cell.order)


@pytest.mark.parametrize("tweakset", ["stock", "tcp-cubic", "bundle"])
def test_run_order_shows_each_cell_at_its_time_with_its_value(drawings: dict[str, Figure], scene: Scene, tweakset: str) -> None:
    """The second workload's primary metric is a step time, shown in milliseconds."""
    for axes, workload, metric, scale in (
        (drawings["run_order"].axes[0], "cnn_train", "throughput_samples_per_s", 1.0),
        (drawings["run_order"].axes[1], "lora_finetune", "step_time_p10_s", 1000.0),
    ):
        line = next(line for line in axes.lines if line.get_label() == tweakset)
        time = timeline_of(scene.runs[0])
        wanted = [(time.middle(cell), cell.metrics[metric] * scale) for cell in cells(scene, workload, tweakset)]
        assert points(line) == [pytest.approx(place) for place in wanted]


def test_run_order_shades_blocks_and_marks_what_failed(drawings: dict[str, Figure], scene: Scene) -> None:
    axes = drawings["run_order"].axes[0]
    time = timeline_of(scene.runs[0])
    lost = [time.middle(cell) for cell in scene.runs[0].cells if cell.workload == "cnn_train" and cell.outcome == "failed"]
    assert [x for line in lines_of(axes, "x") for x, _ in points(line)] == lost
    assert len(axes.patches) == 3  # blocks 1, 3 and 5 of five
    assert {"block 1", "2", "3", "4", "5"} <= {text.get_text() for text in axes.texts}
    assert "failed" in said(drawings["run_order"])


def timed(*spans: tuple[str | None, float]) -> Run:
    """A run of one arm whose blocks began and lasted so; two of four CPU seconds of the third were others'."""
    run = from_json(saved_run(Made(arms=(STOCK,), blocks=len(spans))), "timed.json")
    cells = [replace(cell, started_utc=begin, duration_s=lasted) for cell, (begin, lasted) in zip(run.cells, spans, strict=True)]
    telemetry = {"cpu_busy_percent_mean": 80.0, "process_cpu_percent_mean": 60.0, "psi_io_some_percent_mean": 7.0}
    cells[2] = replace(cells[2], telemetry=telemetry)
    return replace(run, cells=tuple(cells), machine={**run.machine, "cpu_count": 2})


def test_a_timeline_has_each_cell_at_its_time_without_the_pauses() -> None:
    """The second took turns with the first, so that it stands behind it; a pause of an hour is as long as 2.5 % of the work."""
    begin, later = "2026-11-25T10:00:00+00:00", "2026-11-25T11:00:40+00:00"
    run = timed((begin, 20.0), (begin, 20.0), (later, 40.0), ("2026-11-25T11:01:20+00:00", 20.0))
    time = timeline_of(run)
    assert [time.spans[cell.id] for cell in run.cells] == [(0, 20), (20, 40), (42.5, 82.5), (82.5, 102.5)]
    assert [(left, right) for left, right, _ in time.pauses] == [(40, 42.5)]
    assert time.disturbed == [(42.5, 82.5)], "others used half of the CPUs"
    assert time.ticks == {0: "10:00:00", 20: "10:00:20", 40: "10:00:40", 62.5: "11:01:00", 82.5: "11:01:20"}


def test_a_cell_that_was_run_again_at_the_end_holds_up_no_other() -> None:
    """The second of three ran last."""
    run = timed(("2026-11-25T10:00:00+00:00", 20.0), ("2026-11-25T10:00:40+00:00", 20.0), ("2026-11-25T10:00:20+00:00", 20.0))
    assert [timeline_of(run).spans[cell.id] for cell in run.cells] == [(0, 20), (40, 60), (20, 40)]


def test_a_time_without_a_zone_is_utc_and_no_tick_may_fall_into_cells_far_apart() -> None:
    """Cells of 10 s, five minutes apart: no whole minute is in one, so the first begins a tick."""
    run = timed(*((f"2026-11-25T10:{minute}:10", 10.0) for minute in ("00", "05", "10")))
    time = timeline_of(run)
    assert time.ticks[0] == "10:00:10"
    assert time.label == "time, UTC (25 November 2026)"


@pytest.mark.parametrize("span", [(None, 20.0), ("9999-12-31T23:59:59+00:00", 20.0), ("2026-11-25T10:00:00+00:00", 1e12), ("soon", 20.0)])
def test_cells_of_unknown_times_stand_at_their_place_in_the_order(span: tuple[str | None, float]) -> None:
    run = timed(span, span, span)
    assert [timeline_of(run).middle(cell) for cell in run.cells] == [cell.order for cell in run.cells]


def test_the_foot_of_run_order_shows_what_others_used_and_what_held_up_the_cells() -> None:
    begin = "2026-11-25T10:00:00+00:00"
    figure = run_order.draw(scene_of([timed((begin, 20.0), (begin, 20.0), (begin, 20.0))]))
    assert faults(figure) == []
    others, disk = figure.axes[1:]
    for axes, percent in ((others, 50), (disk, 7)):
        bars = [np.asarray(patch.get_path().vertices) for patch in axes.patches if patch.get_alpha() is None]
        assert max(float(bar[:, 1].max()) for bar in bars) == pytest.approx(percent)
    assert "pause" not in said(figure)


def test_run_order_draws_the_median_of_each_block(drawings: dict[str, Figure], scene: Scene) -> None:
    """Over all tweak sets: what moves it is the machine."""
    values = [
        cell.metrics["throughput_samples_per_s"]
        for name in ("stock", "stock-again", "tcp-cubic", "script", "not-in-force", "bundle")
        for cell in cells(scene, "cnn_train", name)
        if cell.block == 1
    ]
    drawn = [points(line)[0][1] for line in drawings["run_order"].axes[0].lines if line.get_linewidth() == 3]
    assert len(drawn) == 5
    assert drawn[0] == pytest.approx(statistics.median(values))


def test_steps_are_those_of_the_cells_with_warm_up_apart(drawings: dict[str, Figure], scene: Scene) -> None:
    """A dot a step from the first on, in milliseconds; the shade ends between the second and third step; a line follows the median."""
    axes, mine = drawings["steps"].axes[0], cells(scene, "cnn_train", "stock")
    drawn = np.array([points(line) for line in lines_of(axes, "o")])
    wanted = [[(at + 1, 1000 * wall) for at, wall in enumerate(cell.steps.wall_s)] for cell in mine if cell.steps]
    assert drawn == pytest.approx(np.array(wanted))
    shade = axes.patches[0].get_window_extent().transformed(axes.transData.inverted())
    assert (shade.x0, shade.x1) == (pytest.approx(0), pytest.approx(2.5))
    middle = next(line for line in axes.lines if line.get_marker() == "None")
    assert points(middle)[4][1] == pytest.approx(1000 * statistics.median(cell.steps.wall_s[4] for cell in mine if cell.steps))


def test_all_strips_of_a_workload_have_one_scale(drawings: dict[str, Figure]) -> None:
    assert len({axes.get_ylim() for axes in drawings["steps"].axes[:6]}) == 1


def test_the_steps_of_a_long_cell_have_a_trailing_mean() -> None:
    """600 steps: a median over one cell would say nothing, a mean of the last 20 shows the way."""
    scene = scene_of([from_json(saved_run(Made(arms=(STOCK,), blocks=1, steps=598)), "long.json")])
    cell = scene.runs[0].cells[0]
    figure = steps.draw(scene)
    line = next(line for line in figure.axes[0].lines if line.get_marker() == "None")
    assert cell.steps is not None
    assert points(line)[99] == pytest.approx((100, 1000 * statistics.fmean(cell.steps.wall_s[80:100])))
    assert "trailing mean" in said(figure)
