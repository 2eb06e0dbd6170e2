"""What tweak sets do: their effects with intervals, how these settled over the blocks, and which keys each set changes."""

from __future__ import annotations

import math
import statistics
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from analysis.labels import short_names
from analysis.stats.effect import paired_effect
from analysis.summary import SECTIONS, changes
from analysis.verdict import without_guards
from analysis.wording import number, probability, spoken, unsigned

from .labels import arm_labels, fitted, joined, judged_by_key, measure_of, minus, room_for, width_in
from .marks import (
    BANDED,
    FASTER,
    FASTER_AXIS,
    FOOT,
    FRAME,
    HEADS,
    SLOWER,
    SMALLEST_SCALE,
    UNPROVEN,
    VERDICTS,
    Mark,
    MarkRow,
    ends_of,
    margin_band,
    tile,
)
from .marks import (
    forest as draw_forest,
)
from .page import INSIDE, Section, dot, fill, line, page, places, stack, verdict_entries
from .scene import NothingToDraw, called, changes_something, comparison_of, in_order, panels_of
from .style import BAND, COLOURS, FAINT, GRID, INK, QUIET, SMALL, TEXT, picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.terms import Comparison, Effect, Run

    from .marks import Ends, Style
    from .page import Page
    from .scene import Panel, Scene

UNTOUCHED = "(changes nothing)"
WIDEST = 4.0  # intervals this many times wider than the usual one are cut, with an arrow


@picture(10, "Effect of each tweak set", "Which tweak sets changed the speed of the work, by how much, and how surely.", MONITORED=False)
def forest(scene: Scene) -> Figure:
    """Draw a section a workload, a row a tweak set; the baseline is the line at 0 and its own value stands at the section's head."""
    runs = {run.origin: place for place, run in enumerate(scene.runs)}
    workloads = {name: place for place, name in enumerate(name for run in scene.runs for name in run.workloads)}
    every = sorted(scene.comparisons, key=lambda comparison: (runs.get(comparison.candidate_run, 0), workloads.get(comparison.workload, 0)))
    groups: dict[tuple[str, ...], list[Comparison]] = {}
    for comparison in every:
        groups.setdefault((comparison.baseline_run, comparison.candidate_run, comparison.study, comparison.workload), []).append(comparison)
    if not groups:
        raise NothingToDraw("there is nothing to compare: no tweak set but the baseline was run")
    if all(gain_of(comparison) is None for comparison in every):
        raise NothingToDraw(f"nothing could be compared: {'; '.join(dict.fromkeys(comparison.reason.rstrip('.') for comparison in every))}")
    labels = arm_labels(scene.runs, [comparison.tweakset for comparison in every])
    left = room_for([*labels.values(), UNTOUCHED], 1.75)
    sections = []
    for rows in groups.values():
        run = next((run for run in scene.runs if run.origin == rows[0].candidate_run), None)
        draw = partial(_effects, left=left, rows=_sorted(rows), limit=_limit(every), labels=labels)
        sections.append(Section(_title(rows[0], run, scene), HEADS + 0.29 * len(rows) + FOOT, draw, _baseline(rows, scene), run=run))
    lead = (
        "Right of 0 is faster than the baseline, left of it slower. Marks: gain in the primary metric, which is the first that is named "
        "beside each workload; lines: its 95 % interval."
    )
    if judged_by_key(scene.runs):
        lead += " Each is a whole tweak set; what single keys do is judged in “Effect of each key”."
    legend = verdict_entries(
        {word: spoken(word) for word in VERDICTS}, VERDICTS, {comparison.verdict for comparison in every if gain_of(comparison) is not None}
    )
    if not any(comparison.primary for comparison in every):
        legend = [entry._replace(style={**entry.style, "linestyle": "none"}) for entry in legend]
    legend += [line("gain in the second metric", FAINT, marker="|", markersize=6)] if any(comparison.second for comparison in every) else []
    legend.append(fill(f"margin: ±{joined(unsigned(one.margin) for one in every)} counts as no difference"))
    return stack(scene, forest.TITLE, lead, sections, legend, _notes(every))


CLAIMED = ("improved", "regressed", "equivalent", "inconclusive", "not comparable")
MOST_ROWS = 40


