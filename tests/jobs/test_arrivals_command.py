"""`python -m fixtures arrivals`: a stream as CSV that a trace gives back and the read side fits."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.__main__ import main
from fixtures.studies.jobs import arrivals, classes, stream

if TYPE_CHECKING:
    Said = Callable[..., tuple[int, list[str], str]]

HOUSE = Path(__file__).parents[2]
FILES = Path(__file__).parent / "fltk_files"
FLTK = ("--fltk", str(FILES / "cluster.json"), str(FILES / "distributed.json"))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    """Return the command's exit code, lines of stdout, and stderr."""

    def call(*words: str, command: str = "arrivals") -> tuple[int, list[str], str]:
        monkeypatch.setattr(sys, "argv", ["fixtures", command, *words])
        code = main()
        out, err = capsys.readouterr()
        return code, out.splitlines(), err

    return call


def test_it_prints_the_stream_that_a_workload_would_run(said: Said) -> None:
    code, lines, err = said(
        "--kind=mmpp", "--rate=8", "--burst=4", "--jobs=30", "--classes=mixed", "--seed=7"
    )
    given = {"arrivals": "mmpp", "rate_per_s": "8", "burst": "4", "jobs": "30", "classes": "mixed"}
    planned = stream.plan(classes.complete(given), 7)
    assert (code, err, lines[0]) == (0, "", "job,submit_s,class,priority,replicas,work")
    assert lines[1:] == [
        f"{one.job},{one.submit_s},{one.class_.name},{one.priority},{one.replicas},{one.work}"
        for one in planned
    ]


def test_what_it_wrote_is_replayed_to_the_last_bit(said: Said, tmp_path: Path) -> None:
    first, again = tmp_path / "first.csv", tmp_path / "again.csv"
    said("--classes=tenants", "--jobs=200", "-o", str(first))
    said(f"--trace={first}", "--classes=tenants", "--seed=99", "-o", str(again))
    assert first.read_text() == again.read_text()
    assert len(arrivals.read_trace(first)) == 200


def test_the_read_side_finds_the_rate_that_was_asked_for(said: Said, tmp_path: Path) -> None:
    """Across the wall: by its command, as a user would."""
    said("--rate=5", "--jobs=2000", "-o", str(tmp_path / "trace.csv"))
    command = [
        sys.executable,
        "-m",
        "analysis",
        "queue",
        "fit",
        str(tmp_path / "trace.csv"),
        "--json",
    ]
    done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=True)
    (fit,) = json.loads(done.stdout)["fits"]
    assert fit["rate_per_s"]["value"] == pytest.approx(5, rel=0.1)
    assert all(test["p_adjusted"] > 0.01 for test in fit["arrivals"]["tests"])


def test_fltk_files_become_arrivals_and_classes_with_a_note(said: Said, tmp_path: Path) -> None:
    own = tmp_path / "classes.yaml"
    code, lines, err = said(*FLTK, "--jobs=5", "--classes-output", str(own))
    assert (code, len(lines)) == (0, 6)
    assert "train and federated replace them" in err
    (tmp_path / "trace.csv").write_text("\n".join(lines))
    replayed = said(f"--trace={tmp_path / 'trace.csv'}", f"--classes={own}")[1]
    assert replayed == lines
    assert [one.name for one in classes.read(own)] == ["Cifar10CNN-cifar10", "MNISTCNN-mnist"]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("--rate=0",), "error: rate_per_s=0: must be a number from"),
        (("--seed=-1",), "error: --seed=-1: must be a whole number of at least 0"),
        (
            ("--classes=slep",),
            "error: classes=slep: no such file in data/jobs. Did you mean 'sleep'",
        ),
        (("--trace=/none.csv",), "error: /none.csv: cannot be read: No such file"),
        (("--classes-output=x.yaml",), "error: --classes-output applies only to --fltk"),
        (("-o", "/dev/full"), "error: Cannot write /dev/full: No space left"),
        (
            (*FLTK, "--jobs=99999999"),
            "error: --jobs=99999999: must be a whole number from 1 to 1000000",
        ),
        ((*FLTK, "--rate=2", "--kind=fltk"), "error: --kind, --rate: already set by FLTK's files"),
    ],
)
def test_what_cannot_be_drawn_is_one_line_and_exit_code_2(
    said: Said, words: Sequence[str], answer: str
) -> None:
    code, lines, err = said(*words)
    assert (code, lines, err.count("\n")) == (2, [], 1)
    assert err.startswith(answer)


def test_on_a_full_disk_a_file_is_whole_or_as_it_was(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    old = tmp_path / "old.csv"
    old.write_text("kept")
    for path in (old, tmp_path / "new.csv"):
        assert said("-o", str(path))[::2] == (
            2,
            f"error: Cannot write {path}: No space left on device.\n",
        )
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old.csv", "kept")]
