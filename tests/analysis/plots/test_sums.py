"""The picture of parameters: nothing is said that bundles cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.load import from_json
from analysis.plots import parameters
from analysis.plots.scene import Scene, scene_of
from tests.analysis.plots.reading import lines_of, points, said
from tests.synthetic import STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def test_parameters_tell_a_key_alone_from_a_bundle(drawings: dict[str, Figure]) -> None:
    """tcp-cubic changes one key: a full dot. The bundle's two are hollow: its effect is neither's."""
    (keys,) = drawings["parameters"].axes
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
    assert all(row > 2 for _, row in dots)  # below the two workloads


def test_gains_that_were_called_are_in_colour(drawings: dict[str, Figure], scene: Scene) -> None:
    effects = drawings["parameters"].axes[0]
    coloured = [text for text in effects.texts if text.get_fontweight() == "bold"]
    called = [one for one in scene.comparisons if one.verdict in {"improved", "regressed"} and one.tweakset != "stock-again"]
    assert len(coloured) == len(called) > 1
    shown = {text.get_text().replace("\N{MINUS SIGN}", "-") for text in effects.texts}
    assert {f"{100 * one.primary.gain:+.1f}" for one in called if one.primary} <= shown
    assert "×" in shown  # not in force


def test_values_asked_for_stand_beside_their_key() -> None:
    arms = (STOCK, Arm("low", requested={"vm.swappiness": "1"}), Arm("high", requested={"vm.swappiness": "90"}))
    figure = parameters.draw(scene_of([from_json(saved_run(Made(arms=arms)), "two.json")]))
    assert {"vm.swappiness", "1, 90"} <= set(said(figure).split("\n"))
