"""What a description says of runs, cell by cell, arm by arm, and of what was sampled beside them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.load import from_json, load
from analysis.studies.describe.describe import Described, Sampled, TwoRuns, averaged, describe, sampled, scheduled_steps
from analysis.telemetry import Series
from tests.conftest import REFERENCE
from tests.deeptweak_like import Like, directory
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


SETTING = {"vm.swappiness": "1"}
MADE = Made(arms=(STOCK, AGAIN, Arm("faster", 0.1, SETTING)), blocks=8, steps=40, run_cv=0.02, step_cv=0.05)
ONE_GPU = REFERENCE / "deeptweak" / "one_node_one_gpu"
deeptweak = pytest.mark.needs("reference")


@cache
def one_gpu() -> Described:
    (described,) = describe(load(ONE_GPU))
    return described


def each(name: str) -> list[Any]:
    return [getattr(cell, name) for cell in one_gpu().cells]


def sampled_of_each(name: str) -> list[Any]:
    return [getattr(cell.sampled, name) for cell in one_gpu().cells]


def exp1() -> TwoRuns:
    (pair,) = [pair for pair in one_gpu().pairs if pair.tweakset == "exp1"]
    return pair


def made_up(made: Made = MADE) -> Described:
    (described,) = describe(from_json(saved_run(made), "made up"))
    return described


@deeptweak
def test_a1_a4_a5_steps_mean_and_median() -> None:
    assert [cell.tweakset for cell in one_gpu().cells] == ["base", "exp1", "exp2", "exp3"]
    assert each("steps") == [1555, 1507, 1511, 1561]
    assert each("mean_s") == pytest.approx([0.612958, 0.623800, 0.614088, 0.618420], abs=1e-6)
    assert each("median_s") == pytest.approx([0.474, 0.479, 0.476, 0.476], abs=1e-9)


@deeptweak
def test_a6_a7_throughput_and_the_mean_of_rates_that_overstates_it() -> None:
    """By the mean of rates exp1 would lose 2.80 % and exp2 1.41 %; in truth 1.74 % and 0.18 %."""
    throughput, biased = each("throughput_samples_per_s"), each("mean_of_rates_per_s")
    assert throughput == pytest.approx([1.63143, 1.60308, 1.62843, 1.61703], abs=1e-5)
    assert biased == pytest.approx([1.92542, 1.87160, 1.89826, 1.87616], abs=1e-5)
    assert [round(100 * (one / throughput[0] - 1), 2) for one in throughput[1:]] == [-1.74, -0.18, -0.88]
    assert [round(100 * (one / biased[0] - 1), 2) for one in biased[1:]] == [-2.80, -1.41, -2.56]


@deeptweak
def test_a6_only_the_shortest_steps_differ() -> None:
    """Steps bound by the host are 4 to 6 % longer, those bound by the GPU equal within half a percent."""
    changes = {name: round(100 * value, 1) for name, value in exp1().quantile_changes.items()}
    assert changes == {"p5": 4.6, "p25": 5.7, "p50": 1.1, "p75": 0.3, "p90": -0.5, "p95": -1.0, "p99": 0.1}


@deeptweak
def test_a16_energy_a_sample() -> None:
    assert sampled_of_each("energy_j_per_sample") == pytest.approx([37.383, 38.801, 38.226, 40.659], abs=0.005)


@deeptweak
def test_a17_gpu_use() -> None:
    assert sampled_of_each("gpu_util_mean_percent") == pytest.approx([93.696, 91.694, 92.512, 92.223], abs=1e-3)
    assert sampled_of_each("gpu_full_share") == pytest.approx([0.572, 0.546, 0.554, 0.568], abs=1e-3)


@deeptweak
def test_a18_training_was_planned_for_45033_steps() -> None:
    """Three epochs of 15,011 rows; every run was stopped after some 3 % of them."""
    assert sampled_of_each("scheduled_steps") == pytest.approx([45033] * 4, abs=1)


@deeptweak
def test_a6_the_gpu_takes_a_minute_or_more_to_warm_up() -> None:
    """Temperatures settle at 54, 56, 55, 55 °C; 1 °C below, after 129, 126, 93 and 118 steps."""
    assert sampled_of_each("gpu_warm_c") == [54, 56, 55, 55]
    assert sampled_of_each("gpu_warmup_s") == pytest.approx([78.2, 73.1, 60.1, 72.6], abs=0.05)


@deeptweak
def test_deeptweaks_page_says_what_it_is_not_and_fits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(ONE_GPU.parent)
    assert main(["describe", ONE_GPU.name]) == 0
    out = capsys.readouterr().out.partition("\nnext:")[0]
    assert max(map(len, out.splitlines())) <= 100
    assert not {"improved", "regressed", "improvement", "regression"} & set(out.split())
    assert out == snapshot


def test_a_stall_is_named_with_the_results_without_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five of 1500 steps eight times as long: what is without them is what a run without the stall has but for these steps."""
    for name, stalled in (("calm", 0), ("stalled", 5)):
        directory(tmp_path / name, Like("base", steps=1500, stalled_steps=stalled), Like("exp1", steps=1500, seed=2))
    ((calm, _), (base, other)) = (describe(load(tmp_path / name))[0].cells for name in ("calm", "stalled"))
    assert (calm.stalls, calm.without, other.stalls) == ((), None, ())
    (stall,) = base.stalls
    assert (stall.first, stall.steps) == (751, 5)
    assert base.without is not None
    assert base.without.steps == 1495
    assert base.without.mean_s == pytest.approx(calm.mean_s, rel=0.003)
    assert base.mean_s / base.without.mean_s > 1.01
    assert abs(base.without.lag_1) < 0.1 < base.lag_1
    assert main(["describe", str(tmp_path / "stalled")]) == 0
    assert "751 to 755" in capsys.readouterr().out


