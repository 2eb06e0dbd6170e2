"""The points that are profiled (A1)."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from control.power import catalog
from control.power.terms import Partition
from tests.conftest import REFERENCE


def test_the_grid_has_263_points_of_which_199_share_the_gpu_and_the_sweep_nine_that_fill_it() -> None:
    points = catalog.points("anchor")
    assert len(points) == len(set(points)) == 263
    assert sum(point.processes > 1 for point in points) == 199
    assert max(point.share_percent * point.processes for point in points) == 100
    assert len(catalog.points("sweep")) == 9
    assert {(point.share_percent, point.processes) for point in catalog.points("sweep")} == {(25, 4), (50, 2), (10, 10)}
    assert catalog.OperatingPoint(25, 3, 16).partition == Partition((25.0,) * 3, (16,) * 3)


def test_each_share_has_its_number_of_points() -> None:
    """E.g. 5 %: 11 numbers of processes × 4 batches."""
    assert Counter(point.share_percent for point in catalog.points("anchor")) == {
        5: 44,
        10: 36,
        15: 36,
        20: 40,
        25: 36,
        30: 27,
        35: 22,
        40: 22,
    }


@pytest.mark.needs("reference")
def test_it_is_the_originals_grid_in_its_order() -> None:
    rows = csv.DictReader((REFERENCE / "pctodl" / "profiling_grid.csv").read_text().splitlines())
    theirs = [catalog.OperatingPoint(int(row["mps_percent"]), int(row["num_tasks"]), int(row["batch_size"])) for row in rows]
    assert list(catalog.points("anchor")) == theirs