@picture(
    9,
    "Leaderboard",
    "Every contrast on one axis: what is faster, what is slower, what makes no difference, and what could not be told.",
    MONITORED=False,
)
def leaderboard(scene: Scene) -> Figure:
    """Draw a row a contrast: claimed differences first, the largest on top; equivalences, the undecided, and what changes nothing below."""
    every = sorted((comparison for comparison in scene.comparisons if comparison.primary), key=_claim)
    if not every:
        reasons = "; ".join(dict.fromkeys(comparison.reason.rstrip(".") for comparison in scene.comparisons))
        raise NothingToDraw(f"nothing could be compared that has an interval{f': {reasons}' if reasons else ''}")
    shown = every[:MOST_ROWS]
    names = arm_labels(scene.runs, [comparison.tweakset for comparison in shown])
    short = {name: label for run in scene.runs for name, label in short_names(run.workloads).items()}
    several = len({comparison.workload for comparison in shown}) > 1
    labels = {
        comparison: f"{names[comparison.tweakset]}{f' · {short.get(comparison.workload, comparison.workload)}' if several else ''}"
        for comparison in shown
    }
    left = room_for([label.ljust(1) for label in labels.values()], 2.9)
    rows = [
        MarkRow(
            labels[comparison],
            [
                Mark(
                    _ends(comparison),
                    VERDICTS[comparison.verdict],
                    (_words(comparison), "changes nothing" if comparison.untouched else spoken(comparison.verdict)),
                    says=_says(comparison),
                )
            ],
            color=QUIET if comparison.untouched else INK,
            tall=0.25,
        )
        for comparison in shown
    ]
    bases = dict.fromkeys(" + ".join(guard.baseline_arms) or guard.baseline for guard in without_guards(shown) or shown)
    claimed = [
        abs(comparison.primary.gain) for comparison in shown if comparison.primary and comparison.verdict in {"improved", "regressed"}
    ]
    limit = max(_limit(shown), *(1.1 * gain for gain in claimed), 0.0)
    lead = (
        f"Right of 0 is faster than {' or '.join(bases)}, left of it slower. Lines: 95 % intervals of the gain in each workload's primary "
        "metric."
    )
    legend = verdict_entries({word: spoken(word) for word in VERDICTS}, VERDICTS, {comparison.verdict for comparison in shown})
    legend.append(fill(f"margin: ±{joined(unsigned(one.margin) for one in shown)} counts as no difference"))
    notes = [f"{len(every) - len(shown)} contrasts more are in “{forest.TITLE}”."] if len(every) > len(shown) else []
    heads = [("gain, % [95 %]", 0.12), ("verdict", 0)]
    sheet = page(scene, leaderboard.TITLE, lead, HEADS + sum(row.tall for row in rows) + FOOT, legend, notes)
    band = margin_band(shown[0].margin)
    draw_forest(sheet, 0, rows, left=left, right=2.25, label=FASTER_AXIS, heads=heads, reach=100 * limit, band=band)
    return sheet.figure


def _claim(comparison: Comparison) -> tuple[bool, int, float]:
    """Order by what is claimed: differences of either sign together, the largest first."""
    gain = comparison.primary.gain if comparison.primary else 0.0
    return comparison.untouched, max(1, CLAIMED.index(comparison.verdict)), -abs(math.log1p(gain))


def gain_of(comparison: Comparison) -> float | None:
    """Answer the gain in the primary metric, judged or only seen."""
    return comparison.primary.gain if comparison.primary else comparison.observed


def _title(comparison: Comparison, run: Run | None, scene: Scene) -> str:
    if comparison.baseline_run != comparison.candidate_run:
        return f"{comparison.workload}: {Path(comparison.candidate_run).stem} against {Path(comparison.baseline_run).stem}"
    name = short_names(run.workloads)[comparison.workload] if run is not None else comparison.workload
    return f"{name} · run {run.run_id}" if run is not None and len(scene.runs) > 1 else name


def _sorted(rows: Sequence[Comparison]) -> list[Comparison]:
    """Order by gain, what changed nothing last: it shows how far the same machine differs from itself."""
    return sorted(rows, key=lambda row: (row.untouched, -(gain if (gain := gain_of(row)) is not None else -math.inf)))


def _limit(comparisons: Sequence[Comparison]) -> float:
    """Answer how far the axis reaches to either side, as a fraction: the intervals, but for one that would squash the others."""
    reach = [max(abs(comparison.primary.low), abs(comparison.primary.high)) for comparison in comparisons if comparison.primary]
    reach += [abs(comparison.observed) for comparison in comparisons if comparison.observed is not None]
    usual = WIDEST * statistics.median(reach) if reach else 0.0
    return 1.1 * max(1.5 * max(comparison.margin for comparison in comparisons), *(min(value, usual) for value in reach), 0.0)


