"""Effects of tweak sets with intervals, and the keys that each set changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from analysis.compare import without_guards
from analysis.summary import SECTIONS, changes
from analysis.terms import Comparison, Metric, Run
from analysis.wording import bracket, number, spoken
from control.names import undigested

from .labels import fit, fitted, joined, measure_of, minus, room_for, width_in
from .marks import (
    FASTER_AXIS,
    VERDICTS,
    Axes,
    Ends,
    Mark,
    MarkRow,
    Style,
    ends_of,
    forest_section,
    margin_band,
    reach_of,
)
from .page import Chart, Page, Plot, body_width, dot, line, margin_entry, verdict_entries
from .scene import (
    NothingToDraw,
    Panel,
    Scene,
    changes_something,
    comparison_of,
    contrasts_of,
    in_order,
    measured,
    panels_of,
    some,
)
from .style import BAND, FAINT, GRID, INK, QUIET, SMALL, picture

UNTOUCHED = "(changes nothing)"
HEADS = [("gain, % [95 %]", 0.12), ("verdict", 0)]
CALLED = frozenset({"improved", "regressed"})
CHANCE = (
    "An interval without 0 may still be undecided: verdicts use p-values adjusted for all {} "
    "contrasts, one in 20 of which would exclude 0 by chance. “Can't tell” is not “the same”."
)


@picture(10, "Effect of each tweak set", MONITORED=False)
def forest(scene: Scene) -> Plot:
    """Effect of each tweak set on the speed of the work, with its uncertainty."""
    every = some(scene.comparisons, "there is nothing to compare: only the baseline was run")
    drawn = [comparison for comparison in every if gain_of(comparison) is not None]
    some(
        drawn,
        "nothing could be compared: "
        f"{'; '.join(dict.fromkeys(comparison.reason.rstrip('.') for comparison in every))}",
    )
    left = room_for([*(comparison.tweakset for comparison in every), UNTOUCHED], 1.75)
    claimed = [_ends(comparison)[0] for comparison in every if comparison.verdict in CALLED]
    reach = reach_of(
        map(_ends, every), 150 * max(comparison.margin for comparison in every), claimed
    )
    settings: Style = {
        "left": left,
        "right": 2.6,
        "label": FASTER_AXIS,
        "heads": HEADS,
        "reach": reach,
    }
    sections = []
    for panel in panels_of(scene):
        # Untouched arms come last: they show how far the same machine differs from itself.
        rows = sorted(
            contrasts_of(scene, panel), key=lambda row: (row.untouched, -_known(row, -math.inf))
        )
        marks = [
            MarkRow(
                fit(row.tweakset, left - 0.12, lines=1 if row.untouched else 2),
                [_mark(row)],
                UNTOUCHED if row.untouched else "",
                ends_of(row.second, 100) if row.second else None,
                QUIET if row.untouched else INK,
                tall=0.29,
            )
            for row in rows
        ]
        if rows:
            band = margin_band(rows[0].margin)
            sections.append(
                forest_section(
                    panel.title, marks, _baseline(rows, panel), run=panel.run, band=band, **settings
                )
            )
    lead = (
        "Right of 0 is faster than the baseline, left of it slower. Marks: gain in the primary "
        "metric, the first metric named "
        "beside each workload; lines: its 95 % interval."
    )
    # If nothing has an interval, no mark has a line.
    looks = {
        name: look | ({} if any(one.primary for one in every) else {"linestyle": "none"})
        for name, look in VERDICTS.items()
    }
    second = (
        line("gain in the second metric", FAINT, marker="|", markersize=6)
        if any(one.second for one in every)
        else None
    )
    legend = [
        *verdict_entries(looks, {comparison.verdict for comparison in drawn}),
        second,
        margin_entry(comparison.margin for comparison in every),
    ]
    return Plot(lead, sections, legend, _notes(every))


def gain_of(comparison: Comparison) -> float | None:
    """Return the gain in the primary metric, judged or only observed."""
    return comparison.primary.gain if comparison.primary else comparison.observed


def _known(comparison: Comparison, otherwise: float) -> float:
    return otherwise if (gain := gain_of(comparison)) is None else gain


def _ends(comparison: Comparison) -> Ends:
    if comparison.primary:
        return ends_of(comparison.primary, 100)
    return None if comparison.observed is None else 100 * comparison.observed, None, None


def _mark(comparison: Comparison) -> Mark:
    figures = ""
    if effect := comparison.primary:
        figures = f"{number(effect.gain)}{bracket(effect.low, effect.high, number)}"
    elif comparison.observed is not None:
        figures = f"{number(comparison.observed)} [no interval]"
    texts = minus(figures), spoken(comparison.verdict)
    return Mark(_ends(comparison), VERDICTS[comparison.verdict], texts)


def _baseline(rows: Sequence[Comparison], panel: Panel) -> str:
    """Explain what 0 stands for: the baseline, and the range of its values over the contrasts."""
    rows = without_guards(rows)
    metric, baseline = rows[0].primary_metric, rows[0].baseline
    values: dict[Metric, list[float]] = {}
    for effect in (effect for row in rows for effect in (row.primary, row.second) if effect):
        values.setdefault(effect.metric, []).append(effect.baseline)
    values = values or {
        metric: [
            cell.metrics[metric.name]
            for cell in measured(panel, baseline)
            if metric.name in cell.metrics
        ]
    }
    shown = []
    for one, own in values.items():
        if own:
            measure = measure_of(one, own)
            ends = dict.fromkeys([measure.value(min(own)), measure.value(max(own))])
            shown.append(f"{measure.name} {' to '.join(ends)}")
    return f"0 = {baseline}{': ' if shown else ''}{', '.join(shown)}"


def _notes(comparisons: Sequence[Comparison]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for one in comparisons:
        if one.primary is None or one.verdict == "not comparable":
            reasons.setdefault(one.reason, []).append(
                f"{one.tweakset} ({undigested(one.workload)})"
            )
    notes = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
    unsure = [
        (one.family, one.primary)
        for one in comparisons
        if one.verdict == "inconclusive" and one.primary
    ]
    families = [family for family, effect in unsure if effect.low * effect.high > 0]
    return [CHANCE.format(max(families)), *notes] if families else notes


KEY_ROW, NARROWEST = 0.19, 0.125
PLAIN = frozenset({"sysctl", "script"})  # with self-explanatory keys
Keys = Mapping[str, Mapping[str, str]]


@picture(60, "Parameters and effects", MONITORED=False)
def parameters(scene: Scene) -> Plot:
    """Kernel parameters of each tweak set, and each set's effect on speed."""
    panels = panels_of(scene)
    tweaksets = {
        name: run.tweaksets[name]
        for run in scene.runs
        for name in in_order(run, run.tweaksets.values())
    }
    ran = {arm for panel in panels for arm in panel.arms}
    names = [
        name for name, tweakset in tweaksets.items() if changes_something(tweakset) and name in ran
    ]
    keys = keys_of(scene.runs, names)
    some(keys, "no measured tweak set sets a kernel parameter")
    compared = {
        (row, at): comparison
        for row, panel in enumerate(panels)
        for at, name in enumerate(names)
        if (comparison := comparison_of(scene, panel, name))
    }
    proven = {place for place, comparison in compared.items() if _called(scene, comparison)}
    legend = [
        dot("changed alone: a coloured gain above it is this key's", size=6),
        dot("changed together with others", size=6, markerfacecolor="white"),
    ]
    lead = (
        "Above: gain of each tweak set as a whole, %, in colour where it is shown to differ and "
        "copies of stock do not (A/A). It is not the gain of one key among several."
    )
    titles = [panel.title for panel in panels]
    left = max(room_for(keys, 2.45, SMALL), room_for(titles, 2.45))
    column = min(0.55, (body_width() - left - 1.3) / len(names))
    if column < NARROWEST:
        raise NothingToDraw(
            f"{len(names)} tweak sets are too many columns for one page: their names would be "
            "illegible"
        )
    above = room_for(names, 1.7, SMALL)
    heads = fitted(names, above - 0.1, SMALL, lines=2 if column > 0.3 else 1)
    rows = len(titles) + 1 + len(keys)

    def draw(sheet: Page, top: float) -> None:
        top += above
        axes = sheet.axes(
            left,
            top,
            column * len(names),
            KEY_ROW * rows,
            xlim=(0, len(names)),
            ylim=(rows, 0),
            xticks=[],
        )
        axes.spines[:].set_visible(False)
        for at, name in enumerate(names):
            style: Style = {
                "rotation": 90,
                "ha": "center",
                "va": "bottom",
                "fontsize": SMALL,
                "linespacing": 1.05,
            }
            sheet.text(left + column * (at + 0.5), top - 0.05, heads[name], **style)
        shown = [fit(name, left - 0.15) for name in titles]
        shown += [fit(name, left - 0.15, SMALL) for name in keys]
        axes.set_yticks([row + 0.5 + (row >= len(titles)) for row in range(len(shown))], shown)
        axes.tick_params(axis="y", length=0)
        _gains(axes, compared, proven, column)
        _membership(axes, len(titles) + 1, keys, names)
        for row, values in enumerate(keys.values(), len(titles) + 1):
            right = left + column * len(names) + 0.1
            text = fit(joined(values.values()), body_width() - right, SMALL)
            sheet.text(
                right, top + KEY_ROW * (row + 0.5), text, va="center", fontsize=SMALL, color=QUIET
            )

    return Plot(lead, [Chart("", above + KEY_ROW * rows + 0.1, draw)], legend)


