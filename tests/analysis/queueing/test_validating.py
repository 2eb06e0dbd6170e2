"""Measured waits against predictions: what agrees is called so, what differs too, and what cannot be judged is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.queueing.fitting import fit
from analysis.queueing.terms import Inputs, Job
from analysis.queueing.validating import Held, Validation, validate
from tests.analysis.queueing.made_streams import MadeStream, constant, heavy
from tests.analysis.queueing.test_fitting import stream

LONG = MadeStream(jobs=4000)


def of(made: MadeStream, runs: int = 8, margin: float = 0.1, planned: Inputs | None = None) -> Validation:
    made_of = [stream(made, 7000 + at) for at in range(runs)]
    return validate(fit(made_of), made_of, margin, planned)


def model(found: Validation, name: str) -> Held:
    return next(one for one in found.held if one.model == name)


def test_an_m_m_2_agrees_with_erlang() -> None:
    found = of(LONG, 12)
    erlang = model(found, "M/M/2")
    assert erlang.chosen
    assert erlang.ratio is not None
    assert erlang.ratio.value == pytest.approx(1, abs=0.06)
    assert erlang.verdict == "agrees"
    assert found.notes == ()


def test_six_hundred_jobs_lie_within_three_standard_errors_of_what_was_planned() -> None:
    """The demand on a run of this machine, here without any error of it."""
    found = of(MadeStream(), 5, planned=Inputs(6, 0.2, 2))
    erlang = model(found, "M/M/2")
    assert erlang.predicted_s == pytest.approx(0.1125)
    assert erlang.z is not None
    assert abs(erlang.z) < 3


def test_heavy_tails_differ_from_erlang_and_not_from_allen_and_cunneen() -> None:
    """Squared coefficient of variation 4: waits are two and a half times those of an M/M/2."""
    found = of(replace(LONG, services=heavy))
    assert model(found, "M/M/2").verdict == "differs"
    general = model(found, "G/G/2 Allen-Cunneen")
    assert general.chosen
    assert general.verdict in {"agrees", "open"}
    assert not general.exact


def test_one_server_with_equal_services_is_pollaczek_and_khinchine() -> None:
    found = of(replace(LONG, rate_per_s=3.5, slots=1, services=constant), 10)
    assert model(found, "M/G/1").chosen
    assert model(found, "M/G/1").verdict == "agrees"
    assert model(found, "M/M/1").verdict == "differs"


def test_one_run_carries_no_verdict() -> None:
    found = of(MadeStream(), 1)
    assert {one.verdict for one in found.held} == {"not judged"}
    assert any("3 runs or more" in note for note in found.notes)
    assert found.held[0].ratio is not None
    assert found.held[0].ratio.low is not None


def test_priorities_are_held_against_cobham() -> None:
    found = of(replace(LONG, priorities={1: 0.3, 2: 0.7}, policy="priority"))
    first, second = (one for one in found.held if one.model == "Cobham")
    assert (first.priority, second.priority) == (1, 2)
    assert first.predicted_s < second.predicted_s
    assert {first.verdict, second.verdict} <= {"agrees", "open"}
    assert model(found, "M/M/2").verdict == "not judged"


@pytest.mark.parametrize("policy", ["sjf", "fair_share"])
def test_a_policy_that_is_not_first_come_first_served_is_not_judged(policy: str) -> None:
    found = of(replace(MadeStream(), policy=policy), 3)
    assert {one.verdict for one in found.held} == {"not judged"}
    assert any(f"policy {policy}" in note for note in found.notes)


def test_jobs_that_take_several_slots_are_not_judged() -> None:
    made = [stream(MadeStream(), 7000 + at) for at in range(3)]
    wide = [replace(one, jobs=(replace(one.jobs[0], replicas=2), *one.jobs[1:])) for one in made]
    found = validate(fit(wide), wide, 0.1)
    assert {one.verdict for one in found.held} == {"not judged"}
    assert any("several slots at once" in note for note in found.notes)


def test_runs_too_short_to_settle_are_said() -> None:
    """Load .9 in two slots: .1/(1 - √.9)² = 38 s; 600 jobs come in 67 s. At .6 it is 2 s of 100."""
    assert any(
        "runs are short: at this load a queue takes some" in note for note in of(MadeStream(rate_per_s=9), planned=Inputs(9, 0.2, 2)).notes
    )
    assert not any("runs are short" in note for note in of(MadeStream()).notes)


def test_too_much_work_has_no_stationary_figure() -> None:
    """Twelve a second where ten can be done: each job waits 1/10 - 1/12 s longer than the one before it."""
    found = of(replace(LONG, rate_per_s=12), 3)
    assert found.held == ()
    assert "there is no stationary figure" in found.unstable
    assert found.growth_s == pytest.approx(1 / 10 - 1 / 12, rel=0.1)


def test_a_load_that_may_be_one_is_said() -> None:
    found = of(MadeStream(rate_per_s=9.6, jobs=100), 3)
    assert found.unstable or any("the load may be 1 or more" in note for note in found.notes)


def test_a_load_that_may_be_one_carries_no_verdict() -> None:
    made = [stream(MadeStream(), 7000 + at) for at in range(3)]
    found = fit(made)
    assert found.load is not None
    told = validate(replace(found, load=replace(found.load, high=1.02)), made, 0.1)
    assert {one.verdict for one in told.held} == {"not judged"}
    assert any("no verdict: the load may be 1 or more" in note for note in told.notes)


def test_in_short_runs_waits_that_are_too_short_are_no_difference() -> None:
    """Planned is a load of .99, which takes hours to settle: it begins empty, and what it settles to is more than was measured."""
    short, long = (model(of(MadeStream(), 5, planned=Inputs(rate, 0.2, 2)), "M/M/2") for rate in (9.9, 1.0))
    assert short.ratio is not None
    assert short.ratio.high is not None
    assert short.ratio.high < 1
    assert (short.verdict, long.verdict) == ("open", "differs")


def test_a_closed_stream_is_held_against_no_open_queue() -> None:
    made = [replace(stream(MadeStream(), 7000 + at), arrivals={"kind": "closed"}) for at in range(3)]
    found = validate(fit(made), made, 0.1)
    assert found.held == ()
    assert found.unstable == ""
    assert "no open queue's model" in found.notes[0]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (Job(1, 0.5, outcome="never started"), "of 3 jobs it is not known how long"),
        (Job(1, 0.5, 0.6, 0.6, outcome="never ended"), "of 3 jobs it is not known how long"),
        (Job(1, 0.5, 0.6, 0.6, 0.1, "done"), "of 3 jobs it is not known how long"),
        (Job(1, 0.5, 0.6, 0.6, 9.0, "done", attempts=2), "jobs were tried again"),
    ],
)
def test_streams_that_do_not_tell_all_carry_no_verdict(job: Job, said: str) -> None:
    made = [stream(MadeStream(), 7000 + at) for at in range(3)]
    some = [replace(one, jobs=(one.jobs[0], job, *one.jobs[2:])) for one in made]
    found = validate(fit(some), some, 0.1)
    assert {one.verdict for one in found.held} == {"not judged"}
    assert any(said in note for note in found.notes)


def test_streams_with_faults_carry_no_verdict() -> None:
    made = [replace(stream(MadeStream(), 7000 + at), fault="cpu_hog") for at in range(3)]
    found = validate(fit(made), made, 0.1)
    assert {one.verdict for one in found.held} == {"not judged"}
    assert any("cpu_hog struck" in note for note in found.notes)


def test_waves_of_arrivals_are_said() -> None:
    made = [stream(MadeStream(), 7000 + at) for at in range(3)]
    found = fit(made)
    assert found.arrivals is not None
    refused = tuple(replace(test, p_adjusted=0.001) for test in found.arrivals.tests)
    told = validate(replace(found, arrivals=replace(found.arrivals, tests=refused)), made, 0.1)
    assert any("arrivals come in waves" in note for note in told.notes)


def test_nobody_waits_and_nobody_was_to() -> None:
    """Equal gaps, equal services, half the load: no ratio, no z, no verdict of a wait that is 0."""
    found = of(MadeStream(rate_per_s=2.5, slots=1, gaps=constant, services=constant), 3)
    general = model(found, "G/G/1 Kingman")
    assert (general.predicted_s, general.ratio, general.verdict) == (0, None, "not judged")


def test_without_slots_no_model_can_be_asked() -> None:
    made = [replace(stream(MadeStream(), 1), slots=None)]
    assert validate(fit(made), made, 0.1).notes == ("nothing tells how many slots there are (--servers): no model can be asked.",)
    trace = [replace(stream(MadeStream(), 1), measured=False, jobs=tuple(replace(job, start_s=None, end_s=None) for job in made[0].jobs))]
    assert "when jobs got a slot" in validate(fit(trace), trace, 0.1).notes[0]
