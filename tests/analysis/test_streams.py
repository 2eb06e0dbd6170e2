"""An exit code is the answer: no closed pipe, full disk, closed stream or fault of ours turns a regression into a pass or back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from tests.synthetic import STOCK, Arm, Made, saved_file

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

HOUSE = Path(__file__).parents[2]
SLOWER = Made(arms=(STOCK, Arm("tuned", -0.3, {"vm.swappiness": "1"})), blocks=8, run_cv=0.003)
EQUAL = replace(SLOWER, arms=(STOCK, Arm("tuned", 0.0, {"vm.swappiness": "1"})))
FEW = replace(SLOWER, blocks=1)


def slow(*values: object) -> ParameterSet:
    """One more process, where there is time."""
    return pytest.param(*values, marks=pytest.mark.slow)


def gate(folder: Path, made: Made) -> list[str]:
    path = saved_file(folder, made)
    return ["gate", f"{path}:stock", f"{path}:tuned", "--max-regression", "5%"]


def shell(line: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with its streams as a shell ties them; `"$@"` in the line stands for it."""
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "analysis", *arguments]
    return subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("made", "code", "form"), [(SLOWER, 1, ["--json"]), slow(EQUAL, 0, []), slow(FEW, 3, [])])
def test_a_reader_that_closes_early_leaves_the_gate_its_code(tmp_path: Path, made: Made, code: int, form: list[str]) -> None:
    done = shell('"$@" | true; exit ${PIPESTATUS[0]}', *gate(tmp_path, made), *form)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize(
    ("made", "code", "ending"),
    [(EQUAL, 2, "> /dev/full"), slow(EQUAL, 2, ">&-"), (SLOWER, 1, ">&-"), slow(FEW, 3, "> /dev/full")],
)
def test_a_pass_that_cannot_be_told_is_none_and_a_regression_stays_one(tmp_path: Path, made: Made, code: int, ending: str) -> None:
    done = shell(f'"$@" {ending}', *gate(tmp_path, made))
    assert done.returncode == code
    assert done.stderr.startswith("error: standard output")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("ending", "form"), [("> /dev/full", []), slow(">&-", ["--json"])])
def test_another_command_that_cannot_write_says_so_in_one_line(tmp_path: Path, ending: str, form: list[str]) -> None:
    done = shell(f'"$@" {ending}', "compare", str(saved_file(tmp_path, SLOWER)), *form)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("ending", ["2>&-", slow("2> /dev/full")])
def test_a_complaint_that_nobody_can_read_leaves_the_code(ending: str) -> None:
    done = shell(f'"$@" {ending}', "compare", "nothing.json")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_a_page_that_cannot_be_written_makes_no_pass_and_unmakes_no_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_very_long_name_does_not_hide_what_is_wrong_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "x" * 5000]) == 2
    err = capsys.readouterr().err
    assert err.endswith(f"{os.strerror(36)}.\n")  # ENAMETOOLONG
    assert len(err) < 500
