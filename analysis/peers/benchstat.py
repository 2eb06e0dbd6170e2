"""benchstat: the exact U-test on one number a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from analysis.stats.sessions import run_means

from . import Rule

if TYPE_CHECKING:
    from analysis.stats.sessions import Sessions

    from . import Alarms

ALPHA = 0.05


def different(sessions: Sessions) -> Alarms:
    """Call where the run means of one arm tend to be larger."""
    means = run_means(sessions)
    p = scipy.stats.mannwhitneyu(means[..., 0], means[..., 1], axis=1, method="exact").pvalue
    return np.asarray(p <= ALPHA)


RULES = (
    Rule(
        "benchstat",
        f"exact Mann-Whitney U-test on the run means, p ≤ {ALPHA}",
        "golang/perf@712aea8: benchmath/anone.go (Compare), benchmath/sample.go (CompareAlpha)",
        4,
        different,
    ),
)