def _effects(sheet: Page, top: float, left: float, rows: Sequence[Comparison], limit: float, labels: Mapping[str, str]) -> None:
    lines = []
    for row in rows:
        name = fitted([labels[row.tweakset]], left - 0.12, lines=1 if row.untouched else 2)[labels[row.tweakset]]
        faint = ends_of(row.second, 100) if row.second else None
        small, color = (UNTOUCHED, QUIET) if row.untouched else ("", INK)
        mark = Mark(_ends(row), VERDICTS[row.verdict], (_words(row), spoken(row.verdict)), says=_says(row))
        lines.append(MarkRow(name, [mark], small, faint, color, tall=0.29))
    heads = [("gain, % [95 %]", 0.12), ("verdict", 0)]
    band = margin_band(rows[0].margin)
    draw_forest(sheet, top, lines, left=left, right=2.25, label=FASTER_AXIS, heads=heads, reach=100 * limit, band=band)


def _ends(comparison: Comparison) -> Ends:
    return (
        ends_of(comparison.primary, 100)
        if comparison.primary
        else (None if comparison.observed is None else 100 * comparison.observed, None, None)
    )


def _words(comparison: Comparison) -> str:
    if comparison.primary:
        return minus(f"{number(comparison.primary.gain)} [{number(comparison.primary.low)}, {number(comparison.primary.high)}]")
    return minus(f"{number(comparison.observed)} [no interval]") if comparison.observed is not None else ""


def _says(comparison: Comparison) -> str:
    """Write a comparison in a line."""
    blocks = f", {comparison.pairs} of {comparison.blocks} blocks" if comparison.pairs else ""
    p = f", p {probability(comparison.p_adjusted)} adjusted for {comparison.family}" if comparison.p_adjusted is not None else ""
    return (
        f"{comparison.tweakset} · {comparison.workload}: {_words(comparison)} % against {comparison.baseline}, "
        f"{spoken(comparison.verdict)}{blocks}{p}"
    )


def _baseline(rows: Sequence[Comparison], scene: Scene) -> str:
    """Write what 0 stands for: a gain without its base says nothing."""
    rows = without_guards(rows)
    first = rows[0]
    values = {effect.metric.name: effect.baseline for row in rows for effect in (row.primary, row.second) if effect}
    name = first.primary_metric.name
    for cell in (cell for run in scene.runs for cell in run.cells if run.origin == first.baseline_run and not values):
        if (cell.study, cell.workload, cell.tweakset) == (first.study, first.workload, first.baseline) and name in cell.metrics:
            values[name] = cell.metrics[name]
    shown = [f"{(measure := measure_of(name, [value])).name} {measure.value(value)}" for name, value in values.items()]
    return f"0 = {first.baseline}{': ' if shown else ''}{', '.join(shown)}"


def _notes(comparisons: Sequence[Comparison]) -> list[str]:
    """Say why a row has no interval, and why one whose interval leaves out 0 may have shown nothing all the same."""
    open_ones = [
        comparison
        for comparison in comparisons
        if comparison.verdict == "inconclusive" and comparison.primary and comparison.primary.low * comparison.primary.high > 0
    ]
    chance = (
        "An interval that leaves out 0 may still not tell: verdicts stand on p-values adjusted for all {} contrasts, of which one in 20 "
        "would leave it out by chance. Inconclusive does not mean 'no change'."
    )
    notes = [chance.format(max(comparison.family for comparison in open_ones))] if open_ones else []
    reasons: dict[tuple[str, str], list[str]] = {}
    for comparison in comparisons:
        if comparison.primary is None or comparison.verdict == "not comparable":
            what = "Not comparable:" if comparison.verdict == "not comparable" else "No interval for"
            reasons.setdefault((what, comparison.reason), []).append(f"{comparison.tweakset} ({comparison.workload})")
    return notes + [f"{what} {', '.join(names)}: {reason}" for (what, reason), names in reasons.items()]


FEWEST = 3  # blocks of the first estimate
TITLED, SMALL_TALL, COLUMN_FOOT = 0.34, 0.95, 0.42


