"""Pictures of capped runs: drawn from known truth, nothing cut, and none without a cap."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.plots import pictures, power_forest, power_trace
from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import SMALL
from tests.analysis.plots.reading import faults, lines_of, points, said
from tests.analysis.studies.power.made_capped import (
    ALGORITHMS,
    PCTODL,
    Algorithm,
    MadeCapped,
    capped_run,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("power_forest", "power_trace")
LOST = Algorithm(
    "directcap", broken=dict.fromkeys(range(1, 5), ("skipped", "directcap needs a limit of power"))
)
MADE = MadeCapped(
    tasks={6: ((0, 130.0),), 29: ((0, 200.0), (10, 160.0))},
    algorithms=(*ALGORITHMS, LOST, replace(PCTODL, shadow=True)),
    blocks=4,
    iterations=20,
)


def scene_with(made: MadeCapped) -> Scene:
    """Only the parts that these pictures read: the run itself."""
    return Scene((from_json(capped_run(made), "made.json"),))


@pytest.fixture(scope="module")
def scene() -> Scene:
    return scene_with(MADE)


@pytest.fixture(scope="module")
def drawings(scene: Scene) -> dict[str, Figure]:
    return {name: pictures()[name].draw(scene) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut_and_nothing_lies_over_anything_else(
    drawings: dict[str, Figure], name: str
) -> None:
    assert faults(drawings[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_each_has_its_subject_its_run_and_that_it_is_simulated(
    drawings: dict[str, Figure], scene: Scene, name: str
) -> None:
    text = said(drawings[name]).replace("\n", " ")
    assert pictures()[name].TITLE in text
    assert f"Run {scene.runs[0].run_id}" in text
    assert "SIMULATED" in text
    assert (
        min(float(one.get_fontsize()) for one in drawings[name].texts if one.get_text().strip())
        >= SMALL
    )


def test_the_forest_has_throughput_left_and_the_cap_right(drawings: dict[str, Figure]) -> None:
    """All tasks: steady +14.3 % on powercap at 0 %, morak a third of the time above 1.02 times."""
    rates, above = drawings["power_forest"].axes[:2]
    assert [x for line in lines_of(rates, "^") for x, _ in points(line)] == pytest.approx(
        [14.6, 18.0, 18.0, 14.3], abs=1.0
    )
    assert max(x for line in lines_of(above, "^") for x, _ in points(line)) > 20
    assert sorted(x for line in lines_of(above, "s") for x, _ in points(line)) == pytest.approx(
        [0, 0], abs=0.5
    )
    assert "directcap on task 6" in said(drawings["power_forest"])


def test_the_trace_falls_with_the_cap(drawings: dict[str, Figure]) -> None:
    """A cap that falls from 200 to 160 W after ten iterations."""
    caps = [
        line
        for axes in drawings["power_trace"].axes
        for line in axes.lines
        if line.get_linestyle() == "--"
    ]
    assert {tuple(sorted({y for _, y in points(line)})) for line in caps} == {
        (130.0,),
        (160.0, 200.0),
    }


def test_without_a_sensor_there_is_no_power_to_draw() -> None:
    scene = scene_with(
        replace(MADE, backends=("cpu",), power_source="none", tasks={6: ((0, 130.0),)}, blocks=3)
    )
    assert "no sensor" in said(power_forest.draw(scene))
    with pytest.raises(NothingToDraw, match="no power sensor"):
        power_trace.draw(scene)
