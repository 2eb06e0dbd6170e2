"""Data sets are as large as DLIO's: the same draw, the same dimensions, the same bytes in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.io import formats
from fixtures.studies.io.dataset import Spec, contents, dimensions

if TYPE_CHECKING:
    from pathlib import Path

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


def test_another_number_of_files_leaves_the_first_as_they_are() -> None:
    few, many = (dimensions(Spec("raw", files, 1, 1e6, 3e5)) for files in (3, 9))
    assert (few == many[:3]).all()


def test_drawing_leaves_the_generator_of_everybody_alone() -> None:
    np.random.seed(1)  # noqa: NPY002 -- it is what must not move
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    dimensions(Spec("raw", 3, 1, 1e6, 3e5))
    assert np.random.random() == expected  # noqa: NPY002
