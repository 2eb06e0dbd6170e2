"""Pictures of input: the time of an epoch, and utilisation and throughput by varied parameter."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from analysis.plots.labels import fit, fitted, joined, minus, room_for
from analysis.plots.marks import (
    FOOT,
    MUCH,
    ROW,
    bars,
    ends_of,
    known,
    lines,
    log_or_linear,
    row_axes,
)
from analysis.plots.page import Chart, Page, Plot, SmallPanels, fill, line
from analysis.plots.scene import Scene, some
from analysis.plots.style import DASHES, INK, MARKERS, SMALL, picture
from analysis.terms import STOCK, Run

from .design import common, configuration
from .effects import layout_of
from .figures import RATE, STEADY, WHOLE, describe_oversleep
from .words import change_text

if TYPE_CHECKING:
    from analysis.plots.marks import Ends, Style
    from analysis.stats.estimate import Mean

    from .effects import Analysis
    from .study import Configuration, IoStudy
    from .terms import IoRun

    Means = Mapping[tuple[str, ...], Mean]

IO = frozenset({"io"})
LOOKS: dict[str, Style] = {
    WHOLE: {"color": INK, "marker": "o", "markersize": 5.5},
    STEADY: {"color": "#D55E00", "marker": "o", "markersize": 5.5, "markerfacecolor": "white"},
}
WORDS = {WHOLE: "over the whole epoch", STEADY: "without its first step, as in DLIO"}
STATES = {"cold": "#0072B2", "warm": "#D55E00", "as_found": "#8c8c8c"}


class IoPart(NamedTuple):
    """One study: its run (None for DLIO's folders), and its untouched configurations."""

    study: IoStudy
    run: Run | None
    title: str
    rows: Sequence[Configuration]

    def section(
        self, tall: float, draw: Callable[[Page, float], object], lines: Sequence[str] = ()
    ) -> Chart:
        return Chart(self.title, tall, draw, self.study.alike, lines, self.run)


def parts_of(scene: Scene) -> list[IoPart]:
    parts = []
    for study in scene.io:
        run = next((run for run in scene.runs if run.origin == study.origin), None)
        rows = [
            row
            for row in study.configurations
            if row.tweakset == STOCK and row.responses[RATE].value is not None
        ]
        title = f"run {run.run_id}" if run else Path(study.origin).name or study.origin
        if run is None:
            rows.sort(key=_natural)
        if rows:
            parts.append(IoPart(study, run, title, rows))
    return some(parts, "no cell that reports its input was measured on the untouched machine")


def _natural(row: Configuration) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", row.name)
    ]


def notes_of(parts: Sequence[IoPart], *, intervals: bool = True) -> list[str]:
    notes = []
    most = max(mean.n for part in parts for row in part.rows for mean in row.responses.values())
    if intervals and most > 1:
        notes.append(
            "Bars around marks: 95 % of the mean, by Student's t over blocks (whole runs), never "
            "over steps or epochs."
        )
    elif intervals:
        notes.append("Every configuration ran once, so there is no interval.")
    for part in parts:
        if part.run is None:
            engine = part.rows[0].runs[0].engine
            notes.append(f"{part.title}: {len(part.study.cells)} runs of {engine}.")
        if late := describe_oversleep(part.study.cells):
            notes.append(f"{late}.")
    return notes


def _refused(parts: Sequence[IoPart]) -> str:
    every = [row.responses[STEADY] for part in parts for row in part.rows]
    reasons = [mean.missing or "" for mean in every if mean.value is None]
    kinds = joined(reason.partition(":")[0].replace("_", " ") for reason in reasons)
    return (
        f"No AU with {WORDS[STEADY]} in {len(reasons)} of {len(every)} configurations ({kinds}): "
        "none is drawn."
        if reasons
        else ""
    )


class LevelPanel(NamedTuple):
    """A small panel of lines over levels: vertical axis, level names by place, lines, and range.

    Rates are compared by ratios: without `most`, lines with equal relative loss are parallel,
    however small the loss.
    """

    label: str
    levels: Mapping[float, str]
    lines: Sequence[tuple[Style, Sequence[tuple[float, Ends]]]]
    most: float | None
    across: str = ""
    head: str = ""


SIDES = SmallPanels(2, above=0.1, tall=1.6, below=0.5, left=0.62, gap=0.25)
COUNTS = SmallPanels(4, above=0.26, tall=1.15, below=0.5, left=0.5, gap=0.08)
NOMINAL = {WHOLE: "mb_per_s_nominal_whole", STEADY: "mb_per_s_nominal_steady"}


