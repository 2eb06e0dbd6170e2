"""Where the time of an epoch goes: waiting for the first batch, waiting for the others, computing, waiting for other ranks, the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from .io_shared import IO, notes_of, parts_of
from .lettering import fitted, room_for
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .style import INK, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

    from analysis.studies.io.terms import Epoch, IoRun

    from .io_shared import Part
    from .page import Page
    from .scene import Scene

TITLE = "Where the time of an epoch goes"
ANSWERS = "What the accelerator waits for: the first batch, later batches, other ranks, or nothing at all."
ORDER = 23
REPORTS = IO

ROW, BELOW = 0.24, 0.46


class Shares(NamedTuple):
    """Parts of an epoch's wall time, in percent; they add up to 100. `barrier` is None where it was not clocked apart from the rest."""

    first: float
    later: float
    compute: float
    barrier: float | None
    rest: float


# Reading warm, computing cool: what a training is for is the one calm colour.
LOOKS = {
    "first": ("#D55E00", "waiting for the first batch"),
    "later": ("#E69F00", "waiting for later batches"),
    "compute": ("#56B4E9", "computing"),
    "barrier": ("#8f4b7d", "waiting for other ranks"),
    "rest": ("#d0d0d0", "rest: readers' start and end, checkpoints"),
}
DARK = frozenset({"first", "barrier"})
UNCLOCKED = "waiting for other ranks, and the readers' end"


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a bar a configuration, of all its runs on the untouched machine together."""
    parts = parts_of(scene)
    lead = (
        "The wall time of an epoch, as its ranks spent it on average. A training wants one colour only: computing. While it waits for the "
        "first batch the readers run and the accelerator does not."
    )
    clocked = any(_shares(part.cells[0].run.epochs[:1]).barrier is not None for part in parts)
    legend = [Entry(words, {"facecolor": color}, patch=True) for name, (color, words) in LOOKS.items() if clocked or name != "barrier"]
    if not clocked:
        legend[-1] = Entry(UNCLOCKED, {"facecolor": LOOKS["rest"][0]}, patch=True)
    tall = [PANEL_HEAD + ROW * len(part.configurations) + BELOW for part in parts]
    sheet = page(scene, TITLE, lead, sum(tall), legend, notes_of(scene, parts, intervals=False))
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
    axes = sheet.axes(left, top + PANEL_HEAD, INSIDE - left - 0.1, ROW * rows, xlim=(0, 100), ylim=(rows - 0.5, -0.5), yticks=[])
    axes.set_xlabel("part of the epoch, %")
    for row, one in enumerate(part.configurations):
        sheet.text(left - 0.1, top + PANEL_HEAD + ROW * (row + 0.5), names[one.name], ha="right", va="center")
        at = 0.0
        shares = shares_of(one.runs)
        for name, (color, _) in LOOKS.items():
            share = getattr(shares, name) or 0.0
            axes.barh(row, share, left=at, height=0.72, color=color)
            if share >= 8:
                axes.text(
                    at + share / 2,
                    row,
                    f"{share:.0f}",
                    ha="center",
                    va="center",
                    fontsize=SMALL,
                    color="white" if name in DARK else INK,
                )
            at += share


def shares_of(runs: Iterable[IoRun]) -> Shares:
    """Average over all epochs and ranks of all runs, each epoch of a rank as heavy as it was long."""
    return _shares([epoch for run in runs for epoch in run.epochs])


def _shares(epochs: Iterable[Epoch]) -> Shares:
    epochs = list(epochs)
    total_s = math.fsum(one.duration_s for one in epochs)
    first = math.fsum(one.load_s[0] for one in epochs if one.load_s)
    later = math.fsum(math.fsum(one.load_s[1:]) for one in epochs)
    compute = math.fsum(math.fsum(one.compute_s) for one in epochs)
    clocked = [math.fsum(one.barrier_s) for one in epochs if one.barrier_s is not None]
    barrier = math.fsum(clocked) if len(clocked) == len(epochs) else None
    rest = max(0.0, total_s - first - later - compute - (barrier or 0.0))
    scale = 100 / (first + later + compute + (barrier or 0.0) + rest)
    return Shares(first * scale, later * scale, compute * scale, None if barrier is None else barrier * scale, rest * scale)
