"""Pictures of factorial designs: effects beside chance, each key at its levels, and keys in company."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analysis.plots.labels import Measure, fit, fitted, measure_of, minus, width_in
from analysis.plots.marks import Ends, Style, above, known, scaled
from analysis.plots.marks import lines as draw_lines
from analysis.plots.page import INSIDE, Entry, Page, SmallPanel, SmallPanels, Spec, dot, line, margin_entry
from analysis.plots.style import AGAIN, BAND, COLOURS, DASHES, FAINT, INK, MARKERS, QUIET, SMALL, picture
from analysis.wording import digits
from control.t_test import ALPHA, t_quantile

from .pictures_keys import CALLED, FACTORIAL, MARKS, KeyPart, parts_of, shown, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from analysis.plots.scene import Scene

    from .terms import Effects, Level, Pair, Term

NORMAL_LEFT, NORMAL_TALL = 0.5, 2.5
FEWEST, MOST_NAMES = 3, 12  # effects; and names, of the largest
SINGLE: Style = {"color": QUIET, "linewidth": 1.0, "linestyle": (0, (2, 2))}
FAMILY: Style = {"color": INK, "linewidth": 1.2, "linestyle": (0, (6, 2))}
NOTHING: Style = {"color": AGAIN, "marker": "o", "markersize": 5, "markerfacecolor": "white"}


class Dots(NamedTuple):
    """Sizes of effects in ascending order with their names and signs; the margins beyond which one is called, and the slope of chance."""

    names: tuple[str, ...]
    sizes: np.ndarray
    signs: np.ndarray
    single: float | None
    family: float | None
    slope: float


@picture(
    14,
    "Effects against chance (half-normal plot)",
    "Which effects of a two-level design are larger than chance makes the largest of so many.",
    DESIGNS=FACTORIAL,
)
def half_normal(scene: Scene) -> Spec:
    """A section a workload: size of each effect to the right, its place among so many chance effects upwards.

    Effects of nothing lie on a line through 0; what stands off it to the right is an effect.

    Source: Daniel, Technometrics 1 (1959); margins of an unreplicated design: Lenth, Technometrics 31 (1989).
    """
    reason = "the design is none of two levels with at least three effects"
    parts = parts_of(scene, lambda part: len(_estimates(part.effects)) >= FEWEST, reason)
    legend = [
        dot("raises the speed", COLOURS[0], "^", 6),
        dot("lowers it", COLOURS[1], "v", 6),
        dot("not told from chance", AGAIN, markerfacecolor="white"),
        line("chance alone", FAINT, 1.2),
        Entry("margin of one effect", SINGLE),
        Entry("margin of all together", FAMILY),
    ]
    lead = (
        "A mark an effect, by its size. Where keys do nothing, marks lie near the grey line; one to the right of the long-dashed margin is "
        "larger than chance makes the largest of all in 19 of 20 such designs."
    )
    lenth = {part.effects.lenth is not None for part in parts}
    notes = [
        "Nothing was replicated: the margins are Lenth's, from the effects themselves, on the assumption that most are nothing."
        if True in lenth
        else "",
        "An interaction (×) is drawn on the scale of a main effect, half of what the table of effects calls its effect."
        if any(part.terms("interaction") for part in parts)
        else "",
        "Replicated cells: the margins are Student's, from the spread of cells of one point; all together by Šidák."
        if False in lenth
        else "",
    ]
    return Spec(lead, [part.section(0.2 + NORMAL_TALL + 0.46, partial(_normal, part=part)) for part in parts], legend, notes)


def _estimates(effects: Effects) -> list[tuple[str, float]]:
    """All contrasts on one scale: that of main effects, of which an interaction's coefficient makes twice."""
    terms = [term for term in effects.terms if term.means in {"main", "interaction"}]
    names = {term.label: " × ".join(term.factors) for term in terms}
    if effects.lenth is not None:
        return [(names.get(label, label), value) for label, value in effects.lenth.estimates]
    return [(names[term.label], 2 * term.coefficient) for term in terms if term.coefficient is not None]


def dots_of(effects: Effects) -> Dots:
    """Order the effects by size and find the margins: Lenth's, or Student's where cells were replicated."""
    result = sorted(_estimates(effects), key=lambda estimate: abs(estimate[1]))
    scale = 1.0 if effects.observed.scale == "raw" else 100.0
    sizes, signs = scale * np.abs([value for _, value in result]), np.sign([value for _, value in result])
    # The standard error of a main effect; in an orthogonal design all have the same.
    errors = [term.se for term in effects.terms if term.means == "main" and term.se is not None]
    error = float(np.median(errors)) if errors and effects.error_df > 0 else None
    single = family = None
    if effects.lenth is not None:
        error, single, family = effects.lenth.pse, scale * effects.lenth.me, scale * effects.lenth.sme
    elif error is not None:
        # Sidak's margin: all effects together stay inside it 19 times in 20 where there is nothing.
        levels = (1 - ALPHA / 2, (1 + (1 - ALPHA) ** (1 / len(result))) / 2)
        single, family = (scale * error * t_quantile(level, effects.error_df) for level in levels)
    slope = scale * error if error else float(np.median(sizes)) / 0.6745
    return Dots(tuple(name for name, _ in result), sizes, signs, single, family, slope)