def _sides(
    sheet: Page, top: float, sides: Sequence[LevelPanel], layout: SmallPanels = SIDES
) -> None:
    for side, panel in layout.draw(sheet, top, sides, grid="y"):
        panel.text(
            0.02,
            fit(side.head, 2 * panel.wide + 0.4, SMALL) if side.head else "",
            fontweight="bold",
        )
        for style, points in side.lines:
            lines(panel.axes, points, style)
        first, *_, last = side.levels
        room = 0.1 * (last - first)
        panel.axes.set(xlim=(first - room, last + room), xlabel=side.across, ylabel=side.label)
        shown = fitted(side.levels.values(), panel.wide / len(side.levels) - 0.04, SMALL)
        panel.axes.set_xticks(list(side.levels), [shown[name] for name in side.levels.values()])
        if side.most is None:
            low, high = (
                end(known(ends for _, points in side.lines for _, ends in points))
                for end in (min, max)
            )
            apart_by = max(1.0, 1.01 * MUCH * low / high) ** 0.5
            log_or_linear(panel.axes, "y", low / apart_by, high * apart_by)
        else:
            panel.axes.set_ylim(0, side.most)


@picture(22, "Utilisation and throughput against processes", REPORTS=IO)
def io_processes(scene: Scene) -> Plot:
    """Utilisation and throughput by number of processes: when accelerators begin to wait."""
    reason = (
        "no configuration was measured with several numbers of processes: `--vary "
        "processes=1,2,4` does"
    )
    parts = some((part for part in parts_of(scene) if _groups(part)), reason)
    lead = (
        "Each process feeds one accelerator. If throughput rises with the processes at constant "
        "utilisation, the input keeps up. "
        "If throughput is constant while utilisation falls, the input is saturated."
    )
    styles = {WHOLE: LOOKS[WHOLE], STEADY: LOOKS[STEADY] | {"linestyle": "--"}}
    legend = [line(WORDS[name], **style) for name, style in styles.items()]
    rows = [row for part in parts for group in _groups(part).values() for row in group]
    highest = 1.06 * max(
        known(ends_of(row.responses[name], 1 / 1024) for row in rows for name in NOMINAL.values()),
        default=1.0,
    )
    kinds = (
        ("AU, %", {name: name for name in styles}, 1.0, 104.0),
        ("GiB/s, nominal", NOMINAL, 1 / 1024, highest),
    )
    sections = []
    for part in parts:
        sides = []
        for name, group in _groups(part).items():
            counts = [row.runs[0].processes for row in group]
            names: dict[float, str] = {count: str(count) for count in counts}
            for label, responses, scale, most in kinds:
                curves = []
                for side, response in responses.items():
                    ends = [ends_of(row.responses[response], scale) for row in group]
                    curves.append((styles[side], list(zip(counts, ends, strict=True))))
                head = name if scale == 1.0 else ""
                sides.append(LevelPanel(label, names, curves, most, "processes", head))
        draw = partial(_sides, sides=sides, layout=COUNTS)
        sections.append(part.section(COUNTS.height(len(sides)), draw))
    nominal = "Nominal: samples times the mean record length, as DLIO counts; 1 GiB = 2^30 bytes."
    return Plot(lead, sections, legend, [*notes_of(parts), _refused(parts), nominal])


def _groups(part: IoPart) -> dict[str, list[Configuration]]:
    alike = common([cell.run for cell in part.study.cells]) | {"processes"}
    groups: dict[str, list[Configuration]] = defaultdict(list)
    for row in part.rows:
        groups[configuration(row.runs[0], alike)].append(row)
    for group in groups.values():
        group.sort(key=lambda row: row.runs[0].processes)
    return {
        name: group
        for name, group in groups.items()
        if group[0].runs[0].processes < group[-1].runs[0].processes
    }


# Reading warm, computing cool: computation, the purpose of a training, is the one calm colour.
SHARES = {
    "first": ("#D55E00", "waiting for the first batch"),
    "later": ("#E69F00", "waiting for later batches"),
    "compute": ("#56B4E9", "computing"),
    "barrier": ("#8f4b7d", "waiting for other ranks"),
    "rest": ("#d0d0d0", "rest: readers' start and end, checkpoints"),
}
UNCLOCKED = "waiting for other ranks, and the readers' end"


@picture(23, "Where the time of an epoch goes", REPORTS=IO)
def io_bottleneck(scene: Scene) -> Plot:
    """Time of an epoch by activity: waiting for first or later batches or ranks, or computing.

    There is a bar per configuration, over all its runs on the untouched machine.
    """
    parts = parts_of(scene)
    lead = (
        "The wall time of an epoch, as its ranks spent it on average. Ideally there is only one "
        "colour: computing. During the wait for the "
        "first batch, the readers run and the accelerator does not."
    )
    legend = [fill(words, color, color) for color, words in SHARES.values()]
    if all(shares_of(part.rows[0].runs[:1])["barrier"] is None for part in parts):
        legend[-2:] = [fill(UNCLOCKED, SHARES["rest"][0])]
    left = room_for([row.name for part in parts for row in part.rows], 3.0)
    sections = [
        part.section(ROW * len(part.rows) + FOOT, partial(_epochs, part=part, left=left))
        for part in parts
    ]
    return Plot(lead, sections, legend, notes_of(parts, intervals=False))


