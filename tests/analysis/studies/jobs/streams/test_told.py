"""A run of job streams ends with, and shows on its page, its own answer in place of verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from analysis.ending import answer_of_run
from analysis.load import from_json
from analysis.render import text
from analysis.report.page import page_of
from analysis.studies.jobs.streams import JobsRun, gather
from analysis.terms import Run
from fixtures import studies
from tests.analysis.answers import known
from tests.analysis.studies.jobs.queues.made_streams import (
    MadeStream,
    rows,
    stream_row,
    streamed_run,
    without_rounding,
)
from tests.analysis.studies.jobs.streams.made_runs import (
    Report,
    faulty_run,
    queueing_run,
    run_of,
    scheduling_run,
)

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


def found(run: Run) -> JobsRun:
    return known(gather(run))


@pytest.fixture(scope="module")
def scheduling() -> Run:
    return scheduling_run(count=60)


def test_a_copy_of_stock_is_no_second_replicate() -> None:
    """A block's seed draws the stream: both had the same jobs."""
    made = MadeStream(jobs=60)
    once, twice = (
        found(from_json(streamed_run(made, runs=4, again=again), "made.json"))
        for again in (False, True)
    )
    assert len(once.waits[0].streams) == len(twice.waits[0].streams) == 4
    assert {stream.tweakset for stream in twice.streams} == {"stock"}


def test_waits_of_faulty_and_closed_streams_meet_no_model() -> None:
    run = faulty_run((0.5,), blocks=3, count=40)
    assert len(found(run).waits) == 1
    shut = from_json(streamed_run(MadeStream(jobs=40), runs=3), "made.json")
    for cell in shut.cells:
        cell.report["stream"][0]["arrivals"]["kind"] = "closed"  # type: ignore[index]
    assert found(shut).waits == ()


def closed(block: int, service_s: float) -> Report:
    made = MadeStream(rate_per_s=0.5, service_s=service_s, slots=1, jobs=20)
    about = {
        **stream_row(made, block),
        "arrivals": {"kind": "closed", "seed": block},
        "fault": None,
    }
    return {"job": rows(made, round(block + 100 * service_s)), "stream": [about]}


def situations(scheduling: Run) -> dict[str, Run]:
    def failing(row: Mapping[str, object]) -> dict[str, object]:
        return {**row, "outcome": "failed"} if row["job"] in {5, 6, 7} else dict(row)

    lossy = tuple(
        replace(cell, report={**cell.report, "job": tuple(map(failing, cell.report["job"]))})
        if "sjf" in cell.workload
        else cell
        for cell in scheduling.cells
    )
    unread = from_json(streamed_run(MadeStream(jobs=40), runs=4), "made.json")
    del unread.cells[0].report["stream"][0]["slots"]  # type: ignore[attr-defined]
    return {
        "waits": queueing_run(blocks=3, count=100, loads=(0.5,)),
        "twice as much as can be done": from_json(
            streamed_run(MadeStream(rate_per_s=20, jobs=100), runs=3), "made.json"
        ),
        "policies, 10 ms a job beyond the simulation": scheduling,
        "three jobs of each of sjf's streams failed": replace(scheduling, cells=lossy),
        "faults": faulty_run(blocks=4, count=50),
        "two systems": run_of(
            {
                f"job_stream:cores={cores}": partial(closed, service_s=0.4 / cores)
                for cores in (2, 1)
            },
            blocks=6,
        ),
        "a cell without slots": unread,
    }


def test_a_session_ends_with_the_answer_to_its_question(
    scheduling: Run, snapshot: SnapshotAssertion
) -> None:
    for case, run in situations(scheduling).items():
        page = without_rounding(text.render(answer_of_run(run)))
        assert "next:" not in page
        whole = case in {"waits", "a cell without slots"}  # tables are those of the commands
        assert (page if whole else page.split("\n\n")[0]) == snapshot(name=case)


@pytest.mark.slow
def test_the_page_has_a_section_of_its_own_for_streams(scheduling: Run) -> None:
    page = page_of([scheduling], "python -m analysis report made.json")
    assert '<h2 id="jobs">' in page.html
    assert "Nothing to compare" not in page.html
    drawn = {name for name, missing in page.pictures.items() if missing is None}
    assert {"jobs_over_time", "jobs_waits", "jobs_policies"} <= drawn
    assert not {"steps", "run_order"} & page.pictures.keys()


@pytest.mark.parametrize(
    ("streams", "commands"),
    [
        ([("poisson", "fifo")], ["queue validate"]),
        ([("closed", "fifo")], ["jobs profile"]),
        ([("poisson", "fifo"), ("poisson", "sjf")], ["queue validate", "schedule report"]),
        ([], []),
    ],
)
def test_a_session_names_the_commands_that_answer_its_questions(
    streams: list[tuple[str, str]], commands: list[str]
) -> None:
    told = [{"arrivals": {"kind": kind}, "policy": policy} for kind, policy in streams]
    assert [command for _, command in studies.closing({"stream": told})] == [
        f"{command} {{}}" for command in commands
    ]
