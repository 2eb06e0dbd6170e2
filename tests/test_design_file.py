"""The design file during a run: written and marked whole; a failed write does not end the run."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from fixtures import design_file
from fixtures.design_file import DesignFile, Row, Sheet
from fixtures.terms import BadInput

ROWS = [
    Row(1, 1, "idle", "stock", {}),
    Row(2, 1, "idle", "knobs.x", {"vm.swappiness": "7"}),
    Row(3, 1, "idle", "knobs", {"vm.swappiness": "+"}),
]
STOCK, X, KNOBS = (row.key for row in ROWS)
SHEET = Sheet("", ("vm.swappiness",), tuple(ROWS), ("# a comment",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "design.csv"


@pytest.fixture
def made(path: Path) -> DesignFile:
    return DesignFile(path, SHEET)


def letters(path: Path) -> str:
    return "".join(row.run for row in design_file.read(path).rows)


def test_a_file_is_written_once_and_marked_row_by_row(path: Path, made: DesignFile) -> None:
    assert path.read_text() == (
        "# a comment\n"
        "order,block,workload,tweakset,vm.swappiness,run,reason\n"
        "1,1,idle,stock,,N,\n"
        "2,1,idle,knobs.x,7,N,\n"
        "3,1,idle,knobs,+,N,\n"
    )
    assert made.mark(STOCK, "Y") is None
    assert made.mark(X, "F", "it said:\r\n no,\u2028thanks") is None
    assert letters(path) == "YFN"
    assert '2,1,idle,knobs.x,7,F,"it said: no, thanks"\n' in path.read_text()
    assert not made.complete()
    made.mark(X, "Y")
    made.mark(KNOBS, "Y")
    assert made.complete()
    assert "no, thanks" not in path.read_text()
    assert [one.name for one in path.parent.iterdir()] == ["design.csv"]


def test_its_mode_and_its_link_stay(path: Path) -> None:
    path.write_text(SHEET.text())
    path.chmod(0o640)
    link = path.with_name("link.csv")
    link.symlink_to(path)
    DesignFile(link, SHEET).mark(STOCK, "Y")
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert letters(path) == "YNN"


def test_a_run_as_root_leaves_it_its_owners(path: Path, made: DesignFile) -> None:
    try:
        os.chown(path, 12345, 12345)
    except PermissionError:
        pytest.skip("only root can give a file away")
    made.mark(STOCK, "Y")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)


def test_a_full_disk_loses_neither_the_file_nor_the_run(
    path: Path, made: DesignFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.mark(STOCK, "Y")
    before = path.read_text()

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert (
            made.mark(X, "Y")
            == f"{path} could not be updated: No space left on device. The run continues and tries "
            "again after the next cell."
        )
    assert path.read_text() == before
    assert [one.name for one in path.parent.iterdir()] == ["design.csv"]
    assert made.mark(KNOBS, "Y") is None
    assert letters(path) == "YYY"


def something_else(path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path if kind == "circle" else "/dev/zero")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("folder", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("device", "is not a regular file"),
        ("circle", "cannot be read (Too many levels of symbolic links)"),
    ],
)
def test_what_is_no_file_is_refused_and_never_waited_for(path: Path, kind: str, says: str) -> None:
    something_else(path, kind)
    for call in (design_file.read, design_file.is_there, lambda path: DesignFile(path, SHEET)):
        with pytest.raises(BadInput) as refused:
            call(path)
        assert str(refused.value) == f"--design-file={path}: {says}. Use another path."


def test_a_file_that_is_no_text_is_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="is not UTF-8"):
        design_file.read(path)
