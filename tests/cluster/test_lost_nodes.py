"""Nodes that a stream loses on a real kubelet: drained, stopped or taken; back at its end."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from fixtures.targets import _process
from fixtures.terms import BadInput, Order, Refused
from fixtures.workloads import load
from tests.cluster import kubelet
from tests.cluster.streams import LONG_S, Streams, job
from tests.sessions import HOUSE


def test_every_job_of_a_cell_ends_although_a_node_is_lost(streams: Streams) -> None:
    """End to end: planned arrivals, our decider, a node drained and back, never too many jobs."""
    name = (
        "job_stream:engine=jobs:rate_per_s=1:jobs=6:work=1:retries=3"
        ":fault=node:fault_at_s=3:fault_for_s=2"
    )
    result = _process.run(
        Order(
            load(name), 6, 0, 7, scratch=streams.folder, files={"job_cluster": streams.settings()}
        )
    )
    assert result.error is None
    told: Any = result.report
    jobs, attempts = told["job"], told["attempt"]
    assert [row["outcome"] for row in jobs] == ["done"] * 6
    assert [row["what"] for row in told["node"]] == ["lost", "back"]
    assert all(row["submit_s"] <= row["admit_s"] <= row["start_s"] <= row["end_s"] for row in jobs)
    away = [row["at_s"] for row in told["node"]]
    assert not [row for row in attempts if away[0] < row["admit_s"] < away[1]]
    assert {row["outcome"] for row in attempts} <= {"done", "killed"}
    assert sum(row["attempts"] for row in jobs) == len(attempts)
    running = sorted(
        (at_s, step) for row in attempts for at_s, step in ((row["admit_s"], 1), (row["end_s"], -1))
    )
    assert max(sum(step for _, step in running[:many]) for many in range(len(running) + 1)) <= 2
    assert told["stream"][0]["engine_facts"]["kubernetes"].startswith("v")


def test_a_drained_node_is_lost_and_comes_back(streams: Streams) -> None:
    """Only the stream's own pods are evicted; nothing begins there until it is back."""
    with streams.play() as play:
        [node] = play.engine.nodes
        play.start(job(0, LONG_S))
        play.engine.lose(node)
        with pytest.raises(Refused, match="is already lost"):
            play.engine.lose(node)
        with pytest.raises(BadInput, match="Unknown node 'nosuch'"):
            play.engine.lose("nosuch")
        end = play.end_of(0)
        assert end.outcome == "killed"
        assert "EvictionByEvictionAPI" in end.reason
        other = job(1, 0.1)
        play.engine.submit(other)
        with pytest.raises(Refused, match="only 0 of 2 are free"):
            play.engine.admit(other, 1, 0.0)
        play.engine.back(node)
        play.until(lambda: play.happened("node back"))
        play.engine.admit(other, 1, 0.0)
        assert play.end_of(1).outcome == "done"
        assert [one.what for one in play.events if one.job is None] == ["node lost", "node back"]


@pytest.mark.slow
def test_the_only_node_whose_kubelet_stops_takes_its_job_with_it(streams: Streams) -> None:
    """By the user's own command.

    The cluster notices some 50 s later: so long the job counts as running, as it does there.
    """
    if kubelet.found(streams.here.node) is None:
        pytest.skip("the node's kubelet is not a process of this machine")
    command = f"{sys.executable} -m tests.cluster.kubelet"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HOUSE)
        with streams.play(
            stop=f"{command} stop {{node}}", start=f"{command} start {{node}}"
        ) as play:
            [node] = play.engine.nodes
            play.start(job(0, LONG_S))
            play.engine.lose(node)
            end = play.end_of(0)
            assert end.outcome == "killed"
            assert f"node {node} is not ready" in end.reason
            play.engine.back(node)
            play.until(lambda: play.happened("node back"))
            play.start(job(1, 0.1))
            assert play.end_of(1).outcome == "done"
