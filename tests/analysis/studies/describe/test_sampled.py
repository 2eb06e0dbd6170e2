"""What was sampled beside a cell, by small examples whose arithmetic can be followed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.load import from_json
from analysis.studies.describe.describe import Sampled, averaged, sampled, scheduled_steps
from analysis.telemetry import Series
from tests.synthetic import Made, saved_run

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
