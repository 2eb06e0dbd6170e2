"""A checkpoint is whole, on the disk, and gone at the end."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from fixtures.studies.io.torch_engine import Checkpoint
from fixtures.terms import Refused


@pytest.mark.parametrize("size", [1, 1_000_000, (16 << 20) + 1])
def test_a_checkpoint_takes_the_place_of_the_last(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of exactly so many bytes, larger than its block too; file and folder are fsynced, in that order."""
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    checkpoint = Checkpoint(tmp_path, size, seed=1)
    for epoch in (1, 2):
        told = checkpoint.save(epoch, 7)
        (file,) = tmp_path.iterdir()
        assert (told["epoch"], told["step"], told["bytes"], file.stat().st_size) == (epoch, 7, size, size)
    assert synced == [str(file.with_suffix(".unfinished")), str(tmp_path)] * 2
    checkpoint.remove()
    assert list(tmp_path.iterdir()) == []


def test_too_small_a_disk_is_told_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one stays until the next is whole: there must be room for two."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_999_999))
    with pytest.raises(Refused, match=r"two checkpoints take 0.002 GB, and in .* 0.002 GB are free"):
        Checkpoint(tmp_path, 1_000_000, seed=1)
    assert list(tmp_path.iterdir()) == []
