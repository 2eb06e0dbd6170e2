"""The peers' rules: each calls on one side of its constant and not on the other, and says where the constant stands."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.stats

from analysis.stats.simulate import Sessions
from analysis.studies.calibration.peers import RULES as ALL_RULES
from analysis.studies.calibration.peers import DecisionRule

RULES = {rule.name: rule for rule in ALL_RULES}
BLOCKS, STEPS = 10, 20


def calls(name: str, baseline: np.ndarray, candidate: np.ndarray) -> bool:
    """Whether a rule calls one session; arms have shape (blocks, steps), or (blocks,) for steps that are all alike."""
    arms = [np.broadcast_to(arm.T, (STEPS, len(arm))).T if arm.ndim == 1 else arm for arm in (baseline, candidate)]
    return bool(RULES[name].alarms(Sessions(np.stack(arms, axis=1)[np.newaxis], interleaved=False))[0])


LEVEL = np.ones(BLOCKS)
# Mean 1, standard deviation 0.01·√(10/9) = 0.010541.
HISTORY = 1 + 0.01 * np.array([1, -1] * 5)


PAIRS = np.tile([1.0, 2.0], (BLOCKS, STEPS // 2))
PAIRS[1::2] = 3 - PAIRS[1::2]
STEADY = 1 + 1e-6 * np.array([1, -1] * 5)
THREE = np.array([1, 1.1, 0.9])
# Rule: the baseline, a candidate that it calls and one that it does not, and why the constant stands between the two.
EDGES = {
    "pytest-benchmark mean:5%": (LEVEL, LEVEL * 1.051, LEVEL * 1.049),
    "pytest-benchmark min:5%": (LEVEL, LEVEL * 1.051, LEVEL / 1.2),
    "github-action-benchmark": (LEVEL, LEVEL * 2.01, LEVEL * 1.99),
    # 4 against 4, all apart: p = 2/C(8,4) = 2/70 = .029. One pair out of order: p = 4/70 = .057.
    "benchstat": (np.array([1.0, 2, 3, 4]), np.array([5.0, 6, 7, 8]), np.array([3.5, 6, 7, 8])),
    # 1 + 3 · 0.010541 = 1.0316.
    "coiled/benchmarks, PR": (HISTORY, LEVEL * 1.0317, LEVEL * 1.0315),
    # History 1.01, .99, 1.01 …: each against the mean of those before it: 0, -.02, .01, -.0133, .01, -.012, .01, -.0114, .01, -.0111.
    # Their squares add up to .001376, their mean is -.00279: SD² = (.001376 - 10 · .00279²)/9, SD = .01201. The history's mean is 1,
    # so the limit is 1.0601.
    "conbench": (HISTORY, LEVEL * 1.0602, LEVEL * 1.0599),
    # Values 1 and 2 in turn: SD² pooled = 60/58 · .25, error = √(2 · SD²/30) = .1313; calls from 2.002 · .1313 = .2629 on.
    "pyperf compare_to": (PAIRS, PAIRS + 0.264, PAIRS + 0.262),
    # One arm steady, SD .010541 in the other: error .003333, about 9 d.f., so that 2.26 errors are needed. Student's 18 take 2.10.
    "Welch's t on run means": (STEADY, HISTORY + 2.30 * 0.003333, HISTORY + 2.18 * 0.003333),
    "ranges 5 % apart, 3 v 3": (THREE, np.array([1.2, 1.156, 1.3]), np.array([1.2, 1.154, 1.3])),
}


@pytest.mark.parametrize("rule", EDGES)
def test_a_rule_calls_on_one_side_of_its_constant_only(rule: str) -> None:
    baseline, beyond, within = EDGES[rule]
    assert calls(rule, baseline, beyond)
    assert not calls(rule, baseline, within)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_what_it_is_and_answers_for_every_session(rule: DecisionRule) -> None:
    """The source is a file at a commit, unless the rule is nobody's."""
    assert rule.says
    assert re.match(r"[\w.-]+/[\w.-]+@[0-9a-f]{7,8}: \S", rule.source) or rule.source.startswith("no one's")
    steps_s = np.random.default_rng(1).normal(1, 0.01, (7, BLOCKS, 2, STEPS))
    alarms = rule.alarms(Sessions(steps_s))
    assert alarms.shape == (7,)
    assert alarms.dtype == np.bool_
    assert len(RULES) == len(ALL_RULES)
    assert rule.alarms(Sessions(steps_s[:, : rule.runs])).shape == (7,), "asked of as few runs as it says"
    assert rule.alarms(Sessions(steps_s * np.array([1, 3])[:, np.newaxis])).all(), "three times as slow"


def test_pytest_benchmark_takes_the_field_it_is_told() -> None:
    """One slow step in twenty: the mean rises by 50 %, the minimum stays."""
    slow = np.ones((BLOCKS, STEPS))
    slow[:, 3] = 11
    assert calls("pytest-benchmark mean:5%", LEVEL, slow)
    assert not calls("pytest-benchmark min:5%", LEVEL, slow)


def test_asv_wants_both_a_rank_test_and_a_factor_between_medians() -> None:
    rng = np.random.default_rng(3)
    baseline, other = rng.normal(1, 0.001, (2, BLOCKS, STEPS))
    assert calls("asv compare, factor 1.1", baseline, other * 1.11)
    assert calls("asv compare, factor 1.1", baseline, other / 1.11)
    assert not calls("asv compare, factor 1.1", baseline, other * 1.09)
    assert calls("asv compare, factor 1", baseline, other * 1.09)
    wide, wider = rng.normal(1, 1.0, (2, BLOCKS, STEPS))
    assert not calls("asv compare, factor 1", wide, wider + 0.2)


def test_asv_calls_below_p_0_002() -> None:
    """Against scipy's asymptotic U-test without continuity correction, on both sides of the level."""
    rng = np.random.default_rng(4)
    steps_s = rng.normal(1, 0.1, (300, BLOCKS, 2, STEPS)) + 0.03 * np.array([0, 1])[:, np.newaxis]
    x, y = (steps_s[:, :, arm].reshape(300, -1) for arm in (0, 1))
    p = scipy.stats.mannwhitneyu(x, y, axis=1, method="asymptotic", use_continuity=False).pvalue
    called = RULES["asv compare, factor 1"].alarms(Sessions(steps_s))
    assert 0 < called.sum() < 300
    assert (called == (p < 0.002)).all()


def test_coiled_main_wants_three_runs_in_a_row() -> None:
    newest = LEVEL * 1.04
    assert calls("coiled/benchmarks, main", HISTORY, newest)
    newest[2] = 1.03
    assert calls("coiled/benchmarks, PR", HISTORY, newest)
    assert not calls("coiled/benchmarks, main", HISTORY, newest)


def test_tests_on_rounds_take_steps_for_measurements() -> None:
    """Two runs 1 % apart, steps that scatter by 0.1 %: called, though two runs say nothing of how far runs differ."""
    rng = np.random.default_rng(5)
    baseline, other = rng.normal(1, 0.001, (2, 1, STEPS))
    for rule in ("t on rounds, 1 run v 1", "t on rounds, all runs"):
        many = (np.repeat(arm, 2, axis=0) for arm in (baseline, other * 1.01))
        assert calls(rule, *many)
