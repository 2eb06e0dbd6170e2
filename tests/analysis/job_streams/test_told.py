"""What a run of streams of jobs says at its end and on its page: its own sentences in place of those of tweak sets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.job_streams.gathered import gather
from analysis.job_streams.page import render
from analysis.job_streams.said import of_run
from analysis.load import from_json
from analysis.report.page import page_of
from fixtures import saving
from tests.analysis.job_streams.made_runs import faulty_run, queueing_run, run_of, scheduling_run
from tests.analysis.queueing.made_streams import MadeStream, rows, stream_row, streamed_run
from tests.synthetic import saved_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from analysis.job_streams.gathered import Gathered
    from analysis.terms import Run
    from tests.analysis.job_streams.made_runs import Report


def found(run: Run) -> Gathered:
    """All of a run that tells of jobs."""
    one = gather(run)
    assert one is not None
    return one


def told(run: Run) -> dict[str, str]:
    """Part → its sentences."""
    return {part: " ".join(lines) for part, lines in of_run(run, found(run))}


@pytest.fixture(scope="module")
def scheduling() -> Run:
    """Four policies on the same jobs."""
    return scheduling_run(count=80)


def test_a_run_without_streams_says_nothing() -> None:
    run = from_json(saved_run(), "plain.json")
    assert gather(run) is None
    assert of_run(run, None) == []


def test_a_copy_of_stock_is_no_second_replicate() -> None:
    """A block's seed draws the stream: both had the same jobs."""
    made = MadeStream(jobs=60)
    once, twice = (found(from_json(streamed_run(made, runs=4, again=again), "made.json")) for again in (False, True))
    assert len(once.waits[0].told) == len(twice.waits[0].told) == 4
    assert {one.cell.tweakset for one in twice.told} == {"stock"}


def test_where_stock_was_not_measured_its_copy_stands_for_it() -> None:
    run = from_json(streamed_run(MadeStream(jobs=60), runs=3, again=True), "made.json")
    lost = next(cell for cell in run.cells if cell.tweakset == "stock")
    broken = replace(lost, outcome="failed", reason="no memory", steps=None, metrics={}, report={})
    cells = tuple(broken if cell is lost else cell for cell in run.cells)
    kept = found(replace(run, cells=cells))
    assert sorted(one.cell.tweakset for one in kept.told) == ["stock", "stock", "stock-again"]
    assert any("no memory" in line for line in kept.refused)


def test_waits_are_told_setting_by_setting_with_the_model_and_its_verdict() -> None:
    said = told(queueing_run(blocks=3, count=100, loads=(0.5,)))["Waits"]
    assert "Little's law holds on 9 of 9 runs" in said
    assert "equal gaps: mean wait" in said
    assert "M/M/1 says" in said or "M/G/1 says" in said


def test_an_unstable_stream_has_no_stationary_figure() -> None:
    """Twice as much comes as can be done."""
    run = from_json(streamed_run(MadeStream(rate_per_s=20, slots=2, jobs=200), runs=3), "made.json")
    said = told(run)["Waits"]
    assert "UNSTABLE" in said
    assert "M/M/2 says" not in said


def test_policies_that_lost_different_jobs_are_told(scheduling: Run) -> None:
    """Three of each of sjf's streams failed: five blocks."""

    def failing(row: Mapping[str, object]) -> dict[str, object]:
        return {**row, "outcome": "failed"} if row["job"] in {5, 6, 7} else dict(row)

    cells = tuple(
        replace(cell, report={**cell.report, "job": tuple(map(failing, cell.report["job"]))}) if "sjf" in cell.workload else cell
        for cell in scheduling.cells
    )
    assert (
        "Not compared with fifo: of the jobs 15 that fifo did were lost or tried again under sjf."
        in told(replace(scheduling, cells=cells))["Policies"]
    )
    assert "Not compared" not in told(scheduling)["Policies"]


def test_policies_are_told_and_waits_only_of_first_come_first_served(scheduling: Run) -> None:
    said = told(scheduling)
    assert "mean wait over fifo's: sjf" in said["Policies"]
    assert "difference from fifo's mean wait is shown: " in said["Policies"]
    assert "sjf" not in said["Waits"]


def test_what_an_engine_takes_beyond_the_simulation_is_told(scheduling: Run) -> None:
    """Made with 10 ms a job."""
    assert "fifo: real jobs wait +10 ms" in told(scheduling)["Policies"]


def test_faults_are_told_in_the_order_of_what_is_done_against_them() -> None:
    said = told(faulty_run(blocks=4, count=50))["Faults"]
    places = [said.index(f"kill{more}:") for more in ("", *(f", checkpoints every {every} s" for every in ("0.2", "0.6", "2")))]
    assert places == sorted(places)
    assert "times as long" in said


