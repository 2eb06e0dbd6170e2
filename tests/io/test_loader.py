"""A batch has its samples' bytes in the order asked for, cut or repeated to the model's length."""

from __future__ import annotations

import time
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.studies.io import formats, loader
from fixtures.studies.io.formats import Samples as Content
from fixtures.terms import Refused

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.needs("torch")

SIDE, FILES, EACH = 30, 6, 2


def reading(
    folder: Path, name: str, *, sample_bytes: int, threads: int, batch: int = 3
) -> tuple[loader.ReadConfig, NDArray[np.uint8]]:
    """Six files of two samples of 900 bytes.

    Returns: how they are read, and what is in them, shape (12, 900).
    """
    there = formats.load(name)
    if reason := there.unavailable_reason():
        pytest.skip(reason)
    each = 1 if there.one_image_a_file else EACH
    files = []
    for number in range(FILES):
        files.append(folder / "train" / f"{number}.{name}")
        files[-1].parent.mkdir(exist_ok=True)
        there.write(files[-1], Content(SIDE, SIDE, each, (number,)))
    held = []
    for file in files:
        handle = there.open_file(file, each)
        held += [np.array(there.read(handle, index, 100)).reshape(-1) for index in range(each)]
        there.close(handle)
    return loader.ReadConfig(
        there, files, each, batch, sample_bytes, 100, threads, 2 if threads else 0
    ), np.stack(held)


@pytest.mark.parametrize("name", ["raw", "npz"])
@pytest.mark.parametrize("sample_bytes", [1, 64, 150, 899, 901, 5000])
def test_a_sample_is_cut_or_repeated_to_the_models_length(
    name: str, sample_bytes: int, tmp_path: Path
) -> None:
    """Read into place or copied there; reads of 100 bytes are no boundary."""
    how, held = reading(tmp_path, name, sample_bytes=sample_bytes, threads=0)
    (batch,) = loader.batches(loader.SharedBatches(how), how, array("q", [4, 9, 0]))
    assert np.array_equal(
        batch.numpy(), np.stack([np.resize(held[sample], sample_bytes) for sample in (4, 9, 0)])
    )


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_readers_deliver_each_batch_before_its_place_is_reused(
    threads: int, tmp_path: Path
) -> None:
    """In order, epoch after epoch, in the same memory; readers never touch a batch in use."""
    how, held = reading(tmp_path, "raw", sample_bytes=SIDE * SIDE, threads=threads, batch=1)
    samples = loader.SharedBatches(how)
    for epoch in range(2):
        order = [(7 * n + epoch) % len(held) for n in range(20)]
        for sample, batch in zip(
            order, loader.batches(samples, how, array("q", order)), strict=True
        ):
            assert np.array_equal(batch[0].numpy(), held[sample])
            time.sleep(0.005)  # readers are as far ahead then as they may be
            assert np.array_equal(batch[0].numpy(), held[sample])


def test_what_a_reader_cannot_read_is_told_in_a_line(tmp_path: Path) -> None:
    how, _ = reading(tmp_path, "raw", sample_bytes=900, threads=1)
    samples = loader.SharedBatches(how)
    how.files[1].unlink()
    with (
        pytest.raises(
            Refused, match=rf"Rank 0: reader 0: FileNotFoundError: .*'{how.files[1]}'\.$"
        ) as died,
        loader.reader_failures(lambda: "Rank 0"),
    ):
        list(loader.batches(samples, how, array("q", range(6))))
    assert "\n" not in str(died.value)
