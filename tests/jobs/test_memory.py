"""Memory of jobs: what counts against a limit is told beside what is resident, which has pages that are shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.node import cgroups
from fixtures.studies.jobs import pod
from fixtures.studies.jobs.course import Course, attempt_rows, job_row
from fixtures.studies.jobs.terms import Event, Used
from tests.jobs.made_jobs import a_class, planned
from tests.jobs.test_engine import a_job, opened, until

if TYPE_CHECKING:
    from pathlib import Path

    from fixtures.studies.jobs.terms import JobClass


def used(folder: Path, class_: JobClass, replicas: int = 1) -> Used:
    with opened(folder, class_) as engine:
        engine.admit(a_job(1, class_, replicas=replicas), 1, 0.0)
        return until(engine, "ended")[-1].used


@pytest.mark.needs("cgroups")
def test_what_counts_against_a_limit_is_what_a_job_holds_and_not_what_it_was_forked_with(tmp_path: Path) -> None:
    """32 MiB in each of two replicas, and little beside; resident is also what both share with the process that forked them."""
    found = used(tmp_path, a_class("spin", memory_mib=64, params={"memory_mib": 32}), replicas=2)
    assert found.memory_peak_mib is not None
    assert found.max_rss_mib is not None
    assert 64 <= found.memory_peak_mib < 2 * 64
    assert found.max_rss_mib > found.memory_peak_mib


def test_without_a_limit_nothing_counts_against_it(tmp_path: Path) -> None:
    assert used(tmp_path, a_class("spin", params={"memory_mib": 1})).memory_peak_mib is None


@pytest.mark.parametrize("name", ["memory.peak", "memory.max_usage_in_bytes"])
def test_the_peak_of_a_group_is_read_in_either_version_of_cgroups(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(f"{3 << 19}\n")
    assert cgroups.peak_mib(tmp_path) == 1.5


@pytest.mark.parametrize("name", ["memory.peak", "memory/memory.max_usage_in_bytes"])
def test_a_pod_reads_that_of_its_container(tmp_path: Path, name: str) -> None:
    assert pod.used(tmp_path)["memory_peak_mib"] is None
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(f"{200 << 20}\n")
    assert pod.used(tmp_path)["memory_peak_mib"] == 200


def test_a_job_s_row_has_the_most_of_its_attempts() -> None:
    (one,) = planned(0.0)
    course = Course(one)
    for at_s, peak in enumerate((3.0, 2.0, None)):
        course.begin(at_s)
        course.ended(Event("ended", at_s, 0, outcome="killed", used=Used(memory_peak_mib=peak)), at_s + 0.5)
    assert job_row(course, closed=False)["memory_peak_mib"] == 3.0
    assert [row["memory_peak_mib"] for row in attempt_rows(course)] == [3.0, 2.0, None]
