"""Pictures of alternating arms: settings switched inside a process, and arms that take turns."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import Any

import pytest

from analysis.load import from_json
from analysis.plots import alternation, fitting, switching, turns
from analysis.plots.scene import Scene, panels_of, scene_of
from tests.analysis.plots.reading import faults, lines_of, points, refusal
from tests.made_switched import Switched, switched_run
from tests.synthetic import AGAIN, STOCK, Arm, Made, in_turns, saved_run

THP = Arm("thp-always", gain=0.06, requested={"vm.x": "1"})


def switched(**made: Any) -> Scene:
    return scene_of([from_json(switched_run(Switched(**made)), "switched.json")])


def test_steps_stand_where_they_ran_in_the_colour_of_their_arm() -> None:
    scene = switched(arms=(AGAIN, THP), processes=1, pairs=4, steps=5, stalled=0.0)
    figure = switching.draw(scene)
    assert faults(figure) == []
    assert set(fitting(scene.runs)) >= {"switching", "forest"}
    strip = figure.axes[2]  # of thp-always; the first two are stock-again's
    cell = next(cell for cell in scene.runs[0].cells if cell.tweakset == "thp-always")
    medians = [line for line in strip.lines if line.get_linewidth() == 1.8]
    assert len(medians) == len(cell.segments) == 8
    for line, segment in zip(medians, cell.segments, strict=True):
        assert segment.steps
        assert points(line)[0][1] == pytest.approx(
            1000 * statistics.median(segment.steps.wall_s[segment.steps.warmup :])
        )
        assert (line.get_color() == alternation.UNDER) == (segment.tweakset == "thp-always")


def test_each_pair_is_a_gain_with_the_interval_of_all_behind() -> None:
    scene = switched(arms=(THP,), processes=2, pairs=6, stalled=0.0)
    axes = switching.draw(scene).axes[2]
    effect = next(one.primary for one in scene.comparisons if one.tweakset == "thp-always")
    assert effect
    gains = [y for line in lines_of(axes, "D") for _, y in points(line)]
    assert len(gains) == 12
    mean = math.expm1(statistics.fmean(math.log1p(gain / 100) for gain in gains))
    assert mean == pytest.approx(effect.gain, rel=0.02)
    band = [one.get_window_extent().transformed(axes.transData.inverted()) for one in axes.patches][
        1
    ]
    assert (band.y0, band.y1) == (pytest.approx(100 * effect.low), pytest.approx(100 * effect.high))


def test_a_pair_that_a_stall_struck_is_marked_at_the_edge() -> None:
    """It does not squash the others."""
    scene = switched(arms=(THP,), processes=1, stalled=0.02, seed=3)
    axes = switching.draw(scene).axes[1]
    panel = panels_of(scene)[0]
    gains = [100 * gain for gain in alternation.pair_gains(panel.cells, panel.metric, "stock")[0]]
    beyond = [gain for gain in gains if abs(gain) > axes.get_ylim()[1]]
    assert (
        len(beyond) == sum(len(points(line)) for mark in "v^" for line in lines_of(axes, mark)) > 0
    )


TURNS = Made(
    arms=(STOCK, AGAIN, Arm("mine", requested={"vm.swappiness": "1"})),
    blocks=6,
    baseline=("stock", "stock-again"),
)
SLOW = 5.0


def test_a_strip_is_of_the_block_whose_rounds_differ_most() -> None:
    """In block 4 the second of three rounds takes five times as long under every arm."""
    saved = saved_run(TURNS)
    for record in (
        one["extra_info"] for one in saved["benchmarks"] if one["extra_info"]["block"] == 4
    ):
        record["steps"]["wall_s"][6:10] = [SLOW * one for one in record["steps"]["wall_s"][6:10]]
        record["metrics"] = {}
    scene = scene_of([from_json(in_turns(saved), "turns.json")])
    strip = alternation.strip_of(panels_of(scene)[0])
    assert strip is not None
    assert (strip.block, strip.blocks, list(strip.lanes)) == (
        4,
        6,
        ["stock", "stock-again", "mine"],
    )
    for lane in strip.lanes.values():
        assert [one.slowness for one in lane] == pytest.approx([1, SLOW, 1], rel=0.1)
    every = sorted(one for lane in strip.lanes.values() for one in lane)
    assert every[0].begin_s == 0
    assert [one.end_s for one in every[:-1]] == pytest.approx([one.begin_s for one in every[1:]]), (
        "no pause between slices"
    )
    figure = turns.draw(scene)
    assert faults(figure) == []
    heights = [
        at + 0.5 - y
        for at, lane in enumerate(figure.axes[0].patches)
        for _, y in lane.get_xy()[1:12:4]  # type: ignore[attr-defined]
    ]
    assert heights == pytest.approx([0.45, alternation.ROOM, 0.45] * 3, rel=0.1), (
        "no higher than its lane"
    )


def test_only_runs_in_turns_with_saved_times_have_a_strip() -> None:
    whole, took = (
        from_json(saved, "run.json") for saved in (saved_run(TURNS), in_turns(saved_run(TURNS)))
    )
    assert ("turns" in fitting([whole]), "turns" in fitting([took])) == (False, True)
    silent = replace(took, cells=tuple(replace(cell, slice_starts_s=()) for cell in took.cells))
    assert "does not record their times" in refusal(turns, scene_of([silent]))
