"""Every cell against its place in the run: a machine that drifts, or a block that went wrong, is seen before any average hides it."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from analysis.wording import number

from .measures import direction, measure_of, minus
from .odd import odd_cells
from .page import INSIDE, PANEL_HEAD, Entry, arms_legend, page, panel_head
from .points import fitted_arms, spoken
from .scene import NothingToDraw, measured, panels_of
from .style import AGAIN, BAND, QUIET, SMALL, WRONG, drawn, looks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.terms import Cell, Run

    from .measures import Measure
    from .odd import Odd
    from .page import Page
    from .scene import Panel, Scene
    from .style import Look

TITLE = "Every cell in the order it ran"
ANSWERS = "Whether the machine stayed the same over the run: raw values by run order, blocks as bands."
ORDER = 20
NOT_OF = frozenset({"iteration", "job", "point"})

LEFT, TALL = 0.5, 1.15
RING: dict[str, Any] = {"marker": "o", "markersize": 10, "markerfacecolor": "none", "markeredgecolor": WRONG, "markeredgewidth": 1.3}
MOST_NAMED = 4


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a workload, a mark a cell; the grey step is the median of each block, whatever the tweak sets."""
    panels = [panel for panel in panels_of(scene) if panel.run.replicated]
    if not panels:
        raise NothingToDraw("one cell a tweak set and no record of the order they ran in: drift cannot be told from a tweak")
    looks = looks_of(scene)
    names = list(dict.fromkeys(name for panel in panels for name in panel.arms))
    labels = spoken(scene.runs, names)
    legend = arms_legend(looks, names, fitted_arms(scene.runs, names, 2.6, SMALL, lines=1))
    legend.append(Entry("median of the block", {"color": AGAIN, "linewidth": 3, "alpha": 0.6}))
    if any(cell.outcome != "measured" for panel in panels for cell in panel.cells):
        legend.append(Entry("not measured", {"color": WRONG, "marker": "x", "linestyle": "none"}))
    lead = (
        "A mark a cell, a fresh process. Marks that rise or fall together from left to right are the machine's drift, not a tweak's effect."
    )
    odd = [odd_cells(panel.cells, panel.metric.name) for panel in panels]
    if any(odd):
        legend.append(Entry("far from its tweak set and block", RING | {"linestyle": "none"}))
    height = PANEL_HEAD + TALL + 0.62
    notes = [note for panel, found in zip(panels, odd, strict=True) for note in _told(panel, found, labels)]
    sheet = page(scene, TITLE, lead, height * len(panels), legend, notes)
    for at, (panel, found) in enumerate(zip(panels, odd, strict=True)):
        _panel(sheet, at * height, panel, looks, found)
    return sheet.figure


def _told(panel: Panel, found: Sequence[Odd], labels: Mapping[str, str]) -> list[str]:
    """Name the odd cells, the oddest first."""
    if not found:
        return []
    named = [f"{labels[one.cell.tweakset]} in block {one.cell.block} ({minus(number(one.off))} %)" for one in found[:MOST_NAMED]]
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    kept = "It is not left out of any average." if len(found) == 1 else "They are not left out of any average."
    return [f"{panel.title}: far from the others of its tweak set and block (5 robust SD or more): {', '.join(named)}{more}. {kept}"]


def _panel(sheet: Page, top: float, panel: Panel, looks: Mapping[str, Look], odd: Sequence[Odd]) -> None:
    values = [cell.metrics[panel.metric.name] for cell in panel.cells if panel.metric.name in cell.metrics]
    measure = measure_of(panel.metric.name, values)
    panel_head(sheet, top, panel.title, f"{measure.label} ({direction(panel.metric)})")
    axes = sheet.axes(LEFT, top + PANEL_HEAD + 0.14, INSIDE - LEFT - 0.02, TALL)
    _bands(axes, panel.run)
    for block in sorted({cell.block for cell in panel.cells}):
        _median(axes, panel, measure, [cell for cell in panel.cells if cell.block == block])
    for arm in panel.arms:
        cells = [cell for cell in measured(panel, arm) if panel.metric.name in cell.metrics]
        at, look = [cell.order for cell in cells], looks[arm]
        heights = [cell.metrics[panel.metric.name] * measure.scale for cell in cells]
        axes.plot(
            at,
            heights,
            linestyle="none",
            color=look.color,
            marker=look.marker,
            markersize=5,
            markeredgecolor="white",
            markeredgewidth=0.4,
            label=arm,
        )
    lost = [cell.order for cell in panel.cells if cell.outcome != "measured"]
    axes.plot(lost, [0.03] * len(lost), "x", color=WRONG, markersize=5, transform=axes.get_xaxis_transform(), clip_on=False)
    axes.grid(axis="y")
    axes.margins(y=0.12)
    axes.set_xlabel("place in the run (cells, in the order they ran)")
    for one in odd:
        axes.plot([one.cell.order], [one.cell.metrics[panel.metric.name] * measure.scale], linestyle="none", **RING)


def _bands(axes: Axes, run: Run) -> None:
    """Shade every other block over the whole run, so that all panels show the same time."""
    places: dict[int, list[int]] = {}
    for cell in run.cells:
        places.setdefault(cell.block, []).append(cell.order)
    first, last = min(cell.order for cell in run.cells), max(cell.order for cell in run.cells)
    axes.set_xlim(first - 0.7, last + 0.7)
    crowded = len(places) > 24
    for turn, (block, orders) in enumerate(sorted(places.items())):
        if turn % 2 == 0:
            axes.axvspan(min(orders) - 0.5, max(orders) + 0.5, color=BAND, zorder=0, linewidth=0)
        if not crowded or turn % 5 == 0:
            middle = (min(orders) + max(orders)) / 2
            text = f"block {block}" if turn == 0 else str(block)
            axes.text(middle, 1.02, text, transform=axes.get_xaxis_transform(), ha="center", va="bottom", fontsize=SMALL, color=QUIET)


def _median(axes: Axes, panel: Panel, measure: Measure, cells: Sequence[Cell]) -> None:
    values = [cell.metrics[panel.metric.name] * measure.scale for cell in cells if panel.metric.name in cell.metrics]
    if len(values) > 1:
        ends = [min(cell.order for cell in cells) - 0.4, max(cell.order for cell in cells) + 0.4]
        axes.plot(ends, [statistics.median(values)] * 2, color=AGAIN, linewidth=3, alpha=0.6, solid_capstyle="butt", zorder=1)
