"""Waits by load, measured and by the models: points with intervals beside curves, and how far off each model is."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from analysis.studies.jobs.queues.open_queues import mmc
from analysis.studies.jobs.queues.terms import Figure, Inputs
from analysis.studies.jobs.queues.validating import RULE
from analysis.studies.jobs.queues.words import figure, unit
from analysis.studies.jobs.streams.words import called, settings
from analysis.wording import unsigned

from .jobs_shared import JOBS, interval, look, waits_of
from .lettering import fitted, room_for
from .marks import log_or_linear
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import AGAIN, BAND, FAINT, GRID, INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from analysis.studies.jobs.queues.validating import Held
    from analysis.studies.jobs.streams.gathered import Gathered, Waits

    from .page import Page
    from .scene import Scene

TITLE = "Waits by load, measured and predicted"
ANSWERS = "Whether queueing models foretell how long jobs wait, at which loads and arrivals, and how far they are off."
ORDER = -7
REPORTS = JOBS

LEFT, GAP, TALL, BELOW, ROW, NAMES, RATIO, WORDS, AXIS = 0.55, 0.5, 2.1, 0.55, 0.23, 2.6, 1.5, 0.85, 0.46
LEAST, MOST = 0.02, 0.97  # loads
FLOOR = 1e-3  # of a service time: what waits less is drawn there
# Shape says the same as colour.
VERDICTS: dict[str, dict[str, Any]] = {
    "agrees": {"color": "#009E73", "marker": "s"},
    "differs": {"color": "#D55E00", "marker": "X"},
    "open": {"color": INK, "marker": "o", "markerfacecolor": "white"},
    "not judged": {"color": AGAIN, "marker": "o", "markerfacecolor": "white"},
}


@drawn
def draw(scene: Scene) -> Drawing:
    """Draw a panel of curves a number of slots, and below them a row a setting."""
    found = waits_of(scene)
    slots = sorted({fit.servers for _, one in found if (fit := one.validation.fit).servers is not None and fit.load is not None})
    rows = [(name, waits, held) for name, (_, waits) in zip(settings(found), found, strict=True) if (held := chosen(waits)) is not None]
    if not slots or not rows:
        raise NothingToDraw("of no stream both waits and what a model takes are known (slots, rate, service times)")
    lead = (
        "Above: mean wait over mean service time, by how much of the slots' time is asked for. Points: measured, with 95 % intervals; "
        "curves: the model, which was shown rates and service times but no wait. Below: measured ÷ predicted for the model that the data "
        "leave standing."
    )
    margins = ", ".join(dict.fromkeys(unsigned(waits.validation.margin) for _, waits, _ in rows))
    legend = [
        Entry(f"{called(kind)}: measured, and model", {**look(kind), "markersize": 5})
        for kind in dict.fromkeys(waits.arrivals for _, waits in found)
    ]
    legend += [
        Entry(word, {"linestyle": "-", "markersize": 5.5, **style})
        for word, style in VERDICTS.items()
        if any(held.verdict == word for _, _, held in rows)
    ]
    legend.append(Entry(f"±{margins} around 1", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    across = min(3, len(slots))
    down = -(-len(slots) // across)
    body = down * (PANEL_HEAD + TALL + BELOW) + PANEL_HEAD + ROW * len(rows) + AXIS
    sheet = page(scene, TITLE, lead, body, legend, notes(found))
    wide = (INSIDE - across * LEFT - (across - 1) * (GAP - 0.3)) / across
    for at, many in enumerate(slots):
        row, column = divmod(at, across)
        left, top = column * (LEFT + wide + GAP - 0.3) + LEFT, row * (PANEL_HEAD + TALL + BELOW)
        sheet.text(left, top + 0.07, f"{many} slot{'s' if many > 1 else ''}", fontweight="bold")
        axes = sheet.axes(left, top + PANEL_HEAD, wide, TALL)
        curves(axes, [one for _, one in found], many)
        axes.set_xlabel("load: rate × service time ÷ slots")
        if not column:
            axes.set_ylabel("wait ÷ service time")
    _ratios(sheet, down * (PANEL_HEAD + TALL + BELOW), rows)
    return sheet.figure


def chosen(waits: Waits) -> Held | None:
    """Answer the model that the data leave standing, as it was held against the waits; None where none could be."""
    return next((one for one in waits.validation.held if one.chosen and one.ratio is not None), None)


def notes(found: Sequence[tuple[Gathered, Waits]]) -> list[str]:
    """What must be known of the points: what stands for independent, and loads of 1 and more."""
    units = dict.fromkeys(waits.validation.fit.units.why for _, waits in found)
    said = [f"Intervals are {why}." for why in units]
    said.append(f"{RULE[0].upper()}{RULE[1:]}")
    named = zip(settings(found), found, strict=True)
    said += [f"{name}: UNSTABLE: {one.validation.unstable}" for name, (_, one) in named if one.validation.unstable]
    if any(waits.validation.fit.simulated for _, waits in found):
        said.append("SIMULATED: no job of these ever ran.")
    return said


def curves(axes: Axes, found: Sequence[Waits], slots: int) -> None:
    """Draw the waits of streams with so many slots, and the model's curve of each kind of arrivals, in service times."""
    mine = [one for one in found if one.validation.fit.servers == slots and one.validation.fit.load is not None]
    heights: list[float] = []
    # What M/M/c is chosen for has its curve; what it is refused for has one of its own variation.
    for kind, plain in dict.fromkeys((one.arrivals, variation(one) == 1) for one in mine):
        its = [one for one in mine if (one.arrivals, variation(one) == 1) == (kind, plain)]
        style = look(kind)
        factor = fmean(variation(one) for one in its)
        loads = np.linspace(LEAST, MOST, 200)
        waits = np.array([factor * over_service(float(load), slots) for load in loads])
        axes.plot(loads, waits, color=style["color"], linewidth=1.1, linestyle="-" if plain else (0, (5, 1.5)), zorder=1)
        for one in its:
            point = in_services(one)
            if point is not None and one.validation.fit.load is not None:
                interval(axes, one.validation.fit.load.value, point, style, "y")
                heights += [max(FLOOR, end) for end in (point.value, point.low, point.high) if end is not None]
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.2, 0.4, 0.6, 0.8, 1]))
    log_or_linear(axes, "y", min([*heights, 0.05]), max([*heights, 5.0]), most=7)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True)