@picture(
    26,
    "How the estimates settled, block by block",
    "Whether more blocks would still move an estimate, and from which block on its 95 % band excluded 0 or lay inside the margin.",
    MONITORED=False,
)
def convergence(scene: Scene) -> Figure:
    """Draw small panels in rows of three for each workload, one a tweak set, on one scale."""
    every: list[tuple[Panel, list[tuple[Comparison, list[Effect]]]]] = []
    for panel in panels_of(scene):
        judged = without_guards([comparison for arm in panel.arms if (comparison := comparison_of(scene, panel, arm))])
        paired = [(comparison, comparison.primary) for comparison in judged if comparison.primary and comparison.primary.design == "paired"]
        courses = [
            (comparison, running(effect, comparison.margin, sequential=panel.run.design.sequential)) for comparison, effect in paired
        ]
        if settled := [(comparison, course) for comparison, course in courses if len(course) > 1]:
            every.append((panel, settled))
    if not every:
        raise NothingToDraw(f"no contrast has more than {FEWEST} blocks, so there is no course to show")
    labels = arm_labels(scene.runs, [comparison.tweakset for _, settled in every for comparison, _ in settled])
    margins = joined(unsigned(comparison.margin) for _, settled in every for comparison, _ in settled)
    legend = [
        line("estimate from the blocks so far", COLOURS[0]),
        fill("its 95 % interval", BANDED, BANDED),
        fill(f"margin: ±{margins}", edge=QUIET, linestyle=(0, (3, 2)), linewidth=0.6),
    ]
    lead = (
        f"From block {FEWEST} on, each point is the gain that the run would have told had it ended there. The verdict stands on the last "
        "one: who stops at the first band that excludes 0 calls more than 5 % of equals different."
    )
    each = TITLED + SMALL_TALL + COLUMN_FOOT
    sections = []
    for panel, settled in every:
        beside = f"gain by {measure_of(panel.metric.name, [1.0]).name}, %, against {settled[0][0].baseline}"
        tall = each * math.ceil(len(settled) / 3)
        sections.append(Section(panel.title, tall, partial(_courses, settled=settled, labels=labels), beside, run=panel.run))
    return stack(scene, convergence.TITLE, lead, sections, legend)


def running(effect: Effect, margin: float, *, sequential: bool = False) -> list[Effect]:
    """The effect of the first 3, 4, … blocks; the last is that of all of them."""
    base, candidate = effect.values_baseline, effect.values_candidate
    counts = range(FEWEST, len(base) + 1)
    return [paired_effect(effect.metric, base[:count], candidate[:count], margin, sequential=sequential) for count in counts]


def _courses(sheet: Page, top: float, settled: Sequence[tuple[Comparison, list[Effect]]], labels: Mapping[str, str]) -> None:
    # The first bands, which are wide, must not squash the last.
    ends = [abs(end) for comparison, _ in settled if comparison.primary for end in (comparison.primary.low, comparison.primary.high)]
    reach = 100 * max(2 * max(comparison.margin for comparison, _ in settled), 1.3 * max(ends))
    spots = places(len(settled), 3, TITLED + SMALL_TALL + COLUMN_FOOT, left=0.3, gap=0.0)
    for at, ((comparison, course), (left, down, wide)) in enumerate(zip(settled, spots, strict=True)):
        above = top + down
        axes = sheet.axes(left, above + TITLED, wide, SMALL_TALL, ylim=(-reach, reach))
        axes.axhspan(*margin_band(comparison.margin), color=BAND, linewidth=0, zorder=0)
        blocks = range(FEWEST, FEWEST + len(course))
        low, high = ([100 * end for end in ends] for ends in zip(*((effect.low, effect.high) for effect in course), strict=True))
        axes.fill_between(blocks, low, high, color=BANDED, linewidth=0, zorder=0.5)
        for end in margin_band(comparison.margin):  # also where the interval lies over the margin
            axes.axhline(end, color=QUIET, linewidth=0.6, linestyle=(0, (3, 2)), zorder=1)
        axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
        axes.plot(blocks, [100 * effect.gain for effect in course], color=COLOURS[0], linewidth=1.4, zorder=2)
        axes.plot(
            blocks[-1:], [100 * course[-1].gain], zorder=3, markersize=6, linestyle="none", clip_on=False, **VERDICTS[comparison.verdict]
        )
        axes.locator_params(axis="x", integer=True, nbins=5)
        axes.locator_params(axis="y", nbins=5)
        axes.set_xlim(FEWEST, blocks[-1])
        axes.tick_params(axis="y", labelleft=not at % 3)
        axes.set_xlabel("blocks")
        sheet.text(
            left, above + 0.02, fitted([labels[comparison.tweakset]], wide, TEXT, lines=1)[labels[comparison.tweakset]], fontsize=TEXT
        )
        last = course[-1]
        words = minus(f"{number(last.gain)} [{number(last.low)}, {number(last.high)}]")
        sheet.text(left, above + 0.17, words, fontsize=SMALL, color=QUIET)
        style: Style = {"fontsize": SMALL, "ha": "right", "fontweight": "bold", "color": VERDICTS[comparison.verdict]["color"]}
        sheet.text(left + wide, above + 0.17, spoken(comparison.verdict), **style)


