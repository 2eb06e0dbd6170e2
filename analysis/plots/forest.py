"""Forest plot: each tweak set's gain with its 95 % interval, against the margin inside which a change counts as none."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.variants import short_names
from analysis.verdict import without_guards
from analysis.wording import number, unsigned

from .lettering import fitted, room_for
from .measures import measure_of, minus
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .points import judged_by_key, spoken
from .scene import NothingToDraw
from .style import AGAIN, BAND, FAINT, GRID, INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.terms import Comparison, Effect

    from .page import Page
    from .scene import Scene

TITLE = "Effect of each tweak set"
ANSWERS = "Which tweak sets changed the speed of the work, by how much, and how surely."
ORDER = 10
MONITORED = False

ROW, NAMES, WORDS, AXIS = 0.29, 1.75, 2.15, 0.52
# Shape says the same as colour, for print and for the colour-blind.
VERDICTS: dict[str, dict[str, Any]] = {
    "improved": {"marker": "^", "color": "#0072B2", "markerfacecolor": "#0072B2"},
    "regressed": {"marker": "v", "color": "#D55E00", "markerfacecolor": "#D55E00"},
    "equivalent": {"marker": "s", "color": "#009E73", "markerfacecolor": "#009E73"},
    "inconclusive": {"marker": "o", "color": INK, "markerfacecolor": "white"},
    "not comparable": {"marker": "x", "color": AGAIN},
}
GAP = 4 * "\N{NO-BREAK SPACE}"  # SVG makes one of several usual blanks
UNTOUCHED = "(changes nothing)"
WIDEST = 4.0  # intervals this many times wider than the usual one are cut, with an arrow


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a workload, a row a tweak set; the baseline is the line at 0 and its own value stands at the panel's head."""
    runs = {run.origin: place for place, run in enumerate(scene.runs)}
    workloads = {name: place for place, name in enumerate(name for run in scene.runs for name in run.workloads)}
    panels: dict[tuple[str, str, str, str], list[Comparison]] = {}
    for one in sorted(scene.comparisons, key=lambda one: (runs.get(one.candidate_run, 0), workloads.get(one.workload, 0))):
        panels.setdefault((one.baseline_run, one.candidate_run, one.study, one.workload), []).append(one)
    if not panels:
        raise NothingToDraw("there is nothing to compare: no tweak set but the baseline was run")
    if all(_gain(one) is None for one in scene.comparisons):
        raise NothingToDraw(f"nothing could be compared: {'; '.join(dict.fromkeys(one.reason.rstrip('.') for one in scene.comparisons))}")
    labels = spoken(scene.runs, [one.tweakset for one in scene.comparisons])
    limit, left = _limit(scene.comparisons), room_for([*labels.values(), UNTOUCHED], NAMES)
    tall = [PANEL_HEAD + ROW * len(rows) + AXIS for rows in panels.values()]
    lead = (
        "Right of 0 is faster than the baseline, left of it slower. Marks: gain in the primary metric, which is the first that is named "
        "beside each workload; lines: its 95 % interval."
    )
    if judged_by_key(scene.runs):
        lead += " Each is a whole tweak set; what single keys do is judged in “Effect of each key”."
    sheet = page(scene, TITLE, lead, sum(tall), _legend(scene.comparisons), _notes(scene.comparisons))
    top = 0.0
    for rows, height in zip(panels.values(), tall, strict=True):
        panel_head(sheet, top, _title(rows[0], scene), _baseline(rows, scene))
        _panel(sheet, top + PANEL_HEAD, left, _sorted(rows), limit, labels)
        top += height
    return sheet.figure


def _title(one: Comparison, scene: Scene) -> str:
    if one.baseline_run != one.candidate_run:
        return f"{one.workload}: {Path(one.candidate_run).stem} against {Path(one.baseline_run).stem}"
    run = next((run for run in scene.runs if run.origin == one.candidate_run), None)
    name = short_names(run.workloads)[one.workload] if run is not None else one.workload
    return f"{name} · run {run.run_id}" if run is not None and len(scene.runs) > 1 else name


def _legend(comparisons: Sequence[Comparison]) -> list[Entry]:
    legend = [
        Entry(word, {"linestyle": "-" if any(one.primary for one in comparisons) else "none", "markersize": 6.5, **style})
        for word, style in VERDICTS.items()
        if any(one.verdict == word and _gain(one) is not None for one in comparisons)
    ]
    if any(one.second for one in comparisons):
        legend.append(Entry("gain in the second metric", {"color": FAINT, "marker": "|", "markersize": 6}))
    margins = ", ".join(dict.fromkeys(unsigned(one.margin) for one in comparisons))
    return [*legend, Entry(f"margin: ±{margins} counts as no difference", {"facecolor": BAND, "edgecolor": GRID}, patch=True)]


def _sorted(rows: Sequence[Comparison]) -> list[Comparison]:
    """Order by gain, what changed nothing last: it shows how far the same machine differs from itself."""
    return sorted(rows, key=lambda one: (one.untouched, -(gain if (gain := _gain(one)) is not None else -math.inf)))


def _gain(one: Comparison) -> float | None:
    return one.primary.gain if one.primary else one.observed


