"""The measurement itself: the whole run over time, and steps inside its cells."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, pairwise
from statistics import fmean
from typing import NamedTuple

import numpy as np

from analysis.checks import OTHERS, STEAL, STOLEN, not_put_back, share_of_others
from analysis.plain import moment
from analysis.terms import Cell, Run, Steps
from analysis.wording import digits, duration, number, unsigned
from control.names import first_few

from .effects import gain_of
from .labels import arm_labels, direction, fitted_arms, joined, measure_of, minus, room_for, time_unit, width_in
from .marks import Axes, Style, above, crossed, dots, log_or_linear, names_beside, ticks, trailing_mean
from .page import Entry, Page, Section, Spec, body_width, dot, fill, line
from .scene import TIMELESS, Panel, Scene, comparison_of, measured, panels_of, some
from .style import AGAIN, BAND, FAINT, INK, QUIET, SMALL, WRONG, Look, looks_of, picture, set_tooltip

BAR, WARM_UP = "#8fb8d8", "#f3e3c3"

FAR, SWEEPS = 5.0, 10  # robust standard deviations
FEWEST = 3  # tweak sets and blocks: of two that differ nobody knows which one is odd
MOST_LOOKS = 7  # tweak sets that one tells apart by colour and mark among many
MOST_NAMED = 4
PLACE = "place in the run (cells, in the order they ran)"
HOLLOW: Style = {"markersize": 10, "markerfacecolor": "none", "markeredgewidth": 1.3, "linestyle": "none"}
RING: Style = HOLLOW | {"marker": "o", "markeredgecolor": WRONG}
DOUBT: Style = HOLLOW | {"marker": "s", "markeredgecolor": "#E69F00"}
DISTURBED = 0.13  # of its colour
MARKED = {
    "failed": dot("failed", WRONG, "x"),
    "skipped": dot("skipped", QUIET, "x"),
    "far": dot("far from its tweak set and block", **RING),
    "doubt": dot("not put back, or changed by others", **DOUBT),
    "disturbed": fill("disturbed: see the foot", WRONG, WRONG, alpha=DISTURBED),
}


class Outlier(NamedTuple):
    """A cell, and by what fraction its value is above (+) or below (-) what its tweak set and block let expect."""

    cell: Cell
    off: float


def outlying_cells(cells: Sequence[Cell], metric: str) -> list[Outlier]:
    """Return the outliers among the measured cells of one workload, the farthest first.

    Median polish (Tukey 1977) of log values into tweak set and block; far is beyond 5 robust standard deviations of what is left, and by
    more than 1 %. The polish makes many of the rest 0: the median absolute deviation is of as many as there are degrees of freedom, the
    largest, and widened for them. Of tables of pure normal noise, 3 × 3 to 24 × 10, it rings a cell in 1 of 80 at most (simulated).
    """
    judged = [cell for cell in cells if cell.outcome == "measured" and cell.metrics.get(metric, 0.0) > 0]
    arms, blocks = (sorted({getattr(cell, name) for cell in judged}) for name in ("tweakset", "block"))
    freedom = len(judged) - len(arms) - len(blocks) + 1
    if min(len(arms), len(blocks), freedom) < FEWEST:
        return []
    places = tuple(np.transpose([(arms.index(cell.tweakset), blocks.index(cell.block)) for cell in judged]))
    table = np.full((len(arms), len(blocks)), np.nan)
    table[places] = [math.log(cell.metrics[metric]) for cell in judged]
    for _ in range(SWEEPS):
        table -= np.nanmedian(table, axis=1, keepdims=True)
        table -= np.nanmedian(table, axis=0, keepdims=True)
    left = table[places]
    limit = max(FAR * 1.4826 * np.median(np.sort(abs(left))[-freedom:]) * math.sqrt(len(judged) / freedom), 0.01)
    outliers = [Outlier(cell, math.expm1(off)) for cell, off in zip(judged, left.tolist(), strict=True) if abs(off) > limit]
    return sorted(outliers, key=lambda outlier: -abs(math.log1p(outlier.off)))


@picture(27, "The whole run, cell by cell", NOT_OF=TIMELESS)
def run_order(scene: Scene) -> Spec:
    """Whether the machine stayed the same over the run: every cell at the time it ran, and what else the machine did meanwhile."""
    orderless = "one cell a tweak set and no record of the order they ran in: drift cannot be told from a tweak"
    panels = some((panel for panel in panels_of(scene) if panel.run.replicated), orderless)
    names = list(dict.fromkeys(name for panel in panels for name in panel.arms))
    looks, legend = _looks(scene, names)
    labels = arm_labels(scene.runs, names)
    sections, notes, drawn = [], [], set()
    for _, group in groupby(panels, key=lambda panel: panel.run.origin):
        own = list(group)
        run = own[0].run
        time, machine = timeline_of(run), _machine(run)
        for panel in own:
            name, last = panel.metric.name, panel is own[-1] and not machine
            outliers = outlying_cells(panel.cells, name)
            draw = partial(_order, panel=panel, looks=looks, outliers=outliers, time=time, last=last)
            values = [cell.metrics[name] for cell in panel.cells if name in cell.metrics]
            beside = f"{measure_of(panel.metric, values).label} ({direction(panel.metric)})"
            sections.append(Section(panel.title, 1.53 + 0.24 * last, draw, beside, run=run))
            named = [f"{labels[cell.tweakset]} in block {cell.block} ({minus(number(off))} %)" for cell, off in outliers]
            notes += [f"{panel.title}: {first_few(named, MOST_NAMED)}"] if named else []
            drawn |= {cell.outcome for cell in panel.cells} | {"doubt" for cell in panel.cells if in_doubt(cell)} | {"far" for _ in named}
        drawn |= {"disturbed"} if time.disturbed else set()
        if machine:
            beside = "pressure: tasks had to wait, the workload's own too" if any("waiting" in label for label in machine) else ""
            tall, draw = MEANWHILE * len(machine) + 0.44, partial(_meanwhile, rows=machine, time=time)
            sections.append(Section("The machine meanwhile", tall, draw, beside, run=run))
    legend += [line("median of the block", AGAIN, 3, alpha=0.6), *(entry for what, entry in MARKED.items() if what in drawn)]
    lead = (
        "Each mark is a cell when it ran, its line how long. Marks that rise or fall together from left to right are the machine's drift, "
        "not a tweak's effect."
    )
    far = "Far from the others of their tweak set and block (5 robust SD or more), and not left out of any average: "
    unseen = joined(cell.telemetry_missing["sampler"] for panel in panels for cell in panel.cells if "sampler" in cell.telemetry_missing)
    why = f"What else the machine did was not sampled: {unseen}." if unseen else ""
    return Spec(lead, sections, legend, [f"{far}{'; '.join(notes)}." if notes else "", why])


MEANWHILE, SEEN = 0.5, 1.0  # inches of a row; percent that a quantity must come to
DAY_S, LATEST_S = 86400, 4e9  # of a clock that is right: before 2096
MOST_PAUSES = 6  # whose names have room
FEW_TICKS, STEPS_S = 7, (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


class Timeline(NamedTuple):
    """When cells ran: id → where each begins and ends along the axis.

    `ticks` of the axis and `pauses` have what is written there; `disturbed` is when others took more than is declared to disturb.
    """

    spans: Mapping[str, tuple[float, float]]
    ticks: Mapping[float, str]
    pauses: Sequence[tuple[float, float, str]]
    label: str
    disturbed: Sequence[tuple[float, float]]

    def middle(self, cell: Cell) -> float:
        """Where the mark of a cell stands."""
        return fmean(self.spans[cell.id])

    def within(self, cells: Iterable[Cell]) -> tuple[float, float]:
        """From the first of some cells to the end of the last."""
        spans = [self.spans[cell.id] for cell in cells]
        return min(begin for begin, _ in spans), max(end for _, end in spans)

    def ground(self, axes: Axes, *, last: bool, named: bool = True) -> None:
        """Scale the axis of time, write its ticks where it is the `last` of the run; show disturbances, and pauses, `named` or not."""
        begin, end = min(begin for begin, _ in self.spans.values()), max(end for _, end in self.spans.values())
        room = 0.006 * (end - begin)
        axes.set_xlim(begin - room, end + room)
        if self.ticks:
            ticks(axes, "x", self.ticks, self.ticks)
        axes.tick_params(axis="x", labelbottom=last)
        axes.set_xlabel(self.label if last else "")
        for left, right in self.disturbed:
            axes.axvspan(left, right, zorder=0.2, linewidth=0.6, color=WRONG, alpha=DISTURBED)
        for left, right, text in self.pauses:
            axes.axvspan(left, right, facecolor="white", edgecolor=FAINT, linewidth=0.6, zorder=0.3)
            style: Style = {"ha": "center", "va": "center", "rotation": 90, "fontsize": SMALL, "color": QUIET}
            name = text if named and len(self.pauses) <= MOST_PAUSES else ""
            axes.text((left + right) / 2, 0.5, name, transform=axes.get_xaxis_transform(), **style)


def timeline_of(run: Run) -> Timeline:
    """Find when each cell of a run ran; where that was not kept, its place in the order.

    Cells that took turns each have their share of their block's time, one after the other. Long pauses are cut short.
    """
    cells = sorted(run.cells, key=lambda cell: cell.order)
    times = {cell.id: moment(cell.started_utc) for cell in cells if cell.started_utc}
    starts = {name: time.timestamp() for name, time in times.items() if time} if all(times.values()) else {}
    if any(start + (cell.duration_s or 0.0) > LATEST_S for cell in cells if (start := starts.get(cell.id)) is not None):
        starts = {}
    if any(cell.outcome == "measured" and not (cell.id in starts and cell.duration_s) for cell in cells):
        spans = {cell.id: (cell.order - 0.5, cell.order + 0.5) for cell in cells}
        return Timeline(spans, {}, (), PLACE, _joined([spans[cell.id] for cell in cells if disturbed(run, cell)], 0.1))
    end = min(starts.values())
    order: list[tuple[float, int, Cell]] = []  # one that was run again ran later than its place says
    for cell in cells:
        order.append((starts.get(cell.id, order[-1][0] if order else end), cell.order, cell))
    ends: dict[str | None, float] = {}  # of each node, so far
    timed: dict[str, tuple[float, float]] = {}
    for start, _, cell in sorted(order, key=lambda entry: entry[:2]):
        begin = max(start, ends.get(cell.node, start)) if cell.id in starts else end
        end = ends[cell.node] = begin + (cell.duration_s or 0.0)
        timed[cell.id] = begin, end
    busy_s = math.fsum(end - begin for begin, end in timed.values())
    stretches = _joined(timed.values(), max(60.0, 0.1 * busy_s))  # the run without its pauses
    first = stretches[0][0]
    breaks = [(before, after) for (_, before), (after, _) in pairwise(stretches)]

    def place(at: float) -> float:
        return at - first - math.fsum(after - before - 0.025 * busy_s for before, after in breaks if at >= after)

    last = place(stretches[-1][1])
    step = next((step for step in STEPS_S if last / step <= FEW_TICKS), math.ceil(last / FEW_TICKS))
    form = f"{'%-d %b ' if stretches[-1][1] - first > DAY_S else ''}{'%H:%M' if step >= 60 else '%H:%M:%S'}"
    places: dict[float, str] = {}
    for begin, end in stretches:
        for at in range(math.ceil(begin / step) * step, math.floor(end) + 1, step) or [begin]:
            if place(at) <= 0.96 * last and (not places or place(at) - max(places) > 0.7 * step):  # else it is cut, or over another
                places[place(at)] = f"{datetime.fromtimestamp(at, UTC):{form}}"
    pauses = [(place(before), place(after), f"pause {duration(after - before)}") for before, after in breaks]
    days = joined(f"{datetime.fromtimestamp(at, UTC):%-d %B %Y}" for at in (first, stretches[-1][1]))
    shown = {name: (place(begin), place(end)) for name, (begin, end) in timed.items()}
    others = _joined([shown[cell.id] for cell in cells if disturbed(run, cell)], 0.002 * busy_s)
    return Timeline(shown, places, pauses, f"time, UTC ({days})", others)


def _joined(spans: Iterable[tuple[float, float]], gap: float) -> list[tuple[float, float]]:
    """Make one of spans that are no more than `gap` apart."""
    result: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if result and begin - result[-1][1] <= gap:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((begin, end))
    return result


def disturbed(run: Run, cell: Cell) -> bool:
    """Whether others took more of the CPUs while a cell ran than is declared to disturb it, or a GPU held its clock down."""
    return any(value > limit for _, value, limit in _seen(run, cell) if limit is not None)


def in_doubt(cell: Cell) -> bool:
    """Whether what was set was not put back after a cell, somebody else changed it, or its metrics contradict its steps."""
    return bool(cell.contradictions or not_put_back(cell) or (cell.applied and cell.applied.left_alone))


def _seen(run: Run, cell: Cell) -> Iterator[tuple[str, float, float | None]]:
    """What else the machine did while a cell ran, in percent, and from where on it disturbs the cell."""
    if (share := share_of_others(run, cell)) is not None:
        yield "other programs, % of all CPUs", 100 * share, 100 * OTHERS
    throttled = [value for name, value in cell.telemetry.items() if re.fullmatch(r"gpu\d+_throttled_percent", name)]
    if throttled:
        yield "GPU that held its clock down, % of the time", max(throttled), SEEN
    for name, label, limit in HOST:
        if name in cell.telemetry:
            yield label, cell.telemetry[name], limit


HOST = (
    (STOLEN, "taken by the hypervisor, % of all CPUs", 100 * STEAL),
    ("psi_cpu_some_percent_mean", "waiting for a CPU, % of the time (pressure)", None),
    ("psi_io_some_percent_mean", "waiting for the disk, % of the time (pressure)", None),
    ("psi_memory_some_percent_mean", "waiting for memory, % of the time (pressure)", None),
)


def _machine(run: Run) -> dict[str, list[tuple[Cell, float, float | None]]]:
    """Return what else the machine did, row by row; what never came to 1 % is left out, but for other programs."""
    rows: dict[str, list[tuple[Cell, float, float | None]]] = {}
    for cell in sorted(run.cells, key=lambda cell: cell.order):
        for label, value, limit in _seen(run, cell):
            rows.setdefault(label, []).append((cell, value, limit))
    return {label: row for label, row in rows.items() if "programs" in label or max(value for _, value, _ in row) >= SEEN}


def _meanwhile(sheet: Page, top: float, rows: Mapping[str, Sequence[tuple[Cell, float, float | None]]], time: Timeline) -> None:
    for at, (label, row) in enumerate(rows.items()):
        limit = row[0][2]
        highest = max(1.3 * (limit or SEEN), *(value for _, value, _ in row))
        axes = sheet.axes(0.5, top + MEANWHILE * at + 0.18, body_width() - 0.52, MEANWHILE - 0.22, ylim=(0, highest), most={"y": 2})
        time.ground(axes, last=at == len(rows) - 1, named=False)
        sheet.text(0.5, top + MEANWHILE * at + 0.02, label, fontsize=SMALL, color=QUIET)
        for color, above_limit in ((BAR, False), (WRONG, True)):
            some = [(*time.spans[cell.id], value) for cell, value, _ in row if (limit is not None and value > limit) == above_limit]
            outline = [point for begin, end, value in some for point in ((begin, 0), (begin, value), (end, value), (end, 0))]
            if outline:
                axes.fill(*zip(*outline, strict=True), color=color, linewidth=0.4)
        if limit is not None:
            axes.axhline(limit, color=WRONG, linewidth=0.8, linestyle=(0, (3, 2)))


def _looks(scene: Scene, names: Sequence[str]) -> tuple[Mapping[str, Look], list[Entry]]:
    """Give each tweak set its look, and the legend of them; of many, those that change something look alike: drift is theirs in common."""
    looks = looks_of(scene)
    bare = [name for name in names if looks[name].color in {INK, AGAIN}]
    if len(names) <= MOST_LOOKS:
        labels = fitted_arms(scene.runs, names, 2.6, SMALL, lines=1)
        return looks, [dot(labels[name].replace("\n", ""), looks[name].color, looks[name].marker) for name in names]
    other = Look("#5b9bd0", "o", "-")
    legend = [dot(name, looks[name].color, looks[name].marker) for name in bare]
    kind = "monitors" if all(run.is_monitored for run in scene.runs) else "tweak sets"
    legend.append(dot(f"one of {len(names) - len(bare)} {kind}", other.color, size=4))
    return {name: looks[name] if name in bare else other for name in names}, legend


def _order(
    sheet: Page, top: float, panel: Panel, looks: Mapping[str, Look], outliers: Sequence[Outlier], time: Timeline, *, last: bool
) -> None:
    name = panel.metric.name
    scale = measure_of(panel.metric, [cell.metrics[name] for cell in panel.cells if name in cell.metrics]).scale
    axes = sheet.axes(0.5, top + 0.14, body_width() - 0.52, 1.15, grid="y")
    axes.margins(y=0.12)
    _bands(axes, panel, time)
    time.ground(axes, last=last)
    for block in sorted({cell.block for cell in panel.cells}):
        cells = [cell for cell in panel.cells if cell.block == block]
        values = [cell.metrics[name] * scale for cell in cells if name in cell.metrics]
        if len(values) > 1:
            style: Style = {"color": AGAIN, "linewidth": 3, "alpha": 0.6, "solid_capstyle": "butt", "zorder": 1}
            axes.plot(time.within(cells), [statistics.median(values)] * 2, **style)
    for arm in reversed(panel.arms):  # the baseline above all others
        if not (cells := [cell for cell in measured(panel, arm) if name in cell.metrics]):
            continue
        heights = [cell.metrics[name] * scale for cell in cells]
        look = looks[arm]
        axes.hlines(heights, *zip(*(time.spans[cell.id] for cell in cells), strict=True), color=look.color, linewidth=1.5, zorder=1.5)
        style = {"color": look.color, "marker": look.marker, "markeredgecolor": "white", "markeredgewidth": 0.4, "linestyle": "none"}
        (marks,) = axes.plot([time.middle(cell) for cell in cells], heights, markersize=5, label=arm, **style)
        set_tooltip(marks, *(_cell(panel, cell, height) for cell, height in zip(cells, heights, strict=True)))
    for outcome, color in (("skipped", QUIET), ("failed", WRONG)):
        crossed(axes, [time.middle(cell) for cell in panel.cells if cell.outcome == outcome], color)
    for rings, style in (([cell for cell, _ in outliers], RING), ([cell for cell in panel.cells if in_doubt(cell)], DOUBT)):
        some = [cell for cell in rings if name in cell.metrics]
        axes.plot([time.middle(cell) for cell in some], [cell.metrics[name] * scale for cell in some], **style)


def _cell(panel: Panel, cell: Cell, value: float) -> str:
    """Write all that is known of a cell's value."""
    others = share_of_others(panel.run, cell)
    load = "" if others is None else f"; others used {unsigned(others)} of the CPUs"
    unit = measure_of(panel.metric, [cell.metrics[panel.metric.name]]).unit
    return f"{cell.tweakset} · {cell.workload}, block {cell.block}, cell {cell.order}: {digits(value)} {unit}{load}"


