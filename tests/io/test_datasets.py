"""Data sets: as large as DLIO's, made completely or not at all, within free space, faults named."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.io import dataset, formats
from fixtures.studies.io.dataset import (
    MANIFEST,
    DataManifest,
    DataSpec,
    check,
    contents,
    ensure,
    read_manifest,
)
from fixtures.terms import Refused
from tests.waiting import until

SPECS = st.builds(
    DataSpec,
    st.sampled_from(formats.names()),
    st.integers(1, 12),
    st.integers(1, 2000),
    st.floats(1, 1e12).map(lambda value: round(value, 3)),
    st.just(0.0) | st.floats(0.001, 1e12),
)
SMALL = DataSpec("indexed_binary", 3, 4, 900.0, 200.0)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A data set of three files with six index files."""
    return ensure([SMALL], tmp_path, lambda _: None)[SMALL].folder


@given(SPECS, SPECS)
def test_a_folder_name_is_readable_and_unique_to_its_data_set(
    spec: DataSpec, other: DataSpec
) -> None:
    assert (spec.folder_name == other.folder_name) == (spec == other)
    assert re.fullmatch(
        rf"{spec.format}-{spec.files}x{spec.samples_per_file}-\d+(-\d+)?-[0-9a-f]{{8}}",
        spec.folder_name,
    )


@given(SPECS, st.data())
def test_a_manifest_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, spec: DataSpec, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("set")
    manifest = DataManifest(
        folder, spec, {name: data.draw(st.integers(0, 2**50)) for name in spec.all_names()}
    )
    (folder / MANIFEST).write_text(manifest.dump(), encoding="utf-8")
    assert read_manifest(folder) == manifest


def test_what_a_saved_run_says_of_a_data_set(made: Path) -> None:
    manifest = check(made, SMALL)
    assert [path.relative_to(made) for path in manifest.files] == [
        Path(f"train/img_{n}_of_3.indexed_binary") for n in range(3)
    ]
    assert DataSpec("npz", 168, 1, 1.0).names()[7] == "train/img_007_of_168.npz"
    assert manifest.facts == {
        "folder": made.name,
        "format": "indexed_binary",
        "files": 3,
        "samples_per_file": 4,
        "bytes": sum(path.stat().st_size for path in manifest.paths),
    }


