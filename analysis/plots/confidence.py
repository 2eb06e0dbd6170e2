"""How far to trust a run: how its estimates settled over the blocks, and how small a difference it could see."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from analysis.stats.effect import paired_effect
from analysis.terms import Comparison, Effect, Run
from analysis.verdict import without_guards
from analysis.wording import spoken, unsigned
from control.t_test import ALPHA, detectable_gain

from .effects import gain_with_interval
from .labels import fit, fitted_arms, measure_of
from .marks import BANDED, VERDICTS, margin_band
from .page import Page, Section, SmallPanel, SmallPanels, Spec, dot, fill, line, margin_entry
from .scene import NothingToDraw, Panel, Scene, comparison_of, panels_of
from .style import BAND, COLOURS, INK, QUIET, SMALL, TEXT, WRONG, picture
from .vector import set_tooltip

FEWEST, MOST = 3, 200  # blocks of an estimate
COURSES = SmallPanels(3, above=0.34, tall=0.95, below=0.42)


@picture(
    26,
    "How the estimates settled, block by block",
    "Whether more blocks would still move an estimate, and from which block on its 95 % band excluded 0 or lay inside the margin.",
    MONITORED=False,
)
def convergence(scene: Scene) -> Spec:
    """Small panels for each workload, one a tweak set, on one scale."""
    sections, margins = [], []
    for panel in panels_of(scene):
        judged = without_guards(_contrasts_of(scene, panel))
        courses = [
            (comparison, running(comparison.primary, comparison.margin, sequential=panel.run.design.sequential))
            for comparison in judged
            if comparison.primary and comparison.primary.design == "paired"
        ]
        courses = [(comparison, course) for comparison, course in courses if len(course) > 1]
        if courses:
            margins += [comparison.margin for comparison, _ in courses]
            beside = f"gain by {measure_of(panel.metric.name, [1.0]).name}, %, against {courses[0][0].baseline}"
            draw = partial(_courses, courses=courses, runs=scene.runs)
            sections.append(Section(panel.title, COURSES.height(len(courses)), draw, beside, run=panel.run))
    if not sections:
        raise NothingToDraw(f"no contrast has more than {FEWEST} blocks, so there is no course to show")
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


def _contrasts_of(scene: Scene, panel: Panel) -> list[Comparison]:
    return [comparison for arm in panel.arms if (comparison := comparison_of(scene, panel, arm))]


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


class Sensitivity(NamedTuple):
    """What a workload's blocks would show: its contrasts, and the comparisons of arms that change nothing."""

    panel: Panel
    contrasts: Sequence[Comparison]
    equal: Sequence[Comparison]

    @property
    def spreads(self) -> list[float]:
        """Standard deviations of the log ratio in a block, smallest first."""
        return sorted(contrast.primary.log_sd for contrast in self.contrasts if contrast.primary)

    def smallest(self, blocks: int, spread: float) -> float:
        """Return the smallest difference that so many blocks would show, 4 times in 5; a fraction."""
        return detectable_gain(spread, blocks, ALPHA / max(contrast.family for contrast in self.contrasts))

    def needed(self) -> int | None:
        """Return how many blocks would show a difference as small as the margin; None beyond `MOST`."""
        spread, margin = statistics.median(self.spreads), self.contrasts[0].margin
        return next((count for count in range(FEWEST, MOST + 1) if self.smallest(count, spread) <= margin), None)


@picture(
    50,
    "What the run could see",
    "How small a difference the blocks would have shown, how many it takes to see the margin, and how far equal arms differ.",
    MONITORED=False,
)
def sensitivity(scene: Scene) -> Spec:
    """A small panel a workload: difference over blocks, the run's own blocks marked."""
    results = []
    for panel in panels_of(scene):
        paired = [
            comparison
            for comparison in _contrasts_of(scene, panel)
            if comparison.primary and comparison.primary.design == "paired" and comparison.primary.log_sd > 0
        ]
        contrasts = [contrast for contrast in without_guards(paired) if contrast.pairs >= FEWEST and not contrast.guard]
        if contrasts:
            results.append(Sensitivity(panel, contrasts, [comparison for comparison in paired if comparison.untouched]))
    if not results:
        raise NothingToDraw("no contrast has blocks in which both arms were measured")
    legend = [
        line("smallest difference, %, that is shown 4 times in 5", COLOURS[0]),
        fill("from the quietest to the noisiest contrast", BANDED, BANDED),
        dot("the run's blocks", COLOURS[0]),
        dot("equal arms, how far apart", INK, "s", markerfacecolor="white"),
        fill("below the margin"),
    ]
    lead = (
        "A run sees what lies above its curve; more blocks go along it to the right. Where the curve is inside the grey margin, blocks "
        "suffice to tell “the same” from “different”. A white square above the curve: equal arms differ more than they should."
    )
    panels = SmallPanels(3 if len(results) > 2 else 2, above=0.36, tall=1.2, below=0.45)
    return Spec(lead, [panels.section("", results, _curve, xlabel="blocks", grid="y", most={"x": 5, "y": 5}, whole="x")], legend)


def _curve(panel: SmallPanel, result: Sensitivity) -> None:
    margin, needed, own = result.contrasts[0].margin, result.needed(), max(contrast.pairs for contrast in result.contrasts)
    last = max(12, 2 * own, min(needed or 0, 4 * own))
    blocks = list(range(FEWEST, last + 1))
    low, middle, high = (
        [100 * result.smallest(count, spread) for count in blocks]
        for spread in (result.spreads[0], statistics.median(result.spreads), result.spreads[-1])
    )
    here = middle[own - FEWEST]
    equal = [(comparison, abs(comparison.primary.gain)) for comparison in result.equal if comparison.primary]
    axes = panel.axes
    axes.set(xlim=(FEWEST, last), ylim=(0, 1.15 * max(2.2 * here, 200 * margin, *(100 * gain for _, gain in equal))))
    axes.axhspan(0, 100 * margin, color=BAND, linewidth=0, zorder=0)
    axes.fill_between(blocks, low, high, color=BANDED, linewidth=0, zorder=0.5)
    axes.plot(blocks, middle, color=COLOURS[0], linewidth=1.4)
    (mark,) = axes.plot([own], [here], "o", color=COLOURS[0], markersize=6, zorder=3)
    set_tooltip(mark, f"{result.panel.workload}: {own} blocks would have shown {unsigned(here / 100)}, 4 times in 5")
    for comparison, gain in equal:
        color = WRONG if comparison.verdict == "not comparable" else INK
        (mark,) = axes.plot([own], [100 * gain], "s", color=color, markerfacecolor="white", markersize=5, zorder=4)
        arms = f"{comparison.tweakset} · {comparison.workload}"
        set_tooltip(mark, f"{arms}: differs by {unsigned(gain)} from {comparison.baseline}, and both change nothing")
    panel.text(0.02, fit(result.panel.title, panel.wide, weight="bold"), fontsize=TEXT, fontweight="bold")
    enough = f"{unsigned(margin)} takes {needed or f'over {MOST}'}"
    panel.text(0.17, fit(f"{own} blocks: {here:.2g} %. {enough}", panel.wide, SMALL), color=QUIET)
