"""`pytest benchmarks/ -n 8 --target=kubernetes` on fifty simulated nodes.

The sessions are real, so are API server, controllers and all that is written there. Nothing runs on
a simulated node: its agent is `simulated_agents`, and its workload's output is the same for all
cells.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from fixtures.kubernetes import names
from fixtures.kubernetes.api import CONFIGMAPS, JOBS, LEASES, NODES, PODS, list_, patch
from fixtures.kubernetes.client import Cluster, Where, connect
from tests.cluster import simulated_agents
from tests.cluster.rig import simulated
from tests.cluster.runs import LOOK_EVERY_S
from tests.cluster.simulated_agents import MACHINES, said
from tests.sessions import HOUSE, Done, Place, until
from tests.test_session import SCHEMA
from tests.test_spread import records, shape

if TYPE_CHECKING:
    import subprocess


Json = dict[str, Any]
STEPS = 5
BLOCKS = 8
SWAPPINESS = "/proc/sys/vm/swappiness"  # 60 on a fake root
PATIENCE_S = 600
CHOSEN = "deeptweak.test/chosen"


@pytest.fixture(scope="module")
def fifty(kubeconfig: Path) -> Iterator[list[str]]:
    with simulated.nodes(kubeconfig, 50, log=said(STEPS)) as nodes:
        yield nodes


@pytest.fixture
def chosen(
    kubeconfig: Path, fifty: list[str], namespace: str
) -> Iterator[Callable[[Sequence[str]], str]]:
    administrator = connect(Where(kubeconfig=str(kubeconfig), namespace=namespace))
    made: list[str] = []

    def choose(some: Sequence[str]) -> str:
        for node in some:
            patch(administrator, NODES, node, {"metadata": {"labels": {CHOSEN: namespace}}})
        made.extend(some)
        return f"{CHOSEN}={namespace}"

    assert fifty
    yield choose
    for node in made:
        patch(administrator, NODES, node, {"metadata": {"labels": {CHOSEN: None}}})


class Sessions:
    """Sessions in one namespace with a results folder each; they share the simulated machines."""

    def __init__(self, folder: Path, cluster: Cluster, kubeconfig: Path) -> None:
        self.folder, self.cluster = folder, cluster
        self.where = [f"--kubeconfig={kubeconfig}", f"--namespace={cluster.namespace}"]
        self.places: list[Place] = []
        self.place = self.another("first")

    def another(self, name: str) -> Place:
        folder = self.folder / name
        folder.mkdir()
        place = Place(
            folder, environment={MACHINES: str(self.folder / "machines"), "PYTHONPATH": str(HOUSE)}
        )
        place.manifest("typed", sysctl="vm.swappiness = 10")
        self.places.append(place)
        return place

    def start(
        self, selector: str, *more: str, place: Place | None = None, blocks: int = BLOCKS
    ) -> subprocess.Popen[str]:
        place = place or self.place
        target = [
            "-p",
            "tests.cluster.simulated_agents",
            "--target=kubernetes",
            "--apply=agent",
            *self.where,
            f"--nodes={selector}",
        ]
        plan = [
            f"--tweaks={place.folder}/typed.yaml",
            f"--blocks={blocks}",
            f"--steps={STEPS}",
            "--benchmark-save=exp",
        ]
        return place.start(*target, *plan, *more)

    def ended(self, process: subprocess.Popen[str], place: Place | None = None) -> Done:
        return Done(process.wait(PATIENCE_S), ((place or self.place).folder / "output").read_text())

    def run(self, selector: str, *more: str, blocks: int = BLOCKS) -> Done:
        return self.ended(self.start(selector, *more, blocks=blocks))

    def restore(self) -> Done:
        return self.place.call(
            sys.executable,
            "-m",
            "tests.cluster.simulated_agents",
            "restore",
            "--target=kubernetes",
            *self.where,
            "--patience=60",
        )

    def left(self) -> dict[str, list[str]]:
        """What the runs have left in their namespace."""
        kinds = {"leases": LEASES, "journals": CONFIGMAPS, "jobs": JOBS, "pods": PODS}
        found = {
            what: list_(self.cluster, kind, labels="app.kubernetes.io/name=deeptweak")[0]
            for what, kind in kinds.items()
        }
        return {
            what: [one["metadata"]["name"] for one in some] for what, some in found.items() if some
        }

    def swappiness(self) -> dict[str, str | None]:
        folder = self.folder / "machines"
        return {
            node.name: simulated_agents.machine(folder, node.name).get(SWAPPINESS)
            for node in sorted(folder.iterdir())
        }


@pytest.fixture
def sessions(tmp_path: Path, cluster: Cluster, kubeconfig: Path) -> Iterator[Sessions]:
    made = Sessions(tmp_path, cluster, kubeconfig)
    yield made
    for place in made.places:
        place.clear_up()


def nodes_of_blocks(saved: Json) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for record in records(saved).values():
        found.setdefault(record["block"], set()).add(record["node"])
    return found


def whole(saved: Json, *, blocks: int = BLOCKS) -> None:
    """Check a complete run: schema, cells, one node per block, tweaks in force and put back."""
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)
    ours = saved["deeptweak"]
    assert [c["id"] for c in ours["cells"]] == ours["design"]["order"]
    assert {c["outcome"] for c in ours["cells"]} == {"measured"}
    assert len(saved["benchmarks"]) == 3 * blocks
    assert ours["interrupted"] is False
    assert all(len(nodes) == 1 for nodes in nodes_of_blocks(saved).values()), nodes_of_blocks(saved)
    for record in records(saved).values():
        assert record["place"]["node"] == record["node"]
        if record["tweakset"] == "typed":
            assert (
                record["tweak"]["before"] == record["tweak"]["restored"] == {"vm.swappiness": "60"}
            )
            assert record["tweak"]["observed"] == {"vm.swappiness": "10"}


def used(saved: Json) -> set[str]:
    return {node for nodes in nodes_of_blocks(saved).values() for node in nodes}


# -- one run


def test_eight_parallel_workers_save_the_keys_of_a_serial_run(
    sessions: Sessions, fifty: list[str]
) -> None:
    """One JSON with a serial run's keys; leases are returned and the namespace is empty."""
    selector = f"simulated={fifty[0].split('-')[1]}"
    done = sessions.run(selector, "-n", "8")
    assert done.code == 0, done.out
    assert len(sessions.place.files()) == 1
    saved = sessions.place.saved()
    whole(saved)
    assert len(used(saved)) == 8
    assert used(saved) <= set(fifty)
    assert set(saved["deeptweak"]["nodes"]) == used(saved)
    assert saved["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}
    assert sessions.left() == {}
    assert sessions.swappiness() == dict.fromkeys(sorted(used(saved)), "60")
    alone = sessions.another("serial")
    done = sessions.ended(sessions.start(selector, place=alone), alone)
    assert done.code == 0, done.out
    serial = alone.saved()
    whole(serial)
    assert len(used(serial)) == 1
    assert list(saved) == list(serial)
    assert saved["deeptweak"]["cells"] == serial["deeptweak"]["cells"]
    nodes = [run["deeptweak"].pop("nodes") for run in (saved, serial)]
    assert {json.dumps(shape(facts)) for one in nodes for facts in one.values()} == {
        json.dumps(shape(next(iter(nodes[0].values()))))
    }
    assert shape(saved["deeptweak"]) == shape(serial["deeptweak"])
    assert [shape(one) for one in saved["benchmarks"]] == [
        shape(one) for one in serial["benchmarks"]
    ]


# -- several runs


# -- a worker that dies


@pytest.mark.parametrize("agent_too", [False, True], ids=["worker", "worker-and-agent"])
def test_restore_and_resume_complete_a_run_with_a_killed_worker(
    sessions: Sessions, fifty: list[str], chosen: Callable[[Sequence[str]], str], *, agent_too: bool
) -> None:
    """Its agent puts the node back by itself; where that died with it, `restore` does.

    The others' nodes are theirs until the end.
    """
    nodes = fifty[20:23]
    selector = chosen(nodes)
    process = sessions.start(selector, "-n", "3", blocks=4)

    held: dict[str, int] = {}

    def in_the_middle() -> bool:
        """Freeze the worker of a node whose setting is in force; release it if it is no longer."""
        if sessions.place.finished() and (sessions.folder / "machines").exists():
            for node in in_force(sessions):
                worker = worker_of(sessions, node)
                if worker and stands_still(worker):
                    if node in in_force(sessions):
                        held[node] = worker
                        return True
                    os.kill(worker, signal.SIGCONT)
        return False

    until(in_the_middle, process, LOOK_EVERY_S)
    ((victim, worker),) = held.items()
    agent = int(simulated_agents.pid_file(sessions.folder / "machines", victim).read_text())
    if agent_too:
        os.kill(agent, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    done = sessions.ended(process)
    assert done.code == 2, done.out
    assert done.lines(
        f"on {victim} died. Run `python -m fixtures restore --target=kubernetes"
    ) or done.lines("THE MACHINE WAS NOT PUT BACK")
    part = sessions.place.saved()
    assert part["deeptweak"]["interrupted"] is True
    assert part["deeptweak"]["machine_check"]["restored"] is False
    left = sessions.left()
    assert left["leases"] == [names.lease_name(victim)]
    assert left["journals"] == [names.journal_name(part["deeptweak"]["run_id"], victim)]
    done = sessions.restore()
    assert done.code == 0, done.out
    assert done.lines(f"node {victim}: ")
    assert sessions.left() == {}
    assert set(sessions.swappiness().values()) == {"60"}
    done = sessions.run(selector, "-n", "2", "--resume", blocks=4)
    assert done.code == 0, done.out
    resumed = sessions.place.saved()
    whole(resumed, blocks=4)
    assert resumed["deeptweak"]["run_id"] == part["deeptweak"]["run_id"]
    complete = [
        list(one) for _, one in groupby(sorted(records(part).values(), key=block_of), key=block_of)
    ]
    kept = [record for one in complete if len(one) == 3 for record in one]
    assert all(records(resumed)[record["id"]] == record for record in kept)
    assert sessions.left() == {}


def in_force(sessions: Sessions) -> list[str]:
    """Nodes whose setting is not their own now."""
    return [node for node, value in sessions.swappiness().items() if value == "10"]


def worker_of(sessions: Sessions, node: str) -> int | None:
    leases = list_(sessions.cluster, LEASES)[0]
    found = [
        one["spec"]["holderIdentity"].rpartition("/")[2]
        for one in leases
        if one["metadata"]["name"] == names.lease_name(node)
    ]
    return int(found[0]) if found else None


def stands_still(pid: int) -> bool:
    """Stop a process that is not our child. Returns: False, if it has ended instead."""
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, signal.SIGSTOP)
        while (
            state := Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        ) not in "Tt":
            if state in "ZX":
                return False
            time.sleep(0.001)
        return True
    return False


def block_of(record: Json) -> int:
    return int(record["block"])


# -- nodes that may not be had
