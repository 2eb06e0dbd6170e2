"""What the input did: where an epoch goes, utilisation and throughput by what was varied, and tweak sets beside stock."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from os.path import commonpath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from analysis.plots.labels import fitted, joined, minus, room_for
from analysis.plots.marks import (
    FOOT,
    HEADS,
    MUCH,
    ROW,
    Mark,
    MarkRow,
    Style,
    bars,
    ends_of,
    forest,
    known,
    lines,
    log_or_linear,
    row_axes,
    ticks,
)
from analysis.plots.page import Page, Section, SmallPanels, Spec, dot, fill, line
from analysis.plots.scene import NothingToDraw, Scene
from analysis.plots.style import AGAIN as GREY
from analysis.plots.style import DASHES, GRID, INK, MARKERS, SMALL, picture
from analysis.terms import AGAIN, STOCK, Run

from .effects import Analysis, IoContrast, analyse, contrasts, means
from .factors import common, configuration, describe_common
from .responses import JudgedResponse, describe_oversleep
from .sentences import amount, answers
from .study import Configuration, apart, configurations, in_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .terms import IoRun

IO = frozenset({"io"})
RATE = "samples_per_s_whole"  # what every run has that has any figure
WHOLE, STEADY = "au_whole_percent", "au_steady_percent"
WHOLE_STYLE: Style = {"color": INK, "marker": "o", "markersize": 5.5}
STEADY_STYLE: Style = {"color": "#D55E00", "marker": "o", "markersize": 5.5, "markerfacecolor": "white"}
WHOLE_WORDS, STEADY_WORDS = "over the whole epoch", "its first step left out, as DLIO does"
WHY = {"degenerate": "too few steps, or epochs under 1 s"}
STATES = {"cold": "#0072B2", "warm": "#D55E00", "as_found": "#8c8c8c"}
LEFT, GAP = 0.62, 0.25


class IoPart(NamedTuple):
    """The untouched machine in one saved run, or in a study of DLIO's folders: its cells and what they come to, in the order of levels.

    `left_out` is why runs have no figure at all, a word a run.
    """

    run: Run | None
    title: str
    alike: str
    cells: tuple[JudgedResponse, ...]
    configurations: tuple[Configuration, ...]
    left_out: tuple[str, ...] = ()

    def section(self, row_in: float, draw: Callable[[Page, float], None]) -> Section:
        return Section(self.title, row_in * len(self.configurations) + FOOT, draw, self.alike, run=self.run)


def parts_of(scene: Scene) -> list[IoPart]:
    """Take a scene's I/O runs on the untouched machine, a part a saved run or study of folders.

    Raises: NothingToDraw, where there is none.
    """
    untouched = [judged for judged in scene.io if judged.run.tweakset in {STOCK, AGAIN} and judged.run.epochs]
    folders = [judged.run.origin for judged in untouched if judged.run.block is None]
    above = commonpath(folders) if folders else ""
    origins: dict[str, list[JudgedResponse]] = {}
    for judged in untouched:
        origins.setdefault(above if judged.run.block is None else judged.run.origin, []).append(judged)
    parts = []
    for origin, every in origins.items():
        cells = tuple(judged for judged in every if judged.value(RATE) is not None)
        if not cells:
            continue
        left_out = [doubt.kind.replace("_", " ") for judged in every if judged not in cells for doubt in judged.doubts[:1]]
        alike = describe_common([cell.run for cell in cells])
        run = next((run for run in scene.runs if run.origin == origin), None)
        name = run.run_id if run else Path(origin).name or origin
        alike = alike if scene.runs else alike.removeprefix(name).lstrip(", ")  # a folder of DLIO's is called as its workload is
        rows = configurations(cells)
        rows = rows if cells[0].run.block is not None else sorted(rows, key=_natural_order)
        parts.append(IoPart(run, f"run {name}" if scene.runs else name, alike, cells, tuple(rows), tuple(left_out)))
    if not parts:
        raise NothingToDraw("no cell that reports its input was measured on the untouched machine")
    return parts


def _natural_order(row: Configuration) -> list[tuple[int, str]]:
    """Order words by the alphabet and numbers by size, so that what changed one parameter stands together."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", row.name)]


