"""Series over many runs: a line through the runs, a line per level, and lasting changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from analysis.plain import PLACE
from analysis.plots.labels import measure_of
from analysis.plots.marks import Style, beyond, lines, ticks
from analysis.plots.page import Plot, SmallPanel, SmallPanels, dot, line
from analysis.plots.scene import some
from analysis.plots.style import AGAIN, COLOURS, INK, QUIET, house_style
from analysis.stats.changepoint import without_outliers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .history import History, JudgedSeries

TITLE = "Speed over time"
ANSWERS = "Lasting changes of each workload's speed: when, and by how much."

BETTER, WORSE = COLOURS[0], COLOURS[1]
SERIES = SmallPanels(1, above=0.05, tall=0.95, below=0.3, left=0.62)
MOST, MOST_QUIET, TICKS = 10, 3, 6
RUN: Style = {"color": AGAIN, "marker": "o", "markersize": 3, "linewidth": 0.6}


@house_style()
def draw(history: History) -> Figure:
    """Draw a panel per changed workload, else the first few. Raises: NothingToDraw."""
    judged = some(
        (one for one in history.judged if one.p is not None),
        "no series has enough runs to be judged",
    )
    chosen = _chosen(judged)
    changed = [one for one in chosen if one.changes]
    gains = [change.gain for one in changed[:MOST] for change in one.changes]
    legend = [
        dot("one run", AGAIN, size=4),
        line("level between changes", INK, 1.6),
        line("changed for the worse", WORSE) if any(gain <= 0 for gain in gains) else None,
        line("changed for the better", BETTER) if any(gain > 0 for gain in gains) else None,
    ]
    lead = (
        f"{history.runs} runs in their order, {history.first_utc[:10]} to "
        f"{history.last_utc[:10]}. Each panel has its own scale."
    )
    sections = []
    for one in changed[:MOST] or chosen[:MOST_QUIET]:
        series = one.series
        measure = measure_of(series.metric, [point.value for point in series.points])
        label = f"ratio of {measure.name}s" if series.relative_to else measure.label
        paint = partial(_series, scale=1.0 if series.relative_to else measure.scale)
        beside = f"{label} ({series.metric.better} is better), {series.machine}"
        sections.append(
            SERIES.section(series.name, [one], paint, grid="y", most={"y": 4})._replace(
                beside=beside
            )
        )
    hidden = len(changed) - MOST
    notes = [
        f"{len(judged)} series judged, {sum(not one.changes for one in judged)} without a change.",
        f"{hidden} more workloads changed and are not drawn." if hidden > 0 else "",
        (
            "Triangles at the edge are single runs beyond the scale. The place of a change may be "
            "a run or two off."
        ),
    ]
    return Plot(lead, sections, legend, notes).lay_out((), TITLE)


def _chosen(judged: Sequence[JudgedSeries]) -> list[JudgedSeries]:
    subjects: dict[tuple[str, ...], JudgedSeries] = {}
    for one in sorted(
        judged,
        key=lambda one: (not one.changes, not one.series.metric.name.startswith("throughput")),
    ):
        subjects.setdefault((one.series.study, one.series.name, one.series.machine), one)
    return list(subjects.values())


def _series(panel: SmallPanel, judged: JudgedSeries, scale: float) -> None:
    points, changes, axes = judged.series.points, judged.changes, panel.axes
    heights = [point.value * scale for point in points]
    # Leave room for noise, not for outliers, which would flatten the rest.
    tame = np.exp(without_outliers(np.log(heights)))
    room = 0.12 * float(np.ptp(tame)) or 0.05 * float(tame[0])
    limits = float(tame.min()) - room, float(tame.max()) + room
    axes.set(xlim=(-0.5, len(points) - 0.5), ylim=limits)
    lines(axes, [(at, (height, None, None)) for at, height in enumerate(heights)], RUN)
    beyond(axes, range(len(points)), heights, limits, QUIET)
    edges = [0, *(change.found.index for change in changes), len(points)]
    levels = (
        [changes[0].before, *(change.after for change in changes)]
        if changes
        else [float(np.exp(np.mean(np.log(heights)))) / scale]
    )
    for begin, end, level in zip(edges, edges[1:], levels, strict=False):
        axes.plot(
            [begin, end - 1],
            [level * scale] * 2,
            color=INK,
            linewidth=1.6,
            solid_capstyle="butt",
            zorder=4,
        )
    for change in changes:
        axes.axvline(
            change.found.index - 0.5,
            color=BETTER if change.gain > 0 else WORSE,
            linewidth=1.2,
            zorder=2,
        )
    dates = {
        at: points[at].mark.started_utc for at in range(0, len(points), -(-len(points) // TICKS))
    }
    ticks(
        axes,
        "x",
        dates,
        {at: f"{at + 1}" if date.startswith(PLACE) else date[:10] for at, date in dates.items()},
    )
