"""The measurement: the whole run over time, and the steps inside its cells."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from analysis.checks import OTHERS, STEAL, STOLEN, not_put_back, share_of_others
from analysis.plain import moment
from analysis.terms import Cell, Run, Steps
from analysis.wording import number
from control.names import first_few

from .effects import gain_of
from .labels import (
    arm_labels,
    direction,
    fitted_arms,
    joined,
    measure_of,
    minus,
    room_for,
    time_unit,
    width_in,
)
from .marks import MUCH, Axes, Style, above, dots, round_ticks, row_axes, ticks, trailing_mean
from .page import ROUND, Chart, Entry, Page, Plot, body_width, dot, fill, line
from .scene import TIMELESS, Panel, Scene, comparison_of, measured, panels_of, some
from .style import (
    AGAIN,
    BAND,
    FAINT,
    INK,
    QUIET,
    SMALL,
    WRONG,
    ArmStyle,
    looks_of,
    picture,
)

BAR, WARM_UP = "#8fb8d8", "#f3e3c3"
FAR, SWEEPS = 5.0, 10  # robust standard deviations
FEWEST = 3  # tweak sets and blocks: of two that differ, either may be the outlier
MOST_LOOKS, MOST_NAMED = 7, 4  # tweak sets distinguishable by colour and mark
LEFT = 0.5
HOLLOW: Style = {"markersize": 10, "markerfacecolor": "none", "markeredgewidth": 1.3}
RING: Style = HOLLOW | {"marker": "o", "markeredgecolor": WRONG}
DOUBT: Style = HOLLOW | {"marker": "s", "markeredgecolor": "#E69F00"}
MARKED = {
    "failed": dot("failed", WRONG, "x"),
    "skipped": dot("skipped", QUIET, "x"),
    "far": dot("far from its tweak set and block", **RING),
    "doubt": dot("not put back, or changed by others", **DOUBT),
    "disturbed": fill("disturbed: see the foot", WRONG, WRONG, alpha=0.13),
}


class Outlier(NamedTuple):
    """A cell, and the fraction by which its value deviates from its tweak set and block."""

    cell: Cell
    off: float


def outlying_cells(cells: Sequence[Cell], metric: str) -> list[Outlier]:
    """Return the outliers among the measured cells of one workload, the farthest first.

    Median polish (Tukey 1977) of log values by tweak set and block; an outlier is beyond 5 robust
    standard deviations of the residuals, and beyond 1 %. The polish makes many residuals 0, so the
    median absolute deviation uses only the largest, as many as there are degrees of freedom, and is
    widened for them. In tables of pure normal noise, 3 × 3 to 24 × 10, it marks a cell in at most 1
    of 80 (simulated).
    """
    judged = [
        cell for cell in cells if cell.outcome == "measured" and cell.metrics.get(metric, 0.0) > 0
    ]
    arms, blocks = (
        sorted({getattr(cell, name) for cell in judged}) for name in ("tweakset", "block")
    )
    freedom = len(judged) - len(arms) - len(blocks) + 1
    if min(len(arms), len(blocks), freedom) < FEWEST:
        return []
    places = tuple(
        np.transpose([(arms.index(cell.tweakset), blocks.index(cell.block)) for cell in judged])
    )
    table = np.full((len(arms), len(blocks)), np.nan)
    table[places] = [math.log(cell.metrics[metric]) for cell in judged]
    for _ in range(SWEEPS):
        table -= np.nanmedian(table, axis=1, keepdims=True)
        table -= np.nanmedian(table, axis=0, keepdims=True)
    left = table[places]
    limit = max(
        FAR * 1.4826 * np.median(np.sort(abs(left))[-freedom:]) * math.sqrt(len(judged) / freedom),
        0.01,
    )
    outliers = [
        Outlier(cell, math.expm1(off))
        for cell, off in zip(judged, left.tolist(), strict=True)
        if abs(off) > limit
    ]
    return sorted(outliers, key=lambda outlier: -abs(math.log1p(outlier.off)))


@picture(27, "The whole run, cell by cell", NOT_OF=TIMELESS)
def run_order(scene: Scene) -> Plot:
    """Every cell in run order, with other activity on the machine: drift and disturbances."""
    orderless = (
        "one cell per tweak set and no record of run order: drift cannot be separated from a tweak"
    )
    panels = some((panel for panel in panels_of(scene) if panel.run.replicated), orderless)
    names = list(dict.fromkeys(name for panel in panels for name in panel.arms))
    looks, legend = _looks(scene, names)
    labels = arm_labels(scene.runs, names)
    sections, notes, drawn = [], [], set()
    for _, group in groupby(panels, key=lambda panel: panel.run.origin):
        own = list(group)
        run = own[0].run
        order = RunAxis(run)
        for panel in own:
            last = panel is own[-1] and not order.machine
            outliers = outlying_cells(panel.cells, panel.metric.name)
            draw = partial(
                _order, panel=panel, looks=looks, outliers=outliers, order=order, last=last
            )
            beside = f"{measure_of(panel.metric, _values(panel)).label} ({direction(panel.metric)})"
            sections.append(Chart(panel.title, 1.53 + 0.24 * last, draw, beside, run=run))
            named = [
                f"{labels[cell.tweakset]} in block {cell.block} ({minus(number(off))} %)"
                for cell, off in outliers
            ]
            notes += [f"{panel.title}: {first_few(named, MOST_NAMED)}"] if named else []
            drawn |= (
                {cell.outcome for cell in panel.cells}
                | {"doubt" for cell in panel.cells if in_doubt(cell)}
                | {"far" for _ in named}
            )
        drawn |= {"disturbed" for _ in order.disturbed}
        if order.machine:
            pressed = any("waiting" in label for label in order.machine)
            beside = "pressure: waiting tasks, including the workload's own" if pressed else ""
            tall = MEANWHILE * len(order.machine) + 0.44
            sections.append(
                Chart(
                    "Other activity on the machine",
                    tall,
                    partial(_meanwhile, order=order),
                    beside,
                    run=run,
                )
            )
    legend += [
        line("median of the block", AGAIN, 3, alpha=0.6),
        *(entry for what, entry in MARKED.items() if what in drawn),
    ]
    lead = (
        "Each mark is a cell, in the order they ran. Marks that rise or fall together from left "
        "to right are the machine's drift, not a "
        "tweak's effect."
    )
    far = (
        "Far from the others of their tweak set and block (5 robust SD or more), and still in "
        "every average: "
    )
    unseen = joined(
        cell.telemetry_missing["sampler"]
        for panel in panels
        for cell in panel.cells
        if "sampler" in cell.telemetry_missing
    )
    why = f"Other activity was not sampled: {unseen}." if unseen else ""
    return Plot(lead, sections, legend, [f"{far}{'; '.join(notes)}." if notes else "", why])


def _looks(scene: Scene, names: Sequence[str]) -> tuple[Mapping[str, ArmStyle], list[Entry]]:
    """Give each tweak set its look, and a legend; if many, those with changes look alike."""
    looks = looks_of(scene)
    labels = fitted_arms(scene.runs, names, 2.6, SMALL, lines=1)
    alike = (
        [name for name in names if looks[name].color not in {INK, AGAIN}]
        if len(names) > MOST_LOOKS
        else []
    )
    legend = [
        dot(labels[name], looks[name].color, looks[name].marker)
        for name in names
        if name not in alike
    ]
    if alike:
        kind = "monitors" if all(run.is_monitored for run in scene.runs) else "tweak sets"
        legend.append(dot(f"one of {len(alike)} {kind}", "#5b9bd0", size=4))
    return {**looks, **dict.fromkeys(alike, ArmStyle("#5b9bd0", "o", "-"))}, legend


def _values(panel: Panel) -> list[float]:
    return [
        cell.metrics[panel.metric.name] for cell in panel.cells if panel.metric.name in cell.metrics
    ]


FEW_TICKS = 7
MEANWHILE, SEEN = 0.5, 1.0  # inches per row; percent from which a quantity is drawn
# What a machine does beside a cell, in percent, and the limit above which the cell counts as
# disturbed.
LIMITS: Mapping[str, float | None] = {
    "other programs, % of all CPUs": 100 * OTHERS,
    "GPU that held its clock down, % of the time": SEEN,
    "taken by the hypervisor, % of all CPUs": 100 * STEAL,
    "waiting for a CPU, % of the time (pressure)": None,
    "waiting for the disk, % of the time (pressure)": None,
    "waiting for memory, % of the time (pressure)": None,
}


def _beside(run: Run, cell: Cell) -> list[float | None]:
    """Return the machine's activity beside a cell, in the order of `LIMITS`; None if unknown."""
    share = share_of_others(run, cell)
    throttled = [
        value
        for name, value in cell.telemetry.items()
        if name.startswith("gpu") and name.endswith("_throttled_percent")
    ]
    pressures = (
        cell.telemetry.get(f"psi_{what}_some_percent_mean") for what in ("cpu", "io", "memory")
    )
    return [
        None if share is None else 100 * share,
        max(throttled, default=None),
        cell.telemetry.get(STOLEN),
        *pressures,
    ]


