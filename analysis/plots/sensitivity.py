"""How much a run can be trusted to see: the smallest difference its blocks would show, against how far equal arms differ."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, NamedTuple

from analysis.verdict import without_guards
from analysis.wording import unsigned
from control.t_test import ALPHA, detectable_gain

from .labels import fitted
from .marks import BANDED
from .page import dot, fill, line, page, places
from .scene import NothingToDraw, comparison_of, panels_of
from .style import BAND, COLOURS, INK, QUIET, SMALL, TEXT, WRONG, picture
from .vector import tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from analysis.terms import Comparison

    from .page import Page
    from .scene import Panel, Scene

FEWEST, MOST = 3, 200  # blocks
HEAD, TALL, FOOT = 0.36, 1.2, 0.45


class Sight(NamedTuple):
    """What a workload's blocks would show: the spread of its contrasts' log ratios, its own blocks, how far equal arms differ."""

    panel: Panel
    contrasts: Sequence[Comparison]
    equal: Sequence[Comparison]

    @property
    def spreads(self) -> list[float]:
        """Standard deviations of the log ratio in a block, smallest first."""
        return sorted(contrast.primary.log_sd for contrast in self.contrasts if contrast.primary)

    @property
    def blocks(self) -> int:
        """The blocks of the run."""
        return max(contrast.pairs for contrast in self.contrasts)

    def smallest(self, blocks: int, spread: float) -> float:
        """The smallest difference that so many blocks would show, 4 times in 5; a fraction."""
        return detectable_gain(spread, blocks, ALPHA / max(contrast.family for contrast in self.contrasts))

    def needed(self) -> int | None:
        """How many blocks would show a difference as small as the margin; None beyond `MOST`."""
        spread, margin = statistics.median(self.spreads), self.contrasts[0].margin
        return next((count for count in range(FEWEST, MOST + 1) if self.smallest(count, spread) <= margin), None)


@picture(
    50,
    "What the run could see",
    "How small a difference the blocks would have shown, how many it takes to see the margin, and how far equal arms differ.",
    MONITORED=False,
)
def sensitivity(scene: Scene) -> Figure:
    """Draw a small panel a workload: difference over blocks, the run's own blocks marked."""
    sights = [sight for panel in panels_of(scene) if (sight := _sight(scene, panel))]
    if not sights:
        raise NothingToDraw("no contrast has blocks in which both arms were measured")
    legend = [
        line("smallest difference, %, that is shown 4 times in 5", COLOURS[0]),
        fill("from the quietest to the noisiest contrast", BANDED, BANDED),
        dot("the run's blocks", COLOURS[0]),
        dot("equal arms, how far apart", INK, "s", markerfacecolor="white"),
        fill("below the margin"),
    ]
    lead = (
        "A run sees what lies above its curve; more blocks go along it to the right. Where the curve is inside the grey margin, blocks "
        "suffice to tell “the same” from “different”. A white square above the curve: equal arms differ more than they should."
    )
    tall = HEAD + TALL + FOOT
    abreast = 3 if len(sights) > 2 else 2
    sheet = page(scene, sensitivity.TITLE, lead, tall * math.ceil(len(sights) / abreast), legend)
    for sight, place in zip(sights, places(len(sights), abreast, tall, left=0.3, gap=0.0), strict=True):
        _panel(sheet, place, sight)
    return sheet.figure


def _sight(scene: Scene, panel: Panel) -> Sight | None:
    every = [comparison for arm in panel.arms if (comparison := comparison_of(scene, panel, arm))]
    paired = [
        comparison for comparison in every if comparison.primary and comparison.primary.design == "paired" and comparison.primary.log_sd > 0
    ]
    contrasts = [guard for guard in without_guards(paired) if guard.pairs >= FEWEST and not guard.guard]
    return Sight(panel, contrasts, [comparison for comparison in paired if comparison.untouched]) if contrasts else None


def _panel(sheet: Page, place: tuple[float, float, float], sight: Sight) -> None:
    left, top, wide = place
    margin, needed, own = sight.contrasts[0].margin, sight.needed(), sight.blocks
    last = max(12, 2 * own, min(needed or 0, 4 * own))
    blocks = list(range(FEWEST, last + 1))
    low, middle, high = (
        [100 * sight.smallest(count, spread) for count in blocks]
        for spread in (sight.spreads[0], statistics.median(sight.spreads), sight.spreads[-1])
    )
    here = middle[own - FEWEST]
    reach = 1.15 * max(2.2 * here, 200 * margin, *(100 * abs(comparison.primary.gain) for comparison in sight.equal if comparison.primary))
    axes = sheet.axes(left, top + HEAD, wide, TALL, xlim=(FEWEST, last), ylim=(0, reach), xlabel="blocks")
    axes.axhspan(0, 100 * margin, color=BAND, linewidth=0, zorder=0)
    axes.fill_between(blocks, low, high, color=BANDED, linewidth=0, zorder=0.5)
    axes.plot(blocks, middle, color=COLOURS[0], linewidth=1.4)
    (mark,) = axes.plot([own], [here], "o", color=COLOURS[0], markersize=6, zorder=3)
    tell(mark, f"{sight.panel.workload}: {own} blocks would have shown {unsigned(here / 100)}, 4 times in 5")
    for comparison in sight.equal:
        gain = abs(comparison.primary.gain) if comparison.primary else 0.0
        color = WRONG if comparison.verdict == "not comparable" else INK
        (mark,) = axes.plot([own], [100 * gain], "s", color=color, markerfacecolor="white", markersize=5, zorder=4)
        tell(
            mark,
            f"{comparison.tweakset} · {comparison.workload}: differs by {unsigned(gain)} from {comparison.baseline}, "
            "and both change nothing",
        )
    axes.locator_params(axis="x", integer=True, nbins=5)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y")
    shown = fitted([sight.panel.title], wide, TEXT, lines=1, weight="bold")[sight.panel.title]
    sheet.text(left, top + 0.02, shown, fontsize=TEXT, fontweight="bold")
    enough = f"{unsigned(margin)} takes {needed}" if needed else f"{unsigned(margin)} takes over {MOST}"
    beside = fitted([f"{own} blocks: {here:.2g} %. {enough}"], wide, SMALL, lines=1)
    sheet.text(left, top + 0.17, *beside.values(), fontsize=SMALL, color=QUIET)