def test_complete_blocks_of_several_arms_have_friedmans_test() -> None:
    """Ten percent faster in all blocks, noise of 2 %: arms differ. A block that lacks an arm leaves no test."""
    saved = from_json(saved_run(MADE), "made up")
    (whole,) = describe(saved)
    assert whole.friedman is not None
    assert (whole.friedman.blocks, whole.friedman.arms) == (8, 3)
    assert whole.friedman.p < 0.01
    (lacking,) = describe(replace(saved, cells=saved.cells[1:]))
    assert lacking.friedman is None


def test_blocks_show_what_steps_do_not() -> None:
    """Runs that differ by 2 % with 5 % a step: ICC .02²/(.02² + .05²) = .138, variance 1 + 39 · .138 = 6.4 times, alarms 2Φ(-1.96/√6.4)."""
    described = [made_up(replace(MADE, arms=(STOCK,), blocks=60, seed=seed)).repeated[0] for seed in range(5)]
    assert np.mean([arm.icc for arm in described]) == pytest.approx(0.138, rel=0.2)
    assert np.mean([arm.design_effect for arm in described]) == pytest.approx(6.4, rel=0.2)
    assert np.mean([arm.naive_alarms for arm in described]) == pytest.approx(0.438, abs=0.05)
    assert np.mean([arm.half_width_s / arm.naive_half_width_s for arm in described]) == pytest.approx(math.sqrt(6.4), rel=0.15)
    assert all(arm.between_p is not None and arm.between_p < 1e-6 for arm in described)


def test_runs_that_do_not_differ_need_no_correction() -> None:
    arm = made_up(replace(MADE, arms=(STOCK,), blocks=60, run_cv=0.0)).repeated[0]
    assert arm.icc < 0.02
    assert arm.naive_alarms < 0.13


def test_the_ratio_of_arms_is_that_of_their_step_times() -> None:
    """A tenth more work a second: 1/1.1 = .909 of the step time."""
    stock, again, faster = made_up(replace(MADE, blocks=20)).repeated
    assert (stock.tweakset, stock.ratio) == ("stock", None)
    assert again.ratio is not None
    assert again.ratio.low < 1 < again.ratio.high
    assert faster.ratio is not None
    assert faster.ratio.ratio == pytest.approx(1 / 1.1, rel=0.02)
    assert faster.ratio.low < 1 / 1.1 < faster.ratio.high < 1


def test_a_run_that_slows_down_under_way_is_seen_in_every_cell() -> None:
    saved = saved_run(MADE)
    for one in saved["benchmarks"]:
        wall_s = one["extra_info"]["steps"]["wall_s"]
        one["extra_info"]["steps"]["wall_s"] = [value * (1 + at / len(wall_s)) for at, value in enumerate(wall_s)]
        one["extra_info"]["metrics"] = {}
    (described,) = describe(from_json(saved, "made up"))
    assert all(arm.unsettled == arm.blocks for arm in described.repeated)
    assert all(cell.halves.welch_p < 1e-6 for cell in described.cells)


