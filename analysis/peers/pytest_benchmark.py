"""pytest-benchmark --benchmark-compare-fail: one run against one, by a percentage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.sessions import few_runs

from . import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from analysis.stats.sessions import Sessions

    from . import Alarms

PERCENT = 5
SOURCE = "ionelmc/pytest-benchmark@47d66c8: src/pytest_benchmark/utils.py (PercentageRegressionCheck), docs/usage.rst (min:5%)"


def fails(sessions: Sessions, field: Callable[..., np.ndarray]) -> Alarms:
    """Call where the field of the current run is more than 5 % above that of the compared one."""
    value = field(few_runs(sessions, 1)[:, 0], axis=-1)
    return np.asarray(value[:, 1] / value[:, 0] * 100 - 100 > PERCENT)


RULES = (
    Rule("pytest-benchmark mean:5%", "1 run against 1: mean more than 5 % longer", SOURCE, 1, lambda sessions: fails(sessions, np.mean)),
    Rule("pytest-benchmark min:5%", "1 run against 1: minimum more than 5 % longer", SOURCE, 1, lambda sessions: fails(sessions, np.min)),
)