KEY_ROW, NARROWEST = 0.19, 0.125
SECTION_TITLES = {
    "boot": "boot tokens",
    "ulimit": "limits",
    "service": "service units",
    "environment": "variables",
    "script": "changed by scripts",
}


class Key(NamedTuple):
    """A parameter: its section and name, and tweak set → value asked for."""

    section: str
    name: str
    values: Mapping[str, str]

    @property
    def head(self) -> str:
        """The section's name for a reader."""
        return SECTION_TITLES.get(self.section, self.section)


@picture(
    60,
    "Parameters and effects",
    "Which kernel parameter is in which tweak set, and what each set as a whole did to the speed.",
    MONITORED=False,
)
def parameters(scene: Scene) -> Figure:
    """Draw columns of tweak sets: above, the gain of each under each workload; below, the keys it changes."""
    panels = panels_of(scene)
    tweaksets = {name: run.tweaksets[name] for run in scene.runs for name in in_order(run, run.tweaksets.values())}
    ran = {arm for panel in panels for arm in panel.arms}
    names = [name for name, tweakset in tweaksets.items() if changes_something(tweakset) and name in ran]
    keys = keys_of(scene.runs, names)
    if not keys:
        raise NothingToDraw("no tweak set that was measured asks for any kernel parameter")
    judged = [comparison for panel in panels for name in names if (comparison := comparison_of(scene, panel, name))]
    any_called = any(called(scene, comparison) for comparison in judged)
    legend = [
        dot("changed alone: an effect framed there is this key's" if any_called else "changed alone", size=6),
        dot("changed together with others", size=6, markerfacecolor="white"),
        fill("faster", FASTER, FASTER),
        fill("slower", SLOWER, SLOWER),
        fill("framed: improved or regressed; faint: no difference shown", "white", **{**FRAME, "edge": INK, "edgecolor": INK}),
    ]
    lead = "Above: gain of each tweak set as a whole, %, in the workload's primary metric. Below: the keys it changes. "
    if judged_by_key(scene.runs):
        lead += f"Each against {scene.runs[0].baseline}; what single keys do is judged in “Effect of each key”."
    else:
        lead += "Keys that were changed together cannot be told apart: to know which one did it, measure a set with that key alone."
    if not any_called:
        doubted = any(comparison.verdict in {"improved", "regressed"} for comparison in judged)
        lead += " A copy of stock differs as well (A/A): no set is called." if doubted else " No set was shown to differ."
    left = max(
        room_for([key.name for key in keys], 2.45, SMALL), room_for([*(panel.title for panel in panels), *(key.head for key in keys)], 2.45)
    )
    labels = arm_labels(scene.runs, names)
    heads = room_for(labels.values(), 1.7, SMALL)
    column = min(0.55, (INSIDE - left - 1.3) / len(names))
    if column < NARROWEST:
        raise NothingToDraw(f"{len(names)} tweak sets are too many columns for one page: nobody could read their names")
    rows = len(panels) + len(keys) + len({key.section for key in keys})
    sheet = page(scene, parameters.TITLE, lead, heads + KEY_ROW * rows + 0.3, legend)
    shown = fitted(labels.values(), heads - 0.1, SMALL, lines=2 if column > 0.3 else 1)
    for place, name in enumerate(names):
        style: Style = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": SMALL, "linespacing": 1.0}
        sheet.text(left + column * (place + 0.5), heads - 0.06, shown[labels[name]], **style)
    grid = Grid(sheet, left, column, names)
    _gains(grid, heads, panels, scene)
    _keys(grid, heads + KEY_ROW * len(panels) + 0.22, keys)
    return sheet.figure


