"""Whatever a path leads to, it is read, or refused in one line with exit code 2: never a crash, never a wait without end."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from analysis import opening
from analysis.__main__ import main
from analysis.load import load
from analysis.opening import read_whole, resolved
from analysis.saving import write_whole
from analysis.terms import Refused, Unreadable
from tests.synthetic import Made, saved_file, saved_run

if TYPE_CHECKING:
    from pathlib import Path


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "an empty name"),
        ("a**b", "a**b: is no pattern"),
        ("/***/x", "is no pattern"),
        ("x" * 300, "File name too long"),
        ("{tmp}/circle.json", "Too many levels of symbolic links"),
        ("{tmp}/pipe.json", "It is a pipe or a device"),
        ("/dev/zero", "It is a pipe or a device"),
        ("/dev/null", "It is a pipe or a device"),
    ],
)
@pytest.mark.parametrize("command", [["compare"], ["describe"], ["plan", "--effect", "3%"], ["gate", "--max-regression", "3%"]], ids=str)
def test_an_odd_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], name: str, said: str) -> None:
    (tmp_path / "circle.json").symlink_to("circle.json")
    os.mkfifo(tmp_path / "pipe.json")
    path = name.replace("{tmp}", str(tmp_path))
    arms = [path, path] if command[0] == "gate" else [path]
    if name in {"", "a**b", "/***/x"} and command[0] == "plan":
        return  # takes one file and no pattern
    assert said in refused(capsys, *command, *arms)


def test_a_link_to_a_pipe_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "run.json").symlink_to("pipe")
    with pytest.raises(Unreadable, match="It is a pipe or a device"):
        load(tmp_path / "run.json")


def test_limits_and_tables_and_telemetry_are_files_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = saved_file(tmp_path)
    os.mkfifo(tmp_path / "limits.yaml")
    gate = ["gate", f"{run}:stock", f"{run}:stock-again", "--limits", str(tmp_path / "limits.yaml")]
    assert "It is a pipe or a device" in refused(capsys, *gate)
    (tmp_path / "node" / "base").mkdir(parents=True)
    os.mkfifo(tmp_path / "node" / "base" / "benchmark.csv")
    assert "It is a pipe or a device" in refused(capsys, "compare", str(tmp_path / "node"))


def test_what_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as sink:
        sink.truncate(opening.LARGEST_BYTES + 1)  # without a single block on the disk
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda _: pytest.fail("was read"))
    with pytest.raises(Unreadable, match="has 512 MiB, more than 512"):
        read_whole(path)


@pytest.mark.parametrize("pattern", ["{locked}/in/run.json", "{locked}/in/*.json", "{locked}/in", "{locked}"])
def test_a_locked_folder_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """Root sees through every lock, so the system's answer is put in its place."""

    def locked(path: Path, **_: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.stat", locked)
    assert "Permission denied" in refused(capsys, "describe", pattern.replace("{locked}", str(tmp_path / "locked")))


def test_links_in_a_circle_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    circle = tmp_path / "circle.html"
    circle.symlink_to("circle.html")
    with pytest.raises(Refused, match="lead in a circle"):
        resolved(circle)
    run = str(saved_file(tmp_path))
    assert "lead in a circle" in refused(capsys, "report", run, "--output", str(circle))
    assert "lead in a circle" in refused(capsys, "split", run, "--output", str(circle))


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
    with pytest.raises(Unreadable, match=r"run\.json: holds '\w+' twice"):
        load(path)
