"""A copy of a stream is no replicate, whoever made it: the harness, a second run of one seed, a trace, a file that is named twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from analysis.studies.jobs.queues.reading import groups
from analysis.studies.jobs.records import plan
from tests.analysis.studies.jobs.queues.made_streams import MadeStream, as_csv, rows, streamed_run

if TYPE_CHECKING:
    from pathlib import Path

SMALL = MadeStream(jobs=30)


def counted(tmp_path: Path, *runs: dict[str, Any]) -> tuple[list[int], list[str]]:
    """How many streams each group has, and what was said."""
    names = []
    for at, run in enumerate(runs):
        (tmp_path / f"{at}.json").write_text(json.dumps(run))
        names.append(str(tmp_path / f"{at}.json"))
    refused: list[str] = []
    return [len(group) for group in groups(names, refused)], refused


def as_run(run: dict[str, Any], run_id: str) -> dict[str, Any]:
    run["deeptweak"]["run_id"] = run_id
    return run


def test_the_copy_of_the_untouched_machine_had_the_same_jobs(tmp_path: Path) -> None:
    found, (line,) = counted(tmp_path, streamed_run(SMALL, 3, again=True))
    assert found == [3]
    assert "3 streams" in line


def test_the_copy_stands_in_where_the_machine_as_found_was_not_measured(tmp_path: Path) -> None:
    run = streamed_run(SMALL, 3, again=True)
    gone = next(one for one in run["benchmarks"] if one["extra_info"]["tweakset"] == "stock")
    gone["extra_info"]["report"]["job"][0]["outcome"] = "fine"
    found, refused = counted(tmp_path, run)
    assert found == [3]
    assert len(refused) == 2


def test_a_second_run_of_the_same_seed_has_the_same_jobs(tmp_path: Path) -> None:
    found, (line,) = counted(tmp_path, as_run(streamed_run(SMALL, 3), "one"), as_run(streamed_run(SMALL, 3), "two"))
    assert found == [3]
    assert "3 streams" in line


def test_a_second_run_of_another_seed_is_evidence(tmp_path: Path) -> None:
    found, refused = counted(tmp_path, as_run(streamed_run(SMALL, 3), "one"), as_run(streamed_run(SMALL, 3, seed=2), "two"))
    assert (found, refused) == ([6], [])


def test_a_list_that_holds_a_stream_twice_holds_it_once(tmp_path: Path) -> None:
    head, *lines = as_csv(rows(SMALL)).splitlines()
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([f"run,{head}", *(f"{run},{line}" for run in "abc" for line in lines)]))
    refused: list[str] = []
    assert [len(group) for group in groups([str(path), str(path)], refused)] == [1]
    assert "5 streams" in refused[0]


@pytest.mark.parametrize(
    ("kind", "planned_s", "work", "drawn"),
    [
        ("poisson", [0.5, 1.25], [1, 1], (0.5, 1.25)),
        ("poisson", [0.5, 1.2500004], [1, 2], (0.5, 1.25)),
        ("poisson", [0.5, 1.250002], [1, 2], (0.5, 1.250002)),
        ("deterministic", [1, 2], [0.3, 0.4], (0.3, 0.4)),
        ("deterministic", [1, 2], [1, 1], None),  # nothing is drawn, so that nothing is drawn twice
        ("closed", [None, None], [3, 4], (3, 4)),
        ("poisson", [None, None], [None, None], None),
    ],
)
def test_what_chance_drew_of_a_stream(kind: str, planned_s: list[float | None], work: list[float | None], drawn: object) -> None:
    assert plan(kind, planned_s, work) == drawn


def test_runs_of_two_machines_are_two_groups(tmp_path: Path) -> None:
    other = as_run(streamed_run(SMALL, 3, seed=2), "two")
    other["machine_info"]["deeptweak"]["cpu_model"] = "another"
    found, refused = counted(tmp_path, as_run(streamed_run(SMALL, 3), "one"), other)
    assert (found, refused) == ([3, 3], [])
