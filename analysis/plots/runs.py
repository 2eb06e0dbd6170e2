"""The measurement itself: cells in the order they ran, steps inside them, their distribution, and the energy they took."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence, Sized
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from analysis.checks import OTHERS, share_of_others
from analysis.summary import energy_j_per_sample, power_w, time_weighted, why_missing
from analysis.terms import Cell, Run, Steps
from analysis.wording import digits, number, unsigned
from control.names import first_few

from .effects import gain_of
from .labels import arm_labels, direction, fitted_arms, joined, measure_of, minus, room_for, time_unit
from .marks import FOOT, ROW, Style, above, bars, crossed, dots, log_or_linear, names_beside, row_axes, trailing_mean
from .page import INSIDE, Entry, Page, Section, Spec, dot, fill, line
from .scene import NothingToDraw, Panel, Scene, comparison_of, measured, panels_of
from .style import AGAIN, BAND, BAR, FAINT, INK, QUIET, SMALL, WARM_UP, WRONG, Look, looks_of, picture
from .vector import set_tooltip

if TYPE_CHECKING:
    from matplotlib.axes import Axes


T = TypeVar("T", bound="Sized")
TIMELESS = frozenset({"iteration", "job", "point"})  # of such reports steps are stretches of time and say nothing of speed
FAR, SWEEPS = 5.0, 10  # robust standard deviations
FEWEST = 3  # tweak sets and blocks: of two that differ nobody knows which one is odd
MOST_LOOKS = 7  # tweak sets that one tells apart by colour and mark among many
MOST_NAMED = 4
PLACE = "place in the run (cells, in the order they ran)"
RING: Style = {
    "marker": "o",
    "markersize": 10,
    "markerfacecolor": "none",
    "markeredgecolor": WRONG,
    "markeredgewidth": 1.3,
    "linestyle": "none",
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
    left = {cell.id: math.log(cell.metrics[metric]) for cell in cells if cell.outcome == "measured" and cell.metrics.get(metric, 0.0) > 0}
    judged = [cell for cell in cells if cell.id in left]
    sets, blocks = len({cell.tweakset for cell in judged}), len({cell.block for cell in judged})
    freedom = len(judged) - sets - blocks + 1
    if min(sets, blocks, freedom) < FEWEST:
        return []
    groups: dict[str | int, list[str]] = {}  # a name is a tweak set, a number a block: sets first, then blocks
    for cell in judged:
        groups.setdefault(cell.tweakset, []).append(cell.id)
    for cell in judged:
        groups.setdefault(cell.block, []).append(cell.id)
    for _ in range(SWEEPS):
        for ids in groups.values():
            middle = statistics.median(left[text] for text in ids)
            left |= {text: left[text] - middle for text in ids}
    sizes = sorted(map(abs, left.values()))[-freedom:]
    limit = max(FAR * 1.4826 * statistics.median(sizes) * math.sqrt(len(judged) / freedom), 0.01)
    outliers = sorted((cell for cell in judged if abs(left[cell.id]) > limit), key=lambda cell: -abs(left[cell.id]))
    return [Outlier(cell, math.expm1(left[cell.id])) for cell in outliers]


@picture(
    27,
    "Every cell in the order it ran",
    "Whether the machine stayed the same over the run: raw values by run order, blocks as bands.",
    NOT_OF=TIMELESS,
)
def run_order(scene: Scene) -> Spec:
    """A section a workload, a mark a cell; the grey step is the median of each block, whatever the tweak sets."""
    panels = [panel for panel in panels_of(scene) if panel.run.replicated]
    if not panels:
        raise NothingToDraw("one cell a tweak set and no record of the order they ran in: drift cannot be told from a tweak")
    names = list(dict.fromkeys(name for panel in panels for name in panel.arms))
    looks, legend = _looks(scene, names)
    outliers = [outlying_cells(panel.cells, panel.metric.name) for panel in panels]
    lost = any(cell.outcome != "measured" for panel in panels for cell in panel.cells)
    legend += [
        line("median of the block", AGAIN, 3, alpha=0.6),
        *([dot("not measured", WRONG, "x")] if lost else []),
        *([dot("far from its tweak set and block", **RING)] if any(outliers) else []),
    ]
    lead = "Each mark is a cell. Marks that rise or fall together from left to right are the machine's drift, not a tweak's effect."
    labels = arm_labels(scene.runs, names)
    sections, notes = [], []
    for panel, rings in zip(panels, outliers, strict=True):
        values = [cell.metrics[panel.metric.name] for cell in panel.cells if panel.metric.name in cell.metrics]
        beside = f"{measure_of(panel.metric.name, values).label} ({direction(panel.metric)})"
        sections.append(Section(panel.title, 1.77, partial(_order, panel=panel, looks=looks, outliers=rings), beside, run=panel.run))
        notes.append(_outlier_note(panel, rings, labels))
    runs = [run for run in scene.runs if any(panel.run is run for panel in panels)]
    return Spec(lead, sections + [section for run in runs for section in _other_programs(run)], legend, notes)


def _other_programs(run: Run) -> list[Section]:
    """Show what other programs used while the cells ran, where that is known."""
    shares = [(cell, share) for cell in run.cells if (share := share_of_others(run, cell)) is not None]
    stamps = sorted(cell.started_utc for cell in run.cells if cell.started_utc)
    span = f", {stamps[0][11:16]} to {stamps[-1][11:16]} UTC" if stamps else ""

    def draw(sheet: Page, top: float) -> None:
        axes = sheet.axes(0.5, top + 0.05, INSIDE - 0.52, 0.55, xlabel=PLACE, grid="y", most={"y": 3})
        axes.set_xlim(min(cell.order for cell in run.cells) - 0.7, max(cell.order for cell in run.cells) + 0.7)
        axes.set_ylim(0, 100 * max(1.5 * OTHERS, *(share for _, share in shares)))
        axes.axhline(100 * OTHERS, color=WRONG, linewidth=0.8, linestyle=(0, (3, 2)))
        for color, disturbs in ((QUIET, False), (WRONG, True)):
            some = [(cell, share) for cell, share in shares if (share > OTHERS) == disturbs]
            (marks,) = axes.plot([cell.order for cell, _ in some], [100 * share for _, share in some], "o", color=color, markersize=2.5)
            set_tooltip(marks, *(f"cell {cell.order}, block {cell.block}: others used {unsigned(share)}" for cell, share in some))

    beside = f"% of all CPUs while each cell ran{span}; above the line they disturb"
    return [Section("Other programs", 1.1, draw, beside, run=run)] if shares else []


def _looks(scene: Scene, names: Sequence[str]) -> tuple[Mapping[str, Look], list[Entry]]:
    """Give each tweak set its look, and the legend of them; of many, those that change something look alike: drift is theirs in common."""
    looks = looks_of(scene)
    bare = [name for name in names if looks[name].color in {INK, AGAIN}]
    if len(names) <= MOST_LOOKS:
        labels = fitted_arms(scene.runs, names, 2.6, SMALL, lines=1)
        return looks, [dot(labels[name].replace("\n", ""), looks[name].color, looks[name].marker) for name in names]
    other = Look("#5b9bd0", "o", "-")
    legend = [dot(name, looks[name].color, looks[name].marker) for name in bare]
    legend.append(dot(f"one of {len(names) - len(bare)} tweak sets", other.color, size=4))
    return {name: looks[name] if name in bare else other for name in names}, legend


def _outlier_note(panel: Panel, outliers: Sequence[Outlier], labels: Mapping[str, str]) -> str:
    """Name the outliers, the farthest first."""
    if not outliers:
        return ""
    named = [f"{labels[cell.tweakset]} in block {cell.block} ({minus(number(off))} %)" for cell, off in outliers]
    it = "It is" if len(outliers) == 1 else "They are"
    where = f"{panel.title}: far from the others of its tweak set and block (5 robust SD or more)"
    return f"{where}: {first_few(named, MOST_NAMED)}. {it} not left out of any average."


def _order(sheet: Page, top: float, panel: Panel, looks: Mapping[str, Look], outliers: Sequence[Outlier]) -> None:
    name = panel.metric.name
    scale = measure_of(name, [cell.metrics[name] for cell in panel.cells if name in cell.metrics]).scale
    axes = sheet.axes(0.5, top + 0.14, INSIDE - 0.52, 1.15, xlabel=PLACE, grid="y")
    axes.margins(y=0.12)
    _bands(axes, panel)
    for block in sorted({cell.block for cell in panel.cells}):
        cells = [cell for cell in panel.cells if cell.block == block]
        values = [cell.metrics[name] * scale for cell in cells if name in cell.metrics]
        if len(values) > 1:
            ends = [min(cell.order for cell in cells) - 0.4, max(cell.order for cell in cells) + 0.4]
            style: Style = {"color": AGAIN, "linewidth": 3, "alpha": 0.6, "solid_capstyle": "butt", "zorder": 1}
            axes.plot(ends, [statistics.median(values)] * 2, **style)
    for arm in reversed(panel.arms):  # the baseline above all others
        cells = [cell for cell in measured(panel, arm) if name in cell.metrics]
        style = {"color": looks[arm].color, "marker": looks[arm].marker, "markeredgecolor": "white", "markeredgewidth": 0.4}
        heights = [cell.metrics[name] * scale for cell in cells]
        (marks,) = axes.plot([cell.order for cell in cells], heights, linestyle="none", markersize=5, label=arm, **style)
        set_tooltip(marks, *(_cell(panel, cell, height) for cell, height in zip(cells, heights, strict=True)))
    crossed(axes, [cell.order for cell in panel.cells if cell.outcome != "measured"])
    for cell, _ in outliers:
        axes.plot([cell.order], [cell.metrics[name] * scale], **RING)


def _cell(panel: Panel, cell: Cell, value: float) -> str:
    """Write all that is known of a cell's value."""
    others = share_of_others(panel.run, cell)
    load = "" if others is None else f"; others used {unsigned(others)} of the CPUs"
    unit = measure_of(panel.metric.name, [cell.metrics[panel.metric.name]]).unit
    return f"{cell.tweakset} · {cell.workload}, block {cell.block}, cell {cell.order}: {digits(value)} {unit}{load}"


