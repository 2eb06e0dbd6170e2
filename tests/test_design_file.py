"""The design file while a run goes on: marks come in whatever happens to it, and nothing that somebody wrote into it is lost."""

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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "design.csv"


@pytest.fixture
def made(path: Path) -> DesignFile:
    made = DesignFile(path)
    made.begin(Sheet.made(ROWS, ["vm.swappiness"], ["a comment"]))
    return made


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


def test_a_file_that_is_there_is_not_written_anew(path: Path) -> None:
    path.write_text("mine")
    DesignFile(path).begin(Sheet.made(ROWS, []))
    assert path.read_text() == "mine"


def test_its_mode_and_its_link_stay(path: Path, made: DesignFile) -> None:
    path.chmod(0o640)
    link = path.with_name("link.csv")
    link.symlink_to(path)
    DesignFile(link).mark(STOCK, "Y")
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert letters(path) == "YNN"
    assert made.mark(X, "Y") is not None  # for it, somebody else has written there


def test_a_run_as_root_leaves_it_its_owners(path: Path, made: DesignFile) -> None:
    try:
        os.chown(path, 12345, 12345)
    except PermissionError:
        pytest.skip("only root can give a file away")
    made.mark(STOCK, "Y")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)


def test_what_somebody_edits_meanwhile_stays_and_is_told_once(path: Path, made: DesignFile) -> None:
    made.mark(STOCK, "Y")
    edited = path.read_text().replace("# a comment", "# mine\n\n# too").replace("3,1,idle,knobs,+,N,\n", "")
    path.write_text(edited)
    assert "was edited while the run goes on: the edits stay" in str(made.mark(X, "Y"))
    assert path.read_text() == edited.replace("knobs.x,7,N", "knobs.x,7,Y")
    assert made.mark(KNOBS, "Y") is None  # its row is gone, and nothing brings it back
    assert letters(path) == "YY"


def test_an_editor_that_saves_an_older_text_loses_no_mark(path: Path, made: DesignFile) -> None:
    old = path.read_text()
    made.mark(STOCK, "Y")
    path.write_text(old + "# saved late\n")
    made.mark(X, "Y")
    assert letters(path) == "YYN"
    assert path.read_text().endswith("# saved late\n")


@pytest.mark.parametrize("content", ["order,nothing\n", "\x00", None])
def test_a_file_that_cannot_be_read_any_more_is_left_alone(path: Path, made: DesignFile, content: str | None) -> None:
    """That is told once; the marks come in when it can be read again."""
    whole = path.read_text()
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    assert str(made.mark(STOCK, "Y")).startswith(f"Not marked: {path}")
    assert made.mark(X, "F", "why") is None
    assert (path.read_text() if content is not None else path.exists()) == (content or False)
    assert not made.complete()
    path.write_text(whole)
    assert made.mark(KNOBS, "Y") is None  # it is again what was last written
    assert letters(path) == "YFY"


def test_a_full_disk_loses_neither_the_file_nor_the_run(path: Path, made: DesignFile, monkeypatch: pytest.MonkeyPatch) -> None:
    made.mark(STOCK, "Y")
    before = path.read_text()

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert made.mark(X, "Y") == f"Not marked: {path}: No space left on device. The run goes on; the next cell tries again."
        assert made.mark(KNOBS, "Y") is None
        assert made.left() == ([X, KNOBS], f"{path}: No space left on device")
    assert path.read_text() == before
    assert [one.name for one in path.parent.iterdir()] == ["design.csv"]
    assert made.left() == ([], "")  # tried once more, with no cell to wait for
    assert letters(path) == "YYY"


def test_a_file_that_cannot_be_begun_ends_before_the_first_cell(tmp_path: Path) -> None:
    path = tmp_path / "no such folder" / "design.csv"
    with pytest.raises(BadInput, match=r"cannot be written.*Give another path"):
        DesignFile(path).begin(Sheet.made(ROWS, []))


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
        ("folder", "cannot be read or written as a file: it is a folder"),
        ("pipe", "cannot be read or written as a file: it is a pipe"),
        ("device", "cannot be read or written as a file: it is a device or a socket"),
        ("circle", "cannot be read (Too many levels of symbolic links)"),
    ],
)
def test_what_is_no_file_is_refused_and_never_waited_for(path: Path, kind: str, says: str) -> None:
    """A pipe that nobody writes into would be waited for, a device never ends."""
    something_else(path, kind)
    for call in (design_file.read, design_file.is_there, DesignFile):
        with pytest.raises(BadInput) as refused:
            call(path)
        assert str(refused.value) == f"--design-file={path}: {says}. Give another path."


@pytest.mark.parametrize("kind", ["folder", "circle"])
def test_a_file_that_becomes_something_else_during_the_run_is_told_of(path: Path, made: DesignFile, kind: str) -> None:
    path.unlink()
    something_else(path, kind)
    assert str(made.mark(STOCK, "Y")).startswith(f"Not marked: --design-file={path}: ")
    assert made.left()[0] == [STOCK]


def test_a_link_to_a_file_that_is_not_there_yet_is_written_through(tmp_path: Path, path: Path) -> None:
    path.symlink_to(tmp_path / "real.csv")
    assert not design_file.is_there(path)
    DesignFile(path).begin(Sheet.made(ROWS, ["vm.swappiness"]))
    assert path.is_symlink()
    assert letters(path) == "NNN"


def test_a_file_that_is_no_text_is_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="not in UTF-8"):
        design_file.read(path)
