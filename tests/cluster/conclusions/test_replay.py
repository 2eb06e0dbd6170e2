"""What the client concludes from each of the recordings of the real operators, and when.

A row reads: in this recording, from the client's action `begin` on, the client thinks what stands under `thinks`: each change of
mind with the second (of the recording) at which it comes, and words that its reason contains. The list is complete: where
`complete` first stands at 16.271, nothing before that was taken for complete.
"""

from __future__ import annotations

import copy
import random
import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.kubernetes.conclusions.skyhook import SkyhookProgress
from fixtures.kubernetes.conclusions.workload import JobProgress, WorkspaceProgress
from fixtures.kubernetes.removal import Removal
from tests.cluster.conclusions.recordings import FOLDER, Line, Part, Said, lines, names, part, play

pytestmark = pytest.mark.needs("reference")

Progress = SkyhookProgress | JobProgress | WorkspaceProgress
Thought = tuple[float, str, str]
RECORDED = names() if FOLDER.is_dir() else []


@dataclass(frozen=True)
class Row:
    """One wait of the client."""

    recording: str
    begin: str
    end: str
    thinks: tuple[Thought, ...]
    nth: int = 1

    def __str__(self) -> str:
        return "-".join(filter(None, (self.recording, self.begin.split()[-1], str(self.nth) * (self.nth > 1))))


def waiting(t: float, reason: str = "") -> Thought:
    return (t, "waiting", reason)


def complete(t: float) -> Thought:
    return (t, "complete", "")


def stuck(t: float, reason: str) -> Thought:
    return (t, "stuck", reason)


def failed(t: float, reason: str) -> Thought:
    return (t, "failed", reason)


