"""Measured waits against predictions: agreement, difference, and no verdict without grounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from analysis.studies.jobs.queue_fits import Fit, fit
from analysis.studies.jobs.queue_formulas import Inputs
from analysis.studies.jobs.queues import ModelCheck, WaitValidation, validate
from analysis.studies.jobs.records import JobRun, Stream
from tests.analysis.answers import known
from tests.analysis.studies.jobs.queues.made_streams import MadeStream, constant, heavy
from tests.analysis.studies.jobs.queues.test_fitting import stream

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


LONG = MadeStream(jobs=4000)
SHORT = MadeStream(jobs=400)


def of(
    made: MadeStream, runs: int = 8, margin: float = 0.1, planned: Inputs | None = None
) -> WaitValidation:
    made_of = [stream(made, 7000 + at) for at in range(runs)]
    return validate(fit(made_of), made_of, margin, planned)


def model(found: WaitValidation, name: str) -> ModelCheck:
    return next(one for one in found.held if one.model == name)


def test_an_m_m_2_agrees_with_erlang() -> None:
    found = of(LONG, 5, margin=0.2)
    erlang = model(found, "M/M/2")
    assert erlang.chosen
    assert known(erlang.ratio).value == pytest.approx(1, abs=0.06)
    assert erlang.verdict == "agrees"
    assert found.notes == ()


def test_six_hundred_jobs_lie_within_3_standard_errors_of_plan() -> None:
    """The demand on a run of this machine, here without any error of it."""
    found = of(MadeStream(), 5, planned=Inputs(6, 0.2, 2))
    erlang = model(found, "M/M/2")
    assert erlang.predicted_s == pytest.approx(0.1125)
    assert abs(known(erlang.z)) < 3


def test_heavy_tails_differ_from_erlang_not_from_allen_cunneen() -> None:
    """Squared coefficient of variation 4: waits are two and a half times those of an M/M/2."""
    found = of(replace(LONG, services=heavy), 5)
    assert model(found, "M/M/2").verdict == "differs"
    general = model(found, "G/G/2 Allen-Cunneen")
    assert general.chosen
    assert general.verdict in {"agrees", "open"}
    assert not general.exact


def test_one_server_with_equal_services_is_pollaczek_khinchine() -> None:
    found = of(replace(LONG, rate_per_s=3.5, slots=1, services=constant), 5, margin=0.2)
    assert model(found, "M/G/1").chosen
    assert model(found, "M/G/1").verdict == "agrees"
    assert model(found, "M/M/1").verdict == "differs"


def test_too_much_work_has_no_stationary_figure() -> None:
    found = of(replace(LONG, jobs=2000, rate_per_s=12), 3)
    assert found.held == ()
    assert found.unstable


def test_too_short_waits_in_short_runs_are_no_difference() -> None:
    """The planned load .99 takes hours to settle: starting empty, runs measure shorter waits."""
    short, long = (
        model(of(MadeStream(), 5, planned=Inputs(rate, 0.2, 2)), "M/M/2") for rate in (9.9, 1.0)
    )
    assert known(known(short.ratio).high) < 1
    assert (short.verdict, long.verdict) == ("open", "differs")


def test_nobody_waits_and_nobody_was_to() -> None:
    """Equal gaps, equal services, half the load: no ratio, no z, no verdict of a wait that is 0."""
    found = of(MadeStream(rate_per_s=2.5, slots=1, gaps=constant, services=constant), 3)
    general = model(found, "G/G/1 Kingman")
    assert (general.predicted_s, general.ratio, general.verdict) == (0, None, "not judged")


def test_what_carries_no_verdict_says_why(snapshot: SnapshotAssertion) -> None:
    made = [stream(SHORT, 7000 + at) for at in range(3)]

    def first(job: JobRun) -> list[Stream]:
        return [replace(one, jobs=(job, *one.jobs[1:])) for one in made]

    def each(**changed: Any) -> list[Stream]:
        return [replace(one, **changed) for one in made]

    fitted = fit(made)
    situations: dict[str, Fit | list[Stream]] = {
        "one run": fit(made[:1]),
        "policy sjf": each(policy="sjf"),
        "policy fair_share": each(policy="fair_share"),
        "wide jobs": first(replace(made[0].jobs[0], replicas=2)),
        "load may be 1": replace(fitted, load=replace(known(fitted.load), high=1.02)),
        "never started": first(JobRun(0, 0.5, outcome="never started")),
        "never ended": first(JobRun(0, 0.5, 0.6, 0.6, outcome="never ended")),
        "ended before it started": first(JobRun(0, 0.5, 0.6, 0.6, 0.1, "done")),
        "tried again": first(JobRun(0, 0.1, 0.6, 0.6, 9.0, "done", attempts=2)),
        "faults": each(fault="cpu_hog"),
        "closed": each(arrivals={"kind": "closed"}),
        "slots unknown": each(slots=None),
        "a trace": [
            replace(
                one,
                measured=False,
                jobs=tuple(JobRun(job.number, job.submit_s) for job in one.jobs),
            )
            for one in made
        ],
    }
    notes = {}
    for name, case in situations.items():
        streams = made if isinstance(case, Fit) else case
        found = validate(case if isinstance(case, Fit) else fit(case), streams, 0.1)
        assert {one.verdict for one in found.held} <= {"not judged"}, name
        assert not found.unstable
        notes[name] = found.notes
    assert notes == snapshot
