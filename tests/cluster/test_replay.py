"""What the client concludes from each of the recordings of the real operators, and when.

A row reads: in this recording, from the client's action `begin` on, the client thinks what stands
under `thinks`: each change of mind with the second (of the recording) at which it comes, and words
that its reason contains. The list is complete: where `complete` first stands at 16.271, nothing
before that was taken for complete.
"""

from __future__ import annotations

import copy
import random
import re
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.kubernetes.progress import JobProgress, SkyhookProgress, WorkspaceProgress
from fixtures.kubernetes.removal import Removal
from tests.cluster.recordings import FOLDER, Line, Part, Said, lines, names, part, play

pytestmark = pytest.mark.needs("reference")

Progress = SkyhookProgress | JobProgress | WorkspaceProgress
Thought = tuple[float, str, str]
RECORDED = names() if FOLDER.is_dir() else []


class Row(NamedTuple):
    """One wait of the client."""

    recording: str
    begin: str
    end: str
    nth: int
    thinks: list[Thought]

    def __str__(self) -> str:
        return "-".join(
            filter(None, (self.recording, self.begin.split()[-1], str(self.nth) * (self.nth > 1)))
        )


def rows(table: str) -> list[Row]:
    """A row is `recording | begin | end`, its thoughts below it; ×2 is the second such action."""
    found: list[Row] = []
    for line in filter(None, table.splitlines()):
        if line.startswith("  "):
            t, state, *words = line.split(maxsplit=2)
            found[-1].thinks.append((float(t), state, "".join(words)))
        elif not line.startswith("#"):
            recording, begin, end = (part.strip() for part in line.split("|"))
            found.append(
                Row(
                    recording, begin.removesuffix(" ×2"), end, 2 if begin.endswith(" ×2") else 1, []
                )
            )
    return found


