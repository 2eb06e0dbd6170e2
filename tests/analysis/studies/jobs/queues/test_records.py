"""Job streams from saved runs and lists: valid data are read, odd data refused with the place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.load import from_json
from analysis.studies.jobs import csv_file
from analysis.studies.jobs.csv_file import groups
from analysis.studies.jobs.records import Stream, streams
from analysis.terms import Refused, Unreadable
from tests.analysis.studies.jobs.queues.made_streams import MadeStream, as_csv, rows, streamed_run
from tests.synthetic import saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


SMALL = MadeStream(jobs=5)


def read(saved: dict[str, Any]) -> tuple[list[Stream], list[str]]:
    refused: list[str] = []
    return streams(from_json(saved, "made.json"), refused), refused


def test_a_cell_is_a_stream_and_blocks_are_of_one_group() -> None:
    found, refused = read(streamed_run(SMALL, 3))
    assert refused == []
    assert {one.group for one in found} == {"job_stream:arrivals=poisson:rate_per_s=6:slots=2"}
    assert [(one.slots, one.engine, one.policy, len(one.jobs)) for one in found] == [
        (2, "pool", "fifo", 5)
    ] * 3
    told = rows(SMALL, 1000)[3]
    job = found[0].jobs[3]
    assert (job.submit_s, job.start_s, job.end_s) == (
        told["submit_s"],
        told["start_s"],
        told["end_s"],
    )
    assert (job.number, job.class_, job.priority, job.replicas, job.outcome) == (
        3,
        "small",
        0,
        1,
        "done",
    )


def test_an_untouched_copy_with_the_same_jobs_is_left_out() -> None:
    found, refused = read(streamed_run(SMALL, 3, again=True))
    assert [one.tweakset for one in found] == ["stock"] * 3
    assert refused == []


def test_a_list_of_jobs_says_the_same_as_the_run() -> None:
    (from_run,), _ = read(streamed_run(SMALL, 1))
    (from_csv,) = csv_file.parse_jobs(
        as_csv(
            rows(SMALL, 1000),
            ("job", "submit_s", "admit_s", "start_s", "end_s", "priority", "class", "outcome"),
        ),
        "jobs.csv",
    )
    assert from_csv.jobs == tuple(replace(job, planned_s=None) for job in from_run.jobs)
    assert (from_csv.slots, from_csv.measured) == (None, True)


@given(
    text=st.text(st.characters(codec="utf-8"), max_size=200),
    head=st.sampled_from(["", "job,submit_s\n", "job,submit_s,start_s,end_s,priority\n"]),
)
def test_whatever_a_list_holds_it_is_read_or_refused_in_a_line(text: str, head: str) -> None:
    found: list[Stream] = []
    said = ""
    try:
        found = csv_file.parse_jobs(head + text, "jobs.csv")
    except Unreadable as error:
        said = str(error)
    assert len(said.splitlines()) == (0 if found else 1)
    assert all(one.jobs for one in found)


def test_named_files_are_grouped_and_unreadable_ones_reported(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(as_csv(rows(SMALL)))
    (tmp_path / "wrong.csv").write_text("no list")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe")
    refused: list[str] = []
    found = groups(
        [str(tmp_path / name) for name in ("jobs.csv", "wrong.csv", "binary.csv", "gone.csv")],
        refused,
    )
    assert [len(group) for group in found] == [1]
    assert ["no column" in refused[0], "not UTF-8" in refused[1], "No such file" in refused[2]] == [
        True
    ] * 3
    with pytest.raises(Refused, match="no column"):
        groups([str(tmp_path / "wrong.csv")], [])


def test_cells_without_one_stream_of_jobs_are_left_out(snapshot: SnapshotAssertion) -> None:
    saved = streamed_run(SMALL, 4)
    gone = saved["benchmarks"].pop()["extra_info"]["id"]
    next(cell for cell in saved["deeptweak"]["cells"] if cell["id"] == gone).update(
        outcome="failed", reason="no such node."
    )
    del saved["benchmarks"][0]["extra_info"]["report"]["job"]
    saved["benchmarks"][1]["extra_info"]["report"]["stream"] *= 2
    found, refused = read(saved)
    assert len(found) == 1
    assert refused == snapshot
    with pytest.raises(Refused, match="no cell"):
        read(saved_run())


def test_what_is_no_list_of_jobs_is_refused_with_its_line(snapshot: SnapshotAssertion) -> None:
    found = {}
    for text in (
        "",
        "job,start_s\n",
        "job,submit_s\n",
        "job,job,submit_s\n",
        "job,submit_s\n0,1\n1\n",
        "job,submit_s\n0,1\n\n1,soon\n",
        "job,submit_s\n0,inf\n",
        "job,submit_s\n0,1e300\n",
        "job,submit_s\n,1\n",
        "job,submit_s\n-1,1\n",
        "job,submit_s\n0.5,1\n",
        "job,submit_s,outcome\n0,1,fine\n",
        "job,submit_s,slots\n0,1,2\n1,2,3\n",
        "job,submit_s,slots\n0,1,0\n",
        'job,submit_s\n0,"1\n',
    ):
        with pytest.raises(Unreadable) as refused:
            csv_file.parse_jobs(text, "jobs.csv")
        found[text] = str(refused.value)
    assert found == snapshot


THIRTY_JOBS = MadeStream(jobs=30)


def counted(tmp_path: Path, *runs: dict[str, Any]) -> tuple[list[int], list[str]]:
    names = []
    for at, run in enumerate(runs):
        (tmp_path / f"{at}.json").write_text(json.dumps(run))
        names.append(str(tmp_path / f"{at}.json"))
    refused: list[str] = []
    return [len(group) for group in groups(names, refused)], refused


def as_run(run: dict[str, Any], run_id: str) -> dict[str, Any]:
    run["deeptweak"]["run_id"] = run_id
    return run


def test_the_copy_stands_in_for_an_unmeasured_untouched_machine(tmp_path: Path) -> None:
    run = streamed_run(THIRTY_JOBS, 3, again=True)
    gone = next(one for one in run["benchmarks"] if one["extra_info"]["tweakset"] == "stock")
    gone["extra_info"]["report"]["job"][0]["outcome"] = "fine"
    found, refused = counted(tmp_path, run)
    assert found == [3]
    assert len(refused) == 1


def test_a_second_run_of_the_same_seed_has_the_same_jobs(tmp_path: Path) -> None:
    found, (line,) = counted(
        tmp_path,
        as_run(streamed_run(THIRTY_JOBS, 3), "one"),
        as_run(streamed_run(THIRTY_JOBS, 3), "two"),
    )
    assert found == [3]
    assert "3 streams" in line


def test_runs_of_two_machines_are_two_groups(tmp_path: Path) -> None:
    other = as_run(streamed_run(THIRTY_JOBS, 3, seed=2), "two")
    other["machine_info"]["deeptweak"]["cpu_model"] = "another"
    found, refused = counted(tmp_path, as_run(streamed_run(THIRTY_JOBS, 3), "one"), other)
    assert (found, refused) == ([3, 3], [])
