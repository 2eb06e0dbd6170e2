"""One run at a time per node, on a real API server: races, dead holders, clock skew, outages."""

from __future__ import annotations

import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.kubernetes import lease, names
from fixtures.kubernetes.api import LEASES, create, delete, get, patch
from fixtures.kubernetes.lease import NodeLease
from fixtures.kubernetes.watch import watch
from fixtures.process import proc
from fixtures.terms import MachineHeld
from tests.waiting import doomed

if TYPE_CHECKING:
    from fixtures.kubernetes.client import Cluster
    from tests.cluster.line import Line


Object = dict[str, Any]
NODE = "some-node"
NAME = names.lease_name(NODE)
OURS, THEIRS = "0123456789ab", "ba9876543210"
LONG_S = 100.0
NOBODY_WATCHED = ""


def stamp(ago: timedelta = timedelta()) -> str:
    return (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def of_another_machine(
    cluster: Cluster, *, renewed: str, duration_s: int = 1, node: str = NODE
) -> Object:
    """The lease of a run that is elsewhere, or was."""
    about = {
        "deeptweak/process": "another-boot:pid:[1]:pid:7:7",
        names.NODE: node,
    }
    spec = {
        "holderIdentity": f"{THEIRS}/elsewhere/7",
        "leaseDurationSeconds": duration_s,
        "acquireTime": renewed,
        "renewTime": renewed,
    }
    metadata = {
        "name": names.lease_name(node),
        "labels": names.labels(THEIRS, "lease"),
        "annotations": about,
    }
    return create(cluster, LEASES, {"metadata": metadata, "spec": spec})


def holder(cluster: Cluster) -> str:
    found = get(cluster, LEASES, NAME)
    return lease.run_of(found) if found else "nobody"


@pytest.mark.parametrize("ahead_s", [-100, 0, 3600])
def test_a_silent_holder_is_taken_over_whatever_its_clock_said(
    cluster: Cluster, ahead_s: int
) -> None:
    """Not by comparing clocks: nobody renewed for the lease's whole duration while we watched.

    The dead run is named.
    """
    of_another_machine(cluster, renewed=stamp(timedelta(seconds=-ahead_s)))
    with NodeLease(cluster, OURS, NODE) as held:
        assert held.took_over == THEIRS
        found = get(cluster, LEASES, NAME)
        assert found is not None
        assert found["spec"]["leaseTransitions"] == 1
        assert found["metadata"]["labels"][names.RUN] == OURS
    assert holder(cluster) == "nobody"


def test_a_holder_that_renews_is_alive_whatever_its_clock_says(cluster: Cluster) -> None:
    """By our clock its lease ran out long ago, but it renews, so it lives."""
    there = of_another_machine(cluster, renewed=stamp(timedelta(minutes=9)), duration_s=60)
    renewing = threading.Timer(
        0.5,
        lambda: patch(cluster, LEASES, NAME, {"spec": {"renewTime": stamp(timedelta(minutes=9))}}),
    )
    renewing.start()
    with pytest.raises(
        MachineHeld,
        match=rf"is held by run {THEIRS} \(process 7 on elsewhere\), since "
        rf"{there['spec']['acquireTime']}",
    ):
        NodeLease(cluster, OURS, NODE).__enter__()
    renewing.join()
    assert holder(cluster) == THEIRS


def of_process(text: str) -> Object:
    return {"metadata": {"annotations": {lease.PROCESS: text}}, "spec": {"holderIdentity": THEIRS}}


@pytest.mark.parametrize(
    "process",
    [
        "",
        "x",
        "7",
        "7:",
        ":7",
        "x:7",
        "-1:7",
        "0:7",
        "9" * 30 + ":7",
        "\u0661:7",
        "7:7:7",
        "7:gone",
    ],
)
def test_an_annotation_that_nobody_can_read_says_nothing(process: str) -> None:
    """Neither that the holder is dead, nor an error that stops whoever looks for a node."""
    assert not lease.is_dead(of_process(f"{lease._here()}:pid:{process}"))
    assert not lease.is_dead(of_process(process))


def test_a_process_that_proc_does_not_show_is_asked_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc with hidepid hides other users' processes: signal 0 shows whether one lives."""
    with subprocess.Popen(["sleep", "60"]) as process:
        held = of_process(lease._process(process.pid))
        assert not lease.is_dead(held)
        monkeypatch.setattr(lease, "stat", lambda _: proc.stat("/proc/none"))
        assert not lease.is_dead(held)
        process.kill()
        process.wait()
        assert lease.is_dead(held)


def test_only_one_of_two_runs_takes_over_a_dead_runs_lease(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both read the dead run's lease before either writes: the server refuses the second write."""
    seen = lease.version_of(of_another_machine(cluster, renewed=stamp()))
    both = threading.Barrier(2)
    judged = lease.is_dead

    def at_the_same_time(there: Object) -> bool:
        if lease.run_of(there) == THEIRS:
            both.wait()
        return judged(there)

    monkeypatch.setattr(lease, "is_dead", at_the_same_time)
    won: list[NodeLease] = []
    refused: list[str] = []

    def come(run_id: str) -> None:
        held = NodeLease(cluster, run_id, NODE, silent=seen)
        try:
            held._acquire()
            won.append(held)
        except MachineHeld as error:
            refused.append(str(error))

    threads = [threading.Thread(target=come, args=(run_id,)) for run_id in (OURS, "ffffffffffff")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == len(refused) == 1
    assert f"is held by run {won[0].run_id}" in refused[0]
    assert won[0].took_over == THEIRS
    assert holder(cluster) == won[0].run_id


def test_a_killed_process_of_this_machine_is_dead_at_once(
    cluster: Cluster, kubeconfig: Path
) -> None:
    """No such pid in this boot: the next run, and `restore`, need not watch for 15 seconds."""
    program = (
        "import sys, time\nfrom fixtures.kubernetes.client import *\nfrom "
        "fixtures.kubernetes.lease import NodeLease\n"
        f"with NodeLease(connect(Where(kubeconfig={str(kubeconfig)!r}, "
        f"namespace={cluster.namespace!r})), {THEIRS!r}, {NODE!r}):\n"
        "    print(flush=True)\n    time.sleep(1000)\n"
    )
    with doomed(program) as (pid,), pytest.raises(MachineHeld, match=f"process {pid} on "):
        NodeLease(cluster, OURS, NODE, silent=NOBODY_WATCHED).__enter__()
    with NodeLease(cluster, OURS, NODE, silent=NOBODY_WATCHED) as held:
        assert held.took_over == THEIRS


def test_a_server_away_for_less_than_the_lease_loses_nothing(
    cuttable: tuple[Cluster, Line],
    quick: None,  # noqa: ARG001
) -> None:
    """Nor does an answer that got lost: the next look finds our own writing."""
    cluster, line = cuttable
    with NodeLease(cluster, OURS, NODE) as held:
        for trouble in (line.close, line.swallow):
            trouble()
            assert not held.lost.wait(1.0)
            line.open()
            before = get(cluster, LEASES, NAME)
            with watch(cluster, LEASES, name=NAME, deadline_s=LONG_S) as events:
                assert any(
                    item["spec"]["renewTime"] != before["spec"]["renewTime"]
                    for _, item in events
                    if before
                )
        assert not held.lost.is_set()


@pytest.mark.parametrize("trouble", ["close", "hang"])
def test_a_server_away_for_longer_than_the_lease_loses_it(
    cuttable: tuple[Cluster, Line],
    quick: None,  # noqa: ARG001
    trouble: str,
) -> None:
    """Another run may then have the node, so ours must know; servers refuse or stay silent."""
    cluster, line = cuttable
    with NodeLease(cluster, OURS, NODE) as held:
        getattr(line, trouble)()
        assert held.lost.wait(LONG_S)
        assert f"the lease {NAME} is lost" in held.lost_reason
        assert f"127.0.0.1:{line.port}" in held.lost_reason
        line.open()


def test_a_lease_deleted_or_taken_by_others_is_lost_not_released(
    cluster: Cluster,
    quick: None,  # noqa: ARG001
) -> None:
    """What another run has by then stays that run's."""
    with NodeLease(cluster, OURS, NODE) as held:
        delete(cluster, LEASES, NAME)
        assert held.lost.wait(LONG_S)
        assert "it was deleted from outside" in held.lost_reason
        of_another_machine(cluster, renewed=stamp())
    assert holder(cluster) == THEIRS
    delete(cluster, LEASES, NAME)
    with NodeLease(cluster, OURS, NODE) as held:
        delete(cluster, LEASES, NAME)
        of_another_machine(cluster, renewed=stamp())
        assert held.lost.wait(LONG_S)
    assert holder(cluster) == THEIRS
