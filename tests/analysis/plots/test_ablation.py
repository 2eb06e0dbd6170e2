"""Pictures of an ablation as a new user reads them: nothing looks found that no verdict calls, and an odd cell has a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.plots import key_effects, pictures, run_order
from analysis.plots.labels import arm_labels
from analysis.plots.runs import Order, outlying_cells
from analysis.plots.scene import Scene, scene_of
from tests import made_designs as designs
from tests.analysis.plots.reading import faults, points, said
from tests.synthetic import Made

if TYPE_CHECKING:
    from matplotlib.axes import Axes


GUILTY, INNOCENT = "vm.swappiness", "vm.dirty_background_ratio"
ONE_BAD = {("stock", 1): -0.3}
AGAIN_DIFFERS = {("stock-again", block): 0.08 for block in (1, 2, 3, 4)}


def scene(gain: float = 0.0, odd: Mapping[tuple[str, int], float] | None = None, **made: object) -> Scene:
    """An ablation of three keys in four blocks, the first of which may be guilty."""
    keys = designs.Keys({GUILTY: gain, INNOCENT: 0.0, "net.core.rmem_max": 0.0}, odd=odd or {})
    how = replace(Made(blocks=4, run_cv=0.004, step_cv=0.005, seed=2), **made)  # type: ignore[arg-type]  # fields of `Made`
    return scene_of([from_json(designs.designed("ablation", keys, designs.ablation(3), how), "run.json")])


@pytest.mark.parametrize(("gain", "odd"), [(0.0, {}), (-0.1, {}), (-0.1, AGAIN_DIFFERS)], ids=["nothing", "guilty", "copy differs"])
def test_what_is_called_in_an_ablation(gain: float, odd: Mapping[tuple[str, int], float]) -> None:
    """Colour stands only where a set is called; never where the copy of stock differs."""
    made = scene(gain, odd)
    assert made.effects["run.json"][0].again_fails == bool(odd)
    drawn = {name: pictures()[name].draw(made) for name in ("key_effects", "parameters", "forest")}
    assert {name: faults(figure) for name, figure in drawn.items()} == {name: [] for name in drawn}
    called = [text for text in drawn["parameters"].axes[0].texts if text.get_fontweight() == "bold"]
    assert bool(called) == (gain != 0 and not odd), "in colour only where a set is called"


# Effect of each key


def marks(axes: Axes) -> list[tuple[float, str, bool]]:
    """Gain in percent, mark, and whether it is filled, from above: the profile, three keys in it and alone, the copy of stock."""
    drawn = [line for line in axes.lines if str(line.get_marker()) in "^vsoDx" and len(points(line)) == 1]
    return [(points(line)[0][0], str(line.get_marker()), line.get_markerfacecolor() != "white") for line in drawn]


def test_what_is_not_called_points_nowhere_however_large_it_is() -> None:
    """One bad cell of stock makes every key alone look 9 % faster; no verdict calls any, and so does no mark."""
    drawn = marks(key_effects.draw(scene(0.0, ONE_BAD)).axes[0])
    assert max(gain for gain, _, _ in drawn) > 8
    assert not {"^", "v"} & {mark for _, mark, _ in drawn}


def test_what_is_called_points_downwards_and_is_filled() -> None:
    drawn = marks(key_effects.draw(scene(-0.1)).axes[0])
    assert [at for at, (_, mark, filled) in enumerate(drawn) if mark == "v" and filled] == [0, 1, 2], "the profile, and the key both ways"


@pytest.mark.parametrize("gain", [0.0, -0.1])
def test_the_copy_of_stock_is_always_shown_below_the_keys(gain: float) -> None:
    made = scene(gain)
    check = next(one for one in made.comparisons if one.untouched)
    assert check.primary is not None
    figure = key_effects.draw(made)
    assert "stock-again" in said(figure)
    assert marks(figure.axes[0])[-1][0] == pytest.approx(100 * check.primary.gain)


def test_where_the_copy_of_stock_differs_nothing_is_called() -> None:
    figure = key_effects.draw(scene(-0.1, AGAIN_DIFFERS))
    drawn = marks(figure.axes[0])
    assert not {"^", "v"} & {mark for _, mark, _ in drawn}
    assert drawn[-1][1] == "x"
    assert "no effect is called" in said(figure).replace("\n", " ")


# Parameters, and the others that show whole sets


def test_sets_of_an_ablation_are_called_by_their_keys() -> None:
    made = scene(odd=ONE_BAD)
    names = [*made.runs[0].tweaksets]
    called = arm_labels(made.runs, names)
    assert called["profile.only-0"] == f"{GUILTY} alone"
    assert called["profile.no-1"] == f"all but {INNOCENT}"
    assert (called["stock"], called["profile"]) == ("stock", "profile")
    assert len(set(called.values())) == len(names)
    for name in ("parameters", "forest"):
        figure = pictures()[name].draw(made)
        assert (name, faults(figure)) == (name, [])
        text = said(figure).replace("\n", "")
        assert f"{GUILTY} alone" in text
        assert "only-0" not in text


# Every cell in the order it ran


def test_a_cell_that_went_wrong_is_ringed_and_named() -> None:
    made = scene(0.0, ONE_BAD)
    bad = next(cell for cell in made.runs[0].cells if (cell.tweakset, cell.block) == ("stock", 1))
    figure = run_order.draw(made)
    rings = [points(line)[0] for line in figure.axes[0].lines if line.get_markersize() == 10 and points(line)]
    assert len(rings) == 1
    assert rings[0] == pytest.approx((Order(made.runs[0]).place[bad.id], bad.metrics["throughput_samples_per_s"]))
    assert "stock in block 1 (\N{MINUS SIGN}" in said(figure).replace("\n", " ")
    assert "far from" not in said(run_order.draw(scene()))


def test_a_guilty_key_and_a_slow_block_are_no_outlying_cells() -> None:
    slow = {(name, 2): -0.2 for name in ("stock", "stock-again", *designs.ablation(3))}
    made = scene(-0.3, slow)
    assert outlying_cells(made.runs[0].cells, "throughput_samples_per_s") == []


def test_of_two_sets_nobody_knows_which_is_odd() -> None:
    made = scene(0.0, ONE_BAD)
    two = [cell for cell in made.runs[0].cells if cell.tweakset in {"stock", "stock-again"}]
    assert outlying_cells(two, "throughput_samples_per_s") == []
