"""One-way analysis of variance as studies of DLIO's results do it, and as it should be done.

Epochs of one run are no replicates: they share its machine, its page cache and its order of files, so an F over them (`over_epochs`)
says how steady a run is and not whether a setting matters. The error that counts is what a run repeated scatters by (`run_error`).

Source: Hurlbert, Ecological Monographs 1984 (pseudo-replication).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, variance
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Oneway:
    """An F with its degrees of freedom; `eta2` is the part of all variation that lies between the levels, None on a run error."""

    f: float
    df_between: int
    df_error: int
    p: float
    eta2: float | None = None


@dataclass(frozen=True, slots=True)
class RunError:
    """What runs of one setting scatter by: `sd` in the response's unit, pooled over settings that were run more than once."""

    sd: float
    df: int
    settings: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over runs with its sample deviation and 95 % t-interval; both are None for a single run, which has none."""

    n: int
    mean: float
    sd: float | None = None
    low: float | None = None
    high: float | None = None


def over_epochs(levels: Mapping[str, Sequence[float]], skip: int = 0) -> Oneway | None:
    """F with epochs as if they were replicates, the first `skip` of each run left out; None where too few are left.

    Pseudo-replication: to be shown as such, and concluded from by nobody.
    """
    groups = [np.asarray(values[skip:], float) for values in levels.values()]
    between, total = len(groups) - 1, sum(map(len, groups))
    error = total - len(groups)
    if between < 1 or error < 1 or min(map(len, groups)) < 1:
        return None
    everything = np.concatenate(groups)
    ss_total = float(((everything - everything.mean()) ** 2).sum())
    ss_error = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    if ss_error <= 0 or ss_total <= 0:
        return None
    f = (ss_total - ss_error) / between / (ss_error / error)
    return Oneway(f, between, error, float(stats.f.sf(f, between, error)), 1 - ss_error / ss_total)


def run_error(settings: Mapping[object, Sequence[float]]) -> RunError | None:
    """Pool what repeated runs of one setting scatter by; None where no setting was run twice.

    For pairs it is the root of the mean of d²/2.
    """
    repeated = [values for values in settings.values() if len(values) > 1]
    df = sum(len(values) - 1 for values in repeated)
    if not df:
        return None
    ss = math.fsum(variance(values) * (len(values) - 1) for values in repeated)
    return RunError(math.sqrt(ss / df), df, len(repeated))


def on_run_error(means: Sequence[Sequence[float]], error: RunError) -> Oneway | None:
    """F of levels, each with the means of its runs, on the scatter of repeated runs; None where that is 0 or there is one level."""
    if len(means) < 2 or error.sd <= 0:
        return None
    grand = fmean([value for runs in means for value in runs])
    between = len(means) - 1
    ms = math.fsum(len(runs) * (fmean(runs) - grand) ** 2 for runs in means) / between
    f = ms / error.sd**2
    return Oneway(f, between, error.df, float(stats.f.sf(f, between, error.df)))


def interval(values: Sequence[float]) -> Interval:
    """The mean over runs and how sure it is: 95 %, by Student's t."""
    mean = fmean(values)
    if len(values) < 2:
        return Interval(len(values), mean)
    sd = math.sqrt(variance(values))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * sd / math.sqrt(len(values))
    return Interval(len(values), mean, sd, mean - half, mean + half)
