"""Policies on identical arrivals: how long jobs wait under each, a ratio to the baseline's, paired stream by stream."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.studies.jobs.queues.words import unit
from analysis.studies.jobs.simulation.study_page import METRIC_HEADS
from analysis.wording import digits, probability

from .lettering import fitted, room_for
from .marks import log_or_linear
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.jobs.schedulers.measured import Place
    from analysis.terms import Run

    from .page import Page
    from .scene import Scene

TITLE = "Policies on the same jobs"
ANSWERS = "Which policy lets jobs wait less, by how much, and how surely; and whom that costs."
ORDER = -5
REPORTS = frozenset({"job"})

ROW, NAMES, WORDS, AXIS, GROUP = 0.22, 1.6, 1.95, 0.46, 0.26
SURE = 0.05
# Shape says the same as colour, for print and for the colour-blind.
LOOKS: dict[str, dict[str, Any]] = {
    "shorter": {"color": "#0072B2", "marker": "v"},
    "longer": {"color": "#D55E00", "marker": "^"},
    "not shown": {"color": INK, "marker": "o", "markerfacecolor": "white"},
}
CALLED = {"shorter": "less than the baseline's", "longer": "more", "not shown": "no difference is shown"}


class Row(NamedTuple):
    """One policy in one figure: a ratio to the baseline's with its interval, p after Holm; or why there is none."""

    policy: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    why: str = ""

    @property
    def verdict(self) -> str:
        """One of LOOKS."""
        if self.ratio is None or self.p is None or self.p >= SURE:
            return "not shown"
        return "shorter" if self.ratio < 1 else "longer"


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel an engine and number of slots; in it a group of rows a figure."""
    found = places_of(scene)
    groups = [[(name, rows_of(place, name)) for name in METRIC_HEADS] for _, place in found]
    every = [row for place in groups for _, rows in place for row in rows]
    baselines = ", ".join(dict.fromkeys(place.baseline for _, place in found))
    lead = (
        f"Each figure of a stream under a policy, over that of the same stream under {baselines} (the line at 1): left of it is less. "
        "Marks: geometric mean over streams; lines: 95-percent intervals, paired; p after Holm over all policies, each figure by itself."
    )
    legend = [
        Entry(CALLED[word], {"linestyle": "-", "markersize": 6, **style})
        for word, style in LOOKS.items()
        if any(row.verdict == word and row.ratio is not None for row in every)
    ]
    tall = [PANEL_HEAD + sum(GROUP + ROW * len(rows) for _, rows in place) + AXIS for place in groups]
    sheet = page(scene, TITLE, lead, sum(tall), legend, notes([place for _, place in found]))
    left = room_for([row.policy for row in every], NAMES)
    reach = reach_of(every)
    top = 0.0
    for (run, place), parts, height in zip(found, groups, tall, strict=True):
        beside = f"{place.streams} streams, the same for every policy" + (f" · run {run.run_id}" if len(scene.runs) > 1 else "")
        panel_head(sheet, top, f"{place.slots} slot{'s' if place.slots > 1 else ''} of {place.engine}", beside)
        _panel(sheet, (top + PANEL_HEAD, left), place, parts, reach)
        top += height
    return sheet.figure


def places_of(scene: Scene) -> list[tuple[Run, Place]]:
    """Take what was compared. Raises: NothingToDraw."""
    found = [(one.run, place) for one in scene.streams for place in one.places]
    if not any(row.ratio is not None for _, place in found for name in METRIC_HEADS for row in rows_of(place, name)):
        raise NothingToDraw("no two policies met the same jobs in two streams or more")
    return found


def rows_of(place: Place, name: str) -> list[Row]:
    """Answer a figure of every policy against the baseline's, the least first."""
    rows = []
    for arm in place.arms:
        if arm.policy == place.baseline:
            continue
        one = arm.against[name]
        effect = one.effect
        if effect is None:
            rows.append(Row(arm.policy, why=one.reason))
        else:
            ratio, low, high = (1 / (1 + gain) for gain in (effect.gain, effect.high, effect.low))
            rows.append(Row(arm.policy, ratio, low, high, one.p))
    return sorted(rows, key=lambda row: row.ratio if row.ratio is not None else math.inf)


