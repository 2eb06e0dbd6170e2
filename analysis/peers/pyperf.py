"""pyperf compare_to: Student's t on all values of all processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from analysis.stats.sessions import pooled

from . import Rule

if TYPE_CHECKING:
    from analysis.stats.sessions import Sessions

    from . import Alarms

VALUES = 3
LEVEL = 0.05


def different(sessions: Sessions) -> Alarms:
    """Call where the values differ; the original's table of critical values (2.009 for 58 d.f.) is taken exactly (2.002)."""
    values = pooled(sessions, VALUES)
    return np.asarray(scipy.stats.ttest_ind(values[:, 0], values[:, 1], axis=-1).pvalue <= LEVEL)


RULES = (
    Rule(
        "pyperf compare_to",
        f"Student's t on {VALUES} values of each run, pooled, p ≤ {LEVEL} (its default is 20 processes; here 10)",
        "psf/pyperf@ab7fd04: pyperf/_utils.py (is_significant), pyperf/_runner.py (values, processes)",
        2,
        different,
    ),
)
