"""Streams of jobs that ask a question of their own: which hyper-parameters, what against poisoned clients, how many replicas."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.plots.labels import minus, room_for
from analysis.plots.marks import (
    FASTER_AXIS,
    VERDICTS,
    Mark,
    MarkRow,
    dots,
    ends_of,
    forest_section,
    interval,
    known,
    log_or_linear,
    names_beside,
    scaled,
    ticks,
    tile,
)
from analysis.plots.page import Page, Section, SmallPanels, Spec, dot, fill, line
from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import BAND, COLOURS, INK, MARKERS, QUIET, SMALL, picture
from analysis.terms import Refused, Run
from analysis.wording import digits, spoken, unsigned
from control.scaling import TOLERANCE, time_s

from .estimates import figure, inverse, mean
from .faults import Poisoning, poisonings
from .hyper import GridPoint, Hyper, hyper
from .records import Stream, Unit, in_order
from .scaling import MeasuredStream, TargetReport, of_run, reports

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .streams import Gathered

JOBS = frozenset({"job"})
LEFT, TALL = 0.62, 2.4
PAIR = SmallPanels(2, above=0.0, tall=TALL, below=0.5, left=LEFT, gap=0.15)


def look_of(at: int) -> tuple[str, str]:
    """Colour and mark of one of several; the first is what the others are compared with."""
    return (COLOURS[(at - 1) % len(COLOURS)], MARKERS[at % len(MARKERS)]) if at else (INK, "o")


TILE, ABREAST, DEEPEST, WIDE = 0.46, 6, 0.7, 0.95


@picture(
    -12,
    "How soon jobs learn, by hyper-parameter",
    "Which hyper-parameters reach the accuracy soonest, and which of them matter.",
    REPORTS=JOBS,
)
def jobs_hyper(scene: Scene) -> Spec:
    """Draw a map of the times to the accuracy, and below it a row an effect."""
    results = [(gathered, result) for gathered in scene.streams if (result := _reached(gathered.streams)) is not None]
    if not results:
        raise NothingToDraw("no jobs learn with several hyper-parameters until they reach an accuracy")
    gathered, first = results[0]
    ahead = "" if first.effect is not None and first.effect.low > 0 else " not"
    lead = (
        f"Mean time until a job knows {_target(gathered.streams)} of the images that it never saw, with its 95 % interval over runs; "
        f"stronger blue is sooner. Framed: the soonest,{ahead} shown to be ahead of the next. Below: what each change does on average, and "
        "how far two together are beyond what they do one by one (×)."
    )
    sections, notes = [], []
    for gathered, result in results:
        rows = [_change(result, term) for term in _terms(result)]
        sections.append(
            Section("Time to the accuracy, s", math.prod(_panels(result)[2:]) + 0.1, partial(_maps, result=result), run=gathered.run)
        )
        if rows:
            sections.append(_changes(rows, gathered.run))
        notes += [f"No effects: {result.why.rstrip('.')}."] if result.why else []
    return Spec(lead, sections, notes=notes, title=_matters(first))


def _reached(streams: Sequence[Stream]) -> Hyper | None:
    try:
        result = hyper(streams)
    except Refused:
        return None
    return result if result.best is not None else None


def _target(streams: Sequence[Stream]) -> str:
    every = [params.get("accuracy") for one in streams for kind in one.classes if isinstance(params := kind.get("params"), dict)]
    return " or ".join(sorted({f"{100 * target:g} %" for target in every if isinstance(target, float)})) or "as many as it was asked for"


def _named(names: Iterable[str], levels: Iterable[str]) -> str:
    return ", ".join(f"{name} {level}" for name, level in zip(names, levels, strict=True))


def _terms(result: Hyper) -> list[Any]:
    """Effects with an interval, the largest first; what changes what another does comes last."""
    terms = [] if result.effects is None else [term for term in result.effects.terms if term.gain_low is not None]
    return sorted(terms, key=lambda term: (len(term.factors), -abs(term.effect)))


def _levels(result: Hyper, term: Any) -> list[str]:
    """From which level to which a single hyper-parameter goes."""
    levels = next(one.levels for one in result.effects.observed.factors if one.name == term.factors[0])
    return [levels[0], term.level or levels[-1]]


def _matters(result: Hyper) -> str:
    """What matters most, where effects are known; else which point is soonest, if one is."""
    term = next((one for one in _terms(result) if len(one.factors) == 1 and one.verdict in {"improved", "regressed"}), None)
    if term is not None:
        slow, soon = _levels(result, term)[:: 1 if term.effect > 0 else -1]
        return f"The {term.factors[0]} matters most: {soon} is {digits(math.exp(abs(term.effect)), 2)} × as fast as {slow}"
    return f"Soonest: {_named(result.factors, result.best.levels)}" if result.best is not None else ""


def _change(result: Hyper, term: Any) -> MarkRow:
    name = f"{term.factors[0]}: {' → '.join(_levels(result, term))}" if len(term.factors) == 1 else " × ".join(term.factors)
    ends = scaled((term.gain, term.gain_low, term.gain_high), 100)
    word = "interact" if term.verdict == "interacts" else spoken(term.verdict)
    texts = minus("{:+.0f} [{:+.0f}, {:+.0f}]".format(*known([ends]))), word
    return MarkRow(name, [Mark(ends, VERDICTS.get(term.verdict, {"color": COLOURS[3], "marker": "D"}), texts)])


def _changes(rows: Sequence[MarkRow], run: Run) -> Section:
    reach = 1.08 * max(abs(end) for row in rows for end in known(mark.ends for mark in row.marks))
    left = room_for([row.name for row in rows], 2.6)
    heads = [("gain, % [95 %]", 0.12), ("", 0)]
    return forest_section("What each change does", rows, run=run, left=left, right=2.0, label=FASTER_AXIS, heads=heads, reach=reach)


def _panels(result: Hyper) -> tuple[list[str], list[str], int, float]:
    """What stands down and across, in how many rows panels stand, one for each level of all others, and how tall one is."""
    levels = [list(dict.fromkeys(point.levels[at] for point in result.points)) for at in range(len(result.factors))]
    down, across = (levels[0], levels[1]) if len(levels) > 1 else ([""], levels[0])
    count, abreast = math.prod(map(len, levels[2:])), max(1, ABREAST // len(across))
    return down, across, math.ceil(count / abreast), 0.5 + TILE * len(down)


def _maps(sheet: Page, top: float, result: Hyper) -> None:
    down, across, *_ = _panels(result)
    panels = list(dict.fromkeys(point.levels[2:] for point in result.points))
    names = [_named(result.factors[:1], [level]) if level else "" for level in down]
    left = room_for(names, 1.6)
    abreast = max(1, min(len(panels), ABREAST // len(across)))
    maps = SmallPanels(abreast, above=0.2, tall=TILE * len(down), below=0.3, left=0, gap=0.2, start=left)
    for rest, panel in maps.draw(sheet, top, panels, xlim=(0, len(across)), ylim=(len(down), 0), yticks=[]):
        panel.head(_named(result.factors[2:], rest))
        axes = panel.axes
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        columns = {place + 0.5: _named(result.factors[:2][-1:], [level]) for place, level in enumerate(across)}
        ticks(axes, "x", columns, columns)
        for point in (point for point in result.points if point.levels[2:] == rest):
            _tile(
                axes,
                (down.index((point.levels[:-1] or ("",))[0]), across.index(point.levels[:2][-1])),
                result,
                point,
                panel.wide / len(across),
            )
        if panel.first:
            names_beside(sheet, panel.top + maps.above, left, names, TILE)


def _tile(axes: Axes, at: tuple[int, int], result: Hyper, point: GridPoint, wide: float) -> None:
    times = [one.time_s.value for one in result.points if one.time_s is not None and one.reached == one.jobs]
    if point.time_s is None or point.reached < point.jobs:
        tile(axes, at, 0.0, f"{point.reached} of {point.jobs}\nreach it", framed=False)
        return
    depth = DEEPEST * math.log(max(times) / point.time_s.value) / (math.log(max(times) / min(times)) or 1.0)
    value, _, ends = figure(point.time_s).partition(" ")
    says = f"{_named(result.factors, point.levels)}: {value} {ends} s"
    tile(axes, at, depth, f"{value}\n{ends}".rstrip() if wide > WIDE else value, framed=point is result.best, tooltip=says)


SERVERS = {"fedavg": "mean", "median": "median", "trimmed": "trimmed mean"}
Course = tuple["Poisoning", "Poisoning"]  # after the first round, after the last


@picture(
    -11,
    "Accuracy with poisoned clients",
    "How much accuracy a federated model loses to clients that flip their labels, and which server gives it back.",
    REPORTS=JOBS,
)
def jobs_poisoning(scene: Scene) -> Spec:
    """Draw a line a setting, from the accuracy after the first round to that after the last."""
    results = [(gathered, _courses(gathered.streams)) for gathered in scene.streams]
    results = [(gathered, courses) for gathered, courses in results if any(last.poisoned for _, last in courses)]
    if not results:
        raise NothingToDraw("no job tells how accurate it was after its first round and its last, with poisoned clients")
    lead = (
        "Accuracy on images that no client has, after the first round and after the last, by what the server makes of its clients' models. "
        "Marks: means over blocks with 95 % intervals. What ends lower than without poison was lost to it."
    )
    sections = [
        Section(
            "From the first round to the last",
            TALL + 0.35,
            partial(_slopes, courses=courses, rounds=sorted({job.work or 0 for one in gathered.streams for job in one.jobs})),
            run=gathered.run,
        )
        for gathered, courses in results
    ]
    notes = ["Saved runs keep the accuracy of the first and the last round alone: between them lines are drawn, and nothing is known."]
    return Spec(lead, sections, notes=notes, title=_cost(results[0][1]))


def _courses(streams: Sequence[Stream]) -> list[Course]:
    """Settings by their last accuracy, the best first; of jobs that began but once, for only their first round is the first."""
    once = [replace(stream, jobs=tuple(job for job in stream.jobs if job.done_at_once)) for stream in streams]
    first = {(one.condition, one.setting, one.poisoned): one for one in poisonings(once, "accuracy_first") if one.accuracy is not None}
    last = sorted(
        (one for one in poisonings(once) if one.accuracy is not None), key=lambda one: -one.accuracy.value if one.accuracy else 0.0
    )
    return [(first[key], one) for one in last if (key := (one.condition, one.setting, one.poisoned)) in first]


def _cost(courses: Sequence[Course]) -> str:
    """The loss under the worst server, and under the best where there are several."""
    drops = [
        (one.drop.value, name) for (_, one), name in zip(courses, _servers(courses), strict=True) if one.poisoned and one.drop is not None
    ]
    if not drops:
        return ""
    (least, best), (most, _) = min(drops), max(drops)
    beside = f"; with a {best}, {100 * least:.1f}" if least < most and best in SERVERS.values() else ""
    return f"Poisoned clients cost {100 * most:.1f} points of accuracy{beside}"


def _servers(courses: Sequence[Course]) -> list[str]:
    """What sets settings apart besides the poison."""
    params = [dict(pair.split("=", 1) for pair in one.setting.split(", ") if "=" in pair) for _, one in courses]
    apart = [name for name in params[0] if len({own.get(name) for own in params}) > 1] if params else []
    words = [{name: own.get(name, "") for name in apart} for own in params]
    return [
        ", ".join(SERVERS.get(value, value) if name == "aggregation" else f"{name} {value}" for name, value in own.items()) for own in words
    ]


def _slopes(sheet: Page, top: float, courses: Sequence[Course], rounds: Sequence[float]) -> None:
    axes = sheet.axes(LEFT, top, 2.9, TALL, xlim=(-0.12, 1.12), ylabel="accuracy, %")
    last = f"after round {rounds[-1]:g}" if len(rounds) == 1 else "after the last round"
    ticks(axes, "x", (0, 1), {0: "after round 1", 1: last})
    heights = []
    for at, ((begin, end), server) in enumerate(zip(courses, _servers(courses), strict=True)):
        color, marker = look_of(at + 1 if end.poisoned else 0)
        ends = [ends_of(one.accuracy, 100) for one in (begin, end)]
        axes.plot([0, 1], [value or 0.0 for value, _, _ in ends], color=color, linewidth=1.6, zorder=2)
        clients = dict(pair.split("=", 1) for pair in end.setting.split(", ") if "=" in pair).get("clients")
        who = f"{end.poisoned:g}{f' of {clients}' if clients else ''} poisoned" if end.poisoned else "no poison"
        name = f"{who}, {server}" if server else who
        for place, one in enumerate(ends):
            interval(
                axes, place, one, {"color": color, "marker": marker}, "y", tooltip=f"{name}: {figure((begin, end)[place].accuracy, 100)} %"
            )
        lost = f", lost {figure(end.drop, 100)} points" if end.drop is not None else ""
        heights.append((ends[1][0] or 0.0, name, f"{figure(end.accuracy, 100)} %{lost}", color))
    axes.grid(axis="y")
    low, high = axes.get_ylim()
    down = -math.inf
    for value, name, text, color in heights:
        down = max(down + 0.38, TALL * (high - value) / (high - low))
        sheet.text(LEFT + 3.0, top + down - 0.01, name, va="bottom", fontweight="bold", color=color)
        sheet.text(LEFT + 3.0, top + down + 0.01, text, va="top", fontsize=SMALL, color=QUIET)


@picture(
    -10,
    "Replicas, and what they bring",
    "How much faster jobs run with more replicas, and whether replicas chosen job by job make jobs of any size take the same time.",
    REPORTS=JOBS | {"scale"},
)
def jobs_scaling(scene: Scene) -> Spec:
    """Draw the scaling curve beside how long jobs of each size ran."""
    results, refused = [], ["no stream had its replicas chosen job by job"]
    for gathered in scene.streams:
        streams = of_run(gathered.run, in_order(gathered.streams, []))
        try:
            results += [(gathered, streams, report) for report in reports(streams)]
        except Refused as reason:
            refused.append(str(reason).rstrip("."))
    if not results:
        raise NothingToDraw(refused[-1])
    report = results[0][2]
    lead = (
        "Left: how many times as fast jobs ran with more replicas; marks are means over streams with 95 % intervals. The further below the "
        "dashed line, the less each further replica brings. Right: a dot is a job, and all were to lie on the grey band."
    )
    legend = [line("law fitted beforehand", COLOURS[1]), line("perfect scaling", QUIET, 1.0, linestyle="--")]
    legend += [dot(f"{arm.name}: {100 * arm.mean('within'):.0f} % on target", *look_of(at)) for at, arm in enumerate(report.arms)]
    legend.append(fill(f"target: {report.target_s:g} s ±{unsigned(TOLERANCE)}"))
    sections = [
        Section(
            f"{one.runs} streams on {one.slots} slots",
            PAIR.height(2),
            partial(_scaled, streams=streams, report=one),
            run=gathered.run,
        )
        for gathered, streams, one in results
    ]
    return Spec(lead, sections, legend, _scaling_notes(results), _on_target(report))


def _on_target(report: TargetReport) -> str:
    """What choosing brought, and the best of one number for all."""
    chosen, *others = (100 * arm.mean("within") for arm in report.arms)
    beside = f"; one number for all: {max(others):.0f} %" if others else ""
    return f"Replicas chosen by job: {chosen:.0f} % on target{beside}"


def _scaling_notes(results: Sequence[tuple[Gathered, Sequence[MeasuredStream], TargetReport]]) -> list[str]:
    notes = []
    for gathered, _, report in results:
        costs = [f"{inverse(arm.node_seconds)[0]:.2f} times those of {arm.name}" for arm in report.arms if arm.node_seconds is not None]
        notes += [f"Node-seconds of jobs with a choice: {', '.join(costs)}; what was measured beforehand is not in them."] if costs else []
        notes += [f"The law was {unsigned(report.off)} off on average."] if report.off is not None else []
        kinds = {str(kind.get("kind")) for one in gathered.streams for kind in one.classes}
        notes += (
            ["STAND-IN: these jobs only sleep, for as long as Amdahl's law has it; they use no processor."] if kinds == {"sleep"} else []
        )
    return list(dict.fromkeys(notes))


def _scaled(sheet: Page, top: float, streams: Sequence[MeasuredStream], report: TargetReport) -> None:
    axes, other = PAIR.axes(sheet, top)
    axes.set(xlabel="replicas", ylabel="times as fast as with one")
    like = report.engine, report.slots
    streams = [one for one in streams if (one.record.engine, one.record.slots) == like and one.target_s in {None, report.target_s}]
    laws = {stream.record.unit: stream.laws for stream in streams if stream.laws}
    faster: dict[int, dict[Unit, list[float]]] = {}
    for stream in streams:
        for job, times in stream.record.done_with_times:
            law = laws.get(stream.record.unit, {}).get(job.class_)
            if law is not None and job.work is not None and times.ran_s > 0:
                faster.setdefault(job.replicas, {}).setdefault(stream.record.unit, []).append(float(time_s(law, job.work, 1)) / times.ran_s)
    most = max(faster, default=1)
    numbers = np.linspace(1, most, 50)
    axes.plot(numbers, numbers, color=QUIET, linewidth=1.0, linestyle="--", zorder=1)
    for law in (law for of_unit in laws.values() for law in of_unit.values()):
        axes.plot(numbers, time_s(law, 1.0, 1) / time_s(law, 1.0, numbers), color=COLOURS[1], linewidth=1.3, zorder=1)
    for replicas, values in faster.items():
        says = f"{replicas} replicas: {figure(mean(values))} times as fast, {sum(map(len, values.values()))} jobs"
        interval(axes, replicas, ends_of(mean(values)), {"color": INK, "marker": "o", "markersize": 5.5}, "y", tooltip=says)
    axes.set(xlim=(0.5, most + 0.5), ylim=(0.5, most + 0.5))
    axes.grid(visible=True)
    other.set(xlabel="size of the job, units of work", ylabel="ran for, s")
    _targets(other, streams, report)


def _targets(axes: Axes, streams: Sequence[MeasuredStream], report: TargetReport) -> None:
    axes.axhspan(report.target_s * (1 - TOLERANCE), report.target_s * (1 + TOLERANCE), color=BAND, linewidth=0, zorder=0)
    every = []
    for at, arm in reversed(list(enumerate(report.arms))):
        color, marker = look_of(at)
        jobs = [
            (job.work, times.ran_s)
            for stream in streams
            if stream.arm == arm.name
            for job, times in stream.record.done_with_times
            if job.work
        ]
        dots(axes, [work for work, _ in jobs], [ran for _, ran in jobs], color, marker=marker, markersize=3, alpha=0.7)
        every += jobs
    works, rans = zip(*every, strict=True)
    log_or_linear(axes, "x", min(works), max(works))
    log_or_linear(axes, "y", min(rans), max(rans))
    axes.grid(visible=True)
