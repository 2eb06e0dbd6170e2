"""Full telemetry: read back as sampled, on the clock of the steps, or refused with the reason."""

from __future__ import annotations

import hashlib
import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json, load
from analysis.telemetry import CPU_BUSY, GPU_POWER, Missing, series_of
from analysis.terms import Run
from tests.deeptweak_like import Like, directory, step_times
from tests.made_telemetry import sampled_file
from tests.synthetic import Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


REAL = Path(__file__).parents[2] / "data/runs/gpu-training_2026-11-26_nvidia-h200.json"
SMALL = Made(blocks=1, steps=4, warmup=1)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return load(sampled_file(tmp_path, SMALL))


def rewritten(run: Run, text: str) -> Run:
    packed = lzma.compress(text.encode())
    name = str(run.telemetry_file["name"])
    Path(run.origin).with_name(name).write_bytes(packed)
    return replace(run, telemetry_file={"name": name, "sha256": hashlib.sha256(packed).hexdigest()})


def test_a_cell_has_its_samples_since_its_first_one(run: Run) -> None:
    """Sampling began a second before the first step; measured steps follow one warm-up step."""
    cell = run.cells[0]
    one = series_of(run)[cell.id]
    assert cell.steps is not None
    assert one.time_s[:3] == pytest.approx((0.0, 0.1, 0.2))
    assert one.columns["cpu_user_percent"][:2] == (None, 20.0)
    assert one.measured_from_s == pytest.approx(1.0 + cell.steps.wall_s[0])
    assert one.measured_to_s == pytest.approx(1.0 + sum(cell.steps.wall_s))
    assert {len(values) for values in one.columns.values()} == {len(one.time_s)}


def test_every_cell_of_the_real_run_was_sampled() -> None:
    """65 cells at 10 Hz; the steps of each lie inside its samples."""
    run = load(REAL)
    found = series_of(run)
    assert found.keys() == {cell.id for cell in run.cells}
    for one in found.values():
        assert one.measured_from_s is not None
        assert one.measured_to_s is not None
        assert 0 < one.measured_from_s < one.measured_to_s < one.time_s[-1] + 0.2


def test_a_row_a_step_becomes_a_sample_at_its_end(tmp_path: Path) -> None:
    """DeepTweak's CSV: the first sample closes the first step, which is measured too."""
    like = Like("base")
    run = load(directory(tmp_path, like))
    one = series_of(run)[run.cells[0].id]
    seconds = step_times(like)
    assert one.time_s[:2] == pytest.approx((0.0, seconds[1]))
    assert one.measured_from_s == pytest.approx(-seconds[0])
    assert one.measured_to_s == one.time_s[-1] == pytest.approx(sum(seconds[1:]))
    assert one.columns["gpu0_power_w"] == run.cells[0].series["gpu0_power_w"]


def test_telemetry_that_is_not_the_runs_own_is_refused(
    run: Run, snapshot: SnapshotAssertion
) -> None:
    side = Path(run.origin).with_name(str(run.telemetry_file["name"]))
    packed = side.read_bytes()
    side.write_bytes(packed[:-1] + bytes([packed[-1] ^ 1]))
    names = {
        name: replace(run, telemetry_file=dict(run.telemetry_file) | {"name": name})
        for name in ("../run.json", "/etc/passwd", "a/b.xz")
    }
    reasons = {}
    for what, asked in {
        "none": from_json(saved_run(SMALL), "run.json"),
        "another": run,
        "gone": run,
        **names,
    }.items():
        if what == "gone":
            side.unlink()
        with pytest.raises(Missing) as missing:
            series_of(asked)
        reasons[what] = str(missing.value).replace(str(side.parent), "…")
    assert reasons == snapshot


DAMAGED: list[object] = [
    {"cpu_user_percent": [1.0]},
    {"t_monotonic_s": []},
    {"t_monotonic_s": [0.0, 0.1], "cpu_user_percent": [1.0]},
    {"t_monotonic_s": [0.0], "cpu_user_percent": ["fast"]},
    {"t_monotonic_s": [0.0], "cpu_user_percent": [True]},
    {"t_monotonic_s": ["now"], "cpu_user_percent": [1.0]},
    {"t_monotonic_s": [0.0], "cpu_user_percent": [float("nan")]},
    [1, 2],
]


def test_damaged_samples_are_refused_by_name(run: Run) -> None:
    for columns in DAMAGED:
        line = json.dumps({"cell": run.cells[0].id, "columns": columns})
        with pytest.raises(Missing, match=rf"{run.telemetry_file['name']} is damaged"):
            series_of(rewritten(run, line))


def test_a_quantity_is_made_of_all_its_devices_or_is_missing() -> None:
    """Two GPUs: their powers add up; a sample that lacks one of them is unknown, not half."""
    columns = {
        "gpu0_power_w": (60.0, 60.0),
        "gpu1_power_w": (70.0, None),
        "gpu0_energy_j": (1.0, 2.0),
    }
    assert GPU_POWER.over_time(columns) == [130.0, None]
    assert GPU_POWER.over_time({"gpu0_power_w": (None, None)}) is None
    assert GPU_POWER.over_time({"cpu_busy_percent": (1.0,)}) is None


def test_the_processor_is_as_busy_as_its_total_or_its_parts_say() -> None:
    """A summary has both, and its parts must not count twice."""
    parts = {
        "cpu_user_percent": (80.0,),
        "cpu_system_percent": (9.0,),
        "cpu_irq_percent": (1.0,),
        "cpu_idle_percent": (10.0,),
    }
    assert CPU_BUSY.over_time(parts) == [90.0]
    assert CPU_BUSY.over_time(parts | {"cpu_busy_percent": (91.0,)}) == [91.0]