def _bands(axes: Axes, panel: Panel, time: Timeline) -> None:
    """Shade every other block, so that all sections show the same time: of the whole run, or of a workload that had its own blocks."""
    blocks = _blocks(panel.run.cells, time)
    if any(end > begin for (_, end), (begin, _) in pairwise(blocks.values())):
        blocks = _blocks(panel.cells, time)
    _, whole = time.within(panel.run.cells)
    free = -math.inf
    for turn, (block, (begin, end)) in enumerate(blocks.items()):
        if turn % 2 == 0:
            axes.axvspan(begin, end, color=BAND, zorder=0, linewidth=0)
        text = str(block) if turn else f"block {block}"
        middle, half = (begin + end) / 2, (0.5 * width_in(text, SMALL) + 0.04) * whole / (body_width() - 0.52)
        if middle - half > free:
            above(axes, middle, text)
            free = middle + half


def _blocks(cells: Iterable[Cell], time: Timeline) -> dict[int, tuple[float, float]]:
    blocks: dict[int, list[Cell]] = {}
    for cell in cells:
        blocks.setdefault(cell.block, []).append(cell)
    return dict(sorted(((block, time.within(own)) for block, own in blocks.items()), key=lambda entry: entry[1]))


STRIP, TALL_STRIP, STRIP_GAP, TICKS = 0.33, 0.8, 0.05, 0.4
FEW_STRIPS, MOST_STRIPS = 8, 6  # strips that may be taller; and of one workload
LONG = 200  # steps: above it single steps are dots in a cloud and a trailing mean shows the way


