"""`python -m fixtures`: the commands beside the main job; what they do to a machine is in test_interrupt.py."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from fixtures import designs, monitors, tweaks, workloads
from fixtures.node import gpus
from tests.node.test_nvml import library
from tests.sessions import Place

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sessions import Done


def command(folder: Path, *words: str) -> Done:
    return Place(folder).call(sys.executable, "-m", "fixtures", *words)


def test_list_names_every_tweak_set_workload_design_and_monitor_with_what_it_is(tmp_path: Path) -> None:
    done = command(tmp_path, "list")
    assert done.code == 0
    for tweakset in tweaks.resolve("all"):
        assert [line for line in done.lines(f"  {tweakset.name} ") if tweakset.description in line], tweakset.name
    for name in workloads.names():
        assert [line for line in done.lines(f"  {name} ") if workloads.load(name).description in line], name
    assert done.lines("  matrix ")
    for name in designs.names()[1:]:
        assert [line for line in done.lines(f"  {name} ") if designs.load(name).DESCRIPTION in line], name
    for name in monitors.names():
        assert [line for line in done.lines(f"  {name} ") if monitors.load(name).description in line], name
    assert done.lines("psutil_thread:interval_s=…: ")


@pytest.mark.parametrize("words", [(), ("put-back",), ("restore", "now")])
def test_what_is_no_command_is_answered_with_those_there_are(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = command(tmp_path, *words)
    assert done.code == 2
    assert "{restore,doctor,list,detect-gpu,arrivals}" in done.out
    assert "Traceback" not in done.out


def test_help_says_what_each_command_is_for(tmp_path: Path) -> None:
    done = command(tmp_path, "--help")
    assert done.code == 0
    for line in ("restore    put back what a killed run left changed", "doctor     root, GPU", "list       tweak sets"):
        assert done.lines(line)


def test_doctor_has_a_line_for_every_tweak_set_of_the_catalogue(tmp_path: Path) -> None:
    """It can be measured here, or why not."""
    done = command(tmp_path, "doctor")
    assert done.code in (0, 2)  # 2 where a run holds this machine
    for tweakset in tweaks.resolve("all"):
        assert done.lines(f"tweak set {tweakset.name} ") or done.lines(f"tweak set {tweakset.name}"), tweakset.name


def test_a_journal_that_somebody_edited_is_not_guessed_at(tmp_path: Path) -> None:
    """One line: where, and what to do by hand."""
    place = Place(tmp_path)
    place.state.mkdir()
    (place.state / "journal.jsonl").write_text("not a record\n")
    (place.state / "journal.jsonl").chmod(0o600)
    done = command(tmp_path, "restore")
    assert (done.code, done.out.count("\n")) == (2, 1)
    assert f"error: {place.state}/journal.jsonl, line 1: not a journal record" in done.out
    (place.state / "journal.jsonl").unlink()  # it is there still; a real run on this machine would take it for one that was killed


@pytest.mark.needs("cc", "root")
def test_restore_puts_back_a_gpu_that_a_killed_run_has_left_changed(tmp_path: Path) -> None:
    """On a stand-in for NVML; what it does to clocks, limit and MPS is in power/test_cap_gpu_full.py."""
    uuid, gpu = "GPU-00000000-0000-0000-0000-000000000000", tmp_path / "gpu"
    gpu.write_text("150000 1200 0\n")
    driver = {"LD_LIBRARY_PATH": str(library(tmp_path)), "FAKE_NVML_STATE": str(gpu)}
    place = Place(tmp_path, environment=driver)
    kept = gpus.Gpus(place.state).journal
    kept.begin({"record": "begin", "version": 1, "pid": 2**22, "started": 1, "power_limit_mw": {uuid: 250000}, "mps": None})
    kept.add({"record": "write", "gpu": uuid, "knob": "sm_mhz", "value": 1200})
    kept.add({"record": "write", "gpu": uuid, "knob": "power_limit_mw", "value": 150000})
    done = place.restore()
    assert (done.code, gpu.read_text()) == (0, "250000 0 0\n")
    assert done.lines(f"  {uuid} power_limit_mw: 150000 -> 250000")
    assert place.restore().lines("Nothing to restore")
    kept.close()


@pytest.mark.needs("cc")
def test_detect_gpu_names_the_one_of_the_study_and_says_by_its_exit_code_whether_there_is_one(tmp_path: Path) -> None:
    """The stand-in is none of them; and here is none at all, or one that somebody may have."""
    place = Place(tmp_path, environment={"LD_LIBRARY_PATH": str(library(tmp_path))})
    done = place.call(sys.executable, "-m", "fixtures", "detect-gpu")
    assert (done.code, done.out) == (1, "Fake GPU: none of 3080Ti, A100\n")
