"""How each estimate settled as blocks were added: a run that was long enough has bands that no longer move."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from analysis.stats.effect import paired_effect
from analysis.verdict import without_guards
from analysis.wording import number, unsigned

from .forest import VERDICTS
from .lettering import fitted
from .measures import measure_of, minus
from .page import INSIDE, PANEL_HEAD, Entry, page, panel_head
from .points import spoken
from .scene import NothingToDraw, comparison_of, panels_of
from .style import BAND, COLOURS, INK, QUIET, SMALL, TEXT, drawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from analysis.terms import Comparison, Effect

    from .page import Page
    from .scene import Scene

TITLE = "How the estimates settled, block by block"
ANSWERS = "Whether more blocks would still move an estimate, and from which block on its 95 % band excluded 0 or lay inside the margin."
ORDER = 19
MONITORED = False

FEWEST = 3  # blocks of the first estimate
COLUMNS, LEFT, BETWEEN = 3, 0.45, 0.16
TALL, TITLED, AXIS = 0.95, 0.34, 0.42
BANDED = "#cfe0ee"


class Place(NamedTuple):
    """Where a small panel stands: inches in the body of the page."""

    left: float
    top: float
    wide: float


@drawn
def draw(scene: Scene) -> Figure:
    """Draw a row of small panels a workload, one a tweak set, on one scale."""
    found = []
    for panel in panels_of(scene):
        said = without_guards([one for arm in panel.arms if (one := comparison_of(scene, panel, arm))])
        sequential = panel.run.design.sequential
        paired = [(one, one.primary) for one in said if one.primary and one.primary.design == "paired"]
        courses = [(one, running(effect, one.margin, sequential=sequential)) for one, effect in paired]
        if settled := [(one, course) for one, course in courses if len(course) > 1]:
            found.append((panel, settled))
    if not found:
        raise NothingToDraw(f"no contrast has more than {FEWEST} blocks, so there is no course to show")
    labels = spoken(scene.runs, [one.tweakset for _, settled in found for one, _ in settled])
    margins = ", ".join(dict.fromkeys(unsigned(one.margin) for _, settled in found for one, _ in settled))
    legend = [
        Entry("estimate from the blocks so far", {"color": COLOURS[0], "linewidth": 1.4}),
        Entry("its 95 % interval", {"facecolor": BANDED}, patch=True),
        Entry(f"margin: ±{margins}", {"facecolor": BAND, "edgecolor": QUIET, "linestyle": (0, (3, 2)), "linewidth": 0.6}, patch=True),
    ]
    lead = (
        f"From block {FEWEST} on, each point is the gain that the run would have told had it ended there. The verdict stands on the last "
        "one: who stops at the first band that excludes 0 calls more than 5 % of equals different."
    )
    tall = [PANEL_HEAD + (TITLED + TALL + AXIS) * math.ceil(len(settled) / COLUMNS) for _, settled in found]
    sheet = page(scene, TITLE, lead, sum(tall), legend)
    top, wide = 0.0, (INSIDE - LEFT - BETWEEN * (COLUMNS - 1) - 0.05) / COLUMNS
    for (panel, settled), height in zip(found, tall, strict=True):
        measure = measure_of(panel.metric.name, [1.0])
        panel_head(sheet, top, panel.title, f"gain by {measure.name}, %, against {settled[0][0].baseline}")
        reach = _reach([one for one, _ in settled])
        for at, (one, course) in enumerate(settled):
            row, column = divmod(at, COLUMNS)
            place = Place(LEFT + column * (wide + BETWEEN), top + PANEL_HEAD + TITLED + row * (TITLED + TALL + AXIS), wide)
            _small(sheet, place, one, course, reach, labels)
        top += height
    return sheet.figure


def running(effect: Effect, margin: float, *, sequential: bool = False) -> list[Effect]:
    """The effect of the first 3, 4, … blocks; the last is that of all of them."""
    base, candidate = effect.values_baseline, effect.values_candidate
    counts = range(FEWEST, len(base) + 1)
    return [paired_effect(effect.metric, base[:count], candidate[:count], margin, sequential=sequential) for count in counts]


def _reach(said: Sequence[Comparison]) -> float:
    """How far the axis reaches, in percent: the first bands, which are wide, must not squash the last."""
    ends = [abs(end) for one in said if one.primary for end in (one.primary.low, one.primary.high)]
    return 100 * max(2 * max(one.margin for one in said), 1.3 * max(ends))


def _small(  # noqa: PLR0913, PLR0917  # a place, and what stands there
    sheet: Page, place: Place, one: Comparison, course: Sequence[Effect], reach: float, labels: Mapping[str, str]
) -> None:
    axes = sheet.axes(place.left, place.top, place.wide, TALL, ylim=(-reach, reach))
    axes.axhspan(100 / (1 + one.margin) - 100, 100 * one.margin, color=BAND, linewidth=0, zorder=0)
    blocks = range(FEWEST, FEWEST + len(course))
    low, high = ([100 * end for end in ends] for ends in zip(*((effect.low, effect.high) for effect in course), strict=True))
    axes.fill_between(blocks, low, high, color=BANDED, linewidth=0, zorder=0.5)
    for end in (100 / (1 + one.margin) - 100, 100 * one.margin):  # also where the interval lies over the margin
        axes.axhline(end, color=QUIET, linewidth=0.6, linestyle=(0, (3, 2)), zorder=1)
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    axes.plot(blocks, [100 * effect.gain for effect in course], color=COLOURS[0], linewidth=1.4, zorder=2)
    axes.plot(blocks[-1:], [100 * course[-1].gain], zorder=3, markersize=6, linestyle="none", clip_on=False, **VERDICTS[one.verdict])
    axes.locator_params(axis="x", integer=True, nbins=5)
    axes.locator_params(axis="y", nbins=5)
    axes.set_xlim(FEWEST, blocks[-1])
    axes.tick_params(axis="y", labelleft=place.left == LEFT)
    axes.set_xlabel("blocks")
    name = fitted([labels[one.tweakset]], place.wide, TEXT, lines=1)[labels[one.tweakset]]
    sheet.text(place.left, place.top - TITLED + 0.02, name, fontsize=TEXT)
    last = course[-1]
    sheet.text(
        place.left,
        place.top - TITLED + 0.17,
        minus(f"{number(last.gain)} [{number(last.low)}, {number(last.high)}]"),
        fontsize=SMALL,
        color=QUIET,
    )
    style = {"fontsize": SMALL, "ha": "right", "fontweight": "bold", "color": VERDICTS[one.verdict]["color"]}
    sheet.text(place.left + place.wide, place.top - TITLED + 0.17, one.verdict, **style)
