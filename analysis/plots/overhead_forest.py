"""What each monitor costs in CPU seconds of the workload: a row a monitor, with its 95 % interval, on a scale for small and large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.studies.monitors.words import whole
from analysis.wording import unsigned

from .labels import minus
from .lettering import fitted, room_for, wrapped
from .overhead_shared import SCALE, STATES, parts_of, percents
from .page import INSIDE, LINE, PANEL_HEAD, Entry, page, panel_head
from .style import AGAIN, BAND, GRID, INK, QUIET, SMALL, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.studies.monitors.terms import Arm

    from .overhead_shared import Part
    from .page import Page
    from .scene import Scene

TITLE = "What watching costs"
ANSWERS = "How much more CPU time the work takes under each monitor or profiler, how surely, and which do not matter."
ORDER = 26
MONITORED = True

ROW, NAMES, WORDS, AXIS = 0.25, 1.9, 2.35, 0.5
# Shape says the same as colour, for print and for the colour-blind.
VERDICTS: dict[str, dict[str, Any]] = {
    "regressed": {"marker": "^", "color": "#D55E00", "markerfacecolor": "#D55E00"},
    "improved": {"marker": "v", "color": "#0072B2", "markerfacecolor": "#0072B2"},
    "equivalent": {"marker": "s", "color": "#009E73", "markerfacecolor": "#009E73"},
    "inconclusive": {"marker": "o", "color": INK, "markerfacecolor": "white"},
    "not comparable": {"marker": "x", "color": AGAIN},
}
CALLED = {
    "regressed": "costs",
    "improved": "less than none",
    "equivalent": "within the margin",
    "inconclusive": "not shown, or underpowered",
    "not comparable": "not claimed",
}


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a panel a workload."""
    parts = parts_of(scene)
    margins = ", ".join(dict.fromkeys(unsigned(part.found.margin) for part in parts))
    units = ", ".join(dict.fromkeys(part.found.units for part in parts))
    lead = (
        f"CPU seconds of the workload's measured steps, % more than without a monitor, in n {units}; lines: 95 % intervals. "
        f"None again is the same without a monitor once more: how far equal cells differ. {SCALE}"
    )
    words = {arm.verdict for part in parts for arm in _rows(part)}
    legend = [Entry(CALLED[word], {"linestyle": "-", "markersize": 6, **style}) for word, style in VERDICTS.items() if word in words]
    legend.append(Entry(f"±{margins}: counts as no effect", {"facecolor": BAND, "edgecolor": GRID}, patch=True))
    notes = ["Verdicts stand on Holm's p over all arms of the study, and are not given where none and none again differ."]
    lost = [f"{one.label} ({part.title}): {one.said}." for part in parts for one in part.found.arms if one.base and one.cpu is None]
    said = [wrapped(part.found.control.sentence, INSIDE, SMALL) for part in parts]
    tall = [PANEL_HEAD + LINE * len(lines) + 0.06 + ROW * len(_rows(part)) + AXIS for part, lines in zip(parts, said, strict=True)]
    sheet = page(scene, TITLE, lead, sum(tall), legend, [*notes, *lost])
    left = room_for([_name(one) for part in parts for one in _rows(part)], NAMES)
    top = 0.0
    for part, lines, height in zip(parts, said, tall, strict=True):
        panel_head(sheet, top, part.title)
        for at, line in enumerate(lines):
            sheet.text(0, top + PANEL_HEAD + LINE * at, line, fontsize=SMALL, color=STATES[part.found.control.state])
        _panel(sheet, top + PANEL_HEAD + LINE * len(lines) + 0.06, left, part)
        top += height
    return sheet.figure


def _rows(part: Part) -> list[Arm]:
    return [one for one in part.found.arms if one.cpu is not None]


def _name(one: Arm) -> str:
    return f"{one.label}, n {one.n}"


def _panel(sheet: Page, top: float, left: float, part: Part) -> None:
    rows, margin = _rows(part), part.found.margin
    if not rows:
        return
    wide = INSIDE - left - WORDS - 0.1
    axes = sheet.axes(left, top, wide, ROW * len(rows), ylim=(len(rows) - 0.5, -0.5), yticks=[])
    percents(axes, "x", [100 * end for one in rows if one.cpu for end in (one.cpu.low, one.cpu.high)], margin)
    axes.spines["left"].set_visible(False)
    axes.axvspan(100 / (1 + margin) - 100, margin * 100, color=BAND, zorder=0)
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    axes.grid(axis="x")
    axes.set_xlabel("CPU time more than without, %")
    names = fitted([_name(one) for one in rows], left - 0.12, lines=1)
    under = top + ROW * len(rows) + 0.24
    sheet.text(left + wide + 0.12, under, "CPU +% [95 %]", fontsize=SMALL, color=QUIET)
    sheet.text(INSIDE, under, "verdict", ha="right", fontsize=SMALL, color=QUIET)
    for row, one in enumerate(rows):
        middle = top + ROW * (row + 0.5)
        sheet.text(left - 0.1, middle, names[_name(one)], ha="right", va="center", color=INK if one.base else QUIET)
        _marks(axes, row, one)
        style: dict[str, Any] = {"va": "center", "fontsize": SMALL}
        sheet.text(left + wide + 0.12, middle, minus(whole(one.cpu)), **style)
        sheet.text(INSIDE, middle, one.said, ha="right", color=VERDICTS[one.verdict]["color"], fontweight="bold", **style)


def _marks(axes: Axes, row: int, one: Arm) -> None:
    if one.cpu is None:
        return
    style = VERDICTS[one.verdict]
    axes.plot([100 * one.cpu.low, 100 * one.cpu.high], [row, row], color=style["color"], linewidth=1.6, solid_capstyle="butt", zorder=2)
    axes.plot([100 * one.cpu.value], [row], zorder=3, **{"markersize": 6, "linestyle": "none", **style})
