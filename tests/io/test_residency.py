"""What is in the page cache, on a real disk, by the real mincore."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.studies.io import pagecache
from fixtures.terms import Refused
from tests.unlocked import without_locked_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUSE = Path(__file__).parents[2]
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder beside this file: /tmp may lie in memory."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".residency-") as folder:
        yield Path(folder)


def file_of(path: Path, pages: int, and_bytes: int = 0) -> Path:
    path.write_bytes(os.urandom(pages * PAGE + and_bytes))
    return path


def test_what_was_evicted_is_not_resident_and_what_was_read_is(disk: Path) -> None:
    """A file that has just been written is dirty: it is synced first, or nothing of it could be dropped."""
    paths = [file_of(disk / "a", 300), file_of(disk / "b", 20, and_bytes=7)]
    pagecache.evict(paths)
    assert pagecache.resident(paths) <= 0.01
    pagecache.warm(paths)
    assert pagecache.resident(paths) >= 0.99


def test_what_is_held_stays_whoever_wants_it_dropped(disk: Path) -> None:
    """And what was missing of it is brought in; afterwards it can be dropped again."""
    paths = [file_of(disk / "a", 300), file_of(disk / "b", 20, and_bytes=7)]
    pagecache.evict(paths)
    with pagecache.held(paths) as locked:
        pagecache.evict(paths)
        assert locked
        assert pagecache.resident(paths) == 1.0
    pagecache.evict(paths)
    assert pagecache.resident(paths) <= 0.01


def test_what_cannot_be_held_is_no_error(disk: Path) -> None:
    """An empty file has no page to map, so that all of it is held; who may lock no memory is told that nothing is locked."""
    with pagecache.held([file_of(disk / "empty", 0), file_of(disk / "a", 3)]) as locked:
        assert locked
    program = (
        "import sys; from pathlib import Path; from fixtures.studies.io import pagecache;"
        "exec('with pagecache.held([Path(sys.argv[1])]) as locked: print(locked)')"
    )
    command = [sys.executable, "-c", program, str(disk / "a")]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HOUSE, preexec_fn=without_locked_memory)
    assert said.stdout == "False\n"


def test_a_part_that_is_resident_is_counted_in_pages_not_in_files(disk: Path) -> None:
    """30 of 30 + 270 pages: a tenth."""
    small, large = file_of(disk / "small", 30), file_of(disk / "large", 270)
    pagecache.evict([small, large])
    pagecache.warm([small])
    assert pagecache.resident([small, large]) == pytest.approx(0.1, abs=0.02)


def test_looking_brings_nothing_in(disk: Path) -> None:
    path = file_of(disk / "a", 64)
    pagecache.evict([path])
    assert [pagecache.resident([path]) for _ in range(5)] == [0.0] * 5


def test_a_file_longer_than_one_window_is_seen_whole(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With windows of 16 pages, 40 pages and a byte are three: 16, 16 and 9 pages."""
    monkeypatch.setattr(pagecache, "_WINDOW_BYTES", 16 * PAGE)
    path = file_of(disk / "a", 40, and_bytes=1)
    pagecache.warm([path])
    assert pagecache.resident([path]) >= 0.95
    pagecache.evict([path])
    assert pagecache.resident([path]) <= 0.03


def test_eviction_leaves_other_files_alone(disk: Path) -> None:
    mine, other = file_of(disk / "mine", 50), file_of(disk / "other", 50)
    pagecache.warm([other])
    pagecache.evict([mine])
    assert pagecache.resident([other]) >= 0.9


@pytest.mark.parametrize("paths", [0, 1])
def test_nothing_is_neither_resident_nor_missing(disk: Path, paths: int) -> None:
    (disk / "empty").touch()
    with pytest.raises(Refused, match="no file that holds a byte"):
        pagecache.resident([disk / "empty"] * paths)


@pytest.mark.needs("root")
def test_who_would_be_told_nothing_is_told_so() -> None:
    """Since 5.2 the kernel answers "all of it" to whoever neither owns a file nor may write it: a cold file would look warm."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = file_of(Path(folder) / "a", 8)
        os.seteuid(65534)
        try:
            with pytest.raises(Refused, match=r"only its owner, or who may write it, is told.*run as uid 0"):
                pagecache.resident([path])
        finally:
            os.seteuid(0)