CREATED = rows("""
# A tweak set in force. The first `complete` line has 0/1 nodes; the 1/1 that follows counts.
skyhook_tuning_apply | create skyhook tune | delete skyhook
  0.566 waiting
  16.271 complete
skyhook_shellscript_apply | create skyhook script | delete skyhook
  0.621 waiting
  20.409 complete
skyhook_config_change | create skyhook conf | patch skyhook
  0.592 waiting
  16.518 complete
skyhook_version_upgrade | create skyhook upgrade | patch skyhook
  0.605 waiting
  17.527 complete
skyhook_remove_package_tuning | create skyhook remove | patch skyhook
  0.638 waiting
  20.979 complete
skyhook_remove_package_shellscript | create skyhook remover | patch skyhook
  0.614 waiting
  17.892 complete
# spec.pause is dead, and so is no reason to wait.
skyhook_spec_pause_is_ignored | create skyhook specpause | delete skyhook
  0.631 waiting
  18.16 complete
# Deleted by the client at the first `complete` line, 40 ms before the one that counts.
skyhook_recreate_same_name | create skyhook again | delete skyhook
  0.574 waiting
# Complete 50 ms after the create, from marks of an earlier resource of the name: no pod ran.
# 2 s are left to a pod whose events come late.
skyhook_recreate_same_name | create skyhook again ×2 | now change
  21.747 waiting
  23.87 failed Nothing ran:
# No node at all: complete with 0/0. That a node comes later does not help a client that was told.
skyhook_no_matching_nodes | create skyhook nonode | delete skyhook
  0.587 waiting
  0.656 failed complete with 0/0 nodes
# A step ended with an error: the pod shows its exit code some 50 ms before the status does.
skyhook_script_fails | create skyhook fails | patch skyhook
  0.594 waiting
  5.125 failed fails-half-1-1-1-apply-rig-node1-31eb71c3: container half-apply \
ended with exit code 1.
skyhook_check_fails | create skyhook check | delete skyhook
  0.609 waiting
  8.288 failed container chk-applycheck ended with exit code 1.
# in_progress for ever; the pod knows why. The first failed pull may be the registry's hiccup.
skyhook_image_missing | create skyhook noimage | delete skyhook
  0.589 waiting
  2.14 waiting nosuch-init: image rig.local/nosuch:1.1.1 cannot be pulled (ErrImagePull)
  14.236 stuck image rig.local/nosuch:1.1.1 cannot be pulled (ImagePullBackOff): Back-off pulling
# Somebody has to act, and when he has, it goes on.
skyhook_pause | create skyhook pausing | delete skyhook
  0.632 waiting
  1.971 stuck is paused: its annotation pause is true
  14.115 waiting
  21.249 complete
skyhook_disable | create skyhook disabled | delete skyhook
  0.611 waiting
  0.717 stuck is disabled: its annotation disable is true
  5.809 waiting
  23.508 complete
skyhook_node_ignored | create skyhook ignored | delete skyhook
  0.601 waiting
  0.698 stuck is blocked
  20.754 waiting
  38.45 complete
skyhook_two_in_order | create skyhook zz-first | delete skyhook
  0.666 waiting
  18.091 complete
skyhook_two_in_order | create skyhook aa-second | delete skyhook
  0.676 waiting
  34.272 complete
# Only 0/1: a resource that the operator cannot read stalls all. It is deleted at 15.676.
skyhook_invalid_stalls_all | create skyhook good | delete skyhook good
  3.652 waiting
  13.68 stuck one that the operator cannot read stalls all
  15.718 waiting
  33.548 complete
skyhook_invalid_stalls_all | create skyhook invalid | delete skyhook invalid
  0.639 waiting
  10.68 stuck No operator processes Skyhook invalid: no status 10 s after its creation
skyhook_interrupt | create skyhook interrupt | delete job plain
  1.52 waiting
  45.89 complete
# Its pod stays Running: the operator that would remove it is gone. Said 5 s after the last step.
skyhook_operator_restart_midway | create skyhook midway | delete skyhook
  0.613 waiting
  12.83 stuck ended 5 s ago without a next step: the operator is not running
  14.664 waiting
  24.117 complete
skyhook_operator_down_delete | create skyhook downdel | stop the operator
  0.662 waiting
  17.57 complete
# Created while the operator was down: 4 s of nothing are too short to say so.
skyhook_operator_down_delete | create skyhook downtwo | delete skyhook downtwo
  31.185 waiting
skyhook_operator_down_delete | create skyhook downthree | stop the operator
  35.214 waiting
  52.727 complete
# KAITO, a template: ready once, with its pod.
kaito_template_inference | create workspace web | delete workspace
  0.619 waiting
  2.899 complete
kaito_template_update_ignored | create workspace upd | patch workspace
  0.618 waiting
  3.512 complete
# It was up at 3.48; its container ended at 6.1. Ready at 7.5 and 23.5 is a restarted container.
kaito_template_batch_restarts | create workspace batch | delete workspace
  0.635 waiting
  3.48 complete
  6.132 failed Pod batch-0: container c ended with exit code 0. KAITO restarts programs that end
# Pending for ever; why stands in a condition's message only.
kaito_template_no_node | create workspace nonode | delete workspace
  0.63 waiting
  0.678 waiting has no node: Not enough Nodes are ready.
  10.68 stuck has no node: Not enough Nodes are ready.
kaito_tuning_unsupported_sku | create workspace nosku | delete workspace
  0.68 waiting
  1.066 waiting cannot set up Workspace nosku: invalid value: Unsupported SKU '' for cloud provider
  6.07 stuck cannot set up Workspace nosku: invalid value: Unsupported SKU '' for cloud provider
kaito_tuning_missing_configmap | create workspace tuned | delete workspace
  0.602 waiting
  1.755 waiting ConfigMap "qlora-params-template" not found
  6.75 stuck ConfigMap "qlora-params-template" not found
# Tuning is its Job. The Workspace says Pending once more, for 10 ms, after the Job's Complete.
kaito_tuning_success | create workspace tuned | delete workspace
  0.623 waiting
  10.442 complete
# The Workspace says Failed from 6.05 on, for good; the Job tries again and completes.
kaito_tuning_first_pod_fails | create workspace flaky | delete workspace
  0.682 waiting
  6.037 waiting flaky-7rhlf: container flaky ended with exit code 1. The Job tries again
  22.033 complete
# Jobs. Complete comes 2 s after the program's end.
job_success | create job ok | delete job
  0.586 waiting
  7.081 complete
job_fail | create job bad | delete job
  0.631 waiting
  4.939 failed (BackoffLimitExceeded): Job has reached the specified backoff limit. \
Pod bad-hd7q7: container c ended with exit code 3.
job_fail_retries | create job retry | delete job
  0.622 waiting
  3.669 waiting retry-nrt4q: container c ended with exit code 3. \
The Job tries again (1 failed, backoffLimit 2)
  14.516 waiting retry-5fwbj: container c ended with exit code 3. \
The Job tries again (1 failed, backoffLimit 2)
  16.626 waiting retry-5fwbj: container c ended with exit code 3. \
The Job tries again (2 failed, backoffLimit 2)
  35.564 waiting retry-ft57b: container c ended with exit code 3. \
The Job tries again (2 failed, backoffLimit 2)
  37.583 failed BackoffLimitExceeded
job_deadline | create job slow | delete job
  0.603 waiting
  5.191 failed Job slow failed (DeadlineExceeded): Job was active longer than specified deadline.
job_evicted | create job evicted | delete job
  0.61 waiting
  3.997 waiting was ended from outside (EvictionByEvictionAPI
  20.041 complete
# "BackoffLimitExceeded" alone would hide what happened.
job_evicted_no_retry | create job evicted0 | delete job
  0.625 waiting
  2.67 failed Pod evicted0-5kpxn was ended from outside (EvictionByEvictionAPI
# Jobs beside an interrupt: the protected one ends; the other's pod is evicted and tried again.
skyhook_interrupt | create job important | create skyhook
  0.602 waiting
# by the operator's cordon
skyhook_interrupt | create job plain | delete job plain
  0.591 waiting
  14.803 waiting was ended from outside (EvictionByEvictionAPI
  23.127 waiting 1 node(s) were unschedulable
  28.19 stuck 1 node(s) were unschedulable
  45.822 stuck 1 node(s) had untolerated taint(s)
  45.881 waiting was ended from outside (EvictionByEvictionAPI
# The node's last pod may still be going: 5 s, then the scheduler's words.
# the deadline deletes the pod, 3 ms before the Job says so
job_unschedulable | create job nowhere | delete job
  0.64 waiting
  0.669 waiting cannot be scheduled (Unschedulable): 0/1 nodes are available: \
1 node(s) didn't match Pod's node affinity/selector
  5.67 stuck cannot be scheduled (Unschedulable): 0/1 nodes are available
  6.03 waiting
  6.033 failed DeadlineExceeded
job_image_missing | create job noimg | delete job
  0.584 waiting
  1.087 waiting (ErrImagePull)
  13.248 stuck image rig.local/nosuch:1 cannot be pulled (ImagePullBackOff)
# Deleted under us: its orphan runs to a good end, and that is nobody's result.
job_delete_orphans | create job orphan | delete pod
  0.631 waiting
  1.743 failed was deleted from outside before its end
""")

