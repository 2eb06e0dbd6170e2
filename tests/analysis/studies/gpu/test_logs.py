"""Pairs of logs as they come: unlabelled, cut short, of other GPUs, with one of the two missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.studies.gpu.grid import ACTIVE, GRACT, MAX, MEAN, SMACT, UTILIZATION, chip_of, statistics
from analysis.studies.gpu.sources import Sources, read_grids
from analysis.terms import Refused
from tests.analysis.studies.gpu.made import NAMES, dcgmi, nvsm, pair


def grid(folder: Path, **asked: object) -> Sources:
    return read_grids([str(folder)], **asked)  # type: ignore[arg-type]  # gpu and sms as they are


def test_idle_ends_are_in_the_mean_and_not_in_the_active_one(tmp_path: Path) -> None:
    """An idle sample and 8 of .2: mean .2 · 8/9."""
    pair(tmp_path, 128, 32, smact=0.2)
    (cell,) = grid(tmp_path).grids[0].grid.cells
    assert statistics(cell, SMACT) == pytest.approx({MEAN: 0.2 * 8 / 9, "median": 0.2, MAX: 0.2, ACTIVE: 0.2})


def test_what_ran_before_a_log_began_is_no_part_of_its_cell(tmp_path: Path) -> None:
    """Utilisation lags: the first row still shows the kernel before, then nothing, then this one."""
    (tmp_path / "1.1.nvsm.txt").write_text(nvsm([(6, 15), (0, 3), *[(90, 419)] * 5]))
    (tmp_path / "1.1.dcgmi.txt").write_text(dcgmi([[0] * 7, *[[91, 0, 0.9, 0.002, 0, 0, 0]] * 5]))
    (cell,) = grid(tmp_path).grids[0].grid.cells
    assert statistics(cell, UTILIZATION)[ACTIVE] == 90


@pytest.mark.parametrize("busy", [0, 2, 4])
def test_the_gpu_that_worked_is_found_wherever_it_stands(tmp_path: Path, busy: int) -> None:
    for blocks in (1, 128):
        pair(tmp_path, blocks, 32, busy=busy)
    found = grid(tmp_path).grids[0]
    assert {log.gpu for cell in found.grid.cells for log in cell.logs} == {str(busy), f"GPU {busy}"}
    assert any(f"GPU {busy}" in note for note in found.grid.notes)


def test_somebody_elses_work_in_one_cell_does_not_move_the_choice_and_is_named(tmp_path: Path) -> None:
    """GPU 0 ran the kernels of three cells; in the fourth, where it idled, GPU 2 was the busiest."""
    for blocks in (1, 2, 4):
        pair(tmp_path, blocks, 32, busy=0)
    pair(tmp_path, 8, 32, busy=2)
    found = grid(tmp_path).grids[0]
    assert {log.gpu for cell in found.grid.cells for log in cell.logs} == {"0", "GPU 0"}
    assert any("8 × 32" in note for note in found.grid.notes)


def test_programs_that_number_gpus_differently_are_each_followed_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "1.1.nvsm.txt").write_text(nvsm([(0, 3), *[(90, 419)] * 5], busy=4))
    (tmp_path / "1.1.dcgmi.txt").write_text(dcgmi([[0] * 7, *[[91, 0, 0.9, 0.002, 0, 0, 0]] * 5], busy=1))
    found = grid(tmp_path).grids[0]
    assert statistics(found.grid.cells[0], UTILIZATION)[MAX] == 90
    assert statistics(found.grid.cells[0], GRACT)[MAX] == 0.9
    assert any("differently" in note for note in found.grid.notes)


def test_a_gpu_can_be_named_and_one_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    pair(tmp_path, 128, 32, busy=2)
    (cell,) = grid(tmp_path, gpu="1").grids[0].grid.cells
    assert statistics(cell, GRACT)[MAX] == 0
    with pytest.raises(Refused, match="0, 1, 2, 3, 4"):
        grid(tmp_path, gpu="7")


def test_alike_gpus_are_told_apart_by_how_many_dcgmi_saw(tmp_path: Path) -> None:
    """Rows of one name alone do not say how many GPUs there are."""
    (tmp_path / "1.1.nvsm.txt").write_text(nvsm([(90, 419)] * 5, names=NAMES[:2], busy=1))
    (tmp_path / "1.1.dcgmi.txt").write_text(dcgmi([[91, 0, 0.9, 0.002, 0, 0, 0]] * 5, gpus=2, busy=1))
    (cell,) = grid(tmp_path).grids[0].grid.cells
    assert statistics(cell, UTILIZATION)[MEAN] == 90


@pytest.mark.parametrize("name", ["0.32.dcgmi.txt", "128.0.dcgmi.txt", "128.2048.dcgmi.txt"])
def test_a_size_that_no_kernel_has_is_refused_by_name(tmp_path: Path, name: str) -> None:
    pair(tmp_path, 1, 32)
    (tmp_path / name).write_text((tmp_path / "1.32.dcgmi.txt").read_text())
    found = grid(tmp_path)
    assert len(found.grids[0].grid.cells) == 1
    assert name in found.refused[0]


def test_two_folders_of_logs_are_two_grids_each_with_its_own_tables(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        pair(tmp_path / name, 1, 32)
    heads = ",#Thread Blocks,#Threads,GPU Utilization,GPU Memory Utilization,GPU Memory usage (MB),GRACT,SMACT,SMOCC"
    (tmp_path / "b/mean.csv").write_text(f"{heads}\n0,1,32,50.0,0,300,0.5,0.1,0.05\n")
    first, second = grid(tmp_path).grids
    assert (len(first.grid.read), len(second.grid.read)) == (0, 1)
    assert second.agreements[0].differing[0][:3] == ((1, 32), UTILIZATION, 50.0)


SMS = {"NVIDIA A100-SXM4-40GB": 108, "NVIDIA H100 PCIe": 114, "NVIDIA H100 80GB HBM3": 132, "NVIDIA H200": 132}
UNKNOWN = ("NVIDIA H100", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA DGX Display", None)


def test_sms_are_known_by_name_or_not_at_all() -> None:
    assert {name: chip_of(name).sms for name in (*SMS, *UNKNOWN)} == SMS | dict.fromkeys(UNKNOWN)
    assert [chip_of(name).missing is None for name in (*SMS, *UNKNOWN)] == [True] * 4 + [False] * 4
    assert {chip_of(name, 77).sms for name in (*SMS, *UNKNOWN)} == {77}
