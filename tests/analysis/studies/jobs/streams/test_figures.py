"""Figures of a stream's jobs, as metrics of its cell."""

from __future__ import annotations

import pytest

from analysis.load import from_json
from analysis.studies.jobs.figures import figures
from tests.analysis.studies.jobs.profiles.made_cells import Row, job
from tests.analysis.studies.jobs.queues.made_streams import MadeStream, streamed_run


def test_waits_and_responses_are_of_jobs_that_were_done() -> None:
    """Waits of 2 and 4 s, 1 s of work each; the failed third of the jobs does not count."""
    jobs = [job(0, waits=2), job(1, waits=4), {**job(2, waits=99), "outcome": "failed"}]
    assert figures({"job": jobs}) == pytest.approx(
        {"mean_wait_s": 3, "mean_response_s": 4, "jobs_done_share": 2 / 3}
    )


def test_jobs_of_a_flood_have_no_part() -> None:
    flood = {**job(1, waits=99), "tenant": "flood"}
    assert figures({"job": [job(0, waits=2), flood]}) == figures({"job": [job(0, waits=2)]})


@pytest.mark.parametrize("row", [{**job(1), "end_s": None}, {**job(1), "end_s": "late"}])
def test_what_is_not_known_of_every_job_is_left_out(row: Row) -> None:
    assert set(figures({"job": [job(0), row]})) == {"mean_wait_s", "jobs_done_share"}


def test_they_are_metrics_of_the_cells_of_a_run() -> None:
    run = from_json(streamed_run(MadeStream(jobs=30), 2), "made.json")
    assert all(
        cell.metrics["mean_response_s"] > cell.metrics["mean_wait_s"] > 0 for cell in run.cells
    )
