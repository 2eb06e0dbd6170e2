"""Rules without an owner, as scripts beside many repositories have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from analysis.stats.sessions import few_runs, pooled, run_means

from . import Rule

if TYPE_CHECKING:
    from analysis.stats.sessions import Floats, Sessions

    from . import Alarms

LEVEL = 0.05
APART = 1.05
FEW = 3


def t_test(values: Floats, *, equal_var: bool = True) -> Alarms:
    """Call where two samples, shape (sessions, 2, values), differ by a t-test."""
    return np.asarray(scipy.stats.ttest_ind(values[:, 0], values[:, 1], axis=-1, equal_var=equal_var).pvalue < LEVEL)


def rounds_of_one(sessions: Sessions) -> Alarms:
    """Steps of one run against steps of another, as if each were a measurement of its own."""
    return t_test(few_runs(sessions, 1)[:, 0])


def rounds_of_all(sessions: Sessions) -> Alarms:
    """The same with the steps of all runs in one heap."""
    return t_test(pooled(sessions))


def welch(sessions: Sessions) -> Alarms:
    """Welch's t-test with one number a run."""
    return t_test(run_means(sessions).swapaxes(1, 2), equal_var=False)


def apart(sessions: Sessions) -> Alarms:
    """The fastest of three runs is slower by more than 5 % than the slowest of the other three."""
    means = few_runs(sessions, FEW).mean(axis=-1)
    return np.asarray(means[..., 1].min(axis=1) > APART * means[..., 0].max(axis=1))


PLAIN = "no one's in particular: what a script of five lines does"
RULES = (
    Rule("Welch's t on run means", f"Welch's t on one number a run, p < {LEVEL}, arms not paired", PLAIN, 2, welch),
    Rule("t on rounds, 1 run v 1", f"Student's t on the steps of one run each, p < {LEVEL}", PLAIN, 1, rounds_of_one),
    Rule("t on rounds, all runs", f"Student's t on the steps of all runs, pooled, p < {LEVEL}", PLAIN, 2, rounds_of_all),
    Rule("ranges 5 % apart, 3 v 3", f"min of 3 runs > {APART} × max of 3 runs", PLAIN, FEW, apart),
)
