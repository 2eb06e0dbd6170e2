"""dcgmi dmon: with a stand-in where there is no DCGM, with the real one where there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.logs.readers import read_dcgmi
from fixtures.studies.monitors.monitor import load
from tests.monitors import stand_ins
from tests.monitors.watched import watch

dcgmi = load("dcgmi")
HEADER = "#Entity   GPUTL             MCUTL             GRACT        \nID                                                    \n"


def test_it_watches_until_ctrl_c_and_counts_through_its_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.put(tmp_path / "bin", monkeypatch, dcgmi=stand_ins.DCGMI)
    assert dcgmi.version() == "dcgmi  version: 3.3.5"
    done = watch("dcgmi:interval_s=0.1", tmp_path, lambda folder: (dcgmi.samples(folder) or 0) >= 5)
    assert done.code == 0
    assert sum(line.startswith("#Entity") for line in done.lines()) >= 2
    log = read_dcgmi(tmp_path / "stdout")
    assert dcgmi.samples(tmp_path) == len(log.entities["GPU 0"]["GPUTL"]) >= 5


@pytest.mark.needs("gpu", "dcgmi")
def test_the_real_one(tmp_path: Path) -> None:
    why = dcgmi.unavailable_reason()
    if why:
        pytest.skip(why)
    done = watch("dcgmi:interval_s=0.1", tmp_path, lambda folder: (dcgmi.samples(folder) or 0) >= 3)
    assert done.ended_as_asked
    assert dcgmi.daemons()


def test_a_header_alone_is_not_at_work(tmp_path: Path) -> None:
    """It is written before DCGM has agreed to anything: what it refuses comes after."""
    (tmp_path / "stdout").write_text(f"{HEADER}Error setting watches. Result: -50: Profiling is not supported for this group of GPUs\n")
    assert not dcgmi.watches(tmp_path)
    assert dcgmi.samples(tmp_path) == 0


def test_the_first_gpu_need_not_be_number_0(tmp_path: Path) -> None:
    """Rows as of DCGM 3 (EuroMLSys'23 study), of other numbers; the last one was cut off."""
    row = "GPU {}     0                 0                 0.000        \n"
    (tmp_path / "stdout").write_text(HEADER + 3 * (row.format(3) + row.format(1)) + HEADER + row.format(3)[:-1])
    assert dcgmi.samples(tmp_path) == 3


def test_no_values_of_any_gpu_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.put(tmp_path / "bin", monkeypatch, dcgmi=f"print({HEADER!r})")
    assert dcgmi.unavailable_reason() == "dcgmi has no values of any GPU: see `dcgmi discovery -l`"
