"""The strip of a block whose arms took turns, and the course of each estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from analysis.compare import compare
from analysis.load import from_json
from analysis.plots import alternation, confidence, convergence, fitting, sensitivity, turns
from analysis.plots.scene import panels_of, scene_of
from tests.analysis.plots.reading import faults, lines_of, points, refusal, said
from tests.synthetic import AGAIN, STOCK, Arm, Made, in_turns, saved_run

MADE = Made(arms=(STOCK, AGAIN, Arm("mine", requested={"vm.swappiness": "1"})), blocks=6, baseline=("stock", "stock-again"))
SLOW = 5.0


def test_a_strip_is_of_the_block_whose_rounds_differ_most() -> None:
    """In block 4 the second of three rounds takes five times as long under every arm."""
    saved = saved_run(MADE)
    for record in (one["extra_info"] for one in saved["benchmarks"] if one["extra_info"]["block"] == 4):
        record["steps"]["wall_s"][6:10] = [SLOW * one for one in record["steps"]["wall_s"][6:10]]
        record["metrics"] = {}
    scene = scene_of([from_json(in_turns(saved), "turns.json")])
    (panel,) = panels_of(scene)
    strip = alternation.strip_of(panel)
    assert strip is not None
    assert (strip.block, strip.blocks, list(strip.lanes)) == (4, 6, ["stock", "stock-again", "mine"])
    for lane in strip.lanes.values():
        assert [one.slowness for one in lane] == pytest.approx([1, SLOW, 1], rel=0.1)
    every = sorted(one for lane in strip.lanes.values() for one in lane)
    assert every[0].begin_s == 0
    assert [one.end_s for one in every[:-1]] == pytest.approx([one.begin_s for one in every[1:]])  # no pause between slices
    figure = turns.draw(scene)
    assert faults(figure) == []
    (axes,) = figure.axes
    bars = [patch.get_height() for patch in axes.patches if isinstance(patch, Rectangle)]
    assert len(bars) == 9
    assert sum(bar == pytest.approx(-alternation.ROOM) for bar in bars) == 3  # no higher than its lane


def test_only_runs_that_took_turns_have_a_strip_and_only_where_the_file_says_when() -> None:
    whole, took = (from_json(saved, "run.json") for saved in (saved_run(MADE), in_turns(saved_run(MADE))))
    assert "turns" not in fitting([whole])
    assert "turns" in fitting([took])
    silent = replace(took, cells=tuple(replace(cell, slice_starts_s=()) for cell in took.cells))
    assert "does not say when" in refusal(turns, scene_of([silent]))


def test_a_course_ends_at_the_verdict_and_begins_at_three_blocks() -> None:
    """By hand: the first point is the mean of the first three log ratios."""
    run = from_json(saved_run(MADE), "run.json")
    (mine,) = (one for one in compare(run) if one.tweakset == "mine")
    assert mine.primary is not None
    course = confidence.running(mine.primary, mine.margin)
    assert [effect.n_baseline for effect in course] == [3, 4, 5, 6]
    assert course[-1] == mine.primary
    ratios = np.log(np.array(mine.primary.values_candidate) / np.array(mine.primary.values_baseline))
    assert course[0].gain == pytest.approx(np.expm1(ratios[:3].mean()))
    scene = scene_of([run])
    figure = convergence.draw(scene)
    assert faults(figure) == []
    (axes,) = figure.axes  # the guard between the two stocks is no estimate
    assert np.asarray(axes.lines[3].get_ydata()).tolist() == pytest.approx([100 * effect.gain for effect in course])
    assert "has more than 3 blocks" in refusal(convergence, scene_of([from_json(saved_run(replace(MADE, blocks=3)), "short.json")]))


def test_equal_arms_that_differ_are_seen_beside_the_margin() -> None:
    """A copy of stock that is 20 % faster is not equal, and one that is not faster is: the square is the gain of the one over the other."""
    words = {}
    for gain in (0.0, 0.2):
        run = from_json(saved_run(replace(MADE, arms=(STOCK, replace(AGAIN, gain=gain), *MADE.arms[2:]), blocks=12)), "run.json")
        (equal,) = (comparison for comparison in compare(run) if comparison.untouched)
        figure = sensitivity.draw(scene_of([run]))
        assert faults(figure) == []
        assert equal.primary is not None
        (square,) = (points(line)[0] for line in lines_of(figure.axes[-1], "s"))
        assert square[0] == pytest.approx(100 * equal.primary.gain)
        words[gain] = {"differ", "same", "can't tell"} & set(said(figure).splitlines())
    assert "differ" not in words[0.0]
    assert "differ" in words[0.2]
