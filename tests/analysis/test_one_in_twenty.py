"""Rates of wrong verdicts without a difference, and of findings with one: docs/verdicts.md."""

from __future__ import annotations

from dataclasses import replace

from scipy.stats import binom

from analysis.compare import compare
from analysis.load import from_json
from analysis.terms import Comparison
from tests.synthetic import STOCK, Arm, Made, saved_run

SETTING = {"vm.swappiness": "1"}
# Three tweak sets that do nothing against one stock, on a machine that drifts by ±5 %.
IDLE = Made(
    arms=(STOCK, *(Arm(f"idle-{at}", 0.0, SETTING) for at in range(3))),
    blocks=8,
    steps=4,
    warmup=0,
    run_cv=0.02,
    drift=0.05,
)


def sessions(made: Made, count: int) -> list[list[Comparison]]:
    return [
        compare(from_json(saved_run(replace(made, seed=1000 + at)), "made up"))
        for at in range(count)
    ]


def called(found: list[list[Comparison]], *words: str) -> int:
    return sum(any(comparison.verdict in words for comparison in run) for run in found)


def test_equals_are_called_different_in_1_of_20_sessions_at_most() -> None:
    """300 sessions; the binomial 99 % band of 5 % ends at 25."""
    assert called(sessions(IDLE, 300), "improved", "regressed") <= binom.ppf(0.99, 300, 0.05)


def test_the_stated_detectable_effect_is_found_4_times_in_5() -> None:
    """The median stated effect is put in as the true one.

    The band of 100 sessions is widened: it is itself estimated from 8 blocks.
    """
    made = replace(IDLE, arms=IDLE.arms[:2], drift=0.0)
    stated = sorted(run[0].mde or 0.0 for run in sessions(made, 100))[50]
    assert (
        68
        <= called(
            sessions(replace(made, arms=(STOCK, Arm("faster", stated, SETTING))), 100), "improved"
        )
        <= 90
    )


def test_equals_are_called_the_same_where_the_run_is_precise() -> None:
    made = replace(IDLE, arms=IDLE.arms[:2], steps=6, run_cv=0.01, step_cv=0.01, drift=0.0)
    assert called(sessions(made, 50), "equivalent") >= 45
