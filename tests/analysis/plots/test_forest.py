"""The forest plot says what the comparisons say: every end of every interval, every verdict, and why a row has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json, load
from analysis.plots import forest
from analysis.plots.scene import Scene, scene_of
from analysis.terms import Comparison
from analysis.verdict import ONE_RUN
from tests.analysis.plots.reading import lines_of, points, said
from tests.deeptweak_like import Like, directory
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def spans(axes: Axes, width: float) -> list[tuple[float, float]]:
    """The intervals of one kind, by the width they are drawn with."""
    return [
        (min(ends), max(ends)) for line in axes.lines if line.get_linewidth() == width and len(ends := [x for x, _ in points(line)]) == 2
    ]


def in_order(scene: Scene, workload: str) -> list[Comparison]:
    """The rows of a panel from above: by gain, what changes nothing last, what has no gain before it."""
    rows = [one for one in scene.comparisons if one.workload == workload]
    return sorted(rows, key=lambda one: (one.untouched, -(one.primary.gain if one.primary else -1e9)))


@pytest.mark.parametrize(("place", "workload"), [(0, "cnn_train"), (1, "lora_finetune")])
def test_intervals_end_where_the_comparisons_say(drawings: dict[str, Figure], scene: Scene, place: int, workload: str) -> None:
    """In per cent, the primary metric in bold and the second one thin, row by row."""
    axes, rows = drawings["forest"].axes[place], in_order(scene, workload)
    primary = [(100 * one.primary.low, 100 * one.primary.high) for one in rows if one.primary]
    second = [(100 * one.second.low, 100 * one.second.high) for one in rows if one.second]
    assert len(primary) == 4
    assert [pytest.approx(ends) for ends in primary] == spans(axes, 1.6)
    assert [pytest.approx(ends) for ends in second] == spans(axes, 1.0)


def test_the_mark_is_the_gain_and_its_shape_the_verdict(drawings: dict[str, Figure], scene: Scene) -> None:
    gains = {
        one.tweakset: (one.verdict, 100 * one.primary.gain) for one in scene.comparisons if one.workload == "cnn_train" and one.primary
    }
    assert (gains["tcp-cubic"][0], gains["bundle"][0]) == ("improved", "regressed")
    up, down = (lines_of(drawings["forest"].axes[0], marker) for marker in ("^", "v"))
    assert [points(line)[0][0] for line in up] == [pytest.approx(gains["tcp-cubic"][1])]
    assert [points(line)[0][0] for line in down] == [pytest.approx(gains["bundle"][1])]


def test_the_margin_and_the_baselines_own_value_are_shown(drawings: dict[str, Figure], scene: Scene) -> None:
    """The band is symmetric on the log scale: from 1/1.03 to 1.03; 0 means nothing without what it stands for."""
    band = drawings["forest"].axes[0].patches[0].get_window_extent().transformed(drawings["forest"].axes[0].transData.inverted())
    assert (band.x0, band.x1) == (pytest.approx(100 / 1.03 - 100), pytest.approx(3.0))
    base = next(one.primary.baseline for one in scene.comparisons if one.workload == "cnn_train" and one.primary)
    assert f"{base:.1f} samples/s" in said(drawings["forest"])


def test_of_contrasts_that_rest_on_different_blocks_the_head_says_all_their_baselines() -> None:
    """`late` lost the first blocks, which drift made the fastest: its stock is another than that of `whole`."""
    arms = (Arm("whole", 0.05), Arm("late", 0.05, broken=dict.fromkeys((1, 2), ("failed", "gone"))))
    scene = scene_of([from_json(saved_run(Made(arms=(STOCK, *arms), blocks=8, drift=0.2)), "drift.json")])
    bases = sorted(one.primary.baseline for one in scene.comparisons if one.primary)
    assert bases[0] < 0.99 * bases[1]
    assert f"{bases[0]:.1f} samples/s to {bases[1]:.1f} samples/s" in said(forest.draw(scene)).replace("\n", " ")


def test_a_row_that_cannot_be_compared_has_no_mark(drawings: dict[str, Figure]) -> None:
    assert len([line for line in drawings["forest"].axes[0].lines if str(line.get_marker()) in "^vsox"]) == 4


def test_an_interval_too_wide_for_the_others_is_cut_with_an_arrow(scene: Scene) -> None:
    wild = next(one for one in scene.comparisons if one.tweakset == "tcp-cubic" and one.primary)
    assert wild.primary is not None
    wide = replace(wild, primary=replace(wild.primary, low=-0.9, high=9.0))
    figure = forest.draw(replace(scene, comparisons=tuple(wide if one is wild else one for one in scene.comparisons)))
    axes = figure.axes[0]
    limit = axes.get_xlim()[1]
    assert limit < 100
    assert any(ends == pytest.approx((-limit, limit)) for ends in spans(axes, 1.6))
    assert [len(lines_of(axes, mark)) for mark in "<>"] == [1, 1]


def test_one_run_an_arm_is_a_point_without_an_interval(tmp_path: Path) -> None:
    """DeepTweak's directories: the ratio is what was observed, and nothing can be put around it."""
    scene = scene_of([load(directory(tmp_path, Like("base"), Like("exp1", run_effect=0.02)))])
    figure = forest.draw(scene)
    observed = sorted((100 * one.observed for one in scene.comparisons if one.observed is not None), reverse=True)
    assert observed
    assert [points(line)[0][0] for line in lines_of(figure.axes[0], "o")] == [pytest.approx(value) for value in observed]
    assert spans(figure.axes[0], 1.6) == []
    text = said(figure).replace("\n", " ")
    assert "[no interval]" in text
    assert ONE_RUN in text
    base = next(cell for cell in scene.runs[0].cells if cell.tweakset == scene.runs[0].baseline)
    assert f"{base.metrics['throughput_samples_per_s']:.3f} samples/s" in text


def test_an_inconclusive_interval_that_leaves_out_0_is_explained() -> None:
    """A stranger sees an interval right of 0 and the word inconclusive: the adjustment for many contrasts must be named."""
    arms = [Arm(f"set-{at}", gain=0.02, requested={"vm.x": str(at)}) for at in range(9)]
    scene = scene_of([from_json(saved_run(Made(arms=(STOCK, AGAIN, *arms), blocks=6, run_cv=0.012, seed=2)), "many.json")])
    assert any(one.verdict == "inconclusive" and one.primary and one.primary.low > 0 for one in scene.comparisons)
    assert "adjusted for all" in said(forest.draw(scene)).replace("\n", " ")