def quantiles(count: int) -> np.ndarray:
    """Where the sizes of `count` chance effects are expected, in standard errors: shape (count,), ascending."""
    from scipy.special import ndtri

    return np.asarray(ndtri(0.5 + 0.5 * (np.arange(1, count + 1) - 0.5) / count))


def _normal(sheet: Page, top: float, part: KeyPart) -> None:
    dots = dots_of(part.effects)
    heights = quantiles(len(dots.sizes))
    margins = [
        (value, style, word) for value, style, word in ((dots.single, SINGLE, "one"), (dots.family, FAMILY, "all")) if value is not None
    ]
    right = 1.08 * max([float(dots.sizes[-1]), *(value for value, _, _ in margins)]) or 1.0
    highest = 1.12 * float(heights[-1])
    wide = INSIDE - NORMAL_LEFT - 0.05
    axes = sheet.axes(NORMAL_LEFT, top + 0.2, wide, NORMAL_TALL, xlim=(0, right), ylim=(0, highest), grid="x")
    unit = measure_of(part.effects.observed.metric).label if part.raw else "size of effect, % of speed (100 × |log ratio|)"
    axes.set(xlabel=unit, ylabel="expected of chance, standard errors")
    reach = min(right, highest * dots.slope)
    axes.plot([0, reach], [0, reach / dots.slope if dots.slope else 0], color=FAINT, linewidth=1.2, zorder=1)
    last = -math.inf
    for margin, style, word in reversed(margins):  # what each is stands above it, unless the two would lie over each other
        axes.axvline(margin, zorder=1, **style)
        text = f"{word} {digits(margin, 3)}"
        if math.isinf(last) or (last - margin) * wide / right > width_in(text, SMALL) + 0.1:
            above(axes, margin, text)
        last = margin
    for at, (size, sign) in enumerate(zip(dots.sizes, dots.signs, strict=True)):
        beyond = dots.family is not None and size > dots.family
        style = {"color": COLOURS[0 if sign > 0 else 1], "marker": "^" if sign > 0 else "v", "markersize": 7} if beyond else NOTHING
        axes.plot([size], [heights[at]], linestyle="none", zorder=3, **style)
    _dot_names(axes, dots, heights, right / wide, raw=part.raw)


