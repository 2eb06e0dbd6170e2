"""Data sets are made whole or not at all, in folders of their own, where there is room for all of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.studies.io import dataset, formats
from fixtures.studies.io.dataset import Spec, check, contents, ensure, estimate_bytes
from fixtures.terms import Refused
from tests.waiting import PATIENCE_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUSE = Path(__file__).parents[2]
SETS = [Spec(name, 4, 1, 5000.0, 900.0) for name in formats.names() if not formats.load(name).unavailable_reason()]


def silent(_line: str) -> None:
    pass


def sets_in(root: Path) -> list[str]:
    return sorted(entry.name for entry in root.iterdir() if entry.is_dir())


def test_each_data_set_is_whole_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    made = ensure(SETS, tmp_path, said.append)
    assert sets_in(tmp_path) == sorted(spec.folder_name for spec in SETS)
    assert [check(tmp_path / spec.folder_name, spec) for spec in SETS] == list(made.values())
    assert sum("is there" in line for line in said) == len(SETS)  # a slow machine is told of parts in between


def test_a_data_set_that_is_there_is_verified_and_left_alone(tmp_path: Path) -> None:
    first = ensure(SETS[:2], tmp_path, silent)
    stamps = {path: path.stat().st_mtime_ns for manifest in first.values() for path in manifest.paths}
    assert ensure([*SETS[:2], SETS[0]], tmp_path, silent) == first
    assert stamps == {path: path.stat().st_mtime_ns for path in stamps}
    next(iter(first.values())).files[0].unlink()
    with pytest.raises(Refused, match="missing"):
        ensure(SETS[:2], tmp_path, silent)


def test_samples_of_each_file_differ_and_a_file_is_the_same_every_time(tmp_path: Path) -> None:
    spec = Spec("raw", 3, 2, 5000.0)
    twice = [ensure([spec], tmp_path / turn, silent)[spec].files for turn in ("one", "two")]
    content = [[path.read_bytes() for path in files] for files in twice]
    assert content[0] == content[1]
    assert len(set(content[0])) == 3


def test_room_is_reckoned_for_all_data_sets_before_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files of 1000 x 1000 bytes each, in blocks of 4096: 2 x 1 000 000 + 2 x 4096 = 2 008 192 bytes. One of them would fit."""
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((4096, 4096, 9999, 490, 490, 100, 3, 3, 0, 255)))
    two = [Spec("raw", 1, 1, 1e6), Spec("indexed_binary", 1, 1, 1e6)]
    with pytest.raises(Refused, match=r"2 data sets need 2\.02 MB, 2\.01 MB are free there; nothing was written\. Free .*--io-data=DIR"):
        ensure(two, tmp_path, silent)
    assert sets_in(tmp_path) == []
    assert sets_in(ensure(two[:1], tmp_path, silent)[two[0]].folder.parent) == [two[0].folder_name]
    with pytest.raises(Refused, match="4 files, the file system has room for 3; nothing was written"):
        ensure([Spec("raw", 4, 1, 100.0)], tmp_path, silent)


@pytest.mark.parametrize("files", [10**9, 10**18])
def test_room_for_huge_numbers_of_files_is_reckoned_from_a_part_of_them(files: int, tmp_path: Path) -> None:
    """At once, and in little memory: who draws the sizes of all of them never comes to an end."""
    with pytest.raises(Refused, match=r"needs \d+\.\d\d GB, \d+\.\d\d GB are free there|: \d+ files, the file system has room for"):
        ensure([Spec("npz", files, 1, 1e6, 3e5)], tmp_path, silent)
    assert sets_in(tmp_path) == []


def test_a_part_of_the_files_tells_their_size_to_a_hundredth() -> None:
    spec = Spec("raw", 120_000, 1, 1e6, 470_000.0)
    real = sum(samples.total_bytes for samples in contents(spec))
    assert real <= estimate_bytes([spec]) <= 1.02 * real


