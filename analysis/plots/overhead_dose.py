"""Looking more often: what each monitor costs at every rate at which it was measured, and whether the order of rates is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from .lettering import wrapped
from .overhead_shared import SCALE, looks, parts_of, percents
from .page import INSIDE, LINE, PANEL_HEAD, Entry, page, panel_head
from .scene import NothingToDraw
from .style import BAND, DASHES, GRID, INK, SMALL, drawn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.monitors.terms import Arm, Dose

    from .overhead_shared import Part
    from .page import Page
    from .scene import Scene

TITLE = "Looking more often"
ANSWERS = "Whether a monitor costs more the oftener it looks, and from which rate on it matters."
ORDER = 28
MONITORED = True

TALL, BELOW, LEFT = 2.3, 0.5, 0.62
Line = tuple[str, "str | tuple[float, tuple[float, ...]]"]  # colour and dashes
SHIFT = 1.03  # of neighbouring monitors at one rate, so that intervals do not lie over one another


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a workload, a line a monitor that was measured at several rates."""
    parts = [part for part in parts_of(scene) if part.found.doses]
    if not parts:
        raise NothingToDraw("no monitor was measured at several rates under a workload whose A/A holds")
    style = looks(parts)
    said = [[line for one in part.found.doses for line in wrapped(one.sentence, INSIDE, SMALL)] for part in parts]
    lead = f"CPU time that the work takes more at each rate; lines up are 95 % intervals over blocks. {SCALE}"
    families = sorted({one.family for part in parts for one in part.found.doses})
    first = {one.family: style[_labels(part)[one.arms[0]].label][0] for part in parts for one in part.found.doses}
    dashes = {name: DASHES[at % len(DASHES)] for at, name in enumerate(families)}
    legend = [Entry(name, {"color": first[name], "linestyle": dashes[name], "marker": "o", "markersize": 5}) for name in families]
    legend.append(Entry("counts as no effect", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    tall = [PANEL_HEAD + LINE * len(lines) + 0.1 + TALL + BELOW for lines in said]
    sheet = page(scene, TITLE, lead, sum(tall), legend)
    top = 0.0
    for part, lines, height in zip(parts, said, tall, strict=True):
        panel_head(sheet, top, part.title)
        for at, line in enumerate(lines):
            sheet.text(0, top + PANEL_HEAD + LINE * at, line, fontsize=SMALL)
        _panel(sheet, top + PANEL_HEAD + LINE * len(lines) + 0.1, part, {name: (first[name], dashes[name]) for name in families})
        top += height
    return sheet.figure


def _labels(part: Part) -> dict[str, Arm]:
    return {one.tweakset: one for one in part.found.arms}


def _panel(sheet: Page, top: float, part: Part, style: Mapping[str, Line]) -> None:
    axes = sheet.axes(LEFT, top, INSIDE - LEFT - 0.1, TALL)
    arms, margin = _labels(part), part.found.margin
    shown = [arms[name].cpu for one in part.found.doses for name in one.arms]
    percents(axes, "y", [100 * end for one in shown if one for end in (one.low, one.high)], margin)
    rates = sorted({rate for one in part.found.doses for rate in one.rates_per_s})
    axes.set(xscale="log", xlim=(rates[0] / 1.5, rates[-1] * 1.5))
    axes.xaxis.set_major_locator(FixedLocator(rates))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.axhspan(100 / (1 + margin) - 100, 100 * margin, color=BAND, zorder=0)
    axes.axhline(0, color=INK, linewidth=0.9, zorder=1)
    axes.grid(axis="y")
    axes.set_xlabel("samples a second")
    axes.set_ylabel("CPU time, % more")
    for at, one in enumerate(sorted(part.found.doses, key=lambda one: one.family)):
        _line(axes, one, arms, style[one.family], SHIFT ** (at - (len(part.found.doses) - 1) / 2))


def _line(axes: Axes, one: Dose, arms: Mapping[str, Arm], look: Line, shift: float) -> None:
    color, dashes = look
    points = [(rate * shift, figure) for rate, name in zip(one.rates_per_s, one.arms, strict=True) if (figure := arms[name].cpu)]
    for x, figure in points:
        axes.plot([x, x], [100 * figure.low, 100 * figure.high], color=color, linewidth=1.4, solid_capstyle="butt", zorder=2)
    axes.plot(
        [x for x, _ in points],
        [100 * figure.value for _, figure in points],
        color=color,
        linestyle=dashes,
        marker="o",
        markersize=5,
        zorder=3,
    )