@picture(30, "Step times inside the cells", NOT_OF=TIMELESS)
def steps(scene: Scene) -> Spec:
    """How each step of each cell went: warm-up, stalls, and drift inside a process."""
    timed = _by_arm(scene)
    shown = [(panel, {arm: arms[arm] for arm in _largest(scene, panel, arms)}) for panel, arms in timed]
    every = [cell for _, arms in shown for cells in arms.values() for cell in cells]
    legend = [
        dot("one step of one cell", QUIET, size=3),
        line("median of the blocks", INK, 1.3) if any(len(cell.wall_s) <= LONG for cell in every) else None,
        line("trailing mean of a thirtieth of the cell", INK, 1.3) if any(len(cell.wall_s) > LONG for cell in every) else None,
        fill("warm-up, not measured", WARM_UP) if any(cell.warmup for cell in every) else None,
    ]
    lead = "A strip a tweak set, a dot a step; higher is slower. Strips of a workload share a scale, logarithmic if it spans much."
    tall = STRIP if sum(len(arms) for _, arms in shown) > FEW_STRIPS else TALL_STRIP
    left = room_for(arm_labels(scene.runs, [arm for _, arms in shown for arm in arms]).values(), 1.75) + TICKS
    looks = looks_of(scene)
    sections, hidden = [], 0
    for (panel, all_arms), (_, arms) in zip(timed, shown, strict=True):
        cells = [cell for arm in all_arms.values() for cell in arm]
        unit = time_unit([max(max(cell.wall_s) for cell in cells)])[1]
        beside = f"step time, {unit}; {sum(len(cell.wall_s) for cell in cells)} steps of {len(cells)} cells"
        draw = partial(_strips, panel=panel, arms=arms, left=left, tall=tall, looks=looks)
        sections.append(Section(panel.title, (tall + STRIP_GAP) * len(arms) + 0.45, draw, beside, run=panel.run))
        hidden += len(all_arms) - len(arms)
    note = f"Of each workload the baseline and the tweak sets that differ most from it, {MOST_STRIPS} at most; {hidden} more ran."
    return Spec(lead, sections, legend, [note] if hidden else [])


