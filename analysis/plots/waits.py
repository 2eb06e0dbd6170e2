"""Waits of jobs against queueing models: by load, and their tails."""

from __future__ import annotations

import math
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from analysis.studies.jobs.estimates import figure, unit
from analysis.studies.jobs.queue_formulas import Inputs, Unstable, mmc
from analysis.studies.jobs.queue_times import columns
from analysis.studies.jobs.queues import RULE, predicted
from analysis.studies.jobs.streams import FIRST_COME, called, settings
from analysis.wording import unsigned

from .labels import fitted, joined, room_for
from .marks import DOWN, FOOT, HEADS, ROW, SAME, Mark, MarkRow, ends_of, forest, interval, known, log_or_linear, rounded, ticks
from .page import Section, fill, line, places, stack, verdict_entries
from .scene import NothingToDraw
from .style import AGAIN, COLOURS, FAINT, INK, SMALL, picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.jobs.queue_formulas import Queue
    from analysis.studies.jobs.queues import ModelCheck as Judged
    from analysis.studies.jobs.streams import Gathered, GroupWaits

    from .marks import Ends, Style
    from .page import Page
    from .scene import Scene

JOBS = frozenset({"job"})
# Shape says the same as colour, for print and for the colour-blind.
ARRIVALS: dict[str, Style] = {
    "poisson": {"color": INK, "marker": "o"},
    "deterministic": {"color": COLOURS[0], "marker": "s"},
    "mmpp": {"color": COLOURS[1], "marker": "^"},
    "trace": {"color": COLOURS[2], "marker": "D"},
    "fltk": {"color": COLOURS[3], "marker": "v"},
}
OTHER: Style = {"color": COLOURS[5], "marker": "<"}
DASHED = (0, (5, 1.5))


def waits_of(scene: Scene) -> list[tuple[Gathered, GroupWaits]]:
    """Take all streams whose waits were held against models. Raises: NothingToDraw, with what could not be used."""
    every = [(stream, waits) for stream in scene.streams for waits in stream.waits if waits.validation.wait_s is not None]
    result = [(gathered, waits) for gathered, waits in every if waits.validation.fit.policy in FIRST_COME]
    if every and not result:
        raise NothingToDraw("no stream was served first come, first served, which these models are of")
    if not result:
        reason = next((line.rstrip(".") for stream in scene.streams for line in stream.refused), "")
        raise NothingToDraw(reason or "no stream of jobs came by itself and without faults, which models of waits are of")
    return result


def chosen(waits: GroupWaits) -> Judged | None:
    """Answer the model that the data leave standing, as it was held against the waits; None where none could be."""
    return next((held for held in waits.validation.held if held.chosen and held.ratio is not None), None)


LEAST, FULLEST = 0.02, 0.97  # loads
FLOOR = 1e-3  # of a service time: what waits less is drawn there
VERDICT_LOOKS: dict[str, Style] = {
    "agrees": {"color": SAME, "marker": "s"},
    "differs": {"color": DOWN, "marker": "X"},
    "open": {"color": INK, "marker": "o", "markerfacecolor": "white"},
    "not judged": {"color": AGAIN, "marker": "o", "markerfacecolor": "white"},
}


@picture(
    -7,
    "Waits by load, measured and predicted",
    "Whether queueing models foretell how long jobs wait, at which loads and arrivals, and how far they are off.",
    REPORTS=JOBS,
)
def jobs_waits(scene: Scene) -> Figure:
    """Draw a panel of curves a number of slots, and below them a row a setting."""
    result = waits_of(scene)
    slots = sorted({fit.servers for _, waits in result if (fit := waits.validation.fit).servers is not None and fit.load is not None})
    rows = [
        (name, waits, held)
        for name, (_, waits) in zip(settings(waits for _, waits in result), result, strict=True)
        if (held := chosen(waits)) is not None
    ]
    if not slots or not rows:
        raise NothingToDraw("of no stream both waits and what a model takes are known (slots, rate, service times)")
    lead = (
        "Above: mean wait over mean service time, by how much of the slots' time is asked for. Points: measured, with 95 % intervals; "
        "curves: the model, which was shown rates and service times but no wait. Below: measured ÷ predicted for the model that the data "
        "leave standing."
    )
    kinds = dict.fromkeys(waits.arrivals for _, waits in result)
    legend = [line(f"{called(kind)}: measured, and model", **ARRIVALS.get(kind, OTHER), markersize=5) for kind in kinds]
    legend += verdict_entries({word: word for word in VERDICT_LOOKS}, VERDICT_LOOKS, {held.verdict for _, _, held in rows})
    legend.append(fill(f"±{joined(unsigned(waits.validation.margin) for _, waits, _ in rows)} around 1"))
    across = min(3, len(slots))
    tall = 0.24 + 2.0 + 0.5

    def draw(sheet: Page, top: float) -> None:
        for at, (many, (left, down, wide)) in enumerate(zip(slots, places(len(slots), across, tall, left=0.55, gap=0.05), strict=True)):
            sheet.text(left, top + down, f"{many} slot{'s' if many > 1 else ''}", fontweight="bold")
            axes = sheet.axes(left, top + down + 0.24, wide, 2.0, xlabel="load: rate × service time ÷ slots")
            curves(axes, [waits for _, waits in result], many)
            axes.set_ylabel("" if at % across else "wait ÷ service time")

    runs = [gathered.run for gathered, _ in result]
    run = runs[0] if all(run is runs[0] for run in runs) else None
    sections = [
        Section("Wait by load", tall * math.ceil(len(slots) / across), draw, run=run),
        Section(
            "How far off the model is", HEADS + ROW * len(rows) + FOOT, partial(_off, rows=rows), "measured ÷ predicted mean wait", run=run
        ),
    ]
    notes = [f"Intervals are {reason}." for reason in dict.fromkeys(waits.validation.fit.units.why for _, waits in result)]
    notes.append(f"{RULE[0].upper()}{RULE[1:]}")
    titled = zip(settings(waits for _, waits in result), result, strict=True)
    notes += [f"{name}: UNSTABLE: {waits.validation.unstable}" for name, (_, waits) in titled if waits.validation.unstable]
    notes += ["SIMULATED: no job of these ever ran."] if any(waits.validation.fit.simulated for _, waits in result) else []
    return stack(scene, jobs_waits.TITLE, lead, sections, legend, notes)


