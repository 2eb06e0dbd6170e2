"""What was read, from the kernel's own counters, on made and real trees."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from fixtures.studies.io import pagecache
from fixtures.studies.io.pagecache import BytesRead

if TYPE_CHECKING:
    from pathlib import Path

IO = "rchar: 3000\nwchar: 5\nsyscr: 7\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"


def test_a_process_has_what_its_file_says(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/io").write_text(IO)
    assert pagecache.by_process(tmp_path) == BytesRead(rchar=3000, read_bytes=4096)


def test_a_kernel_that_does_not_account_says_nothing(tmp_path: Path) -> None:
    """Missing, and the difference of it too: not zero."""
    nothing = pagecache.by_process(tmp_path)
    assert nothing == BytesRead(None, None)
    assert BytesRead(5, 5).since(nothing) == nothing.since(BytesRead(5, 5)) == nothing


def test_a_child_counts_when_it_has_been_waited_for(tmp_path: Path) -> None:
    """A million bytes read by another process are this one's afterwards: a rank's readers are counted that way."""
    file = tmp_path / "million"
    file.write_bytes(bytes(1_000_000))
    before = pagecache.by_process()
    if before.rchar is None:
        pytest.skip("this kernel does not account I/O by process")
    child = subprocess.Popen([sys.executable, "-S", "-c", f"open({str(file)!r}, 'rb', buffering=0).read(); input()"], stdin=subprocess.PIPE)
    own = pagecache.by_process().since(before).rchar
    assert own is not None
    assert own < 1_000_000
    child.communicate(b"\n")
    both = pagecache.by_process().since(before).rchar
    assert both is not None
    assert both >= 1_000_000


def made_device(sys_: Path, folder: Path, *, partition: bool) -> Path:
    """A disk as sysfs shows it, or one with a partition, that the folder's file system lies on. Returns: its own directory."""
    disk = sys_ / "devices/virtual/block/disk"
    (disk / "queue").mkdir(parents=True)
    (disk / "queue/read_ahead_kb").write_text("128\n")
    (disk / "queue/scheduler").write_text("none [mq-deadline] kyber\n")
    own = disk / "disk1" if partition else disk
    own.mkdir(exist_ok=True)
    if partition:
        (own / "partition").write_text("1\n")
    # Reads, merged, sectors read: the fields of Documentation/block/stat.rst.
    (own / "stat").write_text("     100        3     2000       40        0        0        0        0        0       40       40\n")
    number = folder.stat().st_dev
    link = sys_ / f"dev/block/{os.major(number)}:{os.minor(number)}"
    link.parent.mkdir(parents=True)
    link.symlink_to(own)
    return own


@pytest.mark.parametrize("partition", [False, True])
def test_a_device_counts_sectors_of_512_bytes(tmp_path: Path, partition: bool) -> None:  # noqa: FBT001 -- a parameter of the test
    """And a partition has its disk's queue."""
    made_device(tmp_path / "sys", tmp_path, partition=partition)
    assert pagecache.by_device(tmp_path, tmp_path / "sys") == 2000 * 512
    assert pagecache.device_of(tmp_path, tmp_path / "sys") == {
        "device": "disk1" if partition else "disk",
        "device_read_ahead_kb": "128",
        "device_scheduler": "none [mq-deadline] kyber",
    }


def test_what_lies_on_no_device_has_no_figure(tmp_path: Path) -> None:
    """A file system in memory, or one of a server."""
    assert pagecache.by_device(tmp_path, tmp_path / "sys") is None
    assert pagecache.device_of(tmp_path, tmp_path / "sys") == {}
