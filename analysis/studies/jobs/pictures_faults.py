"""What faults cost streams of jobs and training: slowdowns, intervals between checkpoints, and lines that lose packets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from analysis.plots.labels import room_for
from analysis.plots.marks import DOWN, SAME, UP, Mark, MarkRow, Style, ends_of, forest_section, interval, known, lines, log_or_linear, ticks
from analysis.plots.page import INSIDE, Page, Section, SmallPanels, Spec, fill, line, verdict_entries
from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import BAND, COLOURS, INK, QUIET, picture
from analysis.terms import Run
from analysis.wording import digits, probability, unsigned

from .checkpoints import CheckpointTrial, daly_s, time_per_work, young_s
from .estimates import by_fault, figure, names, number, unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .faults import FaultArm
    from .network import LossyLine

FAULTS = frozenset({"job", "fault"})
MARGIN, SURE = 0.10, 0.05
# Shape says the same as colour.
LOOKS: dict[str, Style] = {
    "slower": {"color": DOWN, "marker": "^"},
    "faster": {"color": UP, "marker": "v"},
    "isolated": {"color": SAME, "marker": "s"},
    "lost jobs": {"color": COLOURS[3], "marker": "X"},
    "not shown": {"color": INK, "marker": "o", "markerfacecolor": "white"},
}
WORDS = {
    "isolated": "isolated: as fast within the margin",
    "lost jobs": "sooner, for others were lost: no gain",
    "not shown": "neither is shown",
}
LEFT, TALL = 0.62, 2.1


@picture(
    -3,
    "What faults cost",
    "How much longer jobs took under each fault, how long a stream took to catch up, and what work was lost.",
    REPORTS=FAULTS,
)
def jobs_faults(scene: Scene) -> Spec:
    """Draw a section a condition, a row a fault with what is done against it."""
    result = arms_of(scene)
    arms = [arm for _, arm in result]
    panels: dict[tuple[str, str], list[tuple[Run, FaultArm]]] = {}
    for run, arm in result:
        panels.setdefault((run.run_id, arm.condition), []).append((run, arm))
    lead = (
        "Response times under a fault over those of the same jobs without it, paired by block (the line at 1): right of it is slower. "
        "Lines: 95 % intervals over blocks. Recovery: from a fault until as many jobs are done as were by then without it."
    )
    legend = verdict_entries(LOOKS, {verdict(arm) for arm in arms if arm.slowdown is not None}, WORDS)
    legend.append(fill(f"within {unsigned(MARGIN)} of 1"))
    left, limits = room_for(names(arms), 2.2), reach(arms)
    sections = []
    for (_, condition), rows in panels.items():
        title = condition.partition(":")[2].replace(":", " · ") or condition
        sections.append(_slowdowns(title, by_fault([arm for _, arm in rows]), rows[0][0], left, limits))
    return Spec(lead, sections, legend, _fault_notes(arms))


def arms_of(scene: Scene) -> list[tuple[Run, FaultArm]]:
    """Return all streams under faults. Raises: NothingToDraw."""
    result = scene.of_streams("arms", lambda arm: arm.fault, "no stream had a fault")
    if all(arm.slowdown is None for _, arm in result):
        raise NothingToDraw("no stream without a fault met the same jobs: nothing to compare the faults with")
    return result


def verdict(arm: FaultArm) -> str:
    """One of LOOKS."""
    if arm.isolation == "isolated":
        return "isolated"
    if arm.thinned:
        return "lost jobs"
    if arm.slowdown is None or arm.p is None or arm.p >= SURE:
        return "not shown"
    return "slower" if arm.slowdown.value > 1 else "faster"


def reach(arms: Sequence[FaultArm]) -> tuple[float, float]:
    """Return the ends of an axis of slowdowns: all intervals and the margin are in view."""
    ends = known(ends_of(arm.slowdown) for arm in arms)
    return min([1 / (1 + 2 * MARGIN), *ends]), max([1 + 2 * MARGIN, *ends])


def mark(arm: FaultArm, *texts: str) -> Mark:
    """Make the mark of a slowdown."""
    return Mark(ends_of(arm.slowdown), LOOKS[verdict(arm)], texts, bold=False)


def words(arm: FaultArm) -> str:
    """Write a slowdown with its interval."""
    ratio = arm.slowdown
    if ratio is None:
        return "no job done" if arm.paired else "no twin"
    return figure(ratio)


def _slowdowns(title: str, arms: Sequence[FaultArm], run: Run, left: float, limits: tuple[float, float]) -> Section:
    scale, short = unit(one.value for arm in arms for one in (arm.recovery_s, arm.lost_s) if one is not None)
    rows = []
    for arm, name in zip(arms, names(arms), strict=True):
        recovery = figure(arm.recovery_s, scale).partition(" ")[0]
        lost = number(arm.lost_s.value * scale if arm.lost_s else None)
        p = "" if arm.p is None else probability(arm.p)
        rows.append(MarkRow(name, [mark(arm, words(arm), recovery, lost, p)]))
    heads = [("ratio [95 %]", 0.12), (f"recovery, {short}", 1.42), (f"lost, {short}", 2.15), ("p", 0)]
    return forest_section(
        title,
        rows,
        run=run,
        left=left,
        right=2.85,
        label="response time, ratio",
        heads=heads,
        scale=lambda axes: log_or_linear(axes, "x", *limits),
        zero=1.0,
        band=(1 / (1 + MARGIN), 1 + MARGIN),
    )


def _fault_notes(arms: Sequence[FaultArm]) -> list[str]:
    notes = ["Lost: seconds of attempts a stream whose work no checkpoint kept. p after Holm over all faults."]
    never = sum(arm.hit for arm in arms if arm.recovered == 0 and arm.hit)
    notes += [f"{never} hits have no recovery: the stream ended first, another fault came, or jobs were given up."] if never else []
    by_note: dict[str, list[str]] = {}
    for arm, name in zip(arms, names(arms), strict=True):
        notes += [f"{name}: {arm.lost_jobs} jobs were done without it, and not with it."] if arm.lost_jobs else []
        for note in arm.notes:
            by_note.setdefault(note, []).append(name)
    return notes + [f"{'all' if len(of) == len(arms) > 1 else '; '.join(of)}: {note}" for note, of in by_note.items()]


YOUNG, DALY = COLOURS[2], COLOURS[1]
LONG_DASHES, DOTS = (0, (5, 1.5)), (0, (1.5, 1.2))


@picture(
    -2,
    "How often to write a checkpoint",
    "Which interval between checkpoints costs least under faults, and whether Young's and Daly's formulas find it.",
    REPORTS=FAULTS,
)
def jobs_checkpoints(scene: Scene) -> Spec:
    """Draw a section a fault under which several intervals were tried."""
    reason = "no fault met streams with several intervals between checkpoints"
    result: list[tuple[Run, CheckpointTrial]] = scene.of_streams("trials", lambda trial: any(tried.time for tried in trial.tried), reason)
    lead = (
        "Time that jobs held their slots for each second that was of use, by the interval between checkpoints, under one rate of faults: "
        "too often costs checkpoints, too seldom costs lost work. Marks: means over blocks with 95 % intervals."
    )
    legend = [
        line("measured", marker="o", markersize=5.5),
        line("Daly's expected time", DALY, 1.3),
        line("Young's interval", YOUNG, linestyle=LONG_DASHES),
        line("Daly's interval", DALY, linestyle=DOTS),
    ]
    legend += [fill("where the measured curve is least, 95 %")] if any(trial.least_s is not None for _, trial in result) else []
    sections = [
        Section(_trial_name(trial), TALL + 0.55, partial(_trial, trial=trial), _trial_words(trial), run=run) for run, trial in result
    ]
    return Spec(lead, sections, legend, [_trial_note(trial) for _, trial in result])


def _choices(trial: CheckpointTrial) -> list[float]:
    """Young's and Daly's interval, s; none where what they take is not known."""
    if not trial.cost_s or not trial.mtbf_s:
        return []
    return [formula(trial.cost_s, trial.mtbf_s.value) for formula in (young_s, daly_s)]


def _trial(sheet: Page, top: float, trial: CheckpointTrial) -> None:
    """Draw measured times, Daly's curve, and the intervals that formulas and measurements choose."""
    axes = sheet.axes(LEFT, top, INSIDE - LEFT - 0.05, TALL, xlabel="seconds of work between checkpoints", ylabel="time ÷ useful time")
    tried = [(tried.checkpoint_s, ends_of(tried.time)) for tried in trial.tried if tried.time is not None]
    levels, choices = [at for at, _ in tried if at > 0], _choices(trial)
    low, high = min([*levels, *choices], default=1.0) / 1.3, max([*levels, *choices], default=1.0) * 1.3
    none = high * 2.2  # where what has no checkpoint at all is drawn: beyond every interval
    if trial.least_s is not None:
        axes.axvspan(max(trial.least_s.low or low / 2, low / 2), min(trial.least_s.high or high, high), color=BAND, zorder=0)
        axes.axvline(trial.least_s.value, color=QUIET, linewidth=0.9, zorder=1)
    heights = known(ends for _, ends in tried)
    most = max(heights) + 0.25 * (max(heights) - 1.0)
    if choices and trial.cost_s and trial.mtbf_s:
        spaced = np.geomspace(low, high, 200)
        times = np.array([time_per_work(float(at), trial.cost_s, trial.mtbf_s.value) for at in spaced])
        axes.plot(spaced[times <= most], times[times <= most], color=DALY, linewidth=1.3, zorder=1)
        for at, color, dashes in zip(choices, (YOUNG, DALY), (LONG_DASHES, DOTS), strict=True):
            axes.axvline(at, color=color, linestyle=dashes, linewidth=1.2, zorder=1)
    for at, ends in tried:
        interval(axes, at or none, ends, {"color": INK, "marker": "o"}, "y")
    log_or_linear(axes, "y", max(0.5, min([1.0, *heights])), most)
    axes.set(xscale="log", xlim=(low, none * 1.4))
    shown = [*levels, *([none] if len(levels) < len(tried) else [])]
    ticks(axes, "x", shown, lambda value: "none" if math.isclose(value, none) else f"{value:g}")
    axes.grid(axis="y")


