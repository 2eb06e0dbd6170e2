"""Plan the next hour: more blocks today, or a run on another day (Kalibera and Jones, ISMM 2013).

More blocks make one run more precise, but never show the variation between days.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.answer import Answer, Column, Line, Section, Table
from analysis.terms import Refused
from control.names import undigested
from control.t_test import ALPHA, t_quantile

if TYPE_CHECKING:
    from .evidence import Contribution, Evidence, MetaAnalysis

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Outlook:
    """Expected half widths of the 95 % interval of an effect in general, on the log scale.

    now, today, another_day: at present, after another hour of the last run, after an hour on
        another day
    blocks: beyond this number of blocks, another run is worth more; None if days do not seem to
        differ
    """

    now: float
    today: float
    another_day: float
    blocks: int | None


def outlook(one: Evidence) -> Outlook:
    """Return the outlook of an effect with at least three runs.

    Raises: Refused, if its last run does not record its duration.
    """
    over, runs = one.over, one.contributions
    if over is None:
        raise Refused(
            f"{one.name} in {undigested(one.workload)} has {len(runs)} runs: an outlook needs 3."
        )
    variances = [each.error**2 for each in runs]
    last = runs[-1]
    block, blocks = last.effect.log_sd**2, last.effect.n_candidate
    more = blocks * HOUR_S / _took_s(last)
    today = [*variances[:-1], variances[-1] * blocks / (blocks + more)]
    another = [*variances, block / more]
    enough = math.ceil(block / over.tau**2) if over.tau else None
    return Outlook(
        _half_width(variances, over.tau),
        _half_width(today, over.tau),
        _half_width(another, over.tau),
        enough,
    )


def _half_width(variances: list[float], tau: float) -> float:
    weight = sum(1 / (variance + tau**2) for variance in variances)
    return t_quantile(1 - ALPHA / 2, len(variances) - 1) / math.sqrt(weight)


def _took_s(each: Contribution) -> float:
    took_s = math.fsum(cell.duration_s or 0.0 for cell in each.run.cells)
    if not took_s:
        raise Refused(
            f"{each.run.origin}: does not record the duration of its cells, so nothing can be "
            "planned from it."
        )
    return took_s


def answer(gathered: MetaAnalysis) -> Answer:
    """Recommend blocks or another day for each effect. Raises: Refused, if none has three runs."""
    planned = [(one, outlook(one)) for one in gathered.evidence if one.over]
    if not planned:
        raise Refused("No effect has three runs: until then, another day always pays more.")
    open_ones = [(one, each) for one, each in planned if one.word == "can't tell yet"] or planned
    days = sum(each.another_day < each.today for _, each in open_ones)
    rest = len(open_ones) - days
    columns = [
        Column("workload", "workload", left=True),
        Column("tweak set", "tweakset", left=True),
        Column("now\n± %", "now"),
        Column("an hour today\n± %", "today"),
        Column("another day\n± %", "another_day"),
        Column("blocks\nper run", "blocks"),
    ]
    rows = [
        [undigested(one.workload), one.name, *_percents(each), each.blocks]
        for one, each in open_ones
    ]
    of = (
        f"{len(open_ones)} undecided effects"
        if open_ones is not planned
        else f"{len(planned)} effects"
    )
    headline = (
        f"An hour on another day pays more for {days} of {of}, another hour of the last run for "
        f"{rest}."
    )
    return Answer(
        title="The next hour",
        findings=[Line(headline, tone="strong")],
        sections=[Section("", [Table(columns, rows)])],
        legend=list(_legend()),
        data={"effects": [_data(one, each) for one, each in planned]},
        warnings=gathered.notes,
    )


def _data(one: Evidence, each: Outlook) -> dict[str, object]:
    half_widths = {"now": each.now, "today": each.today, "another_day": each.another_day}
    return {
        "workload": one.workload,
        "tweakset": one.tweakset,
        "log_half_width": half_widths,
        "blocks": each.blocks,
    }


def _percents(each: Outlook) -> list[str]:
    return [f"{100 * math.expm1(value):.1f}" for value in (each.now, each.today, each.another_day)]


def _legend() -> Iterator[tuple[str, str]]:
    yield (
        "now, an hour today, another day",
        (
            "half-width of the 95 % interval of the effect in general: at present, and after one "
            "more hour"
        ),
    )
    yield (
        "blocks per run",
        "beyond these, another run pays more than more blocks; empty if days do not seem to differ",
    )
