"""Accelerator utilisation over the whole epoch beside the one that leaves the first step out, configuration by configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .io_shared import (
    IO,
    STEADY_STYLE,
    STEADY_WORDS,
    WHOLE_STYLE,
    WHOLE_WORDS,
    across,
    notes_of,
    parts_of,
    refused_in,
)
from .lettering import fitted, room_for
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import GRID, drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .io_shared import Part
    from .page import Page
    from .scene import Scene

TITLE = "Accelerator utilisation: whole epoch beside steady"
ANSWERS = "How much of an epoch the accelerator computes, and how much of that leaving the first step out hides."
ORDER = 21
REPORTS = IO

WHOLE, STEADY = "au_whole_percent", "au_steady_percent"
ROW, BELOW, APART = 0.26, 0.46, 0.13


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a row a configuration; the line between its two marks is what the first step took."""
    parts = parts_of(scene)
    if not any(one.responses[name].value is not None for part in parts for one in part.configurations for name in (WHOLE, STEADY)):
        raise NothingToDraw("no run has a utilisation: nothing was computed")
    lead = (
        "Readers fetch the first batches while the accelerator waits. DLIO leaves that step out; the training does not. The further the "
        "two marks are apart, the more reading is hidden in the step that is left out."
    )
    legend = [Entry(WHOLE_WORDS, WHOLE_STYLE | {"linestyle": "none"}), Entry(STEADY_WORDS, STEADY_STYLE | {"linestyle": "none"})]
    tall = [PANEL_HEAD + ROW * len(part.configurations) + BELOW for part in parts]
    sheet = page(scene, TITLE, lead, sum(tall), legend, [*notes_of(scene, parts), *refused_in(parts, STEADY, f"AU with {STEADY_WORDS}")])
    left = room_for([one.name for part in parts for one in part.configurations], 3.0)
    top = 0.0
    for part, height in zip(parts, tall, strict=True):
        _panel(sheet, top, part, left)
        top += height
    return sheet.figure


def _panel(sheet: Page, top: float, part: Part, left: float) -> None:
    panel_head(sheet, top, part.title, part.alike)
    rows = len(part.configurations)
    names = fitted([one.name for one in part.configurations], left - 0.15, lines=1)
    axes = sheet.axes(left, top + PANEL_HEAD, INSIDE - left - 0.1, ROW * rows, xlim=(0, 104), ylim=(rows - 0.5, -0.5), yticks=[])
    axes.set_xlabel("accelerator utilisation (AU), %")
    axes.grid(axis="x")
    for row, one in enumerate(part.configurations):
        sheet.text(left - 0.1, top + PANEL_HEAD + ROW * (row + 0.5), names[one.name], ha="right", va="center")
        whole, steady = one.responses[WHOLE], one.responses[STEADY]
        if whole.value is not None and steady.value is not None:
            axes.plot([whole.value, steady.value], [row, row], color=GRID, linewidth=6, solid_capstyle="butt", zorder=1)
        # A little apart, so that neither interval hides the other's.
        across(axes, row - APART, whole, WHOLE_STYLE)
        across(axes, row + APART, steady, STEADY_STYLE)
