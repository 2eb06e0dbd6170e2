"""A run on a cluster says so wherever it is read: where, by whom its nodes were changed, as what its workloads ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.compare_answer import answer_of
from analysis.load import from_json
from analysis.render.text import render
from analysis.report.view import _measure
from analysis.wording import place_of
from tests.synthetic import Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.terms import Run


def on_cluster(*nodes: str) -> Run:
    saved: dict[str, Any] = saved_run(Made())
    saved["machine_info"]["deeptweak"]["kubernetes"] = {"version": "v1.34.4"}
    for at, benchmark in enumerate(saved["benchmarks"]):
        ways = {"apply": "agent", "workload_via": "job", "host_network": False, "api_requests": 5, "image": "registry.example/deeptweak:1"}
        benchmark["extra_info"] |= {"target": "kubernetes", "node": nodes[at % len(nodes)], "place": ways}
    return from_json(saved, "here")


def test_where_it_ran_is_one_line(snapshot: SnapshotAssertion) -> None:
    """And the command to do it again does not turn to this machine: typed as root, it would change the reader's own kernel."""
    assert [place_of(on_cluster(*nodes)) for nodes in (("a",), ("b", "a"))] + [_measure(on_cluster("a"))] == snapshot
    assert place_of(from_json(saved_run(Made()), "here")) == ""


def test_the_table_has_it_below_the_machine() -> None:
    assert "Node a of" in render(answer_of([], [on_cluster("a")]))
