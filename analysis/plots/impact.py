"""Kernel-parameter impact: throughput of each tweak set beside how many parameters of which section it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.summary import changes, sections, throughput_samples_per_s
from analysis.wording import digits, number

from .lettering import room_for
from .measures import measure_of, minus
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .points import fitted_arms, judged_by_key, spoken
from .scene import NothingToDraw, changes_something, comparison_of, measured, panels_of
from .style import AGAIN, BAR, INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.terms import Comparison

    from .page import Page
    from .scene import Panel, Scene

TITLE = "Kernel-parameter impact"
ANSWERS = "Throughput of each tweak set beside how many kernel parameters it changes, section by section."
ORDER = 55
MONITORED = False

ROW, VALUE, COUNTS, VERDICT = 0.25, 1.15, 1.25, 1.0
METRIC = "throughput_samples_per_s"
# Light enough for a dark number on them, and told apart in grey by their order, which is that of the legend.
SECTIONS = {
    "sysctl": "#a6cee3",
    "boot": "#fdbf6f",
    "ulimit": "#b2df8a",
    "service": "#cab2d6",
    "environment": "#ffff99",
    "process": "#e5d8bd",
    "script": "#fb9a99",
}
OTHER = "#dddddd"


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a row a tweak set: throughput (all samples / all time), its change, the number of parameters by section, the verdict."""
    panels = [panel for panel in panels_of(scene) if any(changes_something(panel.run.tweaksets[arm]) for arm in panel.arms)]
    panels = [panel for panel in panels if _throughput(panel)]
    if not panels:
        raise NothingToDraw("no tweak set with a measured throughput asks for any kernel parameter")
    asked = {section for panel in panels for arm in panel.arms for section in sections(changes(panel.run, arm))}
    legend = [Entry("throughput", {"facecolor": BAR}, patch=True), Entry("of the baseline", {"facecolor": AGAIN}, patch=True)]
    legend += [Entry(f"{name} parameters", {"facecolor": color}, patch=True) for name, color in SECTIONS.items() if name in asked]
    lead = "Left: all samples / all time. Right: how many parameters a set changes. " + (
        "What single keys do is judged in “Effect of each key”."
        if judged_by_key(scene.runs)
        else "Which of them did it, a bundle cannot say."
    )
    left = room_for(spoken(scene.runs, [arm for panel in panels for arm in panel.arms]).values(), 2.1)
    tall = [PANEL_HEAD + ROW * len(panel.arms) + 0.46 for panel in panels]
    sheet = page(scene, TITLE, lead, sum(tall), legend)
    top = 0.0
    for panel, height in zip(panels, tall, strict=True):
        judged = measure_of(panel.metric.name, []).name
        panel_head(sheet, top, panel.title, f"in brackets: change of throughput; verdict: on {judged}")
        _panel(sheet, top + PANEL_HEAD, left, panel, scene)
        top += height
    return sheet.figure


def _throughput(panel: Panel) -> dict[str, float]:
    return {arm: value for arm in panel.arms if (value := throughput_samples_per_s(measured(panel, arm))) is not None}


def _panel(sheet: Page, top: float, left: float, panel: Panel, scene: Scene) -> None:
    height = ROW * len(panel.arms)
    wide = INSIDE - left - VALUE - COUNTS - VERDICT - 0.1
    bars = sheet.axes(left, top, wide, height, yticks=[], ylim=(len(panel.arms) - 0.5, -0.5), xlabel="throughput, samples/s")
    counts = sheet.axes(left + wide + VALUE, top, COUNTS, height, yticks=[], ylim=(len(panel.arms) - 0.5, -0.5), xlabel="parameters")
    throughput = _throughput(panel)
    names = fitted_arms([panel.run], panel.arms, left - 0.15)
    for row, arm in enumerate(panel.arms):
        middle = top + ROW * (row + 0.5)
        sheet.text(left - 0.1, middle, names[arm], ha="right", va="center", linespacing=0.95)
        if arm in throughput:
            bars.barh(row, throughput[arm], height=0.68, color=AGAIN if arm == panel.run.baseline else BAR)
        said = comparison_of(scene, panel, arm)
        change = _change(said)
        value = digits(throughput[arm]) if arm in throughput else "not measured"
        sheet.text(left + wide + 0.06, middle, f"{value} {change}".strip(), va="center", fontsize=SMALL)
        if said is not None:
            sheet.text(INSIDE, middle, said.verdict, va="center", ha="right", fontsize=SMALL, color=QUIET if said.primary is None else INK)
        _stack(counts, row, sections(changes(panel.run, arm)))
    bars.set_xlim(0, 1.04 * max(throughput.values()))
    bars.locator_params(axis="x", nbins=4)
    bars.grid(axis="x")
    most = max(sum(sections(changes(panel.run, arm)).values()) for arm in panel.arms)
    counts.set_xlim(0, max(most, 4) * 1.02)
    counts.locator_params(axis="x", nbins=4, integer=True)


def _change(said: Comparison | None) -> str:
    """Write how much more work a second was done than under the baseline, block by block where there are blocks."""
    if said is None:
        return ""
    effect = next((one for one in (said.primary, said.second) if one is not None and one.metric.name == METRIC), None)
    gain = effect.gain if effect else said.observed if said.primary_metric.name == METRIC else None
    return "" if gain is None else minus(f"({number(gain)} %)")


def _stack(axes: Axes, row: int, counts: Mapping[str, int]) -> None:
    start = 0
    for name, count in counts.items():
        axes.barh(row, count, left=start, height=0.72, color=SECTIONS.get(name, OTHER), edgecolor="white", linewidth=0.6)
        axes.text(start + count / 2, row, str(count), ha="center", va="center", fontsize=SMALL, color=INK)
        start += count
    if not counts:
        axes.text(0.1, row, "none", ha="left", va="center", fontsize=SMALL, color=QUIET)