def _blocks(cells: Sequence[Cell]) -> dict[int, list[int]]:
    blocks: dict[int, list[int]] = {}
    for cell in cells:
        blocks.setdefault(cell.block, []).append(cell.order)
    return dict(sorted(blocks.items(), key=lambda entry: min(entry[1])))


def _bands(axes: Axes, panel: Panel) -> None:
    """Shade every other block, so that all sections show the same time: of the whole run, or of a workload that had its own blocks."""
    orders = [cell.order for cell in panel.run.cells]
    axes.set_xlim(min(orders) - 0.7, max(orders) + 0.7)
    blocks = _blocks(panel.run.cells)
    if any(max(group) > min(other) for group, other in pairwise(blocks.values())):
        blocks = _blocks(panel.cells)
    for turn, (block, orders) in enumerate(blocks.items()):
        if turn % 2 == 0:
            axes.axvspan(min(orders) - 0.5, max(orders) + 0.5, color=BAND, zorder=0, linewidth=0)
        if len(blocks) <= 24 or turn % 5 == 0:
            above(axes, (min(orders) + max(orders)) / 2, str(block) if turn else f"block {block}")


STRIP, TALL_STRIP, STRIP_GAP, TICKS = 0.33, 0.8, 0.05, 0.4
FEW_STRIPS, MOST_STRIPS = 8, 6  # strips that may be taller; and of one workload
LONG = 200  # steps: above it single steps are dots in a cloud and a trailing mean shows the way