CREATED = [
    # A tweak set that comes into force. The first `complete` line says 0/1 nodes; what counts is the 1/1 that follows.
    Row("skyhook_tuning_apply", "create skyhook tune", "delete skyhook", (waiting(0.566), complete(16.271))),
    Row("skyhook_shellscript_apply", "create skyhook script", "delete skyhook", (waiting(0.621), complete(20.409))),
    Row("skyhook_config_change", "create skyhook conf", "patch skyhook", (waiting(0.592), complete(16.518))),
    Row("skyhook_version_upgrade", "create skyhook upgrade", "patch skyhook", (waiting(0.605), complete(17.527))),
    Row("skyhook_remove_package_tuning", "create skyhook remove", "patch skyhook", (waiting(0.638), complete(20.979))),
    Row("skyhook_remove_package_shellscript", "create skyhook remover", "patch skyhook", (waiting(0.614), complete(17.892))),
    # spec.pause is dead, and so is no reason to wait.
    Row("skyhook_spec_pause_is_ignored", "create skyhook specpause", "delete skyhook", (waiting(0.631), complete(18.16))),
    # Deleted by the client at the first `complete` line, 40 ms before the one that counts.
    Row("skyhook_recreate_same_name", "create skyhook again", "delete skyhook", (waiting(0.574),)),
    # Complete 50 ms after the create, from the marks that an earlier resource of the name left on the node: not one pod ran.
    # 2 s are left to a pod whose events come late.
    Row("skyhook_recreate_same_name", "create skyhook again", "now change", (waiting(21.747), failed(23.87, "Nothing ran: ")), nth=2),
    # No node at all: complete with 0/0. That a node comes later does not help a client that was told.
    Row("skyhook_no_matching_nodes", "create skyhook nonode", "delete skyhook", (waiting(0.587), failed(0.656, "complete with 0/0 nodes"))),
    # A step ended with an error: the pod tells it some 50 ms before the status does, with its exit code.
    Row(
        "skyhook_script_fails",
        "create skyhook fails",
        "patch skyhook",
        (waiting(0.594), failed(5.125, "fails-half-1-1-1-apply-rig-node1-31eb71c3: container half-apply ended with exit code 1.")),
    ),
    Row(
        "skyhook_check_fails",
        "create skyhook check",
        "delete skyhook",
        (waiting(0.609), failed(8.288, "container chk-applycheck ended with exit code 1.")),
    ),
    # in_progress for ever; the pod knows why. The first failed pull may be the registry's hiccup.
    Row(
        "skyhook_image_missing",
        "create skyhook noimage",
        "delete skyhook",
        (
            waiting(0.589),
            waiting(2.14, "nosuch-init: image rig.local/nosuch:1.1.1 cannot be pulled (ErrImagePull), it is tried again"),
            stuck(14.236, "image rig.local/nosuch:1.1.1 cannot be pulled (ImagePullBackOff): Back-off pulling"),
        ),
    ),
    # Somebody has to act, and when he has, it goes on.
    Row(
        "skyhook_pause",
        "create skyhook pausing",
        "delete skyhook",
        (waiting(0.632), stuck(1.971, "is paused: its annotation pause is true"), waiting(14.115), complete(21.249)),
    ),
    Row(
        "skyhook_disable",
        "create skyhook disabled",
        "delete skyhook",
        (waiting(0.611), stuck(0.717, "is disabled: its annotation disable is true"), waiting(5.809), complete(23.508)),
    ),
    Row(
        "skyhook_node_ignored",
        "create skyhook ignored",
        "delete skyhook",
        (
            waiting(0.601),
            stuck(0.698, "is blocked"),
            stuck(0.703, "is blocked: Node [rig-node1] has ignore label set. Skipping."),
            stuck(20.734, "is blocked"),
            waiting(20.754),
            complete(38.45),
        ),
    ),
    # The one behind is named its predecessor; the resource itself says only `waiting`. Priority counts, not the name.
    Row("skyhook_two_in_order", "create skyhook zz-first", "delete skyhook", (waiting(0.666), complete(18.091))),
    Row(
        "skyhook_two_in_order",
        "create skyhook aa-second",
        "delete skyhook",
        (
            waiting(0.676),
            waiting(0.909, "waits behind 'zz-first' (priority 100), which is waiting"),
            waiting(1.004, "waits behind 'zz-first' (priority 100), which is in_progress"),
            waiting(18.075),
            complete(34.272),
        ),
    ),
    # Nothing but 0/1: another resource, which the operator cannot read, stalls all. It is named, with what is wrong in it.
    Row(
        "skyhook_invalid_stalls_all",
        "create skyhook good",
        "delete skyhook good",
        (
            waiting(3.652),
            stuck(13.68, "Skyhook 'invalid' stalls all others, good too: package 'pkg1': the operator takes a-z"),
            stuck(15.676, "another one that it cannot read stalls all"),  # invalid is deleted now, and good goes on 10 ms later
            waiting(15.718),
            complete(33.548),
        ),
    ),
    Row(
        "skyhook_invalid_stalls_all",
        "create skyhook invalid",
        "delete skyhook invalid",
        (
            waiting(0.639),
            stuck(10.68, "The operator cannot read Skyhook invalid, which stalls all others too: package 'pkg1': the operator takes"),
        ),
    ),
    Row(
        "skyhook_interrupt",
        "create skyhook interrupt",
        "delete job plain",
        (
            waiting(1.52),
            waiting(1.672, "Node rig-node1 is cordoned for an interrupt; Skyhook interrupt waits for pods with important=yes to end."),
            waiting(13.915),
            complete(45.89),
        ),
    ),
    # Its own pod stands there Running, with nobody to take it away: the operator is gone. 5 s after the last step that is said.
    Row(
        "skyhook_operator_restart_midway",
        "create skyhook midway",
        "delete skyhook",
        (
            waiting(0.613),
            stuck(12.83, "ended its work 5 s ago and nobody goes on: the operator does not run"),
            waiting(14.664),
            complete(24.117),
        ),
    ),
    Row("skyhook_operator_down_delete", "create skyhook downdel", "stop the operator", (waiting(0.662), complete(17.57))),
    # Created while the operator was down: 4 s of nothing are too short to say so.
    Row("skyhook_operator_down_delete", "create skyhook downtwo", "delete skyhook downtwo", (waiting(31.185),)),
    Row("skyhook_operator_down_delete", "create skyhook downthree", "stop the operator", (waiting(35.214), complete(52.727))),
    # KAITO, a template: ready once, with its pod.
    Row("kaito_template_inference", "create workspace web", "delete workspace", (waiting(0.619), complete(2.899))),
    Row("kaito_template_update_ignored", "create workspace upd", "patch workspace", (waiting(0.618), complete(3.512))),
    # It was up at 3.48, and its container ended at 6.1. The Ready of 7.5 and 23.5 is a container started anew.
    Row(
        "kaito_template_batch_restarts",
        "create workspace batch",
        "delete workspace",
        (waiting(0.635), complete(3.48), failed(6.132, "Pod batch-0: container c ended with exit code 0. KAITO restarts what ends")),
    ),
    # Pending for ever; why stands in a condition's message only.
    Row(
        "kaito_template_no_node",
        "create workspace nonode",
        "delete workspace",
        (
            waiting(0.63),
            waiting(0.678, "has no node: Not enough Nodes are ready."),
            stuck(10.68, "has no node: Not enough Nodes are ready."),
        ),
    ),
    Row(
        "kaito_tuning_unsupported_sku",
        "create workspace nosku",
        "delete workspace",
        (
            waiting(0.68),
            waiting(1.066, "cannot set up Workspace nosku: invalid value: Unsupported SKU '' for cloud provider"),
            stuck(6.07, "cannot set up Workspace nosku: invalid value: Unsupported SKU '' for cloud provider"),
        ),
    ),
    Row(
        "kaito_tuning_missing_configmap",
        "create workspace tuned",
        "delete workspace",
        (
            waiting(0.602),
            waiting(1.755, 'ConfigMap "qlora-params-template" not found'),
            stuck(6.75, 'ConfigMap "qlora-params-template" not found'),
        ),
    ),
    # Tuning is its Job. The Workspace says Pending once more, for 10 ms, after the Job's Complete.
    Row("kaito_tuning_success", "create workspace tuned", "delete workspace", (waiting(0.623), complete(10.442))),
    # The Workspace says Failed from 6.05 on, for good; the Job tries again and completes.
    Row(
        "kaito_tuning_first_pod_fails",
        "create workspace flaky",
        "delete workspace",
        (waiting(0.682), waiting(6.037, "flaky-7rhlf: container flaky ended with exit code 1. The Job tries again"), complete(22.033)),
    ),
    # Jobs. Complete comes 2 s after the program's end.
    Row("job_success", "create job ok", "delete job", (waiting(0.586), complete(7.081))),
    Row(
        "job_fail",
        "create job bad",
        "delete job",
        (
            waiting(0.631),
            failed(
                4.939,
                "(BackoffLimitExceeded): Job has reached the specified backoff limit. Pod bad-hd7q7: container c ended with exit code 3.",
            ),
        ),
    ),
    Row(
        "job_fail_retries",
        "create job retry",
        "delete job",
        (
            waiting(0.622),
            waiting(3.669, "retry-nrt4q: container c ended with exit code 3. The Job tries again (1 failed, backoffLimit 2)"),
            waiting(14.516, "retry-5fwbj: container c ended with exit code 3. The Job tries again (1 failed, backoffLimit 2)"),
            waiting(16.626, "retry-5fwbj: container c ended with exit code 3. The Job tries again (2 failed, backoffLimit 2)"),
            waiting(35.564, "retry-ft57b: container c ended with exit code 3. The Job tries again (2 failed, backoffLimit 2)"),
            failed(37.583, "BackoffLimitExceeded"),
        ),
    ),
    Row(
        "job_deadline",
        "create job slow",
        "delete job",
        (waiting(0.603), failed(5.191, "Job slow failed (DeadlineExceeded): Job was active longer than specified deadline.")),
    ),
    Row(
        "job_evicted",
        "create job evicted",
        "delete job",
        (waiting(0.61), waiting(3.997, "was evicted through the API (DisruptionTarget, EvictionByEvictionAPI"), complete(20.041)),
    ),
    # "BackoffLimitExceeded" alone would hide what happened.
    Row(
        "job_evicted_no_retry",
        "create job evicted0",
        "delete job",
        (waiting(0.625), failed(2.67, "Pod evicted0-5kpxn was evicted through the API (DisruptionTarget, EvictionByEvictionAPI")),
    ),
    # The Jobs beside an interrupt: the protected one ends by itself, the other one's pod is evicted and tried again.
    Row("skyhook_interrupt", "create job important", "create skyhook", (waiting(0.602),)),
    Row(
        "skyhook_interrupt",
        "create job plain",
        "delete job plain",
        (
            waiting(0.591),
            waiting(14.803, "was evicted through the API (DisruptionTarget, EvictionByEvictionAPI"),
            waiting(23.127, "1 node(s) were unschedulable"),  # by the operator's cordon
            stuck(28.19, "1 node(s) were unschedulable"),
            stuck(45.822, "1 node(s) had untolerated taint(s)"),
            waiting(45.881, "was evicted through the API"),
        ),
    ),
    # The node's last pod may still be going: 5 s, then the scheduler's words.
    Row(
        "job_unschedulable",
        "create job nowhere",
        "delete job",
        (
            waiting(0.64),
            waiting(0.669, "finds no node (Unschedulable): 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"),
            stuck(5.67, "finds no node (Unschedulable): 0/1 nodes are available"),
            waiting(6.03),  # the deadline deletes the pod, 3 ms before the Job says so
            failed(6.033, "DeadlineExceeded"),
        ),
    ),
    Row(
        "job_image_missing",
        "create job noimg",
        "delete job",
        (
            waiting(0.584),
            waiting(1.087, "(ErrImagePull), it is tried again"),
            stuck(13.248, "image rig.local/nosuch:1 cannot be pulled (ImagePullBackOff)"),
        ),
    ),
    # Deleted under us: its orphan runs to a good end, and that is nobody's result.
    Row(
        "job_delete_orphans",
        "create job orphan",
        "delete pod",
        (waiting(0.631), failed(1.743, "was deleted before its end, and not by this run")),
    ),
]

