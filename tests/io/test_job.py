"""A job is checked before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.io import job, parameters
from fixtures.terms import BadInput

if TYPE_CHECKING:
    from pathlib import Path


@given(st.integers(1, 500), st.integers(1, 5), st.data())
def test_the_steps_of_all_epochs_are_those_asked_for(each: int, epochs: int, data: st.DataObject) -> None:
    """All epochs but the last are whole."""
    wanted = data.draw(st.integers(1, each * epochs))
    steps = job.steps_of_epochs(each, epochs, wanted)
    assert sum(steps) == wanted
    assert set(steps[:-1]) <= {each}
    assert 0 < steps[-1] <= each


@pytest.mark.parametrize(
    ("each", "epochs", "wanted", "says"),
    [
        (0, 1, 1, "fewer samples than one batch of each rank"),
        (10, 1, 11, r"11 steps were asked for and there are 10 \(1 epoch of 10 steps\)"),
        (10, 3, 31, r"31 steps were asked for and there are 30 \(3 epochs of 10 steps\)"),
    ],
)
def test_steps_that_are_not_there_are_refused(each: int, epochs: int, wanted: int, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        job.steps_of_epochs(each, epochs, wanted)


LARGE = {
    "format": "raw", "processes": "2", "read_threads": "4", "batch_size": "7",
    "record_length_bytes": "1e6", "record_length_bytes_stdev": "0", "record_length_bytes_resize": "0",
}  # fmt: skip


def test_batches_that_do_not_fit_into_memory_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    """2 ranks x 4 readers x (2 + 1) batches x 7 samples x 1 MB = 168 MB, of 167 MB."""
    params = parameters.complete(LARGE)
    (tmp_path / "meminfo").write_text("MemTotal: 999999999 kB\nMemAvailable: 163086 kB\n")
    assert "the batches of 2 ranks, ready and being read, take 0.168 GB, and 0.167 GB of memory" in str(
        job.unavailable_reason(params, tmp_path)
    )
    (tmp_path / "meminfo").write_text("MemTotal: 999999999 kB\nMemAvailable: 164063 kB\n")
    assert job.unavailable_reason(params, tmp_path) is None


@pytest.mark.parametrize(("files", "says"), [("25000", None), ("25001", "25001 steps an epoch, and at most 25000 can be told")])
def test_more_steps_than_one_report_can_tell_are_refused(files: str, says: str | None, tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemAvailable: 99999999 kB\n")
    found = job.unavailable_reason(parameters.complete({"num_files_train": files, "batch_size": "1"}), tmp_path)
    assert found is None if says is None else says in str(found)


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"model_size_bytes": "1E"}, "two checkpoints take 2e+09 GB, and in "),
        ({"model_size_bytes": "1E", "engine": "dlio"}, "its checkpoints take 1e+09 GB, and in "),
        ({"model_size_bytes": "1M"}, None),
        ({}, None),
    ],
)
def test_checkpoints_that_do_not_fit_are_refused(given_: dict[str, str], says: str | None, tmp_path: Path) -> None:
    """In a folder that is not there yet, on the file system that it will be on."""
    found = job.no_room(parameters.complete(given_), tmp_path / "not" / "yet")
    assert found is None if says is None else str(found).startswith(says)
