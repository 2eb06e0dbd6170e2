"""Pictures of designs that are no grid of points: bisection, a search, and settings switched inside a process."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from matplotlib.patches import Rectangle

from analysis.load import from_json
from analysis.plots import alternation, bisection, fitting, switching, trials
from analysis.plots.adaptive import search_of
from analysis.plots.scene import Scene, panels_of, scene_of
from analysis.terms import Design, Factor
from tests.analysis.plots.reading import faults, lines_of, points, refusal, said
from tests.made_switched import Switched, switched_run
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

KEYS = ("net.ipv4.tcp_congestion_control", "vm.swappiness", "script:set-transparent-hugepages", "vm.dirty_ratio")
GUILTY = KEYS[0]


def bisected(cells: Sequence[tuple[set[str], float | None]], beliefs: Sequence[float], text: str = "It is the first key.") -> Scene:
    """A run of `--design=bisect`: cells by fours in blocks, the last block confirms; the belief in the first key after each cell."""
    conclusion: dict[str, Any] = {
        "text": text,
        "done": True,
        "cells": [
            {
                "order": at + 1,
                "name": f"tuned.t{at + 1:02}",
                "block": at // 4 + 1,
                "keys": sorted(keys),
                "stage": "confirmation" if at // 4 == (len(cells) - 1) // 4 else "search",
                "cost": cost,
            }
            for at, (keys, cost) in enumerate(cells)
        ],
        "belief": [
            {"cell": at + 1, "none": (1 - belief) / 2, "keys": {key: belief if key == GUILTY else (1 - belief) / 8 for key in KEYS}}
            for at, belief in enumerate(beliefs)
        ],
    }
    run = from_json(saved_run(Made(arms=(STOCK, AGAIN))), "bisected.json")
    factors = tuple(Factor("tuned", key, "sysctl", (None, "1")) for key in KEYS)
    design = Design(1, 2, None, (), "bisect", factors, conclusion=conclusion)
    return Scene((replace(run, design=design),))


TRIED: list[tuple[set[str], float | None]] = [
    (set(), 0.10),
    (set(KEYS), 0.12),
    ({GUILTY, KEYS[1]}, 0.12),
    (set(KEYS[2:]), 0.10),
    ({GUILTY}, 0.12),
    (set(KEYS[1:]), 0.10),
    (set(KEYS), None),
    (set(), 0.10),
]
MOVED = [0.1, 0.1, 0.5, 0.9, 0.95, 0.97, 0.97, 0.98]


def test_a_bisection_shows_which_keys_were_set_in_which_cell_and_how_fast_it_was() -> None:
    """Slower cells are orange, faster ones blue; the key that is in every slow cell stands above, a failed cell is grey."""
    figure = bisection.draw(bisected(TRIED, MOVED))
    assert faults(figure) == []
    speed, grid, _ = figure.axes
    squares = [one for one in grid.patches if isinstance(one, Rectangle) and round(one.get_height(), 2) == 0.84]
    assert {round(one.get_x() + 0.44) for one in squares if one.get_y() < 1} == {2, 3, 5, 7}
    assert len(squares) == sum(len(keys) for keys, _ in TRIED)
    mean = statistics.fmean(math.log(cost) for _, cost in TRIED[:4] if cost)
    dots = points(lines_of(speed, "o")[0])
    assert dots[1] == pytest.approx((2, 100 * math.expm1(math.log(0.12) - mean)))
    assert [x for x, _ in points(lines_of(speed, "x")[0])] == [7]
    assert [one.get_text() for one in speed.texts] == ["searching", "confirming"]


def test_the_belief_after_each_cell_is_a_line_of_the_most_suspected() -> None:
    axes = bisection.draw(bisected(TRIED, MOVED)).axes[2]
    lines = [[y for _, y in points(line)] for line in lines_of(axes, "o")]
    assert lines[-1] == pytest.approx(MOVED)
    assert [y for _, y in points(next(line for line in axes.lines if line.get_linewidth() == 1.4))] == pytest.approx(
        [(1 - one) / 2 for one in MOVED]
    )


def test_a_conclusion_of_another_version_is_refused_not_guessed() -> None:
    scene = bisected(TRIED, MOVED[:3])
    run = scene.runs[0]
    none = Scene((replace(run, design=replace(run.design, conclusion={})),))
    other = Scene((from_json(saved_run(Made()), "matrix.json"),))
    assert "does not say which cells" in refusal(bisection, scene)
    assert "before its design came to any conclusion" in refusal(bisection, none)
    assert "--design=bisect" in refusal(bisection, other)


# A search: every cell it tried, and for each candidate what was promised beside what was confirmed

SEARCHED = ("net.ipv4.tcp_congestion_control", "script:set-transparent-hugepages", "vm.dirty_background_ratio")
Levels = dict[str, "str | None"]
AS_FOUND: Levels = dict.fromkeys(SEARCHED)
FIRST: Levels = {**AS_FOUND, SEARCHED[0]: "bbr"}
SECOND: Levels = {**FIRST, SEARCHED[1]: "run"}


def searched(exploring: int = 42, **changed: object) -> Scene:
    """A search that was lucky once: its first candidate looked 20 % faster at the fifth cell and came to 5 % when run again six times."""
    cells = [{"name": "stock", "levels": AS_FOUND, "stage": "exploration", "cost": 0.1}]
    cells += [
        {"name": f"tuned.t{at:02}", "levels": {**AS_FOUND, SEARCHED[2]: str(at)}, "stage": "exploration", "cost": 0.1 + 0.001 * (at % 7)}
        for at in range(1, exploring)
    ]
    cells[4] = {"name": "tuned.t04", "levels": FIRST, "stage": "exploration", "cost": 0.08}
    cells[7]["cost"] = None
    cells[9] = {**cells[4], "cost": 0.11}
    for _ in range(6):
        cells += [
            {"name": name, "levels": levels, "stage": "confirmation", "cost": cost}
            for name, levels, cost in (("tuned.c1", FIRST, 0.095), ("stock", AS_FOUND, 0.1), ("tuned.c2", SECOND, 0.101))
        ]
    conclusion: dict[str, Any] = {
        "text": "tuned.c1 beats stock.",
        "done": True,
        "cells": [{"order": at, "block": 1, **cell} for at, cell in enumerate(cells, 1)],
        "candidates": [
            {"name": "tuned.c1", "levels": FIRST, "predicted": -0.12, "confirmed": {"change": -0.05, "low": -0.08, "high": -0.02}},
            {"name": "tuned.c2", "levels": SECOND, "predicted": None, "confirmed": None},
        ],
        **changed,
    }
    run = from_json(saved_run(Made()), "searched.json")
    factors = tuple(Factor("tuned", key, "sysctl", (None, "1")) for key in SEARCHED)
    return Scene((replace(run, design=Design(1, 2, None, (), "search", factors, conclusion=conclusion)),))


def test_sixty_cells_stand_in_the_order_they_ran_and_the_stages_apart() -> None:
    figure = trials.draw(searched())
    assert faults(figure) == []
    axes = figure.axes[0]
    tried = next(points(line) for line in lines_of(axes, "o") if len(points(line)) > 12)
    assert [x for x, _ in tried] == [at for at in range(1, 43) if at != 8]
    assert tried[4] == pytest.approx((5, -20.0))
    assert [x for x, _ in points(lines_of(axes, "x")[0])] == [8]
    assert [x for line in lines_of(axes, "s") for x, _ in points(line)] == [5, 10, *range(43, 61, 3)]
    best = next(points(line) for line in axes.lines if line.get_drawstyle() == "steps-post")
    assert [y for _, y in best] == pytest.approx([0.0] * 4 + [-20.0] * 37)


def test_what_was_seen_while_exploring_stands_beside_what_was_confirmed() -> None:
    """The winner's curse: -20 % in its luckiest cell, -12 % expected, -5 % when it was run again."""
    figure = trials.draw(searched())
    axes = figure.axes[1]
    assert [points(lines_of(axes, mark)[0])[0][0] for mark in "xDs"] == [pytest.approx(one) for one in (-20.0, -12.0, -5.0)]
    assert len(lines_of(axes, "x")) == 1, "the second was first run to confirm it"
    interval = next(line for line in axes.lines if line.get_linewidth() == 1.8)
    assert [x for x, _ in points(interval)] == pytest.approx([-8.0, -2.0])


