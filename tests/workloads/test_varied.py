"""Values of `--vary` that mean the same are one arm, and no two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures import cells
from fixtures.options import Options
from fixtures.terms import Metric, Study

OPTIONS = Options(None, "io_train", None, None, 1, resume=False, folder=Path())
STUDY = Study("one", "which?", ("io_train",), (), Metric("throughput_samples_per_s", "higher"))


def crossed(**vary: tuple[str, ...]) -> list[str]:
    return cells.chosen_workloads(replace(OPTIONS, vary=tuple(vary.items())), STUDY, "local")


@pytest.mark.parametrize(
    ("vary", "arms"),
    [
        ({"batch_size": ("4", "4.0")}, ["io_train:batch_size=4"]),
        ({"model": ("unet3d", "unet3d_h100")}, ["io_train"]),
    ],
)
def test_one_value_written_in_two_ways_is_one_arm(
    vary: dict[str, tuple[str, ...]], arms: list[str]
) -> None:
    assert crossed(**vary) == arms


def test_different_values_are_different_arms() -> None:
    assert crossed(batch_size=("4", "8"), cache=("cold", "warm")) == [
        "io_train:batch_size=4",
        "io_train:batch_size=4:cache=warm",
        "io_train:batch_size=8",
        "io_train:batch_size=8:cache=warm",
    ]
