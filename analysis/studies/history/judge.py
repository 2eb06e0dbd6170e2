"""From series to a history: where each changed, held to one false-alarm rate for all of them together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.stats.adjust import benjamini_hochberg
from analysis.stats.changepoint import LEVEL, change_points
from analysis.stats.step_evidence import SHORTEST

from .records import Change, History, Judged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analysis.stats.changepoint import ChangePoint

    from .gather import Gathered
    from .records import Series


def judge(gathered: Gathered, refused: Iterable[str] = ()) -> History:
    """Look for changes in every series that is long enough.

    A hundred quiet series would raise five alarms at 5 % each. So the series are one screen: one is called changed only if it is so
    after Benjamini and Hochberg's adjustment for all of them.
    """
    judged = [_judged(series) for series in gathered.series]
    asked = [at for at, one in enumerate(judged) if one.p is not None]
    adjusted = benjamini_hochberg([one.p for one in judged if one.p is not None])
    for at, p_adjusted in zip(asked, adjusted, strict=True):
        changes = judged[at].changes if p_adjusted <= LEVEL else ()
        judged[at] = replace(judged[at], changes=changes, p_adjusted=p_adjusted)
    return History(gathered.runs, gathered.first_utc, gathered.last_utc, tuple(judged), tuple(refused), gathered.notes)


def _judged(series: Series) -> Judged:
    if len(series.points) < SHORTEST:
        return Judged(series, reason=f"{len(series.points)} runs, at least {SHORTEST} are needed")
    found = change_points([math.log(point.value) for point in series.points])
    return Judged(series, tuple(_change(series, point) for point in found.points), found.p)


def _change(series: Series, point: ChangePoint) -> Change:
    sign = 1.0 if series.metric.better == "higher" else -1.0
    gain, *ends = (math.expm1(sign * shift) for shift in (point.shift, point.low, point.high))
    return Change(series, point, gain, min(ends), max(ends), math.exp(point.before), math.exp(point.after))


def regressions(history: History, recent: int) -> list[Change]:
    """Changes for the worse that began within the last `recent` runs of their series and that nobody has acknowledged."""
    return [
        change
        for change in history.changes
        if change.verdict == "regressed" and change.acknowledged is None and change.runs_since <= recent
    ]


def is_judged(history: History) -> bool:
    """Whether any series could be judged."""
    return any(one.p is not None for one in history.judged)