def notes_of(scene: Scene, parts: Sequence[IoPart], *, intervals: bool = True) -> list[str]:
    """Say what a mark stands for, where folders came from, and where the steady utilisation is refused."""
    notes = []
    if intervals:
        most = max(mean.runs for part in parts for row in part.configurations for mean in row.responses.values())
        if most > 1:
            notes.append("Bars around marks: 95 % of the mean, by Student's t over blocks (whole runs), never over steps or epochs.")
            notes.append("Means of rates are geometric, those of AU and shares arithmetic; stock and its copy in one block are one value.")
        else:
            notes.append("Every configuration ran once: how far equal runs differ is not known, and there is no interval.")
    for part in parts:
        if not scene.runs:
            machine = part.cells[0].run.host.name
            notes.append(f"{part.title}: {len(part.cells)} runs of {part.cells[0].run.engine}{f' on {machine}' if machine else ''}.")
        late = describe_oversleep(part.cells)
        notes += [f"{late[0].upper()}{late[1:]}."] if late is not None else []
        counts = Counter(part.left_out).items()
        texts = [f"{count} {kind} run{'' if count == 1 else 's'}{f' ({WHY[kind]})' if kind in WHY else ''}" for kind, count in counts]
        notes += [f"Left out: {', '.join(texts)}."] if texts else []
    return notes


def _refused(parts: Sequence[IoPart]) -> str:
    """Say of how many configurations the steady utilisation is refused, and why: any place on an axis would be a value."""
    every = [row.responses[STEADY] for part in parts for row in part.configurations]
    reasons = [mean.missing or "" for mean in every if mean.value is None]
    kinds = joined(reason.partition(":")[0].replace("_", " ") for reason in reasons)
    return f"No AU with {STEADY_WORDS} in {len(reasons)} of {len(every)} configurations ({kinds}): none is drawn." if reasons else ""


def _left(parts: Sequence[IoPart]) -> float:
    return room_for([row.name for part in parts for row in part.configurations], 3.0)


@picture(
    21,
    "Accelerator utilisation: whole epoch beside steady",
    "How much of an epoch the accelerator computes, and how much of that leaving the first step out hides.",
    REPORTS=IO,
)
def io_whole_steady(scene: Scene) -> Spec:
    """A row a configuration; the line between its two marks is what the first step took."""
    parts = parts_of(scene)
    if not any(row.responses[name].value is not None for part in parts for row in part.configurations for name in (WHOLE, STEADY)):
        raise NothingToDraw("no run has a utilisation: nothing was computed")
    lead = (
        "Readers fetch the first batches while the accelerator waits. DLIO leaves that step out; the training does not. The further the "
        "two marks are apart, the more reading is hidden in the step that is left out."
    )
    legend = [dot(WHOLE_WORDS, **WHOLE_STYLE), dot(STEADY_WORDS, **STEADY_STYLE)]
    left = _left(parts)
    sections = [part.section(0.3, partial(_utilisation, part=part, left=left)) for part in parts]
    return Spec(lead, sections, legend, [*notes_of(scene, parts), _refused(parts)])


def _utilisation(sheet: Page, top: float, part: IoPart, left: float) -> None:
    pairs = [(row.responses[WHOLE], row.responses[STEADY]) for row in part.configurations]
    rows = [
        MarkRow(row.name, [Mark(ends_of(whole), WHOLE_STYLE), Mark(ends_of(steady), STEADY_STYLE)], tall=0.3)
        for row, (whole, steady) in zip(part.configurations, pairs, strict=True)
    ]
    label = "accelerator utilisation (AU), %"
    axes = forest(sheet, top, rows, left=left, right=0.1, label=label, zero=None)
    axes.set_xlim(0, 104)
    for at, (whole, steady) in enumerate(pairs):
        if whole.value is not None and steady.value is not None:
            axes.plot([whole.value, steady.value], [0.3 * (at + 0.5)] * 2, color=GRID, linewidth=6, solid_capstyle="butt", zorder=1)


