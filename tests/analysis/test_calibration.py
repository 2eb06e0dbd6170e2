"""The shipped pipeline on made-up runs whose truth is known: how often it cries wolf, and how often it sees one.

Each trial is a whole saved run, read and compared as any other, with run effects (cells differ by themselves) as real ones have.
Bands are exact binomial 99 % bands around the nominal rate. Seeds are fixed: these tests give the same answer every time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import scipy.stats

from analysis.compare import compare
from analysis.load import from_json
from tests.synthetic import STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from analysis.terms import Comparison

TRIALS = 1000
SETTING = {"vm.swappiness": "1"}
# Three tweak sets that do nothing: an A/A run that does not know it is one.
IDLE = Made(arms=(STOCK, *(Arm(f"idle-{at}", 0.0, SETTING) for at in range(3))), steps=4, warmup=0, run_cv=0.02, step_cv=0.02)


def band(rate: float, trials: int) -> tuple[int, int]:
    """Counts a rate may give in so many trials, 99 times in 100."""
    low, high = scipy.stats.binom.interval(0.99, trials, rate)
    return int(low), int(high)


_done: dict[str, list[list[Comparison]]] = {}


def trials(made: Made, count: int = TRIALS) -> list[list[Comparison]]:
    """Compare as many runs, alike but for their seed; two tests that ask for the same get the same."""
    key = f"{made} {count}"
    if key not in _done:
        _done[key] = [compare(from_json(saved_run(replace(made, seed=1000 + at)), "trial")) for at in range(count)]
    return _done[key]


def single_alarms(runs: list[list[Comparison]]) -> int:
    """Runs in which the first contrast alone has p < 0.05."""
    return sum(run[0].primary is not None and run[0].primary.p < 0.05 for run in runs)


def verdicts(runs: list[list[Comparison]], *words: str) -> int:
    """Runs in which any contrast got one of these words."""
    return sum(any(one.verdict in words for one in run) for run in runs)


@pytest.mark.parametrize(
    "made",
    [
        IDLE,
        replace(IDLE, run_cv=0.0),
        replace(IDLE, drift=0.05, blocks=8),
        replace(IDLE, drift=0.05, blocks=8, run_cv=0.005),
    ],
    ids=["run effects", "none", "drift", "mostly drift"],
)
def test_a_contrast_of_equals_is_called_different_one_time_in_twenty(made: Made) -> None:
    """Also where times drift by ±5 % over the run: arms are interleaved, so drift falls on all alike."""
    low, high = band(0.05, TRIALS)
    assert low <= single_alarms(trials(made)) <= high


def test_a_run_of_equals_has_any_false_verdict_at_most_one_time_in_twenty() -> None:
    """Family-wise: three contrasts a run, Holm-adjusted. One arm's times enter all three, so the rate may be below nominal."""
    assert verdicts(trials(IDLE), "improved", "regressed") <= band(0.05, TRIALS)[1]


def test_drift_raises_no_false_verdict_either() -> None:
    assert verdicts(trials(replace(IDLE, drift=0.05, blocks=8)), "improved", "regressed") <= band(0.05, TRIALS)[1]


def test_without_interleaving_drift_would_be_taken_for_an_effect() -> None:
    """What the blocks are for: one arm after the other under ±5 % drift, and the same test is wrong most of the time."""
    ordered = replace(IDLE, drift=0.05, blocks=8, run_cv=0.005, interleaved=False)
    assert single_alarms(trials(ordered, 40)) > 20


def test_an_effect_at_the_margin_is_called_equivalent_at_most_one_time_in_twenty() -> None:
    """The equivalence test errs as rarely as the other: a true +3 % against a margin of 3 %, with spread small enough to try."""
    at_margin = Made(arms=(STOCK, Arm("at-margin", 0.03, SETTING)), steps=4, warmup=0, run_cv=0.01, step_cv=0.01)
    assert verdicts(trials(at_margin), "equivalent") <= band(0.05, TRIALS)[1]


def test_three_percent_is_found_with_ten_blocks_at_a_run_cv_of_one_percent() -> None:
    """Log ratio: s_d = √2 · 1 % plus a little of the steps; 3 % / (s_d/√10) is 6 standard errors: nearly always found."""
    made = Made(arms=(STOCK, Arm("faster", 0.03, SETTING)), blocks=10, steps=6, warmup=0, run_cv=0.01, step_cv=0.01)
    assert verdicts(trials(made, 100), "improved") >= 97
    assert verdicts(trials(made, 100), "regressed") == 0


def test_the_detectable_effect_a_run_states_is_the_one_it_finds() -> None:
    """Power at 80 %: the median stated MDE is put in as the true effect, and about 4 runs in 5 call it.

    The tolerance is a 99 % band of 200 runs, widened because the MDE is itself an estimate from 8 blocks.
    """
    stated = sorted(run[0].mde or 0.0 for run in trials(replace(IDLE, arms=IDLE.arms[:2], blocks=8), 200))[100]
    found = verdicts(trials(replace(IDLE, arms=(STOCK, Arm("faster", stated, SETTING)), blocks=8), 200), "improved")
    assert 0.68 * 200 <= found <= 0.90 * 200


def test_equals_are_called_equivalent_where_the_run_is_precise_enough() -> None:
    made = Made(arms=(STOCK, Arm("idle", 0.0, SETTING)), blocks=8, steps=6, warmup=0, run_cv=0.01, step_cv=0.01)
    assert verdicts(trials(made, 100), "equivalent") >= 90
