"""Small queues and streams by hand, each at an edge where the answer changes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.render import text
from analysis.studies.jobs import queue_fits as fitting
from analysis.studies.jobs import queue_formulas as formulas
from analysis.studies.jobs.csv_file import parse_jobs
from analysis.studies.jobs.estimates import Figure
from analysis.studies.jobs.queue_fits import estimate, fit, sums_of
from analysis.studies.jobs.queue_formulas import Inputs, non_preemptive
from analysis.studies.jobs.queue_times import columns, little
from analysis.studies.jobs.queues import WaitValidation, _word, prioritised, validate
from analysis.studies.jobs.records import JobRun, Stream, distinct
from tests.analysis.answers import known
from tests.analysis.studies.jobs.queues.made_streams import MadeStream
from tests.analysis.studies.jobs.queues.test_fitting import stream


def of(*jobs: tuple[float, float | None, float | None]) -> Stream:
    return Stream(
        "made",
        "made",
        tuple(JobRun(at, one[0], None, one[1], one[2]) for at, one in enumerate(jobs)),
        1,
    )


def alone(count: int) -> Stream:
    return of(*((2.0 * at, 2.0 * at, 2.0 * at + 1) for at in range(count)))


def validated(made: MadeStream, runs: int = 3) -> WaitValidation:
    streams = [stream(made, 7000 + at) for at in range(runs)]
    return validate(fit(streams), streams, 0.1)


def test_users_who_think_ask_no_oftener_than_that_lets_them() -> None:
    """Two users, 8 s of thought, 1 s of demand: at most min(1/1, 2/(1 + 8)) a second."""
    assert formulas.mva({"cpu": 1.0}, 2, 8.0).most_per_s == pytest.approx(2 / 9)


def test_percentiles_in_a_full_house_are_of_those_let_in() -> None:
    """M/M/1/2 at load 1: half of those admitted wait, e^-t of them longer than t: ¼ at ln 2."""
    assert formulas.wait_quantile(formulas.mmck(Inputs(1, 1), 2), 0.75) == pytest.approx(
        math.log(2)
    )


def test_of_a_stream_and_its_copy_the_copy_is_left_out() -> None:
    real = Stream("real", "one", (), drawn=("same",))
    assert distinct([real, replace(real, name="copy")], []) == [real]


def test_one_trace_under_two_settings_is_no_copy() -> None:
    one = Stream("one", "two slots", (), drawn=("same",))
    other = replace(one, group="three slots")
    assert distinct([one, other], []) == [one, other]


def test_three_jobs_have_two_gaps() -> None:
    """At 0, 2 and 4 s: one every 2 s."""
    found = fit([alone(3)])
    assert known(found.rate_per_s).value == 0.5


def test_slots_that_are_said_stand_above_those_told() -> None:
    assert fit([alone(3)], servers=3).servers == 3


def test_one_closed_stream_closes_its_group() -> None:
    assert fit([alone(3), replace(alone(4), arrivals={"kind": "closed"})]).closed


def test_time_over_two_attempts_gets_no_test_of_service_shape() -> None:
    told = alone(20)
    again = replace(told, jobs=(replace(told.jobs[0], attempts=2), *told.jobs[1:]))
    found = known(fit([again]).services)
    assert found.count == 19


def test_a_job_that_leaves_as_the_next_comes_leaves_none_behind() -> None:
    """The job that comes at 2 s never ends, yet the time before it is known."""
    found = known(little(columns(of((0, 0, 2), (2, 2, None)))))
    assert (found.jobs, found.end_s) == (1, 2)


def test_an_end_without_a_start_is_no_response() -> None:
    assert np.isnan(columns(of((0, None, 6))).end).all()


def test_replicas_and_attempts_of_a_list_are_read() -> None:
    (found,) = parse_jobs("job,submit_s,replicas,attempts\n1,0,2,3\n2,1,,\n", "made.csv")
    assert [(job.replicas, job.attempts) for job in found.jobs] == [(2, 3), (1, 1)]


def test_the_last_arrival_is_given_and_no_evidence_on_the_rate() -> None:
    """Four streams at 0, ¼ and 1: places are ¼ alone, and what is uniform lies ¾ above it."""
    found = known(fitting.arrivals_shape([np.array([0, 0.25, 1])] * 4))
    assert next(test.statistic for test in found.tests if "constant" in test.asks) == pytest.approx(
        0.75
    )


def test_a_standard_error_is_in_the_units_of_its_value() -> None:
    """Of a logarithm's interval value·e^(±t·s) it is value·s; four runs, t = 3.182."""
    made = [columns(of((0, 0, 1), (0, wait, 5))) for wait in (1.0, 2.0, 3.0, 4.0)]
    found = known(estimate(lambda sums: sums["wait_s"] / sums["wait_n"], sums_of(made)))
    assert found.se == pytest.approx(
        found.value * math.log(found.value / known(found.low)) / 3.182446305
    )


@pytest.mark.parametrize(
    ("high", "short", "word"),
    [(1.08, True, "open"), (1.2, True, "differs"), (1.08, False, "agrees")],
)
def test_in_short_runs_what_may_lie_within_the_margin_is_open(
    high: float, word: str, *, short: bool
) -> None:
    assert _word(Figure(1.05, 1.01, high), 0.1, short=short) == word


@pytest.mark.parametrize("slots", [1, 2])
def test_measured_over_predicted_is_the_ratio_of_each_priority(slots: int) -> None:
    """Cobham's formula is exact with one server."""
    found = validated(
        MadeStream(rate_per_s=2, slots=slots, priorities={1: 0.3, 2: 0.7}, policy="priority")
    )
    some = [one for one in found.held if one.model == "Cobham"]
    assert [one.priority for one in some] == [1, 2]
    for one in some:
        sums = found.fit.sums
        measured = sums[f"wait_s {one.priority}"].sum() / sums[f"wait_n {one.priority}"].sum()
        assert one.predicted_s * known(one.ratio).value == pytest.approx(measured)
        assert one.exact == (slots == 1)


def test_kinds_stand_by_priority_their_waits_in_one_unit() -> None:
    """Loads .3 and .2 of 10 ms: W₀ = 5 ms; 5/.7 = 7.14 ms and 5/(.7 · .5) = 14.3 ms."""
    some = [formulas.parse(one) for one in ("2:20:0.01", "1:30:0.01")]
    page = text.render(prioritised([(1, non_preemptive(some))], preemptive=False))
    head, first, second = page.splitlines()[3:6]
    assert "wait ms" in head
    assert (first.split()[0], first.split()[5]) == ("1", "7.14")
    assert (second.split()[0], second.split()[5]) == ("2", "14.3")