@picture(
    22,
    "Utilisation and throughput against processes",
    "Whether more processes still bring more data, and from how many on the accelerators wait.",
    REPORTS=IO,
)
def io_processes(scene: Scene) -> Spec:
    """Two panels a configuration: utilisation and throughput; both begin at 0."""
    result = [(part, name, group) for part in parts_of(scene) for name, group in _groups(part).items()]
    if not result:
        raise NothingToDraw("no configuration was measured with several numbers of processes: `--vary processes=1,2,4` does")
    lead = (
        "Each process feeds one accelerator. Throughput that rises with the processes and a utilisation that stays: the input keeps up. "
        "Throughput that stays while utilisation falls: it is all there is."
    )
    legend = [line(WHOLE_WORDS, **WHOLE_STYLE), line(STEADY_WORDS, **STEADY_STYLE, linestyle="--")]
    parts = list({id(part): part for part, _, _ in result}.values())
    rates = [ends_of(row.responses[name], 1 / 1024) for _, _, group in result for row in group for name in NOMINAL]
    highest = 1.06 * max(known(rates), default=1.0)  # one scale for all, so that they can be set beside each other
    sections = []
    for part, name, group in result:
        title = f"{part.title}: {name}" if name and len(parts) > 1 else name or part.title
        sections.append(Section(title, COUNTS.height(1), partial(_counts, group=group, highest=highest), part.alike, run=part.run))
    nominal = "Nominal: samples times the mean record length, as DLIO counts; 1 GiB = 2^30 bytes."
    notes = [*notes_of(scene, parts[:1]), _refused(parts), nominal]
    return Spec(lead, sections, legend, notes)


COUNTS = SmallPanels(2, above=0.0, tall=1.5, below=0.5, left=LEFT, gap=GAP)
NOMINAL = ("mb_per_s_nominal_whole", "mb_per_s_nominal_steady")


def _groups(part: IoPart) -> dict[str, list[Configuration]]:
    """Put configurations together that differ in nothing but processes, by their common name."""
    alike = common([cell.run for cell in part.cells]) | {"processes"}
    groups: dict[str, list[Configuration]] = {}
    for row in part.configurations:
        groups.setdefault(configuration(row.runs[0], alike), []).append(row)
    ordered = {name: sorted(group, key=lambda row: row.runs[0].processes) for name, group in groups.items()}
    return {name: group for name, group in ordered.items() if group[0].runs[0].processes < group[-1].runs[0].processes}


def _counts(sheet: Page, top: float, group: Sequence[Configuration], highest: float) -> None:
    counts = [row.runs[0].processes for row in group]
    room = 0.06 * (counts[-1] - counts[0])
    sides = (("AU, %", (WHOLE, STEADY), 1.0, 104.0), ("GiB/s, nominal", NOMINAL, 1 / 1024, highest))
    for (label, names, scale, most), panel in COUNTS.draw(sheet, top, sides, grid="y", xlabel="processes", xticks=counts):
        panel.axes.set(xlim=(counts[0] - room, counts[-1] + room), ylabel=label, ylim=(0, most))
        for name, style in zip(names, (WHOLE_STYLE, STEADY_STYLE | {"linestyle": "--"}), strict=True):
            lines(panel.axes, [(at, ends_of(row.responses[name], scale)) for at, row in zip(counts, group, strict=True)], style)


class Shares(NamedTuple):
    """Parts of an epoch's wall time, in percent; they add up to 100. `barrier` is None where it was not clocked apart from the rest."""

    first: float
    later: float
    compute: float
    barrier: float | None
    rest: float


# Reading warm, computing cool: what a training is for is the one calm colour.
LOOKS = {
    "first": ("#D55E00", "waiting for the first batch"),
    "later": ("#E69F00", "waiting for later batches"),
    "compute": ("#56B4E9", "computing"),
    "barrier": ("#8f4b7d", "waiting for other ranks"),
    "rest": ("#d0d0d0", "rest: readers' start and end, checkpoints"),
}