def keys_of(runs: Sequence[Run], names: Sequence[str]) -> Keys:
    """List every parameter that tweak sets change, with set → value of the first run with it."""
    every: dict[tuple[int, str], dict[str, str]] = {}
    kinds = (*SECTIONS, "")
    for name in names:
        for setting in changes(next(run for run in runs if name in run.tweaksets), name):
            key = setting.key if setting.kind in PLAIN else f"{setting.key} ({setting.kind})"
            values = every.setdefault(
                (kinds.index(setting.kind if setting.kind in kinds else ""), key), {}
            )
            # Boot tokens may come twice (hugepagesz, hugepages): keep all.
            values[name] = f"{values[name]} {setting.value}" if name in values else setting.value
    return {key: every[kind, key] for kind, key in sorted(every, key=lambda place: place[0])}


def _called(scene: Scene, comparison: Comparison) -> bool:
    run = comparison.candidate_run
    failed = {
        (other.candidate_run, other.study, other.workload)
        for other in scene.comparisons
        if other.untouched and other.verdict == "not comparable"
    }
    failed |= {
        (run, one.observed.study, one.observed.workload)
        for one in scene.effects.get(run, ())
        if one.again_fails
    }
    place = run, comparison.study, comparison.workload
    return comparison.verdict in CALLED and place not in failed