def test_the_mean_of_each_arm_lies_over_the_confirming_cells() -> None:
    axes = trials.draw(searched()).axes[0]
    means = [points(line)[0][1] for line in axes.lines if line.get_linewidth() == 2.0]
    assert sorted(means) == pytest.approx([-5.0, 0.0, 1.0])


def test_stock_is_the_mean_of_all_its_cells() -> None:
    scene = searched(exploring=12)
    story = search_of(scene.runs[0])
    assert story is not None
    logs = [cell.log for cell in story.cells if cell.levels == AS_FOUND and cell.log is not None]
    assert statistics.fmean(logs) == pytest.approx(0.0)
    assert story.cells[4].log == pytest.approx(math.log(0.8))


def test_a_search_that_was_interrupted_has_no_candidates() -> None:
    scene = searched()
    conclusion = {**scene.runs[0].design.conclusion, "candidates": [], "text": "Nothing is claimed for tuned: 20 of 60 cells done."}
    conclusion["cells"] = list(conclusion["cells"])[:20]  # type: ignore[call-overload]  # a list
    figure = trials.draw(Scene((replace(scene.runs[0], design=replace(scene.runs[0].design, conclusion=conclusion)),)))
    assert faults(figure) == []
    assert len(figure.axes) == 1
    assert "Nothing is claimed" in said(figure)


# Settings switched inside a process

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
        wanted = 1000 * statistics.median(segment.steps.wall_s[segment.steps.warmup :])
        assert points(line)[0][1] == pytest.approx(wanted)
        assert (line.get_color() == alternation.UNDER) == (segment.tweakset == "thp-always")


def test_each_pair_is_a_gain_with_the_interval_of_all_behind() -> None:
    scene = switched(arms=(THP,), processes=2, pairs=6, stalled=0.0)
    figure = switching.draw(scene)
    axes = figure.axes[2]
    said_of = next(one for one in scene.comparisons if one.tweakset == "thp-always")
    assert said_of.primary
    gains = [y for line in lines_of(axes, "D") for _, y in points(line)]
    assert len(gains) == 12
    assert 100 * math.expm1(statistics.fmean(math.log1p(gain / 100) for gain in gains)) == pytest.approx(
        100 * said_of.primary.gain, rel=0.02
    )
    band = [one.get_window_extent().transformed(axes.transData.inverted()) for one in axes.patches][1]
    assert (band.y0, band.y1) == (pytest.approx(100 * said_of.primary.low), pytest.approx(100 * said_of.primary.high))


def test_a_pair_that_a_stall_struck_does_not_squash_the_others() -> None:
    """It is marked at the edge."""
    scene = switched(arms=(THP,), processes=1, stalled=0.02, seed=3)
    axes = switching.draw(scene).axes[1]
    panel = panels_of(scene)[0]
    gains = [100 * gain for gain in alternation.pair_gains(panel.cells, panel.metric, "stock")[0]]
    beyond = [gain for gain in gains if abs(gain) > axes.get_ylim()[1]]
    assert len(beyond) == sum(len(points(line)) for mark in "v^" for line in lines_of(axes, mark)) > 0
