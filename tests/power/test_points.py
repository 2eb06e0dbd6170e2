"""The grids of a profile, and how a point is written."""

from __future__ import annotations

import csv
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.power import catalog
from control.power.terms import Partition
from fixtures import studies, workloads
from fixtures.studies.power import points
from fixtures.studies.power.workloads import power_profile
from fixtures.studies.power.workloads.power_profile import PowerProfile
from fixtures.terms import BadInput, Study
from fixtures.workloads import case
from tests.conftest import REFERENCE


def test_the_grid_of_partitions_has_263_points() -> None:
    """64 of a single process, 199 of several; by partition 44, 36, 36, 40, 36, 27, 22, 22."""
    grid = [points.tenants(point["shares"], point["batches"]) for point in points.partitions()]
    assert len(grid) == len(set(grid)) == 263
    assert Counter(len(tenants) == 1 for tenants in grid) == {True: 64, False: 199}
    assert Counter(tenants[0][0] for tenants in grid) == {
        5: 44,
        10: 36,
        15: 36,
        20: 40,
        25: 36,
        30: 27,
        35: 22,
        40: 22,
    }
    assert all(sum(share for share, _ in tenants) <= 100 for tenants in grid)


@pytest.mark.needs("reference")
def test_it_is_the_originals_grid_in_its_order() -> None:
    rows = csv.DictReader((REFERENCE / "pctodl" / "profiling_grid.csv").read_text().splitlines())
    theirs = [
        Partition(
            (float(row["mps_percent"]),) * int(row["num_tasks"]),
            (int(row["batch_size"]),) * int(row["num_tasks"]),
        )
        for row in rows
    ]
    assert list(catalog.points("anchor")) == theirs


@pytest.mark.parametrize("grid", points.GRIDS)
def test_every_point_of_every_grid_is_a_workload_of_its_own(grid: str) -> None:
    names = [workloads.case("power_profile", **point).id for point in points.GRIDS[grid]()]
    assert len(set(names)) == len(names)
    assert all(workloads.load(name).id == name for name in names[:5] + names[-5:])


@given(st.lists(st.sampled_from([5.0, 12.5, 25.0, 100.0]), min_size=1, max_size=20))
def test_what_is_written_is_read_back(shares: list[float]) -> None:
    """Runs are counted: 4x25, 50+2x25."""
    assert points.values(points.written(shares), "shares") == tuple(shares)


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"shares": "4x25", "batches": "8+4"}, "4 processes"),
        ({"shares": "120"}, "at most 100 %"),
        ({"shares": "0"}, "above 0"),
        ({"shares": "999999x1"}, "numbers above 0 and below 1000000"),
        ({"batches": "1.5"}, "whole numbers"),
        ({"batches": "1e9"}, "numbers above 0"),
        ({"throttle": "0"}, "throttle=0"),
        ({"backend": "gpu-ful"}, "Available: cpu"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_starts(
    given_: dict[str, str], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        PowerProfile.complete(given_)


def test_the_idle_machine_is_a_point_too() -> None:
    idle = workloads.load("power_profile:model=static")
    assert power_profile.settings(idle.params).tenants == ()
    assert (
        workloads.load("power_profile:model=static:shares=4x25:batches=8:throttle=0.5").id
        == idle.id
    )


@pytest.mark.needs("torch")
def test_what_a_back_end_cannot_set_is_left_out_by_name() -> None:
    why = workloads.of(case("power_profile", sm_mhz=1410)).unavailable_reason()
    assert why
    assert why.startswith("power back-end cpu: sm_mhz:")
    why = workloads.of(case("power_profile", backend="gpu-full")).unavailable_reason()
    assert why
    assert "to permit this, add --allow-gpu-changes" in why


def test_a_study_has_the_points_of_the_grids_that_are_named() -> None:
    study = Study("power_profile", "", ("power_profile",), ("stock",), PowerProfile.primary)
    assert studies.apply({}, study, workloads=None) is study
    both = studies.apply({"profile_grid": "pacing, cpu,cpu"}, study, workloads=None).workloads
    assert len(both) == len(set(both)) == len(points.pacing()) + len(points.cpu())
    assert workloads.load(both[0]).id.startswith("power_profile:backend=gpu-readonly:")
    for wrong, says in (
        ("paceing", "Available: cpu, pacing, partitions, sweep"),
        (",", "no grid given"),
    ):
        with pytest.raises(BadInput, match=says):
            studies.apply({"profile_grid": wrong}, study, workloads=None)


def test_nine_configurations_are_swept() -> None:
    """4 × 25 %, 2 × 50 % and 10 × 10 %, each with batches of 8, 16 and 32."""
    assert [(point["shares"], point["batches"]) for point in points.sweep()][:4] == [
        ("4x25", "8"),
        ("4x25", "16"),
        ("4x25", "32"),
        ("2x50", "8"),
    ]
    assert len(points.sweep()) == 9