@pytest.mark.parametrize(
    ("killed", "words"),
    [
        (30, "30 of 40 jobs lost; the others take 0."),
        (40, "little_memory: 40 of 40 jobs lost; "),
    ],
)
def test_a_stream_is_not_called_faster_because_its_jobs_were_killed(killed: int, words: str) -> None:
    """Of 20 jobs in each of two blocks the first are killed at once; the others find no queue."""
    made = MadeStream(rate_per_s=9.0, slots=2, jobs=20)

    def report(fault: str | None) -> Callable[[int], Report]:
        def of(block: int) -> Report:
            jobs = rows(made, block)
            if fault:
                jobs = [
                    {**row, "end_s": row["submit_s"], "admit_s": row["submit_s"], "start_s": row["submit_s"], "outcome": "killed"}
                    if row["job"] < killed / 2
                    else {**row, "end_s": row["submit_s"] + 0.9 * (row["end_s"] - row["submit_s"])}
                    for row in jobs
                ]
            tried = [{**row, "attempt": 1, "checkpoints": 0, "checkpoint_cost_s": 0.0} for row in jobs]
            struck = [{"fault": fault, "at_s": 0.0, "until_s": None, "node": None, "job": None}] if fault else []
            told = {"fault": fault} if fault else None
            about = {**stream_row(made, block), "nodes": 1, "fault": told, "checkpoint_s": 0, "retries": 0}
            return {"job": jobs, "attempt": tried, "fault": struck, "stream": [about]}

        return of

    said = told(run_of({"job_stream": report(None), "job_stream:fault=little_memory": report("little_memory")}, blocks=2))["Faults"]
    assert "with jobs that were never done: 1" in said
    assert words in said
    assert ("no gain" in said) == (killed < 40)


def test_waits_of_streams_with_faults_and_of_closed_ones_are_held_against_no_model() -> None:
    run = faulty_run((0.5,), blocks=3, count=40)
    assert len(found(run).waits) == 1
    shut = from_json(streamed_run(MadeStream(jobs=40), runs=3), "made.json")
    for cell in shut.cells:
        cell.report["stream"][0]["arrivals"]["kind"] = "closed"  # type: ignore[index]  # ours, just made
    assert found(shut).waits == ()


def test_a_cell_that_cannot_be_read_is_named_and_the_others_stand() -> None:
    run = from_json(streamed_run(MadeStream(jobs=40), runs=4), "made.json")
    del run.cells[0].report["stream"][0]["slots"]  # type: ignore[attr-defined]  # ours, just made
    said = told(run)
    assert "slots" in said["Left out"]
    assert "3 of 3 runs" in said["Waits"]


def test_a_session_ends_with_the_streams_in_place_of_nothing_to_compare(scheduling: Run) -> None:
    text = render(scheduling, found(scheduling))
    assert "Nothing to compare" not in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "Policies\n" in text


def test_the_page_has_a_section_of_its_own_for_streams(scheduling: Run) -> None:
    page = page_of([scheduling], "python -m analysis report made.json")
    assert '<h2 id="streams">Streams of jobs</h2>' in page.html
    assert "No tweak set was compared: streams of jobs are held against models" in page.html
    assert "No verdict</span>" not in page.html
    drawn = {name for name, missing in page.pictures.items() if missing is None}
    assert {"jobs_overview", "jobs_over_time", "jobs_waits", "jobs_tail", "jobs_policies"} <= drawn
    assert not {"steps", "distribution", "averages"} & page.pictures.keys()


def test_closed_streams_say_on_which_system_jobs_are_soonest() -> None:
    """One job after the other, of 0.2 s on one system and of twice that on the other: no wait is held against a model."""

    def closed(service_s: float, slots: int) -> Callable[[int], Report]:
        made = MadeStream(rate_per_s=0.5, service_s=service_s, slots=slots, jobs=20)

        def report(block: int) -> Report:
            about = stream_row(made, block)
            return {
                "job": rows(made, round(block + 100 * service_s)),
                "stream": [{**about, "arrivals": {"kind": "closed", "seed": block}, "fault": None}],
            }

        return report

    said = told(run_of({"job_stream:cores=2": closed(0.2, 1), "job_stream:cores=1": closed(0.4, 1)}, blocks=6))
    assert said.keys() == {"Systems"}
    assert "small: soonest on cores=2 (" in said["Systems"]
    assert "% faster [" in said["Systems"]


@pytest.mark.parametrize(
    ("streams", "commands"),
    [
        ([("poisson", "fifo")], ["queue validate"]),
        ([("closed", "fifo")], ["jobs profile"]),
        ([("poisson", "fifo"), ("poisson", "sjf")], ["queue validate", "schedule report"]),
        ([], []),
    ],
)
def test_a_session_names_the_commands_that_answer_its_questions(streams: list[tuple[str, str]], commands: list[str]) -> None:
    told = [{"arrivals": {"kind": kind}, "policy": policy} for kind, policy in streams]
    assert [command for _, command in saving.of_jobs(told)] == commands
