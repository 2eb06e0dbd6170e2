"""A data set is as large as DLIO's, says what it is, and whatever is wrong with it is named."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.io import formats, parameters
from fixtures.studies.io.dataset import (
    MANIFEST,
    UNFINISHED,
    Manifest,
    Spec,
    check,
    contents,
    dimensions,
    ensure,
    read_manifest,
    sizes_sha256,
)
from fixtures.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

SPECS = st.builds(
    Spec,
    st.sampled_from(formats.names()),
    st.integers(1, 12),
    st.integers(1, 2000),
    st.floats(1, 1e12).map(lambda value: round(value, 3)),
    st.just(0.0) | st.floats(0.001, 1e12),
)
SMALL = Spec("indexed_binary", 3, 4, 900.0, 200.0)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A data set of three files with six index files."""
    return ensure([SMALL], tmp_path, lambda _: None)[SMALL].folder


@given(SPECS, SPECS)
def test_a_folder_name_is_readable_its_own_and_known_as_unfinished_while_it_is(spec: Spec, other: Spec) -> None:
    assert (spec.folder_name == other.folder_name) == (spec == other)
    assert re.fullmatch(rf"{spec.format}-{spec.files}x{spec.samples_per_file}-\d+(-\d+)?-[0-9a-f]{{8}}", spec.folder_name)
    assert UNFINISHED.fullmatch(f"{spec.folder_name}.part-{4711}")
    assert not UNFINISHED.fullmatch(spec.folder_name)


@given(SPECS, st.data())
def test_a_manifest_comes_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, spec: Spec, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("set")
    manifest = Manifest(folder, spec, {name: data.draw(st.integers(0, 2**50)) for name in spec.all_names()})
    (folder / MANIFEST).write_text(manifest.dump(), encoding="utf-8")
    assert read_manifest(folder) == manifest


def test_what_a_saved_run_says_of_a_data_set(made: Path) -> None:
    """`sizes_sha256` is that of a line `name size` for each file, in order, named as DLIO names them."""
    manifest = check(made, SMALL)
    assert [path.relative_to(made) for path in manifest.files] == [Path(f"train/img_{n}_of_3.indexed_binary") for n in range(3)]
    assert Spec("npz", 168, 1, 1.0).names()[7] == "train/img_007_of_168.npz"
    lines = "".join(f"{path.relative_to(made)} {path.stat().st_size}\n" for path in manifest.paths)
    assert manifest.facts == {
        "folder": made.name,
        "format": "indexed_binary",
        "files": 3,
        "samples_per_file": 4,
        "bytes": sum(path.stat().st_size for path in manifest.paths),
        "sizes_sha256": sizes_sha256(manifest.sizes),
    }
    assert lines == "".join(f"{name} {size}\n" for name, size in manifest.sizes.items())


def linked(folder: Path) -> None:
    path = folder / "train/img_0_of_3.indexed_binary"
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


def manifest_with(pattern: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / MANIFEST).write_text(re.sub(pattern, text, (folder / MANIFEST).read_text()))


SUMS = "its sizes do not add up to its sizes_sha256"
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (
        lambda folder: (folder / "train/img_1_of_3.indexed_binary.sz.idx").unlink(),
        r"img_1_of_3\.indexed_binary\.sz\.idx: missing \(8 of 9 files are there\); remove the data set.*fixtures\.studies\.io remove",
    ),
    "truncated": (
        lambda folder: os.truncate(folder / "train/img_2_of_3.indexed_binary", 100),
        r"img_2_of_3\.indexed_binary: truncated, 100 bytes instead of \d+; remove",
    ),
    "grown": (
        lambda folder: os.truncate(folder / "train/img_0_of_3.indexed_binary", 99999),
        r"img_0_of_3\.indexed_binary: longer than written, \d+ bytes instead of \d+; remove",
    ),
    "foreign": (
        lambda folder: (folder / "train/notes.txt").write_text("mine"),
        r"train/notes\.txt: no file of this data set \(1 such\); move it away",
    ),
    "linked": (linked, r"img_0_of_3\.indexed_binary: a link, where a file of \d+ bytes was written; remove"),
    "not listed": (
        manifest_with("img_1_of_3.indexed_binary.off", "img_7_of_3.indexed_binary.off"),
        SUMS,
    ),
    "edited": (manifest_with(r'("train/img_1_of_3.indexed_binary": )\d+', r"\g<1>5"), SUMS),
    "of the future": (
        manifest_with('"schema": 1', '"schema": 9'),
        r"made by 'deeptweak fixtures\.io', schema 9; this version reads .*, schema 1; delete .* and generate it anew",
    ),
    "no manifest": (lambda folder: (folder / MANIFEST).unlink(), r"no manifest\.json in it, so it is no data set of this harness"),
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


