"""Throughput against the baseline beside how far the cap is held: a row an algorithm, each with its 95 % interval."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.ticker import MaxNLocator

from analysis.studies.power.reporting.figures import ABOVE_102, THROUGHPUT
from analysis.studies.power.reporting.study import LIMIT
from analysis.studies.power.reporting.terms import Against
from analysis.wording import unsigned

from .lettering import fitted, room_for
from .marks import VERDICTS
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .power_shared import CAPPED, HELD, HOLDS, parts_of, sources
from .style import BAND, GRID, INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.power.reporting.terms import Arm, Mean, Together
    from analysis.terms import Verdict

    from .page import Page
    from .power_shared import Part
    from .scene import Scene

TITLE = "Throughput under the cap, and whether the cap is held"
ANSWERS = "Which algorithm gets most images/s, how surely, and which of them pay for it with time above the cap."
ORDER = 5
REPORTS = CAPPED

ROW, NAMES, AXIS, GAP = 0.23, 1.9, 0.46, 0.55
CALLED: dict[Verdict, str] = {"improved": "more images/s", "regressed": "fewer", "equivalent": "alike", "inconclusive": "not shown"}
WIDEST = 100.0  # percent to either side: what reaches further is cut, with an arrow


class Row(NamedTuple):
    """One line of a panel: name, verdict on images/s and its difference, share above 1.02 times the cap and what that says."""

    name: str
    verdict: Verdict
    rate: Against
    above: Mean | None
    holds: str


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel for all tasks together, and one a task."""
    parts = parts_of(scene)
    panels = [panel for part in parts for panel in _panels(part, parts)]
    rows = [row for _, _, ones in panels for row in ones]
    baselines = ", ".join(dict.fromkeys(part.side.baseline for part in parts))
    lead = (
        f"Left: images/s in steady iterations, % more than {baselines} (the line at 0), paired by block. Right: part of the same time in "
        "which the reading was above 1.02 times the cap. More images/s count where the cap is held. Lines: 95 % intervals over blocks."
    )
    legend = [
        Entry(word, {"linestyle": "-", "markersize": 6, **VERDICTS[name]})
        for name, word in CALLED.items()
        if any(one.verdict == name and one.rate.value is not None for one in rows)
    ]
    legend += [
        Entry(HELD[name], {"linestyle": "-", "markersize": 6, **style})
        for name, style in HOLDS.items()
        if any(one.holds == name for one in rows)
    ]
    margins = ", ".join(dict.fromkeys(unsigned(part.side.margin) for part in parts))
    legend.append(Entry(f"left ±{margins}, right up to {unsigned(LIMIT)}: alike, held", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    tall = [PANEL_HEAD + ROW * len(ones) + AXIS for _, _, ones in panels]
    sheet = page(scene, TITLE, lead, sum(tall), legend, [*sources(parts), *_lost(parts)])
    left = room_for([one.name for one in rows], NAMES)
    scale = _scale(rows), max([3 * LIMIT, *(one.above.high or one.above.value for one in rows if one.above is not None)]) * 105
    top = 0.0
    for (part, title, ones), height in zip(panels, tall, strict=True):
        panel_head(sheet, top, title)
        _panel(sheet, (top + PANEL_HEAD, left), ones, part.side.margin, scale)
        top += height
    return sheet.figure


def _panels(part: Part, parts: Sequence[Part]) -> list[tuple[Part, str, list[Row]]]:
    found = []
    if part.side.together:
        every = replace(part.side.groups[0], title=f"all {len(part.side.groups)} tasks together")
        found.append((part, part.title(every, parts), [_of_all(one, part.side.baseline) for one in part.side.together]))
    for group in part.side.groups:
        rows = [_of_task(one, part.side.baseline) for one in group.arms if one.n]
        if rows:
            found.append((part, part.title(group, parts), rows))
    return found


def _of_all(one: Together, baseline: str) -> Row:
    if one.name == baseline:
        return _baseline(one.name, one.above, one.holds)
    p = one.throughput.p_adjusted
    verdict: Verdict = "inconclusive" if p is None or p >= 0.05 else "improved" if (one.throughput.value or 0) > 0 else "regressed"
    return Row(one.name, verdict, one.throughput, one.above, one.holds)


def _of_task(one: Arm, baseline: str) -> Row:
    above = one.means.get(ABOVE_102)
    if one.name == baseline:
        return _baseline(one.name, above, one.holds)
    return Row(one.name, one.verdict, one.against.get(THROUGHPUT, Against()), above, one.holds)


def _baseline(name: str, above: Mean | None, holds: str) -> Row:
    return Row(f"{name} (0)", "not comparable", Against(), above, holds)


def _scale(rows: Sequence[Row]) -> float:
    ends = [abs(end) * 100 for one in rows for end in (one.rate.low, one.rate.high) if end is not None]
    return min(WIDEST, 1.1 * max([5.0, *ends]))


def _panel(sheet: Page, place: tuple[float, float], rows: Sequence[Row], margin: float, scale: tuple[float, float]) -> None:
    (top, left), (reach, most) = place, scale
    wide = (INSIDE - left - GAP - 0.1) / 2
    rates = sheet.axes(left, top, wide, ROW * len(rows), ylim=(len(rows) - 0.5, -0.5), yticks=[], xlim=(-reach, reach))
    above = sheet.axes(left + wide + GAP, top, wide, ROW * len(rows), ylim=(len(rows) - 0.5, -0.5), yticks=[], xlim=(-0.02 * most, most))
    rates.axvspan(100 / (1 + margin) - 100, 100 * margin, color=BAND, zorder=0)
    rates.axvline(0, color=INK, linewidth=0.9, zorder=1)
    above.axvspan(0, 100 * LIMIT, color=BAND, zorder=0)
    rates.set_xlabel("images/s, % more than the baseline")
    above.set_xlabel("steady time above 1.02 × cap, %")
    for axes in (rates, above):
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    names = fitted([one.name for one in rows], left - 0.12, lines=1)
    for at, one in enumerate(rows):
        sheet.text(left - 0.1, top + ROW * (at + 0.5), names[one.name], ha="right", va="center")
        if one.rate.value is not None:
            _mark(rates, at, (one.rate.value, one.rate.low, one.rate.high), VERDICTS[one.verdict], reach)
        if one.above is not None and one.holds in HOLDS:
            _mark(above, at, (one.above.value, one.above.low, one.above.high), HOLDS[one.holds], most)
        elif one.above is None:
            why = "no sensor" if one.holds == "no sensor" else "readings are missing"
            above.text(0.02 * most, at, why, va="center", fontsize=SMALL, color=QUIET)


def _mark(axes: Axes, at: int, ends: tuple[float, float | None, float | None], style: dict[str, Any], reach: float) -> None:
    value, low, high = (None if one is None else 100 * one for one in ends)
    if low is not None and high is not None:
        axes.plot([max(low, -reach), min(high, reach)], [at, at], color=style["color"], linewidth=1.6, solid_capstyle="butt", zorder=2)
        for cut, end, mark in ((low < -reach, -reach, "<"), (high > reach, reach, ">")):
            if cut:
                axes.plot([end], [at], marker=mark, color=style["color"], markersize=5, clip_on=False)
    if value is not None and abs(value) <= reach:
        axes.plot([value], [at], zorder=3, clip_on=False, **{"markersize": 6, "linestyle": "none", **style})


def _lost(parts: Sequence[Part]) -> list[str]:
    """Name the algorithms that have no figures on a task, with the first reason."""
    none = [(arm, group) for part in parts for group in part.side.groups for arm in group.arms if not arm.n]
    return [f"No figures of {arm.name} on {group.label}: {next(iter(arm.lost), 'no cell')}" for arm, group in none]
