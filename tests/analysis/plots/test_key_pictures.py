"""Pictures of designs over keys draw the effects' numbers and highlight only called verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.plots import fitting, key_effects, parameters, pictures
from analysis.plots.labels import arm_labels
from analysis.plots.scene import Scene, scene_of
from tests import made_designs as designs
from tests import made_effects as made
from tests.analysis.plots.conftest import scene_with
from tests.analysis.plots.reading import faults, lines_of, points, refusal, said
from tests.synthetic import AGAIN, STOCK, Made, saved_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GUILTY, INNOCENT = "vm.swappiness", "vm.dirty_background_ratio"
AGAIN_DIFFERS = {("stock-again", block): 0.08 for block in (1, 2, 3, 4)}
LONG = "a-very-long-name.of-a-key.that-nobody-would-choose.but-somebody-will"
TWELVE = dict.fromkeys(
    (
        GUILTY,
        LONG,
        "net.ipv4.tcp_congestion_control",
        *(f"kernel.key_number_{at}" for at in range(9)),
    ),
    "1",
)


def ablation(gain: float = 0.0, odd: Mapping[tuple[str, int], float] | None = None) -> Scene:
    """An ablation of three keys in four blocks; the first key may be guilty."""
    keys = designs.Keys({GUILTY: gain, INNOCENT: 0.0, "net.core.rmem_max": 0.0}, odd=odd or {})
    how = Made(blocks=4, run_cv=0.004, step_cv=0.005, seed=2)
    return scene_of(
        [from_json(designs.designed("ablation", keys, designs.ablation(3), how), "run.json")]
    )


def marks(axes: Axes) -> list[tuple[float, str, bool]]:
    """Gain in percent, mark, and whether it is filled, from above."""
    drawn = [
        line for line in axes.lines if str(line.get_marker()) in "^vsoDx" and len(points(line)) == 1
    ]
    return [
        (points(line)[0][0], str(line.get_marker()), line.get_markerfacecolor() != "white")
        for line in drawn
    ]


def gains(axes: Axes) -> list[float]:
    return [gain for gain, _, _ in marks(axes)]


# Whole analyses of ablations


@pytest.mark.parametrize(
    ("gain", "odd"),
    [(0.0, {}), (-0.1, {}), (-0.1, AGAIN_DIFFERS)],
    ids=["nothing", "guilty", "copy differs"],
)
def test_what_is_called_in_an_ablation(gain: float, odd: Mapping[tuple[str, int], float]) -> None:
    """Profile and guilty key point down, both ways; nothing does if stock's copy (last) differs."""
    scene = ablation(gain, odd)
    drawn = {name: pictures()[name].draw(scene) for name in ("key_effects", "parameters", "forest")}
    assert {name: faults(figure) for name, figure in drawn.items()} == {name: [] for name in drawn}
    coloured = [
        text for text in drawn["parameters"].axes[0].texts if text.get_fontweight() == "bold"
    ]
    assert bool(coloured) == (gain != 0 and not odd), "in colour only where a set is called"
    rows = marks(drawn["key_effects"].axes[0])
    down = [at for at, (_, mark, filled) in enumerate(rows) if mark == "v" and filled]
    assert down == ([0, 1, 2] if gain and not odd else [])
    check = next(one for one in scene.comparisons if one.untouched)
    assert check.primary is not None
    assert rows[-1][0] == pytest.approx(100 * check.primary.gain)
    assert (rows[-1][1] == "x") == bool(odd)
    assert ("no effect is claimed" in said(drawn["key_effects"]).replace("\n", " ")) == bool(odd)


def test_sets_of_an_ablation_are_called_by_their_keys() -> None:
    scene = ablation()
    called = arm_labels(scene.runs, scene.runs[0].tweaksets)
    assert (called["profile.only-0"], called["profile.no-1"]) == (
        f"{GUILTY} alone",
        f"all but {INNOCENT}",
    )
    assert (called["stock"], called["profile"]) == ("stock", "profile")
    text = said(parameters.draw(scene)).replace("\n", "")
    assert f"{GUILTY} alone" in text
    assert "only-0" not in text


