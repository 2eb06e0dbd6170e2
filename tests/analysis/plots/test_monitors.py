"""Pictures of monitors: drawn from runs with known truth, and only from runs with monitors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.plots import fitting, overhead_forest
from analysis.plots.scene import Scene, scene_of
from tests.analysis.plots.reading import faults, lines_of, points, refusal, said
from tests.made_monitoring import (
    MONITORS,
    PLACEBO,
    PROFILE,
    MadeMonitoring,
    Monitor,
    monitored_run,
)
from tests.synthetic import saved_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NSYS = Monitor("nsys", "around", broken=dict.fromkeys(range(1, 9), ("skipped", "no nsys in PATH")))


def scene_with(made: MadeMonitoring) -> Scene:
    return scene_of([from_json(monitored_run(made), "made.json")])


@pytest.fixture(scope="module")
def scene() -> Scene:
    return scene_with(
        MadeMonitoring(monitors=(*MONITORS, NSYS), blocks=8, workloads=("python_loop", "cnn_train"))
    )


@pytest.fixture(scope="module")
def figure(scene: Scene) -> Figure:
    return overhead_forest.draw(scene)


def test_it_is_of_runs_with_monitors_and_of_no_others(scene: Scene, figure: Figure) -> None:
    assert faults(figure) == []
    assert "overhead_forest" in fitting(scene.runs)
    assert "overhead_forest" not in fitting([from_json(saved_run(), "made.json")])
    assert "beside cells without one" in refusal(overhead_forest, replace(scene, overhead={}))


def test_dear_and_cheap_monitors_stand_apart_on_one_scale(figure: Figure) -> None:
    """One picture shows 0.1 % and 60 %: the axis is linear to 1 % and logarithmic beyond."""
    axes = figure.axes[0]
    assert axes.get_xscale() == "symlog"
    (dear,) = [x for line in lines_of(axes, "^") for x, _ in points(line) if x > 40]
    cheap = min(x for line in lines_of(axes, "s") for x, _ in points(line))
    assert dear == pytest.approx(60, abs=1)
    one, zero, far, near, low, high = (
        axes.transData.transform((x, 0))[0] for x in (1.0, 0.0, dear, cheap, *axes.get_xlim())
    )
    assert one - zero > 0.15 * (high - low)
    assert far - near > 0.3 * (high - low)


def test_nothing_is_claimed_where_the_a_a_differs() -> None:
    figure = overhead_forest.draw(
        scene_with(MadeMonitoring(monitors=(PLACEBO, PROFILE), blocks=6, again=0.05))
    )
    assert not lines_of(figure.axes[0], "^")
    assert "not claimed" in said(figure)


def test_rates_of_a_monitor_stand_below_each_other_in_order(scene: Scene, figure: Figure) -> None:
    """From one sample a second to a hundred, costs rise to 13 %, as made."""
    overhead = scene.overhead["made.json"][0]
    text = said(figure).split("\n")
    labels = [arm.label for arm in overhead.arms if arm.base == "psutil_thread"]
    rows = [
        next(at for at, line in enumerate(text) if line.startswith(f"{label}, n "))
        for label in labels
    ]
    assert rows == sorted(rows)
    drawn = [
        x for mark in "^so" for line in lines_of(figure.axes[0], mark) for x, _ in points(line)
    ]
    assert min(abs(x - 13) for x in drawn) < 1
