"""asv compare: the U-test on all samples of a commit, whichever run they are of, and a factor between the medians."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from analysis.stats.sessions import pooled

from . import Rule

if TYPE_CHECKING:
    from analysis.stats.sessions import Sessions

    from . import Alarms

P = 0.002
FACTOR = 1.1
SOURCE = "airspeed-velocity/asv@7032df70: asv/_stats.py (is_different), asv/commands/compare.py, common_args.py (factor)"


def different(sessions: Sessions, factor: float) -> Alarms:
    """Call where the samples differ and the medians are more than a factor apart, either way."""
    samples = pooled(sessions)
    n = samples.shape[-1]
    ranks = scipy.stats.rankdata(samples.reshape(len(samples), -1), axis=-1)
    u = ranks[:, :n].sum(axis=-1) - n * (n + 1) / 2
    # Above 20 samples asv takes the normal distribution, without a correction for continuity.
    p = 2 * scipy.stats.norm.sf(np.abs(u - n * n / 2) / math.sqrt(n * n * (2 * n + 1) / 12))
    medians = np.median(samples, axis=-1)
    ratio = medians.max(axis=-1) / medians.min(axis=-1)
    return np.asarray((p < P) & (ratio > factor))


RULES = (
    Rule(
        "asv compare, factor 1.1",
        f"U-test p < {P} on all steps of all runs, and medians more than {FACTOR} times apart (its defaults; here with 10 rounds, not 2)",
        SOURCE,
        2,
        lambda sessions: different(sessions, FACTOR),
    ),
    Rule("asv compare, factor 1", f"the same U-test, p < {P}, with `--factor 1`", SOURCE, 2, lambda sessions: different(sessions, 1.0)),
)
