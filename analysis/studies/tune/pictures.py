"""A `tune` drawn: what the race said of each setting and when it was settled, and what fresh blocks say of the choice."""

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
from analysis.plots.page import Spec, dot
from analysis.plots.scene import some
from analysis.plots.style import INK, QUIET, house_style
from analysis.wording import bracket, number

from .answer import verdict_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.plots.page import Section
    from analysis.terms import Comparison, Effect

    from .tune import Setting, Tuning

TITLE = "Which settings to keep"
HEADS = [("gain, % [95 %]", 0.12), ("settled at", 0)]
LEFT, RIGHT = 2.35, 2.4
LOOKS: dict[str, Style] = {
    "helps": VERDICTS["improved"],
    "harms": VERDICTS["regressed"],
    "does nothing": VERDICTS["equivalent"],
    "no gain in sight": {
        "color": QUIET,
        "marker": "o",
        "markerfacecolor": QUIET,
        "markersize": 4.5,
    },
    "not decided": VERDICTS["inconclusive"],
}


@house_style()
def draw(tuning: Tuning) -> Figure:
    """Draw the race, and the confirmation where there is one.

    Raises: NothingToDraw, before the first look.
    """
    settings = some(tuning.settings, "the race had not come to its first look")
    sections = [_race(settings, tuning)]
    if tuning.confirmed:
        sections.append(_confirmation(tuning))
    lead = (
        "Right of 0 is faster. The race chooses: each setting over balanced combinations of the "
        "others. Only fresh blocks judge the choice."
    )
    legend = [
        dot("helps", VERDICTS["improved"]["color"], marker="^", size=6),
        dot("harms", VERDICTS["regressed"]["color"], marker="v", size=6),
        dot("does nothing", VERDICTS["equivalent"]["color"], marker="s", size=6),
        dot("no gain in sight", QUIET, size=4.5),
        dot("not decided", INK, size=6, markerfacecolor="white"),
    ]
    return Spec(lead, sections, legend, [verdict_of(tuning)]).lay_out((), TITLE)


def _race(settings: list[Setting], tuning: Tuning) -> Section:
    kept = tuning.record["chosen"] or {}
    rows = [
        MarkRow(
            setting.name,
            [Mark(ends_of(setting, 100), LOOKS[setting.word], _texts(setting))],
            bold=setting.name in kept,
        )
        for setting in settings
    ]
    reach = reach_of(
        [mark.ends for row in rows for mark in row.marks], 150 * tuning.record["rules"]["margin"]
    )
    band = margin_band(tuning.record["rules"]["margin"])
    return forest_section(
        "The race",
        rows,
        band=band,
        left=LEFT,
        right=RIGHT,
        label=FASTER_AXIS,
        heads=HEADS,
        reach=reach,
    )


def _texts(setting: Setting) -> tuple[str, str]:
    settled = f"look {setting.look}" if setting.word != "not decided" else "–"
    return _figures(setting), settled


def _figures(gained: Setting | Effect) -> str:
    return minus(f"{number(gained.gain)}{bracket(gained.low, gained.high, number)}")


def _confirmation(tuning: Tuning) -> Section:
    assert tuning.confirmed is not None  # noqa: S101 it is drawn because it is there
    confirmed = tuning.confirmed
    contrasts = {"chosen": confirmed.chosen, "all settings": confirmed.whole}
    rows = [
        MarkRow(name, [_mark(one)], bold=name == "chosen")
        for name, one in contrasts.items()
        if one and one.primary
    ]
    reach = reach_of(
        [mark.ends for row in rows for mark in row.marks], 150 * confirmed.chosen.margin
    )
    heads = [("gain, % [95 %]", 0.12), ("fresh blocks", 0)]
    band = margin_band(confirmed.chosen.margin)
    return forest_section(
        "Fresh blocks",
        rows,
        band=band,
        left=LEFT,
        right=RIGHT,
        label=FASTER_AXIS,
        heads=heads,
        reach=reach,
    )


def _mark(one: Comparison) -> Mark:
    effect = one.primary
    assert effect is not None  # noqa: S101 the caller has looked
    return Mark(
        ends_of(effect, 100), VERDICTS[one.verdict], (_figures(effect), str(effect.n_candidate))
    )