def curves(axes: Axes, result: Sequence[GroupWaits], slots: int) -> None:
    """Draw the waits of streams with so many slots, and the model's curve of each kind of arrivals, in service times."""
    mine = [waits for waits in result if waits.validation.fit.servers == slots and waits.validation.fit.load is not None]
    heights: list[float] = []
    loads = np.linspace(LEAST, FULLEST, 200)
    plain = np.array([mmc(Inputs(float(load) * slots, 1.0, slots)).wait_s for load in loads])
    # What M/M/c is chosen for has its curve; what it is refused for has one of its own variation.
    for kind, exact in dict.fromkeys((waits.arrivals, _variation(waits) == 1) for waits in mine):
        its = [waits for waits in mine if (waits.arrivals, _variation(waits) == 1) == (kind, exact)]
        style = ARRIVALS.get(kind, OTHER)
        factor = fmean(map(_variation, its))
        axes.plot(loads, factor * plain, color=style["color"], linewidth=1.1, linestyle="-" if exact else DASHED, zorder=1)
        for waits in its:
            ends, load = _in_services(waits), waits.validation.fit.load
            if ends is not None and load is not None:
                interval(axes, load.value, ends, {"markersize": 5.5, "linewidth": 1.5, **style}, "y")
                heights += [max(FLOOR, end) for end in known([ends])]
    axes.set_xlim(0, 1)
    ticks(axes, "x", [0, 0.2, 0.4, 0.6, 0.8, 1])
    log_or_linear(axes, "y", min([*heights, 0.05]), max([*heights, 5.0]), most=7)
    axes.grid(visible=True)


def _in_services(waits: GroupWaits) -> Ends | None:
    """The mean wait in mean service times, with its interval."""
    service = waits.validation.fit.service_s
    return (
        None
        if waits.validation.wait_s is None or service is None or service.value <= 0
        else ends_of(waits.validation.wait_s, 1 / service.value)
    )


def _variation(waits: GroupWaits) -> float:
    """(ca² + cs²)/2 as the model that was chosen takes it: 1 under M/M/c, which asks for none of it."""
    fit, held = waits.validation.fit, chosen(waits)
    if held is None or held.model.startswith("M/M/") or fit.scv_arrivals is None or fit.scv_service is None:
        return 1.0
    return (fit.scv_arrivals.value + fit.scv_service.value) / 2


def _off(sheet: Page, top: float, rows: Sequence[tuple[str, GroupWaits, Judged]]) -> None:
    left = room_for([name for name, _, _ in rows], 2.6)
    scale, short = unit(one.value for _, waits, _ in rows if (one := waits.validation.wait_s) is not None)
    drawn = []
    for name, waits, held in rows:
        (model,) = fitted([held.model.replace("Allen-Cunneen", "A-C")], 0.8, SMALL, lines=1).values()
        texts = figure(waits.validation.wait_s, scale), model, held.verdict
        drawn.append(MarkRow(name, [Mark(ends_of(held.ratio), VERDICT_LOOKS[held.verdict], texts)]))
    margin = max(waits.validation.margin for _, waits, _ in rows)
    reach = min(2.0, 1.08 * max([2 * margin, *(abs(end - 1) for end in known(ends_of(held.ratio) for _, _, held in rows))]))

    def from_one(axes: Axes) -> None:
        axes.set_xlim(max(0.0, 1 - reach), 1 + reach)
        rounded(axes, x=6)

    heads = [(f"wait, {short} [95 %]", 0.1), ("model", 1.6), ("verdict", 0)]
    band = (1 - margin, 1 + margin)
    forest(sheet, top, drawn, left=left, right=3.1, label="measured ÷ predicted", heads=heads, scale=from_one, zero=1.0, band=band)


