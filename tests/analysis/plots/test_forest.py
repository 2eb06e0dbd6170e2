"""The forest plot shows what comparisons claim; parameters show nothing that bundles cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.compare import ONE_RUN
from analysis.load import load
from analysis.plots import forest
from analysis.plots.scene import Scene, scene_of
from tests.analysis.plots.reading import lines_of, points, said
from tests.deeptweak_like import Like, directory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def spans(axes: Axes, width: float) -> list[tuple[float, float]]:
    """The intervals of one kind, by the width they are drawn with."""
    ends = ([x for x, _ in points(line)] for line in axes.lines if line.get_linewidth() == width)
    return [(min(pair), max(pair)) for pair in ends if len(pair) == 2]


@pytest.mark.parametrize(("place", "workload"), [(0, "cnn_train"), (1, "lora_finetune")])
def test_intervals_end_where_the_comparisons_say(
    drawings: dict[str, Figure], scene: Scene, place: int, workload: str
) -> None:
    """In percent, primary metric bold; by gain, then those without gain, the untouched last."""
    rows = [one for one in scene.comparisons if one.workload == workload]
    rows.sort(key=lambda one: (one.untouched, -(one.primary.gain if one.primary else -1e9)))
    axes = drawings["forest"].axes[place]
    primary = [(100 * one.primary.low, 100 * one.primary.high) for one in rows if one.primary]
    second = [(100 * one.second.low, 100 * one.second.high) for one in rows if one.second]
    assert len(primary) == 4
    assert [pytest.approx(ends) for ends in primary] == spans(axes, 1.6)
    assert [pytest.approx(ends) for ends in second] == spans(axes, 1.0)
    assert len([line for line in axes.lines if str(line.get_marker()) in "^vsox"]) == 4, (
        "what cannot be compared has no mark"
    )


def test_the_mark_is_the_gain_and_its_shape_the_verdict(
    drawings: dict[str, Figure], scene: Scene
) -> None:
    """The margin's band is symmetric on the log scale, 1/1.03 to 1.03; 0 needs its baseline."""
    axes = drawings["forest"].axes[0]
    rows = {one.tweakset: one for one in scene.comparisons if one.workload == "cnn_train"}
    for name, verdict, marker in (("tcp-cubic", "improved", "^"), ("bundle", "regressed", "v")):
        effect = rows[name].primary
        assert effect is not None
        assert rows[name].verdict == verdict
        assert [points(line)[0][0] for line in lines_of(axes, marker)] == [
            pytest.approx(100 * effect.gain)
        ]
        assert f"{effect.baseline:.1f} samples/s" in said(drawings["forest"])
    band = axes.patches[0].get_window_extent().transformed(axes.transData.inverted())
    assert (band.x0, band.x1) == (pytest.approx(100 / 1.03 - 100), pytest.approx(3.0))


def test_an_interval_far_too_wide_is_cut_with_an_arrow(scene: Scene) -> None:
    wild = next(one for one in scene.comparisons if one.tweakset == "tcp-cubic" and one.primary)
    assert wild.primary is not None
    wide = replace(wild, primary=replace(wild.primary, low=-0.9, high=9.0))
    axes = forest.draw(
        replace(scene, comparisons=tuple(wide if one is wild else one for one in scene.comparisons))
    ).axes[0]
    limit = axes.get_xlim()[1]
    assert limit < 100
    assert any(ends == pytest.approx((-limit, limit)) for ends in spans(axes, 1.6))
    assert [len(lines_of(axes, mark)) for mark in "<>"] == [1, 1]


def test_one_run_an_arm_is_a_point_without_an_interval(tmp_path: Path) -> None:
    """DeepTweak's directories: the observed ratio, to which no interval can be attached."""
    scene = scene_of([load(directory(tmp_path, Like("base"), Like("exp1", run_effect=0.02)))])
    figure = forest.draw(scene)
    observed = sorted(
        (100 * one.observed for one in scene.comparisons if one.observed is not None), reverse=True
    )
    assert (
        [points(line)[0][0] for line in lines_of(figure.axes[0], "o")]
        == [pytest.approx(value) for value in observed]
        != []
    )
    assert spans(figure.axes[0], 1.6) == []
    base = next(cell for cell in scene.runs[0].cells if cell.tweakset == scene.runs[0].baseline)
    text = said(figure).replace("\n", " ")
    assert all(
        part in text
        for part in (
            "[no interval]",
            ONE_RUN,
            f"{base.metrics['throughput_samples_per_s']:.3f} samples/s",
        )
    )


# Parameters


def test_parameters_tell_a_key_alone_from_a_bundle(drawings: dict[str, Figure]) -> None:
    """tcp-cubic changes one key: a full dot.

    The bundle's two keys are hollow: neither owns its effect.
    """
    (axes,) = drawings["parameters"].axes
    dots = {
        (round(x - 0.5), round(y - 0.5)): line.get_markerfacecolor()
        for line in lines_of(axes, "o")
        for x, y in points(line)
    }
    columns = [
        text.get_text() for text in drawings["parameters"].texts if text.get_rotation() == 90
    ]
    assert columns == ["tcp-cubic", "bundle", "script", "not-in-force"]
    assert {columns[column] for (column, _), face in dots.items() if face != "white"} == {
        "tcp-cubic",
        "script",
        "not-in-force",
    }
    assert sum(column == 1 for column, _ in dots) == 2
    assert len(dots) == 5
    assert all(row > 2 for _, row in dots), "below the two workloads"
    text = said(drawings["parameters"]).replace("\n", " ")
    assert "/sys/kernel/mm/thp/enabled" in text
    assert "/sys/gone" not in text, "a tunable that is no more was not set"


def test_gains_that_were_called_are_in_colour(drawings: dict[str, Figure], scene: Scene) -> None:
    texts = drawings["parameters"].axes[0].texts
    coloured = {
        text.get_text().replace("\N{MINUS SIGN}", "-")
        for text in texts
        if text.get_fontweight() == "bold"
    }
    called = [
        one
        for one in scene.comparisons
        if one.verdict in {"improved", "regressed"} and one.tweakset != "stock-again"
    ]
    assert coloured == {f"{100 * one.primary.gain:+.1f}" for one in called if one.primary}
    assert "×" in {text.get_text() for text in texts}, "not in force"
