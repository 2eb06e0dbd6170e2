"""Set nvidia-smi's rows beside the telemetry, and an H200's (data/gpu/beside-nvidia-smi_*.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu.beside_smi import FIELDS, Row, compared, energy, smi

(SAVED,) = (Path(__file__).parents[2] / "data/gpu").glob("beside-nvidia-smi_*.json")


def test_rows_agree_with_readings_within_a_tenth_of_a_second() -> None:
    ours: list[Row] = [
        {"at_s": at, "power_w": watts} for at, watts in ((0.0, 70.0), (0.1, 80.0), (0.5, 300.0))
    ]
    theirs: list[Row] = [
        {"at_s": at, "power.draw.average": watts}
        for at, watts in ((0.05, 75.0), (0.45, 80.0), (9.0, 80.0))
    ]
    found = compared(ours, theirs)["power.draw.average"]
    assert (found["rows"], found["agree"]) == (2, 0.5)
    assert compared(ours, theirs)["clocks.sm"] == {
        "rows": 0,
        "agree": None,
        "median_distance": None,
    }


def test_missing_smi_values_are_none_and_half_lines_are_dropped() -> None:
    (row,) = smi(
        "2026/11/26 02:13:00.500, 78.5, [N/A], 36, 345, 3201, 0, 0, 3, 0x0000000000000001\n"
        "2026/11/26 02:13:00.600, 78"
    )
    assert (row["power.draw.average"], row["power.draw.instant"], row["memory.used"]) == (
        78.5,
        None,
        3 * 2**20,
    )
    assert row["clocks_event_reasons.active"] == 1


def test_a_constant_power_is_its_energy() -> None:
    told = energy(
        [{"at_s": float(at), "energy_j": 100.0 + 50 * at, "power_w": 50.0} for at in range(5)]
    )
    assert told == {
        "counter_j": 200.0,
        "power_w_integral_j": 200.0,
        "power_instant_w_integral_j": None,
    }


@pytest.mark.parametrize("field", FIELDS)
def test_on_a_real_gpu_the_telemetry_says_what_nvidia_smi_says(field: str) -> None:
    saved = json.loads(SAVED.read_text())
    found = compared(saved["telemetry"], saved["nvidia_smi"])[field]
    assert (found["rows"] or 0) > 200
    assert (found["agree"] or 0) >= 0.98


def test_a_real_gpus_energy_counter_is_the_integral_of_power() -> None:
    told = energy(json.loads(SAVED.read_text())["telemetry"])
    assert told["power_w_integral_j"] == pytest.approx(told["counter_j"], rel=0.01)
    assert told["power_instant_w_integral_j"] == pytest.approx(told["counter_j"], rel=0.01)