def _limit(comparisons: Sequence[Comparison]) -> float:
    """Answer how far the axis reaches to either side, as a fraction: the intervals, but for one that would squash the others."""
    margin = max(one.margin for one in comparisons)
    reach = [max(abs(one.primary.low), abs(one.primary.high)) for one in comparisons if one.primary]
    reach += [abs(one.observed) for one in comparisons if one.observed is not None]
    usual = WIDEST * statistics.median(reach) if reach else 0.0
    return 1.1 * max(1.5 * margin, *(min(one, usual) for one in reach), 0.0)


def _panel(  # noqa: PLR0913, PLR0917  # a place, and what stands there
    sheet: Page, top: float, left: float, rows: Sequence[Comparison], limit: float, labels: Mapping[str, str]
) -> None:
    first, wide = rows[0], INSIDE - left - WORDS - 0.1
    axes = sheet.axes(left, top, wide, ROW * len(rows), ylim=(len(rows) - 0.5, -0.5), yticks=[])
    axes.set_xlim(-limit * 100, limit * 100)
    axes.spines["left"].set_visible(False)
    axes.axvspan(100 / (1 + first.margin) - 100, first.margin * 100, color=BAND, zorder=0)
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    axes.grid(axis="x")
    axes.set_xlabel(f"← slower{GAP}gain, %{GAP}faster →")
    under = top + ROW * len(rows) + 0.24  # beside the label of the axis, clear of its last number
    sheet.text(left + wide + 0.12, under, "gain, % [95 %]", fontsize=SMALL, color=QUIET)
    sheet.text(INSIDE, under, "verdict", ha="right", fontsize=SMALL, color=QUIET)
    for row, one in enumerate(rows):
        middle = top + ROW * (row + 0.5)
        name = fitted([labels[one.tweakset]], left - 0.12, lines=1 if one.untouched else 2)[labels[one.tweakset]]
        label, color = (f"{name}\n{UNTOUCHED}", QUIET) if one.untouched else (name, INK)
        sheet.text(left - 0.1, middle, label, ha="right", va="center", linespacing=1.0, color=color)
        _marks(axes, row, one, limit)
        style = {"va": "center", "fontsize": SMALL}
        sheet.text(left + wide + 0.12, middle, _words(one), **style)
        sheet.text(INSIDE, middle, one.verdict, ha="right", color=VERDICTS[one.verdict]["color"], fontweight="bold", **style)


def _marks(axes: Axes, row: int, one: Comparison, limit: float) -> None:
    if one.second:
        _interval(axes, row + 0.28, one.second, {"color": FAINT, "marker": "|", "markersize": 5, "linewidth": 1.0}, limit)
    if one.primary:
        _interval(axes, row - 0.08, one.primary, {"markersize": 6.5, "linewidth": 1.6, **VERDICTS[one.verdict]}, limit)
    elif one.observed is not None:
        axes.plot([one.observed * 100], [row], **{"markersize": 6.5, **VERDICTS[one.verdict]})


def _interval(axes: Axes, at: float, effect: Effect, style: dict[str, Any], limit: float) -> None:
    low, high = max(effect.low, -limit) * 100, min(effect.high, limit) * 100
    axes.plot([low, high], [at, at], color=style["color"], linewidth=style["linewidth"], solid_capstyle="butt", zorder=2)
    if abs(effect.gain) <= limit:
        axes.plot([effect.gain * 100], [at], zorder=3, **style)
    for end, cut, mark in ((low, effect.low < -limit, "<"), (high, effect.high > limit, ">")):
        if cut:
            axes.plot([end], [at], marker=mark, color=style["color"], markersize=5, clip_on=False)


def _words(one: Comparison) -> str:
    if one.primary:
        return minus(f"{number(one.primary.gain)} [{number(one.primary.low)}, {number(one.primary.high)}]")
    return minus(f"{number(one.observed)} [no interval]") if one.observed is not None else ""


def _baseline(rows: Sequence[Comparison], scene: Scene) -> str:
    """Write what 0 stands for: a gain without its base says nothing."""
    rows = without_guards(rows)
    first = rows[0]
    values = {effect.metric.name: effect.baseline for one in rows for effect in (one.primary, one.second) if effect}
    name = first.primary_metric.name
    for cell in (cell for run in scene.runs for cell in run.cells if run.origin == first.baseline_run and not values):
        if (cell.study, cell.workload, cell.tweakset) == (first.study, first.workload, first.baseline) and name in cell.metrics:
            values[name] = cell.metrics[name]
    shown = [f"{(measure := measure_of(name, [value])).name} {measure.value(value)}" for name, value in values.items()]
    return f"0 = {first.baseline}{': ' if shown else ''}{', '.join(shown)}"


def _notes(comparisons: Sequence[Comparison]) -> list[str]:
    """Say why a row has no interval, and why one whose interval leaves out 0 may have shown nothing all the same."""
    found = [one for one in comparisons if one.verdict == "inconclusive" and one.primary and one.primary.low * one.primary.high > 0]
    chance = (
        "An interval that leaves out 0 can be inconclusive: verdicts stand on p-values adjusted for all {} contrasts, of which one in 20 "
        "would leave it out by chance. Inconclusive does not mean 'no change'."
    )
    notes = [chance.format(max(one.family for one in found))] if found else []
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in comparisons:
        if one.primary is None or one.verdict == "not comparable":
            what = "Not comparable:" if one.verdict == "not comparable" else "No interval for"
            reasons.setdefault((what, one.reason), []).append(f"{one.tweakset} ({one.workload})")
    return notes + [f"{what} {', '.join(names)}: {reason}" for (what, reason), names in reasons.items()]
