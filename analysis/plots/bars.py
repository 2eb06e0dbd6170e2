"""Rows of bars that begin at 0, two quantities side by side, with every block as a point on its bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from analysis.wording import digits

from .lettering import room_for
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .points import fitted_arms, spoken
from .style import AGAIN, BAR, INK, SMALL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from .page import Page
    from .scene import Panel, Scene

ROW, VALUE = 0.25, 0.55


class Bars(NamedTuple):
    """One quantity of one panel: the bar of each arm that has it, and its blocks' values; both in the unit of `label`."""

    label: str
    bars: Mapping[str, float]
    points: Mapping[str, Sequence[float]]


def bars_page(scene: Scene, title: str, lead: str, panels: Sequence[tuple[Panel, Sequence[Bars]]], notes: Sequence[str] = ()) -> Figure:
    """Draw a page of bars; an arm without a value has an empty row."""
    legend = [
        Entry("all measured steps together", {"facecolor": BAR}, patch=True),
        Entry("baseline", {"facecolor": AGAIN}, patch=True),
    ]
    if any(len(points) > 1 for _, columns in panels for column in columns for points in column.points.values()):
        legend.append(Entry("one block", {"color": INK, "marker": "o", "markersize": 3.5, "markerfacecolor": "white", "linestyle": "none"}))
    tall = [PANEL_HEAD + ROW * len(panel.arms) + 0.46 for panel, _ in panels]
    sheet = page(scene, title, lead, sum(tall), legend, notes)
    left = room_for(spoken(scene.runs, [arm for panel, _ in panels for arm in panel.arms]).values(), 1.75)
    top = 0.0
    for (panel, columns), height in zip(panels, tall, strict=True):
        panel_head(sheet, top, panel.title)
        names = fitted_arms([panel.run], panel.arms, left - 0.15)
        for row, arm in enumerate(panel.arms):
            sheet.text(left - 0.1, top + PANEL_HEAD + ROW * (row + 0.5), names[arm], ha="right", va="center", linespacing=0.95)
        wide = (INSIDE - left + 0.1) / len(columns) - 0.1
        for place, column in enumerate(columns):
            _column(sheet, top + PANEL_HEAD, left + place * (wide + 0.1), wide - VALUE, panel, column)
        top += height
    return sheet.figure


def _column(sheet: Page, top: float, left: float, wide: float, panel: Panel, column: Bars) -> None:  # noqa: PLR0913, PLR0917  # a place and what stands there
    axes = sheet.axes(left, top, wide, ROW * len(panel.arms))
    axes.set(ylim=(len(panel.arms) - 0.5, -0.5), yticks=[], xlabel=column.label)
    for row, arm in enumerate(panel.arms):
        if arm not in column.bars:
            sheet.text(left + 0.06, top + ROW * (row + 0.5), "not measured", va="center", fontsize=SMALL, color=AGAIN)
            continue
        value, points = column.bars[arm], column.points[arm]
        axes.barh(row, value, height=0.68, color=AGAIN if arm == panel.run.baseline else BAR)
        if len(points) > 1:
            axes.plot(points, [row] * len(points), "o", color=INK, markersize=3, markerfacecolor="white", markeredgewidth=0.7)
        sheet.text(left + wide + 0.06, top + ROW * (row + 0.5), digits(value), va="center", fontsize=SMALL)
    axes.set_xlim(0, 1.04 * max([*column.bars.values(), *(one for points in column.points.values() for one in points)]))
    axes.locator_params(axis="x", nbins=4)
    axes.grid(axis="x")
