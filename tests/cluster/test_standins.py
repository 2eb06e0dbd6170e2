"""The client's conclusions on the operator v0.18 to v0.20, from stand-ins' recordings."""

from __future__ import annotations

import pytest

from fixtures.kubernetes.progress import SkyhookProgress
from fixtures.kubernetes.removal import Removal
from tests.cluster.recordings import STANDINS, lines, part, play
from tests.cluster.test_replay import Row, compare, rows

# As in `test_replay`: the list of thoughts is complete.
NODEWRIGHTS = rows("""
# The first stage's pod ended at 3.9 and stays; the second stage takes 8 s.
nodewright_jobs | create nodewright tune | delete nodewright
  0.5 waiting
  12.893 complete
# The status says `erroring` from 3.991 on; the Job tries again 10 s later.
nodewright_retry_v018 | create nodewright again | delete nodewright
  0.503 waiting
  3.991 waiting container tuning-applycheck ended with exit code 1. \
The Job tries again (1 failed, backoffLimit 3).
  17.141 waiting
  26.672 complete
nodewright_retry_v020 | create nodewright again | delete nodewright
  0.504 waiting
  3.957 waiting container tuning-applycheck ended with exit code 1. \
The Job tries again (1 failed, backoffLimit 3).
  17.116 waiting
  26.028 complete
nodewright_retries_spent | create nodewright spent | delete nodewright
  0.5 waiting
  3.938 waiting 637e8: container tuning-applycheck ended with exit code 1. \
The Job tries again (1 failed, backoffLimit 3).
  17.192 waiting 637e8: container tuning-applycheck ended with exit code 1. \
The Job tries again (2 failed, backoffLimit 3).
  17.198 waiting a86bd: container tuning-applycheck ended with exit code 1. \
The Job tries again (2 failed, backoffLimit 3).
  40.404 waiting a86bd: container tuning-applycheck ended with exit code 1. \
The Job tries again (3 failed, backoffLimit 3).
  40.41 waiting 04a92: container tuning-applycheck ended with exit code 1. \
The Job tries again (3 failed, backoffLimit 3).
  83.667 waiting 6deeb: container tuning-applycheck ended with exit code 1. \
The Job tries again (3 failed, backoffLimit 3).
  83.668 failed package tuning 1.1.4, stage apply on node standin-node1 is erroring. \
Job spent-tuning-1-1-4-apply
# The Job ended at 4.1; the operator, started again at 27.1, takes note of it.
nodewright_operator_stopped | create nodewright left | delete nodewright
  0.5 waiting
  24.1 stuck ended 20 s ago without being recorded: the operator is not running
  32.249 waiting
  41.186 complete
""")
RECORDED = sorted(path.stem for path in STANDINS.glob("*.jsonl"))
DELETED = [
    (name, line.action)
    for name in RECORDED
    for line in lines(name)
    if line.action.startswith("delete nodewright ")
]


@pytest.mark.parametrize("row", NODEWRIGHTS, ids=str)
def test_what_is_thought_of_a_nodewright(row: Row) -> None:
    seen = part(lines(row.recording), row.begin, row.end)
    client = SkyhookProgress(row.begin.split()[2], seen.t)
    compare(list(play(seen, client.take, client.at)), row.thinks)


@pytest.mark.parametrize(("recording", "action"), DELETED)
def test_a_nodewright_is_gone_with_its_jobs_pods(recording: str, action: str) -> None:
    """Those that stayed when they had ended go with it; nothing has to be forced."""
    seen = part(lines(recording), action)
    client = Removal("NodeWright", action.split()[2], seen.t)
    thoughts = list(play(seen, client.take, client.at))
    assert {said.state for said in thoughts} == {"waiting", "complete"}
    last = max(
        line.t
        for line in seen.lines
        if line.kind in {"Pod", "NodeWright"} and line.type_ == "DELETED"
    )
    assert (thoughts[-1].state, thoughts[-1].t) == ("complete", last)


def test_a_skyhook_alone_says_nothing_and_takes_nothing_with_it() -> None:
    """Why a NodeWright is made wherever there are any, and why `restore` looks for both."""
    recording = lines("skyhook_mirrored")
    deleted, ended = (
        next(line.t for line in recording if line.action == f"delete {kind} copied")
        for kind in ("skyhook", "nodewright")
    )
    assert all(
        "status" not in line.object for line in recording if line.kind == "Skyhook" and line.object
    )
    meanwhile = [
        line for line in recording if line.kind == "NodeWright" and deleted <= line.t < ended
    ]
    assert [line.type_ for line in meanwhile if line.type_ == "DELETED"] == []
    (made,) = [
        line.object for line in recording if line.kind == "NodeWright" and line.type_ == "ADDED"
    ]
    assert made is not None
    assert made["metadata"]["annotations"]["nodewright.nvidia.com/mirrored-from"] == "copied"
    client = SkyhookProgress("copied", 0.0)
    told = [
        client.take(line.kind, line.type_, line.object, line.t)
        for line in recording
        if line.kind == "Skyhook" and line.t < deleted
    ]
    assert {conclusion.state for conclusion in (*told, client.at(9.9))} == {"waiting"}
    assert client.at(11.0).reason.startswith("No operator processes Skyhook copied")


def test_every_recording_of_stand_ins_is_looked_at() -> None:
    assert {row.recording for row in NODEWRIGHTS} | {"skyhook_mirrored"} == set(RECORDED)
