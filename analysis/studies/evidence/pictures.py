"""A forest of runs per effect: a row per run, then their common effect and the next run's."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.plots.labels import minus
from analysis.plots.marks import (
    FASTER_AXIS,
    VERDICTS,
    Ends,
    Mark,
    MarkRow,
    Style,
    ends_of,
    forest_section,
    margin_band,
    reach_of,
)
from analysis.plots.page import Plot, dot, line
from analysis.plots.scene import some
from analysis.plots.style import FAINT, INK, QUIET, house_style
from analysis.wording import bracket, number
from control.names import undigested

from .answer import heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .evidence import Contribution, Evidence, MetaAnalysis

TITLE = "Evidence over runs"
ANSWERS = "Effect of a tweak set in each run, in all runs together, and in the next run."
HEADS = [("gain, % [95 %]", 0.12), ("blocks", 0)]
LEFT, RIGHT = 2.35, 2.2
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
        "no effect was measured in three runs or more",
    )
    ordered = sorted(every, key=_rank)
    sections = []
    for one in ordered[:MOST]:
        rows = _rows(one)
        reach = reach_of([mark.ends for row in rows for mark in row.marks], 150 * one.margin)
        settings: Style = {
            "left": LEFT,
            "right": RIGHT,
            "label": FASTER_AXIS,
            "heads": HEADS,
            "reach": reach,
        }
        title = f"{one.name} in {undigested(one.workload)}: {heading(one)}"
        sections.append(forest_section(title, rows, band=margin_band(one.margin), **settings))
    hidden = len(ordered) - MOST
    lead = (
        "Right of 0 is faster than the baseline. A row is a run, with its 95 % interval; below "
        "the runs is their common effect. "
        "The pale bar contains the true effect of another run 19 times in 20. Each forest has its "
        "own scale."
    )
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
    return Plot(lead, sections, legend, notes).lay_out((), TITLE)


def _rank(one: Evidence) -> tuple[bool, float]:
    return one.word == "can't tell yet", -abs(one.over.mean) if one.over else 0.0


def _rows(one: Evidence) -> list[MarkRow]:
    over = one.over
    assert over is not None  # noqa: S101 it is drawn because it has one
    rows = [MarkRow(_named(each, one.contributions), [_of_run(each)]) for each in one.contributions]
    ahead = Mark(_percents(None, over.next_low, over.next_high), NEXT)
    look = {
        **LOOKS.get(one.word, VERDICTS["inconclusive"]),
        "marker": "D",
        "markersize": 6.5,
        "linewidth": 2.2,
    }
    middle = Mark(
        _percents(over.mean, over.low, over.high),
        look,
        (_figures(over.mean, over.low, over.high), f"{over.runs} runs"),
    )
    figures = minus(f"{number(math.expm1(over.next_low))} to {number(math.expm1(over.next_high))}")
    return [
        *rows,
        MarkRow("all runs", [middle], bold=True, rule=True),
        MarkRow("next run", [ahead._replace(texts=(figures, ""))]),
    ]


def _named(each: Contribution, others: Sequence[Contribution]) -> str:
    machines = {one.columns["cpu"] for one in others}
    cpu = TRADE.sub("", each.columns["cpu"])
    return f"{each.day}, {cpu}" if len(machines) > 1 else each.day or each.run.run_id


def _of_run(each: Contribution) -> Mark:
    effect = each.effect
    texts = (
        _figures(each.gain, math.log1p(effect.low), math.log1p(effect.high)),
        str(effect.n_candidate),
    )
    return Mark(ends_of(effect, 100), RUN, texts, bold=False)


def _percents(*logs: float | None) -> Ends:
    value, low, high = (None if log is None else 100 * math.expm1(log) for log in logs)
    return value, low, high


def _figures(*logs: float) -> str:
    mean, low, high = map(math.expm1, logs)
    return minus(f"{number(mean)}{bracket(low, high, number)}")
