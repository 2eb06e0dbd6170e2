"""Pictures of averages, energy and parameters: the arithmetic is shown, and nothing is said that bundles cannot say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from matplotlib.patches import Rectangle

from analysis.load import from_json, load
from analysis.plots import averages, energy, impact, parameters
from analysis.plots.scene import Scene, scene_of
from tests.analysis.plots.reading import lines_of, points, said
from tests.conftest import REFERENCE
from tests.deeptweak_like import SCRIPTS, SYSCTLS, Like, directory
from tests.synthetic import STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def bars(axes: Axes) -> list[float]:
    """Lengths of the bars, from above; each begins at 0."""
    found = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert all(bar.get_x() == 0 for bar in found)
    return [bar.get_width() for bar in found]


def test_throughput_is_all_samples_over_all_time_and_never_a_mean_of_rates(drawings: dict[str, Figure], scene: Scene) -> None:
    """40 steps of 8 samples in five blocks; the blocks' own rates are the points on the bar."""
    mine = [cell for cell in scene.runs[0].cells if (cell.workload, cell.tweakset) == ("cnn_train", "stock")]
    seconds = math.fsum(sum(cell.steps.wall_s[2:]) for cell in mine if cell.steps)
    rate, step = drawings["averages"].axes[:2]
    assert bars(rate)[0] == pytest.approx(5 * 10 * 8 / seconds)
    assert bars(step)[0] == pytest.approx(1000 * seconds / 50)
    assert [x for x, _ in points(lines_of(rate, "o")[0])] == [pytest.approx(cell.metrics["throughput_samples_per_s"]) for cell in mine]
    assert rate.get_xlim()[0] == 0


@pytest.mark.needs("reference")
def test_deeptweaks_own_averages_are_not_repeated() -> None:
    """A6 and A7: 1.63143 samples/s, where a mean of rates would say 1.92542."""
    rate, step = averages.draw(scene_of([load(REFERENCE / "deeptweak/one_node_one_gpu")])).axes
    assert bars(rate) == [pytest.approx(value, abs=1e-5) for value in (1.63143, 1.60308, 1.62843, 1.61703)]
    assert bars(step) == [pytest.approx(value, abs=1e-3) for value in (612.958, 623.800, 614.088, 618.420)]


def test_energy_a_sample_is_power_times_time_over_samples(drawings: dict[str, Figure], scene: Scene) -> None:
    """Two GPUs of 60 W: 120 W times the time of the measured steps, over 8 samples a step."""
    mine = [cell for cell in scene.runs[0].cells if (cell.workload, cell.tweakset) == ("cnn_train", "stock")]
    seconds = math.fsum(sum(cell.steps.wall_s[2:]) for cell in mine if cell.steps)
    power, joules = drawings["energy"].axes[:2]
    assert bars(power)[0] == pytest.approx(120)
    assert bars(joules)[0] == pytest.approx(120 * seconds / (5 * 10 * 8))


def test_an_arm_whose_power_is_missing_has_an_empty_row(scene: Scene) -> None:
    run = scene.runs[0]
    blind = tuple(replace(cell, telemetry={}) if cell.tweakset == "tcp-cubic" else cell for cell in run.cells)
    figure = energy.draw(replace(scene, runs=(replace(run, cells=blind),)))
    assert len(bars(figure.axes[0])) == 5
    assert said(figure).count("not measured") == 4  # power and energy, of two workloads


def test_impact_counts_parameters_by_section(tmp_path: Path) -> None:
    """DeepTweak's grub.conf of five tokens and sysctl.conf of two; a script is one change, for nobody saw what it did."""
    scene = scene_of([load(directory(tmp_path, Like("base"), Like("exp1", manifest=SYSCTLS), Like("exp2", manifest=SCRIPTS)))])
    figure = impact.draw(scene)
    counts = figure.axes[1]
    widths = [(round(bar.get_x()), round(bar.get_width())) for bar in counts.patches]  # type: ignore[attr-defined]  # rectangles
    asked = [one.kind for one in scene.runs[0].tweaksets["exp1"].requested]
    assert widths[:2] == [(0, 2), (2, asked.count("boot"))]
    assert widths[2:] == [(0, 1), (1, 1), (2, 1)]  # a limit, a unit's setting, a script
    text = said(figure)
    assert {"sysctl parameters", "boot parameters", "ulimit parameters", "service parameters", "script parameters", "none"} <= set(
        text.split("\n")
    )


def test_impact_shows_throughput_its_change_and_the_verdict(drawings: dict[str, Figure], scene: Scene) -> None:
    said_of = next(one for one in scene.comparisons if (one.workload, one.tweakset) == ("cnn_train", "tcp-cubic"))
    assert said_of.primary is not None
    text = said(drawings["impact"])
    assert f"(+{100 * said_of.primary.gain:.1f} %)" in text
    assert {"improved", "regressed", "not comparable"} <= set(text.split("\n"))


def test_parameters_tell_a_key_alone_from_a_bundle(drawings: dict[str, Figure]) -> None:
    """tcp-cubic changes one key: a full dot. The bundle's two are hollow: its effect is neither's."""
    effects, keys = drawings["parameters"].axes
    dots = {(round(x - 0.5), round(y - 0.5)): line.get_markerfacecolor() for line in lines_of(keys, "o") for x, y in points(line)}
    columns = [text.get_text() for text in drawings["parameters"].texts if text.get_rotation() == 90]
    assert columns == ["tcp-cubic", "bundle", "script", "not-in-force"]
    full = {column for (column, _), face in dots.items() if face != "white"}
    assert {columns[column] for column in full} == {"tcp-cubic", "script", "not-in-force"}
    assert sum(column == 1 for column, _ in dots) == 2
    assert len(dots) == 5
    text = said(drawings["parameters"]).replace("\n", " ")
    assert "/sys/kernel/mm/thp/enabled" in text
    assert "/sys/gone" not in text  # a tunable that is no more was not set
    assert effects.get_ylim() == (2, 0)  # one row a workload


def test_parameters_frame_what_was_called_a_difference(drawings: dict[str, Figure], scene: Scene) -> None:
    effects = drawings["parameters"].axes[0]
    framed = [patch for patch in effects.patches if patch.get_linewidth() == 1.5]
    called = [one for one in scene.comparisons if one.verdict in {"improved", "regressed"} and one.tweakset != "stock-again"]
    assert len(framed) == len(called) > 1
    shown = {text.get_text().replace("\N{MINUS SIGN}", "-") for text in effects.texts}
    assert {f"{100 * one.primary.gain:+.1f}" for one in called if one.primary} <= shown
    assert "×" in shown  # not in force


def test_values_asked_for_stand_beside_their_key() -> None:
    arms = (STOCK, Arm("low", requested={"vm.swappiness": "1"}), Arm("high", requested={"vm.swappiness": "90"}))
    figure = parameters.draw(scene_of([from_json(saved_run(Made(arms=arms)), "two.json")]))
    assert {"vm.swappiness", "1, 90"} <= set(said(figure).split("\n"))