def _by_arm(scene: Scene) -> list[tuple[Panel, dict[str, list[Steps]]]]:
    """Return the steps of each arm of each workload, where it has any. Raises: NothingToDraw, where no step has a time."""
    every = ((panel, {arm: steps for arm in panel.arms if (steps := _timed(panel, arm))}) for panel in panels_of(scene))
    return some(((panel, arms) for panel, arms in every if arms), "the file keeps no times of single steps")


def _timed(panel: Panel, arm: str) -> list[Steps]:
    return [cell.steps for cell in measured(panel, arm) if cell.steps is not None]


def _largest(scene: Scene, panel: Panel, arms: Mapping[str, object]) -> list[str]:
    """Choose the tweak sets that are worth a strip: the baseline, then those that differ most; in the order of the run."""

    def size(arm: str) -> float:
        comparison = comparison_of(scene, panel, arm)
        return math.inf if arm == panel.run.baseline else abs((gain_of(comparison) if comparison else None) or 0.0)

    largest = sorted(arms, key=lambda arm: -size(arm))[:MOST_STRIPS]
    return [arm for arm in arms if arm in largest]


def _strips(
    sheet: Page, top: float, panel: Panel, arms: Mapping[str, list[Steps]], left: float, tall: float, looks: Mapping[str, Look]
) -> None:
    every = [cell for cells in arms.values() for cell in cells]
    low, high = min(min(cell.wall_s) for cell in every), max(max(cell.wall_s) for cell in every)
    scale, _ = time_unit([high])
    names_beside(sheet, top, left - TICKS, arm_labels([panel.run], arms).values(), tall + STRIP_GAP, lines=2)
    for row, (arm, cells) in enumerate(arms.items()):
        axes = sheet.axes(left, top + (tall + STRIP_GAP) * row, body_width() - left - 0.02, tall)
        axes.set_xlim(0, max(len(cell.wall_s) for cell in every) + 1)
        log_or_linear(axes, "y", low * scale, high * scale, most=2 if tall == STRIP else 5)
        axes.axvspan(0, max(cell.warmup for cell in cells) + 0.5, color=WARM_UP, linewidth=0, zorder=0)
        _steps(axes, cells, scale, looks[arm])
        if row < len(arms) - 1:
            axes.set_xticks([])
        else:
            axes.set_xlabel("step of the cell, from its first")


def _steps(axes: Axes, cells: Sequence[Steps], scale: float, look: Look) -> None:
    long = max(len(cell.wall_s) for cell in cells) > LONG
    for cell in cells:
        wall = np.asarray(cell.wall_s) * scale
        at = np.arange(1, len(wall) + 1)
        dots(axes, at, wall, look.color, markersize=1.2 if long else 3, alpha=0.35 if long else 0.5)
        if long:
            axes.plot(at, trailing_mean(wall, len(wall) // 30), color=INK, linewidth=0.9, rasterized=True)
    if not long:
        shortest = min(len(cell.wall_s) for cell in cells)
        middle = np.median([cell.wall_s[:shortest] for cell in cells], axis=0) * scale
        axes.plot(np.arange(1, shortest + 1), middle, color=INK, linewidth=1.0)
