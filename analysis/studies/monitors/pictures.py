"""The cost of monitoring: each monitor's overhead, and its own usage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from analysis.labels import short_names
from analysis.plots.labels import joined, minus, room_for
from analysis.plots.marks import (
    VERDICTS,
    Axes,
    Mark,
    MarkRow,
    Style,
    ends_of,
    forest_section,
    margin_band,
    ticks,
)
from analysis.plots.page import Plot, fill, verdict_entries
from analysis.plots.scene import Scene, some
from analysis.plots.style import BAND, INK, QUIET, picture
from analysis.wording import digits, unsigned

if TYPE_CHECKING:
    from .study import MonitoredArm

LINEAR = 1.0
TICKS = (
    (0.0, 0.5, 1.0, 3.0),
    (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    (0.0, 1.0, 10.0, 100.0, 1000.0),
    (0.0, 1.0, 30.0, 1000.0),
)
MOST_TICKS = 6
# More is worse here: orange means a cost, whatever `compare` calls it.
LOOKS: dict[str, Style] = VERDICTS | {
    "regressed": VERDICTS["regressed"] | {"marker": "^"},
    "improved": VERDICTS["improved"] | {"marker": "v"},
}
WORDS = {
    "regressed": "costs",
    "improved": "less than none",
    "equivalent": "within the margin",
    "inconclusive": "not shown, or underpowered",
    "not comparable": "not claimed",
}


@picture(1, "Cost of monitoring", MONITORED=True)
def overhead_forest(scene: Scene) -> Plot:
    """Extra CPU time of the work under each monitor and rate, and the monitor's own usage.

    There is a section per workload and a row per monitor; above it is the state of its A/A.
    """
    parts = []
    for run in scene.runs:
        names = {
            workload: f"{name} · run {run.run_id}" if len(scene.runs) > 1 else name
            for workload, name in short_names(run.workloads).items()
        }
        parts += [
            (run, names[overhead.workload], overhead)
            for overhead in scene.overhead.get(run.origin, ())
        ]
    every = [(title, arm) for _, title, overhead in parts for arm in overhead.arms]
    watched = some(
        (arm for _, arm in every if arm.cpu is not None),
        "no monitor was measured beside cells without one",
    )
    lead = (
        "CPU seconds of the workload's measured steps, % more than without a monitor, in n "
        f"{joined(one.units for _, _, one in parts)}; "
        "lines: 95 % intervals. None again repeats the cells without a monitor: how far equal "
        "cells differ. Own: CPU time of "
        "the monitor's processes, % of one core. The scale is linear to ±1 % and logarithmic "
        "beyond, so both 0.1 % and 60 % are legible."
    )
    legend = verdict_entries(LOOKS, {arm.verdict for arm in watched}, WORDS)
    legend.append(
        fill(
            f"±{joined(unsigned(overhead.margin) for _, _, overhead in parts)}: counts as no effect"
        )
    )
    notes = [
        (
            "Verdicts rest on Holm's p over all arms of the study, and are withheld if none and "
            "none again differ."
        )
    ]
    notes += [
        f"{arm.label} ({title}): {arm.said}."
        for title, arm in every
        if arm.base and arm.cpu is None
    ]
    left = room_for((f"{arm.label}, n {arm.n}" for arm in watched), 1.9)
    heads = [("CPU +% [95 %]", 0.12), ("own, %", 1.45), ("verdict", 0)]
    sections = []
    for run, title, overhead in parts:
        arms = [arm for arm in overhead.arms if arm.cpu is not None]
        rows = [
            MarkRow(f"{arm.label}, n {arm.n}", [_mark(arm)], color=INK if arm.base else QUIET)
            for arm in arms
        ]
        lines = [minus(overhead.control.sentence)]
        axis: Style = {
            "label": "CPU time more than without, %",
            "zero": None,
            "scale": partial(_percents, arms=arms, margin=overhead.margin),
        }
        sections.append(
            forest_section(title, rows, "", lines, run, left=left, right=3.25, heads=heads, **axis)
        )
    return Plot(lead, sections, legend, notes)


def _mark(arm: MonitoredArm) -> Mark:
    own = (
        digits(100 * arm.core.value, 2)
        if arm.core
        else "inside"
        if arm.kind == "inside"
        else "not known" * bool(arm.base)
    )
    texts = minus(arm.cpu.cell if arm.cpu else ""), own, arm.said
    return Mark(ends_of(arm.cpu, 100), LOOKS[arm.verdict], texts, bold=arm.claims)


def _percents(axes: Axes, arms: Sequence[MonitoredArm], margin: float) -> None:
    ends = [100 * end for arm in arms if arm.cpu for end in (arm.cpu.low, arm.cpu.high)] + [
        150 * margin,
        -150 * margin,
    ]
    low, high = (
        end * 1.25 if abs(end) > LINEAR else end + (0.2 if end > 0 else -0.2)
        for end in (min(ends), max(ends))
    )
    axes.set_xlim(low, high)
    axes.set_xscale("symlog", linthresh=LINEAR, linscale=0.7)
    for places in TICKS:
        shown = sorted(
            tick for tick in {*places, *(-place for place in places)} if low <= tick <= high
        )
        if len(shown) <= MOST_TICKS and max(high, -low) < 1.7 * places[-1]:
            break
    ticks(axes, "x", shown, lambda value: f"{value:+g}" if value else "0")
    axes.axvspan(*margin_band(margin), color=BAND, zorder=0)
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