def _gains(
    axes: Axes,
    compared: Mapping[tuple[int, int], Comparison],
    proven: set[tuple[int, int]],
    column: float,
) -> None:
    for (row, at), comparison in compared.items():
        gain, look = gain_of(comparison), VERDICTS[comparison.verdict]
        style: Style = (
            {"color": look["color"], "fontweight": "bold"}
            if (row, at) in proven
            else {"color": QUIET}
        )
        text = "×" if gain is None else _short(gain, column)
        axes.text(at + 0.5, row + 0.52, text, ha="center", va="center", fontsize=SMALL, **style)


def _short(gain: float, room_in: float) -> str:
    exact, rounded = minus(number(gain)), minus(f"{gain * 100:+.0f}")
    bare = rounded.lstrip("+\N{MINUS SIGN}")  # colour shows the sign of significant gains
    return next(
        (text for text in (exact, rounded, bare) if width_in(text, SMALL) <= 0.9 * room_in), ""
    )


def _membership(axes: Axes, first: int, keys: Keys, names: Sequence[str]) -> None:
    rows = first + len(keys)
    for begin, end in ((0, first - 1), (first, rows)):
        axes.vlines(range(len(names) + 1), begin, end, color=GRID, linewidth=0.6, zorder=0.5)
    for row in range(first, rows, 2):
        axes.axhspan(row, row + 1, color=BAND, linewidth=0, zorder=0)
    alone = {name for name in names if sum(name in values for values in keys.values()) == 1}
    for face, chosen in ((INK, alone), ("white", set(names) - alone)):
        changed = [
            (name, row)
            for row, values in enumerate(keys.values(), first)
            for name in values
            if name in chosen
        ]
        places = [names.index(name) + 0.5 for name, _ in changed], [row + 0.5 for _, row in changed]
        axes.plot(*places, "o", markersize=6, color=INK, markerfacecolor=face, markeredgewidth=1.1)
