"""The strip of a block whose arms took turns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.load import from_json
from analysis.plots import alternation, fitting, turns
from analysis.plots.scene import panels_of, scene_of
from tests.analysis.plots.reading import faults, refusal
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
    heights = [at + 0.5 - y for at, lane in enumerate(axes.patches) for _, y in lane.get_xy()[1:12:4]]  # type: ignore[attr-defined]
    assert heights == pytest.approx([0.45, alternation.ROOM, 0.45] * 3, rel=0.1), "no higher than its lane"


def test_only_runs_that_took_turns_have_a_strip_and_only_where_the_file_says_when() -> None:
    whole, took = (from_json(saved, "run.json") for saved in (saved_run(MADE), in_turns(saved_run(MADE))))
    assert "turns" not in fitting([whole])
    assert "turns" in fitting([took])
    silent = replace(took, cells=tuple(replace(cell, slice_starts_s=()) for cell in took.cells))
    assert "does not say when" in refusal(turns, scene_of([silent]))