UNCLOCKED = "waiting for other ranks, and the readers' end"


@picture(
    23,
    "Where the time of an epoch goes",
    "What the accelerator waits for: the first batch, later batches, other ranks, or nothing at all.",
    REPORTS=IO,
)
def io_bottleneck(scene: Scene) -> Spec:
    """A bar a configuration, of all its runs on the untouched machine together."""
    parts = parts_of(scene)
    lead = (
        "The wall time of an epoch, as its ranks spent it on average. A training wants one colour only: computing. While it waits for the "
        "first batch the readers run and the accelerator does not."
    )
    legend = [fill(words, color, color) for color, words in LOOKS.values()]
    if all(shares_of([part.cells[0].run]).barrier is None for part in parts):
        legend[-2:] = [fill(UNCLOCKED, LOOKS["rest"][0])]
    left = _left(parts)
    sections = [part.section(ROW, partial(_epochs, part=part, left=left)) for part in parts]
    return Spec(lead, sections, legend, notes_of(scene, parts, intervals=False))


def _epochs(sheet: Page, top: float, part: IoPart, left: float) -> None:
    names = [row.name for row in part.configurations]
    axes = row_axes(sheet, top, left, names, right=0.1, xlim=(0, 100), xlabel="part of the epoch, %")
    for at, row in enumerate(part.configurations):
        shares = shares_of(row.runs)._asdict()
        bars(axes, at, [(share, LOOKS[name][0]) for name, share in shares.items() if share is not None], least=8)


def shares_of(runs: Iterable[IoRun]) -> Shares:
    """Average over all epochs and ranks of all runs, each epoch of a rank as heavy as it was long."""
    epochs = [epoch for run in runs for epoch in run.epochs]
    total_s = math.fsum(epoch.duration_s for epoch in epochs)
    first = math.fsum(epoch.load_s[0] for epoch in epochs if epoch.load_s)
    later = math.fsum(math.fsum(epoch.load_s[1:]) for epoch in epochs)
    compute = math.fsum(math.fsum(epoch.compute_s) for epoch in epochs)
    clocked = [math.fsum(epoch.barrier_s) for epoch in epochs if epoch.barrier_s is not None]
    barrier = math.fsum(clocked) if len(clocked) == len(epochs) else None
    rest = max(0.0, total_s - first - later - compute - (barrier or 0.0))
    scale = 100 / (first + later + compute + (barrier or 0.0) + rest)
    return Shares(first * scale, later * scale, compute * scale, None if barrier is None else barrier * scale, rest * scale)


PAIR = ("format", "cache")
FORMATS = SmallPanels(2, above=0.1, tall=1.7, below=0.44, left=LEFT, gap=GAP)
SIDES = {WHOLE: "AU over the whole epoch, %", RATE: "samples/s over the whole epoch"}


@picture(
    4,
    "Format and page cache together",
    "What a cold cache costs each format: much where reading is the work, nothing where decoding is.",
    REPORTS=IO,
)
def io_format_cache(scene: Scene) -> Spec:
    """Two panels a run: utilisation and samples/s by format, a line a state of the cache; means over whatever else was varied."""
    rows: list[tuple[IoPart, list[Analysis]]] = []
    reasons: list[str] = []
    for part in parts_of(scene):
        result = [analyse(part.cells, name, sets=False) for name in SIDES]
        reasons += [analysis.refusal for analysis in result if analysis.refusal]
        complete = [analysis for analysis in result if _complete(analysis)]
        rows += [(part, complete)] if complete else []
    if not rows:
        raise NothingToDraw("; ".join(dict.fromkeys(reasons)) or "format and cache were not both varied, or not in all combinations")
    lead = (
        "Each line is a state of the page cache. Parallel lines: a cold cache costs every format the same, of samples/s the "
        "same part. Lines that meet: that format is bound by its decoding, and a faster disk does not help it."
    )
    states = list(dict.fromkeys(state for _, result in rows for analysis in result for _, state in means(analysis, PAIR)))
    legend = [line(state.replace("_", " "), **_state(state, at)) for at, state in enumerate(states)]
    sections = [
        Section(part.title, FORMATS.height(1), partial(_formats, result=result), part.alike, list(map(_interaction, result)), part.run)
        for part, result in rows
    ]
    note = "Means over whatever else was varied; bars: 95 % of the mean, by Student's t over blocks."
    return Spec(lead, sections, legend, [note])