class RunAxis:
    """A run's axis: one unit per cell, in run order, with the time of day below some.

    `machine` has rows for the machine's other activity, percent per cell; those below 1 %
    throughout are omitted, except for other programs.
    """

    def __init__(self, run: Run) -> None:
        cells = sorted(run.cells, key=lambda cell: cell.order)
        self.place = {cell.id: at for at, cell in enumerate(cells)}
        table = np.array([_beside(run, cell) for cell in cells], dtype=float).T
        rows = {
            label: row for label, row in zip(LIMITS, table, strict=True) if np.isfinite(row).any()
        }
        over = [row > limit for label, row in rows.items() if (limit := LIMITS[label]) is not None]
        self.disturbed = np.flatnonzero(np.any(over, axis=0)).tolist() if over else []
        self.machine = {
            label: row
            for label, row in rows.items()
            if "programs" in label or np.nanmax(row) >= SEEN
        }
        times = {
            at: time
            for at, cell in enumerate(cells)
            if cell.started_utc and (time := moment(cell.started_utc))
        }
        written = dict(list(times.items())[:: math.ceil(len(times) / FEW_TICKS) or 1])
        self.ticks: dict[float, str] = {at: f"{time:%H:%M:%S}" for at, time in written.items()}
        days = joined(f"{time:%-d %B %Y}" for time in list(times.values())[:: len(times) - 1 or 1])
        self.label = (
            f"cells in the order they ran; clock, UTC ({days})"
            if times
            else "cells in the order they ran"
        )

    def ground(self, axes: Axes, *, last: bool) -> None:
        """Scale the axis, write its ticks below the run's `last` row, and mark disturbed cells."""
        axes.set_xlim(-1, len(self.place))
        ticks(axes, "x", self.ticks if last else (), self.ticks)
        axes.set_xlabel(self.label if last else "")
        for at in self.disturbed:
            axes.axvspan(at - 0.5, at + 0.5, color=WRONG, alpha=0.13, linewidth=0, zorder=0.2)