def test_one_block_is_described_as_single_runs_against_the_baseline() -> None:
    described = made_up(replace(MADE, blocks=1))
    assert described.repeated == ()
    assert [(pair.tweakset, pair.against) for pair in described.pairs] == [("stock-again", "stock"), ("faster", "stock")]
    assert described.pairs[1].welch.difference < 0
    assert described.pairs[1].ranks.a12 < 0.5
    assert described.pairs[1].quantile_changes["p50"] == pytest.approx(1 / 1.1 - 1, abs=0.05)


def test_cells_of_which_nothing_can_be_said_are_named() -> None:
    broken = Arm("fragile", 0.0, SETTING, broken={3: ("failed", "out of memory")})
    assert made_up(replace(MADE, arms=(STOCK, broken))).undescribed[0].startswith("cnn_train-fragile-b3: ")
    short = made_up(replace(MADE, steps=3))
    assert short.cells == ()
    assert "4 measured steps" in short.undescribed[0]


def test_times_that_never_vary_are_described_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A clock too coarse for its work: no spread, no F, no p below 1, and no division by zero."""
    saved = saved_run(replace(MADE, blocks=1))
    for one in saved["benchmarks"]:
        one["extra_info"]["steps"]["wall_s"] = [0.04] * 42
        one["extra_info"]["metrics"] = {}
    (described,) = describe(from_json(saved, "made up"))
    assert described.omnibus is None
    assert described.pairs[0].welch.p == 1
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved))
    assert main(["describe", str(path)]) == 0
    assert main(["describe", str(path), "--json"]) == 0
    assert "nan" not in capsys.readouterr().out.lower()


@pytest.mark.parametrize(
    "made",
    [
        MADE,
        replace(MADE, blocks=1),
        replace(MADE, blocks=2, steps=4),
        replace(MADE, base_s=3e-8),
        replace(MADE, base_s=4000.0, run_cv=1.0),
        replace(
            MADE,
            arms=(STOCK, Arm("a-name-that-is-far-too-long-for-one-line-of-any-table", 0.0, SETTING), Arm("[red]x[/red]", 0.0, SETTING)),
        ),
        replace(MADE, blocks=1, arms=(STOCK, *(Arm(f"a-rather-long-name-of-a-tweak-set-{at}", 0.3, SETTING) for at in range(12)))),
    ],
    ids=["blocks", "once", "few", "fast", "slow", "names", "many"],
)
def test_no_line_is_longer_than_100_columns_and_every_arm_has_its_row(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", str(saved_file(tmp_path, made))]) == 0
    out = capsys.readouterr().out.partition("\nnext:")[0]
    assert max(map(len, out.splitlines())) <= 100
    assert "no verdict" in out
    for arm in made.arms:
        assert arm.name[:12] in out


def test_several_runs_are_described_one_after_the_other_and_the_unreadable_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = saved_file(tmp_path, MADE)
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert main(["describe", str(good), str(broken), "--json"]) == 0
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert [one["run_id"] for one in said["runs"]] == ["made-up-1"]
    assert said["refused"][0].startswith(str(broken))
    assert err.startswith(f"refused: {broken}")


def test_json_names_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", str(saved_file(tmp_path, replace(MADE, blocks=1))), "--json"]) == 0
    (workload,) = json.loads(capsys.readouterr().out)["runs"][0]["workloads"]
    cell: dict[str, Any] = workload["cells"][0]
    assert cell["mean_s"] * cell["throughput_samples_per_s"] == pytest.approx(8)
    assert cell["quantiles_s"]["p5"] < cell["median_low_s"] <= cell["median_s"] <= cell["median_high_s"] < cell["quantiles_s"]["p95"]
    assert workload["pairs"][0]["welch"]["low"] < workload["pairs"][0]["welch"]["high"]


def test_jobs_that_wait_for_each_other_have_no_throughput(capsys: pytest.CaptureFixture[str]) -> None:
    """600 jobs took 99 s, 6.05 a second; over the sum of their times, in which each waits for others, it would be 2.955."""
    run = load(Path(__file__).parents[4] / "data/runs/cluster-queueing_2026-11-22_amd-epyc-2cpu.json")
    cells = [cell for one in describe(run) for cell in one.cells]
    assert {(cell.throughput_samples_per_s, cell.mean_of_rates_per_s) for cell in cells} == {(None, None)}
    assert main(["describe", run.origin]) == 0
    assert not {"2.955", "+231.8"} & set(capsys.readouterr().out.split())


CELL = replace(from_json(saved_run(Made(blocks=1, steps=10, warmup=2)), "made up").cells[0], telemetry={})


def test_energy_a_sample_is_that_of_all_gpus_over_measured_samples() -> None:
    """10 measured steps of 8 samples; 300 J and 100 J make 5 J a sample."""
    cell = replace(CELL, telemetry={"gpu0_energy_j_total": 300.0, "gpu1_energy_j_total": 100.0, "cpu_busy_percent_mean": 97.0})
    assert sampled(cell, None) == Sampled(energy_j_per_sample=5.0)


def test_power_is_summed_and_use_is_averaged_over_gpus() -> None:
    cell = replace(
        CELL,
        telemetry={"gpu0_power_w_mean": 200.0, "gpu1_power_w_mean": 150.0, "gpu0_util_percent_mean": 90.0, "gpu1_util_percent_mean": 70.0},
    )
    found = sampled(cell, None)
    assert (found.gpu_power_mean_w, found.gpu_util_mean_percent) == (350.0, 80.0)


def test_what_was_not_measured_is_absent_and_not_zero() -> None:
    assert sampled(CELL, None) == Sampled()
    assert sampled(CELL, Series((0.0, 1.0), {"cpu_busy_percent": (90.0, 91.0)})) == Sampled()
    assert sampled(CELL, Series((0.0, 1.0), {"gpu0_util_percent": (None, None)})) == Sampled()


def test_warming_up_counts_from_the_first_measured_step_and_by_the_hottest_gpu() -> None:
    """Measured from 2 s on. The hotter GPU settles at 60 °C (median of its last three); 59 °C, within 1 °C, is first read at 5 s."""
    series = Series(
        time_s=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0),
        columns={
            "gpu0_temperature_c": (60.0, 60.0, 40.0, 50.0, None, 59.0, 60.0, 60.0),
            "gpu1_temperature_c": (30.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0),
        },
        measured_from_s=2.0,
        measured_to_s=7.0,
    )
    found = sampled(CELL, series)
    assert (found.gpu_warm_c, found.gpu_warmup_s) == (60.0, 3.0)


def test_the_share_at_100_percent_is_of_measured_readings_only() -> None:
    """Two of the four readings between 1 s and 4 s; what came before and after does not count."""
    series = Series((0.0, 1.0, 2.0, 3.0, 4.0, 5.0), {"gpu0_util_percent": (100.0, 100.0, 99.0, 100.0, 0.0, 100.0)}, 1.0, 4.0)
    assert sampled(CELL, series).gpu_full_share == 0.5


def test_a_learning_rate_that_falls_in_a_straight_line_says_how_long_training_was_to_be() -> None:
    """From 1e-3 down by 1e-5 a step: 0 at step 100. Logged after steps 20, 40 and 60, carried until the next."""
    logged = [None] * 20 + [8e-4] * 20 + [6e-4] * 20 + [4e-4] * 5
    assert scheduled_steps(logged) == pytest.approx(100)


@pytest.mark.parametrize(
    "logged",
    [
        [],
        [None] * 30,
        [8e-4] * 20,
        [8e-4] * 20 + [6e-4] * 20,  # any two values make a line
        [8e-4] * 20 + [6e-4] * 20 + [5e-4] * 20,  # a curve
        [1e-4] * 20 + [2e-4] * 20 + [3e-4] * 20,  # a warm-up
    ],
    ids=["nothing", "empty", "constant", "two", "curved", "rising"],
)
def test_no_length_is_made_up_from_another_schedule(logged: list[float | None]) -> None:
    assert scheduled_steps(logged) is None


def test_averages_leave_out_what_a_cell_lacks() -> None:
    assert averaged([Sampled(gpu_warm_c=60.0), Sampled(gpu_warm_c=62.0, gpu_power_mean_w=300.0), Sampled()]) == Sampled(
        gpu_warm_c=61.0, gpu_power_mean_w=300.0
    )
