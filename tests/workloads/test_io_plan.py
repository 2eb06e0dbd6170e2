"""`--plan` on io_train: the length of a cell, and parameters that its name omits."""

from __future__ import annotations

import pytest

from fixtures import workloads
from fixtures.studies.io.workloads import io_train


def lasts(given: str) -> float:
    return workloads.of(f"io_train{given and ':'}{given}").cell_s()


def left_out(*names: str) -> list[str]:
    return workloads.left_out(map(workloads.load, names))


def data_set_s(given: str) -> float:
    """To read the data set from a disk as fast as a plan assumes."""
    params = workloads.load(f"io_train{given and ':'}{given}").params
    size = [
        params[name] for name in ("num_files_train", "num_samples_per_file", "record_length_bytes")
    ]
    return float(size[0] * size[1] * size[2] / io_train.DISK_BYTES_PER_S)


REAL = "sample_scale=1:record_scale=1"


@pytest.mark.parametrize(
    "given", ["", REAL, "cache=warm", "cache=as_found", "model=resnet50_a100", "read_threads=0"]
)
def test_a_cell_takes_at_least_as_long_as_its_data_set_is_read(given: str) -> None:
    """24.6 GB of the real unet3d: two minutes and more, not the seconds of its steps."""
    assert lasts(given) > data_set_s(given)
    assert data_set_s(REAL) > 100


def test_cold_epochs_read_storage_and_warm_ones_read_memory() -> None:
    assert lasts("epochs=3") - lasts("epochs=2") == pytest.approx(data_set_s(""))
    assert lasts("epochs=3:cache=warm") - lasts("epochs=2:cache=warm") < data_set_s("") / 2


def test_without_readers_nothing_is_read_while_it_computes() -> None:
    computing_s = 48 * 2.0
    assert lasts("read_threads=2:computation_time=2") - lasts("read_threads=2") == pytest.approx(
        computing_s - data_set_s("")
    )
    none = workloads.load("io_train:read_threads=0").params
    before_s = none["steps"] * none["computation_time"]
    assert lasts("read_threads=0:computation_time=2") - lasts("read_threads=0") == pytest.approx(
        computing_s - before_s
    )


def test_defaults_left_out_of_names_are_listed_if_they_matter() -> None:
    assert left_out("io_train") == [
        "Not in the names of io_train: model unet3d_h100, format npz, read_threads 4, cache cold."
    ]
    said = left_out("io_train:model=resnet50", "io_train:processes=2", "idle", "cnn_train")
    assert said == [
        (
            "Not in the names of io_train: model unet3d_h100, processes 1, format tfrecord or "
            "npz, read_threads 8 or 4, cache cold."
        )
    ]