def _epochs(sheet: Page, top: float, part: IoPart, left: float) -> None:
    names = [row.name for row in part.rows]
    axes = row_axes(
        sheet, top, left, names, right=0.1, xlim=(0, 100), xlabel="part of the epoch, %"
    )
    for at, row in enumerate(part.rows):
        bars(
            axes,
            at,
            [
                (share, SHARES[name][0])
                for name, share in shares_of(row.runs).items()
                if share is not None
            ],
            least=8,
        )


def shares_of(runs: Iterable[IoRun]) -> dict[str, float | None]:
    """Average over all epochs and ranks of all runs, weighted by duration.

    Returns: percent of the wall time of each of `SHARES`, 100 together; the barrier is None if it
    was not clocked separately.
    """
    epochs = [epoch for run in runs for epoch in run.epochs]
    parts: dict[str, float | None] = {
        "first": math.fsum(epoch.load_s[0] for epoch in epochs if epoch.load_s),
        "later": math.fsum(math.fsum(epoch.load_s[1:]) for epoch in epochs),
        "compute": math.fsum(math.fsum(epoch.compute_s) for epoch in epochs),
    }
    clocked = [math.fsum(epoch.barrier_s) for epoch in epochs if epoch.barrier_s is not None]
    parts["barrier"] = math.fsum(clocked) if len(clocked) == len(epochs) else None
    known_s = math.fsum(part or 0.0 for part in parts.values())
    total_s = max(known_s, math.fsum(epoch.duration_s for epoch in epochs))
    return {
        name: None if part is None else 100 * part / total_s
        for name, part in (parts | {"rest": total_s - known_s}).items()
    }


PAIR = ("format", "cache")
RESPONSES = {WHOLE: "AU over the whole epoch, %", RATE: "samples/s over the whole epoch"}


@picture(4, "Format and page cache together", REPORTS=IO)
def io_format_cache(scene: Scene) -> Plot:
    """Cost of a cold cache per format: high if reading is the bottleneck, none if decoding is."""
    every = [
        (part, analysis, layout_of(part.study.cells, analysis.response).means(*PAIR))
        for part in parts_of(scene)
        for analysis in part.study.analyses
        if analysis.response in RESPONSES
    ]
    reasons = joined(analysis.refusal for _, analysis, _ in every if analysis.refusal)
    rows = [
        (part, analysis, means)
        for part, analysis, means in every
        if analysis.findings
        and 0 < len(means) == math.prod(len(analysis.factors.get(name, ())) for name in PAIR)
    ]
    some(rows, reasons or "format and cache were not varied in all combinations")
    lead = (
        "Each line is a state of the page cache. Parallel lines: a cold cache costs every format "
        "the same (of samples/s, the same share). Lines that meet: that format is limited by "
        "decoding, so a faster disk does not help."
    )
    states = dict.fromkeys(state for *_, means in rows for _, state in means)
    looks: dict[str, Style] = {
        state: {
            "color": STATES.get(state, INK),
            "marker": MARKERS[at % len(MARKERS)],
            "linestyle": DASHES[at % len(DASHES)],
        }
        for at, state in enumerate(states)
    }
    legend = [line(state.replace("_", " "), markersize=5, **look) for state, look in looks.items()]
    sections = []
    for part in dict.fromkeys(id(part) for part, *_ in rows):
        own = [row for row in rows if id(row[0]) == part]
        sides = [_formats(analysis.response, means, looks) for _, analysis, means in own]
        texts = [_interaction(analysis) for _, analysis, _ in own]
        drawn = partial(_sides, sides=sides)
        sections.append(own[0][0].section(SIDES.height(len(sides)), drawn, lines=texts))
    note = (
        "Means over whatever else was varied; bars: 95 % of the mean, by Student's t over blocks."
    )
    return Plot(lead, sections, legend, [note])


def _interaction(analysis: Analysis) -> str:
    steps = [
        f"{step.name} {change_text(analysis.response, step)}"
        for effect in analysis.findings
        if effect.factors == PAIR and effect.shown
        for step in effect.steps
    ]
    none = "no interaction of format and cache shown"
    return minus(f"{RESPONSES[analysis.response]}: {'; '.join(steps) or none}.")


def _formats(response: str, means: Means, looks: Mapping[str, Style]) -> LevelPanel:
    formats, states = (list(dict.fromkeys(levels[side] for levels in means)) for side in (0, 1))
    curves: list[tuple[Style, list[tuple[float, Ends]]]] = []
    for at, state in enumerate(states):
        shift = (at - (len(states) - 1) / 2) * 0.08
        points = [(x + shift, ends_of(means[name, state])) for x, name in enumerate(formats)]
        curves.append(({"markersize": 5, **looks[state]}, points))
    highest = 1.08 * max(known(ends for _, points in curves for _, ends in points))
    most = None if response == RATE else highest
    return LevelPanel(RESPONSES[response], dict(enumerate(formats)), curves, most)