def in_doubt(cell: Cell) -> bool:
    """Return whether settings were not restored, or changed by others, or metrics disagree."""
    return bool(
        cell.contradictions or not_put_back(cell) or (cell.applied and cell.applied.left_alone)
    )


def _meanwhile(sheet: Page, top: float, order: RunAxis) -> None:
    for at, (label, row) in enumerate(order.machine.items()):
        limit, down = LIMITS[label], top + MEANWHILE * at
        highest = max(1.3 * (limit or SEEN), float(np.nanmax(row)))
        axes = sheet.axes(
            LEFT,
            down + 0.18,
            body_width() - LEFT - 0.02,
            MEANWHILE - 0.22,
            ylim=(0, highest),
            most={"y": 2},
        )
        order.ground(axes, last=at == len(order.machine) - 1)
        sheet.text(LEFT, down + 0.02, label, fontsize=SMALL, color=QUIET)
        over = row > (math.inf if limit is None else limit)
        for color, shown in ((BAR, ~over), (WRONG, over)):
            heights = np.pad(np.where(shown, np.nan_to_num(row), 0), 1)
            axes.fill_between(
                np.arange(-1, len(row) + 1), heights, step="mid", color=color, linewidth=0
            )
        if limit is not None:
            axes.axhline(limit, color=WRONG, linewidth=0.8, linestyle=(0, (3, 2)))