def _dot_names(axes: Axes, dots: Dots, heights: np.ndarray, inch: float, *, raw: bool) -> None:
    """Name what is beyond the margin of one effect, the largest where none is; beside its mark, on the side where there is room."""
    named = [at for at, size in enumerate(dots.sizes) if dots.names[at] and dots.single is not None and size > dots.single]
    named = named[-MOST_NAMES:] or [at for at in range(len(dots.sizes)) if dots.names[at]][-1:]
    fit = fitted([dots.names[at] for at in named], 2.3, SMALL, lines=1)
    lowest = math.inf
    for at in reversed(named):
        size, beyond = float(dots.sizes[at]), dots.family is not None and dots.sizes[at] > dots.family
        value = dots.signs[at] * size
        text = f"{fit[dots.names[at]]} {minus(f'{value:+.3g}' if raw else f'{value:+.1f}')}"
        leftward = size / inch > width_in(text, SMALL, "bold") + 0.25
        lowest = min(float(heights[at]), lowest - 0.16 * axes.get_ylim()[1] / NORMAL_TALL)
        style: Style = {"fontweight": "bold", "color": INK} if beyond else {"color": QUIET}
        style["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
        place = size + (-0.12 if leftward else 0.12) * inch
        axes.text(place, lowest, text, ha="right" if leftward else "left", va="center", fontsize=SMALL, zorder=2, **style)


def _margin(part: KeyPart) -> tuple[float, ...]:
    """Return how far the margin reaches around the mean of all cells; it is always in view, so that noise does not fill a picture."""
    margin = part.effects.observed.margin
    return (_mean(part) / (1 + margin), _mean(part) * (1 + margin)) if margin and not part.raw else ()


def _mean(part: KeyPart) -> float:
    return part.effects.mean if part.raw else math.exp(part.effects.mean)


def _levels(panel: SmallPanel, part: KeyPart, ends: Sequence[float], measure: Measure, levels: Sequence[str]) -> None:
    """Set the scales of a panel over the levels of a key; the first panel of a row has the numbers and their unit."""
    low, high = min(*ends, *_margin(part)), max(*ends, *_margin(part))
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    panel.axes.set(ylim=((low - room) * measure.scale, (high + room) * measure.scale), xlim=(-0.45, len(levels) - 0.55))
    panel.axes.tick_params(axis="y", labelleft=panel.first)
    if panel.first:
        tall = panel.axes.get_position().height * panel.sheet.height
        panel.axes.set_ylabel(measure.label if width_in(measure.label, SMALL) < tall + 0.4 else measure.unit or measure.label)
    if margin := _margin(part):
        panel.axes.axhspan(*(end * measure.scale for end in margin), color=BAND, linewidth=0, zorder=0)
    panel.axes.set_xticks(range(len(levels)), fitted(levels, panel.wide / len(levels) - 0.04, SMALL, lines=1).values())


def _effect_text(part: KeyPart, term: Term) -> str:
    return words(part, shown(part, term)) + ("" if part.raw else " %")


FACTORS = SmallPanels(4, above=0.50, tall=1.15, below=0.34, left=0.2, start=0.36)


@picture(16, "Main effects", "How the work went at each level of each key, on average over the levels of the others.", DESIGNS=FACTORIAL)
def main_effects(scene: Scene) -> Spec:
    """Small panels, one a key, all on the scale of the metric; the thin line through all is the mean of everything."""
    parts = parts_of(scene, lambda part: bool(part.effects.levels), "the design has no average over the levels of other keys")
    verdicts = {term.verdict for part in parts for term in part.terms("main") if term.verdict in CALLED}
    legend = [
        line("mean at a level, with 95 % interval", INK, 1.2, marker="o", markersize=5),
        *(line(word, MARKS[word]["color"], 1.2, marker="o", markersize=5) for word in MARKS if word in verdicts),
        line("mean of all cells", FAINT, 1.0, linestyle=(0, (3, 2))),
        margin_entry((part.effects.observed.margin for part in parts), "±{}, the margin"),
    ]
    lead = (
        "A panel a key, the strongest first, all on one scale: a flat line is a key that does nothing. The gain is from the first level "
        "to the last."
    )
    notes = ["No intervals: nothing was replicated."] if any(level.low is None for part in parts for level in part.effects.levels) else []
    if any(term.verdict in CALLED for part in parts for term in part.terms("interaction")):
        notes.append("Keys interact here: an average over the levels of the others hides that; see the interactions.")
    sections = [part.section(FACTORS.height(len(_by_factor(part.effects))) + 0.08, partial(_factors, part=part)) for part in parts]
    return Spec(lead, sections, legend, notes)


def _by_factor(effects: Effects) -> dict[str, list[Level]]:
    result: dict[str, list[Level]] = {}
    for level in effects.levels:
        result.setdefault(level.factor, []).append(level)

    def span(levels: Sequence[Level]) -> float:
        return max(level.deviation for level in levels) - min(level.deviation for level in levels)

    return dict(sorted(result.items(), key=lambda item: -span(item[1])))


def _factors(sheet: Page, top: float, part: KeyPart) -> None:
    factors = _by_factor(part.effects)
    every = known((level.mean, level.low, level.high) for levels in factors.values() for level in levels)
    measure = measure_of(part.effects.observed.metric, every)
    mains = {term.factors[0]: term for term in part.terms("main")}
    for (name, levels), panel in FACTORS.draw(sheet, top, factors.items(), grid="y", most={"y": 4}):
        _levels(panel, part, every, measure, [level.level for level in levels])
        panel.axes.axhline(_mean(part) * measure.scale, color=FAINT, linewidth=1.0, linestyle=(0, (3, 2)), zorder=1)
        term = mains.get(name)
        called = term is not None and term.verdict in CALLED
        color = MARKS[term.verdict]["color"] if term is not None and called else INK
        points = [(x, scaled((level.mean, level.low, level.high), measure.scale)) for x, level in enumerate(levels)]
        draw_lines(panel.axes, points, {"color": color, "marker": "o", "markersize": 4.5})
        weight = "bold" if called else "normal"
        shown_name = fitted(factors, panel.wide, SMALL, lines=2, weight="bold")[name]
        panel.text(FACTORS.above - 0.20, shown_name, va="bottom", fontweight=weight, linespacing=1.0)
        if term is not None:
            panel.text(FACTORS.above - 0.17, _effect_text(part, term), color=color if called else QUIET)


PAIRS, MOST_PAIRS = SmallPanels(3, above=0.86, tall=1.3, below=0.5, left=0.25, start=0.33), 6


@picture(18, "Interactions", "Whether a key does something else in the company of another: lines that are not parallel.", DESIGNS=FACTORIAL)
def interactions(scene: Scene) -> Spec:
    """Small panels, one a pair of keys, the strongest interactions first; a line a level of the second key."""
    reason = "the design cannot tell interactions of two keys from the effects of single keys"
    parts = parts_of(scene, lambda part: bool(_strongest(part)), reason)
    lead = (
        "A panel a pair of keys, the strongest interactions first: along it the levels of the first key, a line a level of the second. "
        "Parallel lines: each does the same whatever the other is set to. The number is by how much the effect of one changes."
    )
    legend = [
        line("mean of the cells at two levels", INK, 1.2, marker="o", markersize=5),
        margin_entry((part.effects.observed.margin for part in parts), "±{} around the mean of all"),
    ]
    sections = [part.section(PAIRS.height(len(_strongest(part))), partial(_pairs, part=part)) for part in parts]
    notes = [note for part in parts for note in _interaction_notes(part, f"{part.title}: " if len(parts) > 1 else "")]
    return Spec(lead, sections, legend, notes)


def _strongest(part: KeyPart) -> list[tuple[Term, list[Pair]]]:
    by_size = sorted((term for term in part.terms("interaction") if len(term.factors) == 2), key=lambda term: -abs(term.effect))
    result = [(term, [pair for pair in part.effects.pairs if set(pair.factors) == set(term.factors)]) for term in by_size]
    return [(term, pairs) for term, pairs in result if len(pairs) > 2][:MOST_PAIRS]


def _pairs(sheet: Page, top: float, part: KeyPart) -> None:
    chosen = _strongest(part)
    measure = measure_of(part.effects.observed.metric, [pair.mean for _, pairs in chosen for pair in pairs])
    every = known(_pair_ends(part, pair) for _, pairs in chosen for pair in pairs)
    for (term, pairs), panel in PAIRS.draw(sheet, top, chosen, grid="y", most={"y": 4}):
        along, across = (list(dict.fromkeys(pair.levels[side] for pair in pairs)) for side in (0, 1))
        _levels(panel, part, every, measure, along)
        panel.axes.set_xlabel(fit(pairs[0].factors[0], panel.wide, SMALL))
        where = {pair.levels: pair for pair in pairs}
        room = (panel.wide - 0.1) / len(across)
        names = fitted(across, room - 0.30, SMALL, lines=1)
        for at, level in enumerate(across):
            look: Style = {"color": COLOURS[at % len(COLOURS)], "marker": MARKERS[at % len(MARKERS)], "linestyle": DASHES[at % len(DASHES)]}
            offset = (at - (len(across) - 1) / 2) * 0.08
            cells = [(x + offset, where[first, level]) for x, first in enumerate(along) if (first, level) in where]
            points = [(x, scaled(_pair_ends(part, pair), measure.scale)) for x, pair in cells]
            draw_lines(panel.axes, points, look | {"markersize": 4.5})
            left, middle = panel.left + at * room, panel.top + PAIRS.above - 0.13
            sample = sheet.axes(left, middle - 0.06, 0.24, 0.12, xlim=(0, 2), ylim=(-1, 1), xticks=[], yticks=[])
            sample.axis("off")
            sample.plot([0, 1, 2], [0, 0, 0], markersize=4.5, linewidth=1.3, markevery=[1], **look)
            sheet.text(left + 0.27, middle, names[level], fontsize=SMALL, va="center")
        called = term.verdict in CALLED
        first, second = fitted(pairs[0].factors, panel.wide - 0.1, SMALL, lines=1, weight="bold").values()
        panel.text(0.08, f"{first} ×\n{second}", linespacing=1.1, fontweight="bold" if called else "normal")
        panel.text(0.42, _effect_text(part, term), color=MARKS[term.verdict]["color"] if called else QUIET)


def _pair_ends(part: KeyPart, pair: Pair) -> Ends:
    """Return the mean of some cells with its 95 % interval, from the common error; without, where there is none."""
    effects = part.effects
    if effects.error_ms is None or effects.error_df < 1 or pair.n < 1:
        return pair.mean, None, None
    half = t_quantile(1 - ALPHA / 2, effects.error_df) * math.sqrt(effects.error_ms / pair.n)
    low, high = (pair.mean - half, pair.mean + half) if part.raw else (pair.mean * math.exp(-half), pair.mean * math.exp(half))
    return pair.mean, low, high


def _interaction_notes(part: KeyPart, name: str) -> list[str]:
    notes = []
    if (count := len(part.terms("interaction"))) > MOST_PAIRS:
        notes.append(f"{name or 'Shown: '}the {MOST_PAIRS} strongest of {count} interactions.")
    aliased = [term for term, _ in _strongest(part) if term.aliases]
    notes += [f"{name}{' × '.join(one.factors)} cannot be told from {', '.join(one.aliases)}." for one in aliased[:3]]
    return notes + ([] if part.effects.error_ms is not None else [f"{name or 'Shown: '}no intervals, for nothing was replicated."])
