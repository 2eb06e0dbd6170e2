"""Replicas per job: a few are measured on the engine, and a law fitted to them chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fixtures.studies.jobs import scaled
from fixtures.studies.jobs.terms import JobClass, Planned, Size
from fixtures.terms import Refused
from tests.jobs.made_jobs import Made

SLEEPS = JobClass("sleep", "sleep", Size("exponential", 1.0), params={"serial": 0.1})
JOBS = [
    Planned(at, SLEEPS, float(at), work, seed=at) for at, work in enumerate((0.5, 1.0, 2.0, 4.0))
]


class Amdahl(Made):
    """An engine whose jobs take what Amdahl says, 7 s after they were admitted."""

    def __init__(self, *, outcome: str = "done") -> None:
        super().__init__()
        self._outcome, self.known = outcome, list[Planned]()

    def submit(self, job: Planned) -> None:
        self.known.append(job)
        super().submit(job)

    def _plan(self, job: Planned, attempt: int, at_s: float, done_work: float) -> None:
        del attempt, done_work
        took_s = 0.3 + job.work * (0.1 + 0.9 / job.replicas)
        self.later(at_s + 7, "started", job.job)
        self.later(
            at_s + 7 + took_s, "ended", job.job, outcome=self._outcome, reason="it was told to"
        )


def chosen(engine: Amdahl, target_s: float = 1.0) -> tuple[list[Planned], dict[str, Any]]:
    told: dict[str, Any] = {}
    return scaled.with_chosen_replicas(JOBS, engine, target_s, 4, told.__setitem__), told["scale"]


def test_each_job_gets_the_replicas_nearest_to_its_target_time() -> None:
    """0.3 + w·(0.1 + 0.9/n): 0.5 takes 0.8 on 1, 1.0 0.85 on 2, 2.0 0.95 and 4.0 1.6 on 4."""
    found, told = chosen(Amdahl())
    assert [one.replicas for one in found] == [1, 2, 4, 4]
    assert [replace(one, replicas=1) for one in found] == JOBS
    assert told["laws"]["sleep"]["law"]["startup_s"] == pytest.approx(0.3, rel=0.01)
    assert told["reachable"] == pytest.approx(0.25)


def test_profiles_cover_1_2_and_all_replicas_at_two_sizes_twice() -> None:
    engine = Amdahl()
    _, told = chosen(engine)
    assert sorted((one.replicas, one.work) for one in engine.known) == sorted(
        (many, size * 1.875) for many in (1, 2, 4) for size in (0.5, 1.5) for _ in range(2)
    )
    assert {one.job for one in engine.known}.isdisjoint(one.job for one in JOBS)
    assert [attempt for _, attempt, *_ in engine.admitted] == [1] * 12
    assert len(told["profile"]["sleep"]) == 12
    assert told["profile_node_s"] == pytest.approx(
        sum(row["replicas"] * row["time_s"] for row in told["profile"]["sleep"])
    )


def test_a_measured_job_that_fails_ends_it_with_its_reason() -> None:
    with pytest.raises(
        Refused, match="A measured job of class sleep ended as failed: it was told to"
    ):
        chosen(Amdahl(outcome="failed"))


def test_a_measured_job_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaled, "PATIENCE_S", 0.0)
    with pytest.raises(Refused, match="did not end within 0 s"):
        chosen(Amdahl())
