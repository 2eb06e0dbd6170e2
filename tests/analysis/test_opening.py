"""Whatever a path leads to, it is read, or refused in one line with exit code 2: never a crash, never a wait without end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis import opening
from analysis.load import load
from analysis.opening import read_whole, resolved
from analysis.saving import write_whole
from analysis.terms import Refused, Unreadable
from tests.analysis.answers import refused
from tests.synthetic import Made, saved_file, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


ODD = ["", "x" * 300, "circle.json", "pipe.json", "/dev/zero", "/dev/null"]
COMMANDS = {"compare": [], "describe": [], "plan": ["--effect", "3%"], "gate": ["--max-regression", "3%"]}


def test_an_odd_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """A plan takes one file and no pattern; what is a pattern at all depends on the version of Python."""
    monkeypatch.chdir(tmp_path)
    Path("circle.json").symlink_to("circle.json")
    os.mkfifo("pipe.json")
    complaints: dict[str, set[str]] = {}
    for command, words in COMMANDS.items():
        for name in ODD[1:] if command == "plan" else ODD:
            line = refused(capsys, command, *words, name, *([name] if command == "gate" else []))
            complaints.setdefault(name[:20], set()).add(line.partition(" Invalid pattern")[0])  # the rest is Python's
    assert complaints == snapshot


def test_a_link_to_a_pipe_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "run.json").symlink_to("pipe")
    with pytest.raises(Unreadable, match="pipe"):
        load(tmp_path / "run.json")


def test_limits_and_tables_and_telemetry_are_files_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = saved_file(tmp_path)
    os.mkfifo(tmp_path / "limits.yaml")
    gate = ["gate", f"{run}:stock", f"{run}:stock-again", "--limits", str(tmp_path / "limits.yaml")]
    assert "pipe" in refused(capsys, *gate)
    (tmp_path / "node" / "base").mkdir(parents=True)
    os.mkfifo(tmp_path / "node" / "base" / "benchmark.csv")
    assert "pipe" in refused(capsys, "compare", str(tmp_path / "node"))


def test_what_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as sink:
        sink.truncate(opening.LARGEST_BYTES + 1)  # without a single block on the disk
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda _: pytest.fail("was read"))
    with pytest.raises(Unreadable, match="512 MiB"):
        read_whole(path)


@pytest.mark.parametrize("pattern", ["{locked}/in/run.json", "{locked}/in/*.json", "{locked}/in", "{locked}"])
def test_a_locked_folder_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """Root sees through every lock, so the system's answer is put in its place."""

    def locked(path: Path, **_: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.stat", locked)
    line = refused(capsys, "describe", pattern.replace("{locked}", str(tmp_path / "locked")))
    assert "Permission denied" in line or ("*" in pattern and "can be seen" in line)  # a pattern of Python 3.13 passes over what is locked


def test_links_in_a_circle_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    circle = tmp_path / "circle.html"
    circle.symlink_to("circle.html")
    with pytest.raises(Refused, match="circle"):
        resolved(circle)
    run = str(saved_file(tmp_path))
    assert "circle" in refused(capsys, "report", run, "--output", str(circle))
    assert "circle" in refused(capsys, "split", run, "--output", str(circle))


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
    """The last would be believed here, and the first elsewhere."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps(saved_run(Made())).replace(place, f"{place}: null, {place}", 1))
    with pytest.raises(Unreadable, match="twice"):
        load(path)
