"""A forest of runs per effect: a row per run, then their common effect and the next run's."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from analysis.plots.labels import minus
from analysis.plots.marks import (
    FASTER_AXIS,
    VERDICTS,
    Mark,
    MarkRow,
    Style,
    forest_section,
    margin_band,
    reach_of,
    scaled,
)
from analysis.plots.page import Plot, dot, line
from analysis.plots.scene import some
from analysis.plots.style import FAINT, INK, QUIET, house_style
from analysis.wording import bracket, number
from control.names import undigested

from .answer import heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .evidence import Evidence, MetaAnalysis

TITLE = "Evidence over runs"
ANSWERS = "Effect of a tweak set in each run, in all runs together, and in the next run."
HEADS = [("gain, % [95 %]", 0.12), ("blocks", 0)]
LEAD = (
    "Right of 0 is faster than the baseline. A row is a run, with its 95 % interval; below is the "
    "common effect. The pale bar contains the true effect of another run 19 times in 20. Each "
    "forest has its own scale."
)
MOST = 12
TRADE = re.compile(r"\((?:R|TM)\)| Processor| CPU|family |model ")  # redundant parts of CPU names
LOOKS: dict[str, Style] = {
    "helps everywhere measured": VERDICTS["improved"],
    "helps on average": VERDICTS["improved"],
    "harms everywhere measured": VERDICTS["regressed"],
    "harms on average": VERDICTS["regressed"],
    "no difference": VERDICTS["equivalent"],
}
RUN: Style = {
    "color": QUIET,
    "marker": "o",
    "markerfacecolor": QUIET,
    "markersize": 4.5,
    "linewidth": 1.1,
}
NEXT: Style = {"color": FAINT, "marker": "", "linewidth": 5.0}


@house_style()
def draw(gathered: MetaAnalysis) -> Figure:
    """Draw the effects with at least three runs, helpful ones first. Raises: NothingToDraw."""
    every = some(
        (one for one in gathered.evidence if one.over),
        "no effect was measured on three days or more",
    )
    ordered = sorted(every, key=_rank)
    sections = []
    for one in ordered[:MOST]:
        rows = _rows(one)
        sections.append(
            forest_section(
                f"{one.name} in {undigested(one.workload)}: {heading(one)}",
                rows,
                band=margin_band(one.margin),
                left=2.35,
                right=2.2,
                label=FASTER_AXIS,
                heads=HEADS,
                reach=reach_of([mark.ends for row in rows for mark in row.marks], 150 * one.margin),
            )
        )
    hidden = len(ordered) - MOST
    legend = [
        dot("one run", QUIET, size=4.5),
        dot("all runs", INK, marker="D", size=6),
        line("next run", FAINT, 5.0),
    ]
    notes = [
        f"{hidden} more effects are not drawn. `evidence --tweaks NAMES --plot FILE` draws those "
        "you name."
        if hidden > 0
        else ""
    ]
    return Plot(LEAD, sections, legend, notes).lay_out((), TITLE)


def _rank(one: Evidence) -> tuple[bool, float]:
    return one.word == "can't tell yet", -abs(one.over.mean) if one.over else 0.0


def _rows(one: Evidence) -> list[MarkRow]:
    over = one.over
    assert over is not None  # noqa: S101 it is drawn because it has one
    several = len({each.columns["cpu"] for each in one.contributions}) > 1
    rows = []
    for each in one.contributions:
        effect, cpu = each.effect, TRADE.sub("", each.columns["cpu"])
        mark = _mark((effect.gain, effect.low, effect.high), RUN, str(effect.n_candidate))
        name = f"{each.day}, {cpu}" if several else each.day or each.run.run_id
        rows.append(MarkRow(name, [mark._replace(bold=False)]))
    own = LOOKS.get(one.word, VERDICTS["inconclusive"])
    look = {**own, "marker": "D", "markersize": 6.5, "linewidth": 2.2}
    mean, low, high, next_low, next_high = map(
        math.expm1, (over.mean, over.low, over.high, over.next_low, over.next_high)
    )
    middle = _mark((mean, low, high), look, f"{len(one.contributions)} runs")
    figures = minus(f"{number(next_low)} to {number(next_high)}")
    ahead = Mark(scaled((None, next_low, next_high), 100), NEXT, (figures, ""))
    return [
        *rows,
        MarkRow("all runs", [middle], bold=True, rule=True),
        MarkRow("next run", [ahead]),
    ]


def _mark(gains: tuple[float, float, float], style: Style, last: str) -> Mark:
    gain, low, high = gains
    figures = minus(f"{number(gain)}{bracket(low, high, number)}")
    return Mark(scaled(gains, 100), style, (figures, last))
