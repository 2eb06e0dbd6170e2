"""Dispatch a stream as planned and keep each job's outcome, on an engine with its own clock."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.jobs.queue_fits import columns, little, most_held
from analysis.studies.jobs.records import JobRun, Stream
from fixtures.studies.jobs.dispatcher import Dispatcher, Rules
from fixtures.studies.jobs.records import attempt_rows, job_row
from fixtures.studies.jobs.terms import Planned
from tests.jobs.made_jobs import Made, a_class, planned

Json = dict[str, Any]


class Ran:
    """A stream that ran: rows by job number in order of end, and all that was told beside them."""

    def __init__(
        self, jobs: Sequence[Planned], engine: Made, rules: Rules | None = None, **more: Any
    ) -> None:
        rules = rules or Rules(slots=1)
        self.told: list[tuple[str, Json]] = []
        runs = Dispatcher(
            jobs,
            engine,
            rules,
            lambda name, row: self.told.append((name, row)),
            **{"faults": Strikes([], engine), "clock": engine.clock, **more},
        )
        self.records = list(runs.records())
        self.rows = {one.job.job: job_row(one, closed=rules.closed) for one in self.records}
        self.attempts = {one.job.job: attempt_rows(one) for one in self.records}

    def of(self, *names: str) -> dict[int, tuple[Any, ...]]:
        return {number: tuple(row[name] for name in names) for number, row in self.rows.items()}


def test_jobs_wait_for_the_only_slot_in_order_of_arrival() -> None:
    """Three of 1 s, at 0, 0.5 and 5 s: the second waits for the first, and the third does not."""
    found = Ran(planned(0.0, 0.5, 5.0), Made())
    assert found.of("submit_s", "admit_s", "start_s", "end_s", "outcome") == {
        0: (0.0, 0.0, 0.0, 1.0, "done"),
        1: (0.5, 1.0, 1.0, 2.0, "done"),
        2: (5.0, 5.0, 5.0, 6.0, "done"),
    }
    assert found.of("cpu_s", "max_rss_mib", "throttled_s", "lost_s", "lost_work")[0] == (
        0.5,
        10.0,
        0.1,
        0.0,
        0.0,
    )


def test_in_a_closed_stream_a_job_comes_when_one_ends() -> None:
    """Two customers who do not think: two jobs at once, then one for each that ended.

    Nobody planned when.
    """
    found = Ran(planned(*[0.0] * 4), Made(), Rules(slots=2, closed=True))
    assert found.of("submit_s", "planned_submit_s") == {
        0: (0.0, None),
        1: (0.0, None),
        2: (1.0, None),
        3: (1.0, None),
    }


def test_a_job_that_was_killed_goes_on_from_its_checkpoint() -> None:
    """Killed 4 s after a start, 1 s after a checkpoint at 3 of 10: that second is lost.

    The rest takes 7 s, so it was a unit of work.
    """
    engine = Made()
    saved = (3.0, "checkpoint", {"done_work": 3.0, "cost_s": 0.25})
    engine.script[0, 1] = [
        (0.0, "started", {}),
        saved,
        (4.0, "ended", {"outcome": "killed", "reason": "it was killed", "done_work": 3.0}),
    ]
    found = Ran(planned(0.0, work=10.0), engine, Rules(slots=1, retries=1))
    assert engine.admitted == [(0, 1, 0.0, 100.0), (0, 2, 3.0, 104.0)]
    assert found.of("start_s", "end_s", "outcome", "attempts", "lost_s", "lost_work") == {
        0: (0.0, 11.0, "done", 2, 1.0, 1.0)
    }
    assert [
        (one["from_work"], one["done_work"], one["checkpoints"], one["outcome"])
        for one in found.attempts[0]
    ] == [
        (0.0, 3.0, 1, "killed"),
        (3.0, 10.0, 0, "done"),
    ]
    assert "safe_s" not in found.attempts[0][0], "what only we need is no field of a saved run"


@pytest.mark.parametrize(("other_s", "order"), [(6.9, [1, 0]), (7.1, [0, 1])])
def test_a_policy_sees_what_is_left_of_a_job(other_s: float, order: list[int]) -> None:
    """Predicted 10 s, 3 of 10 done: 7 s. The shortest first of two that wait when it has failed."""
    engine = Made()
    failed = {"outcome": "failed", "done_work": 3.0}
    engine.script[0, 1] = [
        (0.0, "started", {}),
        (3.0, "checkpoint", {"done_work": 3.0}),
        (4.0, "ended", failed),
    ]
    jobs = [
        *planned(0.0, work=10.0, predicted_s=10.0),
        Planned(1, a_class(), 1.0, other_s, 1, predicted_s=other_s),
    ]
    found = Ran(jobs, engine, Rules(slots=1, policy="sjf", retries=1))
    assert list(found.rows) == order


def test_a_job_that_never_ends_is_abandoned_with_all_that_wait() -> None:
    """Patience is counted from the last submission: 1 + 30 s. The one that ran is killed."""
    engine = Made()
    engine.script[0, 1] = [(0.0, "started", {})]
    found = Ran(planned(0.0, 1.0), engine, Rules(slots=1, patience_s=30.0))
    assert found.of("outcome", "admit_s", "end_s") == {
        0: ("never ended", 0.0, None),
        1: ("never started", None, None),
    }
    assert "given up 30 s after the last submission" in found.rows[0]["reason"]
    assert found.of("lost_s", "lost_work")[0] == (None, None), "nobody saw it end"
    assert engine.killed == [0]
    assert engine.now_s == 131.0
    assert found.attempts[0][0]["outcome"] == "never ended"
    assert found.attempts[1] == []


@pytest.mark.parametrize(("outcome", "lost"), [("done", 0.0), ("killed", None)])
def test_an_end_read_before_its_start_is_kept_as_read(outcome: str, lost: float | None) -> None:
    """Another machine's clock, say: the row has it, for the read side to name.

    What was lost is no time below 0, but not known.
    """
    engine = Made()
    engine.script[0, 1] = [
        (0.0, "started", {}),
        (1.0, "ended", {"outcome": outcome, "read_s": 95.0}),
    ]
    assert Ran(planned(0.0), engine).of("start_s", "end_s", "lost_s", "lost_work") == {
        0: (0.0, -5.0, lost, lost)
    }


def test_slots_of_a_node_that_is_lost_are_not_given_to_anybody() -> None:
    """Two nodes of one slot.

    Jobs 0 and 1 run; n1 is lost at 0.5 s with both jobs, as the engine has it, and is back at 1 s.
    """
    engine = Made(("n1", "n2"))
    strikes = Strikes([(0.5, lambda: engine.lose("n1")), (1.0, lambda: engine.back("n1"))], engine)
    found = Ran(planned(0.0, 0.0), engine, Rules(slots=2, retries=1), faults=strikes)
    assert [row["what"] for name, row in found.told if name == "node"] == ["lost", "back"]
    assert [(job, at_s) for job, _, _, at_s in engine.admitted] == [
        (0, 100.0),
        (1, 100.0),
        (0, 100.5),
        (1, 101.0),
    ]
    assert found.of("attempts", "end_s") == {0: (2, 1.5), 1: (2, 2.0)}


class Strikes:
    """Faults at times of their own, as `fixtures.studies.jobs.faults.Faults` has them."""

    def __init__(self, at: Sequence[tuple[float, Any]], engine: Made) -> None:
        self.at, self.engine, self.closed = list(at), engine, False

    def due_s(self) -> float | None:
        return self.at[0][0] if self.at else None

    def act(self, now_s: float) -> list[Json]:
        found = []
        while self.at and self.at[0][0] <= now_s:
            when, act = self.at.pop(0)
            act()
            found.append({"fault": "made", "at_s": when})
        return found

    def close(self) -> list[Json]:
        self.closed = True
        return [{"fault": "lasts"}]


def test_faults_are_told_those_that_last_at_the_end_too() -> None:
    engine = Made()
    strikes = Strikes([(0.25, lambda: None)], engine)
    found = Ran(planned(0.0), engine, faults=strikes)
    assert [row for name, row in found.told if name == "fault"] == [
        {"fault": "made", "at_s": 0.25},
        {"fault": "lasts"},
    ]
    assert strikes.closed


class Slow(Made):
    """Submitting to it takes a second."""

    def submit(self, job: Planned) -> None:
        super().submit(job)
        self.now_s += 1.0


def test_a_fault_is_at_the_time_at_which_it_strikes() -> None:
    """Due at once, and what had to be submitted before took a second."""
    engine, at = Slow(), list[float]()

    class Late(Strikes):
        def act(self, now_s: float) -> list[Json]:
            at.append(now_s)
            return super().act(now_s)

    Ran(planned(0.0), engine, faults=Late([(0.0, lambda: None)], engine))
    assert at == [1.0]


@given(
    gaps=st.lists(st.floats(0.0, 3.0), min_size=1, max_size=40),
    works=st.lists(st.floats(0.01, 5.0), min_size=40, max_size=40),
    slots=st.integers(1, 4),
    closed=st.booleans(),
)
def test_littles_law_holds_and_held_slots_never_exceed_the_limit(
    gaps: list[float],
    works: list[float],
    slots: int,
    closed: bool,  # noqa: FBT001 by its name
) -> None:
    """An identity over a time that begins and ends empty; 10⁻⁹ is rounding, 1 µs per row."""
    jobs = [
        Planned(number, a_class(), at_s, works[number], 1)
        for number, at_s in enumerate(accumulate(gaps))
    ]
    rows = Ran(jobs, Made(), Rules(slots=slots, closed=closed)).rows.values()
    stream = Stream(
        "s",
        "g",
        tuple(
            JobRun(
                row["job"], row["submit_s"], row["admit_s"], row["start_s"], row["end_s"], "done"
            )
            for row in rows
        ),
        slots,
    )
    law = little(columns(stream))
    assert law is not None
    assert law.jobs == len(jobs)
    assert max(one.off for one in law.laws) < 1e-9
    assert most_held(columns(stream)) <= slots
