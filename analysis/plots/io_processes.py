"""Utilisation and throughput against the number of processes that read, over the whole epoch and with its first step left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.studies.io.factors import common, configuration

from .io_shared import (
    IO,
    STEADY_STYLE,
    STEADY_WORDS,
    WHOLE_STYLE,
    WHOLE_WORDS,
    notes_of,
    parts_of,
    refused_in,
    upright,
)
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from analysis.studies.io.configurations import Configuration

    from .io_shared import Part
    from .page import Page
    from .scene import Scene

TITLE = "Utilisation and throughput against processes"
ANSWERS = "Whether more processes still bring more data, and from how many on the accelerators wait."
ORDER = 22
REPORTS = IO

TALL, BELOW, LEFT, GAP = 1.5, 0.5, 0.55, 0.75
PER_GB = 1024.0  # MiB
SIDES = (
    ("AU, %", "au_whole_percent", "au_steady_percent", 1.0),
    ("GiB/s, nominal", "mb_per_s_nominal_whole", "mb_per_s_nominal_steady", 1 / PER_GB),
)


@drawn
def draw(scene: Scene) -> Figure:
    """Draw two panels a configuration: utilisation and throughput; both begin at 0."""
    rows = [(part, name, group) for part in parts_of(scene) for name, group in _groups(part).items()]
    if not rows:
        raise NothingToDraw("no configuration was measured with several numbers of processes: `--vary processes=1,2,4` does")
    lead = (
        "Each process feeds one accelerator. Throughput that rises with the processes and a utilisation that stays: the input keeps up. "
        "Throughput that stays while utilisation falls: it is all there is."
    )
    legend = [Entry(WHOLE_WORDS, WHOLE_STYLE), Entry(STEADY_WORDS, STEADY_STYLE)]
    height = PANEL_HEAD + TALL + BELOW
    notes = [
        *notes_of(scene, [part for part, _, _ in rows][:1]),
        *refused_in(list({part.origin: part for part, _, _ in rows}.values()), SIDES[0][2], f"AU with {STEADY_WORDS}"),
        "Nominal: samples times the mean record length, as DLIO counts; 1 GiB = 2^30 bytes.",
    ]
    sheet = page(scene, TITLE, lead, height * len(rows), legend, notes)
    highest = [_highest(rows, side) for side in range(len(SIDES))]
    for at, (part, name, group) in enumerate(rows):
        title = f"{part.title}: {name}" if name and len({part.origin for part, _, _ in rows}) > 1 else name or part.title
        panel_head(sheet, at * height, title, part.alike)
        for side, (label, whole, steady, scale) in enumerate(SIDES):
            _panel(sheet, (at * height + PANEL_HEAD, side), group, (label, whole, steady), (scale, highest[side]))
    return sheet.figure


def _groups(part: Part) -> dict[str, list[Configuration]]:
    """Put configurations together that differ in nothing but processes, by their common name."""
    alike = common([one.run for one in part.cells]) | {"processes"}
    groups: dict[str, list[Configuration]] = {}
    for one in part.configurations:
        groups.setdefault(configuration(one.runs[0], alike), []).append(one)
    return {
        name: sorted(group, key=lambda one: one.runs[0].processes)
        for name, group in groups.items()
        if len({one.runs[0].processes for one in group}) > 1
    }


def _panel(
    sheet: Page, place: tuple[float, int], group: list[Configuration], names: tuple[str, str, str], scaled: tuple[float, float]
) -> None:
    (top, side), (label, whole, steady) = place, names
    scale, highest = scaled
    wide = (INSIDE - 2 * LEFT - GAP / 2) / 2
    counts = [one.runs[0].processes for one in group]
    room = 0.06 * (max(counts) - min(counts))
    axes = sheet.axes(LEFT + side * (wide + GAP), top, wide, TALL, xlim=(min(counts) - room, max(counts) + room), xticks=counts)
    axes.set(xlabel="processes", ylabel=label)
    axes.grid(axis="y")
    upright(axes, [(at, one.responses[whole]) for at, one in zip(counts, group, strict=True)], WHOLE_STYLE, scale)
    upright(axes, [(at, one.responses[steady]) for at, one in zip(counts, group, strict=True)], STEADY_STYLE, scale)
    axes.set_ylim(0.0, highest)


def _highest(rows: Sequence[tuple[Part, str, list[Configuration]]], side: int) -> float:
    """One scale for all rows, so that they can be set beside each other; a utilisation has its own end."""
    _, whole, steady, scale = SIDES[side]
    if whole.startswith("au"):
        return 104.0
    means = [one.responses[name] for _, _, group in rows for one in group for name in (whole, steady)]
    ends = [end for one in means for end in (one.value, one.high) if end is not None]
    return 1.06 * scale * max(ends, default=1.0)
