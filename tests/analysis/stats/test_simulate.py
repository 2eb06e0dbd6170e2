"""A synthetic machine errs as it was told to: only then do the rates mean what the table says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.compare import compare
from analysis.load import from_json
from analysis.stats import many
from analysis.stats.adjust import ADJUSTMENTS
from analysis.stats.ranks import opinion
from analysis.stats.simulate import BLOCKS, STEPS, Floats, Machine, Sessions, few_runs, history_and_newest, pooled, run_means, simulate
from analysis.studies.gate.gate import gate
from analysis.studies.gate.limits import Limits
from analysis.terms import Comparison, Run
from tests.synthetic import STOCK, Arm, Made, saved_run

COUNT = 4000
STILL = Machine(run_cv=0.0, step_cv=0.0)


def made(machine: Machine, slower: float = 0.0) -> Sessions:
    return simulate(machine, slower, COUNT, np.random.default_rng(7))


def test_runs_and_steps_scatter_by_the_cv_they_were_given() -> None:
    """Of a log-normal, the standard deviation of the logarithm; a mean of 20 steps keeps 1/√20 of theirs."""
    logs = np.log(made(Machine(run_cv=0.02, step_cv=0.01)).steps_s)
    assert logs.shape == (COUNT, BLOCKS, 2, STEPS)
    assert logs.std(axis=-1, ddof=1).mean() == pytest.approx(0.01, rel=0.03)
    assert logs.mean(axis=-1).std() == pytest.approx(np.hypot(0.02, 0.01 / np.sqrt(STEPS)), rel=0.03)


def test_the_candidate_takes_so_much_longer() -> None:
    means = run_means(made(STILL, 0.05))
    assert means[..., 1] == pytest.approx(1.05 * means[..., 0])


def test_drift_is_a_straight_line_over_the_runs_in_the_order_they_ran() -> None:
    """A then B: 20 runs from 1 to 1.05. Interleaved: the same levels, two by two, and a coin for which arm comes first."""
    line = np.linspace(1, 1.05, 2 * BLOCKS)
    one_by_one = run_means(made(Machine(run_cv=0, step_cv=0, drift=0.05, interleaved=False)))
    assert one_by_one[0].T.ravel() == pytest.approx(line)
    means = run_means(made(Machine(run_cv=0, step_cv=0, drift=0.05)))
    assert np.sort(means, axis=-1)[0].ravel() == pytest.approx(line)
    assert (means[..., 0] < means[..., 1]).mean() == pytest.approx(0.5, abs=0.02)


def test_run_effects_that_carry_over_keep_their_spread_and_are_alike_in_neighbours() -> None:
    sessions = made(Machine(run_cv=0.02, step_cv=0, carry_over=0.5, interleaved=False))
    effects = np.log(run_means(sessions)).swapaxes(1, 2).reshape(COUNT, -1)
    assert effects.std() == pytest.approx(0.02, rel=0.03)
    assert np.corrcoef(effects[:, 6], effects[:, 7])[0, 1] == pytest.approx(0.5, abs=0.05)
    assert np.corrcoef(effects[:, 6], effects[:, 8])[0, 1] == pytest.approx(0.25, abs=0.05)


def test_heavy_tails_are_students_at_the_same_scale() -> None:
    """P(|t3| > 3·√3 standard units of t3) = .0138: beyond 3 SD lie 1.4 %, where a Gaussian has 0.27 %."""
    effects = np.log(run_means(made(Machine(run_cv=0.02, step_cv=0, tails=3))))
    assert (np.abs(effects) > 0.06).mean() == pytest.approx(0.0138, abs=0.002)


def test_stalled_steps_take_ten_times_as_long_and_struck_runs_twice() -> None:
    steps_s = made(Machine(run_cv=0, step_cv=0, stalled=0.01, struck=0.05)).steps_s
    times, counts = np.unique(steps_s.round(6), return_counts=True)
    assert times.tolist() == [1, 2, 10, 20]
    assert counts / steps_s.size == pytest.approx([0.95 * 0.99, 0.05 * 0.99, 0.95 * 0.01, 0.05 * 0.01], abs=0.003)


def numbered(*, interleaved: bool) -> Sessions:
    """Four sessions of twelve blocks of two steps; block b has mean b in the baseline and 100 + b in the candidate."""
    means = np.arange(12)[:, np.newaxis] + np.array([0.0, 100.0])
    return Sessions(np.broadcast_to(means[..., np.newaxis] + np.array([-1.0, 1.0]), (4, 12, 2, 2)), interleaved)


def test_what_rules_begin_with() -> None:
    sessions = numbered(interleaved=False)
    assert sessions.blocks == 12
    assert pooled(sessions).shape == (4, 2, 24)
    assert pooled(sessions, 1)[0, 1].tolist() == [99.0 + block for block in range(12)]
    assert few_runs(sessions, 11).shape == (4, 11, 2, 2)
    assert few_runs(sessions, 11)[:, 0, 0, 0].tolist() == [-1, 0, -1, 0]
    history, newest = history_and_newest(sessions, 10, 3)
    assert history[0].tolist() == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert newest[0].tolist() == [100, 101, 102]
    assert history_and_newest(numbered(interleaved=True), 10, 3)[1][0].tolist() == [109, 110, 111]


SETTING = {"vm.swappiness": "1"}
# Two workloads, one judged by throughput and one by a quantile, and true effects on either side of the margin: all words occur.
MADE = Made(
    arms=(STOCK, *(Arm(f"arm{gain:+}", gain, SETTING) for gain in (-0.08, -0.04, 0.0, 0.03, 0.06))),
    workloads=("cnn_train", "ddp_train"),
    primaries={"ddp_train": ("step_time_p10_s", "lower")},
    steps=7,
    run_cv=0.02,
)
QUANTILES = {"throughput_samples_per_s": None, "step_time_p10_s": 0.10}


def gains_on_arrays(run: Run, comparisons: Sequence[Comparison]) -> Floats:
    """The contrasts of one run as one family of arrays, straight from its steps."""
    wall_s = {(cell.workload, cell.tweakset, cell.block): cell.steps.wall_s[cell.steps.warmup :] for cell in run.cells if cell.steps}
    gains = []
    for one in comparisons:
        arms = ((one.workload, one.baseline), (one.workload, one.tweakset))
        steps_s = [[[wall_s[*arm, block] for arm in arms] for block in range(1, run.design.blocks + 1)]]
        gains.append(many.log_gains(Sessions(np.array(steps_s)), QUANTILES[one.primary_metric.name]))
    return np.stack(gains, axis=1)


@pytest.mark.parametrize("made", [MADE, replace(MADE, run_cv=0.005), replace(MADE, drift=0.05, blocks=10)], ids=["noisy", "quiet", "drift"])
def test_arrays_say_word_for_word_what_compare_and_gate_say(made: Made) -> None:
    verdicts, rulings = set(), set()
    for seed in range(10):
        run = from_json(saved_run(replace(made, seed=seed)), "trial")
        comparisons = compare(run)
        gains = gains_on_arrays(run, comparisons)
        effects = many.paired_effects(gains, made.margin)
        words = [many.WORDS[at] for at in many.words(effects)[0]]
        assert words == [one.verdict for one in comparisons]
        assert effects.p[0] == pytest.approx([one.primary.p if one.primary else None for one in comparisons], rel=1e-9)
        ranks = many.signed_rank_p(gains)
        assert ranks[0] == pytest.approx([opinion(one.primary).p for one in comparisons if one.primary], rel=1e-9)
        ruled = [many.RULINGS[at] for at in many.rulings(effects, 0.03)[0]]
        assert ruled == [one.ruling for one in gate(comparisons, Limits(0.03), ("stock", "all")).rulings]
        verdicts |= set(words)
        rulings |= set(ruled)
    assert verdicts == set(many.WORDS)
    assert rulings == set(many.RULINGS)


FAMILIES = st.integers(1, 8).flatmap(lambda m: st.lists(st.lists(st.floats(0, 1), min_size=m, max_size=m), min_size=1, max_size=4))


@given(FAMILIES)
def test_families_on_arrays_are_adjusted_as_lists_are(families: list[list[float]]) -> None:
    ps = np.array(families)
    for adjusted in ADJUSTMENTS.values():
        assert adjusted(ps).tolist() == [adjusted(family) for family in families]


def test_the_first_contrasts_of_families_made_side_by_side() -> None:
    one, other = (many.paired_effects(np.random.default_rng(seed).normal(0, 1, (5, 6)), 0.03) for seed in (1, 2))
    both = many.side_by_side([one, other])
    assert both.p.shape == (5, 2)
    assert (both.p[:, 1] == other.p).all()
    assert (many.first(both, 1).log_gain[:, 0] == one.log_gain).all()