def _order(
    sheet: Page,
    top: float,
    panel: Panel,
    looks: Mapping[str, ArmStyle],
    outliers: Sequence[Outlier],
    order: RunAxis,
    *,
    last: bool,
) -> None:
    measure, unit = panel.metric.name, measure_of(panel.metric, _values(panel))
    axes = sheet.axes(LEFT, top + 0.14, body_width() - LEFT - 0.02, 1.15, grid="y")
    axes.margins(y=0.12)
    order.ground(axes, last=last)
    valued = [cell for cell in panel.cells if measure in cell.metrics]
    _blocks(axes, panel, {cell.id: unit.scale * cell.metrics[measure] for cell in valued}, order)

    def plot(cells: Iterable[Cell], **style: Any) -> None:
        points = [(order.place[cell.id], unit.scale * cell.metrics[measure]) for cell in cells]
        xs, ys = ([point[at] for point in points] for at in (0, 1))
        axes.plot(xs, ys, linestyle="none", **style)

    for arm in reversed(panel.arms):  # the baseline above all others
        cells, look = [cell for cell in measured(panel, arm) if measure in cell.metrics], looks[arm]
        style: Style = {
            "color": look.color,
            "marker": look.marker,
            "markeredgecolor": "white",
            "markeredgewidth": 0.4,
        }
        plot(cells, markersize=5, label=arm, **style)
    for outcome, color in (("skipped", QUIET), ("failed", WRONG)):
        lost = [order.place[cell.id] for cell in panel.cells if cell.outcome == outcome]
        axes.plot(
            lost,
            [0.03] * len(lost),
            "x",
            color=color,
            markersize=5,
            transform=axes.get_xaxis_transform(),
            clip_on=False,
        )
    plot((cell for cell, _ in outliers), **RING)
    plot(filter(in_doubt, valued), **DOUBT)


def _blocks(axes: Axes, panel: Panel, heights: Mapping[str, float], order: RunAxis) -> None:
    """Shade every other block, number those with room, and draw the median of each."""
    free = -math.inf
    spans: list[tuple[float, float]] = []
    medians: list[tuple[float, float, float]] = []
    for block in sorted({cell.block for cell in panel.cells}):
        cells = [cell.id for cell in panel.cells if cell.block == block]
        places = [order.place[cell] for cell in cells]
        begin, end = min(places) - 0.5, max(places) + 0.5
        text = str(block) if spans else f"block {block}"
        middle, half = (
            (begin + end) / 2,
            (0.5 * width_in(text, SMALL) + 0.04) * len(order.place) / (body_width() - LEFT),
        )
        if middle - half > free:
            above(axes, middle, text)
            free = middle + half
        spans.append((begin, end - begin))
        values = [heights[cell] for cell in cells if cell in heights]
        if len(values) > 1:
            medians.append((statistics.median(values), begin, end))
    axes.broken_barh(
        spans[::2], (0, 1), transform=axes.get_xaxis_transform(), color=BAND, linewidth=0, zorder=0
    )
    if medians:
        axes.hlines(*zip(*medians, strict=True), color=AGAIN, linewidth=3, alpha=0.6, zorder=1)


STRIP, TALL_STRIP, TICKS = 0.38, 0.85, 0.4
FEW_STRIPS, MOST_STRIPS = 8, 6  # up to this many strips may be taller; strips per workload
FULL = 0.76  # share of a strip that its scale fills
LONG = 200  # steps: from here on, a trailing mean replaces the median over cells


@picture(30, "Step times inside the cells", NOT_OF=TIMELESS)
def steps(scene: Scene) -> Plot:
    """Step times in each cell: warm-up, stalls, and drift inside a process."""
    timed = (
        (panel, {arm: own for arm in panel.arms if (own := _timed(panel, arm))})
        for panel in panels_of(scene)
    )
    every = some(
        ((panel, arms) for panel, arms in timed if arms), "the file has no times of single steps"
    )
    shown = [
        (panel, {arm: arms[arm] for arm in _largest(scene, panel, arms)}) for panel, arms in every
    ]
    cells = [cell for _, arms in shown for own in arms.values() for cell in own]
    legend = [
        dot("one step of one cell", QUIET, size=3),
        line("median of the blocks", INK, 1.3)
        if any(len(cell.wall_s) <= LONG for cell in cells)
        else None,
        line("trailing mean of a thirtieth of the cell", INK, 1.3)
        if any(len(cell.wall_s) > LONG for cell in cells)
        else None,
        fill("warm-up, not measured", WARM_UP) if any(cell.warmup for cell in cells) else None,
    ]
    lead = (
        "A strip per tweak set, a dot per step; higher is slower. Strips of a workload share a "
        "scale."
    )
    tall = STRIP if sum(len(arms) for _, arms in shown) > FEW_STRIPS else TALL_STRIP
    left = (
        room_for(arm_labels(scene.runs, [arm for _, arms in shown for arm in arms]).values(), 1.75)
        + TICKS
    )
    sections = []
    for (panel, all_arms), (_, arms) in zip(every, shown, strict=True):
        own = [cell for cells in all_arms.values() for cell in cells]
        beside = f"step time, {time_unit([max(max(cell.wall_s) for cell in own)])[1]}"
        beside += f"; {sum(len(cell.wall_s) for cell in own)} steps of {len(own)} cells"
        draw = partial(_strips, panel=panel, arms=arms, left=left, tall=tall, looks=looks_of(scene))
        sections.append(Chart(panel.title, tall * len(arms) + 0.45, draw, beside, run=panel.run))
    hidden = sum(
        len(all_arms) - len(arms) for (_, all_arms), (_, arms) in zip(every, shown, strict=True)
    )
    note = (
        "Per workload the baseline and the tweak sets that differ most from it, at most "
        f"{MOST_STRIPS}; {hidden} more ran."
    )
    return Plot(lead, sections, legend, [note] if hidden else [])