# Made-up effects


def test_twelve_keys_and_endless_names_fit() -> None:
    effects = made.factorial(
        {GUILTY: 0.05, LONG: -0.051},
        keys=TWELVE,
        together={(GUILTY, LONG): -0.102},
        replicated=False,
    )
    quiet = made.factorial({}, workload="w" * 90, replicated=False)
    assert faults(key_effects.draw(scene_with(effects, quiet))) == []


def test_without_a_design_or_effects_there_is_a_reason() -> None:
    scene = scene_of([from_json(saved_run(Made(arms=(STOCK, AGAIN))), "matrix.json")])
    assert "key_effects" not in fitting(scene.runs)
    assert "decomposed no tweak set" in refusal(key_effects, scene)
    refused = replace(made.factorial({}), terms=(), levels=(), refusal="every cell failed.")
    assert refusal(key_effects, scene_with(refused)) == "every cell failed"


def test_each_key_stands_where_its_gain_is_the_strongest_above() -> None:
    """Labelled with its value; eleven inactive keys alone would make the axis too short."""
    effects = made.factorial(
        {GUILTY: 0.02, "vm.dirty_ratio": -0.1}, keys={GUILTY: "60", "vm.dirty_ratio": "40"}
    )
    figure = key_effects.draw(scene_with(effects))
    mains = sorted(
        (one for one in effects.terms if one.means == "main"), key=lambda one: -abs(one.effect)
    )
    assert gains(figure.axes[0])[: len(mains)] == [
        pytest.approx(100 * math.expm1(one.effect)) for one in mains
    ]
    intervals = [
        [x for x, _ in points(line)]
        for line in figure.axes[0].lines
        if line.get_linewidth() == 1.6 and len(points(line)) == 2
    ]
    assert intervals[0] == pytest.approx([100 * math.expm1(-0.121), 100 * math.expm1(-0.079)])
    assert {"vm.swappiness=60", "vm.dirty_ratio=40"} <= set(said(figure).split("\n"))
    axes = key_effects.draw(
        scene_with(made.factorial({GUILTY: -0.7}, keys=TWELVE, design="file"))
    ).axes[0]
    assert axes.get_xlim()[0] < min(gains(axes)) == pytest.approx(100 * math.expm1(-0.7))


def test_an_ablation_pairs_both_ways_of_a_key_below_the_profile() -> None:
    """A lost way has no mark, but a reason below."""
    figure = key_effects.draw(
        scene_with(made.ablation({GUILTY: -0.1, "vm.dirty_ratio": 0.04}, {GUILTY: -0.02}))
    )
    assert gains(figure.axes[0])[:4] == [
        pytest.approx(100 * math.expm1(log), abs=0.7) for log in (-0.06, -0.1, -0.02, 0.04)
    ]
    assert [
        line.split(" ")[0]
        for line in said(figure).split("\n")
        if line.startswith(("in profile", "alone"))
    ] == ["in", "alone"] * 4
    lost = key_effects.draw(
        scene_with(made.ablation({GUILTY: -0.1}, {}, missing=[("alone", GUILTY)]))
    )
    assert len(gains(lost.axes[0])) == len(gains(figure.axes[0])) - 1
    assert f"Lost: tuned.only-{GUILTY}" in said(lost)


def test_interactions_are_below_the_keys() -> None:
    scene = scene_with(made.factorial({}, together={(GUILTY, "vm.dirty_ratio"): -0.2}))
    figure = key_effects.draw(scene)
    assert gains(figure.axes[0])[4] == pytest.approx(100 * math.expm1(-0.2))
    assert {"interacts", "vm.swappiness ×"} <= set(said(figure).split("\n"))
