"""Beside a cell's workload: a lost agent always fails the cell; missing samples do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import pytest

from fixtures.kubernetes.agent import AgentLost
from fixtures.kubernetes.target import AgentThread
from fixtures.terms import Order, Refused, WorkloadRun
from fixtures.workloads import load

if TYPE_CHECKING:
    from fixtures.kubernetes.node import HeldNode

Json = dict[str, Any]
LOST = "the agent on node n is lost: its pod was deleted"
SOMAXCONN = "/proc/sys/net/core/somaxconn"
WELL = WorkloadRun((), {}, {}, 0, None)
TELEMETRY = {
    "columns": {},
    "summary": {},
    "missing": {},
    "hz": 10.0,
    "sampler_cpu_s": 0.1,
    "devices": {},
}


class Answers:
    """In place of a held node: its agent's answers, of which the last verbs' are errors."""

    def __init__(self, **errors: Exception) -> None:
        self.errors = errors

    def ask(self, do: str, **_: object) -> Json:
        if do in self.errors:
            raise self.errors[do]
        answers: dict[str, Json] = {
            "sample_begin": {"pid": 7, "limits": {}, "settings": {"Nice": "5"}},
            "values": {SOMAXCONN: "77"},
            "sample_end": TELEMETRY,
        }
        return answers.get(do, {})


def order(settings: Mapping[str, str] | None) -> Order:
    return Order(load("idle"), 5, 1, 1, process=settings or {})


def cell(
    in_force: dict[str, str | None], settings: Mapping[str, str] | None = None, **errors: Exception
) -> tuple[WorkloadRun, Mapping[str, str]]:
    beside = AgentThread(
        cast("HeldNode", Answers(**errors)), in_force, "fixtures.workloads.", order(settings)
    )
    beside.begin({"metadata": {"uid": "u"}})
    assert beside._thread is not None
    beside._thread.join()
    run, telemetry = beside.end(WELL)
    return run, telemetry.missing


@pytest.mark.parametrize("in_force", [{}, {SOMAXCONN: "77"}], ids=["stock", "set"])
@pytest.mark.parametrize("verb", ["sample_begin", "sample_end"])
def test_an_agent_lost_during_a_cell_fails_it_stock_too(
    verb: str, in_force: dict[str, str | None]
) -> None:
    """Nobody held the node meanwhile: another namespace's run may have measured there as well."""
    lost = {verb: AgentLost(LOST)}
    if verb == "sample_begin":
        lost |= {"ping": AgentLost(LOST)}
    run, _ = cell(in_force, None, **lost)
    assert run.error == LOST


def test_what_cannot_be_sampled_is_missing_and_fails_nothing() -> None:
    """Telemetry is beside the measurement, never in its way."""
    run, missing = cell({}, sample_end=Refused("no sampler"))
    assert (run.error, missing) == (None, {"sampler": "no sampler"})


def test_a_cell_fails_if_the_agent_reads_another_process_value() -> None:
    run, _ = cell({}, {"Nice": "5"})
    assert (run.error, run.process_observed) == (None, {"Nice": "5"})
    run, _ = cell({}, {"Nice": "6"})
    assert run.error is not None
    assert run.error.startswith("Nice: requested '6'")


def test_settings_of_a_process_that_nobody_saw_fail_the_cell() -> None:
    beside = AgentThread(
        cast("HeldNode", Answers(sample_begin=Refused("not there"))),
        {},
        "fixtures.workloads.",
        order({"Nice": "5"}),
    )
    beside.begin({"metadata": {"uid": "u"}})
    assert "Nice could not be read back" in str(beside.end(WELL)[0].error)
