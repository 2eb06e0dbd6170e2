"""Pictures of designs over keys draw the effects' numbers and highlight only called verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.plots import fitting, key_effects, pictures
from analysis.plots.scene import Scene, scene_of
from tests.analysis.plots.reading import faults, points, refusal, said
from tests.made_designs import Keys, On, ablation, designed, factorial, fraction
from tests.synthetic import AGAIN, STOCK, Made, saved_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GUILTY, INNOCENT, OTHER = "vm.swappiness", "vm.dirty_background_ratio", "net.core.rmem_max"
AGAIN_DIFFERS = {("stock-again", block): 0.08 for block in (1, 2, 3, 4)}
LONG = "a-very-long-name.of-a-key.that-nobody-would-choose.but-somebody-will"
# Twelve keys in sixteen runs: four base keys, the rest products of them.
SIXTEEN = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (0, 1, 2), (1, 2, 3))


def scene_with(kind: str, keys: Keys, sets: Mapping[str, On], blocks: int = 4) -> Scene:
    how = Made(blocks=blocks, run_cv=0.004, step_cv=0.005, seed=2)
    return scene_of([from_json(designed(kind, keys, sets, how), "run.json")])


def ablated(gain: float = 0.0, odd: Mapping[tuple[str, int], float] | None = None) -> Scene:
    """An ablation of three keys in four blocks; the first key may be guilty."""
    keys = Keys({GUILTY: gain, INNOCENT: 0.0, OTHER: 0.0}, odd=odd or {})
    return scene_with("ablation", keys, ablation(3))


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


@pytest.mark.parametrize(
    ("gain", "odd"),
    [(0.0, {}), (-0.1, {}), (-0.1, AGAIN_DIFFERS)],
    ids=["nothing", "guilty", "copy differs"],
)
def test_what_is_called_in_an_ablation(gain: float, odd: Mapping[tuple[str, int], float]) -> None:
    """Profile and guilty key point down, both ways; nothing does if stock's copy (last) differs."""
    scene = ablated(gain, odd)
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


def test_twelve_keys_and_endless_names_fit() -> None:
    keys = Keys({GUILTY: 0.05, LONG: -0.051, **{f"kernel.key_{at}": 0.0 for at in range(10)}})
    assert faults(key_effects.draw(scene_with("file", keys, fraction(4, *SIXTEEN), 2))) == []


def test_without_a_design_there_is_a_reason() -> None:
    scene = scene_of([from_json(saved_run(Made(arms=(STOCK, AGAIN))), "matrix.json")])
    assert "key_effects" not in fitting(scene.runs)
    assert "decomposed no tweak set" in refusal(key_effects, scene)


def test_keys_stand_at_their_gains_and_interactions_below() -> None:
    """The strongest key first, labelled with its value; intervals are those of the effects."""
    keys = Keys({GUILTY: 0.02, INNOCENT: -0.1, OTHER: 0.0}, together={(GUILTY, OTHER): -0.05})
    scene = scene_with("factorial", keys, factorial(3))
    (effects,) = scene.effects["run.json"]
    figure = key_effects.draw(scene)
    ordered = sorted(effects.terms, key=lambda one: (one.means != "main", -abs(one.effect)))
    terms = [one for one in ordered if one.means in {"main", "interaction"}]
    assert gains(figure.axes[0])[: len(terms)] == [pytest.approx(100 * one.gain) for one in terms]
    intervals = [
        tuple(x for x, _ in points(line))
        for line in figure.axes[0].lines
        if line.get_linewidth() == 1.6 and len(points(line)) == 2
    ]
    assert intervals[: len(terms)] == [
        pytest.approx((100 * one.gain_low, 100 * one.gain_high)) for one in terms
    ]
    assert {f"{GUILTY}=1", f"{GUILTY} ×", "interacts"} <= set(said(figure).split("\n"))


def test_a_lost_way_of_a_key_has_no_mark_but_a_reason() -> None:
    broken = {("profile.only-0", block): ("failed", "gone") for block in range(1, 5)}
    keys = Keys({GUILTY: -0.1, INNOCENT: 0.0, OTHER: 0.0}, broken=broken)
    figure = key_effects.draw(scene_with("ablation", keys, ablation(3)))
    whole = key_effects.draw(ablated(-0.1))
    assert len(gains(figure.axes[0])) == len(gains(whole.axes[0])) - 1
    assert f"Cannot be judged: {GUILTY} alone" in said(figure).replace("\n", " ")