@pytest.mark.parametrize("error", [MemoryError, OverflowError])
def test_what_this_machine_cannot_count_through_is_said_in_a_line(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(dataset, "_write_files", fails)
    with pytest.raises(Refused, match=rf"more samples than this machine can count through \({error.__name__}\)\. Free some space"):
        ensure(SETS[:1], tmp_path, silent)
    assert sets_in(tmp_path) == []


def test_what_is_missing_is_said_with_its_size_and_the_room_there_is(tmp_path: Path) -> None:
    """2 x 100 x 100 bytes; a folder that is not there yet is on the file system of its parent."""
    root, (one, two) = tmp_path / "not" / "yet", (Spec("raw", 2, 1, 1e4), Spec("raw", 3, 1, 1e4))
    lines = list(dataset.outlook([one, two, one], root))
    assert lines[:2] == [
        f"Data set {one.folder_name}: 0.02 MB, is not there",
        f"Data set {two.folder_name}: 0.03 MB, is not there",
    ]
    assert re.fullmatch(rf"0\.05 MB to be made in {root} before the first cell, \d+\.\d\d GB free", lines[2])
    assert not root.exists()
    ensure([one], root, silent)
    assert next(line.split(":")[0] for line in dataset.outlook([one, two], root)) == f"Data set {two.folder_name}"
    assert list(dataset.outlook([one], root)) == []


def test_too_little_room_is_said_beforehand(tmp_path: Path) -> None:
    huge = [Spec("raw", 10, 1, 1e14), SETS[0]]
    *_, last = dataset.outlook(huge, tmp_path)
    says = r"2 data sets need 1000000\.\d\d GB, \d+\.\d\d GB are free there"
    assert re.match(f"Not enough room: .* {says}", last)
    with pytest.raises(Refused, match=says):
        ensure(huge, tmp_path, silent)
    assert sets_in(tmp_path) == []


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


@pytest.mark.needs("root")
@pytest.mark.parametrize("name", formats.names())
def test_a_disk_that_fills_up_in_the_middle_is_left_as_it_was(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "require_room", lambda _specs, _root: 0)
    with small_disk(2) as root:
        with pytest.raises(Refused, match=r"img_\d_of_9.*: No space left on device; what was begun is removed again") as refused:
            ensure([Spec(name, 9, 1, 500_000.0)], root, silent)
        assert "\n" not in str(refused.value)
        assert sets_in(root) == []


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match=r"file/sets: data sets cannot be kept there \(Not a directory\)"):
        ensure(SETS[:1], tmp_path / "file" / "sets", silent)


def test_a_missing_library_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats.Format, "unavailable_reason", lambda _form: "no h5py")
    with pytest.raises(Refused, match="no h5py"):
        ensure(SETS, tmp_path, silent)
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_folder_in_the_place_of_a_data_set_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / SETS[0].folder_name).mkdir()
    (tmp_path / SETS[0].folder_name / "precious").write_text("mine")
    with pytest.raises(Refused, match=r"no manifest\.json in it"):
        ensure(SETS, tmp_path, silent)
    assert (tmp_path / SETS[0].folder_name / "precious").read_text() == "mine"
    assert sets_in(tmp_path) == [SETS[0].folder_name]


def generating(root: Path) -> subprocess.Popen[str]:
    """`python -m fixtures.studies.io generate` of more files than it can write in a minute, caught when it has begun."""
    many = "format=raw:num_files_train=20000:record_length_bytes=100"
    process = subprocess.Popen(
        [sys.executable, "-m", "fixtures.studies.io", "generate", many, "--data", str(root)], cwd=HOUSE, text=True, stdout=-1, stderr=-1
    )
    until(lambda: process.poll() is not None or any(root.glob("*.part-*/train/*.raw")))
    assert process.poll() is None
    return process


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    with generating(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert (process.returncode, said) == (130, "interrupted; what was unfinished is removed\n")
    assert sets_in(tmp_path) == []


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    with generating(tmp_path) as process:
        process.kill()
    (left,) = sets_in(tmp_path)
    assert left.endswith(f".part-{process.pid}")
    for name in ("holidays.part-1", "npz-3x1-99-0123abcd.part-x"):
        (tmp_path / name).mkdir()
    said: list[str] = []
    ensure(SETS[:1], tmp_path, said.append)
    assert said[0] == f"data sets: {left} was left unfinished by a run that is gone; removed"
    assert sets_in(tmp_path) == sorted(["holidays.part-1", "npz-3x1-99-0123abcd.part-x", SETS[0].folder_name])


def test_one_process_at_a_time_writes_and_another_waits(tmp_path: Path) -> None:
    """What one is writing would look to the other like a killed run's."""
    waits, done = threading.Event(), threading.Event()

    def say(line: str) -> None:
        if "another process is writing" in line:
            waits.set()

    def run() -> None:
        ensure(SETS[:1], tmp_path, say)
        done.set()

    with (tmp_path / ".generating").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=run)
        other.start()
        assert waits.wait(PATIENCE_S)
        assert not done.is_set()
    other.join(PATIENCE_S)
    assert done.is_set()


def test_progress_is_said_while_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "_REPORT_EVERY_S", 0.0)
    # Else all of it may be written before anybody looks for the first time.
    monkeypatch.setattr(dataset, "_sync", lambda _: time.sleep(0.02))
    spec, said = Spec("raw", 3, 1, 10000.0), list[str]()
    ensure([spec], tmp_path, said.append)
    assert sum(samples.total_bytes for samples in contents(spec)) == 30000
    progress = [re.fullmatch(rf"data sets: {spec.folder_name}: 0\.0([0-3]) MB of 0\.03 MB", line) for line in said[:-1]]
    assert progress
    assert [int(line[1]) for line in progress if line] == sorted(int(line[1]) for line in progress if line)
    assert all(progress)