def keys_of(runs: Sequence[Run], names: Sequence[str]) -> list[Key]:
    """List every parameter that some tweak sets change, section by section; of several runs, the first that has a set speaks for it."""
    every: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        for section, key, value in changes(next(run for run in runs if name in run.tweaksets), name):
            values = every.setdefault((section, key), {})
            # Boot tokens may come twice (hugepagesz, hugepages): all of them count.
            values[name] = f"{values[name]} {value}" if name in values else value
    order = {section: place for place, section in enumerate(SECTIONS)}
    ordered = sorted(every.items(), key=lambda item: order.get(item[0][0], len(order)))
    return [Key(section, key, values) for (section, key), values in ordered]


class Grid(NamedTuple):
    """Where the columns stand: inches from the left of the page, width of each, and the tweak sets they are."""

    sheet: Page
    left: float
    column: float
    names: Sequence[str]

    def table(self, top: float, rows: int) -> Axes:
        """Add axes with a unit square for each row and column."""
        wide = self.column * len(self.names)
        axes = self.sheet.axes(self.left, top, wide, KEY_ROW * rows, xlim=(0, len(self.names)), ylim=(rows, 0), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        for place in range(len(self.names) + 1):
            axes.axvline(place, color=GRID, linewidth=0.6, zorder=0.5)
        return axes

    def text(self, top: float, text: str, left: float | None = None, **style: object) -> None:
        """Write in the middle of the row that begins at `top`: before the columns, or from `left` on."""
        place: Style = {"ha": "right"} if left is None else {}
        self.sheet.text(self.left - 0.1 if left is None else left, top + KEY_ROW / 2, text, **{"va": "center", **place, **style})


def _gains(grid: Grid, top: float, panels: Sequence[Panel], scene: Scene) -> None:
    every = [(row, place, panel, name) for row, panel in enumerate(panels) for place, name in enumerate(grid.names)]
    judged = {(row, place): comparison for row, place, panel, name in every if (comparison := comparison_of(scene, panel, name))}
    gains = {at: gain for at, comparison in judged.items() if (gain := gain_of(comparison)) is not None}
    largest = max([SMALLEST_SCALE, *map(abs, gains.values())])
    axes = grid.table(top, len(panels))
    titles = fitted([panel.title for panel in panels], grid.left - 0.15, lines=1)
    for row, panel in enumerate(panels):
        grid.text(top + KEY_ROW * row, titles[panel.title])
    for at, comparison in judged.items():
        if at not in gains:
            axes.text(at[1] + 0.5, at[0] + 0.52, "×", color=QUIET, ha="center", va="center", fontsize=SMALL, zorder=4)
            continue
        sure = called(scene, comparison)
        depth = gains[at] / largest * (1 if sure else UNPROVEN)
        tile(axes, at, depth, short_gain(gains[at], grid.column), framed=sure)


def short_gain(gain: float, room_in: float) -> str:
    """Write a gain as exactly as there is room for."""
    exact, rounded = minus(number(gain)), minus(f"{gain * 100:+.0f}")
    bare = rounded.lstrip("+\N{MINUS SIGN}")  # its colour has the sign
    return next((text for text in (exact, rounded, bare) if width_in(text, SMALL) <= 0.9 * room_in), "")


def _keys(grid: Grid, top: float, keys: Sequence[Key]) -> None:
    rows: list[Key | str] = []
    for one in keys:
        rows += [one] if one.head in rows else [one.head, one]
    axes = grid.table(top, len(rows))
    shown = fitted([key.name for key in keys], grid.left - 0.15, SMALL, lines=1)
    right = grid.left + grid.column * len(grid.names) + 0.1
    grid.text(top, "values", right, fontsize=SMALL, fontweight="bold")
    alone = {name for name in grid.names if sum(name in key.values for key in keys) == 1}
    for row, key in enumerate(rows):
        down = top + KEY_ROW * row
        if isinstance(key, str):
            grid.text(down, key, fontsize=SMALL, fontweight="bold")
            axes.axhline(row + 1, color=FAINT, linewidth=0.7)
            continue
        axes.axhspan(row, row + 1, color=BAND if row % 2 else "white", linewidth=0, zorder=0)
        grid.text(down, shown[key.name], fontsize=SMALL)
        values = joined(key.values.values())
        grid.text(down, fitted([values], INSIDE - right, SMALL, lines=1)[values], right, fontsize=SMALL, color=QUIET)
        for place, name in enumerate(grid.names):
            if name in key.values:
                face = INK if name in alone else "white"
                axes.plot(place + 0.5, row + 0.5, "o", markersize=6, color=INK, markerfacecolor=face, markeredgewidth=1.1)
