"""A history for programs: every series with its changes, with units in the names of what is measured."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .history import Change, History, Judged


def as_json(history: History, worse: Sequence[Change], exit_code: int) -> str:
    """Write a history; `worse` are the recent changes for the worse that nobody has acknowledged."""
    said = {
        "exit_code": exit_code,
        "runs": history.runs,
        "first_utc": history.first_utc,
        "last_utc": history.last_utc,
        "recent_regressions": len(worse),
        "series": [_series(one) for one in history.judged],
        "notes": history.notes,
        "refused": history.refused,
    }
    return json.dumps(said, indent=2, allow_nan=False) + "\n"


def _series(one: Judged) -> dict[str, object]:
    series = one.series
    return {
        "study": series.study,
        "workload": series.workload,
        "variant": series.variant,
        "tweakset": series.tweakset,
        "relative_to": series.relative_to,
        "metric": series.metric.name,
        "better": series.metric.better,
        "machine": series.machine,
        "runs": len(series.points),
        "not_judged": one.reason,
        "p": one.p,
        "p_adjusted": one.p_adjusted,
        "changes": [_change(change) for change in one.changes],
    }


def _change(change: Change) -> dict[str, object]:
    """One change: gains are fractions, above 0 is better; levels are in the metric's unit, or ratios where the series is relative.

    `evidence` is what other tools judge by, on the logarithm of the values.
    """
    found = change.found
    return {
        "verdict": change.verdict,
        "acknowledged": change.acknowledged,
        "last_before": asdict(change.last_before),
        "first": asdict(change.first),
        "runs_since": change.runs_since,
        "gain": change.gain,
        "low": change.low,
        "high": change.high,
        "before": change.before,
        "after": change.after,
        "evidence": {"energy": found.energy, "student_t": found.student_t, "df": found.df, "student_p": found.student_p},
    }