@picture(
    30, "Step times inside the cells", "How each step of each cell went: warm-up, stalls, and drift inside a process.", NOT_OF=TIMELESS
)
def steps(scene: Scene) -> Spec:
    """A strip a tweak set: its cells' steps over one another; a line follows the middle, or the trailing mean of a long cell."""
    timed = _by_arm(scene, _timed)
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


def _by_arm(scene: Scene, of_arm: Callable[[Panel, str], T]) -> list[tuple[Panel, dict[str, T]]]:
    """Return what each arm has of each workload, where it has anything. Raises: NothingToDraw, where no step has a time."""
    every = [(panel, {arm: values for arm in panel.arms if len(values := of_arm(panel, arm))}) for panel in panels_of(scene)]
    result = [(panel, arms) for panel, arms in every if arms]
    if not result:
        raise NothingToDraw("the file keeps no times of single steps")
    return result


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
        axes = sheet.axes(left, top + (tall + STRIP_GAP) * row, INSIDE - left - 0.02, tall)
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


@picture(
    40,
    "Distribution of step times",
    "Where in the distribution the tweak sets differ: short steps, typical ones, or the tail.",
    NOT_OF=TIMELESS,
)
def distribution(scene: Scene) -> Spec:
    """A row a tweak set with all measured steps of its cells; the baseline's quantiles go down through the other rows."""
    timed = _by_arm(scene, _walls)
    legend = [
        dot("one measured step", QUIET, size=3),
        line("10th to 90th percentile", INK, 1.2, marker="|", markersize=7),
        dot("median", INK, "D", 4.5, markerfacecolor="white"),
        line("10th percentile, median, 90th of the baseline", FAINT, 1.2, linestyle=(0, (3, 2))),
    ]
    lead = "All measured steps of all cells; left is faster. Steps are no replicates: they cannot say how sure a difference is."
    left = room_for(arm_labels(scene.runs, [arm for panel, _ in timed for arm in panel.arms]).values(), 1.8)
    looks = looks_of(scene)
    sections = []
    for panel, arms in timed:
        draw = partial(_spread, panel=panel, arms=arms, left=left, looks=looks)
        beside = f"{sum(map(len, arms.values()))} measured steps"
        sections.append(Section(panel.title, 0.29 * len(arms) + FOOT, draw, beside, run=panel.run))
    return Spec(lead, sections, legend)


