"""How often our verdicts are wrong where the truth is known, and how often they see it: what docs/calibration.md claims, and more.

Bands are exact binomial 99 % bands around the nominal rate. Seeds are fixed: these tests give the same answer every time. Most judge on
arrays, word for word as `compare` does (../stats/test_many.py); the others read and compare whole saved runs.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from analysis.compare import compare
from analysis.load import from_json
from analysis.stats import many
from analysis.stats.adjust import benjamini_hochberg
from analysis.stats.simulate import BLOCKS, STEPS, Machine, Sessions, simulate
from analysis.studies.calibration.peers import RULES as ALL_RULES
from analysis.studies.calibration.peers import DecisionRule
from analysis.studies.calibration.rates import DRIFT, QUIET, ROUGH, SCENARIOS, SUMMARIES, band, family_rates, single_rates, word_rates
from analysis.terms import Comparison
from tests.synthetic import STOCK, Arm, Made, saved_run

TRIALS = 4_000
FEWER = 2_000  # where only one end of the band is asked for
FAMILIES = 400
MARGIN = 0.03
GAUSSIAN = {
    "quiet": QUIET,
    "no run effects": Machine(run_cv=0.0),
    "few steps' worth": Machine(run_cv=0.002),
    "drift": Machine(drift=DRIFT),
    "mostly drift": Machine(drift=0.10, run_cv=0.005),
    "AR(1)": Machine(carry_over=0.5),
    "AR(1), strongly": Machine(carry_over=0.9),
}
# Where the t-test errs on the safe side: single odd runs widen its interval more than they move its mean.
LUMPY = {"stalls": ROUGH, "heavy tails": Machine(tails=3), "stalled steps": Machine(stalled=0.005), "struck runs": Machine(struck=0.10)}


def effects(machine: Machine, slower: float = 0.0, quantile: float | None = None, count: int = TRIALS, family: int = 1) -> many.Effects:
    sessions = simulate(machine, slower, count * family, np.random.default_rng(1))
    gains = many.log_gains(sessions, quantile)
    return many.paired_effects(gains.reshape(count, family, BLOCKS), MARGIN)


def shares(said: np.ndarray, words: tuple[str, ...], *wanted: str) -> float:
    return float(np.isin(said, [words.index(word) for word in wanted]).any(axis=-1).mean())


def called(found: many.Effects) -> float:
    return shares(many.words(found), many.WORDS, "improved", "regressed")


@pytest.mark.parametrize("machine", {**GAUSSIAN, **LUMPY}.values(), ids=[*GAUSSIAN, *LUMPY])
def test_on_every_machine_verdicts_are_wrong_one_time_in_twenty_at_most(machine: Machine) -> None:
    """Of equals, in either summary and in families; of a loss at the limit, to the verdict and to the gate (3 % less is 1/.97 of the time).

    Where noise is Gaussian equals are not called less often either: a rule that never errs is one that never sees.
    """
    low, high = band(TRIALS)
    for quantile in SUMMARIES.values():
        share = called(effects(machine, quantile=quantile))
        assert share <= high
        assert share >= low or machine in LUMPY.values()
    for size in (5, 20):
        assert called(effects(machine, count=FAMILIES, family=size)) <= band(FAMILIES)[1]
    most = band(FEWER)[1]
    assert shares(many.words(effects(machine, MARGIN, count=FEWER)), many.WORDS, "equivalent") <= most
    at_limit = effects(machine, 1 / (1 - MARGIN) - 1, count=FEWER)
    assert shares(many.rulings(at_limit, MARGIN), many.RULINGS, "pass") <= most
    assert shares(many.rulings(effects(machine, count=FEWER), MARGIN), many.RULINGS, "regression") <= most


def test_a_screen_of_equals_has_no_more_false_findings() -> None:
    """Benjamini & Hochberg: where nothing is true, any finding is a false one, and there is one in at most 5 % of families."""
    found = effects(QUIET, count=FAMILIES, family=20)
    assert (benjamini_hochberg(found.p) < 0.05).any(axis=-1).mean() <= band(FAMILIES)[1]


APART = (Machine(interleaved=False), *(Machine(drift=one, interleaved=False) for one in (DRIFT, 0.2)))
REMEMBERING = tuple(Machine(carry_over=one, interleaved=False) for one in (0.35, 0.5))


@pytest.mark.parametrize("machine", [*APART, *REMEMBERING], ids=["quiet", "drift", "much drift", "AR(1) .35", "AR(1) .5"])
def test_equals_that_ran_one_after_the_other_are_called_different_one_time_in_twenty_at_most(machine: Machine) -> None:
    """What looks like a tweak there is drift, or runs that resemble their neighbours; taken for independent runs it calls up to all."""
    sessions = simulate(machine, 0.0, FEWER, np.random.default_rng(1))
    assert called(many.side_by_side([many.effects(sessions, MARGIN)])) <= band(FEWER)[1]
    if machine != APART[0]:
        assert called(many.side_by_side([many.paired_effects(many.log_gains(sessions), MARGIN)])) > 0.1


def test_a_large_difference_is_still_found_between_arms_one_after_the_other() -> None:
    """10 % is 4.8 standard deviations of a run: found nearly always; half of it three times in four, in blocks always."""
    shares_found = [
        called(many.side_by_side([many.effects(simulate(Machine(interleaved=False), slower, FEWER, np.random.default_rng(1)), MARGIN)]))
        for slower in (0.05, 0.10)
    ]
    assert 0.6 < shares_found[0] < 0.9
    assert shares_found[1] > 0.95


def test_three_percent_is_found_with_ten_blocks_at_a_run_cv_of_two_percent() -> None:
    """At least 80 % are asked for; the noncentral t says .83: log 1.03 over √2 · √(2 %² + 1 %²/20 steps) / √10 blocks."""
    error = math.sqrt(2 * (QUIET.run_cv**2 + QUIET.step_cv**2 / STEPS) / BLOCKS)
    power = scipy.stats.nct.sf(scipy.stats.t.isf(0.025, BLOCKS - 1), BLOCKS - 1, math.log(1.03) / error)
    words = many.words(effects(QUIET, 0.03))
    low, high = band(TRIALS, power)
    assert 0.80 < low <= shares(words, many.WORDS, "regressed") <= high
    assert shares(words, many.WORDS, "improved") == 0


def test_tables_give_every_rule_the_same_sessions_and_ours_what_the_arrays_say() -> None:
    rates, alone = single_rates(5, 400), single_rates(5, 400, [scenario for scenario in SCENARIOS if scenario.name == "+3 %"])
    at = rates.columns.index("+3 %")
    assert {rule: row[at] for rule, row in rates.rows.items()} == {rule: row[0] for rule, row in alone.rows.items()}
    words = word_rates(5, 400)
    said = dict(zip(words.columns, words.rows["+3 %"], strict=True))
    assert (said["improved"], said["regressed"]) == (0, alone.rows["ours, throughput"][0])
    assert said["regression"] == alone.rows["ours, gate at 3 %"][0]
    assert single_rates(6, 400).rows != rates.rows


def test_what_is_right_for_one_contrast_is_wrong_for_twenty_unless_it_is_adjusted() -> None:
    """1 - .95^20 = .64 of families, with whatever test."""
    rows = family_rates(5, 400, [20]).rows
    low, high = band(400, 1 - 0.95**20)
    (welch,) = rows["Welch's t on run means"]
    (ours,) = rows["ours, throughput"]
    assert welch is not None
    assert ours is not None
    assert low <= welch <= high
    assert ours <= band(400)[1]


SETTING = {"vm.swappiness": "1"}
# Three tweak sets that do nothing against one stock: an A/A run that does not know it is one.
IDLE = Made(arms=(STOCK, *(Arm(f"idle-{at}", 0.0, SETTING) for at in range(3))), steps=4, warmup=0, run_cv=0.02, step_cv=0.02)


def trials(made: Made, count: int) -> list[list[Comparison]]:
    return [compare(from_json(saved_run(replace(made, seed=1000 + at)), "trial")) for at in range(count)]


def verdicts(runs: list[list[Comparison]], *words: str) -> int:
    return sum(any(one.verdict in words for one in run) for run in runs)


def test_arms_that_share_their_baseline_raise_no_more_alarms_through_the_whole_pipeline() -> None:
    """One stock cell enters three contrasts of its block: Holm holds whatever hangs together. Times drift by ±5 % besides."""
    runs = trials(replace(IDLE, drift=0.05, blocks=8), 150)
    assert verdicts(runs, "improved", "regressed") <= 150 * band(150)[1]


def test_the_detectable_effect_a_run_states_is_the_one_it_finds() -> None:
    """Power at 80 %: the median stated MDE is put in as the true effect, and about 4 runs in 5 call it.

    The tolerance is a 99 % band of 100 runs, widened because the MDE is itself an estimate from 8 blocks.
    """
    stated = sorted(run[0].mde or 0.0 for run in trials(replace(IDLE, arms=IDLE.arms[:2], blocks=8), 100))[50]
    found = verdicts(trials(replace(IDLE, arms=(STOCK, Arm("faster", stated, SETTING)), blocks=8), 100), "improved")
    assert 0.68 * 100 <= found <= 0.90 * 100


def test_equals_are_called_equivalent_where_the_run_is_precise_enough() -> None:
    made = Made(arms=(STOCK, Arm("idle", 0.0, SETTING)), blocks=8, steps=6, warmup=0, run_cv=0.01, step_cv=0.01)
    assert verdicts(trials(made, 50), "equivalent") >= 45


RULES = {rule.name: rule for rule in ALL_RULES}


def calls(name: str, baseline: np.ndarray, candidate: np.ndarray) -> bool:
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
