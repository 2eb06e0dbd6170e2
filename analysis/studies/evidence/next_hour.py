"""Plan the next hour: more blocks today, or a run on another day (Kalibera and Jones, ISMM 2013).

More blocks make one run more precise, but never show the variation between days.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Columns, Line, Section, table_of
from analysis.terms import Refused
from control.names import undigested
from control.t_test import ALPHA, t_quantile

if TYPE_CHECKING:
    from .evidence import Evidence, MetaAnalysis

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Outlook:
    """Expected half widths of the 95 % interval of an effect in general, on the log scale.

    now, today, another_day: at present, after another hour on the last day, after an hour on
        another day
    blocks: beyond this number of blocks, another day is worth more; None if days do not seem to
        differ
    """

    of: Evidence
    now: float
    today: float
    another_day: float
    blocks: int | None


def outlook(one: Evidence) -> Outlook:
    """Return the outlook of an effect of three days or more; runs of one day are pooled.

    Raises: Refused, if its last run does not record its duration.
    """
    over, days = one.over, one.days
    if over is None:
        raise Refused(
            f"{one.name} in {undigested(one.workload)} has runs of {len(days)} days: an outlook "
            "needs 3."
        )
    last = days[-1].runs[-1]
    took_s = math.fsum(cell.duration_s or 0.0 for cell in last.run.cells)
    if not took_s:
        raise Refused(
            f"{last.run.origin}: does not record the duration of its cells, so nothing can be "
            "planned from it."
        )
    variances = [day.error**2 for day in days]
    block = last.effect.log_sd**2
    more = last.effect.n_candidate * HOUR_S / took_s
    blocks = sum(each.effect.n_candidate for each in days[-1].runs)
    today = [*variances[:-1], variances[-1] * blocks / (blocks + more)]
    return Outlook(
        one,
        _half_width(variances, over.tau),
        _half_width(today, over.tau),
        _half_width([*variances, block / more], over.tau),
        math.ceil(block / over.tau**2) if over.tau else None,
    )


def _half_width(variances: list[float], tau: float) -> float:
    weight = math.fsum(1 / (variance + tau**2) for variance in variances)
    return t_quantile(1 - ALPHA / 2, len(variances) - 1) / math.sqrt(weight)


def _percent(half_width: float) -> str:
    return f"{100 * math.expm1(half_width):.1f}"


COLUMNS: Columns = (
    (Column("workload", left=True), lambda one: undigested(one.of.workload)),
    (Column("tweak set", left=True), lambda one: one.of.name),
    (Column("now\n± %", "now", _percent), attrgetter("now")),
    (Column("an hour today\n± %", "today", _percent), attrgetter("today")),
    (Column("another day\n± %", "another_day", _percent), attrgetter("another_day")),
    (Column("blocks\nper day", "blocks"), attrgetter("blocks")),
)
LEGEND = (
    (
        "now, an hour today, another day",
        "half-width of the effect's 95 % interval in general: at present, and after one more hour",
    ),
    (
        "blocks per day",
        "beyond these, another day pays more than more blocks; empty if days do not seem to differ",
    ),
)


def answer(gathered: MetaAnalysis) -> Answer:
    """Recommend blocks or another day for each effect. Raises: Refused, if none has three days."""
    planned = [outlook(one) for one in gathered.evidence if one.over]
    if not planned:
        raise Refused(
            "No effect has runs of three days or machines: until then, another day always pays "
            "more."
        )
    open_ones = [each for each in planned if each.of.word == "can't tell yet"]
    noun = "undecided effects" if open_ones else "effects"
    shown = open_ones or planned
    days = sum(each.another_day < each.today for each in shown)
    return Answer(
        title="The next hour",
        findings=[
            Line(
                f"An hour on another day pays more for {days} of {len(shown)} {noun}, another "
                f"hour on the last day for {len(shown) - days}.",
                tone="strong",
            )
        ],
        sections=[Section("", [table_of(COLUMNS, shown)])],
        legend=LEGEND,
        data={"effects": [_data(each) for each in planned]},
        warnings=gathered.notes,
    )


def _data(each: Outlook) -> dict[str, object]:
    return {
        "workload": each.of.workload,
        "tweakset": each.of.tweakset,
        "log_half_width": {name: getattr(each, name) for name in ("now", "today", "another_day")},
        "blocks": each.blocks,
    }