def _complete(analysis: Analysis) -> bool:
    levels = {factor.name: factor.levels for factor in analysis.layout.factors}
    return (
        bool(analysis.findings)
        and set(PAIR) <= levels.keys()
        and len(means(analysis, PAIR)) == math.prod(len(levels[name]) for name in PAIR)
    )


def _interaction(analysis: Analysis) -> str:
    result = [text for text in answers(analysis) if text.startswith(f"{' × '.join(PAIR)}:")]
    return minus(f"{SIDES[analysis.response]}: {result[0] if result else 'no interaction of format and cache shown.'}")


def _state(state: str, at: int) -> Style:
    color = STATES.get(state, INK)
    return {"color": color, "marker": MARKERS[at % len(MARKERS)], "linestyle": DASHES[at % len(DASHES)], "markersize": 5}


def _formats(sheet: Page, top: float, result: Sequence[Analysis]) -> None:
    for analysis, panel in FORMATS.draw(sheet, top, result, grid="y"):
        values = means(analysis, PAIR)
        formats, states = (list(dict.fromkeys(levels[side] for levels in values)) for side in (0, 1))
        for at, state in enumerate(states):
            shift = (at - (len(states) - 1) / 2) * 0.08
            lines(panel.axes, [(x + shift, ends_of(values[name, state])) for x, name in enumerate(formats)], _state(state, at))
        panel.axes.set(xlim=(-0.4, len(formats) - 0.6), ylabel=SIDES[analysis.response])
        panel.axes.set_xticks(range(len(formats)), fitted(formats, panel.wide / len(formats) - 0.04, SMALL, lines=2).values())
        if analysis.layout.scale == "log":
            # Rates are compared by ratios: lines are parallel where the same part is lost, however little they differ.
            low, high = (end(known(map(ends_of, values.values()))) for end in (min, max))
            apart_by = max(1.0, 1.01 * MUCH * low / high) ** 0.5
            log_or_linear(panel.axes, "y", low / apart_by, high * apart_by)
        else:
            panel.axes.set_ylim(bottom=0)


PERCENTS = (-99, -90, -75, -50, -30, -20, -10, -5, -2, -1, 1, 2, 5, 10, 25, 50, 100, 300, 900, 9900)


