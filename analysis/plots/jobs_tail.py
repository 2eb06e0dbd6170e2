"""How waits are spread: which part of the jobs waits longer than how long, in every run and by the models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from analysis.studies.jobs.queues.predicting import predicted
from analysis.studies.jobs.queues.sound import columns
from analysis.studies.jobs.queues.terms import Unstable
from analysis.studies.jobs.queues.words import unit
from analysis.studies.jobs.streams.words import settings

from .jobs_shared import JOBS, waits_of
from .jobs_waits import chosen
from .lettering import fitted
from .page import INSIDE, PANEL_HEAD, Entry, page
from .style import COLOURS, FAINT, INK, QUIET, SMALL, TEXT, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.jobs.queues.terms import Queue
    from analysis.studies.jobs.streams.gathered import Waits

    from .scene import Scene

TITLE = "How long jobs wait, and how many"
ANSWERS = "Whether the tail of the waits is as the model has it, or rare long waits are missed by a mean that fits."
ORDER = -6
REPORTS = JOBS

LEFT, GAP, TALL, BELOW = 0.58, 0.5, 1.45, 0.5
LOWEST = 1e-3  # part of the jobs
MOST = 8  # panels


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a setting, two beside each other."""
    found = waits_of(scene)
    panels = list(zip(settings(found), (one for _, one in found), strict=True))
    # Where much waits there is most to see.
    kept = sorted(sorted(range(len(panels)), key=lambda at: -_load(panels[at][1]))[:MOST])
    lead = (
        "Part of the jobs that waits longer than a time, on a scale of ratios. Where lines begin is the part that waits at all. A straight "
        "line is an exponential tail, which M/M/c has exactly and other models by approximation."
    )
    legend = [
        Entry("measured, all runs", {"color": INK, "linewidth": 1.7}),
        Entry("each run", {"color": FAINT, "linewidth": 0.8}),
        Entry("the model that the data leave standing", {"color": COLOURS[1], "linestyle": (0, (5, 1.5)), "linewidth": 1.6}),
    ]
    left_out = [panels[at][0] for at in range(len(panels)) if at not in kept]
    said = [f"Not drawn, for they wait least: {'; '.join(left_out)}."] if left_out else []
    rows = -(-len(kept) // 2)
    height = PANEL_HEAD + TALL + BELOW
    sheet = page(
        scene, TITLE, lead, height * rows, legend, [*said, "Jobs of one run hang together: a tail of few runs is ragged by chance."]
    )
    wide = (INSIDE - GAP) / 2
    for place, at in enumerate(kept):
        row, column = divmod(place, 2)
        left, top = column * (wide + GAP), row * height
        name, waits = panels[at]
        sheet.text(left, top + 0.07, fitted([name], wide, TEXT, lines=1, weight="bold")[name], fontweight="bold")
        axes = sheet.axes(left + LEFT, top + PANEL_HEAD, wide - LEFT - 0.05, TALL)
        survival(axes, waits)
        if not column:
            axes.set_ylabel("part waiting longer")
    return sheet.figure


def survival(axes: Axes, waits: Waits) -> None:
    """Draw the part of jobs that waits longer than a time, of a setting's runs and by its model."""
    runs = [part.taken - part.submit for one in waits.told for part in (columns(one.stream),)]
    runs = [np.sort(one[~np.isnan(one)]) for one in runs]
    every = np.sort(np.concatenate(runs))
    longest = float(every[-1]) if len(every) else 0.0
    queue = model(waits)
    # The last few jobs of all runs say nothing of a tail: a model's line is drawn as far as the measured one.
    scale, short = unit([longest])
    for one in runs:
        axes.step(*steps(one, scale), where="post", color=FAINT, linewidth=0.8, zorder=1)
    axes.step(*steps(every, scale), where="post", color=INK, linewidth=1.7, zorder=3)
    if queue is not None and queue.p_wait > 0 and queue.wait_s > 0:
        times = np.linspace(0, 1.05 * longest, 100)
        style: dict[str, Any] = {"color": COLOURS[1], "linestyle": (0, (5, 1.5)), "linewidth": 1.6, "zorder": 4}
        axes.plot(times * scale, queue.p_wait * np.exp(-times * queue.p_wait / queue.wait_s), **style)
        axes.text(0.98, 0.93, queue.model, transform=axes.transAxes, ha="right", va="top", fontsize=SMALL, color=COLOURS[1])
    lowest = max(LOWEST, 0.7 / max(1, len(every)))
    axes.set_yscale("log")
    axes.set(ylim=(lowest, 1.15), xlim=(0, 1.05 * longest * scale or 1.0), xlabel=f"wait, {short}")
    axes.yaxis.set_major_locator(FixedLocator([10.0**power for power in range(math.ceil(math.log10(lowest)), 1)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="y", labelcolor=QUIET)
    axes.grid(visible=True)


def model(waits: Waits) -> Queue | None:
    """Answer the model that the data leave standing, for the streams' own rate and service times; None where there is none."""
    fit, held = waits.validation.fit, chosen(waits)
    if fit.servers is None or held is None:
        return None
    try:
        return next((one.queue for one in predicted(fit, fit.servers) if one.queue.model == held.model), None)
    except Unstable:
        return None


def _load(waits: Waits) -> float:
    load = waits.validation.fit.load
    return 0.0 if load is None else load.value


def steps(waits: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Part of the waits that are longer than each of them, from 0 on; shapes (waits + 1,)."""
    count = len(waits)
    times = np.concatenate([[0.0], np.maximum(waits, 0.0)])
    longer = np.concatenate([[float((waits > 0).mean()) if count else 0.0], 1 - np.arange(1, count + 1) / max(1, count)])
    return times * scale, np.minimum(longer, longer[0])