def test_a_data_set_of_another_name_or_another_in_its_place_is_told_so(made: Path) -> None:
    with pytest.raises(Refused, match=r"another data set than asked for \(record_length_bytes 900\.0, asked for 901\.0\)"):
        check(made, Spec("indexed_binary", 3, 4, 901.0, 200.0))
    other = made.rename(made.with_name("unet3d"))
    with pytest.raises(Refused, match=rf"unet3d: holds the data set {SMALL.folder_name}, by which name it is looked for; rename it back"):
        check(other, SMALL)


@pytest.mark.parametrize("spec", [SMALL, Spec("png", 2, 1, 900.5)])
def test_one_that_is_not_there_is_said_to_be_missing_with_the_command_that_makes_it(spec: Spec, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"missing, there is no such data set; python -m fixtures\.studies\.io generate format=") as refused:
        check(tmp_path / spec.folder_name, spec)
    *_, given_, option, where = str(refused.value).split()
    assert Spec.of(parameters.complete(dict(one.split("=") for one in given_.split(":")))) == spec
    assert (option, where) == ("--data", f"{tmp_path}")


@given(st.binary(max_size=300) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda v: json.dumps(v).encode()))
def test_whatever_lies_there_as_a_manifest_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("set")
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(Refused, match="not a manifest"):
        read_manifest(folder)


@given(
    st.sampled_from(["format", "files", "samples_per_file", "record_length_bytes", "seed", "sizes", "sizes_sha256", "made_by", "schema"]),
    st.none() | st.text() | st.floats() | st.integers() | st.lists(st.integers()) | st.dictionaries(st.text(), st.none()),
)
def test_a_manifest_with_one_field_of_another_kind_is_refused(tmp_path_factory: pytest.TempPathFactory, field: str, value: object) -> None:
    folder = tmp_path_factory.mktemp("set")
    manifest = Manifest(folder, SMALL, dict.fromkeys(SMALL.all_names(), 5))
    said = json.loads(manifest.dump()) | {field: value}
    (folder / MANIFEST).write_text(json.dumps(said))
    try:
        again = read_manifest(folder)
    except Refused:
        return
    assert again == manifest or field in {"seed", "samples_per_file", "record_length_bytes", "format"}


# What dlio-benchmark 2.0.0 wrote for record_length=1000000, record_length_stdev=300000, num_files_train=5, format=npz: shape of `x`, and
# size of the file.
BY_DLIO = [
    ((1199, 1107, 1), 1327791),
    ((768, 998, 1), 766962),
    ((1093, 891, 1), 974361),
    ((1039, 1016, 1), 1056122),
    ((1000, 973, 1), 973498),
]


def test_the_first_image_of_unet3d_by_hand() -> None:
    """The side is floor(sqrt(146600628)) = 12107, its spread 68341808 / (2 x 12107.8746) = 2822.21.

    Seed 10 draws 1.3315865, then 0.71527897: 12107 + 2822.21 x 1.3315865 = 15865.02, and 12107 + 2822.21 x 0.71527897 = 14125.67.
    """
    assert dimensions(Spec("npz", 168, 1, 146600628, 68341808))[0].tolist() == [15865, 14125]


@pytest.mark.parametrize(("number", "expected"), list(enumerate(BY_DLIO)))
def test_dimensions_and_file_sizes_are_those_that_dlio_itself_wrote(
    number: int, expected: tuple[tuple[int, ...], int], tmp_path: Path
) -> None:
    shape, size = expected
    path = tmp_path / "one.npz"
    formats.load("npz").write(path, list(contents(Spec("npz", 5, 1, 1_000_000, 300_000)))[number])
    assert np.load(path)["x"].shape == shape
    assert path.stat().st_size == size


@given(st.integers(1, 40), st.floats(1, 1e9), st.floats(1e-3, 1e9))
def test_dimensions_are_drawn_by_the_statements_of_dlio(files: int, length: float, stdev: float) -> None:
    """DLIO: np.random.seed(10); [max(int(d), 1) for d in np.random.normal(int(sqrt(L)), sd / 2 / sqrt(L), 2 * files)]."""
    np.random.seed(10)  # noqa: NPY002 -- what DLIO calls
    drawn = np.random.normal(int(np.sqrt(length)), stdev / 2.0 / np.sqrt(length), 2 * files)  # noqa: NPY002
    assert dimensions(Spec("raw", files, 1, length, stdev)).ravel().tolist() == [max(int(d), 1) for d in drawn]


def test_without_a_spread_all_files_have_the_same_length() -> None:
    """resnet50: floor(sqrt(114660.07)) = 338, so a sample of nominally 114660 bytes has 338 x 338 = 114244."""
    assert {sample.each_bytes for sample in contents(Spec("tfrecord", 3, 1251, 114660.07))} == {114244}


def test_drawing_leaves_the_generator_of_everybody_alone() -> None:
    np.random.seed(1)  # noqa: NPY002 -- it is what must not move
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    dimensions(Spec("raw", 3, 1, 1e6, 3e5))
    assert np.random.random() == expected  # noqa: NPY002
