"""github-action-benchmark: the newest value against the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.sessions import few_runs

from . import Rule

if TYPE_CHECKING:
    from analysis.stats.sessions import Sessions

    from . import Alarms

THRESHOLD = 2.00


def alert(sessions: Sessions) -> Alarms:
    """Call where a run does less than half the work of the other in the same time."""
    means = few_runs(sessions, 1)[:, 0].mean(axis=-1)
    return np.asarray(means[:, 1] / means[:, 0] > THRESHOLD)


RULES = (
    Rule(
        "github-action-benchmark",
        "1 run against 1: mean more than 200 % of the former (its default alert-threshold)",
        "benchmark-action/github-action-benchmark@c38cce98: action.yml (alert-threshold), src/write.ts (getRatio)",
        1,
        alert,
    ),
)