def reach_of(rows: Sequence[Row]) -> tuple[float, float]:
    """Answer the ends of an axis of ratios: all intervals and 1 are in view."""
    ends = [end for row in rows for end in (row.ratio, row.low, row.high) if end is not None]
    return min([0.8, *ends]), max([1.25, *ends])


def notes(found: Sequence[Place]) -> list[str]:
    """Say which jobs have no part in it, and under which policies the queue grows."""
    said = ["The first tenth of each stream is left out. Slowdown: response over time in service."]
    lost = sum(place.lost for place in found)
    said += [f"{lost} jobs were not done and have no part in these figures."] if lost else []
    grow = sorted({arm.policy for place in found for arm in place.arms if arm.grows})
    return said + ([f"UNSTABLE under {', '.join(grow)}: the queue grows for as long as jobs come."] if grow else [])


def _panel(
    sheet: Page, spot: tuple[float, float], place: Place, parts: Sequence[tuple[str, list[Row]]], reach: tuple[float, float]
) -> None:
    top, left = spot
    wide = INSIDE - left - WORDS - 0.1
    base = next(arm for arm in place.arms if arm.policy == place.baseline)
    for at, (name, rows) in enumerate(parts):
        value = base.mean(name)
        scale, short = unit([value or 0.0]) if name != "slowdown" else (1.0, "")
        told = "" if value is None else f" ({place.baseline}: {digits(value * scale)}{f' {short}' if short else ''})"
        sheet.text(left, top + 0.06, METRIC_HEADS[name], fontweight="bold", fontsize=SMALL)
        sheet.text(left + 0.75, top + 0.06, told, fontsize=SMALL, color=QUIET)
        axes = sheet.axes(left, top + GROUP, wide, ROW * len(rows), ylim=(len(rows) - 0.5, -0.5), yticks=[])
        forest(axes, rows, reach)
        last = at == len(parts) - 1
        axes.tick_params(axis="x", labelbottom=last, length=3.5 if last else 0)
        if last:
            axes.set_xlabel(f"ratio to {place.baseline}'s")
            sheet.text(left + wide + 0.12, top + GROUP + ROW * len(rows) + 0.24, "ratio [95 %]", fontsize=SMALL, color=QUIET)
            sheet.text(INSIDE, top + GROUP + ROW * len(rows) + 0.24, "p", fontsize=SMALL, color=QUIET, ha="right")
        names = fitted([row.policy for row in rows], left - 0.12, lines=1)
        for line, row in enumerate(rows):
            middle = top + GROUP + ROW * (line + 0.5)
            sheet.text(left - 0.1, middle, names[row.policy], ha="right", va="center")
            sheet.text(left + wide + 0.12, middle, words(row), va="center", fontsize=SMALL)
            sheet.text(INSIDE, middle, "" if row.p is None else probability(row.p), va="center", ha="right", fontsize=SMALL)
        top += GROUP + ROW * len(rows)


def forest(axes: Axes, rows: Sequence[Row], reach: tuple[float, float]) -> None:
    """Draw ratios with intervals, a row each, beside the line at 1."""
    axes.spines["left"].set_visible(False)
    log_or_linear(axes, "x", *reach)
    axes.axvline(1, color=INK, linewidth=0.9, zorder=1)
    axes.grid(axis="x")
    for at, row in enumerate(rows):
        style = LOOKS[row.verdict]
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [at, at], color=style["color"], linewidth=1.6, solid_capstyle="butt", zorder=2)
        if row.ratio is not None:
            axes.plot([row.ratio], [at], **{"linestyle": "none", "markersize": 6, "zorder": 3, **style})


def words(row: Row) -> str:
    """Write a ratio with its interval, or why there is none."""
    if row.ratio is None or row.low is None or row.high is None:
        return row.why
    return f"{digits(row.ratio, 3)} [{digits(row.low, 3)}, {digits(row.high, 3)}]"