def _trial_name(trial: CheckpointTrial) -> str:
    return trial.fault.partition(" ")[0]


def _trial_words(trial: CheckpointTrial) -> str:
    cost = "" if trial.cost_s is None else f"a checkpoint takes {number(1000 * trial.cost_s)} ms"
    mtbf = "" if trial.mtbf_s is None else f"a running job is hit every {number(trial.mtbf_s.value)} s"
    return ", ".join(part for part in (cost, mtbf, f"{trial.blocks} blocks") if part)


def _trial_note(trial: CheckpointTrial) -> str:
    if trial.least_s is None:
        return f"{_trial_name(trial)}: {trial.why}."
    note = f"{_trial_name(trial)}: the measured curve is least at {figure(trial.least_s).replace('inf', 'no end')} s"
    return f"{note}; Young and Daly say {' and '.join(map(number, choices))} s." if (choices := _choices(trial)) else f"{note}."


MATHIS, PADHYE = COLOURS[1], COLOURS[0]
LINES = SmallPanels(2, above=0.0, tall=1.9, below=0.55, left=LEFT, gap=0.1)
NONE = 3.0  # by which factor below the smallest loss "none" is drawn


@picture(
    -1,
    "Training over lines that lose packets",
    "How much longer a step takes at which loss, and whether it is TCP's law, its timeouts or something else that decides.",
    REPORTS=frozenset({"network"}),
)
def jobs_network(scene: Scene) -> Spec:
    """Draw two panels a line: steps, and what of them is communication."""
    lossy = lambda line: any(row.loss > 0 and row.step_s for row in line.losses)  # noqa: E731  # short
    result: list[tuple[Run, LossyLine]] = scene.of_streams("lines", lossy, "no line lost packets")
    lead = (
        "Left: mean time of a step by the share of packets lost, 95 % intervals over blocks. Right: what of it is communication, where "
        "packets were lost, beside the time that TCP would need for as many bytes by Mathis's law (∝ √p) and with timeouts (Padhye)."
    )
    legend = [
        line("measured", marker="o", markersize=5.5),
        line("Mathis's law", MATHIS, linestyle=LONG_DASHES),
        line("with timeouts (Padhye)", PADHYE, linestyle=DOTS),
    ]
    sections, notes = [], []
    for run, one in result:
        name = one.name.partition(":")[2].replace(":", " · ") or "a line without a delay"
        about = ["" if one.rtt_s is None else f"round trip {digits(1000 * one.rtt_s, 2)} ms", one.congestion, one.stand_in]
        sections.append(Section(name, LINES.height(2), partial(_network, line=one), ", ".join(filter(None, about)), run=run))
        bounds = [f"{row.bound} at {100 * row.loss:g} %" for row in one.losses if row.loss > 0]
        notes += [f"{name}: bound by {', '.join(bounds)}."] if bounds else []
        if one.exponent is not None:
            notes.append(f"{name}: communication goes as loss^β with β {figure(one.exponent)} ({one.shape}); Mathis has ½.")
        notes += [f"{name}: {note}" for note in one.notes]
    return Spec(lead, sections, legend, notes)