def manifest_with(pattern: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / MANIFEST).write_text(
        re.sub(pattern, text, (folder / MANIFEST).read_text())
    )


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (
        lambda folder: (folder / "train/img_1_of_3.indexed_binary.sz.idx").unlink(),
        (
            r"img_1_of_3\.indexed_binary\.sz\.idx: file missing; delete .*; the next run "
            r"generates the data set again"
        ),
    ),
    "truncated": (
        lambda folder: os.truncate(folder / "train/img_2_of_3.indexed_binary", 100),
        r"img_2_of_3\.indexed_binary: 100 bytes instead of the \d+ that were written; delete",
    ),
    "grown": (
        lambda folder: os.truncate(folder / "train/img_0_of_3.indexed_binary", 99999),
        r"img_0_of_3\.indexed_binary: 99999 bytes instead of the \d+ that were written; delete",
    ),
    "not listed": (
        manifest_with("img_1_of_3.indexed_binary.off", "img_7_of_3.indexed_binary.off"),
        r"holds a data set other than indexed_binary-3x4",
    ),
    "of the future": (
        manifest_with('"schema": 1', '"schema": 9'),
        r"made by 'deeptweak fixtures\.io', schema 9",
    ),
    "no manifest": (
        lambda folder: (folder / MANIFEST).unlink(),
        r"manifest\.json: missing, so .* was not made by DeepTweak",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_wrong_with_a_data_set_is_named(damage: str, made: Path) -> None:
    assert check(made, SMALL).folder == made
    spoil, says = DAMAGE[damage]
    spoil(made)
    with pytest.raises(Refused, match=says) as refused:
        check(made, SMALL)
    assert "\n" not in str(refused.value)
    assert str(made) in str(refused.value)


# Output of dlio-benchmark 2.0.0 for record_length=1000000, record_length_stdev=300000,
# num_files_train=5, format=npz: shape of `x`, and size of the file.
BY_DLIO = [
    ((1199, 1107, 1), 1327791),
    ((768, 998, 1), 766962),
    ((1093, 891, 1), 974361),
    ((1039, 1016, 1), 1056122),
    ((1000, 973, 1), 973498),
]


@pytest.mark.parametrize(("number", "expected"), list(enumerate(BY_DLIO)))
def test_dimensions_and_file_sizes_equal_those_of_dlio(
    number: int, expected: tuple[tuple[int, ...], int], tmp_path: Path
) -> None:
    shape, size = expected
    path = tmp_path / "one.npz"
    formats.load("npz").write(
        path, list(contents(DataSpec("npz", 5, 1, 1_000_000, 300_000)))[number]
    )
    assert np.load(path)["x"].shape == shape
    assert path.stat().st_size == size


HOUSE = Path(__file__).parents[2]
SETS = [
    DataSpec(name, 4, 1, 5000.0, 900.0)
    for name in formats.names()
    if not formats.load(name).unavailable_reason()
]


def silent(_line: str) -> None:
    pass


def sets_in(root: Path) -> list[str]:
    return sorted(entry.name for entry in root.iterdir() if entry.is_dir())


def test_each_data_set_is_whole_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    made = ensure(SETS, tmp_path, said.append)
    assert sets_in(tmp_path) == sorted(spec.folder_name for spec in SETS)
    assert [check(tmp_path / spec.folder_name, spec) for spec in SETS] == list(made.values())
    # A slow machine is told of parts in between.
    assert sum("is ready" in line for line in said) == len(SETS)


def test_a_data_set_that_is_there_is_verified_and_left_alone(tmp_path: Path) -> None:
    first = ensure(SETS[:2], tmp_path, silent)
    stamps = {
        path: path.stat().st_mtime_ns for manifest in first.values() for path in manifest.paths
    }
    assert ensure([*SETS[:2], SETS[0]], tmp_path, silent) == first
    assert stamps == {path: path.stat().st_mtime_ns for path in stamps}
    next(iter(first.values())).files[0].unlink()
    with pytest.raises(Refused, match="missing"):
        ensure(SETS[:2], tmp_path, silent)


def test_room_is_checked_for_all_data_sets_before_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files in blocks of 4096: 2 x (1000 x 1000 + 4096) = 2 008 192 bytes. One would fit."""
    monkeypatch.setattr(
        os, "statvfs", lambda _: os.statvfs_result((4096, 4096, 9999, 490, 490, 100, 3, 3, 0, 255))
    )
    two = [DataSpec("raw", 1, 1, 1e6), DataSpec("indexed_binary", 1, 1, 1e6)]
    with pytest.raises(
        Refused,
        match=r"2 data sets need 2\.02 MB, but only 2\.01 MB are free; nothing was written\. Free "
        r".*--io-data=DIR",
    ):
        ensure(two, tmp_path, silent)
    assert sets_in(tmp_path) == []
    assert sets_in(ensure(two[:1], tmp_path, silent)[two[0]].folder.parent) == [two[0].folder_name]


def test_missing_data_sets_are_listed_with_size_and_free_space(tmp_path: Path) -> None:
    """2 x 100 x 100 bytes; a folder that is not there yet is on the file system of its parent."""
    root, (one, two) = (
        tmp_path / "not" / "yet",
        (DataSpec("raw", 2, 1, 1e4), DataSpec("raw", 3, 1, 1e4)),
    )
    lines = list(dataset.outlook([one, two, one], root))
    assert lines[:2] == [
        f"Data set {one.folder_name}: 0.02 MB, not generated yet",
        f"Data set {two.folder_name}: 0.03 MB, not generated yet",
    ]
    assert re.fullmatch(
        rf"0\.05 MB to generate in {root} before the first cell, \d+\.\d\d GB free", lines[2]
    )
    assert not root.exists()
    ensure([one], root, silent)
    assert (
        next(line.split(":")[0] for line in dataset.outlook([one, two], root))
        == f"Data set {two.folder_name}"
    )
    assert list(dataset.outlook([one], root)) == []


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], check=True
        )
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


@pytest.mark.needs("root")
@pytest.mark.parametrize("name", formats.names())
def test_a_disk_that_fills_up_in_the_middle_is_left_as_it_was(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "require_room", lambda _specs, _root: 0)
    with small_disk(2) as root:
        with pytest.raises(
            Refused,
            match=r"img_\d_of_9.*: No space left on device; the partial data set was removed",
        ) as refused:
            ensure([DataSpec(name, 9, 1, 500_000.0)], root, silent)
        assert "\n" not in str(refused.value)
        assert sets_in(root) == []


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        Refused, match=r"file/sets: cannot store data sets there \(Not a directory\)"
    ):
        ensure(SETS[:1], tmp_path / "file" / "sets", silent)


def generating(root: Path) -> subprocess.Popen[str]:
    """A process that makes more files than it can write in a minute, caught when it has begun."""
    ensuring = (
        "from pathlib import Path; from fixtures.studies.io.dataset import DataSpec, ensure; "
    )
    ensuring += f"ensure([DataSpec('raw', 20000, 1, 100.0)], Path({str(root)!r}), print)"
    process = subprocess.Popen(
        [sys.executable, "-c", ensuring], cwd=HOUSE, text=True, stdout=-1, stderr=-1
    )
    until(lambda: process.poll() is not None or any(root.glob("*.part-*/train/*.raw")))
    assert process.poll() is None
    return process


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    with generating(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == -signal.SIGINT
    assert sets_in(tmp_path) == []
