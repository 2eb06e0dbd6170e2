"""What a monitor takes for itself against what it costs the work: one that slows nothing may still keep part of a core busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from .marks import round_ticks
from .overhead_shared import SCALE, looks, parts_of, percents
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import BAND, GRID, INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.monitors.terms import Arm

    from .overhead_shared import Part
    from .page import Page
    from .scene import Scene

TITLE = "What monitors take for themselves, and what they cost the work"
ANSWERS = "Which monitors slow the work, which keep a core busy without slowing it, and which do neither."
ORDER = 27
MONITORED = True

TALL, BELOW, LEFT, STRIP, GAP = 2.6, 0.55, 0.62, 1.1, 0.15
SMALLEST = 0.05  # percent of a core: what takes less stands here
ALONE = "no process of its own"


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a workload: the own share of a core across, the overhead upwards; inside monitors stand in a strip of their own."""
    parts = [part for part in parts_of(scene) if part.found.control.state != "differs" and _shown(part)]
    if not parts:
        raise NothingToDraw("no workload whose two arms without a monitor agree has a monitor that was measured")
    style = looks(parts)
    lead = (
        "Across: CPU time of the monitor's own processes, % of one core. Upwards: CPU time that the work takes more. Right and low: "
        f"it keeps a core busy and slows nothing; left and high: it slows the work from inside. Lines: 95 %. {SCALE}"
    )
    used = {one.label for part in parts for one in _shown(part)}
    legend = [
        Entry(label, {"color": color, "marker": marker, "markersize": 5.5, "linestyle": "none"})
        for label, (color, marker) in style.items()
        if label in used
    ]
    legend.append(Entry("counts as no effect", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    tall = PANEL_HEAD + TALL + BELOW
    sheet = page(scene, TITLE, lead, tall * len(parts), legend, _notes(parts))
    for at, part in enumerate(parts):
        panel_head(sheet, at * tall, part.title, f"n {max(one.cpu.n for one in _shown(part) if one.cpu)} {part.found.units} at most")
        _panel(sheet, at * tall + PANEL_HEAD, part, style)
    return sheet.figure


def _shown(part: Part) -> list[Arm]:
    """Monitors whose overhead is known, and whose own share is, or that have none by their nature."""
    return [one for one in part.found.arms if one.base and one.cpu is not None and (one.own.core is not None or one.kind == "inside")]


def _notes(parts: list[Part]) -> list[str]:
    left = [one.label for part in parts for one in part.found.arms if one.base and one.cpu is not None and one not in _shown(part)]
    notes = [f"Not shown, for their own CPU time is not known: {', '.join(dict.fromkeys(left))}."] if left else []
    low = [one.label for part in parts for one in _shown(part) if one.own.core is not None and 100 * one.own.core.value < SMALLEST]
    return [*notes, *([f"Under {SMALLEST:g} % of a core, drawn there: {', '.join(dict.fromkeys(low))}."] if low else [])]


def _panel(sheet: Page, top: float, part: Part, style: Mapping[str, tuple[str, str]]) -> None:
    arms = _shown(part)
    ends = [100 * end for one in arms if one.cpu for end in (one.cpu.low, one.cpu.high)]
    inside = [one for one in arms if one.own.core is None]
    beside = [one for one in arms if one.own.core is not None]
    strip = STRIP if inside else 0.0
    first = True
    if inside:
        axes = sheet.axes(LEFT, top, strip, TALL, xlim=(-1, len(inside)), xticks=[])
        _dress(axes, ends, part, first=True)
        axes.set_xlabel(f"inside:\n{ALONE}")
        for at, one in enumerate(inside):
            _mark(axes, at, one, style[one.label])
        first = False
    if beside:
        axes = sheet.axes(LEFT + strip + (GAP if inside else 0), top, INSIDE - LEFT - strip - GAP - 0.1, TALL)
        _dress(axes, ends, part, first=first)
        shares = [max(SMALLEST, 100 * one.own.core.value) for one in beside if one.own.core]
        low, high = min(*shares, 0.3) / 1.6, max(*shares, 3.0) * 1.6
        axes.set(xscale="log", xlim=(low, high))
        axes.xaxis.set_major_locator(FixedLocator(round_ticks(low, high, 8)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("CPU time of the monitor itself, % of one core")
        for one, share in zip(beside, shares, strict=True):
            _mark(axes, share, one, style[one.label])


def _dress(axes: Axes, ends: list[float], part: Part, *, first: bool) -> None:
    margin = part.found.margin
    percents(axes, "y", ends, margin)
    axes.axhspan(100 / (1 + margin) - 100, 100 * margin, color=BAND, zorder=0)
    axes.axhline(0, color=INK, linewidth=0.9, zorder=1)
    axes.grid(axis="y")
    if first:
        axes.set_ylabel("CPU time of the work, % more")
    else:
        axes.tick_params(axis="y", labelleft=False)
        axes.spines["left"].set_color(QUIET)
    axes.tick_params(labelsize=SMALL)


def _mark(axes: Axes, x: float, one: Arm, look: tuple[str, str]) -> None:
    if one.cpu is None:
        return
    color, marker = look
    line: dict[str, Any] = {"color": color, "linewidth": 1.3, "solid_capstyle": "butt"}
    axes.plot([x, x], [100 * one.cpu.low, 100 * one.cpu.high], zorder=2, **line)
    axes.plot([x], [100 * one.cpu.value], color=color, marker=marker, markersize=5.5, linestyle="none", zorder=3)