def _walls(panel: Panel, arm: str) -> np.ndarray:
    cells = _timed(panel, arm)
    return np.concatenate([cell.wall_s[cell.warmup :] for cell in cells]) if cells else np.array([])


def _spread(sheet: Page, top: float, panel: Panel, arms: Mapping[str, np.ndarray], left: float, looks: Mapping[str, Look]) -> None:
    every = np.concatenate(list(arms.values()))
    scale, unit = time_unit([float(np.quantile(every, 0.9))])
    names = arm_labels([panel.run], arms).values()
    axes = row_axes(sheet, top, left, names, 0.29, lines=2, xlabel=f"step time, {unit}", grid="x")
    log_or_linear(axes, "x", float(every.min()) * scale, float(every.max()) * scale, most=8)
    for row, (arm, walls) in enumerate(arms.items()):
        ends = np.quantile(walls, (0.10, 0.50, 0.90)) * scale
        # The jitter is part of the picture: the same each time.
        dots(axes, walls * scale, row + 0.06 + np.random.default_rng(row).uniform(-0.2, 0.32, len(walls)), looks[arm].color)
        axes.plot(ends[[0, 2]], [row - 0.3] * 2, color=INK, marker="|", markersize=6, linewidth=1.3)
        axes.plot(ends[1], row - 0.3, "D", color=INK, markerfacecolor="white", markersize=4)
        if arm == panel.run.baseline:
            for end in ends:
                axes.axvline(end, color=FAINT, linestyle=(0, (3, 2)), linewidth=0.8, zorder=0.5)


@picture(70, "Power and energy per sample", "What the same work cost in watts and joules under each tweak set, where power was measured.")
def energy(scene: Scene) -> Spec:
    """A bar a tweak set; only cells whose power was measured count."""
    panels = panels_of(scene)
    powered = [panel for panel in panels if any(power_w(cell) is not None for arm in panel.arms for cell in measured(panel, arm))]
    if not powered:
        raise NothingToDraw(f"power was not measured: {why_missing([cell for panel in panels for cell in panel.cells])}")
    lead = "All GPUs together, without the host, over the measured steps: energy a sample is Σ power · time / samples."
    legend = [
        fill("all measured steps together", BAR, BAR),
        fill("baseline", AGAIN, AGAIN),
        dot("one block", size=3.5, markerfacecolor="white")
        if any(len(measured(panel, arm)) > 1 for panel in powered for arm in panel.arms)
        else None,
    ]
    left = room_for(arm_labels(scene.runs, [arm for panel in powered for arm in panel.arms]).values(), 1.75)
    sections = [
        Section(panel.title, ROW * len(panel.arms) + FOOT, partial(_bars, panel=panel, left=left), run=panel.run) for panel in powered
    ]
    lost = [panel.title for panel in panels if panel not in powered]
    return Spec(lead, sections, legend, [f"Power was not measured: {joined(lost)}."] if lost else [])


COLUMNS: tuple[tuple[str, Callable[[Sequence[Cell]], float | None]], ...] = (
    ("mean power, W", lambda cells: time_weighted(cells, power_w)),
    ("energy a sample, J", energy_j_per_sample),
)


def _bars(sheet: Page, top: float, panel: Panel, left: float) -> None:
    names_beside(sheet, top, left, arm_labels([panel.run], panel.arms).values(), lines=2)
    wide = (INSIDE - left + 0.1) / len(COLUMNS) - 0.1
    small: Style = {"va": "center", "fontsize": SMALL}
    for place, (label, value_of) in enumerate(COLUMNS):
        start = left + place * (wide + 0.1)
        axes = sheet.axes(start, top, wide - 0.55, ROW * len(panel.arms), grid="x", most={"x": 4})
        axes.set(ylim=(len(panel.arms) - 0.5, -0.5), yticks=[], xlabel=label)
        largest = 0.0
        for row, arm in enumerate(panel.arms):
            value, middle = value_of(measured(panel, arm)), top + ROW * (row + 0.5)
            if value is None:
                sheet.text(start + 0.06, middle, "not measured", color=AGAIN, **small)
                continue
            bars(axes, row, [(value, AGAIN if arm == panel.run.baseline else BAR)])
            points = [point for cell in measured(panel, arm) if (point := value_of([cell])) is not None]
            if len(points) > 1:
                look: Style = {"color": INK, "markersize": 3, "markerfacecolor": "white", "markeredgewidth": 0.7}
                axes.plot(points, [row] * len(points), "o", **look)
            sheet.text(start + wide - 0.49, middle, digits(value), **small)
            largest = max(largest, value, *points)
        axes.set_xlim(0, 1.04 * largest or 1.0)
