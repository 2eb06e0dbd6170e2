"""nsys and ncu start the workload: its protocol stays its own.

With stand-ins, and with the real ones where they are.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.monitors.catalogue import nvidia
from fixtures.monitors.monitor import Monitor, load
from tests.monitors import stand_ins
from tests.waiting import PATIENCE_S

# Says that it is ready, waits for a line, says what it was told, and ends: the protocol in small.
# Its arguments are not harmless.
WORKLOAD = """
import json, sys
print(json.dumps({"ready": sys.argv[1:]}), flush=True)
print(json.dumps({"told": sys.stdin.readline()}), flush=True)
print("a complaint", file=sys.stderr)
sys.exit(3)
"""
nsys, ncu = load("nsys"), load("ncu")
ARGUMENTS = ["with blank", "'quote\"", "$HOME", "--seed=1", ""]


def around(profiler: Monitor, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [*profiler.around(folder), sys.executable, "-c", WORKLOAD, *ARGUMENTS]
    return subprocess.run(
        command, input="go\n", capture_output=True, text=True, check=False, cwd=folder
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One whose name has what a shell takes for something else."""
    folder = tmp_path / "a $folder's"
    folder.mkdir()
    return folder


def test_under_nsys_the_workload_speaks_and_hears_by_itself(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_ins.put(tmp_path / "bin", monkeypatch, nsys=stand_ins.NSYS)
    assert nsys.unavailable_reason() is None
    assert (nsys.version() or "").startswith("NVIDIA Nsight Systems version 2024")
    done = around(nsys, folder)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"ready": ARGUMENTS},
        {"told": "go\n"},
    ]
    assert (done.returncode, done.stderr) == (3, "a complaint\n")
    assert (
        folder / "stdout"
    ).read_text() == "Collecting data...\nGenerating '/tmp/nsys-report-4f71.qdstrm'\n"
    assert (folder / "report.nsys-rep").exists()


def test_a_workload_sees_eof_if_harness_and_profiler_are_killed(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither's child, so no signal comes: the end of its stdin is what ends it.

    Nobody else may hold the other end open.
    """
    stand_ins.put(tmp_path / "bin", monkeypatch, nsys=stand_ins.NSYS)
    command = [*nsys.around(folder), sys.executable, "-c", WORKLOAD]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as profiler:
        assert profiler.stdout is not None
        assert json.loads(profiler.stdout.readline()) == {"ready": []}
        profiler.kill()
        assert profiler.communicate(timeout=PATIENCE_S)[0] == '{"told": ""}\n'


def test_under_ncu_too_and_its_kernels_are_counted(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_ins.put(tmp_path / "bin", monkeypatch, ncu=stand_ins.NCU, nvidia_smi=stand_ins.NVIDIA_SMI)
    monkeypatch.setattr(nvidia, "no_counters", lambda: None)
    assert ncu.unavailable_reason() is None
    assert ncu.version() == "Version 2024.3.2.0 (build 34861637)"
    assert ncu.samples(folder) is None
    done = around(load("ncu:set=full"), folder)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"ready": ARGUMENTS},
        {"told": "go\n"},
    ]
    assert done.returncode == 3
    assert ncu.samples(folder) == 3
    assert (folder / "report.ncu-rep").exists()


@pytest.mark.needs("nsys")
def test_the_real_nsys(folder: Path) -> None:
    done = around(nsys, folder)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"ready": ARGUMENTS},
        {"told": "go\n"},
    ]
    assert (folder / "report.nsys-rep").stat().st_size > 0


@pytest.mark.parametrize("profiler", [nsys, ncu], ids=["nsys", "ncu"])
def test_what_the_program_is_told(profiler: Monitor, folder: Path) -> None:
    """One may overwrite, the other leaves the GPU's clocks alone; both write into the folder."""
    said = " ".join(profiler.around(folder))
    wanted = {
        nsys: ("--trace=cuda,osrt,nvtx", "--sample=none", "--force-overwrite=true"),
        ncu: ("--set basic", "--target-processes all", "--clock-control none"),
    }
    assert all(word in said for word in wanted[profiler])
