"""Pictures of faults, of training over lossy lines, and of numbers of replicas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.answer import grouped
from analysis.plots import marks
from analysis.plots.labels import room_for
from analysis.plots.marks import (
    DOWN,
    SAME,
    UP,
    Mark,
    MarkRow,
    Style,
    ends_of,
    forest_section,
    known,
    lines,
    log_or_linear,
    ticks,
)
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
from analysis.plots.style import BAND, COLOURS, INK, MARKERS, QUIET, picture
from analysis.terms import Refused, Run
from analysis.wording import digits, unsigned
from control.scaling import TOLERANCE, time_s

from . import claims
from .estimates import figure, over_blocks, p_value, unit
from .faults import named
from .scaling import MeasuredStream, TargetReport, of_run, reports

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .claims import Contrast
    from .faults import FaultArm
    from .network import LossyLine
    from .records import Unit

JOBS, FAULTS, NETWORK = frozenset({"job"}), frozenset({"job", "fault"}), frozenset({"network"})
MARGIN = 0.10
# For a ratio to the same jobs under other conditions. Shape repeats the meaning of colour.
LOOKS: dict[str, Style] = {
    "slower": {"color": DOWN, "marker": "^"},
    "faster": {"color": UP, "marker": "v"},
    "isolated": {"color": SAME, "marker": "s"},
    "lost jobs": {"color": COLOURS[3], "marker": "X"},
    "not shown": {"color": INK, "marker": "o", "markerfacecolor": "white"},
}
WORDS = {
    "isolated": "isolated: as fast within the margin",
    "lost jobs": "sooner, because others were lost: no gain",
    "not shown": "no difference is shown",
}
LEFT = 0.62


def shown(ratio: Contrast | None) -> str:
    """Return the side of 1 on which a ratio of times is shown to lie, as a key of LOOKS."""
    word = claims.verdict(ratio)
    return word.text if word in claims.CLAIMS else "not shown"


def verdicts_of(rows: Iterable[MarkRow]) -> set[str]:
    return {
        name
        for row in rows
        for mark in row.marks
        for name, look in LOOKS.items()
        if mark.style is look and mark.ends[0] is not None
    }


def run_title(scene: Scene, run: Run) -> str:
    return f"run {run.run_id}" if len(scene.runs) > 1 else ""


def ratio_rows(
    title: str, rows: Sequence[MarkRow], least: float, label: str, **settings: Any
) -> Chart:
    """Make a section of ratios around 1, with all intervals and 1 ÷ `least` to `least` in view."""
    ends = known(mark.ends for row in rows for mark in row.marks)
    most = int(2 * (body_width() - settings["left"] - settings["right"]))  # a tick each half inch
    scale = partial(
        log_or_linear, which="x", low=min([1 / least, *ends]), high=max([least, *ends]), most=most
    )
    return forest_section(title, rows, label=label, scale=scale, zero=1.0, **settings)


@picture(-27, "What faults cost", REPORTS=FAULTS)
def jobs_faults(scene: Scene) -> Plot:
    """Slowdown of jobs under each fault."""
    arms = arms_of(scene)
    lead = (
        "Response times under a fault ÷ those of the same jobs without it, paired by block: "
        "right of 1 is slower. Lines: 95 % intervals over blocks; p after Holm over all faults."
    )
    legend = verdict_entries(
        LOOKS, {verdict(arm) for arm in arms if arm.slowdown is not None}, WORDS
    )
    legend.append(fill(f"within {unsigned(MARGIN)} of 1"))
    by_run = [(one.run, [arm for arm in one.arms if arm.fault]) for one in scene.streams]
    sections = [slowdowns(its, run_title(scene, run), run=run) for run, its in by_run if its]
    notes = grouped([(arm.name, note) for arm in named(arms) for note in arm.notes], len(arms))
    return Plot(lead, sections, legend, notes, worst(arms))


def arms_of(scene: Scene) -> list[FaultArm]:
    """Return all streams under faults. Raises: NothingToDraw."""
    result = [
        arm for _, arm in scene.of_streams("arms", lambda arm: arm.fault, "no stream had a fault")
    ]
    if all(arm.slowdown is None for arm in result):
        raise NothingToDraw(
            "no stream without a fault had the same jobs: nothing to compare the faults with"
        )
    return result


def verdict(arm: FaultArm) -> str:
    if arm.isolation == "isolated":
        return "isolated"
    return "lost jobs" if arm.thinned else shown(arm.slowdown)


def worst(arms: Sequence[FaultArm]) -> str:
    """Return a sentence on the fault with the largest significant slowdown, or ""."""
    slower = [
        (arm.slowdown, arm.name) for arm in named(arms) if arm.slowdown and verdict(arm) == "slower"
    ]
    ratio, name = max(slower, key=lambda one: one[0].value, default=(None, ""))
    return (
        ""
        if ratio is None
        else f"Jobs take {digits(ratio.value, 2)} times as long under the fault {name}"
    )


def words(arm: FaultArm) -> str:
    return (
        figure(arm.slowdown)
        if arm.slowdown is not None
        else "no job done"
        if arm.paired
        else "no twin"
    )


def slowdowns(arms: Sequence[FaultArm], title: str, **settings: Any) -> Chart:
    rows = []
    for arm in named(arms):
        texts = words(arm), p_value(arm.slowdown and arm.slowdown.p_adjusted)
        rows.append(
            MarkRow(arm.name, [Mark(ends_of(arm.slowdown), LOOKS[verdict(arm)], texts, bold=False)])
        )
    return ratio_rows(
        title,
        rows,
        1 + 2 * MARGIN,
        "response time, ratio",
        left=room_for([row.name for row in rows], 2.2),
        right=2.05,
        heads=[("ratio [95 %]", 0.12), ("p", 0)],
        band=(1 / (1 + MARGIN), 1 + MARGIN),
        **settings,
    )


LINES = SmallPanels(2, above=0.0, tall=1.9, below=0.55, left=LEFT, gap=0.1)
NEXT = 3.0  # factor below the smallest loss at which "none" is drawn


@picture(-30, "Training over lines that lose packets", REPORTS=NETWORK)
def jobs_network(scene: Scene) -> Plot:
    lossy = lambda line: any(row.loss > 0 and row.step_s for row in line.losses)  # noqa: E731
    result: list[tuple[Run, LossyLine]] = scene.of_streams("lines", lossy, "no line lost packets")
    lead = (
        "Left: mean time of a step by the share of packets lost, 95 % intervals over blocks. "
        "Right: its communication part, if "
        "packets were lost."
    )
    sections, notes = [], []
    for run, one in result:
        name = (
            "Round trip unknown"
            if one.rtt_s is None
            else f"Round trip {digits(1000 * one.rtt_s, 2)} ms"
        )
        beside = ", ".join(filter(None, (one.congestion, one.stand_in)))
        sections.append(Chart(name, LINES.height(2), partial(_network, lossy=one), beside, run=run))
        notes += [f"{name}: no cell without loss: nothing to compare with."] if one.alone else []
    return Plot(lead, sections, [], notes, _lossy(one for _, one in result))


def _lossy(every: Iterable[LossyLine]) -> str:
    rows = [
        (row.slowdown, row.loss)
        for one in every
        for row in one.losses
        if row.slowdown and shown(row.slowdown) == "slower"
    ]
    slower, loss = max(rows, key=lambda row: row[0].value, default=(None, 0.0))
    return (
        ""
        if slower is None
        else f"Losing {100 * loss:g} % of packets makes a training step {digits(slower.value, 2)} "
        "times as long"
    )


def _network(sheet: Page, top: float, lossy: LossyLine) -> None:
    steps, spent = LINES.axes(sheet, top)
    none = min(row.loss for row in lossy.losses if row.loss > 0) / NEXT
    _times(steps, [(row.loss or none, row.step_s) for row in lossy.losses], "step", none)
    lost = [
        row
        for row in lossy.losses
        if row.loss > 0 and row.communication_s is not None and row.communication_s.value > 0
    ]
    if lost:
        _times(spent, [(row.loss, row.communication_s) for row in lost], "communication", none)
    else:
        spent.text(
            0.5,
            0.5,
            "no communication time is known",
            transform=spent.transAxes,
            ha="center",
            color=QUIET,
        )
        spent.set(xticks=[], yticks=[])


def _times(axes: Axes, rows: Sequence[tuple[float, object]], what: str, none: float) -> None:
    there = [(loss, value) for loss, value in rows if value is not None]
    scale, short = unit(ends_of(value)[0] or 0.0 for _, value in there)
    points = [(loss, ends_of(value, scale)) for loss, value in there]
    heights = [end for end in known(ends for _, ends in points) if end > 0]
    lines(axes, points, {"color": INK, "marker": "o", "markersize": 5.5, "linewidth": 0.9})
    log_or_linear(axes, "y", min(heights), max(heights))
    losses = [loss for loss, _ in points]
    axes.set(
        xscale="log",
        xlim=(min(losses) / 1.6, max(losses) * 1.6),
        xlabel="packets lost",
        ylabel=f"{what}, {short}",
    )
    ticks(
        axes, "x", sorted(losses), lambda value: "none" if value == none else f"{100 * value:g} %"
    )
    axes.grid(axis="y")


PAIR = SmallPanels(2, above=0.0, tall=2.4, below=0.5, left=LEFT, gap=0.15)


def look_of(at: int) -> tuple[str, str]:
    return (COLOURS[(at - 1) % len(COLOURS)], MARKERS[at % len(MARKERS)]) if at else (INK, "o")


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
        title = f"{one.runs} streams on {one.slots} slots"
        sections.append(Chart(title, PAIR.height(2), draw, run=gathered.run))
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
        jobs = [
            (job.work, times.ran_s)
            for one in streams
            if one.arm == arm.name
            for job, times in one.record.done_with_times
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
