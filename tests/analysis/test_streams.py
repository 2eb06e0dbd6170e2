"""The exit code is the answer: no closed pipe, full disk or own fault swaps pass and regression."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis import files
from analysis.__main__ import main
from analysis.files import read_whole, write_whole
from analysis.load import load
from analysis.terms import Unreadable
from tests.analysis.answers import refused
from tests.synthetic import STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from syrupy.assertion import SnapshotAssertion


HOUSE = Path(__file__).parents[2]
SLOWER = Made(arms=(STOCK, Arm("tuned", -0.3, {"vm.swappiness": "1"})), blocks=8, run_cv=0.003)
EQUAL = replace(SLOWER, arms=(STOCK, Arm("tuned", 0.0, {"vm.swappiness": "1"})))
FEW = replace(SLOWER, blocks=1)


def slow(*values: object) -> ParameterSet:
    return pytest.param(*values, marks=pytest.mark.slow)


def gate(folder: Path, made: Made) -> list[str]:
    path = saved_file(folder, made)
    return ["gate", f"{path}:stock", f"{path}:tuned", "--max-regression", "5%"]


def shell(line: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "analysis", *arguments]
    return subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("made", "code", "form"), [(SLOWER, 1, ["--json"]), slow(EQUAL, 0, []), slow(FEW, 3, [])]
)
def test_a_reader_that_closes_early_leaves_the_gate_its_code(
    tmp_path: Path, made: Made, code: int, form: list[str]
) -> None:
    done = shell('"$@" | true; exit ${PIPESTATUS[0]}', *gate(tmp_path, made), *form)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize(
    ("made", "code", "ending"),
    [
        (EQUAL, 2, "> /dev/full"),
        slow(EQUAL, 2, ">&-"),
        (SLOWER, 1, ">&-"),
        slow(FEW, 3, "> /dev/full"),
    ],
)
def test_an_unprinted_pass_is_none_and_a_regression_stays_one(
    tmp_path: Path, made: Made, code: int, ending: str
) -> None:
    done = shell(f'"$@" {ending}', *gate(tmp_path, made))
    assert done.returncode == code
    assert done.stderr.startswith("error: standard output")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("ending", ["2>&-", slow("2> /dev/full")])
def test_a_complaint_that_nobody_can_read_leaves_the_code(ending: str) -> None:
    done = shell(f'"$@" {ending}', "compare", "nothing.json")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_an_unwritable_page_makes_no_pass_and_keeps_a_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for made, code in ((EQUAL, 2), (SLOWER, 1)):
        assert main([*gate(tmp_path, made), "--junit", str(tmp_path), "--json"]) == code
        out, err = capsys.readouterr()
        assert json.loads(out)["exit_code"] == code
        assert f"error: {tmp_path}: cannot be written" in err


@pytest.mark.parametrize("where", ["analysis.commands.gate.judge", "analysis.commands.gate.answer"])
def test_a_fault_of_ours_is_exit_code_2_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Python itself answers 1, which would read as a regression."""

    def break_down(*_: object) -> None:
        raise ZeroDivisionError("first\nsecond")

    monkeypatch.setattr(where, break_down)
    assert main(gate(tmp_path, SLOWER)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "ZeroDivisionError: first second" in err
    assert str(tmp_path) in err
    monkeypatch.setenv("DEEPTWEAK_TRACEBACK", "1")
    assert main(gate(tmp_path, SLOWER)) == 2
    assert "Traceback" in capsys.readouterr().err


ODD = ["", "x" * 300, "circle.json", "pipe.json", "/dev/zero", "/dev/null"]
COMMANDS = {"compare": [], "plan": ["--effect", "3%"], "gate": ["--max-regression", "3%"]}


def test_an_odd_name_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """A plan takes one file, no pattern; the definition of a pattern varies by Python version."""
    monkeypatch.chdir(tmp_path)
    Path("circle.json").symlink_to("circle.json")
    os.mkfifo("pipe.json")
    complaints: dict[str, set[str]] = {}
    for command, words in COMMANDS.items():
        for name in ODD[1:] if command == "plan" else ODD:
            line = refused(capsys, command, *words, name, *([name] if command == "gate" else []))
            # The rest is Python's.
            complaints.setdefault(name[:20], set()).add(line.partition(" Invalid pattern")[0])
    assert complaints == snapshot


def test_what_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as sink:
        sink.truncate(files.LARGEST_BYTES + 1)  # without a single block on the disk
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda _: pytest.fail("was read"))
    with pytest.raises(Unreadable, match="512 MiB"):
        read_whole(path)


@pytest.mark.parametrize(
    "pattern", ["{locked}/in/run.json", "{locked}/in/*.json", "{locked}/in", "{locked}"]
)
def test_a_locked_folder_is_a_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    pattern: str,
) -> None:
    """Root ignores locks, so the system's answer is simulated."""

    def locked(path: Path, **_: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.stat", locked)
    line = refused(capsys, "history", pattern.replace("{locked}", str(tmp_path / "locked")))
    # A pattern of Python 3.13 passes over what is locked.
    assert "Permission denied" in line or ("*" in pattern and "can be seen" in line)


def test_writing_follows_a_link_and_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", b"new")
    assert os.read(reading, 10) == b"new"
    os.close(reading)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("place", ['"deeptweak"', '"run_id"'])
def test_a_name_that_stands_twice_is_refused(tmp_path: Path, place: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved_run(Made())).replace(place, f"{place}: null, {place}", 1))
    with pytest.raises(Unreadable, match="twice"):
        load(path)
