"""The page cache, by mincore on a real disk: contents, state proven around an epoch, bytes read."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.studies.io import pagecache
from fixtures.terms import Refused

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


def test_what_is_held_stays_whoever_wants_it_dropped(disk: Path) -> None:
    paths = [file_of(disk / "a", 300), file_of(disk / "b", 20, and_bytes=7)]
    pagecache.evict(paths)
    with pagecache.pinned(paths) as locked:
        pagecache.evict(paths)
        assert locked
        assert pagecache.resident(paths) == 1.0
    pagecache.evict(paths)
    assert pagecache.resident(paths) <= 0.01


def test_a_file_longer_than_one_window_is_seen_whole(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With windows of 16 pages, 40 pages and a byte are three: 16, 16 and 9 pages."""
    monkeypatch.setattr(pagecache, "_WINDOW_BYTES", 16 * PAGE)
    path = file_of(disk / "a", 40, and_bytes=1)
    pagecache.warm([path])
    assert pagecache.resident([path]) >= 0.95
    pagecache.evict([path])
    assert pagecache.resident([path]) <= 0.03


@pytest.mark.needs("root")
def test_who_would_be_told_nothing_is_told_so() -> None:
    """Since 5.2, mincore reports all pages to non-owners without write access: cold seems warm."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = file_of(Path(folder) / "a", 8)
        os.seteuid(65534)
        try:
            with pytest.raises(
                Refused, match=r"reports cached pages only to the owner.*run as uid 0"
            ):
                pagecache.resident([path])
        finally:
            os.seteuid(0)


# A state, brought about and proven.


@pytest.fixture
def files(disk: Path) -> list[Path]:
    """Two of a megabyte."""
    return [file_of(disk / name, 256) for name in "ab"]


def test_files_are_made_cold_and_warm_and_left_alone(files: list[Path]) -> None:
    """As mincore sees them, though just written and dirty."""
    cold = pagecache.ensure_state("cold", files)
    assert cold <= 0.01
    assert pagecache.ensure_state("as_found", files) == pytest.approx(cold, abs=0.01)
    assert pagecache.ensure_state("warm", files) == 1.0
    assert pagecache.ensure_state("as_found", files) == 1.0


@pytest.mark.parametrize(("state", "fraction"), [("cold", 0.011), ("warm", 0.989)])
def test_a_cache_state_that_is_not_reached_is_refused(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, state: str, fraction: float
) -> None:
    tried: list[str] = []
    monkeypatch.setattr(pagecache, "resident", lambda _: fraction)
    monkeypatch.setattr(pagecache, "evict", lambda _: tried.append("cold"))
    monkeypatch.setattr(pagecache, "warm", lambda _: tried.append("warm"))
    with pytest.raises(Refused, match=rf"cache={state}: {fraction:.1%} of the data set is "):
        pagecache.ensure_state(state, files)
    assert tried == [state] * 3


GB, MB = 10**9, 10**6


@pytest.mark.parametrize(
    ("state", "read", "fetched", "kernel", "says"),
    [
        ("warm", GB, 10 * MB, {"counted": True}, ""),
        (
            "warm",
            GB,
            10 * MB + 1,
            {"counted": True},
            (
                r"warm: epoch 2 read 1000\.0 MB of the data set, and 10\.0 MB .*; the limit is "
                r"1%\. .*DAMON"
            ),
        ),
        # More than a hundredth of a small data set: libraries whose pages were dropped, each with
        # what is read ahead of it.
        ("warm", 10 * MB, MB, {"counted": True}, ""),
        (
            "warm",
            10 * MB,
            MB + 1,
            {"counted": True},
            r"10\.0 MB of the data set, and 1\.0 MB came from storage",
        ),
        ("warm", 10 * MB, 64 * MB, {"counted": True, "locked": True}, ""),
        (
            "warm",
            10 * MB,
            64 * MB + 1,
            {"counted": True, "locked": True},
            r"10\.0 MB of the data set, and 64\.0 MB came from storage",
        ),
        ("cold", GB, 950 * MB, {"counted": True}, ""),
        (
            "cold",
            GB,
            950 * MB - 1,
            {"counted": True},
            (
                r"cold: epoch 2 read 1000\.0 MB of .*, and 950\.0 MB came from storage; the "
                r"minimum is 95%"
            ),
        ),
        ("cold", GB, 0, {"counted": True}, "and 0.0 MB came from storage"),
        # Where the file system's reads are not counted, nothing fetched is nothing known.
        ("cold", GB, 0, {"counted": False}, ""),
        ("cold", GB, 1, {"counted": False}, "and 0.0 MB came from storage"),
        ("as_found", GB, 0, {"counted": True}, ""),
        ("as_found", GB, GB, {"counted": True}, ""),
    ],
)
def test_an_epoch_that_contradicts_its_cache_state_is_refused(
    state: str, read: int, fetched: int, kernel: dict[str, bool], says: str
) -> None:
    refusal = ""
    try:
        pagecache.must_have_lasted(state, 2, read, fetched, **kernel)
    except Refused as error:
        refusal = str(error)
    assert re.search(says, refusal) if says else not refusal


# Bytes read, by the kernel's own counters.

IO = (
    "rchar: 3000\nwchar: 5\nsyscr: 7\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 0\n"
    "cancelled_write_bytes: 0\n"
)


def test_a_process_has_what_its_file_says(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/io").write_text(IO)
    counts = pagecache.by_process(tmp_path)
    assert counts == {"rchar_bytes": 3000, "read_bytes": 4096}
    assert pagecache.since({"rchar_bytes": 1000, "read_bytes": 0}, counts)["rchar_bytes"] == 2000
    assert set(pagecache.since({}, counts).values()) == {None}


def made_device(sys_: Path, folder: Path, *, partition: bool) -> Path:
    """A disk as sysfs shows it, or one with a partition, that the folder's file system lies on.

    Returns: its own directory.
    """
    disk = sys_ / "devices/virtual/block/disk"
    (disk / "queue").mkdir(parents=True)
    (disk / "queue/read_ahead_kb").write_text("128\n")
    (disk / "queue/scheduler").write_text("none [mq-deadline] kyber\n")
    own = disk / "disk1" if partition else disk
    own.mkdir(exist_ok=True)
    if partition:
        (own / "partition").write_text("1\n")
    # Reads, merged, sectors read: the fields of Documentation/block/stat.rst.
    (own / "stat").write_text(
        "     100        3     2000       40        0        0        0        0        0       "
        "40       40\n"
    )
    number = folder.stat().st_dev
    link = sys_ / f"dev/block/{os.major(number)}:{os.minor(number)}"
    link.parent.mkdir(parents=True)
    link.symlink_to(own)
    return own


@pytest.mark.parametrize("partition", [False, True])
def test_a_device_counts_sectors_of_512_bytes(
    tmp_path: Path,
    partition: bool,  # noqa: FBT001 -- a parameter of the test
) -> None:
    made_device(tmp_path / "sys", tmp_path, partition=partition)
    assert pagecache.by_device(tmp_path, tmp_path / "sys") == 2000 * 512
    assert pagecache.device_of(tmp_path, tmp_path / "sys") == {
        "device": "disk1" if partition else "disk",
        "device_read_ahead_kb": "128",
        "device_scheduler": "none [mq-deadline] kyber",
    }


def test_partial_residency_is_counted_in_pages_not_in_files(disk: Path) -> None:
    """30 of 30 + 270 pages: a tenth."""
    small, large = file_of(disk / "small", 30), file_of(disk / "large", 270)
    pagecache.evict([small, large])
    pagecache.warm([small])
    assert pagecache.resident([small, large]) == pytest.approx(0.1, abs=0.02)