def _network(sheet: Page, top: float, line: LossyLine) -> None:
    steps, spent = LINES.axes(sheet, top)
    none = min(row.loss for row in line.losses if row.loss > 0) / NONE
    _times(steps, [(row.loss or none, row.step_s) for row in line.losses], "step", none)
    lost = [row for row in line.losses if row.loss > 0 and row.communication_s is not None and row.communication_s.value > 0]
    laws = [
        (color, style, [(row.loss, getattr(row, name)) for row in lost])
        for color, style, name in ((MATHIS, LONG_DASHES, "mathis_s"), (PADHYE, DOTS, "padhye_s"))
    ]
    if lost:
        _times(spent, [(row.loss, row.communication_s) for row in lost], "communication", none, laws)
    else:
        spent.text(0.5, 0.5, "no communication time is known", transform=spent.transAxes, ha="center", color=QUIET)
        spent.set(xticks=[], yticks=[])


def _times(
    axes: Axes,
    rows: Sequence[tuple[float, object]],
    what: str,
    none: float,
    laws: Sequence[tuple[str, object, list[tuple[float, float | None]]]] = (),
) -> None:
    """Draw times by loss on scales of ratios, beside what laws say; `none` is where no loss stands, left of all others."""
    there = [(loss, value) for loss, value in rows if value is not None]
    scale, short = unit(ends_of(value)[0] or 0.0 for _, value in there)
    points = [(loss, ends_of(value, scale)) for loss, value in there]
    heights = [end for end in known(ends for _, ends in points) if end > 0]
    for color, dashes, law in laws:
        curve = [(loss, value * scale) for loss, value in law if value is not None]
        heights += [value for _, value in curve]
        axes.plot([loss for loss, _ in curve], [value for _, value in curve], color=color, linestyle=dashes, linewidth=1.4, zorder=1)
    lines(axes, points, {"color": INK, "marker": "o", "markersize": 5.5, "linestyle": "none" if laws else "-", "linewidth": 0.9})
    log_or_linear(axes, "y", min(heights), max(heights))
    losses = [loss for loss, _ in points]
    axes.set(xscale="log", xlim=(min(losses) / 1.6, max(losses) * 1.6), xlabel="packets lost", ylabel=f"{what}, {short}")
    ticks(axes, "x", sorted(losses), lambda value: "none" if value == none else f"{100 * value:g} %")
    axes.grid(axis="y")
