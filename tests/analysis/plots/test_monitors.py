"""Pictures of monitors: drawn from runs whose truth is known, and no picture of runs that had none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.plots import fitting, overhead_forest, overhead_share, pictures
from analysis.plots.scene import Scene, scene_of
from tests.analysis.plots.reading import faults, lines_of, points, refusal, said
from tests.made_monitoring import MONITORS, PLACEBO, PROFILE, SAMPLER, MadeMonitoring, Monitor, monitored_run
from tests.synthetic import saved_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("overhead_forest", "overhead_share")
NSYS = Monitor("nsys", "around", broken=dict.fromkeys(range(1, 9), ("skipped", "no nsys in PATH")))


def scene_with(made: MadeMonitoring) -> Scene:
    return scene_of([from_json(monitored_run(made), "made.json")])


@pytest.fixture(scope="module")
def scene() -> Scene:
    return scene_with(MadeMonitoring(monitors=(*MONITORS, NSYS), blocks=8, workloads=("python_loop", "cnn_train")))


@pytest.fixture(scope="module")
def drawings(scene: Scene) -> dict[str, Figure]:
    return {name: pictures()[name].draw(scene) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut_and_nothing_lies_over_anything_else(drawings: dict[str, Figure], name: str) -> None:
    assert faults(drawings[name]) == []


def test_runs_without_monitors_miss_none_of_them() -> None:
    assert not set(NAMES) & fitting([from_json(saved_run(), "made.json")]).keys()


def test_runs_with_monitors_have_all_of_them(scene: Scene) -> None:
    assert set(NAMES) <= fitting(scene.runs).keys()


def test_dear_and_cheap_monitors_stand_apart_on_one_scale(drawings: dict[str, Figure]) -> None:
    """0.1 % and 60 % are read in one picture: the axis is linear to 1 % and logarithmic beyond."""
    axes = drawings["overhead_forest"].axes[0]
    assert axes.get_xscale() == "symlog"
    (dear,) = [x for line in lines_of(axes, "^") for x, _ in points(line) if x > 40]
    cheap = min(x for line in lines_of(axes, "s") for x, _ in points(line))
    place = axes.transData.transform
    low, high = axes.get_xlim()
    wide = place((high, 0))[0] - place((low, 0))[0]
    assert dear == pytest.approx(60, abs=1)
    assert place((1.0, 0))[0] - place((0.0, 0))[0] > 0.15 * wide
    assert place((dear, 0))[0] - place((cheap, 0))[0] > 0.3 * wide


@pytest.mark.parametrize("name", NAMES)
def test_a_noisy_run_is_drawn_without_one_thing_over_another(name: str) -> None:
    """Cells that scatter by a half: intervals from -70 % to thousands."""
    scene = scene_with(MadeMonitoring(monitors=(*MONITORS[:6], replace(SAMPLER, core=0.0)), blocks=3, cell_sd=0.5, seed=2))
    assert scene.overhead["made.json"][0].control.state == "underpowered"
    assert faults(pictures()[name].draw(scene)) == []


def test_nothing_is_claimed_where_the_a_a_differs() -> None:
    """The forest says so, and the other is not drawn."""
    scene = scene_with(MadeMonitoring(monitors=(PLACEBO, PROFILE), blocks=6, again=0.05))
    figure = overhead_forest.draw(scene)
    assert not lines_of(figure.axes[0], "^")
    assert "not claimed" in said(figure)
    assert "two arms without a monitor agree" in refusal(overhead_share, scene)


def test_a_monitors_share_of_a_core_is_where_it_stands(drawings: dict[str, Figure]) -> None:
    """15 % of a core, as made."""
    beside = drawings["overhead_share"].axes[1]
    assert max(x for mark in "os^D" for line in lines_of(beside, mark) for x, _ in points(line)) == pytest.approx(15)


def test_rates_of_a_monitor_stand_below_each_other_in_order(scene: Scene, drawings: dict[str, Figure]) -> None:
    """From one sample a second to a hundred, costs rise to 13 %, as made; what they say together stands above."""
    (dose, *_) = scene.overhead["made.json"][0].doses
    text = said(drawings["overhead_forest"]).split("\n")
    arms = [arm.label for name in dose.arms for arm in scene.overhead["made.json"][0].arms if arm.tweakset == name]
    rows = [next(at for at, line in enumerate(text) if line.startswith(f"{label}, n ")) for label in arms]
    assert rows == sorted(rows)
    assert " ".join(dose.sentence.split()[:4]) in " ".join(text)
    drawn = [x for mark in "^so" for line in lines_of(drawings["overhead_forest"].axes[0], mark) for x, _ in points(line)]
    assert min(abs(x - 13) for x in drawn) < 1
