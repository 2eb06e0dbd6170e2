"""A run on a cluster says so wherever it is read: where, by whom its nodes were changed, as what its workloads ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from analysis.load import from_json
from analysis.report.view import _measure
from analysis.table import render_table
from analysis.wording import place_of
from tests.synthetic import Made, saved_run

if TYPE_CHECKING:
    from analysis.terms import Run


def on_cluster(*nodes: str) -> Run:
    saved: dict[str, Any] = saved_run(Made())
    saved["machine_info"]["deeptweak"]["kubernetes"] = {"version": "v1.34.4"}
    for at, benchmark in enumerate(saved["benchmarks"]):
        ways = {"apply": "agent", "workload_via": "job", "host_network": False, "api_requests": 5, "image": "registry.example/deeptweak:1"}
        benchmark["extra_info"] |= {"target": "kubernetes", "node": nodes[at % len(nodes)], "place": ways}
    return from_json(saved, "here")


@pytest.mark.parametrize(("nodes", "begins"), [(("a",), "node a of Kubernetes v1.34.4"), (("b", "a"), "nodes a, b of Kubernetes v1.34.4")])
def test_where_it_ran_is_one_line(nodes: tuple[str, ...], begins: str) -> None:
    assert place_of(on_cluster(*nodes)) == f"{begins}, tweaks by agent, workloads by job"


def test_the_table_has_it_below_the_machine() -> None:
    assert "Node a of Kubernetes v1.34.4, tweaks by agent" in render_table([], [on_cluster("a")])


def test_a_run_on_the_harness_own_machine_says_nothing() -> None:
    assert place_of(from_json(saved_run(Made()), "here")) == ""


def test_the_command_to_do_it_again_does_not_turn_to_this_machine() -> None:
    """Typed as root without its target, it would change the reader's own kernel."""
    command = _measure(on_cluster("a")) or ""
    assert "--target=kubernetes --apply=agent --workload-via=job --image=registry.example/deeptweak:1" in command