# What keeps a deletion from its end.
HELD_UP = [
    # The operator is down, its finalizer stays: said after 5 s; a deletion takes 0.02 s otherwise. It was started at 25.19.
    Row(
        "skyhook_operator_down_delete",
        "delete skyhook downdel",
        "delete skyhook downtwo",
        (
            waiting(19.175, "is being deleted"),
            stuck(24.21, "Skyhook downdel is not gone 5 s after its deletion: skyhook.nvidia.com/skyhook holds it"),
            complete(25.545),
        ),
    ),
    # The Job is gone at once and its pod is nobody's; it ends at 10.768, and the client deletes it at 18.778.
    Row(
        "job_delete_orphans",
        "delete job orphan",
        "",
        (
            waiting(1.735, "is being deleted"),
            waiting(1.773, "Pod orphan-jtfcv"),
            stuck(7.0, "Job orphan is gone and left pod orphan-jtfcv behind (Running); delete it."),
            stuck(10.768, "left pod orphan-jtfcv behind (Succeeded)"),
            waiting(18.794, "is ending"),
            complete(18.795),
        ),
    ),
]


def client_of(row: Row, t: float) -> Progress:
    kind, name = row.begin.split()[1:3]
    if kind == "workspace":
        return WorkspaceProgress(name, t, tuning="tuning" in row.recording)
    return JobProgress(name, t) if kind == "job" else SkyhookProgress(name, t)


