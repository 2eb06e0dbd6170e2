"""The agent in a privileged pod of a real cluster really changes the node and restores it.

What stands on the node is read by a witness: a second agent that holds nothing and changes nothing.
"""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.kernel import pods
from fixtures.kernel.machine import ChangeSet, Restored
from fixtures.kubernetes import agent as cluster_agent
from fixtures.kubernetes import api, manifests, settings
from fixtures.kubernetes.agent import Agent, AgentLost
from fixtures.kubernetes.watch import watch
from fixtures.kubernetes.wire import from_json
from fixtures.terms import MachineHeld
from tests.kernel_lock import turn

if TYPE_CHECKING:
    from fixtures.kubernetes.client import Cluster

Json = dict[str, Any]
SWAPPINESS, SOMAXCONN = "/proc/sys/vm/swappiness", "/proc/sys/net/core/somaxconn"
JOURNAL = "/var/lib/deeptweak/journal.jsonl"
PATIENCE_S = 120.0
HELD_S = 600.0  # another run of this machine may have it


@pytest.fixture
def manifest(
    cluster: Cluster, node_name: str, image: str, overlay_file: Path
) -> Callable[[], Json]:
    def make() -> Json:
        run_id = uuid.uuid4().hex[:12]
        return manifests.agent_pod(
            manifests.Spot(run_id, node_name, "", cluster.namespace, None),
            image,
            settings.read_overlay(str(overlay_file)),
        )

    return make


@pytest.fixture
def witness(cluster: Cluster, manifest: Callable[[], Json]) -> Iterator[Agent]:
    with Agent(cluster, manifest(), patience_s=PATIENCE_S) as agent:
        yield agent


@pytest.fixture
def agent(cluster: Cluster, manifest: Callable[[], Json]) -> Iterator[Agent]:
    with Agent(cluster, manifest(), patience_s=PATIENCE_S) as made:
        yield made


def hold(agent: Agent) -> Json:
    """Take the node, as soon as whoever has it lets go."""
    with turn():
        deadline = time.monotonic() + HELD_S
        while True:
            try:
                return agent.ask("hold")
            except MachineHeld:
                assert time.monotonic() < deadline
                time.sleep(0.2)


def read(agent: Agent, path: str, pod_uid: str | None = None) -> str:
    value = agent.ask("values", paths=[path], pod_uid=pod_uid)[path]
    assert isinstance(value, str)
    return value


def other(value: str) -> str:
    return "11" if value != "11" else "12"


def write(path: str, value: str) -> Json:
    return {"path": path, "value": value, "key": path.removeprefix("/proc/sys/").replace("/", ".")}


def process_of(agent: Agent) -> int:
    pid = pods.main_process(Path("/"), agent.pod["uid"], "fixtures.kubernetes.node_agent")
    if pid is None:
        pytest.skip("the node is another machine: its processes are out of reach from here")
    return pid


def test_it_really_changes_the_node_and_puts_it_back(
    agent: Agent, witness: Agent, image: str
) -> None:
    """Check the values, the node's journal, the final comparison and the agent's stated place."""
    hold(agent)
    found = read(witness, SWAPPINESS)
    begun = agent.ask("begin", label="x", writes=[write(SWAPPINESS, other(found))], mode="agent")
    assert witness.ask("values", paths=[SWAPPINESS]) == {SWAPPINESS: found}, (
        "nothing is written before the copy is safe"
    )
    effects = from_json(ChangeSet, agent.ask("carry_out"))
    assert effects.changed == {SWAPPINESS: (found, other(found))}
    assert read(witness, SWAPPINESS) == other(found)
    assert json.loads(begun["begin"])["before"][SWAPPINESS] == found
    # A path of the pod: the node's folder is mounted there.
    journal = read(witness, f"/proc/self/root{JOURNAL}")
    assert begun["begin"].startswith(journal[:10000])
    result = from_json(Restored, agent.ask("restore"))
    assert (result.back, result.stuck) == ({SWAPPINESS: (other(found), found)}, {})
    assert read(witness, SWAPPINESS) == found
    assert witness.ask("values", paths=[f"/proc/self/root{JOURNAL}"]) == {
        f"/proc/self/root{JOURNAL}": None
    }
    assert agent.ask("compare")["changed"] == {}
    assert agent.pod["uid"]
    assert agent.pod["image"].endswith(image.rpartition("/")[2])
    assert agent.pod["image_id"]
    assert agent.node_facts["kernel_release"] == agent.ask("environment")["uname_release"]
    assert agent.node_facts["is_root"]


def test_an_agent_that_hangs_is_noticed(
    cluster: Cluster, manifest: Callable[[], Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped agent's connection stays open: pings detect it, and waiting callers are told."""
    monkeypatch.setattr(cluster_agent, "PING_EVERY_S", 0.2)
    monkeypatch.setattr(cluster_agent, "PONG_WITHIN_S", 1.0)
    with Agent(cluster, manifest(), patience_s=PATIENCE_S) as agent:
        process = process_of(agent)
        os.kill(process, signal.SIGSTOP)
        try:
            with pytest.raises(
                AgentLost, match=r"is lost: no answer to 'ping' within 1 s\. Pod .* is Running\."
            ):
                agent.ask("environment", within_s=PATIENCE_S)
        finally:
            os.kill(process, signal.SIGCONT)
        with pytest.raises(AgentLost, match="no answer to 'ping' within 1 s"):
            agent.ask("environment")


def test_network_settings_are_read_in_the_workloads_namespace(
    cluster: Cluster, manifest: Callable[[], Json], agent: Agent, witness: Agent
) -> None:
    """net.core.somaxconn is per network namespace: only host-network pods have the node's value."""
    hold(agent)  # first: no node is held on which a workload lives, and these look like one
    uids = {}
    for host_network in (False, True):
        pod = manifest()
        pod["metadata"]["name"] += "-network" if host_network else "-bridge"
        pod["spec"] |= {"hostNetwork": host_network, "hostPID": False}
        pod["spec"]["containers"][0] |= {
            "command": ["python", "-c", "import time; time.sleep(600)", "fixtures.workloads.idle"]
        }
        uids[host_network] = api.create(cluster, api.PODS, pod)["metadata"]["uid"]
        with watch(
            cluster, api.PODS, name=pod["metadata"]["name"], deadline_s=PATIENCE_S
        ) as events:
            assert any(found.get("status", {}).get("phase") == "Running" for _, found in events)
    ours = read(witness, SOMAXCONN)
    raised = str(int(ours) + 1000)
    agent.ask("begin", label="x", writes=[write(SOMAXCONN, raised)], mode="agent")
    try:
        agent.ask("carry_out")
        assert read(witness, SOMAXCONN) == raised
        assert read(witness, SOMAXCONN, pod_uid=uids[True]) == raised
        assert read(witness, SOMAXCONN, pod_uid=uids[False]) != raised
        assert read(witness, SOMAXCONN) == raised, "the agent itself stayed on the node"
        begun = agent.ask("sample_begin", pod_uid=uids[False])
        assert begun["limits"]["nofile"][0] > 0
        time.sleep(0.5)
        telemetry = agent.ask("sample_end", window=None)
        assert telemetry["summary"]["process_count_max"] == 1
        assert "process" not in telemetry["missing"]
    finally:
        agent.ask("restore")
    assert read(witness, SOMAXCONN) == ours
