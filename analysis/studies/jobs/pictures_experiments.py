"""Pictures of experiments with streams: poisoned clients, use of time, numbers of replicas."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from analysis.plots import marks
from analysis.plots.labels import room_for
from analysis.plots.marks import Mark, MarkRow, Style, ends_of, forest_section
from analysis.plots.page import (
    Chart,
    Page,
    Plot,
    SmallPanels,
    body_width,
    dot,
    fill,
    line,
    verdict_entries,
)
from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import BAND, COLOURS, FAINT, GRID, INK, MARKERS, QUIET, SMALL, picture
from analysis.terms import Refused
from analysis.wording import unsigned
from control.scaling import TOLERANCE, time_s

from .claims import names_of
from .estimates import figure, over_blocks, unit
from .pictures_faults import JOBS, LEFT, LOOKS, WORDS, run_title
from .poisoning import BETTER, WORSE, Poisoning, poisonings, word_of
from .profile import AT_WORK, COMPUTING, LIMITED, OTHER, STARTING, WAITING, ClassProfile, profile
from .scaling import MeasuredStream, TargetReport, of_run, reports

if TYPE_CHECKING:
    from .records import Unit

TALL = 2.4
PAIR = SmallPanels(2, above=0.0, tall=TALL, below=0.5, left=LEFT, gap=0.15)


def look_of(at: int) -> tuple[str, str]:
    return (COLOURS[(at - 1) % len(COLOURS)], MARKERS[at % len(MARKERS)]) if at else (INK, "o")


@picture(-26, "Accuracy with poisoned clients", REPORTS=JOBS)
def jobs_poisoning(scene: Scene) -> Plot:
    """Accuracy lost by a federated model to clients that flip labels, per aggregation rule."""
    by_run = [
        (gathered.run, [one for one in poisonings(gathered.streams) if one.drop is not None])
        for gathered in scene.streams
    ]
    every = [one for _, own in by_run for one in own]
    if not every:
        raise NothingToDraw("no job reports its accuracy with and without poisoned clients")
    lead = (
        "Accuracy (on images that no client has) of the same jobs without poisoned clients, minus "
        "with them, block by block; right of 0, "
        "accuracy is lost. Lines: 95 % intervals; p after Holm over all settings."
    )
    sections = []
    for run, own in by_run:
        rows = [
            MarkRow(
                one.setting.replace("=", " "),
                [
                    Mark(
                        ends_of(one.drop, 100),
                        LOOKS[_look(one)],
                        [f"{one.poisoned:g}", figure(one.accuracy, 100), figure(one.drop, 100)],
                    )
                ],
            )
            for one in sorted(own, key=lambda one: one.drop.value if one.drop else 0.0)
        ]
        settings: Style = {
            "left": room_for([row.name for row in rows], 2.2),
            "right": 3.0,
            "label": "accuracy lost, points",
        }
        heads = [("poisoned", 0.12), ("accuracy, %", 0.75), ("lost [95 %]", 0)]
        reach = marks.reach_of((row.marks[0].ends for row in rows), 1.0)
        sections.append(
            forest_section(
                run_title(scene, run), rows, run=run, heads=heads, reach=reach, **settings
            )
        )
    legend = verdict_entries(
        LOOKS,
        {*map(_look, every)},
        WORDS | {"slower": "accuracy is lost", "faster": "accuracy is gained"},
    )
    return Plot(lead, sections, legend, title=_cost(every))


def _look(one: Poisoning) -> str:
    return {WORSE: "slower", BETTER: "faster"}.get(word_of(one), "not shown")


def _cost(every: Sequence[Poisoning]) -> str:
    drops = sorted(100 * one.drop.value for one in every if one.drop and word_of(one) is WORSE)
    ends = dict.fromkeys(f"{drop:.1f}" for drop in (drops[:1] + drops[-1:]))
    return f"Poisoned clients cost {' to '.join(ends)} points of accuracy" if ends else ""


# The colour of each part of a job's time, from its submission on.
PARTS = {
    WAITING: FAINT,
    STARTING: COLOURS[5],
    COMPUTING: COLOURS[0],
    AT_WORK: COLOURS[0],
    LIMITED: COLOURS[1],
    OTHER: GRID,
}
HELD_BACK = {WAITING: "waiting", STARTING: "start-up", LIMITED: "lost to its CPU limit"}


@picture(-23, "Where the time of jobs goes", REPORTS=JOBS)
def jobs_profile(scene: Scene) -> Plot:
    """Time of jobs by class and system: waiting, start-up, computing, or held back by a limit."""
    sections, every, there = [], [], set()
    for gathered in scene.streams:
        try:
            streams = [stream for stream in gathered.streams if stream.closed and not stream.fault]
            rows, _ = profile(streams)
        except Refused:
            continue
        names = names_of(streams)
        if len(names) < 2:
            continue
        every += [(row, names[row.system]) for row in rows]
        for class_ in dict.fromkeys(row.class_ for row in rows):
            own = [(row, names[row.system]) for row in rows if row.class_ == class_]
            tall, beside = (
                marks.HEADS + 0.28 * len(own) + marks.FOOT,
                f"{sum(row.jobs for row, _ in own)} jobs",
            )
            sections.append(
                Chart(class_ or "jobs", tall, partial(_times, rows=own), beside, run=gathered.run)
            )
        there |= {part for row in rows for part, size in _parts(row).items() if size > 0}
    if not sections:
        raise NothingToDraw("no closed stream has jobs with complete times on several systems")
    lead = (
        "A bar is the mean response time of a class of jobs on a system, from submission to end, "
        "divided by its mean shares. Line at its "
        "end: 95 % interval over runs. Right: time in its slots, without the wait, and its "
        "largest part."
    )
    legend = [fill(part, color, color) for part, color in PARTS.items() if part in there]
    back = [
        (row.share.value, row, name)
        for row, name in every
        if row.share is not None and row.bottleneck in HELD_BACK
    ]
    share, row, system = max(back, key=lambda one: one[0], default=(0.0, None, ""))
    title = (
        ""
        if row is None
        else f"{100 * share:.0f} % of {row.class_ or 'a job'}'s time is "
        f"{HELD_BACK[row.bottleneck]} ({system})"
    )
    return Plot(lead, sections, legend, title=title)


def _parts(row: ClassProfile) -> dict[str, float]:
    parts = {part: row.parts[part].value for part in PARTS if part in row.parts}
    return parts if COMPUTING in parts else {**parts, AT_WORK: max(0.0, 1 - sum(parts.values()))}


def _times(sheet: Page, top: float, rows: Sequence[tuple[ClassProfile, str]]) -> None:
    left, right = room_for([name for _, name in rows], 2.6), 2.5
    scale, short = unit(row.response_s.value for row, _ in rows)
    axes = marks.row_axes(
        sheet,
        top + marks.HEADS,
        left,
        [name for _, name in rows],
        0.28,
        right=right,
        xlabel=f"response time, {short}",
    )
    for at, (row, _) in enumerate(rows):
        whole = row.response_s.value * scale
        marks.bars(axes, at, [(size * whole, PARTS[part]) for part, size in _parts(row).items()])
        if row.response_s.low is not None and row.response_s.high is not None:
            axes.plot(
                [row.response_s.low * scale, row.response_s.high * scale],
                [at, at],
                color=INK,
                linewidth=1.2,
            )
        share = "" if row.share is None else f" {100 * row.share.value:.0f} %"
        middle = top + marks.HEADS + 0.28 * (at + 0.5)
        sheet.text(
            body_width() - right + 0.12,
            middle,
            figure(row.time_s, scale),
            va="center",
            fontsize=SMALL,
        )
        sheet.text(
            body_width(), middle, row.bottleneck + share, ha="right", va="center", fontsize=SMALL
        )
    sheet.text(
        body_width() - right + 0.12,
        top,
        f"in its slots, {short} [95 %]",
        fontsize=SMALL,
        color=QUIET,
    )
    sheet.text(body_width(), top, "largest part", ha="right", fontsize=SMALL, color=QUIET)
    axes.set_xlim(0, None)
    axes.grid(axis="x")


@picture(-29, "Speed-up by replicas", REPORTS=JOBS | {"scale"})
def jobs_scaling(scene: Scene) -> Plot:
    """Speed-up of jobs with replicas, and how well replicas chosen per job meet a target time."""
    results, refused = [], ["no stream had replicas chosen per job"]
    for gathered in scene.streams:
        streams = of_run(gathered.run, gathered.streams)
        try:
            results += [(gathered, streams, report) for report in reports(streams)]
        except Refused as reason:
            refused.append(str(reason).rstrip("."))
    if not results:
        raise NothingToDraw(refused[-1])
    report = results[0][2]
    lead = (
        "Left: speed-up of jobs with more replicas; marks are means over streams "
        "with 95 % intervals. The further below the "
        "dashed line, the less each further replica adds. Right: a dot is a job, and the grey "
        "band is the target."
    )
    within = [100 * arm.means["within"] for arm in report.arms]
    legend = [
        line("law fitted beforehand", COLOURS[1]),
        line("perfect scaling", QUIET, 1.0, linestyle="--"),
    ]
    legend += [
        dot(f"{arm.name}: {within[at]:.0f} % on target", *look_of(at))
        for at, arm in enumerate(report.arms)
    ]
    legend.append(fill(f"target: {report.target_s:g} s ±{unsigned(TOLERANCE)}"))
    sections, notes = [], []
    for gathered, streams, one in results:
        draw = partial(_scaled, streams=streams, report=one)
        sections.append(
            Chart(
                f"{one.runs} streams on {one.slots} slots", PAIR.height(2), draw, run=gathered.run
            )
        )
        costs = [
            f"{1 / arm.node_s.value:.2f} times those of {arm.name}"
            for arm in one.arms
            if arm.node_s is not None
        ]
        notes += (
            [
                (
                    f"Node-seconds of jobs with a choice: {', '.join(costs)}, without the "
                    "measurements beforehand."
                )
            ]
            if costs
            else []
        )
        notes += [f"The law was {unsigned(one.off)} off on average."] if one.off is not None else []
        if {str(kind.get("kind")) for stream in gathered.streams for kind in stream.classes} == {
            "sleep"
        }:
            notes.append(
                "STAND-IN: these jobs only sleep, for as long as Amdahl's law gives; they use no "
                "processor."
            )
    beside = f"; one number for all: {max(within[1:]):.0f} %" if within[1:] else ""
    return Plot(
        lead,
        sections,
        legend,
        dict.fromkeys(notes),
        f"Replicas chosen by job: {within[0]:.0f} % on target{beside}",
    )


def _scaled(
    sheet: Page, top: float, streams: Sequence[MeasuredStream], report: TargetReport
) -> None:
    axes, other = PAIR.axes(sheet, top)
    like = report.engine, report.slots
    streams = [
        one
        for one in streams
        if (one.record.engine, one.record.slots) == like and one.target_s in {None, report.target_s}
    ]
    laws = {stream.record.unit: stream.laws for stream in streams if stream.laws}
    faster: dict[int, list[tuple[Unit, float]]] = {}
    for stream in streams:
        for job, times in stream.record.done_with_times:
            law = laws.get(stream.record.unit, {}).get(job.class_)
            if law is not None and job.work is not None and times.ran_s > 0:
                faster.setdefault(job.replicas, []).append(
                    (stream.record.unit, float(time_s(law, job.work, 1)) / times.ran_s)
                )
    most = max(faster, default=1)
    numbers = np.linspace(1, most, 50)
    axes.plot(numbers, numbers, color=QUIET, linewidth=1.0, linestyle="--", zorder=1)
    for law in (law for of_unit in laws.values() for law in of_unit.values()):
        axes.plot(
            numbers,
            time_s(law, 1.0, 1) / time_s(law, 1.0, numbers),
            color=COLOURS[1],
            linewidth=1.3,
            zorder=1,
        )
    for replicas, values in faster.items():
        marks.interval(
            axes,
            replicas,
            ends_of(over_blocks(values)),
            {"color": INK, "marker": "o", "markersize": 5.5},
            "y",
        )
    ends = 0.5, most + 0.5
    axes.set(xlim=ends, ylim=ends, xlabel="replicas", ylabel="times as fast as with one")
    other.set(xlabel="size of the job, units of work", ylabel="ran for, s")
    other.axhspan(
        report.target_s * (1 - TOLERANCE),
        report.target_s * (1 + TOLERANCE),
        color=BAND,
        linewidth=0,
        zorder=0,
    )
    every = []
    for at, arm in reversed(list(enumerate(report.arms))):
        color, marker = look_of(at)
        own = [one.record for one in streams if one.arm == arm.name]
        jobs = [
            (job.work, times.ran_s)
            for record in own
            for job, times in record.done_with_times
            if job.work
        ]
        marks.dots(
            other,
            [work for work, _ in jobs],
            [ran for _, ran in jobs],
            color,
            marker=marker,
            markersize=3,
            alpha=0.7,
        )
        every += jobs
    works, rans = zip(*every, strict=True)
    marks.log_or_linear(other, "x", min(works), max(works))
    marks.log_or_linear(other, "y", min(rans), max(rans))
    for one in (axes, other):
        one.grid(visible=True)
