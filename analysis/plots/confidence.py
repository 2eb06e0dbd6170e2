"""How far to trust a run: how its estimates settled over the blocks, and how small a difference it could see."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from analysis.checks import LEVEL
from analysis.stats.effect import paired_effect
from analysis.stats.power import FEWEST, blocks_needed
from analysis.terms import AGAIN, Comparison, Effect, Run
from analysis.verdict import without_guards
from analysis.wording import spoken, unsigned
from control.t_test import ALPHA, POWER, detectable_gain

from .effects import gain_with_interval
from .labels import fit, fitted_arms, measure_of, room_for
from .marks import BANDED, VERDICTS, Mark, MarkRow, Style, ends_of, forest_section, margin_band, reach_of
from .page import Page, Section, SmallPanel, SmallPanels, Spec, dot, fill, line, margin_entry
from .scene import Panel, Scene, contrasts_of, panels_of, some
from .style import BAND, COLOURS, INK, QUIET, SMALL, TEXT, WRONG, picture
from .vector import set_tooltip

FARTHEST = 8  # times the run's blocks that a curve goes to
COURSES = SmallPanels(3, above=0.34, tall=0.95, below=0.42)


@picture(26, "How the estimates settled, block by block", MONITORED=False)
def convergence(scene: Scene) -> Spec:
    """Whether more blocks would still move an estimate, and from which block on its 95 % band excluded 0 or lay inside the margin."""
    sections, margins = [], []
    for panel in panels_of(scene):
        judged = without_guards(contrasts_of(scene, panel))
        courses = [
            (comparison, running(comparison.primary, comparison.margin, sequential=panel.run.design.sequential))
            for comparison in judged
            if comparison.primary and comparison.primary.design == "paired"
        ]
        courses = [(comparison, course) for comparison, course in courses if len(course) > 1]
        if courses:
            margins += [comparison.margin for comparison, _ in courses]
            beside = f"gain by {measure_of(panel.metric, [1.0]).name}, %, against {courses[0][0].baseline}"
            draw = partial(_courses, courses=courses, runs=scene.runs)
            sections.append(Section(panel.title, COURSES.height(len(courses)), draw, beside, run=panel.run))
    some(sections, f"no contrast has more than {FEWEST} blocks, so there is no course to show")
    legend = [
        line("estimate from the blocks so far", COLOURS[0]),
        fill("its 95 % interval", BANDED, BANDED),
        margin_entry(margins, "margin: ±{}", edge=QUIET, linestyle=(0, (3, 2)), linewidth=0.6),
    ]
    lead = (
        f"From block {FEWEST} on, each point is the gain that the run would have told had it ended there. The verdict stands on the last "
        "one: who stops at the first band that excludes 0 calls more than 5 % of equals different."
    )
    return Spec(lead, sections, legend)


def running(effect: Effect, margin: float, *, sequential: bool = False) -> list[Effect]:
    """Return the effect of the first 3, 4, … blocks; the last is that of all of them."""
    base, candidate = effect.values_baseline, effect.values_candidate
    counts = range(FEWEST, len(base) + 1)
    return [paired_effect(effect.metric, base[:count], candidate[:count], margin, sequential=sequential) for count in counts]


def _courses(sheet: Page, top: float, courses: Sequence[tuple[Comparison, list[Effect]]], runs: Sequence[Run]) -> None:
    # The first bands, which are wide, must not squash the last.
    ends = [abs(end) for _, course in courses for end in (course[-1].low, course[-1].high)]
    reach = 100 * max(2 * max(comparison.margin for comparison, _ in courses), 1.3 * max(ends))
    panels = COURSES.draw(sheet, top, courses, ylim=(-reach, reach), xlabel="blocks", most={"x": 5, "y": 5}, whole="x")
    for (comparison, course), panel in panels:
        axes, last, band = panel.axes, course[-1], margin_band(comparison.margin)
        axes.axhspan(*band, color=BAND, linewidth=0, zorder=0)
        blocks = range(FEWEST, FEWEST + len(course))
        low, high, gain = ([100 * getattr(effect, end) for effect in course] for end in ("low", "high", "gain"))
        axes.fill_between(blocks, low, high, color=BANDED, linewidth=0, zorder=0.5)
        for end in band:  # also where the interval lies over the margin
            axes.axhline(end, color=QUIET, linewidth=0.6, linestyle=(0, (3, 2)), zorder=1)
        axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
        axes.plot(blocks, gain, color=COLOURS[0], linewidth=1.4, zorder=2)
        axes.plot(blocks[-1:], gain[-1:], zorder=3, markersize=6, linestyle="none", clip_on=False, **VERDICTS[comparison.verdict])
        axes.set_xlim(FEWEST, blocks[-1])
        axes.tick_params(axis="y", labelleft=panel.first)
        name = fitted_arms(runs, [comparison.tweakset], panel.wide, lines=1)[comparison.tweakset]
        panel.text(0.02, name, fontsize=TEXT)
        panel.text(0.17, gain_with_interval(last), color=QUIET)
        panel.text(0.17, spoken(comparison.verdict), right=True, fontweight="bold", color=VERDICTS[comparison.verdict]["color"])


class Curve(NamedTuple):
    """How small a difference so many blocks of a workload would show, `power` of the times, at the level `alpha`.

    `spreads` are standard deviations of the log ratio in a block: the least, the one to go by, and the largest. `own` are the blocks that
    were run, `goal` the difference that matters, a fraction.
    """

    title: str
    spreads: tuple[float, float, float]
    own: int
    goal: float
    alpha: float
    power: float = POWER

    def smallest(self, blocks: int, spread: float | None = None) -> float:
        """Return the smallest difference that so many blocks would show; a fraction."""
        return detectable_gain(self.spreads[1] if spread is None else spread, blocks, self.alpha, self.power)


CURVE_LEGEND = (
    line("smallest difference, %, that so many blocks show", COLOURS[0]),
    dot("the blocks of the run", COLOURS[0]),
    dot("the blocks it takes", COLOURS[0], "D", 4.5, markerfacecolor="white"),
)


@picture(50, "What the run could see", MONITORED=False)
def sensitivity(scene: Scene) -> Spec:
    """How small a difference the blocks would have shown, how many it takes to see the margin, and how far equal arms differ."""
    curves, equal = [], []
    for panel in panels_of(scene):
        paired = [
            comparison
            for comparison in contrasts_of(scene, panel)
            if comparison.primary and comparison.primary.design == "paired" and comparison.primary.log_sd > 0
        ]
        contrasts = [contrast for contrast in without_guards(paired) if contrast.pairs >= FEWEST and not contrast.guard]
        if contrasts:
            spreads = sorted(contrast.primary.log_sd for contrast in contrasts if contrast.primary)
            own, alpha = max(contrast.pairs for contrast in contrasts), ALPHA / max(contrast.family for contrast in contrasts)
            middle = statistics.median(spreads)
            curves.append(Curve(panel.title, (spreads[0], middle, spreads[-1]), own, contrasts[0].margin, alpha))
            equal += [(panel, comparison) for comparison in paired if comparison.untouched]
    some(curves, "no contrast has blocks in which both arms were measured")
    legend = [
        *CURVE_LEGEND,
        fill("from the quietest to the noisiest contrast", BANDED, BANDED),
        margin_entry((curve.goal for curve in curves), "below the margin of {}"),
    ]
    lead = (
        "What lies above the curve at its dot, the run shows 4 times in 5; more blocks go along it to the right. Where it is inside the "
        "grey margin, blocks suffice to tell “the same” from “different”."
    )
    note = "" if equal else "No second arm that changes nothing (stock-again) was run: how far equal arms differ is not known."
    return Spec(lead, [curve_section(curves), *([_gauge(equal)] if equal else [])], legend, [note])


def _gauge(equal: Sequence[tuple[Panel, Comparison]]) -> Section:
    """Show how far arms that change nothing lie from each other: a row a workload, on one scale with the margin."""
    margin = max(comparison.margin for _, comparison in equal)
    rows = []
    for panel, comparison in equal:
        apart = comparison.primary is not None and comparison.primary.p < LEVEL
        word = "differ" if apart else spoken(comparison.verdict)
        look: Style = {"marker": "s", "color": WRONG if apart else VERDICTS[comparison.verdict]["color"], "markerfacecolor": "white"}
        figures = gain_with_interval(comparison.primary) if comparison.primary else ""
        name = panel.title if comparison.tweakset == AGAIN else f"{panel.title} · {comparison.tweakset}"
        tooltip = f"{comparison.tweakset} · {comparison.workload}: {figures} % against {comparison.baseline}, and both change nothing"
        rows.append(MarkRow(name, [Mark(ends_of(comparison.primary, 100), look, (figures, word), tooltip=tooltip)]))
    reach = reach_of((row.marks[0].ends for row in rows), 150 * margin)
    beside = "both change nothing, so 0 is true; by chance 1 interval in 20 leaves it out"
    heads, label = [("gain, % [95 %]", 0.12), ("verdict", 0.0)], "gain of the one over the other, %"
    left = room_for([row.name for row in rows], 2.3)
    settings: Style = {"left": left, "right": 2.6, "label": label, "heads": heads, "reach": reach, "band": margin_band(margin)}
    return forest_section("Equal arms: how far apart", rows, beside, **settings)


def curve_section(curves: Sequence[Curve]) -> Section:
    """Make a section of a panel a workload: the smallest difference over blocks."""
    panels = SmallPanels(2 if len(curves) in {1, 2, 4} else 3, above=0.36, tall=1.2, below=0.45)
    return panels.section("", curves, _curve, xlabel="blocks", grid="y", most={"x": 5, "y": 5}, whole="x")


def _curve(panel: SmallPanel, curve: Curve) -> None:
    own, goal, needed = curve.own, 100 * curve.goal, blocks_needed(curve.spreads[1], curve.goal, curve.alpha, curve.power)
    last = max(12, 2 * own, math.ceil(1.1 * needed) if needed and needed <= FARTHEST * own else 0)
    blocks = list(range(FEWEST, last + 1))
    low, middle, high = ([100 * curve.smallest(count, spread) for count in blocks] for spread in curve.spreads)
    here, axes = middle[own - FEWEST], panel.axes
    axes.set(xlim=(FEWEST, last), ylim=(0, 1.15 * max(2.2 * here, 2 * goal)))
    axes.axhspan(0, goal, color=BAND, linewidth=0, zorder=0)
    axes.axhline(goal, color=QUIET, linewidth=0.8, linestyle=(0, (3, 2)))
    axes.fill_between(blocks, low, high, color=BANDED, linewidth=0, zorder=0.5)
    axes.plot(blocks, middle, color=COLOURS[0], linewidth=1.4)
    if needed and needed <= last:
        axes.plot([needed], [100 * curve.smallest(needed)], "D", color=COLOURS[0], markerfacecolor="white", markersize=4.5, zorder=3)
    (mark,) = axes.plot([own], [here], "o", color=COLOURS[0], markersize=6, zorder=3, clip_on=False)
    set_tooltip(mark, f"{curve.title}: {own} blocks show {unsigned(here / 100)}, {unsigned(curve.power)} of the times")
    panel.text(0.02, fit(curve.title, panel.wide, weight="bold"), fontsize=TEXT, fontweight="bold")
    enough = f"{own} blocks: {unsigned(here / 100)}. {unsigned(curve.goal)} takes {needed or 'over 100000'}"
    panel.text(0.17, fit(enough, panel.wide, SMALL), color=QUIET)
