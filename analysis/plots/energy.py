"""Power and energy per sample: what the same work costs in watts and joules under each tweak set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.summary import energy_j_per_sample, power_w, time_weighted, why_missing

from .bars import Bars, bars_page
from .scene import NothingToDraw, measured, panels_of
from .style import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .scene import Panel, Scene

TITLE = "Power and energy per sample"
ANSWERS = "What the same work cost in watts and joules under each tweak set, where power was measured."
ORDER = 70


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a bar a tweak set; only cells whose power was measured count."""
    every = panels_of(scene)
    panels = [(panel, columns) for panel in every if (columns := [one for one in (_power(panel), _energy(panel)) if one.bars])]
    if not panels:
        raise NothingToDraw(f"power was not measured: {why_missing([cell for panel in every for cell in panel.cells])}")
    lead = "All GPUs together, without the host, over the measured steps: energy a sample is Σ power · time / samples."
    left_out = [panel.title for panel in every if not any(panel is one for one, _ in panels)]
    return bars_page(scene, TITLE, lead, panels, [f"Power was not measured: {', '.join(left_out)}."] if left_out else [])


def _power(panel: Panel) -> Bars:
    bars = {arm: value for arm in panel.arms if (value := time_weighted(measured(panel, arm), power_w)) is not None}
    points = {arm: [value for cell in measured(panel, arm) if (value := power_w(cell)) is not None] for arm in bars}
    return Bars("mean power, W", bars, points)


def _energy(panel: Panel) -> Bars:
    bars = {arm: value for arm in panel.arms if (value := energy_j_per_sample(measured(panel, arm))) is not None}
    points = {arm: [value for cell in measured(panel, arm) if (value := energy_j_per_sample([cell])) is not None] for arm in bars}
    return Bars("energy a sample, J", bars, points)