def compare(found: list[Said], expected: tuple[Thought, ...]) -> None:
    assert [(said.t, said.state) for said in found] == [(t, state) for t, state, _ in expected], found
    for said, (_, _, words) in zip(found, expected, strict=True):
        assert words in said.reason, said
        assert bool(words) == bool(said.reason), said


@pytest.mark.parametrize("row", CREATED, ids=str)
def test_what_is_thought_of_something_new(row: Row) -> None:
    """From the creation on: when is it complete, when has it failed, when must somebody act, and with which reason."""
    seen = part(lines(row.recording), row.begin, row.end, row.nth)
    client = client_of(row, seen.t)
    compare(list(play(seen, client.take, client.at)), row.thinks)


def deletions() -> list[tuple[str, str]]:
    return [(name, line.action) for name in RECORDED for line in lines(name) if re.match(r"delete (skyhook|job|workspace) ", line.action)]


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
    """Not the moment at which the resource is gone: its pods end up to 3 s later, and until then the operator writes marks on the node."""
    seen = part(lines(recording), action, "create skyhook again")
    client = removal(action, seen.t)
    name = action.split()[2]
    own = re.compile(rf"{re.escape(name)}(-.*)?")
    gone = [line for line in seen.lines if line.type_ == "DELETED" and line.object and own.fullmatch(line.object["metadata"]["name"])]
    ends = {line.kind: line.t for line in gone if line.kind in {"Pod", client.kind}}
    assert next(said.t for said in play(seen, client.take, client.at) if said.state == "complete") == max(ends.values())


