"""One contract for every format: samples come back as written, in no more room than stated."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.io import formats
from fixtures.studies.io.dataset import DataSpec, estimate_bytes
from fixtures.studies.io.formats import Samples
from fixtures.terms import Refused

EVERY = formats.names()
# Those of the workloads; the others come with the harness.
LIBRARIES = {"hdf5": "h5py", "tfrecord": "tfrecord"}
NEEDING = {
    name: pytest.param(name, marks=pytest.mark.needs(LIBRARIES[name]))
    if name in LIBRARIES
    else name
    for name in EVERY
}
EACH = list(NEEDING.values())
# Their samples lie one beside the other in each row of a pixel, as DLIO writes them: a sample is a
# slice across the file.
ACROSS = {"npz"}


def written(name: str, folder: Path, samples: Samples) -> Path:
    path = folder / "train" / f"img_0_of_1.{name}"
    path.parent.mkdir()
    formats.load(name).write(path, samples)
    return path


def read_back(name: str, path: Path, count: int, transfer_size: int = 4096) -> list[np.ndarray]:
    form = formats.load(name)
    handle = form.open_file(path, count)
    try:
        return [form.read(handle, index, transfer_size).ravel().copy() for index in range(count)]
    finally:
        form.close(handle)


def of(name: str, height: int = 30, width: int = 17, count: int = 5) -> Samples:
    return Samples(height, width, 1 if formats.load(name).one_image_a_file else count, (10, 3))


@pytest.mark.parametrize("name", EACH)
def test_every_sample_comes_back_as_it_was_drawn(name: str, tmp_path: Path) -> None:
    """From the file and its companions; a file system or device that compresses gains nothing."""
    samples = of(name, 300, 300)
    path = written(name, tmp_path, samples)
    there = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert there == {
        f"train/{path.name}",
        *(companion.format(name=path.name) for companion in formats.load(name).companions),
    }
    content = path.read_bytes()
    assert len(gzip.compress(content)) > 0.97 * len(content)
    found = read_back(name, path, samples.count)
    end_to_end = np.concatenate(list(samples.pieces()))
    each = (
        end_to_end.reshape(-1, samples.count).T
        if name in ACROSS
        else end_to_end.reshape(samples.count, -1)
    )
    if name in {"hdf5", "png", "tfrecord"}:
        each = np.stack(list(samples.one_by_one()))
    assert np.array_equal(found, each)
    formats.load(name).write(path, samples)
    assert np.array_equal(read_back(name, path, samples.count), found)


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("size", [(1, 1), (30, 5), (700, 1), (5, 300)])
def test_a_file_is_hardly_smaller_than_its_estimate(
    name: str, size: tuple[int, int], tmp_path: Path
) -> None:
    side, count = size
    samples = of(name, side, side, count)
    written(name, tmp_path, samples)
    taken = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    said = estimate_bytes([DataSpec(name, 1, samples.count, float(side**2))])
    assert samples.total_bytes <= taken <= said <= 1.02 * taken + 136 * samples.count + 8192


@pytest.mark.parametrize("name", [NEEDING[name] for name in ("raw", "indexed_binary", "tfrecord")])
def test_a_file_that_ends_too_early_is_named(name: str, tmp_path: Path) -> None:
    form = formats.load(name)
    path = written(name, tmp_path, of(name))
    handle = form.open_file(path, 5)
    with path.open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(Refused, match=rf"{path.name}: ends at byte 1000 instead of \d+ or later"):
        form.read(handle, 4, 4096)
    form.close(handle)


@pytest.mark.needs("tfrecord")
def test_the_tfrecord_package_reads_our_files(tmp_path: Path) -> None:
    from tfrecord import tfrecord_loader

    path = written("tfrecord", tmp_path, of("tfrecord"))
    records = list(tfrecord_loader(str(path), None, {"image": "byte", "size": "int"}))
    assert [record["image"] for record in records] == [
        sample.tobytes() for sample in of("tfrecord").one_by_one()
    ]
    assert [record["size"].tolist() for record in records] == [[510]] * 5


def test_npz_is_what_numpy_would_have_saved(tmp_path: Path) -> None:
    """Streamed, so that no file must fit into memory; only the archive's time stamp differs."""
    path = written("npz", tmp_path, of("npz"))
    with np.load(path) as archive:
        np.savez(tmp_path / "numpy.npz", x=archive["x"], y=archive["y"])
    assert (tmp_path / "numpy.npz").stat().st_size == path.stat().st_size


@pytest.mark.parametrize(
    "name", [one for name, one in NEEDING.items() if not formats.load(name).one_image_a_file]
)
@given(room=st.integers(1, 700), transfer_size=st.integers(1, 700))
def test_a_sample_is_read_into_the_room_there_is(
    name: str, room: int, transfer_size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    form = formats.load(name)
    path = written(name, tmp_path_factory.mktemp("into"), of(name))
    expected = read_back(name, path, 5)[3][:room]
    around = np.zeros(room + 1, dtype=np.uint8)
    handle = form.open_file(path, 5)
    assert form.read_into(handle, 3, transfer_size, around[:room]) == min(room, 510)
    form.close(handle)
    assert around.tolist() == [*expected.tolist(), *[0] * (room + 1 - len(expected))]


@pytest.mark.needs("tfrecord")
def test_a_tfrecord_that_was_changed_does_not_match_its_checksum(tmp_path: Path) -> None:
    path = written("tfrecord", tmp_path, of("tfrecord"))
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(Refused, match="record 0 does not match its checksum"):
        read_back("tfrecord", path, 5)