# What keeps a deletion from its end.
HELD_UP = rows("""
# The operator is down until 25.19, its finalizer stays: said after 5 s; else deletion takes 0.02 s.
skyhook_operator_down_delete | delete skyhook downdel | delete skyhook downtwo
  19.175 waiting is being deleted
  24.21 stuck Skyhook downdel still exists 5 s after its deletion: \
its controller does not remove skyhook.nvidia.com/skyhook
  25.545 complete
# The Job is gone at once; its ownerless pod ends at 10.768, and the client deletes it at 18.778.
job_delete_orphans | delete job orphan |
  1.735 waiting is being deleted
  1.773 waiting Pod orphan-jtfcv
  7.0 stuck Job orphan is gone, but pod orphan-jtfcv remains (Running); delete it.
  10.768 stuck but pod orphan-jtfcv remains (Succeeded)
  18.794 waiting is ending
  18.795 complete
""")


def client_of(row: Row, t: float) -> Progress:
    kind, name = row.begin.split()[1:3]
    if kind == "workspace":
        return WorkspaceProgress(name, t, tuning="tuning" in row.recording)
    return JobProgress(name, t) if kind == "job" else SkyhookProgress(name, t)


def compare(found: list[Said], expected: list[Thought]) -> None:
    assert [(said.t, said.state) for said in found] == [(t, state) for t, state, _ in expected], (
        found
    )
    for said, (_, _, words) in zip(found, expected, strict=True):
        assert words in said.reason, said
        assert bool(words) == bool(said.reason), said


