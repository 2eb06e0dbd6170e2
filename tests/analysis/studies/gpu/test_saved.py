"""A saved run of the benchmark: prediction, bounds, missing values and faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.studies.gpu.findings import NEAR
from analysis.studies.gpu.grid import SMACT, UTILIZATION
from tests.analysis.studies.gpu.made import SMS, fitting, read_grids, saved_grid

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.gpu.findings import Findings


RUNS = Path(__file__).parents[4] / "data/runs"
SIZES = {(blocks, 32): fitting(blocks) for blocks in (1, 33, 66, 131, 132, 264)}


def read(folder: Path, saved: dict[str, Any]) -> tuple[Findings, list[str]]:
    (folder / "run.json").write_text(json.dumps(saved))
    ((found,), refused) = read_grids(folder / "run.json")
    return found, refused


def test_smact_is_set_beside_its_prediction(tmp_path: Path) -> None:
    """min(b, 132) / 132 × .99, as made."""
    found, _ = read(tmp_path, saved_grid(SIZES))
    assert found.grid.chip.sms == SMS
    assert len(found.grid.cells) == 2 * len(SIZES)
    assert max(abs(one.off) for one in found.predictions) < NEAR
    ranges = {one.size[0]: (one.least, one.most) for one in found.predictions}
    assert ranges[66] == pytest.approx((0.5 * 0.99, 0.5 * 0.99))
    assert ranges[264] == pytest.approx((0.99, 0.99))
    assert found.bounds.violations == []
    assert any(bound.startswith("mean") for bound in found.bounds.tested)


def test_a_block_beyond_the_sms_leaves_others_idle_half_the_time() -> None:
    """On 132 SMs 133 blocks of 1024 threads give SMACT .505, between 133 / 264 and 1; all 8 fit."""
    ((found,), _) = read_grids(RUNS / "gpu-metrics_2026-11-26_nvidia-h200.json")
    assert [abs(one.off) <= NEAR for one in found.predictions] == [True] * 8
    seen = {one.size: one for one in found.predictions}
    assert seen[133, 1024].observed == pytest.approx(0.505, abs=0.001)
    assert (seen[133, 1024].least, seen[133, 1024].most) == pytest.approx((133 / 264, 1), abs=0.002)
    assert seen[8192, 1024].observed == pytest.approx(8192 / (132 * 63), abs=0.003)
    assert found.bounds.violations == []
    assert min(found.grid.column(UTILIZATION).values()) > 99


def test_a_cell_outside_its_range_is_off_by_its_distance_to_it(tmp_path: Path) -> None:
    found, _ = read(
        tmp_path,
        saved_grid(
            {(66, 32): fitting(66) | {"smact": 0.4}, (133, 32): fitting(133) | {"smact": 0.7}}
        ),
    )
    off = {one.size[0]: one.off for one in found.predictions}
    assert off[66] == pytest.approx(0.4 - 0.5 * 0.99)
    assert off[133] == 0


def test_an_unrecorded_metric_is_missing_with_its_reason(tmp_path: Path) -> None:
    """No GPM: utilisation alone, and nothing derived from missing metrics."""
    only = {
        "utilization_percent": 100.0,
        "gract": [None] * 6,
        "smact": [None] * 6,
        "missing": {"smact": "no GPM on this GPU"},
    }
    found, _ = read(tmp_path, saved_grid({(1, 32): only, (2, 32): only}))
    assert found.grid.column(SMACT) == {}
    assert any("no GPM" in note for note in found.grid.notes)
    assert found.misled is None
    assert "bounds of SMACT" in found.bounds.untested


DAMAGED: dict[str, Callable[[Any], object]] = {
    "columns of two lengths": lambda report: report["samples"][0].update(smact=[0.5]),
    "a text": lambda report: report["samples"][0].update(smact=["high"] * 6),
    "a truth": lambda report: report["samples"][0].update(smact=[True] * 6),
    "a duty above 1": lambda report: report["gpu_metrics"][0].update(duty=1.5),
    "SMs below 0": lambda report: report["gpu_metrics"][0].update(sms=-1),
    "two entries": lambda report: report["gpu_metrics"].append({}),
    "no sample": lambda report: report.update(samples=[]),
}


def test_a_damaged_cell_is_named_and_the_others_stand(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    messages = {}
    for name, damage in DAMAGED.items():
        saved = saved_grid(SIZES)
        damage(saved["benchmarks"][0]["extra_info"]["report"])
        found, (refused,) = read(tmp_path, saved)
        assert len(found.grid.cells) == 2 * len(SIZES) - 1
        messages[name] = refused.replace(f"{tmp_path}/", "")
    assert messages == snapshot
