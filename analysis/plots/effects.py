"""What tweak sets do: their effects with intervals, and which keys each set changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from analysis.summary import SECTIONS, changes
from analysis.terms import Comparison, Effect, Metric, Run
from analysis.verdict import without_guards
from analysis.wording import number, probability, spoken
from control.names import undigested

from .labels import arm_labels, fit, fitted, fitted_arms, joined, judged_by_key, measure_of, minus, room_for
from .marks import (
    FASTER,
    FASTER_AXIS,
    FRAME,
    SLOWER,
    SMALLEST_SCALE,
    UNPROVEN,
    VERDICTS,
    Axes,
    Ends,
    Mark,
    MarkRow,
    Style,
    ends_of,
    forest_section,
    margin_band,
    names_beside,
    reach_of,
    short_gain,
    tile,
)
from .page import Entry, Page, Section, Spec, body_width, dot, fill, line, margin_entry, verdict_entries
from .scene import NothingToDraw, Panel, Scene, called, changes_something, comparison_of, contrasts_of, in_order, measured, panels_of, some
from .style import BAND, FAINT, GRID, INK, QUIET, SMALL, picture

UNTOUCHED = "(changes nothing)"
HEADS = [("gain, % [95 %]", 0.12), ("verdict", 0)]


@picture(10, "Effect of each tweak set", MONITORED=False)
def forest(scene: Scene) -> Spec:
    """Which tweak sets changed the speed of the work, by how much, and how surely."""
    every = scene.comparisons
    some(every, "there is nothing to compare: no tweak set but the baseline was run")
    some((comparison for comparison in every if gain_of(comparison) is not None), f"nothing could be compared: {_reasons(every)}")
    labels = arm_labels(scene.runs, [comparison.tweakset for comparison in every])
    left = room_for([*labels.values(), UNTOUCHED], 1.75)
    claimed = [_ends(comparison)[0] for comparison in every if comparison.verdict in {"improved", "regressed"}]
    reach = reach_of(map(_ends, every), 150 * max(comparison.margin for comparison in every), claimed)
    sections = []
    for panel in panels_of(scene):
        # What changed nothing stands last: it shows how far the same machine differs from itself.
        ordered = sorted(
            contrasts_of(scene, panel), key=lambda row: (row.untouched, -math.inf if (gain := gain_of(row)) is None else -gain)
        )
        rows = [
            MarkRow(
                fit(labels[row.tweakset], left - 0.12, lines=1 if row.untouched else 2),
                [_mark(row)],
                UNTOUCHED if row.untouched else "",
                ends_of(row.second, 100) if row.second else None,
                QUIET if row.untouched else INK,
                tall=0.29,
            )
            for row in ordered
        ]
        if rows:
            settings: Style = {"left": left, "right": 2.6, "label": FASTER_AXIS, "heads": HEADS, "reach": reach}
            band = margin_band(ordered[0].margin)
            sections.append(forest_section(panel.title, rows, _baseline(ordered, panel), run=panel.run, band=band, **settings))
    lead = (
        "Right of 0 is faster than the baseline, left of it slower. Marks: gain in the primary metric, which is the first that is named "
        "beside each workload; lines: its 95 % interval."
    )
    if judged_by_key(scene.runs):
        lead += " Each is a whole tweak set; what single keys do is judged in “Effect of each key”."
    legend: list[Entry | None] = [
        *verdict_entries(VERDICTS, {comparison.verdict for comparison in every if gain_of(comparison) is not None})
    ]
    if not any(comparison.primary for comparison in every):
        legend = [entry._replace(style={**entry.style, "linestyle": "none"}) for entry in legend if entry]
    if any(comparison.second for comparison in every):
        legend.append(line("gain in the second metric", FAINT, marker="|", markersize=6))
    legend.append(margin_entry(comparison.margin for comparison in every))
    return Spec(lead, sections, legend, _notes(every))


def _mark(comparison: Comparison) -> Mark:
    figures = gain_with_interval(comparison.primary) if comparison.primary else ""
    if comparison.observed is not None and not comparison.primary:
        figures = minus(f"{number(comparison.observed)} [no interval]")
    tooltip = f"{comparison.tweakset} · {comparison.workload}: {figures} % against {comparison.baseline}, {spoken(comparison.verdict)}"
    tooltip += f", {comparison.pairs} of {comparison.blocks} blocks" if comparison.pairs else ""
    if comparison.p_adjusted is not None:
        tooltip += f", p {probability(comparison.p_adjusted)} adjusted for {comparison.family}"
    return Mark(_ends(comparison), VERDICTS[comparison.verdict], (figures, spoken(comparison.verdict)), tooltip=tooltip)


def _reasons(comparisons: Iterable[Comparison]) -> str:
    return "; ".join(dict.fromkeys(comparison.reason.rstrip(".") for comparison in comparisons))


def gain_of(comparison: Comparison) -> float | None:
    """Return the gain in the primary metric, judged or only observed."""
    return comparison.primary.gain if comparison.primary else comparison.observed


def _ends(comparison: Comparison) -> Ends:
    if comparison.primary:
        return ends_of(comparison.primary, 100)
    return None if comparison.observed is None else 100 * comparison.observed, None, None


def gain_with_interval(effect: Effect) -> str:
    """Write `+2.1 [+1.0, +3.2]`, in percent."""
    return minus(f"{number(effect.gain)} [{number(effect.low)}, {number(effect.high)}]")


def _baseline(rows: Sequence[Comparison], panel: Panel) -> str:
    """Write what 0 stands for: a gain without its base says nothing. Contrasts that rest on different blocks have each their own."""
    rows = without_guards(rows)
    metric, baseline = rows[0].primary_metric, rows[0].baseline
    values: dict[Metric, list[float]] = {}
    for effect in (effect for row in rows for effect in (row.primary, row.second) if effect):
        values.setdefault(effect.metric, []).append(effect.baseline)
    if not values and (own := [cell.metrics[metric.name] for cell in measured(panel, baseline) if metric.name in cell.metrics]):
        values = {metric: own}
    shown = []
    for metric, own in values.items():
        measure = measure_of(metric, own)
        shown.append(f"{measure.name} {' to '.join(dict.fromkeys(map(measure.value, (min(own), max(own)))))}")
    return f"0 = {baseline}{': ' if shown else ''}{', '.join(shown)}"


def _notes(comparisons: Sequence[Comparison]) -> list[str]:
    """Say why a row has no interval, and why one whose interval leaves out 0 may have shown nothing all the same."""
    families = [
        comparison.family
        for comparison in comparisons
        if comparison.verdict == "inconclusive" and comparison.primary and comparison.primary.low * comparison.primary.high > 0
    ]
    chance = (
        "An interval that leaves out 0 may still not tell: verdicts stand on p-values adjusted for all {} contrasts, of which one in 20 "
        "would leave it out by chance. “Can't tell” is not “the same”."
    )
    reasons: dict[tuple[str, str], list[str]] = {}
    for comparison in comparisons:
        if comparison.primary is None or comparison.verdict == "not comparable":
            what = "Not comparable:" if comparison.verdict == "not comparable" else "No interval for"
            reasons.setdefault((what, comparison.reason), []).append(f"{comparison.tweakset} ({undigested(comparison.workload)})")
    notes = [f"{what} {', '.join(names)}: {reason}" for (what, reason), names in reasons.items()]
    return [chance.format(max(families)), *notes] if families else notes


KEY_ROW, NARROWEST = 0.19, 0.125
SECTION_TITLES = {
    "boot": "boot tokens",
    "ulimit": "limits",
    "service": "service units",
    "environment": "variables",
    "script": "changed by scripts",
}


class Key(NamedTuple):
    """A parameter: the title of its section, its name, and tweak set → requested value."""

    section: str
    name: str
    values: Mapping[str, str]


@picture(60, "Parameters and effects", MONITORED=False)
def parameters(scene: Scene) -> Spec:
    """Which kernel parameter is in which tweak set, and what each set as a whole did to the speed."""
    panels = panels_of(scene)
    tweaksets = {name: run.tweaksets[name] for run in scene.runs for name in in_order(run, run.tweaksets.values())}
    ran = {arm for panel in panels for arm in panel.arms}
    names = [name for name, tweakset in tweaksets.items() if changes_something(tweakset) and name in ran]
    keys = some(keys_of(scene.runs, names), "no tweak set that was measured asks for any kernel parameter")
    judged = {(at, name): comparison_of(scene, panel, name) for at, panel in enumerate(panels) for name in names}
    proven = {place for place, comparison in judged.items() if comparison and called(scene, comparison)}
    legend = [
        dot("changed alone: an effect framed there is this key's" if proven else "changed alone", size=6),
        dot("changed together with others", size=6, markerfacecolor="white"),
        fill("faster", FASTER, FASTER),
        fill("slower", SLOWER, SLOWER),
        fill("framed: shown to differ; faint: not", "white", **{**FRAME, "edge": INK, "edgecolor": INK}),
    ]
    lead = "Above: gain of each tweak set as a whole, %, in the workload's primary metric. Below: the keys it changes. "
    if judged_by_key(scene.runs):
        lead += f"Each against {scene.runs[0].baseline}; what single keys do is judged in “Effect of each key”."
    else:
        lead += "Keys that were changed together cannot be told apart: to know which one did it, measure a set with that key alone."
    if not proven:
        doubted = any(comparison and comparison.verdict in {"improved", "regressed"} for comparison in judged.values())
        lead += " A copy of stock differs as well (A/A): no set is called." if doubted else " No set was shown to differ."
    titles = [panel.title for panel in panels]
    left = max(room_for([key.name for key in keys], 2.45, SMALL), room_for([*titles, *(key.section for key in keys)], 2.45))
    column = min(0.55, (body_width() - left - 1.3) / len(names))
    if column < NARROWEST:
        raise NothingToDraw(f"{len(names)} tweak sets are too many columns for one page: nobody could read their names")
    heads = fitted_arms(scene.runs, names, 1.6, SMALL, lines=2 if column > 0.3 else 1)
    above = room_for(arm_labels(scene.runs, names).values(), 1.7, SMALL)
    rows: list[Key | str] = [*titles, ""]
    for key in keys:
        rows += [key] if key.section in rows else [key.section, key]
    tall = KEY_ROW * len(rows)

    def draw(sheet: Page, top: float) -> None:
        top += above
        style: Style = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": SMALL, "linespacing": 1.05}
        for at, name in enumerate(names):
            sheet.text(left + column * (at + 0.5), top - 0.05, heads[name], **style)
        names_beside(sheet, top, left, titles, KEY_ROW)
        ends: Style = {"xlim": (0, len(names)), "ylim": (len(rows), 0), "xticks": [], "yticks": []}
        axes = sheet.axes(left, top, column * len(names), tall, **ends)
        axes.spines[:].set_visible(False)
        axes.vlines(range(len(names) + 1), 0, len(titles), color=GRID, linewidth=0.6, zorder=0.5)
        axes.vlines(range(len(names) + 1), len(titles) + 1, len(rows), color=GRID, linewidth=0.6, zorder=0.5)
        gains = {place: gain for place, comparison in judged.items() if comparison and (gain := gain_of(comparison)) is not None}
        largest = max([SMALLEST_SCALE, *map(abs, gains.values())])
        for (row, name), comparison in judged.items():
            place = row, names.index(name)
            if (row, name) in gains:
                gain, sure = gains[row, name], (row, name) in proven
                tile(axes, place, gain / largest * (1 if sure else UNPROVEN), short_gain(gain, column), framed=sure)
            elif comparison:
                axes.text(place[1] + 0.5, place[0] + 0.52, "×", color=QUIET, ha="center", va="center", fontsize=SMALL, zorder=4)
        _membership(sheet, top, (left, left + column * len(names) + 0.1), axes, rows, names)

    return Spec(lead, [Section("", above + tall + 0.1, draw)], legend)


def keys_of(runs: Sequence[Run], names: Sequence[str]) -> list[Key]:
    """List every parameter that some tweak sets change, section by section; of several runs, the first that has a set speaks for it."""
    every: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        for setting in changes(next(run for run in runs if name in run.tweaksets), name):
            values = every.setdefault((setting.kind, setting.key), {})
            # Boot tokens may come twice (hugepagesz, hugepages): all of them count.
            values[name] = f"{values[name]} {setting.value}" if name in values else setting.value
    order = {section: place for place, section in enumerate(SECTIONS)}
    ordered = sorted(every.items(), key=lambda item: order.get(item[0][0], len(order)))
    return [Key(SECTION_TITLES.get(section, section), key, values) for (section, key), values in ordered]


def _membership(sheet: Page, top: float, sides: tuple[float, float], axes: Axes, rows: Sequence[Key | str], names: Sequence[str]) -> None:
    """Draw a dot where a tweak set changes a key, between its name and its values, which stand at these sides."""
    left, right = sides
    keys = {row: key for row, key in enumerate(rows) if isinstance(key, Key)}
    alone = {name for name in names if sum(name in key.values for key in keys.values()) == 1}
    shown = fitted([key.name for key in keys.values()], left - 0.15, SMALL, lines=1)
    bold: Style = {"va": "center", "fontsize": SMALL, "fontweight": "bold"}
    first = rows.index("") + 1
    sheet.text(right, top + KEY_ROW * (first + 0.5), "values", **bold)
    for row, section in enumerate(rows[first:], first):
        if isinstance(section, str):
            sheet.text(left - 0.1, top + KEY_ROW * (row + 0.5), section, ha="right", **bold)
            axes.axhline(row + 1, color=FAINT, linewidth=0.7)
    for row, key in keys.items():
        middle = top + KEY_ROW * (row + 0.5)
        axes.axhspan(row, row + 1, color=BAND if row % 2 else "white", linewidth=0, zorder=0)
        sheet.text(left - 0.1, middle, shown[key.name], ha="right", va="center", fontsize=SMALL)
        values = fit(joined(key.values.values()), body_width() - right, SMALL)
        sheet.text(right, middle, values, va="center", fontsize=SMALL, color=QUIET)
        for place, name in enumerate(names):
            if name in key.values:
                face = INK if name in alone else "white"
                axes.plot(place + 0.5, row + 0.5, "o", markersize=6, color=INK, markerfacecolor=face, markeredgewidth=1.1)
