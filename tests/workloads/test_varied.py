"""Values of `--vary` that mean the same are one arm, and no two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures import cells
from fixtures.options import Options
from fixtures.terms import BadInput, Metric, Study

OPTIONS = Options(None, "io_train", None, None, 1, resume=False, folder=Path())
STUDY = Study("one", "which?", ("io_train",), (), Metric("throughput_samples_per_s", "higher"))


def crossed(**vary: tuple[str, ...]) -> list[str]:
    return cells.chosen_workloads(replace(OPTIONS, vary=tuple(vary.items())), STUDY, "local")


@pytest.mark.parametrize(
    ("vary", "says"),
    [
        (
            {"batch_size": ("4", "4.0")},
            (
                "--vary: batch_size=4 and batch_size=4.0 mean the same variant "
                "(io_train:batch_size=4); list it once."
            ),
        ),
        (
            {"model": ("unet3d", "unet3d_h100")},
            (
                "--vary: model=unet3d and model=unet3d_h100 mean the same variant (io_train); "
                "list it once."
            ),
        ),
        (
            {
                "cache": ("cold", "warm"),
                "record_length_bytes": ("1Mi", "1048576"),
                "record_length_bytes_stdev": ("0",),
            },
            (
                "record_length_bytes=1Mi and record_length_bytes=1048576 mean the same variant "
                "(io_train:"
            ),
        ),
    ],
)
def test_one_value_written_in_two_ways_is_refused(
    vary: dict[str, tuple[str, ...]], says: str
) -> None:
    with pytest.raises(BadInput) as refused:
        crossed(**vary)
    assert says in str(refused.value)


def test_different_values_are_different_arms() -> None:
    assert crossed(batch_size=("4", "8"), cache=("cold", "warm")) == [
        "io_train:batch_size=4",
        "io_train:batch_size=4:cache=warm",
        "io_train:batch_size=8",
        "io_train:batch_size=8:cache=warm",
    ]
