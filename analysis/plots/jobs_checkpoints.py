"""How often to write a checkpoint: time taken by the interval between two, as measured and by Daly's formula, and whose choice is best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from analysis.studies.jobs.dependability.intervals import daly_s, time_per_work, young_s
from analysis.studies.jobs.queues.words import figure, number

from .jobs_shared import interval
from .marks import log_or_linear
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import BAND, COLOURS, GRID, INK, QUIET, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.jobs.dependability.checkpoints import Trial
    from analysis.terms import Run

    from .scene import Scene

TITLE = "How often to write a checkpoint"
ANSWERS = "Which interval between checkpoints costs least under faults, and whether Young's and Daly's formulas find it."
ORDER = -2
REPORTS = frozenset({"job", "fault"})

LEFT, TALL, BELOW = 0.62, 2.3, 0.55
YOUNG, DALY = COLOURS[2], COLOURS[1]


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a fault under which several intervals were tried."""
    found = trials_of(scene)
    lead = (
        "Time that jobs held their slots for each second that was of use, by the interval between checkpoints, under one rate of faults: "
        "too often costs checkpoints, too seldom costs lost work. Marks: means over blocks with 95 % intervals."
    )
    legend = [
        Entry("measured", {"color": INK, "marker": "o", "markersize": 5.5}),
        Entry("Daly's expected time", {"color": DALY, "linewidth": 1.3}),
        Entry("Young's interval", {"color": YOUNG, "linestyle": (0, (5, 1.5))}),
        Entry("Daly's interval", {"color": DALY, "linestyle": (0, (1.5, 1.2))}),
    ]
    if any(trial.least_s is not None for _, trial in found):
        legend.append(Entry("where the measured curve is least, 95 %", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    height = PANEL_HEAD + TALL + BELOW
    sheet = page(scene, TITLE, lead, height * len(found), legend, [_note(trial) for _, trial in found])
    for at, (run, trial) in enumerate(found):
        top = at * height
        panel_head(sheet, top, _name(trial), _beside(trial) + (f" · run {run.run_id}" if len(scene.runs) > 1 else ""))
        axes = sheet.axes(LEFT, top + PANEL_HEAD, INSIDE - LEFT - 0.05, TALL)
        curve(axes, trial)
        axes.set(xlabel="seconds of work between checkpoints", ylabel="time ÷ useful time")
    return sheet.figure


def trials_of(scene: Scene) -> list[tuple[Run, Trial]]:
    """Take every trial of intervals. Raises: NothingToDraw."""
    found = [(one.run, trial) for one in scene.streams for trial in one.trials if any(tried.time for tried in trial.tried)]
    if not found:
        raise NothingToDraw("no fault met streams with several intervals between checkpoints")
    return found


def curve(axes: Axes, trial: Trial) -> None:
    """Draw one trial: measured times, Daly's curve, and the intervals that formulas and measurements choose."""
    tried = [one for one in trial.tried if one.time is not None]
    levels = [one.checkpoint_s for one in tried if one.checkpoint_s > 0]
    known = trial.cost_s is not None and trial.mtbf_s is not None
    choices = [young_s(trial.cost_s, trial.mtbf_s.value), daly_s(trial.cost_s, trial.mtbf_s.value)] if trial.cost_s and trial.mtbf_s else []
    low, high = min([*levels, *choices], default=1.0) / 1.3, max([*levels, *choices], default=1.0) * 1.3
    none = high * 2.2  # where what has no checkpoint at all is drawn: beyond every interval
    if trial.least_s is not None:
        ends = (trial.least_s.low or low / 2, trial.least_s.high or high)
        axes.axvspan(max(ends[0], low / 2), min(ends[1], high), color=BAND, zorder=0)
        axes.axvline(trial.least_s.value, color=QUIET, linewidth=0.9, zorder=1)
    heights = [end for one in tried if one.time for end in (one.time.value, one.time.low, one.time.high) if end is not None]
    top = max(heights) + 0.25 * (max(heights) - 1.0)
    if known and trial.cost_s and trial.mtbf_s:
        spaced = np.geomspace(low, high, 200)
        times = np.array([time_per_work(float(at), trial.cost_s, trial.mtbf_s.value) for at in spaced])
        axes.plot(spaced[times <= top], times[times <= top], color=DALY, linewidth=1.3, zorder=1)
        for at, color, dashes in zip(choices, (YOUNG, DALY), ((0, (5, 1.5)), (0, (1.5, 1.2))), strict=True):
            axes.axvline(at, color=color, linestyle=dashes, linewidth=1.2, zorder=1)
    for one in tried:
        if one.time is not None:
            interval(axes, one.checkpoint_s or none, one.time, {"color": INK, "marker": "o"}, "y")
    log_or_linear(axes, "y", max(0.5, min([1.0, *heights])), top)
    axes.set(xscale="log", xlim=(low, none * 1.4))
    axes.xaxis.set_major_locator(FixedLocator([*levels, *([none] if len(levels) < len(tried) else [])]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: "none" if math.isclose(value, none) else f"{value:g}"))
    axes.grid(axis="y")


def _name(trial: Trial) -> str:
    return trial.fault.partition(" ")[0]


def _beside(trial: Trial) -> str:
    cost = "" if trial.cost_s is None else f"a checkpoint takes {number(1000 * trial.cost_s)} ms"
    mtbf = "" if trial.mtbf_s is None else f"a running job is hit every {number(trial.mtbf_s.value)} s"
    return ", ".join(part for part in (cost, mtbf, f"{trial.blocks} blocks") if part)


def _note(trial: Trial) -> str:
    if trial.least_s is None:
        return f"{_name(trial)}: {trial.why}."
    said = f"{_name(trial)}: the measured curve is least at {figure(trial.least_s).replace('inf', 'no end')} s"
    if trial.cost_s and trial.mtbf_s:
        chosen = f"{number(young_s(trial.cost_s, trial.mtbf_s.value))} and {number(daly_s(trial.cost_s, trial.mtbf_s.value))} s"
        said += f"; Young and Daly say {chosen}"
    return f"{said}."
