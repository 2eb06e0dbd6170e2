"""What is got out of what is drawn: images/s over power, a mark an algorithm, and the front that no other beats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.ticker import MaxNLocator

from analysis.studies.power.reporting.figures import POWER, THROUGHPUT

from .lettering import fitted
from .page import INSIDE, PANEL_HEAD, Entry, page
from .power_shared import CAPPED, limited, looks, parts_of, sources
from .scene import NothingToDraw
from .style import FAINT, TEXT, WRONG, drawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.power.reporting.terms import Arm, Group, Mean

    from .page import Page
    from .power_shared import Part
    from .scene import Scene
    from .style import Look

TITLE = "Images a second for what is drawn"
ANSWERS = "Which algorithms get more out of less, and which of them are beaten in both."
ORDER = 7
REPORTS = CAPPED

SHARED = "Bars hold what all algorithms of a block have in common too: who differs from whom is paired by block, in a picture of its own."
TALL, BELOW, LEFT, GAP = 1.9, 0.55, 0.62, 0.35


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a task, two beside each other."""
    parts = parts_of(scene)
    panels = [(part, group) for part in parts for group in part.side.groups if _known(group)]
    if not panels:
        raise NothingToDraw("nothing read what was drawn: there is no sensor of power and no measure of activity")
    style = looks(parts)
    shown = {arm.name for _, group in panels for arm in _known(group)}
    lead = (
        "Means of steady iterations; bars: 95 % intervals over blocks. Up and to the left is better. Whoever is on the line is on the "
        "front: nobody else gets as many images/s from as little. Filled: holds the cap; hollow: does not, or it is not shown."
    )
    legend = [
        Entry(name, {"color": look.color, "marker": look.marker, "markersize": 6, "linestyle": "none"})
        for name, look in style.items()
        if name in shown
    ]
    legend += [Entry("front", {"color": FAINT, "linestyle": "-"}), Entry("cap, where it is one", {"color": WRONG, "linestyle": "--"})]
    rows = (len(panels) + 1) // 2
    height = PANEL_HEAD + TALL + BELOW
    sheet = page(scene, TITLE, lead, height * rows, legend, [*sources(parts), SHARED])
    for at, (part, group) in enumerate(panels):
        row, side = divmod(at, 2)
        if not side:
            sheet.rule(row * height + 0.02)
        _panel(sheet, (row * height, side), part, group, (parts, style))
    return sheet.figure


def _known(group: Group) -> list[Arm]:
    return [one for one in group.arms if {POWER, THROUGHPUT} <= one.means.keys()]


def _panel(sheet: Page, place: tuple[float, int], part: Part, group: Group, shared: tuple[Sequence[Part], Mapping[str, Look]]) -> None:
    (top, side), (parts, style) = place, shared
    half = (INSIDE - GAP) / 2
    left = side * (half + GAP)
    title = part.title(group, parts)
    sheet.text(left, top + 0.07, fitted([title], half, TEXT, lines=1, weight="bold")[title], fontsize=TEXT, fontweight="bold")
    axes = sheet.axes(left + LEFT, top + PANEL_HEAD, half - LEFT - 0.05, TALL)
    axes.set(xlabel=limited(part), ylabel="images/s")
    axes.grid(visible=True)
    front = sorted((one.means[POWER].value, one.means[THROUGHPUT].value) for one in _known(group) if one.front)
    axes.plot(*zip(*front, strict=True), color=FAINT, linewidth=1.4, zorder=1)
    if len(group.caps) == 1:  # of a schedule a mean over all of it has no cap
        axes.axvline(group.caps[0], color=WRONG, linestyle="--", linewidth=1.0, zorder=1)
    for one in _known(group):
        _mark(axes, one, style[one.name])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.margins(0.12)


def _mark(axes: Axes, one: Arm, look: Look) -> None:
    power, rate = one.means[POWER], one.means[THROUGHPUT]
    axes.plot(_ends(power), [rate.value] * 2, color=look.color, linewidth=1.2, zorder=2)
    axes.plot([power.value] * 2, _ends(rate), color=look.color, linewidth=1.2, zorder=2)
    fill: dict[str, Any] = {"markerfacecolor": look.color if one.holds == "yes" else "white"}
    axes.plot([power.value], [rate.value], marker=look.marker, markersize=6.5, linestyle="none", color=look.color, zorder=3, **fill)


def _ends(one: Mean) -> tuple[float, float]:
    return (one.value, one.value) if one.low is None or one.high is None else (one.low, one.high)
