"""A/A sessions drawn from the cells of a saved run: only equals are ever set against each other, and drift is seen where it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.load import from_json, load
from analysis.studies.calibration.rates import band
from analysis.studies.calibration.real_noise import arms_rates, noise_of, one_after_the_other, real_noise, swapped
from analysis.terms import Refused, Run
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

RUNS = sorted((Path(__file__).parents[4] / "data/runs").glob("2026*amd-epyc-2cpu.json"))
MADE = Made(workloads=("cnn_train", "idle"), blocks=14, steps=9, warmup=2)


def run_of(made: Made) -> Run:
    return from_json(saved_run(made), "made up")


def test_swapping_names_keeps_every_cell_in_its_block() -> None:
    noise = noise_of(run_of(MADE))[0]
    assert noise.blocks_s.shape == (14, 2, 9)
    drawn = swapped(noise, 500, np.random.default_rng(1)).steps_s
    assert drawn.shape == (500, 10, 2, 9)
    block_of = {cell.tobytes(): (block, arm) for block, cells in enumerate(noise.blocks_s) for arm, cell in enumerate(cells)}
    found = np.array([[[block_of[cell.tobytes()] for cell in pair] for pair in session] for session in drawn])
    assert (found[:, :, 0, 0] == found[:, :, 1, 0]).all()
    assert (found[:, :, 0, 1] != found[:, :, 1, 1]).all()
    assert (np.diff(found[:, :, 0, 0], axis=1) > 0).all()
    assert found[:, :, 0, 1].mean() == pytest.approx(0.5, abs=0.03)


def test_in_time_order_no_candidate_ran_before_a_baseline() -> None:
    """28 cells: stretches of 14, the first seven against the other seven, beginning at each of 15 places."""
    noise = noise_of(run_of(MADE))[0]
    sessions = one_after_the_other(noise)
    assert not sessions.interleaved
    assert sessions.steps_s.shape == (15, 7, 2, 9)
    assert (sessions.steps_s[3, :, 0] == noise.in_time_s[3:10]).all()
    assert (sessions.steps_s[3, :, 1] == noise.in_time_s[10:17]).all()


def test_a_long_run_is_cut_to_sessions_of_ten() -> None:
    assert one_after_the_other(noise_of(run_of(replace(MADE, blocks=25)))[0]).steps_s.shape == (31, 10, 2, 9)


def test_only_blocks_with_both_cells_count_and_other_tweak_sets_do_not() -> None:
    lacking = Made(
        arms=(STOCK, replace(AGAIN, broken={2: ("failed", "out of memory")}), Arm("other", 0.5, {"vm.swappiness": "1"})), blocks=7
    )
    (noise,) = noise_of(run_of(lacking))
    assert noise.blocks_s.shape == (6, 2, 12)


@pytest.mark.parametrize(
    "made",
    [Made(arms=(STOCK,), blocks=9), Made(blocks=4), Made(blocks=9, steps=2)],
    ids=["no stock-again", "four blocks", "two steps"],
)
def test_a_run_without_enough_equals_is_refused_with_what_to_do(made: Made) -> None:
    with pytest.raises(Refused, match="--tweaks=stock"):
        noise_of(run_of(made))


def test_rules_that_need_more_runs_have_no_rate() -> None:
    rows = real_noise(run_of(replace(MADE, blocks=6)), 1, 100).rates.rows
    assert rows["conbench"] == (None, None, None)
    assert None not in rows["ours, throughput"]
    assert None not in real_noise(run_of(replace(MADE, blocks=20)), 1, 100).rates.rows["conbench"]


def test_a_machine_that_grows_slower_is_seen_between_the_halves_of_its_session() -> None:
    """Drift from 10 % below to 10 % above: the second half takes about 10 % longer, which is a gain of -9 %; stock-again shows nothing."""
    steady = real_noise(run_of(replace(MADE, drift=0.10, run_cv=0.01)), 1, 100).steadiness
    assert [one.workload for one in steady] == ["cnn_train", "idle"]
    for one in steady:
        assert one.later_cells.high < -0.05
        assert one.again.low < 0 < one.again.high
        assert one.blocks == 14


def test_the_spread_of_a_cell_among_equals() -> None:
    """Run effects of 5 % and steps of 2 %, of which 9 are averaged: √(5² + 2²/9) = 5.05 %."""
    (one,) = real_noise(run_of(Made(blocks=400, steps=9, run_cv=0.05, step_cv=0.02)), 1, 100).steadiness
    assert one.run_cv == pytest.approx(0.0505, rel=0.08)


def test_halves_of_a_cell_are_compared_in_time_for_the_same_work() -> None:
    """Every cell has twice the tokens in its later steps and takes 1.5 times as long for them: 4/3 of the speed."""
    saved = saved_run(replace(MADE, workloads=("cnn_train",), steps=8, run_cv=0.01, step_cv=0.005))
    for one in saved["benchmarks"]:
        steps = one["extra_info"]["steps"]
        steps["tokens"] = [100] * 6 + [200] * 4
        steps["wall_s"] = steps["wall_s"][:6] + [1.5 * value for value in steps["wall_s"][6:]]
        del one["extra_info"]["metrics"]
    (steadiness,) = real_noise(from_json(saved, "made up"), 1, 100).steadiness
    assert steadiness.later_steps.gain == pytest.approx(1 / 3, abs=0.01)


def test_steps_that_count_nothing_are_equal_work() -> None:
    """A step without a sample, as in accumulating gradients, has no time a sample."""
    saved = saved_run(replace(MADE, workloads=("cnn_train",), run_cv=0.01, step_cv=0.005))
    for one in saved["benchmarks"]:
        steps = one["extra_info"]["steps"]
        steps["samples"] = [8, 0] * 5 + [8]
        del steps["tokens"]
        del one["extra_info"]["metrics"]
    (steadiness,) = real_noise(from_json(saved, "made up"), 1, 100).steadiness
    assert steadiness.later_steps.gain == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("path", RUNS, ids=[path.stem for path in RUNS])
def test_on_the_saved_runs_of_this_repository_ours_errs_no_more_often_than_it_says(path: Path) -> None:
    """In one contrast, and in any of the workloads: their own noise, with the names of equal cells swapped at random."""
    trials = 500
    rates = real_noise(load(path), 2, trials).rates
    for rule in ("ours, throughput", "ours, p10 step"):
        one, any_of, _ = rates.rows[rule]
        assert one is not None
        assert any_of is not None
        assert max(one, any_of) <= band(trials)[1]


def test_there_are_saved_runs_to_look_at() -> None:
    assert RUNS


def test_equal_arms_are_drawn_into_families() -> None:
    """Six sets that ask for what is there, and one that changes something: it is in no draw, however much it differs."""
    there = {"vm.page-cluster": "3"}
    nulls = tuple(Arm(f"null-{number}", requested=there, already_in_force=tuple(there)) for number in range(6))
    made = Made(arms=(STOCK, AGAIN, *nulls, Arm("tweak", gain=0.5, requested={"vm.swappiness": "1"})), blocks=14)
    rates = arms_rates(from_json(saved_run(made), "made up"), 1, 400)
    assert rates is not None
    assert list(rates.rows) == [
        "cnn_train, 8 blocks, stock alone",
        "cnn_train, 8 blocks, both",
        "cnn_train, 14 blocks, both",
        "cnn_train, --precision, at 95 %",
        "cnn_train, --precision",
    ]
    assert all(share is not None and share < 0.2 for row in rates.rows.values() for share in row)
    assert arms_rates(from_json(saved_run(replace(made, blocks=8)), "made up"), 1, 400) is None, "all of its blocks are one draw"
