"""kill -9 of cluster runs at random moments: one `restore`, or two if killed, leaves no trace."""

from __future__ import annotations

import collections
import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.kernel import pods
from fixtures.kernel.tunables import Tunables, diff
from tests.cluster.rig import clients
from tests.cluster.runs import LOOK_EVERY_S, OPERATOR_NAMESPACE, ClusterPlace, swappiness_is
from tests.sessions import HOUSE, another_swappiness, until

if TYPE_CHECKING:
    from tests.cluster.operators.fixtures import StandIn

pytestmark = pytest.mark.needs("root", "reference")

SEED = 20240229
KILLS = 12  # each phase once
# The longest wait within a phase before the kill: about as long as the phase takes.
WITHIN_S = 0.8
# What else dies, of every so many kills.
AGENT_TOO, OPERATOR_TOO, RESTORE_TOO = 4, 7, 3


class Session:
    def __init__(self, place: ClusterPlace, apply: str, value: int) -> None:
        self.place = place
        # What the killed run before it had finished.
        shutil.rmtree(place.storage, ignore_errors=True)
        tweaks = f"--tweaks={place.folder / 'reclaim.yaml'}"
        self.process = place.start(
            f"--apply={apply}", tweaks, "--blocks=99", "--steps=100", "-k", "reclaim"
        )
        self.phases: dict[str, Callable[[], bool]] = {
            "begun": lambda: True,
            "leased": self._leased,
            "agent runs": place.agent_runs,
            "written down": place.journal.exists,
            "in force": lambda: swappiness_is(value),
            "workload runs": lambda: bool(place.workloads()),
            "back": self._back,
        }
        if apply == "skyhook":
            self.phases["asked for"] = lambda: bool(place.resources())
            self.phases["operator's pod"] = self._at_work

    def _leased(self) -> bool:
        return bool(
            clients.of(self.place.api, "CoordinationV1Api")
            .list_namespaced_lease(self.place.namespace)
            .items
        )

    def _at_work(self) -> bool:
        return any(
            one.metadata.name.startswith("dt-")
            for one in clients.of(self.place.api).list_namespaced_pod(OPERATOR_NAMESPACE).items
        )

    def _back(self) -> bool:
        """A cell is over, and the node is being put back or has just been."""
        return bool(self.place.finished())

    def kill_within(self, phase: str, rng: random.Random) -> None:
        """Kill it at a random moment of a phase, or soon after."""
        until(self.phases[phase], self.process, LOOK_EVERY_S)
        time.sleep(rng.uniform(0, WITHIN_S))
        self.process.kill()
        self.process.wait()


def kill_agent(place: ClusterPlace) -> None:
    """Its process, as the kernel's out-of-memory killer does: it puts nothing back."""
    for pod in (
        clients.of(place.api)
        .list_namespaced_pod(place.namespace, label_selector="app.kubernetes.io/component=agent")
        .items
    ):
        pid = pods.main_process(Path("/"), pod.metadata.uid, "fixtures.kubernetes.node_agent")
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def kill_restore(place: ClusterPlace, rng: random.Random) -> None:
    """Begin a restore and kill it, too, at a random moment."""
    process = subprocess.Popen(
        place.restore_command,
        cwd=HOUSE,
        env=place.env(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(rng.uniform(1, 6))  # the first second goes into Python's own start
    process.kill()
    process.wait()


@pytest.mark.usefixtures("crds")
def test_restore_removes_all_that_kills_at_random_moments_leave(
    place: ClusterPlace, skyhook_operator: StandIn
) -> None:
    """Kill runs by agent and by operator; of some also the agent, the operator or `restore`.

    After each, all of the kernel's settings are compared, and all that runs leave in the cluster
    and on the node.
    """
    rng, met = random.Random(SEED), collections.Counter[str]()
    value = another_swappiness()
    place.manifest("reclaim", sysctl=f"vm.swappiness = {value}")
    pristine, traces = Tunables().snapshot(), place.traces()
    skyhook_operator.start(speed=20)
    by_agent = [
        "begun",
        "leased",
        "agent runs",
        "written down",
        "in force",
        "workload runs",
        "back",
    ]
    by_operator = ["asked for", "operator's pod", "in force", "workload runs", "back"]
    plan = [("agent", phase) for phase in by_agent] + [("skyhook", phase) for phase in by_operator]
    for number in range(KILLS):
        apply, phase = plan[number % len(plan)]
        session = Session(place, apply, value)
        agent, operator, restore = (
            number % every == every - 1 for every in (AGENT_TOO, OPERATOR_TOO, RESTORE_TOO)
        )
        session.kill_within(phase, rng)
        if agent:
            kill_agent(place)
        if operator and apply == "skyhook":
            skyhook_operator.kill()
        if restore:
            kill_restore(place, rng)
        done = place.restore()
        what = (
            f"kill {number}: by {apply}, "
            f"{phase}{', agent too' * agent}{', operator too' * operator}"
            f"{', restore too' * restore}"
        )
        assert done.code == 0, f"{what}: {done.out}"
        after = place.traces()
        left = {name: after[name] for name in after if after[name] != traces[name]}
        assert left == {}, f"{what}: {left}\n{done.out}"
        changed = diff(pristine, Tunables().snapshot())
        assert changed == {}, f"{what}: {changed}\n{done.out}"
        met[f"{apply}: {phase}"] += 1
        if not skyhook_operator.running:
            skyhook_operator.restart()
    assert place.restore().out.startswith("Nothing to restore")
    print(f"{met.total()} kills of cluster runs: {dict(met)}")
