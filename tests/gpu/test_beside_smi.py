"""Set nvidia-smi's rows beside the telemetry, and an H200's (data/gpu/beside-nvidia-smi_*.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu.beside_smi import FIELDS, compared, energy, smi

(SAVED,) = (Path(__file__).parents[2] / "data/gpu").glob("beside-nvidia-smi_*.json")


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
