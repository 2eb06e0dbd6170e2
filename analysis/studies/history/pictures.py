"""Series over many runs: every run a dot, every level a line, and a mark where the level changed to stay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

from analysis.plain import PLACE, seconds
from analysis.plots.labels import direction, measure_of, minus, width_in
from analysis.plots.marks import above, beyond
from analysis.plots.page import Page, Section, Spec, body_width, dot, line
from analysis.plots.scene import some
from analysis.plots.style import AGAIN, COLOURS, INK, QUIET, SMALL, house_style
from analysis.plots.vector import set_tooltip
from analysis.stats.changepoint import without_outliers
from analysis.wording import digits, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .history import History, JudgedSeries, LevelChange, RunSeries

TITLE = "Speed over time"
ANSWERS = "When each workload's speed changed to stay, by how much, and which changes nobody has explained yet."

BETTER, WORSE = COLOURS[0], COLOURS[1]
LEFT, TALL, BELOW, LABELS = 0.62, 0.95, 0.34, 0.28
PANELS, QUIET_PANELS = 10, 3
MANY = 400  # dots that an SVG holds as a picture


@house_style()
def draw(history: History) -> Figure:
    """Draw the series that changed, the newest change first; where few did, some that did not, for comparison.

    Raises: NothingToDraw, where no series is long enough to be judged.
    """
    judged = [one for one in history.judged if one.p is not None]
    chosen, changed = _chosen(history, judged)
    some(chosen, "no series has enough runs to be judged")
    kinds = {_colour(change) for one in chosen for change in one.changes}
    legend = [
        dot("one run", AGAIN, size=4),
        line("level between changes", INK, 1.6),
        line("changed for the worse", WORSE) if WORSE in kinds else None,
        line("changed for the better", BETTER) if BETTER in kinds else None,
    ]
    lead = (
        f"{history.runs} runs, {history.first_utc[:10]} to {history.last_utc[:10]}. All panels share their dates; each has its own scale."
    )
    machines = {one.series.machine for one in history.judged}
    sections = []
    for one in chosen:
        series = one.series
        measure = measure_of(series.metric, [point.value for point in series.points])
        label = f"ratio of {measure.name}s" if series.relative_to else measure.label
        beside = f"{label} ({direction(series.metric)}){f', {series.machine}' if len(machines) > 1 else ''}"
        draw_panel = partial(_panel, judged=one, scale=1.0 if series.relative_to else measure.scale, history=history)
        sections.append(Section(series.name, LABELS + TALL + BELOW, draw_panel, beside))
    hidden = changed - sum(bool(one.changes) for one in chosen)
    more = f" {hidden} more workloads changed and are not drawn." if hidden else ""
    notes = [
        f"{len(judged)} series judged, {sum(not one.changes for one in judged)} without a change.{more}",
        "Triangles at the edge are single runs beyond the scale. The place of a change may be a run or two off.",
        f"Measured on {', '.join(machines)}." if len({one.series.machine for one in judged}) == 1 else "",
    ]
    return Spec(lead, sections, legend, notes).lay_out((), TITLE)


def _chosen(history: History, judged: Sequence[JudgedSeries]) -> tuple[list[JudgedSeries], int]:
    """Take one metric of each workload, tweak set and machine: the first that changed, since both mostly change together.

    Returns: what is drawn, and how many changed.
    """
    subjects: dict[tuple[str, ...], RunSeries] = {}
    for series in (change.series for change in history.changes):
        subject = series.study, series.name, series.machine
        if subject not in subjects or _is_throughput(series) > _is_throughput(subjects[subject]):
            subjects[subject] = series
    changed = [next(one for one in judged if one.series is series) for series in subjects.values()]
    quiet = [one for one in judged if not one.changes]
    quiet = [one for one in quiet if _is_throughput(one.series)] or quiet
    return changed[:PANELS] + quiet[: max(0, QUIET_PANELS - len(changed))], len(changed)


def _is_throughput(series: RunSeries) -> bool:
    return series.metric.name.startswith("throughput")


def _panel(sheet: Page, top: float, judged: JudgedSeries, scale: float, history: History) -> None:
    points, changes = judged.series.points, judged.changes
    heights = np.array([point.value for point in points]) * scale
    times = np.array([_day(point.mark.started_utc) for point in points])
    # Room for the noise, not for outliers: one would flatten all the others.
    tame = np.exp(without_outliers(np.log(heights)))
    room = 0.12 * float(np.ptp(tame)) or 0.05 * float(tame[0])
    low, high = float(tame.min()) - room, float(tame.max()) + room
    first, last = _day(history.first_utc), _day(history.last_utc)
    ends = (first - (edge := 0.015 * (last - first) or 0.5), last + edge)
    axes = sheet.axes(LEFT, top + LABELS, body_width() - LEFT - 0.04, TALL, grid="y", most={"y": 4}, ylim=(low, high), xlim=ends)
    inside = (heights >= low) & (heights <= high)
    many = len(heights) > MANY
    style: dict[str, Any] = {"color": AGAIN, "markeredgewidth": 0, "zorder": 1, "markersize": 2.6 if many else 4.5}
    (marks,) = axes.plot(times[inside], heights[inside], "o", alpha=0.6 if many else None, rasterized=many, label="runs", **style)
    runs = [(point.mark, height) for point, height, seen in zip(points, heights, inside, strict=True) if seen]
    set_tooltip(marks, *(f"{run.run_id}, {run.started_utc[:10]}: {digits(height)}" for run, height in runs))
    beyond(axes, times.tolist(), heights.tolist(), (low, high), QUIET)
    edges = [0, *(change.found.index for change in changes), len(heights)]
    levels = [changes[0].before, *(change.after for change in changes)] if changes else [float(np.exp(np.mean(np.log(heights)))) / scale]
    for begin, end, level in zip(edges, edges[1:], levels, strict=False):
        axes.plot([times[begin], times[end - 1]], [level * scale] * 2, color=INK, linewidth=1.6, solid_capstyle="butt", zorder=3)
    _mark_changes(axes, changes, times)
    if history.first_utc.startswith(PLACE):
        return
    locator = AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]  # matplotlib's dates have no types
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))  # type: ignore[no-untyped-call]


def _mark_changes(axes: Axes, changes: Sequence[LevelChange], times: np.ndarray) -> None:
    """Draw a line between the last run before and the first after, its size above: with its date where all labels find room in two rows."""
    first, last = axes.get_xlim()
    wide = body_width() - LEFT
    places = [float(times[change.found.index - 1 : change.found.index + 1].mean()) for change in changes]
    sizes = [minus(percent(change.gain)) for change in changes]
    dates = [f" on {change.first.started_utc[:10]}" for change in changes]
    middles = [(at - first) * wide / (last - first) for at in places]
    dated = _in_rows([size + date for size, date in zip(sizes, dates, strict=True)], middles, wide)
    for change, at in zip(changes, places, strict=True):
        axes.axvline(at, color=_colour(change), linewidth=1.2, zorder=2)
    for change, (text, middle, row) in zip(changes, dated or _in_rows(sizes, middles, wide), strict=False):
        above(axes, first + middle * (last - first) / wide, text, y=1 + (0.03 + 0.13 * row) / TALL, color=_colour(change))


def _colour(change: LevelChange) -> str:
    return BETTER if change.gain > 0 else WORSE


def _in_rows(texts: Sequence[str], middles: Sequence[float], wide: float) -> list[tuple[str, float, int]]:
    """Place labels from left to right in the lower row, or the upper where they would overlap; none at all, where both are taken.

    Widths and places in inches.
    """
    ends, placed = [0.0, 0.0], []
    for text, wanted in zip(texts, middles, strict=True):
        half = width_in(text, SMALL) / 2
        middle = min(max(wanted, half), wide - half)
        row = next((row for row, end in enumerate(ends) if middle - half >= end), None)
        if row is None:
            return []
        ends[row] = middle + half + 0.06
        placed.append((text, middle, row))
    return placed


def _day(utc: str) -> float:
    if utc.startswith(PLACE):
        return seconds(utc)
    return float(date2num(datetime.fromisoformat(utc)))  # type: ignore[no-untyped-call]