def in_services(one: Waits) -> Figure | None:
    """The mean wait in mean service times, with its interval."""
    wait, service = one.validation.wait_s, one.validation.fit.service_s
    if wait is None or service is None or service.value <= 0:
        return None
    low, high = (None if end is None else end / service.value for end in (wait.low, wait.high))
    return Figure(wait.value / service.value, low, high)


def variation(one: Waits) -> float:
    """(ca² + cs²)/2 as the model that was chosen takes it: 1 under M/M/c, which asks for none of it."""
    fit = one.validation.fit
    held = chosen(one)
    if held is None or held.model.startswith("M/M/") or fit.scv_arrivals is None or fit.scv_service is None:
        return 1.0
    return (fit.scv_arrivals.value + fit.scv_service.value) / 2


def over_service(load: float, slots: int) -> float:
    """Mean wait of M/M/c in mean service times."""
    return mmc(Inputs(load * slots, 1.0, slots)).wait_s


def _ratios(sheet: Page, top: float, rows: Sequence[tuple[str, Waits, Held]]) -> None:
    panel_head(sheet, top, "How far off the model is", "measured ÷ predicted mean wait, 95 % interval")
    left = room_for([name for name, _, _ in rows], NAMES)
    wide = INSIDE - left - RATIO - WORDS - 0.75
    names = fitted([name for name, _, _ in rows], left - 0.12, lines=1)
    axes = sheet.axes(left, top + PANEL_HEAD, wide, ROW * len(rows), ylim=(len(rows) - 0.5, -0.5), yticks=[])
    axes.spines["left"].set_visible(False)
    ends = [end for _, _, held in rows if held.ratio for end in (held.ratio.value, held.ratio.low, held.ratio.high) if end is not None]
    margin = max(waits.validation.margin for _, waits, _ in rows)
    reach = min(2.0, 1.08 * max([2 * margin, *(abs(end - 1) for end in ends)]))
    axes.set_xlim(max(0.0, 1 - reach), 1 + reach)
    axes.axvspan(1 - margin, 1 + margin, color=BAND, zorder=0)
    axes.axvline(1, color=INK, linewidth=0.9, zorder=1)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.grid(axis="x")
    axes.set_xlabel("measured ÷ predicted")
    scale, short = unit(one.value for _, waits, _ in rows if (one := waits.validation.wait_s) is not None)
    under = top + PANEL_HEAD + ROW * len(rows) + 0.24
    places = left + wide + 0.1, left + wide + 0.1 + RATIO, INSIDE
    for text, place, side in zip((f"wait, {short} [95 %]", "model", "verdict"), places, ("left", "left", "right"), strict=True):
        sheet.text(place, under, text, fontsize=SMALL, color=QUIET, ha=side)
    for at, (name, waits, held) in enumerate(rows):
        middle = top + PANEL_HEAD + ROW * (at + 0.5)
        style = VERDICTS[held.verdict]
        sheet.text(left - 0.1, middle, names[name], ha="right", va="center")
        if held.ratio is not None:
            interval(axes, at, held.ratio, style, "x")
        sheet.text(places[0], middle, figure(waits.validation.wait_s, scale), va="center", fontsize=SMALL)
        model = fitted([held.model.replace("Allen-Cunneen", "A-C")], WORDS - 0.05, SMALL, lines=1)
        sheet.text(places[1], middle, *model.values(), va="center", fontsize=SMALL, color=QUIET)
        sheet.text(places[2], middle, held.verdict, va="center", ha="right", fontsize=SMALL, fontweight="bold", color=style["color"])
    axes.axhline(len(rows) - 0.5, color=FAINT, linewidth=0.5)
