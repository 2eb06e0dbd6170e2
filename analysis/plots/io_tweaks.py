"""Tweak sets against stock, cold cache beside warm: on a warm one no disk is read, so that a setting of the disk cannot matter there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from analysis.studies.io.configurations import in_order
from analysis.studies.io.effects import contrasts
from analysis.studies.io.sentences import amount
from analysis.studies.io.study import apart
from analysis.studies.keys.observed import AGAIN

from .io_shared import IO
from .labels import minus
from .lettering import fitted, room_for
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import AGAIN as GREY
from .style import INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.io.effects import Contrast

    from .page import Page
    from .scene import Scene

TITLE = "Tweak sets and input: cold cache beside warm"
ANSWERS = "Whether a tweak set feeds the accelerator faster, and whether it does so through the disk."
ORDER = 25
REPORTS = IO

RATE = "samples_per_s_whole"
COLOURS = {"cold": "#0072B2", "warm": "#D55E00"}
ROW, BELOW, VALUE = 0.24, 0.46, 1.55
NOTHING_LEFT = -0.999
TICKS = (-99, -90, -75, -50, -30, -20, -10, -5, -2, -1, 1, 2, 5, 10, 25, 50, 100, 300, 900, 9900)  # percent


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a row a tweak set, configuration and state of the cache; the copy of stock stands last, in grey."""
    groups: list[tuple[str, list[Contrast]]] = []
    idle: set[str] = set()
    for origin in dict.fromkeys(one.run.origin for one in scene.io):
        cells = in_order([one for one in scene.io if one.run.origin == origin])
        treated, copies = apart(cells)
        found, nothing = contrasts(treated, RATE), contrasts(copies, RATE).tweaks
        met = {one.configuration for one in (*found.tweaks, *nothing)}
        every = [one for one in (*found.tweaks, *nothing, *found.again) if one.effect is not None and one.configuration in met]
        names = dict.fromkeys(one.tweakset for one in every)
        idle |= {one.tweakset for one in nothing}
        groups += [(name, beside([one for one in every if one.tweakset == name])) for name in names]
    if not groups:
        raise NothingToDraw("no tweak set was measured beside stock while a workload reported its input")
    lead = (
        "Samples/s over the whole epoch against stock in the same block. What is read from a cold cache comes from the disk; a warm one "
        "holds it all, so that how a disk is read cannot matter there: what it seems to do is chance. Checkpoints are written either way."
    )
    states = [state for state in COLOURS if any(one.cache == state for _, rows in groups for one in rows)]
    legend = [Entry(f"{state} cache", _style(state, INK) | {"linestyle": "none"}) for state in states]
    legend.append(
        Entry("filled: differs from stock after Holm's adjustment", {"color": INK, "marker": "s", "markersize": 5, "linestyle": "none"})
    )
    tall = [PANEL_HEAD + ROW * len(rows) + BELOW for _, rows in groups]
    notes = [
        "Bars around marks: 95 %, paired by block (whole runs). The scale is of ratios: half as much is as far from stock as twice as much."
    ]
    sheet = page(scene, TITLE, lead, sum(tall), legend, notes)
    left = room_for([_called(one) for _, rows in groups for one in rows], 2.9)
    reach = 1.1 * max(abs(_ratio(end)) for _, rows in groups for one in rows for end in (one.low, one.high, 0.02))
    top = 0.0
    for (name, rows), height in zip(groups, tall, strict=True):
        _panel(sheet, top, (name, rows), left, (reach, "changed nothing here: a second A/A" if name in idle else ""))
        top += height
    return sheet.figure


def beside(rows: Sequence[Contrast]) -> list[Contrast]:
    """Put the states of the cache of one configuration beside each other, cold first; otherwise the order stays."""
    rests = list(dict.fromkeys(one.rest for one in rows))
    states = [*COLOURS, *dict.fromkeys(one.cache for one in rows if one.cache not in COLOURS)]
    return sorted(rows, key=lambda one: (rests.index(one.rest), states.index(one.cache)))


def _called(one: Contrast) -> str:
    return one.configuration or "all"


def _style(cache: str, color: str) -> dict[str, Any]:
    return {"color": COLOURS.get(cache, color), "marker": "s" if cache == "cold" else "o", "markersize": 5.5, "markerfacecolor": "white"}


def _panel(sheet: Page, top: float, group: tuple[str, Sequence[Contrast]], left: float, about: tuple[float, str]) -> None:
    (name, rows), (reach, nothing) = group, about
    said = nothing or ("changes nothing: what this machine makes of chance" if name == AGAIN else "")
    panel_head(sheet, top, name, said)
    names = fitted(dict.fromkeys(_called(one) for one in rows), left - 0.15, lines=1)
    wide = INSIDE - left - VALUE
    ticks = ticks_of(reach)
    axes = sheet.axes(left, top + PANEL_HEAD, wide, ROW * len(rows), xlim=(-reach, reach), ylim=(len(rows) - 0.5, -0.5), yticks=[])
    axes.set_xticks([_ratio(tick / 100) for tick in ticks], [minus(f"{tick:+d}" if tick else "0") for tick in ticks])
    axes.axvline(0, color=QUIET, linewidth=0.8)
    axes.set_xlabel("samples/s against stock, %")
    axes.grid(axis="x")
    for row, one in enumerate(rows):
        sheet.text(left - 0.1, top + PANEL_HEAD + ROW * (row + 0.5), names[_called(one)], ha="right", va="center")
        _mark(axes, row, one, quiet=bool(said))
        ends = f" [{100 * (one.low or 0.0):.1f}, {100 * (one.high or 0.0):.1f}]"
        style: dict[str, Any] = {"va": "center", "fontsize": SMALL, "fontweight": "bold" if one.shown else "normal"}
        sheet.text(left + wide + 0.08, top + PANEL_HEAD + ROW * (row + 0.5), minus(amount(RATE, "", one.effect or 0.0) + ends), **style)


def _ratio(change: float | None) -> float:
    """Answer the logarithm of a ratio, which must not be that of 0 where an interval ends next to it."""
    return math.log1p(max(change or 0.0, NOTHING_LEFT))


def ticks_of(reach: float) -> list[int]:
    """Choose percents for an axis of log ratios that ends at ± `reach`: round ones, far enough from each other."""
    kept = [0]
    for tick in sorted((one for one in TICKS if abs(_ratio(one / 100)) <= reach), key=lambda one: -abs(_ratio(one / 100))):
        if all(abs(_ratio(tick / 100) - _ratio(other / 100)) > reach / 4 for other in kept):
            kept.append(tick)
    return sorted(kept)


def _mark(axes: Axes, row: int, one: Contrast, *, quiet: bool) -> None:
    style = _style(one.cache, INK)
    if quiet:
        style["color"] = GREY
    if one.shown:
        style["markerfacecolor"] = style["color"]
    effect, low, high = map(_ratio, (one.effect, one.low, one.high))
    axes.plot([low, high], [row, row], color=style["color"], linewidth=1.4, solid_capstyle="butt", zorder=2)
    axes.plot([effect], [row], **{**style, "linestyle": "none", "zorder": 3})
