"""Format × cache: what a cold page cache costs each format; lines that are not parallel say that it depends on the format."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from analysis.studies.io.effects import analysed, means
from analysis.studies.io.sentences import answers

from .io_shared import IO, parts_of, upright
from .lettering import fitted, wrapped
from .marks import MUCH, log_or_linear
from .page import INSIDE, LINE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import DASHES, INK, MARKERS, SMALL, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.io.effects import Analysis

    from .io_shared import Part
    from .scene import Scene

TITLE = "Format and page cache together"
ANSWERS = "What a cold cache costs each format: much where reading is the work, nothing where decoding is."
ORDER = 24
REPORTS = IO

PAIR = ("format", "cache")
SIDES = (("au_whole_percent", "AU over the whole epoch, %"), ("samples_per_s_whole", "samples/s over the whole epoch"))
COLOURS = {"cold": "#0072B2", "warm": "#D55E00", "as_found": "#8c8c8c"}
TALL, BELOW, LEFT, GAP = 1.9, 0.44, 0.6, 0.7


@drawn
def draw(scene: Scene) -> Figure:
    """Draw two panels a run: utilisation and samples/s by format, a line a state of the cache; means over whatever else was varied."""
    rows: list[tuple[Part, list[Analysis]]] = []
    reasons: list[str] = []
    for part in parts_of(scene):
        found = [analysed(part.cells, name, sets=False) for name, _ in SIDES]
        reasons += [one.refusal for one in found if one.refusal]
        shown = [one for one in found if _complete(one)]
        rows += [(part, shown)] if shown else []
    if not rows:
        raise NothingToDraw("; ".join(dict.fromkeys(reasons)) or "format and cache were not both varied, or not in all combinations")
    said = [[line for one in found for line in _answers(one)] for _, found in rows]
    tall = [PANEL_HEAD + LINE * len(lines) + 0.1 + TALL + BELOW for lines in said]
    lead = (
        "A line a state of the page cache before each epoch. Parallel lines: a cold cache costs every format the same, of samples/s the "
        "same part. Lines that meet: that format is bound by its decoding, and a faster disk does not help it."
    )
    states = list(dict.fromkeys(state for _, found in rows for one in found for _, state in means(one, PAIR)))
    legend = [Entry(state.replace("_", " "), _style(state, at)) for at, state in enumerate(states)]
    notes = ["Means over whatever else was varied; bars: 95 % of the mean, by Student's t over blocks."]
    sheet = page(scene, TITLE, lead, sum(tall), legend, notes)
    top = 0.0
    for (part, found), lines, height in zip(rows, said, tall, strict=True):
        panel_head(sheet, top, part.title, part.alike)
        for at, line in enumerate(lines):
            sheet.text(0, top + PANEL_HEAD + LINE * at, line, fontsize=SMALL)
        down = top + PANEL_HEAD + LINE * len(lines) + 0.1
        for side, one in enumerate(found):
            wide = (INSIDE - 2 * LEFT - GAP / 2) / 2
            axes = sheet.axes(LEFT + side * (wide + GAP), down, wide, TALL, ylabel=dict(SIDES)[one.response])
            _panel(axes, one, wide)
        top += height
    return sheet.figure


def _complete(one: Analysis) -> bool:
    """Whether there is a mean at every format and state."""
    levels = {factor.name: factor.levels for factor in one.observed.factors}
    return bool(one.findings) and set(PAIR) <= levels.keys() and len(means(one, PAIR)) == math.prod(len(levels[name]) for name in PAIR)


def _answers(one: Analysis) -> list[str]:
    """The interaction in words; that there is none shown, where there is none."""
    lines = [line for line in answers(one) if line.startswith(f"{' × '.join(PAIR)}:")]
    name = dict(SIDES)[one.response]
    return wrapped(f"{name}: {lines[0] if lines else 'no interaction of format and cache shown.'}", INSIDE, SMALL)


def _style(state: str, at: int) -> dict[str, Any]:
    return {"color": COLOURS.get(state, INK), "marker": MARKERS[at % len(MARKERS)], "linestyle": DASHES[at % len(DASHES)]}


def _panel(axes: Axes, one: Analysis, wide: float) -> None:
    found = means(one, PAIR)
    formats, states = (list(dict.fromkeys(levels[side] for levels in found)) for side in (0, 1))
    for at, state in enumerate(states):
        shift = (at - (len(states) - 1) / 2) * 0.08
        upright(axes, [(x + shift, found[name, state]) for x, name in enumerate(formats)], _style(state, at) | {"markersize": 5})
    axes.set(xlim=(-0.4, len(formats) - 0.6), xticks=range(len(formats)))
    axes.set_xticklabels(list(fitted(formats, wide / len(formats) - 0.04, SMALL, lines=2).values()))
    ends = [end for mean in found.values() for end in (mean.value, mean.low, mean.high) if end is not None]
    if one.observed.scale == "log":
        # Rates are compared by ratios: lines are parallel where the same part is lost.
        low, high = min(ends), max(ends)
        apart = max(1.0, 1.01 * MUCH * low / high) ** 0.5  # so that the scale is one of ratios, however little they differ
        log_or_linear(axes, "y", low / apart, high * apart)
    else:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y")
