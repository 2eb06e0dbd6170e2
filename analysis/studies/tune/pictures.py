"""A `tune` drawn: each setting in the race and when it was settled, and the fresh blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.plots.labels import minus
from analysis.plots.marks import (
    FASTER_AXIS,
    VERDICTS,
    Mark,
    MarkRow,
    Style,
    ends_of,
    forest_section,
    margin_band,
    reach_of,
)
from analysis.plots.page import Plot, verdict_entries
from analysis.plots.scene import some
from analysis.plots.style import house_style
from analysis.wording import bracket, number
from control.tuning import MARGIN

from .answer import verdict_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.plots.page import Chart
    from analysis.terms import Effect

    from .tune import SettingGain, Tuning

LOOKS = {
    "helps": VERDICTS["improved"],
    "harms": VERDICTS["regressed"],
    "does nothing": VERDICTS["equivalent"],
    "no gain in sight": VERDICTS["not comparable"],
    "not decided": VERDICTS["inconclusive"],
}
LEAD = (
    "Right of 0 is faster. The race chooses: each setting over balanced combinations of the "
    "others. Only fresh blocks judge the choice."
)


@house_style()
def draw(tuning: Tuning) -> Figure:
    """Draw the race, and the confirmation if there is one. Raises: NothingToDraw."""
    estimated = (one for one in tuning.settings if one.gain is not None)
    rows = [
        MarkRow(one.name, [_mark(one, LOOKS[one.word], one.look)], bold=one.kept)
        for one in some(estimated, "the race had not reached its first look")
    ]
    sections = [_forest("The race", "last look", rows)]
    if confirmed := tuning.confirmed:
        rows = [
            MarkRow(name, [_mark(one.primary, VERDICTS[one.verdict], one.pairs)])
            for name, one in (("chosen", confirmed.chosen), ("all settings", confirmed.whole))
            if one and one.primary
        ]
        sections.append(_forest("The choice", "fresh blocks", rows))
    legend = verdict_entries(LOOKS, LOOKS)
    return Plot(LEAD, sections, legend, [verdict_of(tuning)]).lay_out((), "Which settings to keep")


def _mark(gained: SettingGain | Effect, style: Style, last: object) -> Mark:
    figures = f"{number(gained.gain or 0)}{bracket(gained.low, gained.high, number)}"
    return Mark(ends_of(gained, 100), style, (minus(figures), str(last)))


def _forest(title: str, last: str, rows: list[MarkRow]) -> Chart:
    return forest_section(
        title,
        rows,
        band=margin_band(MARGIN),
        left=2.35,
        right=2.4,
        label=FASTER_AXIS,
        heads=[("gain, % [95 %]", 0.12), (last, 0)],
        reach=reach_of((mark.ends for row in rows for mark in row.marks), 150 * MARGIN),
    )
