"""Pictures of raw values: measurements are plotted cell by cell and step by step."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.load import from_json
from analysis.plots import steps
from analysis.plots.runs import places_of
from analysis.plots.scene import Scene, scene_of
from analysis.terms import Cell
from tests.analysis.plots.reading import lines_of, points, said
from tests.synthetic import STOCK, Made, saved_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cells(scene: Scene, workload: str, tweakset: str) -> list[Cell]:
    """The measured cells of one arm, in the order they ran."""
    found = [
        cell
        for cell in scene.runs[0].cells
        if (cell.workload, cell.tweakset, cell.outcome) == (workload, tweakset, "measured")
    ]
    return sorted(found, key=lambda cell: cell.order)


@pytest.mark.parametrize("tweakset", ["stock", "tcp-cubic", "bundle"])
def test_each_cell_stands_at_its_place_with_its_value(
    drawings: dict[str, Figure], scene: Scene, tweakset: str
) -> None:
    """The second workload's primary metric is a step time, shown in milliseconds."""
    place = places_of(scene.runs[0])
    for axes, workload, metric, scale in (
        (drawings["run_order"].axes[0], "cnn_train", "throughput_samples_per_s", 1.0),
        (drawings["run_order"].axes[1], "lora_finetune", "step_time_p10_s", 1000.0),
    ):
        line = next(line for line in axes.lines if line.get_label() == tweakset)
        wanted = [
            (place[cell.id], cell.metrics[metric] * scale)
            for cell in cells(scene, workload, tweakset)
        ]
        assert points(line) == [pytest.approx(one) for one in wanted]


def test_blocks_are_shaded_numbered_and_have_their_median(
    drawings: dict[str, Figure], scene: Scene
) -> None:
    """The median is over all tweak sets: only the machine moves it. Failed cells are crossed."""
    axes, place = drawings["run_order"].axes[0], places_of(scene.runs[0])
    mine = [cell for cell in scene.runs[0].cells if cell.workload == "cnn_train"]
    assert [x for line in lines_of(axes, "x") for x, _ in points(line)] == [
        place[cell.id] for cell in mine if cell.outcome == "failed"
    ]
    assert len(axes.patches) == 3, "blocks 1, 3 and 5 of five"
    assert {"block 1", "2", "3", "4", "5"} <= {text.get_text() for text in axes.texts}
    paths = [path for one in axes.collections for path in one.get_paths()]
    drawn = [float(np.asarray(path.vertices)[0, 1]) for path in paths]
    values = [
        cell.metrics["throughput_samples_per_s"]
        for cell in mine
        if cell.block == 1 and cell.outcome == "measured"
    ]
    assert len(drawn) == 5
    assert drawn[0] == pytest.approx(statistics.median(values))
    assert "failed" in said(drawings["run_order"])


def test_steps_are_those_of_the_cells_with_warm_up_apart(
    drawings: dict[str, Figure], scene: Scene
) -> None:
    """One dot per step, slower steps higher; the shade ends between steps two and three."""
    axes, mine = drawings["steps"].axes[0], cells(scene, "cnn_train", "stock")
    dots = points(lines_of(axes, "o")[0])
    walls = [wall for cell in mine if cell.steps for wall in cell.steps.wall_s]
    assert [x for x, _ in dots] == [
        at + 1 for cell in mine if cell.steps for at in range(len(cell.steps.wall_s))
    ]
    assert np.argsort([y for _, y in dots]).tolist() == np.argsort(np.negative(walls)).tolist(), (
        "of a strip 0 is the top"
    )
    shade = np.asarray(axes.collections[0].get_paths()[0].vertices)
    assert (shade[:, 0].min(), shade[:, 0].max()) == (0, 2.5)
    (at_dot,) = {y for (_, y), wall in zip(dots, walls, strict=True) if wall == walls[4]}
    numbers = {
        text.get_text(): float(y)
        for y, text in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    }
    low, high = (float(text) for text in list(numbers)[:2])
    share = (1000 * walls[4] - low) / (high - low)
    first, second = list(axes.get_yticks())[:2]
    assert at_dot == pytest.approx(first + share * (second - first))


def test_the_steps_of_a_long_cell_have_a_trailing_mean() -> None:
    """600 steps: a median over one cell is uninformative, a mean of the last 20 shows the trend."""
    scene = scene_of([from_json(saved_run(Made(arms=(STOCK,), blocks=1, steps=598)), "long.json")])
    cell = scene.runs[0].cells[0]
    figure = steps.draw(scene)
    (dots,) = (points(line) for line in lines_of(figure.axes[0], "o"))
    way = next(curve for line in lines_of(figure.axes[0], "None") if len(curve := points(line)) > 2)
    assert cell.steps is not None
    mean = statistics.fmean(cell.steps.wall_s[80:100])
    nearest = sorted(
        (abs(wall - mean), y) for wall, (_, y) in zip(cell.steps.wall_s, dots, strict=True)
    )[:2]
    assert way[99][1] == pytest.approx(statistics.fmean(y for _, y in nearest), abs=0.01)