def test_every_recording_is_in_the_tables() -> None:
    assert {row.recording for row in CREATED} == set(RECORDED)
    assert len(RECORDED) == 37


FAILED = [row for row in CREATED if row.thinks and row.thinks[-1][1] == "failed"]


@given(data=st.data())
def test_no_piece_of_a_failure_looks_like_a_success(data: st.DataObject) -> None:
    """However the watch stutters (events twice, again from the start, a part only): what failed is never `complete`, and stays failed.

    A template that serves is the exception: up at first, it is complete until its container ends, and never again.
    """
    row = data.draw(st.sampled_from([row for row in FAILED if "batch_restarts" not in row.recording]))
    seen = part(lines(row.recording), row.begin, row.end, row.nth)
    some = list(seen.lines[: data.draw(st.integers(0, len(seen.lines)))])
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(some)))
        some += [Line(some[-1].t, kind=line.kind, type_=line.type_, object=line.object) for line in some[start : start + 20]]
    client = client_of(row, seen.t)
    states = [said.state for said in play(Part(seen.t, seen.until, tuple(some)), client.take, client.at)]
    assert "complete" not in states
    assert "failed" not in states[:-1]


@given(data=st.data())
def test_missing_fields_are_missing_and_no_crash(data: st.DataObject) -> None:
    """Another version of the API, a trimmed cache: an event that lacks anything says less, and breaks nothing."""
    row = data.draw(st.sampled_from(CREATED))
    seen = part(lines(row.recording), row.begin, row.end, row.nth)
    draw = random.Random(data.draw(st.integers(0, 2**32 - 1)))  # noqa: S311 one number drawn, not one for each field

    def thinned(value: Any) -> Any:  # noqa: ANN401 -- JSON
        if isinstance(value, dict):
            return {key: thinned(one) for key, one in value.items() if draw.random() > 0.05}
        if isinstance(value, list):
            return [thinned(one) for one in value if draw.random() > 0.05]
        return None if draw.random() < 0.02 else value

    kind, name = row.begin.split()[1:3]
    client = client_of(row, seen.t)
    poor = tuple(
        Line(line.t, kind=line.kind, type_=line.type_, object=thinned(copy.deepcopy(line.object))) for line in seen.lines if line.kind
    )
    gone = Removal({"job": "Job", "workspace": "Workspace"}.get(kind, "Skyhook"), name, seen.t)
    for _ in (*play(Part(seen.t, seen.until, poor), client.take, client.at), *play(Part(seen.t, seen.until, poor), gone.take, gone.at)):
        pass
