"""Averages as bars: throughput as N / Σt and mean step time, with every block as a point on its bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.summary import step_time_mean_s, throughput_samples_per_s

from .bars import Bars, bars_page
from .measures import measure_of
from .scene import NothingToDraw, measured, panels_of
from .style import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .scene import Panel, Scene

TITLE = "Averages: throughput and step time"
ANSWERS = "How fast each tweak set was in absolute numbers, and how far its blocks scatter around them."
ORDER = 50
NOT_OF = frozenset({"iteration", "job", "point"})

METRICS = {"throughput_samples_per_s": throughput_samples_per_s, "step_time_mean_s": step_time_mean_s}


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a bar a tweak set, of all its measured steps together; rates are never averaged."""
    panels = [(panel, [bars for name in METRICS if (bars := _bars(panel, name)).bars]) for panel in panels_of(scene)]
    panels = [(panel, columns) for panel, columns in panels if columns]
    if not panels:
        raise NothingToDraw("the file has neither throughput nor mean step time")
    lead = "Throughput is all samples / all time; a mean of rates would overstate it. Bars do not show what is chance: see the verdicts."
    return bars_page(scene, TITLE, lead, panels)


def _bars(panel: Panel, metric: str) -> Bars:
    bars = {arm: value for arm in panel.arms if (value := METRICS[metric](measured(panel, arm))) is not None}
    measure = measure_of(metric, list(bars.values()))
    points = {arm: [cell.metrics[metric] * measure.scale for cell in measured(panel, arm) if metric in cell.metrics] for arm in bars}
    return Bars(measure.label, {arm: value * measure.scale for arm, value in bars.items()}, points)
