"""conbench: how many standard deviations the newest run lies from its history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.sessions import history_and_newest

from . import Rule

if TYPE_CHECKING:
    from analysis.stats.sessions import Sessions

    from . import Alarms

Z = 5.0
HISTORY = 10


def beyond(sessions: Sessions) -> Alarms:
    """Call where the newest run is more than 5 SD slower than the mean of the history.

    The SD is not of the runs: it is of each run's distance from the mean of those before it, the first one's being 0. That outliers are
    set aside first is left out here.
    """
    history, last = history_and_newest(sessions, HISTORY, 1)
    before = np.cumsum(history, axis=1)[:, :-1] / np.arange(1, history.shape[1])
    residuals = np.zeros_like(history)
    residuals[:, 1:] = history[:, 1:] - before
    z = (last[:, 0] - history.mean(axis=1)) / residuals.std(axis=1, ddof=1)
    return np.asarray(z > Z)


RULES = (
    Rule(
        "conbench",
        f"newest run more than {Z:.0f} SD slower than the mean of a history of {HISTORY} runs",
        "conbench/conbench@3af4a552: conbench/api/compare.py (DEFAULT_Z_SCORE_THRESHOLD), conbench/entities/history.py",
        10,
        beyond,
    ),
)
