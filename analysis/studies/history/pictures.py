"""Series over many runs: every run a dot, every level a line, and a mark where the level changed to stay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

from analysis.plots.labels import direction, measure_of, minus, width_in
from analysis.plots.marks import above, beyond
from analysis.plots.page import INSIDE, Page, Section, Spec, dot, line
from analysis.plots.scene import NothingToDraw
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
ORDER = 90
NEEDS = "history"

BETTER, WORSE = COLOURS[0], COLOURS[1]
LEFT, TALL, BELOW, LABELS = 0.62, 0.95, 0.34, 0.28
PANELS, QUIET_PANELS = 10, 3
MANY = 400  # dots that an SVG holds as a picture


@house_style()
def draw(history: History) -> Figure:
    """Draw the series that changed, the newest change first; where few did, some that did not, for comparison.

    Raises: NothingToDraw, where no series is long enough to be judged.
    """
    chosen = _chosen(history)
    if not chosen:
        raise NothingToDraw("no series has enough runs to be judged")
    kinds = {_colour(change) for judged in chosen for change in judged.changes}
    legend = [
        dot("one run", AGAIN, size=4),
        line("level between changes", INK, 1.6),
        line("changed for the worse", WORSE) if WORSE in kinds else None,
        line("changed for the better", BETTER) if BETTER in kinds else None,
        line("acknowledged change", QUIET, 1.2, linestyle=(0, (3, 2))) if QUIET in kinds else None,
    ]
    lead = (
        f"{history.runs} runs, {history.first_utc[:10]} to {history.last_utc[:10]}. All panels share their dates; each has its own scale."
    )
    several = len({judged.series.machine for judged in history.judged}) > 1
    sections = []
    for judged in chosen:
        series = judged.series
        measure = measure_of(series.metric.name, [point.value for point in series.points])
        label = f"ratio of {measure.name}s" if series.relative_to else measure.label
        beside = f"{label} ({direction(series.metric)}){f', {series.machine}' if several else ''}"
        sections.append(Section(series.name, LABELS + TALL + BELOW, partial(_panel, judged=judged, history=history), beside))
    return Spec(lead, sections, legend, _notes(history, chosen)).lay_out((), TITLE)


def _chosen(history: History) -> list[JudgedSeries]:
    """One metric of each workload, tweak set and machine: the first that changed, since both mostly change together."""
    subjects: dict[tuple[str, ...], JudgedSeries] = {}
    for change in history.changes:
        series = change.series
        subject = _subject(series)
        if subject not in subjects or _is_throughput(series) > _is_throughput(subjects[subject].series):
            subjects[subject] = next(judged for judged in history.judged if judged.series is series)
    changed = list(subjects.values())[:PANELS]
    quiet = [judged for judged in history.judged if judged.p is not None and not judged.changes and _is_throughput(judged.series)]
    quiet = quiet or [judged for judged in history.judged if judged.p is not None and not judged.changes]
    return changed + quiet[: max(0, min(QUIET_PANELS - len(changed), PANELS - len(changed)))]


def _subject(series: RunSeries) -> tuple[str, ...]:
    return series.study, series.name, series.machine


def _is_throughput(series: RunSeries) -> bool:
    return series.metric.name.startswith("throughput")


def _panel(sheet: Page, top: float, judged: JudgedSeries, history: History) -> None:
    series = judged.series
    values = [point.value for point in series.points]
    scale = 1.0 if series.relative_to else measure_of(series.metric.name, values).scale
    heights = np.array(values) * scale
    times = np.array([_day(point.mark.started_utc) for point in series.points])
    # Room for the noise, not for outliers: one would flatten all the others.
    tame = np.exp(without_outliers(np.log(heights)))
    room = 0.12 * float(np.ptp(tame)) or 0.05 * float(tame[0])
    low, high = float(tame.min()) - room, float(tame.max()) + room
    axes = sheet.axes(LEFT, top + LABELS, INSIDE - LEFT - 0.04, TALL, grid="y", most={"y": 4}, ylim=(low, high), xlim=_span(history))
    inside = (heights >= low) & (heights <= high)
    look = {"alpha": 0.6, "markersize": 2.6} if len(values) > MANY else {"markersize": 4.5}
    style: dict[str, Any] = {"color": AGAIN, "markeredgewidth": 0, "zorder": 1, **look}
    (marks,) = axes.plot(times[inside], heights[inside], "o", rasterized=len(values) > MANY, label="runs", **style)
    runs = [(point.mark, height) for point, height, seen in zip(series.points, heights, inside, strict=True) if seen]
    set_tooltip(marks, *(f"{run.run_id}, {run.started_utc[:10]}: {digits(height)}" for run, height in runs))
    beyond(axes, times.tolist(), heights.tolist(), (low, high), QUIET)
    edges = [0, *(change.found.index for change in judged.changes), len(values)]
    levels = [float(np.exp(np.mean(np.log(values))))]
    if judged.changes:
        levels = [judged.changes[0].before, *(change.after for change in judged.changes)]
    for begin, end, level in zip(edges, edges[1:], levels, strict=False):
        axes.plot([times[begin], times[end - 1]], [level * scale] * 2, color=INK, linewidth=1.6, solid_capstyle="butt", zorder=3)
    _mark_changes(axes, judged.changes, times)
    locator = AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]  # matplotlib's dates have no types
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))  # type: ignore[no-untyped-call]


def _mark_changes(axes: Axes, changes: Sequence[LevelChange], times: np.ndarray) -> None:
    """Draw a line between the last run before and the first after, its size above: with its date where all labels find room in two rows."""
    first, last = axes.get_xlim()
    inches = (INSIDE - LEFT) / (last - first)
    places = [float(times[change.found.index - 1 : change.found.index + 1].mean()) for change in changes]
    sizes = [minus(percent(change.gain)) for change in changes]
    dated = [
        f"{size} on {change.first.started_utc[:10]}{', known' if change.acknowledged else ''}"
        for size, change in zip(sizes, changes, strict=True)
    ]
    middles = [(at - first) * inches for at in places]
    wide = (last - first) * inches
    labels = _in_rows(dated, middles, wide) or _in_rows(sizes, middles, wide) or []
    for change, at in zip(changes, places, strict=True):
        dashes = (0, (3, 2)) if change.acknowledged else "-"
        axes.axvline(at, color=_colour(change), linewidth=1.2, linestyle=dashes, zorder=2)
    for change, (text, middle, row) in zip(changes, labels, strict=False):
        above(axes, first + middle / inches, text, y=1 + (0.03 + 0.13 * row) / TALL, color=_colour(change))


def _colour(change: LevelChange) -> str:
    return QUIET if change.acknowledged else BETTER if change.gain > 0 else WORSE


def _in_rows(texts: Sequence[str], middles: Sequence[float], wide: float) -> list[tuple[str, float, int]] | None:
    """Place labels from left to right in the lower row, or the upper where they would overlap; None, where both are taken.

    Widths and places in inches.
    """
    ends = [0.0, 0.0]
    placed = []
    for text, wanted in zip(texts, middles, strict=True):
        half = width_in(text, SMALL) / 2
        middle = min(max(wanted, half), wide - half)
        row = next((row for row, end in enumerate(ends) if middle - half >= end), None)
        if row is None:
            return None
        ends[row] = middle + half + 0.06
        placed.append((text, middle, row))
    return placed


def _span(history: History) -> tuple[float, float]:
    first, last = _day(history.first_utc), _day(history.last_utc)
    room = 0.015 * (last - first) or 0.5
    return first - room, last + room


def _day(utc: str) -> float:
    return float(date2num(datetime.fromisoformat(utc)))  # type: ignore[no-untyped-call]


def _notes(history: History, chosen: Sequence[JudgedSeries]) -> list[str]:
    judged = [judged for judged in history.judged if judged.p is not None]
    changed = {_subject(series.series) for series in judged if series.changes}
    hidden = len(changed - {_subject(judged.series) for judged in chosen})
    machines = {series.series.machine for series in judged}
    lines = [
        f"{len(judged)} series judged, {sum(not series.changes for series in judged)} without a change."
        + (f" {hidden} more workloads changed and are not drawn." if hidden else ""),
        "Triangles at the edge are single runs beyond the scale. The place of a change may be a run or two off.",
    ]
    return lines + ([f"Measured on {next(iter(machines))}."] if len(machines) == 1 else [])
