"""Streams with faults from saved runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from analysis.load import from_json
from analysis.studies.jobs.records import Fault, Outage, Stream, streams
from analysis.studies.jobs.recovery import after, shared, totals
from tests.analysis.studies.jobs.dependability.made_faults import (
    Faulty,
    faulty_run,
    report,
    told_run,
)
from tests.analysis.studies.jobs.dependability.made_streams import attempt, job, stream

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


KILLS = Faulty(":retries=3:fault=kill:fault_rate_per_s=1", "kill", mtbf_s=1.0, retries=3, jobs=20)


def read(made: Any) -> tuple[list[Stream], list[str]]:
    refused: list[str] = []
    return streams(from_json(made, "run.json"), refused), refused


def changed(
    change: Callable[[dict[str, list[dict[str, Any]]]], object],
) -> tuple[list[Stream], list[str]]:
    told = report(KILLS)
    change(told)
    return read(told_run({(KILLS.workload, 1): told}))


def test_a_stream_is_read_whole() -> None:
    (plain, faulty), refused = read(faulty_run([Faulty(jobs=20), KILLS], blocks=1))
    assert refused == []
    assert (
        plain.condition
        == faulty.condition
        == (("arrivals", "poisson"), ("rate_per_s", "4"), ("slots", "2"))
    )
    assert (plain.fault, faulty.fault, faulty.fault_params) == (
        "",
        "kill",
        {"rate_per_s": "1", "retries": 3},
    )
    assert (faulty.unit[1], faulty.retries, faulty.slots, faulty.nodes) == (1, 3, 2, 1)
    assert len(faulty.jobs) == 20
    assert len(faulty.faults) == sum(one.outcome == "killed" for one in faulty.attempts) > 0
    assert [(one.number, one.work, one.planned_s) for one in plain.jobs] == [
        (one.number, one.work, one.planned_s) for one in faulty.jobs
    ]


def test_nodes_that_are_lost_are_paired_with_their_return() -> None:
    """In any order; a repeated return or loss adds nothing."""
    told = [
        ("b", 5, "lost"),
        ("a", 1, "back"),
        ("a", 2, "lost"),
        ("a", 3, "lost"),
        ("a", 4, "back"),
        ("a", 6, "lost"),
    ]
    rows = [{"node": node, "at_s": at, "what": what} for node, at, what in told]
    (found,), _ = changed(lambda report: report.update(node=rows))
    assert sorted(found.outages, key=lambda one: one.at_s) == [
        Outage("a", 2, 4),
        Outage("b", 5),
        Outage("a", 6),
    ]


CHANGES: dict[str, Callable[[dict[str, list[dict[str, Any]]]], object]] = {
    "no stream": lambda told: told["stream"].clear(),
    "no job": lambda told: told["job"].clear(),
    "no slot": lambda told: told["stream"][0].update(slots=0),
    "no node": lambda told: told["stream"][0].update(nodes=0),
    "a fault without a name": lambda told: told["stream"][0].update(fault={"name": "kill"}),
    "outcome lost": lambda told: told["job"][2].update(outcome="lost"),
    "end 1e12": lambda told: told["job"][2].update(end_s=1e12),
    "-1 s lost": lambda told: told["job"][2].update(lost_s=-1),
    "accuracy nan": lambda told: told["job"][2].update(result={"accuracy": float("nan")}),
    "end late": lambda told: told["attempt"][1].update(end_s="late"),
    "a fault at no time": lambda told: told["fault"][0].pop("at_s"),
    "a node gone": lambda told: told.update(node=[{"node": "a", "at_s": 1, "what": "gone"}]),
    "a node lost at no time": lambda told: told.update(node=[{"node": "a", "what": "lost"}]),
}


def test_what_is_not_as_it_must_be_refuses_its_cell_by_name(snapshot: SnapshotAssertion) -> None:
    lines = {}
    for case, change in CHANGES.items():
        found, (lines[case],) = changed(change)
        assert found == []
    assert lines == snapshot


def test_a_cell_that_failed_is_said_and_others_are_read() -> None:
    made = faulty_run([Faulty(jobs=20), KILLS], blocks=1)
    gone = made["benchmarks"].pop()["extra_info"]["id"]
    for cell in made["deeptweak"]["cells"]:
        if cell["id"] == gone:
            cell |= {"outcome": "failed", "reason": "the engine died."}
    found, (line,) = read(made)
    assert len(found) == 1
    assert f"{gone} failed" in line


def test_a_node_away_before_or_after_all_jobs_loses_no_time() -> None:
    """Jobs from 2 to 10 s on two nodes: 2 s of the one and 1 s of the other, of 16."""
    made = stream([job(0, 2, 10)], outages=[Outage("a", 0, 4), Outage("b", 9, 20)], nodes=2)
    assert totals(made).available == pytest.approx(1 - 3 / 16)


@pytest.mark.parametrize(("off_s", "many"), [(1e-7, 1), (1e-4, 0)])
def test_a_plan_is_the_same_to_the_microsecond(off_s: float, many: int) -> None:
    one = job(0, 0, 1)
    assert len(shared(stream([one]), stream([replace(one, planned_s=off_s)]))) == many


@pytest.mark.parametrize(("end_s", "hits"), [(1.7, [1]), (1.0, [])])
def test_a_kill_hit_only_what_ended_just_before_its_report(end_s: float, hits: list[int]) -> None:
    tried = [attempt(0, 1, 0.5, end_s, "killed"), attempt(0, 2, 2.5, 4)]
    assert [
        one.hit
        for one in after(
            stream([job(0, 0, 4)], tried, [Fault("kill", 2, 2, "a", 0)], fault="kill"), None
        )
    ] == hits