@pytest.mark.parametrize("row", CREATED, ids=str)
def test_what_is_thought_of_something_new(row: Row) -> None:
    """From creation on: complete, failed or stuck, when, and with which reason."""
    seen = part(lines(row.recording), row.begin, row.end, row.nth)
    client = client_of(row, seen.t)
    compare(list(play(seen, client.take, client.at)), row.thinks)


def deletions() -> list[tuple[str, str]]:
    return [
        (name, line.action)
        for name in RECORDED
        for line in lines(name)
        if re.match(r"delete (skyhook|job|workspace) ", line.action)
    ]


def removal(action: str, t: float) -> Removal:
    kind, name = action.split()[1:3]
    return Removal({"skyhook": "Skyhook", "job": "Job", "workspace": "Workspace"}[kind], name, t)


@pytest.mark.parametrize("row", HELD_UP, ids=str)
def test_what_keeps_a_deletion_from_its_end(row: Row) -> None:
    seen = part(lines(row.recording), row.begin, row.end)
    client = removal(row.begin, seen.t)
    compare(list(play(seen, client.take, client.at)), row.thinks)


@pytest.mark.parametrize(("recording", "action"), deletions())
def test_deleted_is_what_is_gone_with_all_its_pods(recording: str, action: str) -> None:
    """Not when the resource is gone: its pods end up to 3 s later, and the node is still marked."""
    seen = part(lines(recording), action, "create skyhook again")
    client = removal(action, seen.t)
    name = action.split()[2]
    own = re.compile(rf"{re.escape(name)}(-.*)?")
    gone = [
        line
        for line in seen.lines
        if line.type_ == "DELETED"
        and line.object
        and own.fullmatch(line.object["metadata"]["name"])
    ]
    ends = {line.kind: line.t for line in gone if line.kind in {"Pod", client.kind}}
    assert next(
        said.t for said in play(seen, client.take, client.at) if said.state == "complete"
    ) == max(ends.values())


def test_every_recording_is_in_the_tables() -> None:
    assert {row.recording for row in CREATED} == set(RECORDED)
    assert len(RECORDED) == 37


FAILED = [row for row in CREATED if row.thinks and row.thinks[-1][1] == "failed"]


@given(data=st.data())
def test_no_piece_of_a_failure_looks_like_a_success(data: st.DataObject) -> None:
    """Whatever a watch repeats or omits, a failed resource is never `complete` and stays failed.

    A template that serves is the exception: up at first, it is complete until its container ends,
    and never again.
    """
    row = data.draw(
        st.sampled_from([row for row in FAILED if "batch_restarts" not in row.recording])
    )
    seen = part(lines(row.recording), row.begin, row.end, row.nth)
    some = list(seen.lines[: data.draw(st.integers(0, len(seen.lines)))])
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(some)))
        some += [
            Line(some[-1].t, kind=line.kind, type_=line.type_, object=line.object)
            for line in some[start : start + 20]
        ]
    client = client_of(row, seen.t)
    states = [
        said.state for said in play(Part(seen.t, seen.until, tuple(some)), client.take, client.at)
    ]
    assert "complete" not in states
    assert "failed" not in states[:-1]


@given(data=st.data())
def test_missing_fields_are_missing_and_no_crash(data: st.DataObject) -> None:
    """With another API version or a trimmed cache, an event gives less but breaks nothing."""
    row = data.draw(st.sampled_from(CREATED))
    seen = part(lines(row.recording), row.begin, row.end, row.nth)
    draw = random.Random(data.draw(st.integers(0, 2**32 - 1)))

    def thinned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: thinned(one) for key, one in value.items() if draw.random() > 0.05}
        if isinstance(value, list):
            return [thinned(one) for one in value if draw.random() > 0.05]
        return None if draw.random() < 0.02 else value

    kind, name = row.begin.split()[1:3]
    client = client_of(row, seen.t)
    poor = tuple(
        Line(line.t, kind=line.kind, type_=line.type_, object=thinned(copy.deepcopy(line.object)))
        for line in seen.lines
        if line.kind
    )
    gone = Removal({"job": "Job", "workspace": "Workspace"}.get(kind, "Skyhook"), name, seen.t)
    for _ in (
        *play(Part(seen.t, seen.until, poor), client.take, client.at),
        *play(Part(seen.t, seen.until, poor), gone.take, gone.at),
    ):
        pass
