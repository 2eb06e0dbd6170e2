"""`python -m analysis compare`: output streams and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from tests.analysis.answers import refusals, refused
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_file, saved_run

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


def test_a_regression_is_a_finding_and_no_error(tmp_path: Path) -> None:
    """Failing a build is the gate's business; compare reports."""
    made = Made(arms=(STOCK, Arm("slower", -0.3, {"vm.swappiness": "1"})))
    assert main(["compare", str(saved_file(tmp_path, made))]) == 0


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


def test_another_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(saved_file(tmp_path, MADE)), "--baseline", "faster", "--json"]) == 0
    assert [one["verdict"] for one in json.loads(capsys.readouterr().out)["comparisons"]] == [
        "regressed",
        "regressed",
    ]


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


def edit(part: str, name: str, value: object, run: JSON) -> None:
    for benchmark in run["benchmarks"]:
        steps, metrics = benchmark["extra_info"]["steps"], benchmark["extra_info"]["metrics"]
        if part == "steps":
            steps[name] = [value] * 14
        else:
            metrics[name] = value


def test_only_missing_arguments_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare"])
    assert capsys.readouterr().err.endswith("required: BASE\n")


def test_help_is_wrapped_by_sentence_and_not_by_source_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for command in ("compare", "gate", "evidence", "history"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        page = capsys.readouterr().out
        prose = (
            page.partition("\noutput:\n")[2].partition("\n\n")[2].partition("\n\n")[0].splitlines()
        )
        assert max(map(len, prose)) <= 60
        joins = [
            (line, after.split()[0])
            for line, after in pairwise(prose)
            if not line.endswith((".", ":"))
        ]
        assert all(len(line) + 1 + len(word) > 60 for line, word in joins), command


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("steps", "wall_s", 10**400),
        ("steps", "wall_s", 1e308),
        ("steps", "wall_s", 1e-320),
        ("steps", "cpu_s", 1e308),
        ("steps", "samples", 10**400),
        ("steps", "tokens", 10**400),
        ("metrics", "step_time_p10_s", 10**400),
    ],
)
def test_an_edited_number_is_one_line_and_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str, name: str, value: float
) -> None:
    run = saved_run(MADE)
    edit(part, name, value, run)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run))
    for form in ([], ["--json"]):
        assert f"benchmarks[0].extra_info has {part}.{name}" in refused(
            capsys, "compare", path, *form
        )


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


def test_one_who_interrupts_it_is_told_so_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("analysis.commands.compare.compare", interrupt)
    assert main(["compare", str(saved_file(tmp_path, MADE))]) == 130
    assert capsys.readouterr().err.count("\n") == 1


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


def test_a_command_that_is_none_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "`compare`" in refused(capsys, "comprae", "run.json")


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
