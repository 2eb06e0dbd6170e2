"""Fits return what streams were made with; intervals cover as promised; oddities are reported."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analysis.studies.jobs import queue_fits as fitting
from analysis.studies.jobs.csv_file import parse_jobs
from analysis.studies.jobs.queue_fits import Fit, fit
from analysis.studies.jobs.queue_formulas import Unstable
from analysis.studies.jobs.queues import chosen, predicted
from analysis.studies.jobs.records import JobRun, Stream
from analysis.terms import Refused
from tests.analysis.answers import known
from tests.analysis.studies.jobs.queues.made_streams import (
    MadeStream,
    as_csv,
    constant,
    heavy,
    rows,
)

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.jobs.estimates import Figure


@cache
def stream(made: MadeStream, seed: int) -> Stream:
    jobs = [
        JobRun(
            row["job"],
            row["submit_s"],
            None,
            row["start_s"],
            row["end_s"],
            priority=row["priority"],
        )
        for row in rows(made, seed)
    ]
    return Stream("made", "made", tuple(jobs), made.slots, made.engine, made.policy)


@cache
def of(made: MadeStream, runs: int = 4, seed: int = 1) -> Fit:
    return fit([stream(made, 100 * seed + at) for at in range(runs)])


def holds(one: Figure | None, truth: float) -> bool:
    return (
        one is not None
        and one.low is not None
        and one.high is not None
        and one.low <= truth <= one.high
    )


def test_a_queue_as_it_was_made() -> None:
    """Six a second of 0.2 s in two slots: load .6, C = .45, W_q = .45 · .2/(2 · .4) = .1125 s."""
    found = of(MadeStream(), 6)
    assert holds(found.rate_per_s, 6)
    assert holds(found.service_s, 0.2)
    assert holds(found.scv_arrivals, 1)
    assert holds(found.scv_service, 1)
    assert holds(found.load, 0.6)
    assert holds(found.p_wait, 0.45)
    assert holds(found.wait_s, 0.1125)
    assert holds(found.response_s, 0.3125)
    assert found.utilisation == pytest.approx(0.6, abs=0.03)
    assert len(found.sums) == 6
    assert found.findings == ()
    assert all(law is not None and max(part.off for part in law.laws) < 1e-9 for law in found.laws)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    """Five runs each: 38 of 40 intervals should hold the mean wait; 33 is a one-in-200 event."""
    found = [of(MadeStream(jobs=200), 5, seed) for seed in range(40)]
    assert sum(holds(one.wait_s, 0.1125) for one in found) >= 33
    assert sum(holds(one.rate_per_s, 6) for one in found) >= 33


def test_too_few_jobs_carry_no_interval() -> None:
    few = known(of(MadeStream(jobs=20), 1).rate_per_s)
    assert (few.low, few.why) == (None, "fewer than 3 runs: no interval")


@pytest.mark.parametrize(
    ("made", "arrivals", "services"),
    [
        (MadeStream(), False, False),
        (MadeStream(gaps=constant), True, False),
        (MadeStream(services=constant), False, True),
        (MadeStream(services=heavy), False, True),
    ],
)
def test_what_is_not_poisson_or_not_exponential_is_refused(
    made: MadeStream, *, arrivals: bool, services: bool
) -> None:
    found = of(made, 3)
    assert (bool(known(found.arrivals).refused), bool(known(found.services).refused)) == (
        arrivals,
        services,
    )


def test_distances_from_an_exponential_have_the_published_limits() -> None:
    """Stephens 1974: 5 % above 1.094, 1 % above 1.308; Lilliefors 1969, n = 20: 5 % above .234."""
    assert np.quantile(fitting._null(), [0.95, 0.99]) == pytest.approx([1.094, 1.308], abs=0.025)
    assert float(fitting._of_stephens(0.234, 20)) == pytest.approx(1.094, abs=0.015)


def test_a_doubling_rate_and_correlated_gaps_are_found() -> None:
    rng = np.random.default_rng(1)
    doubled = np.cumsum(
        np.concatenate([rng.standard_exponential(300), rng.standard_exponential(300) / 2])
    )
    waves = np.cumsum(rng.standard_exponential(600) * np.repeat(rng.choice([0.3, 1.7], 30), 20))
    for times, word in ((doubled, "constant"), (waves, "uncorrelated")):
        found = known(fitting.arrivals_shape([times]))
        assert any(word in test.asks for test in found.refused)


def test_a_trace_of_arrivals_gives_a_rate_and_no_service() -> None:
    (found,) = parse_jobs(as_csv(rows(MadeStream()), ("job", "submit_s")), "trace")
    made = fit([found])
    assert known(made.rate_per_s).value == pytest.approx(6, rel=0.1)
    assert (made.service_s, made.load, made.wait_s, made.utilisation, made.services) == (
        None,
        None,
        None,
        None,
        None,
    )
    assert made.findings == ()
    assert predicted(made, 2) == []


def test_what_a_fit_finds_wrong(snapshot: SnapshotAssertion) -> None:
    made = stream(MadeStream(jobs=200), 1)
    first, *others = made.jobs
    changed = {
        "as made": [made],
        "one slot, two held": [replace(made, slots=1)],
        "the last job never ended": [
            replace(
                made,
                jobs=(*made.jobs[:-1], replace(made.jobs[-1], end_s=None, outcome="never ended")),
            )
        ],
        "tried again": [replace(made, jobs=(replace(first, attempts=2), *others))],
        "slots differ": [made, replace(made, slots=3)],
        "engines differ": [made, replace(made, engine="simulated")],
        "one job": [replace(made, jobs=(first,))],
    }
    found: dict[str, object] = {}
    for case, streams in changed.items():
        try:
            found[case] = fit(streams).findings
        except Refused as error:
            found[case] = f"refused: {error}"
    assert found == snapshot


def test_predictions_hold_the_truth_and_answer_what_if() -> None:
    """On two slots .1125 s; on three W_q = C(3, 1.2)·.2/(3·.6), C = .141176."""
    found = of(MadeStream(), 6)
    two, three = predicted(found, 2), predicted(found, 3)
    assert [one.queue.model for one in two] == ["M/M/2", "G/G/2 Allen-Cunneen", "G/G/2 Sakasegawa"]
    assert holds(two[0].wait_s, 0.1125)
    assert holds(three[0].wait_s, 0.141176 * 0.2 / 1.8)
    with pytest.raises(Unstable):
        predicted(found, 1)


@pytest.mark.parametrize(
    ("made", "servers", "pick"),
    [
        (MadeStream(), 2, 0),
        (MadeStream(services=constant), 1, 1),
        (MadeStream(services=constant), 2, 1),
        (MadeStream(gaps=constant), 1, 2),
    ],
)
def test_the_simplest_model_whose_assumptions_stand_is_chosen(
    made: MadeStream, servers: int, pick: int
) -> None:
    found, why = chosen(of(made, 3), servers)
    assert found == pick
    assert ("neither" in why) == (pick == 0)


def test_the_time_between_two_attempts_is_no_service() -> None:
    """Job 5 was killed, its second attempt ended 100 s later: neither service nor a held slot."""
    told = stream(MadeStream(), 1)
    again = replace(
        told,
        jobs=tuple(
            replace(job, end_s=(job.end_s or 0) + 100, attempts=2) if job.number == 5 else job
            for job in told.jobs
        ),
    )
    found, clean = fit([again]), fit([told])
    assert known(found.service_s).value == pytest.approx(known(clean.service_s).value, rel=0.02)
    assert known(found.response_s).value == pytest.approx(known(clean.response_s).value + 100 / 600)
    assert found.laws == (None,)