@picture(
    25,
    "Tweak sets and input: cold cache beside warm",
    "Whether a tweak set feeds the accelerator faster, and whether it does so through the disk.",
    REPORTS=IO,
)
def io_tweaks(scene: Scene) -> Spec:
    """A row a tweak set, configuration and state of the cache; the copy of stock stands last, in grey."""
    groups: list[tuple[str, list[IoContrast], Run | None]] = []
    idle: set[str] = set()
    for origin in dict.fromkeys(judged.run.origin for judged in scene.io):
        treated, copies = apart(in_order([judged for judged in scene.io if judged.run.origin == origin]))
        result, nothing = contrasts(treated, RATE), contrasts(copies, RATE).tweaks
        met = {contrast.configuration for contrast in (*result.tweaks, *nothing)}
        every = [
            contrast
            for contrast in (*result.tweaks, *nothing, *result.again)
            if contrast.effect is not None and contrast.configuration in met
        ]
        idle |= {contrast.tweakset for contrast in nothing}
        run = next((run for run in scene.runs if run.origin == origin), None)
        names = dict.fromkeys(contrast.tweakset for contrast in every)
        groups += [(name, beside([contrast for contrast in every if contrast.tweakset == name]), run) for name in names]
    if not groups:
        raise NothingToDraw("no tweak set was measured beside stock while a workload reported its input")
    lead = (
        "Samples/s over the whole epoch against stock in the same block. What is read from a cold cache comes from the disk; a warm one "
        "holds it all, so that how a disk is read cannot matter there: what it seems to do is chance. Checkpoints are written either way."
    )
    every = [row for _, rows, _ in groups for row in rows]
    legend = [dot(f"{state} cache", **_contrast(state)) for state in STATES if any(contrast.cache == state for contrast in every)]
    legend.append(dot("filled: differs from stock after Holm's adjustment", marker="s"))
    notes = ["Lines: 95 % intervals, paired by block (whole runs). The scale is of ratios: half is as far from stock as twice."]
    left = room_for([contrast.configuration or "all" for contrast in every], 2.9)
    reach = 1.1 * max(abs(_ratio(end)) for contrast in every for end in (contrast.low, contrast.high, 0.02))
    sections = []
    for name, rows, run in groups:
        copy = "changes nothing: what this machine makes of chance" if name == AGAIN else ""
        beside_it = "changed nothing here: a second A/A" if name in idle else copy
        foot = FOOT if name == groups[-1][0] else 0.08
        draw = partial(_tweaks, rows=rows, left=left, reach=reach, quiet=bool(beside_it), foot=foot)
        sections.append(Section(name, HEADS + ROW * len(rows) + foot, draw, beside_it, run=run))
    return Spec(lead, sections, legend, notes)


def beside(rows: Sequence[IoContrast]) -> list[IoContrast]:
    """Put the states of the cache of one configuration beside each other, cold first; otherwise the order stays."""
    rests = list(dict.fromkeys(row.rest for row in rows))
    states = list(dict.fromkeys([*STATES, *(row.cache for row in rows)]))
    return sorted(rows, key=lambda row: (rests.index(row.rest), states.index(row.cache)))


def _contrast(cache: str) -> Style:
    return {"color": STATES.get(cache, INK), "marker": "s" if cache == "cold" else "o", "markersize": 5.5, "markerfacecolor": "white"}


def _tweaks(sheet: Page, top: float, rows: Sequence[IoContrast], left: float, reach: float, foot: float, *, quiet: bool) -> None:
    drawn = []
    for row in rows:
        look = _contrast(row.cache) | ({"color": GREY} if quiet else {})
        look |= {"markerfacecolor": look["color"]} if row.shown else {}
        text = minus(f"{amount(RATE, '', row.effect or 0.0)} [{100 * (row.low or 0.0):.1f}, {100 * (row.high or 0.0):.1f}]")
        mark = Mark((_ratio(row.effect), _ratio(row.low), _ratio(row.high)), look, (text,), bold=row.shown)
        drawn.append(MarkRow(row.configuration or "all", [mark], tall=ROW))

    def scale(axes: Axes) -> None:
        axes.set_xlim(-reach, reach)
        written = {_ratio(tick / 100): f"{tick:+d}" if tick else "0" for tick in ticks_of(reach)}
        ticks(axes, "x", written, written)

    label, heads = "samples/s against stock, %", [("change [95 %], %", 0.0)]
    axes = forest(sheet, top, drawn, left=left, right=1.75, label=label if foot == FOOT else "", heads=heads, scale=scale)
    axes.tick_params(labelbottom=foot == FOOT)


def _ratio(change: float | None) -> float:
    """Return the logarithm of a ratio, which must not be that of 0 where an interval ends next to it."""
    return math.log1p(max(change or 0.0, -0.999))


def ticks_of(reach: float) -> list[int]:
    """Choose percents for an axis of log ratios that ends at ± `reach`: round ones, far enough from each other."""
    kept = [0]
    for tick in sorted(
        (number for number in PERCENTS if abs(_ratio(number / 100)) <= reach), key=lambda number: -abs(_ratio(number / 100))
    ):
        if all(abs(_ratio(tick / 100) - _ratio(other / 100)) > reach / 4 for other in kept):
            kept.append(tick)
    return sorted(kept)