LOWEST, MOST_PANELS = 1e-3, 8


@picture(
    -6,
    "How long jobs wait, and how many",
    "Whether the tail of the waits is as the model has it, or rare long waits are missed by a mean that fits.",
    REPORTS=JOBS,
)
def jobs_tail(scene: Scene) -> Figure:
    """Draw a panel a setting, two beside each other."""
    result = waits_of(scene)
    panels = list(zip(settings(waits for _, waits in result), result, strict=True))

    def load(at: int) -> float:
        return one.value if (one := panels[at][1][1].validation.fit.load) is not None else 0.0

    # Where much waits there is most to see.
    drawn = sorted(sorted(range(len(panels)), key=lambda at: -load(at))[:MOST_PANELS])
    lead = (
        "Part of the jobs that waits longer than a time, on a scale of ratios. Where lines begin is the part that waits at all. A straight "
        "line is an exponential tail, which M/M/c has exactly and other models by approximation."
    )
    legend = [
        line("measured, all runs", INK, 1.7),
        line("each run", FAINT, 0.8),
        line("the model that the data leave standing", COLOURS[1], 1.6, linestyle=DASHED),
    ]
    tall = 0.24 + 1.45 + 0.5

    def draw(sheet: Page, top: float) -> None:
        for place, (at, (left, down, wide)) in enumerate(zip(drawn, places(len(drawn), 2, tall, left=0.58, gap=0.1), strict=True)):
            name, (_, waits) = panels[at]
            sheet.text(left - 0.45, top + down, fitted([name], wide + 0.4, lines=1, weight="bold")[name], fontweight="bold")
            axes = sheet.axes(left, top + down + 0.24, wide, 1.45, ylabel="" if place % 2 else "part waiting longer")
            _survival(axes, waits)

    hidden = [name for at, (name, _) in enumerate(panels) if at not in drawn]
    notes = [f"Not drawn, for they wait least: {'; '.join(hidden)}."] if hidden else []
    notes.append("Jobs of one run hang together: a tail of few runs is ragged by chance.")
    runs = [panels[at][1][0].run for at in drawn]
    count = f"{len(drawn)} setting{'s' if len(drawn) > 1 else ''}"
    section = Section(count, tall * math.ceil(len(drawn) / 2), draw, run=runs[0] if all(run is runs[0] for run in runs) else None)
    return stack(scene, jobs_tail.TITLE, lead, [section], legend, notes)


def _survival(axes: Axes, waits: GroupWaits) -> None:
    """Draw the part of jobs that waits longer than a time, of a setting's runs and by its model."""
    every = [part.taken - part.submit for stream in waits.streams for part in (columns(stream),)]
    runs = [np.sort(one[~np.isnan(one)]) for one in every]
    together = np.sort(np.concatenate(runs))
    longest = float(together[-1]) if len(together) else 0.0
    scale, short = unit([longest])
    for run in runs:
        axes.step(*steps_of(run, scale), where="post", color=FAINT, linewidth=0.8, zorder=1)
    axes.step(*steps_of(together, scale), where="post", color=INK, linewidth=1.7, zorder=3)
    queue = _model(waits)
    if queue is not None and queue.p_wait > 0 and queue.wait_s > 0:
        # The last few jobs of all runs say nothing of a tail: a model's line is drawn as far as the measured one.
        times = np.linspace(0, 1.05 * longest, 100)
        style: Style = {"color": COLOURS[1], "linestyle": DASHED, "linewidth": 1.6, "zorder": 4}
        axes.plot(times * scale, queue.p_wait * np.exp(-times * queue.p_wait / queue.wait_s), **style)
        axes.text(0.98, 0.93, queue.model, transform=axes.transAxes, ha="right", va="top", fontsize=SMALL, color=COLOURS[1])
    lowest = max(LOWEST, 0.7 / max(1, len(together)))
    axes.set(yscale="log", ylim=(lowest, 1.15), xlim=(0, 1.05 * longest * scale or 1.0), xlabel=f"wait, {short}")
    ticks(axes, "y", [10.0**power for power in range(math.ceil(math.log10(lowest)), 1)], lambda value: f"{100 * value:g} %")
    rounded(axes, x=5)
    axes.grid(visible=True)


def _model(waits: GroupWaits) -> Queue | None:
    """Answer the model that the data leave standing, for the streams' own rate and service times; None where there is none."""
    fit, held = waits.validation.fit, chosen(waits)
    if fit.servers is None or held is None:
        return None
    try:
        return next((one.queue for one in predicted(fit, fit.servers) if one.queue.model == held.model), None)
    except Unstable:
        return None


def steps_of(waits: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Part of the waits that are longer than each of them, from 0 on; shapes (waits + 1,)."""
    count = len(waits)
    times = np.concatenate([[0.0], np.maximum(waits, 0.0)])
    longer = np.concatenate([[float((waits > 0).mean()) if count else 0.0], 1 - np.arange(1, count + 1) / max(1, count)])
    return times * scale, np.minimum(longer, longer[0])
