"""Little's law on runs: exact where applicable, not applied where the last departure is unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.queue_fits import JobColumns, columns, little, most_held
from analysis.studies.jobs.records import JobRun, Stream
from tests.analysis.answers import known

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

TIMES = st.floats(0, 100, allow_subnormal=False)
JOBS = st.lists(st.tuples(TIMES, TIMES, TIMES), min_size=1, max_size=40)


def of(*jobs: tuple[float | None, float | None, float | None]) -> JobColumns:
    return columns(
        Stream(
            "made",
            "made",
            tuple(JobRun(at, one[0], None, one[1], one[2]) for at, one in enumerate(jobs)),
        )
    )


def test_two_jobs_by_hand() -> None:
    """0-2 at once, 1-4 after 1 s: over 4 s, N = 5/4, of them waiting 1/4; λ = ½, R = 2½, W = ½."""
    found = known(little(of((0, 0, 2), (1, 2, 4))))
    assert (found.begin_s, found.end_s, found.jobs, found.busy) == (0, 4, 2, 1)
    numbers = {law.part: (law.number, law.rate_times_time) for law in found.laws}
    assert numbers == {"in all": (1.25, 1.25), "waiting": (0.25, 0.25), "in service": (1.0, 1.0)}


@given(jobs=JOBS)
def test_it_holds_whatever_jobs_do(jobs: list[tuple[float, float, float]]) -> None:
    made = of(*((submit, submit + wait, submit + wait + service) for submit, wait, service in jobs))
    found = little(made)
    if found is None:  # all at once, and gone at once
        assert np.ptp(made.submit) == 0
        assert (made.end == made.submit).all()
        return
    assert found.jobs == len(jobs)
    assert max(law.off for law in found.laws) < 1e-9


@given(jobs=JOBS, lost=st.integers(0, 39))
def test_with_a_job_that_never_ends_it_is_of_the_time_before(
    jobs: list[tuple[float, float, float]], lost: int
) -> None:
    """Until the queue was last empty, at the latest when the lost job came."""
    made = [(submit, submit + wait, submit + wait + service) for submit, wait, service in jobs]
    here = lost % len(made)
    cut = made[here][0]
    found = little(of(*made[:here], (cut, cut, None), *made[here + 1 :]))
    if found is not None:
        assert found.end_s <= cut
        assert max(law.off for law in found.laws) < 1e-9
        assert not any(
            submit < found.end_s < end for submit, _, end in made[:here] + made[here + 1 :]
        )


def test_how_many_slots_were_held_at_once() -> None:
    assert most_held(of((0, 0, 2), (1, 2, 4))) == 1  # one ends as the other begins
    assert most_held(of((0, 0, 2), (1, 1.9, 4))) == 2
    assert most_held(of((0, None, None))) == 0


def test_what_is_wrong_with_a_job_is_named(snapshot: SnapshotAssertion) -> None:
    """Beside job 1, which came at 0 and ended at 2 s."""
    odd = {
        "started before it came": JobRun(7, 5.0, None, 4.0, 6.0),
        "ended before it started": JobRun(7, 5.0, None, 6.0, 5.5),
        "started before it was admitted": JobRun(7, 5.0, 6.0, 5.5, 7.0),
        "ended before it was admitted": JobRun(7, 5.0, 6.0, None, 5.5),
        "ended before it came": JobRun(7, 5.0, None, None, 4.0),
        "never started": JobRun(7, 5.0),
        "admitted alone": JobRun(7, 5.0, 5.0),
        "started alone": JobRun(7, 5.0, None, 5.0),
        "ended alone": JobRun(7, 5.0, None, None, 6.0),
        "never came": JobRun(7, None, None, 5.0, 6.0),
        "twice": JobRun(1, 5.0, None, 5.0, 6.0),
        "failed": JobRun(7, 5.0, None, 5.0, 6.0, "failed"),
        "killed": JobRun(7, 5.0, None, 5.0, 6.0, "killed"),
        "wide": JobRun(7, 5.0, None, 5.0, 6.0, replicas=2),
    }
    first = JobRun(1, 0.0, None, 0.0, 2.0)
    found = {
        case: columns(Stream("made", "made", (first, job))).findings for case, job in odd.items()
    }
    trace = Stream("made", "made", tuple(JobRun(at, float(at)) for at in range(9)))
    found["nine that never started"] = columns(trace).findings
    assert found == snapshot
    assert columns(replace(trace, measured=False)).findings == ()
