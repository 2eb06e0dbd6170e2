"""How others decide: their rules written anew from their own source, with their own constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from analysis.stats.simulate import Floats, Sessions, few_runs, history_and_newest, pooled, run_means

if TYPE_CHECKING:
    import numpy.typing as npt

    Alarms = npt.NDArray[np.bool_]

LEVEL = 0.05  # of benchstat, pyperf, and of everybody's t-test
ASV_P, ASV_FACTOR = 0.002, 1.1
HISTORY = 10  # runs, of coiled and of conbench
COILED_SIGMAS, CONBENCH_Z = 3, 5.0
PYPERF_VALUES = 3
TWICE = 2.00  # github-action-benchmark
PERCENT = 5  # pytest-benchmark
APART, FEW = 1.05, 3
ASV = "airspeed-velocity/asv@7032df70: asv/_stats.py (is_different), asv/commands/compare.py, common_args.py (factor)"
COILED = "coiled/benchmarks@d2b75841: detect_regressions.py (n_last, n_std)"
PYTEST = "ionelmc/pytest-benchmark@47d66c8: src/pytest_benchmark/utils.py (PercentageRegressionCheck), docs/usage.rst (min:5%)"
PLAIN = "no one's in particular: what a script of five lines does"


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """A way of calling a difference.

    `says` is the rule in words with its constants, `source` where it was read. `runs` is how many runs an arm it needs at least.
    `alarms` answers, for every session, whether it calls.
    """

    name: str
    says: str
    source: str
    runs: int
    alarms: Callable[[Sessions], Alarms]


def asv(sessions: Sessions, factor: float) -> Alarms:
    """U-test on all samples, whichever run they are of; and the medians more than a factor apart, either way."""
    samples = pooled(sessions)
    n = samples.shape[-1]
    ranks = scipy.stats.rankdata(samples.reshape(len(samples), -1), axis=-1)
    u = ranks[:, :n].sum(axis=-1) - n * (n + 1) / 2
    # Above 20 samples asv takes the normal distribution, without a correction for continuity.
    p = 2 * scipy.stats.norm.sf(np.abs(u - n * n / 2) / math.sqrt(n * n * (2 * n + 1) / 12))
    medians = np.median(samples, axis=-1)
    return np.asarray((p < ASV_P) & (medians.max(axis=-1) / medians.min(axis=-1) > factor))


def benchstat(sessions: Sessions) -> Alarms:
    """Exact U-test: the run means of one arm tend to be larger."""
    means = run_means(sessions)
    return np.asarray(scipy.stats.mannwhitneyu(means[..., 0], means[..., 1], axis=1, method="exact").pvalue <= LEVEL)


def coiled(sessions: Sessions, newest: int) -> Alarms:
    """All of the newest runs reach mean + 3 SD of the history.

    The original asks for at least a second above the mean; three SD of a job of minutes are more than that.
    """
    history, last = history_and_newest(sessions, HISTORY, newest)
    limit = history.mean(axis=1) + COILED_SIGMAS * history.std(axis=1, ddof=1)
    return np.asarray((last >= limit[:, np.newaxis]).all(axis=1))


def conbench(sessions: Sessions) -> Alarms:
    """The newest run is more than 5 SD slower than the mean of the history.

    The SD is not of the runs: it is of each run's distance from the mean of those before it, the first one's being 0. That outliers are
    set aside first is left out here.
    """
    history, last = history_and_newest(sessions, HISTORY, 1)
    before = np.cumsum(history, axis=1)[:, :-1] / np.arange(1, history.shape[1])
    residuals = np.zeros_like(history)
    residuals[:, 1:] = history[:, 1:] - before
    return np.asarray((last[:, 0] - history.mean(axis=1)) / residuals.std(axis=1, ddof=1) > CONBENCH_Z)


def github_action(sessions: Sessions) -> Alarms:
    """A run does less than half the work of the other in the same time."""
    means = few_runs(sessions, 1)[:, 0].mean(axis=-1)
    return np.asarray(means[:, 1] / means[:, 0] > TWICE)


def pyperf(sessions: Sessions) -> Alarms:
    """Student's t on values; the original's table of critical values (2.009 for 58 d.f.) is taken exactly (2.002)."""
    values = pooled(sessions, PYPERF_VALUES)
    return np.asarray(scipy.stats.ttest_ind(values[:, 0], values[:, 1], axis=-1).pvalue <= LEVEL)


def pytest_benchmark(sessions: Sessions, field: Callable[..., np.ndarray]) -> Alarms:
    """The field of the current run is more than 5 % above that of the compared one."""
    value = field(few_runs(sessions, 1)[:, 0], axis=-1)
    return np.asarray(value[:, 1] / value[:, 0] * 100 - 100 > PERCENT)


def t_test(values: Floats, *, equal_var: bool = True) -> Alarms:
    return np.asarray(scipy.stats.ttest_ind(values[:, 0], values[:, 1], axis=-1, equal_var=equal_var).pvalue < LEVEL)


def apart(sessions: Sessions) -> Alarms:
    """The fastest of three runs is slower by more than 5 % than the slowest of the other three."""
    means = few_runs(sessions, FEW).mean(axis=-1)
    return np.asarray(means[..., 1].min(axis=1) > APART * means[..., 0].max(axis=1))


RULES = (
    DecisionRule(
        "asv compare, factor 1.1",
        f"U-test p < {ASV_P} on all steps of all runs, and medians more than {ASV_FACTOR} times apart "
        "(its defaults; here with 10 rounds, not 2)",
        ASV,
        2,
        partial(asv, factor=ASV_FACTOR),
    ),
    DecisionRule("asv compare, factor 1", f"the same U-test, p < {ASV_P}, with `--factor 1`", ASV, 2, partial(asv, factor=1.0)),
    DecisionRule(
        "benchstat",
        f"exact Mann-Whitney U-test on the run means, p ≤ {LEVEL}",
        "golang/perf@712aea8: benchmath/anone.go (Compare), benchmath/sample.go (CompareAlpha)",
        4,
        benchstat,
    ),
    DecisionRule(
        "coiled/benchmarks, PR", f"newest run ≥ mean + {COILED_SIGMAS} SD of {HISTORY} runs", COILED, 10, partial(coiled, newest=1)
    ),
    DecisionRule(
        "coiled/benchmarks, main",
        f"each of the 3 newest runs ≥ mean + {COILED_SIGMAS} SD of {HISTORY} runs",
        COILED,
        10,
        partial(coiled, newest=3),
    ),
    DecisionRule(
        "conbench",
        f"newest run more than {CONBENCH_Z:.0f} SD slower than the mean of a history of {HISTORY} runs",
        "conbench/conbench@3af4a552: conbench/api/compare.py (DEFAULT_Z_SCORE_THRESHOLD), conbench/entities/history.py",
        10,
        conbench,
    ),
    DecisionRule(
        "github-action-benchmark",
        "1 run against 1: mean more than 200 % of the former (its default alert-threshold)",
        "benchmark-action/github-action-benchmark@c38cce98: action.yml (alert-threshold), src/write.ts (getRatio)",
        1,
        github_action,
    ),
    DecisionRule(
        "pyperf compare_to",
        f"Student's t on {PYPERF_VALUES} values of each run, pooled, p ≤ {LEVEL} (its default is 20 processes; here 10)",
        "psf/pyperf@ab7fd04: pyperf/_utils.py (is_significant), pyperf/_runner.py (values, processes)",
        2,
        pyperf,
    ),
    DecisionRule(
        "pytest-benchmark mean:5%", "1 run against 1: mean more than 5 % longer", PYTEST, 1, partial(pytest_benchmark, field=np.mean)
    ),
    DecisionRule(
        "pytest-benchmark min:5%", "1 run against 1: minimum more than 5 % longer", PYTEST, 1, partial(pytest_benchmark, field=np.min)
    ),
    DecisionRule(
        "Welch's t on run means",
        f"Welch's t on one number a run, p < {LEVEL}, arms not paired",
        PLAIN,
        2,
        lambda sessions: t_test(run_means(sessions).swapaxes(1, 2), equal_var=False),
    ),
    DecisionRule(
        "t on rounds, 1 run v 1",
        f"Student's t on the steps of one run each, p < {LEVEL}",
        PLAIN,
        1,
        lambda sessions: t_test(few_runs(sessions, 1)[:, 0]),
    ),
    DecisionRule(
        "t on rounds, all runs",
        f"Student's t on the steps of all runs, pooled, p < {LEVEL}",
        PLAIN,
        2,
        lambda sessions: t_test(pooled(sessions)),
    ),
    DecisionRule("ranges 5 % apart, 3 v 3", f"min of 3 runs > {APART} × max of 3 runs", PLAIN, FEW, apart),
)
