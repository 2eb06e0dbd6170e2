"""Stand-in for the node agent on KWOK nodes: a simulated pod runs nothing to attach to.

Loaded with `-p tests.cluster.simulated_agents`, in the workers of `-n` too. It replaces one step,
attaching to the agent's pod: the agent runs as a process of this machine instead, on a fake root
and with a state folder of its node's own, both below `$DEEPTWEAK_TEST_MACHINES`. All else of a run
is real traffic with a real API server: pods, leases, journals, Jobs, watches, logs. Only that KWOK
gives every container the same log, which analysis would rightly refuse as copies of one
measurement: each step's duration is varied as it is read.

    python -m tests.cluster.simulated_agents restore --target=kubernetes …    is `python -m fixtures
    restore …` with the same stand-in
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from fixtures.kubernetes import agent, api, workload
from fixtures.kubernetes.agent import STDOUT
from fixtures.targets._report import Report
from fixtures.terms import CellSpec, Refused, TweakSet
from tests.fake_root import FakeRoot
from tests.fake_root import make as make_root

if TYPE_CHECKING:
    import pytest

    from fixtures.kubernetes.client import Cluster
    from fixtures.kubernetes.target import Kubernetes

HOUSE = Path(__file__).parents[2]
MACHINES = "DEEPTWEAK_TEST_MACHINES"
# `python -m fixtures.kubernetes.node_agent`, but for the lock: of this machine nothing is changed,
# so each node's own is enough.
AGENT = (
    "from fixtures.kernel import lock; lock.machine_held = lock.held; "
    "from fixtures.kubernetes import node_agent; raise SystemExit(node_agent.main())"
)
GRACE_S = 60.0  # of the agent's pod


def pytest_configure() -> None:
    install()


def install() -> None:
    """From here on, attaching to an agent's pod starts the agent here."""
    workload.Report = Varied  # type: ignore[attr-defined]  # as the next
    agent.attached = attached  # it is called by this name there


def said(steps: int, warmup: int = 2) -> list[str]:
    """The log of every container: a workload's output for `steps` (`warmup`: that of `idle`)."""
    event = {"event": "step", "cpu_s": 0.001, "samples": 1, "tokens": 0, "loss": 0.0}
    took = [0.002 + 0.0001 * (n % 3) for n in range(warmup + steps)]
    each = [
        {**event, "index": n, "start_monotonic_s": 10.0 + n, "wall_s": s, "warmup": n < warmup}
        for n, s in enumerate(took)
    ]
    return [
        json.dumps(line)
        for line in ({"event": "ready", "facts": {"device": "none"}}, *each, {"event": "end"})
    ]


def of_node(cluster: Cluster, node: str) -> dict[str, Any]:
    found = api.get(cluster, api.NODES, node)
    assert found is not None
    return found


def machine(folder: Path, node: str) -> FakeRoot:
    """The machine behind a simulated node, made at first use."""
    place = folder / node
    return FakeRoot(place) if place.exists() else make_root(place)


class Machine(NamedTuple):
    """A simulated node, and what stands for its machine."""

    node: str
    fake: FakeRoot


def machines_of(
    folder: Path, nodes: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> list[Machine]:
    """Let this process find the nodes' agents and machines below a folder."""
    monkeypatch.setenv(MACHINES, str(folder))
    monkeypatch.setattr(agent, "attached", attached)
    return [Machine(node, machine(folder, node)) for node in nodes]


def files(fake: FakeRoot) -> dict[str, str | None]:
    """The whole machine, but for its boot id."""
    paths = (str(path)[len(str(fake.root)) :] for path in fake.root.rglob("*") if path.is_file())
    return {path: fake.get(path) for path in sorted(paths) if not path.endswith("/boot_id")}


def cell_of(asked: TweakSet) -> CellSpec:
    return CellSpec(study="s", workload="idle", tweakset=asked.name, block=1, order=1, seed=1)


def apply(target: Kubernetes, asked: TweakSet) -> Any:
    plan = target.plan(asked)
    assert plan.cannot == ()
    return target.apply(cell_of(asked), asked, plan)


def pid_file(folder: Path, node: str) -> Path:
    return folder / node / "agent.pid"


def attached(cluster: Cluster, pod: str, container: str) -> Wire:
    del container
    found = api.get(cluster, api.PODS, pod)
    if found is None:
        raise Refused(f'attaching to its stdin was refused (404: pods "{pod}" not found).')
    node, folder = str(found["spec"]["nodeName"]), Path(os.environ[MACHINES])
    fake = machine(folder, node)
    _end(pid_file(folder, node))
    ours, theirs = socket.socketpair()
    with theirs, (fake.path / "agent.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", AGENT],
            cwd=HOUSE,
            env={
                **os.environ,
                "DEEPTWEAK_HOST_ROOT": str(fake.root),
                "DEEPTWEAK_STATE_DIR": str(fake.state),
                "PYTHONPATH": str(HOUSE),
            },
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=log,
            start_new_session=True,  # it is on another machine: a Ctrl-C here is not for it
        )
    pid_file(folder, node).write_text(str(process.pid))
    return Wire(ours, process)


class Varied(Report):
    """What a workload said, as if no two had taken equally long."""

    def take(self, line: bytes) -> None:
        event = json.loads(line)
        if "wall_s" in event:
            event["wall_s"] *= random.uniform(0.99, 1.01)
        super().take(json.dumps(event).encode())


class Wire:
    """What a websocket is to `Channel`, over the stdin and stdout of a process of this machine."""

    def __init__(self, ours: socket.socket, process: subprocess.Popen[bytes]) -> None:
        self.sock, self._process = ours, process

    def settimeout(self, seconds: float) -> None:
        self.sock.settimeout(seconds)

    def send_binary(self, message: bytes) -> None:
        """Its first byte names the stream, and there is but one."""
        self.sock.sendall(message[1:])

    def recv_data_frame(self, *, control_frame: bool) -> tuple[int, Any]:
        from websocket import ABNF

        del control_frame
        piece = self.sock.recv(65536)
        if not piece:
            return ABNF.OPCODE_CLOSE, SimpleNamespace(data=b"")
        return ABNF.OPCODE_BINARY, SimpleNamespace(data=bytes([STDOUT]) + piece)

    def close(self, timeout: float) -> None:
        del timeout
        self.sock.close()

    def shutdown(self) -> None:
        """The container ends when its stdin has ended, after it has put the node back."""
        self._process.wait(GRACE_S)


def _end(noted: Path) -> None:
    # As the kubelet does: the pod of an earlier agent is gone only when its process is.
    pid = int(noted.read_text()) if noted.exists() else 0
    deadline = time.monotonic() + GRACE_S
    while pid and is_agent(pid):
        os.kill(pid, signal.SIGTERM)
        if time.monotonic() > deadline:
            raise Refused(f"the agent of before (process {pid}) does not end")
        time.sleep(0.05)


def is_agent(pid: int) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return False
    # Of one that has ended, and that nobody has waited for, the kernel says nothing.
    return AGENT in arguments


def main() -> int:
    """`python -m fixtures`, on simulated nodes."""
    from fixtures.__main__ import main as command

    install()
    return command()


if __name__ == "__main__":
    sys.exit(main())
