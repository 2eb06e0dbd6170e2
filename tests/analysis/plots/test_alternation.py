"""Picture of settings switched inside a process."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest

from analysis.load import from_json
from analysis.plots import alternation, fitting, switching
from analysis.plots.scene import Scene, panels_of, scene_of
from tests.analysis.plots.reading import faults, lines_of, points
from tests.made_switched import Switched, switched_run
from tests.synthetic import AGAIN, Arm

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
