"""coiled/benchmarks: the newest runs against three standard deviations of the ten before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.sessions import history_and_newest

from . import Rule

if TYPE_CHECKING:
    from analysis.stats.sessions import Sessions

    from . import Alarms

SIGMAS = 3
HISTORY = 10
SOURCE = "coiled/benchmarks@d2b75841: detect_regressions.py (n_last, n_std)"


def beyond(sessions: Sessions, newest: int) -> Alarms:
    """Call where all of the newest runs reach mean + 3 SD of the history.

    The original asks for at least a second above the mean; three SD of a job of minutes are more than that.
    """
    history, last = history_and_newest(sessions, HISTORY, newest)
    limit = history.mean(axis=1) + SIGMAS * history.std(axis=1, ddof=1)
    return np.asarray((last >= limit[:, np.newaxis]).all(axis=1))


RULES = (
    Rule("coiled/benchmarks, PR", f"newest run ≥ mean + {SIGMAS} SD of {HISTORY} runs", SOURCE, 10, lambda sessions: beyond(sessions, 1)),
    Rule(
        "coiled/benchmarks, main",
        f"each of the 3 newest runs ≥ mean + {SIGMAS} SD of {HISTORY} runs",
        SOURCE,
        10,
        lambda sessions: beyond(sessions, 3),
    ),
)
