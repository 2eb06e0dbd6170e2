"""`python -m analysis compare`: output streams and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from tests.analysis.answers import refusals, refused
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


HOUSE = Path(__file__).parents[2]
COMMANDS = [
    path.stem.rstrip("_").replace("_", "-")
    for path in (HOUSE / "analysis/commands").glob("*.py")
    if not path.stem.startswith("_")
]
MADE = Made(arms=(STOCK, AGAIN, Arm("faster", 0.1, {"vm.swappiness": "1"})))


def program(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "analysis", *arguments]
    return subprocess.run(
        command,
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environ},
    )


def test_json_has_the_same_verdicts_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(saved_file(tmp_path, MADE)), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(run["run_id"], run["commit"]) for run in said["runs"]] == [("made-up-1", None)]
    faster = said["comparisons"][1]
    assert (faster["tweakset"], faster["verdict"]) == ("faster", "improved")
    assert faster["primary"]["low"] < 0.1 < faster["primary"]["high"]
    assert faster["primary"]["metric"] == {
        "name": "throughput_samples_per_s",
        "better": "higher",
        "unit": "",
    }


def test_a_bad_request_is_one_line_on_stderr_and_exit_code_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_file(tmp_path, MADE)
    Path("empty.json").touch()
    Path("folder").mkdir()
    cases = {
        "no file": ["compare", "nothing.json"],
        "no run in a folder": ["compare", "folder"],
        "unknown baseline": ["compare", "run.json", "--baseline", "stok"],
        "empty": ["compare", "empty.json"],
        "with itself": ["compare", "run.json", "run.json"],
    }
    assert refusals(capsys, cases) == snapshot


@pytest.mark.parametrize("error", [RecursionError, KeyError])
def test_whatever_a_damaged_file_breaks_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    """The last defence, against unforeseen damage, names the error for the reader's maintainer."""

    def choke(*_: object) -> None:
        raise error("first\nsecond")

    monkeypatch.setattr("analysis.commands.compare.compare", choke)
    path = saved_file(tmp_path, MADE)
    assert error.__name__ in refused(capsys, "compare", path)


@pytest.mark.parametrize("words", ["compare", "compare a --adjust luck", "compare a --margin 3"])
def test_bad_usage_is_exit_code_2(words: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())


def test_no_command_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """No command exits with 2, a request for help with 0; each command is in one group."""
    assert (main([]), main(["--help"])) == (2, 0)
    listed = [
        line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")
    ]
    assert sorted(listed) == sorted(COMMANDS * 2)


# What a file's name begins with, and whose answer it is; all others are verdicts.
SHOWN = {
    "cluster-kubernetes": "depend report",
    "cluster-scheduling": "schedule report",
    "gpu-metrics": "gpu-metrics",
    "io_": "io",
    "monitoring": "overhead",
    "power-cap": "power report",
}


def lines(capsys: pytest.CaptureFixture[str], *command: str) -> list[str]:
    """Output lines of a command, without the next command that it names."""
    assert main(command) == 0
    return [
        line
        for line in capsys.readouterr().out.splitlines()
        if line and not line.startswith("next:")
    ]


@pytest.mark.parametrize(
    "path", sorted((HOUSE / "data/runs").glob("*.json")), ids=lambda path: path.stem
)
def test_a_run_is_shown_as_the_command_for_its_question_answers(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = lines(capsys, "show", str(path))
    assert not shown[0].startswith("Nothing to compare")
    command = next((command for name, command in SHOWN.items() if path.name.startswith(name)), None)
    assert command is None or shown == lines(capsys, *command.split(), str(path))


def test_a_run_alone_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(saved_file(tmp_path, MADE))
    assert lines(capsys, path) == lines(capsys, "show", path) == lines(capsys, "compare", path)


def test_without_a_terminal_ascii_is_written_if_required(tmp_path: Path) -> None:
    """And a table without colour, unless FORCE_COLOR requests it."""
    done = program("compare", str(saved_file(tmp_path, MADE)), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Faster: ")
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    """As in `python -m analysis compare RUN | head -1`: the pipe is closed before any output."""
    command = [sys.executable, "-m", "analysis", "compare", str(saved_file(tmp_path, MADE))]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            command, cwd=HOUSE, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["power", "reprt"], "report"),
        (["power", "report", "--explan", "run.json"], "--explain"),
        (["compare", "rum.json"], "run.json"),
        (["compare", "run.json", "--workloads", "cnn"], "cnn_train"),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest(
    words: list[str],
    nearest: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_file(tmp_path, MADE)
    with suppress(SystemExit):
        main(words)
    assert f"Did you mean '{nearest}'?" in capsys.readouterr().err