def _timed(panel: Panel, arm: str) -> list[Steps]:
    return [cell.steps for cell in measured(panel, arm) if cell.steps is not None]


def _largest(scene: Scene, panel: Panel, arms: Mapping[str, object]) -> list[str]:
    """Choose the baseline and the tweak sets that differ most from it, in the order of the run."""

    def size(arm: str) -> float:
        comparison = comparison_of(scene, panel, arm)
        return (
            math.inf
            if arm == panel.run.baseline
            else abs((gain_of(comparison) if comparison else None) or 0.0)
        )

    largest = sorted(arms, key=lambda arm: -size(arm))[:MOST_STRIPS]
    return [arm for arm in arms if arm in largest]


def _strips(
    sheet: Page,
    top: float,
    panel: Panel,
    arms: Mapping[str, list[Steps]],
    left: float,
    tall: float,
    looks: Mapping[str, ArmStyle],
) -> None:
    """Draw all strips on one pair of axes, one below the other."""
    every = [cell for cells in arms.values() for cell in cells]
    low, high = min(min(cell.wall_s) for cell in every), max(max(cell.wall_s) for cell in every)
    most = max(len(cell.wall_s) for cell in every)
    scale, _ = time_unit([high])
    logarithmic, few = high / low > MUCH, 2 if tall == STRIP else 3
    curve = np.log if logarithmic else np.asarray
    ends = low * scale, high * scale
    even = MaxNLocator(few, steps=ROUND).tick_values(*ends).tolist()  # type: ignore[attr-defined]
    even = [number for number in even if ends[0] <= number <= ends[1]]
    numbers = (
        round_ticks(*ends, few) if logarithmic else even[:: max(1, math.ceil(len(even) / few))]
    )
    bottom, span = curve(low), (curve(high) - curve(low)) or 0.1 * high

    def height(values: np.ndarray | float, row: int) -> np.ndarray:
        heights: np.ndarray = row + 0.43 - FULL * (curve(values) - bottom) / span
        return heights

    names, ends_x = arm_labels([panel.run], arms).values(), (0, most + 1)
    axes = row_axes(
        sheet,
        top,
        left,
        names,
        tall,
        lines=2,
        numbers=TICKS,
        xlim=ends_x,
        xlabel="step number in the cell",
    )
    written = {
        float(height(number / scale, row)): f"{number:g}"
        for row in range(len(arms))
        for number in numbers
    }
    ticks(axes, "y", written, written)
    for row, (arm, cells) in enumerate(arms.items()):
        axes.axhline(row + 0.5, color=FAINT, linewidth=0.7)
        if warmup := max(cell.warmup for cell in cells):
            axes.fill_between(
                [0, warmup + 0.5], row - 0.4, row + 0.5, color=WARM_UP, linewidth=0, zorder=0
            )
        walls = [np.asarray(cell.wall_s) for cell in cells]
        long = max(map(len, walls)) > LONG
        at = np.concatenate([np.arange(1, len(wall) + 1) for wall in walls])
        look: Style = {
            "zorder": 1.5,
            **({"markersize": 1.2, "alpha": 0.35} if long else {"markersize": 3, "alpha": 0.5}),
        }
        dots(axes, at, height(np.concatenate(walls), row), looks[arm].color, **look)
        shortest = min(map(len, walls))
        middle = [np.median([wall[:shortest] for wall in walls], axis=0)]
        for way in (
            [trailing_mean(wall, max(1, len(wall) // 30)) for wall in walls] if long else middle
        ):
            axes.plot(
                np.arange(1, len(way) + 1),
                height(way, row),
                color=INK,
                linewidth=0.9,
                rasterized=long,
            )
