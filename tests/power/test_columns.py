"""Columns of a trace from the windows of a point."""

from __future__ import annotations

import pytest

from fixtures.studies.power.points import measured
from fixtures.studies.power.terms import Observed

ONE = Observed(
    5.0,
    2.0,
    ((0.5, 100.0), (1.5, 120.0)),
    (30.0, 10.0),
    ((10.0, 20.0), (40.0,)),
    energy_j=220.0,
    sm_util_percent=90.0,
)
OTHER = Observed(
    7.0,
    2.0,
    ((1.0, 140.0),),
    (34.0, 12.0),
    ((30.0,), ()),
    energy_j=280.0,
    sm_util_percent=80.0,
    cpu_s_per_s=0.5,
)


def test_throughput_is_all_images_over_all_of_the_time() -> None:
    """30 + 10 + 34 + 12 images in 4 s."""
    row = measured([ONE, OTHER], in_watts=True)
    assert row["throughput_total"] == pytest.approx(86 / 4)
    assert row["images"] == [64, 22]
    assert row["measured_s"] == 4


def test_power_is_that_of_all_samples_and_energy_of_all_windows() -> None:
    """(100 + 120 + 140) / 3 = 120 W, 140 at most; 500 J.

    Where one window has no energy, the sum is none.
    """
    row = measured([ONE, OTHER], in_watts=True)
    assert (row["power_avg"], row["power_max"], row["energy_j"]) == (120, 140, 500)
    assert (
        measured([ONE, Observed(7.0, 2.0, (), (0.0, 0.0), ((), ()))], in_watts=True)["energy_j"]
        is None
    )


def test_activity_is_never_told_as_power() -> None:
    row = measured([OTHER], in_watts=False)
    assert row["power_avg"] is row["power_max"] is None
    assert row["cpu_s_per_s"] == 0.5


def test_percentiles_are_of_the_batches_of_all_windows() -> None:
    """10, 20 and 30 ms; the other tenant had one batch."""
    row = measured([ONE, OTHER], in_watts=True)
    assert row["latency_p50_ms"] == [20, 40]
    assert row["latency_p99_ms"] == [pytest.approx(29.8), 40]


def test_a_point_without_windows_has_no_numbers() -> None:
    row = measured([], in_watts=True)
    assert row["throughput_total"] is row["power_avg"] is row["energy_j"] is row["sm_util"] is None
