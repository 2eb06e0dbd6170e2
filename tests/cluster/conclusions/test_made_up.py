"""What the recordings lack.

These objects are made up by the Kubernetes API reference (v1.34) and the kubelet's sources, trimmed to what is read.
"""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.kubernetes.conclusions import pod
from fixtures.kubernetes.conclusions.skyhook import SkyhookProgress
from fixtures.kubernetes.conclusions.workload import JobProgress, WorkspaceProgress
from fixtures.kubernetes.removal import Removal

Object = dict[str, Any]


def a_pod(*, state: Object | None = None, last: Object | None = None, restarts: int = 0, **status: Any) -> Object:  # noqa: ANN401 -- JSON
    container = {"name": "c", "image": "bench:1", "restartCount": restarts, "state": state or {}, "lastState": last or {}}
    return {"metadata": {"name": "p"}, "status": {"phase": "Running", "containerStatuses": [container], **status}}


def ended(code: int, reason: str = "Error", **more: object) -> Object:
    return {"terminated": {"exitCode": code, "reason": reason, **more}}


def waits(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}


def failed(reason: str, message: str = "") -> Object:
    return {"metadata": {"name": "p"}, "status": {"phase": "Failed", "reason": reason, "message": message}}


PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempting"}
ENDS: list[tuple[Object, str]] = [
    (
        a_pod(state=ended(137, "OOMKilled"), phase="Failed"),
        ": container c was killed because it used more memory than its limit allows (OOMKilled, exit code 137).",
    ),
    (a_pod(state=ended(137), phase="Failed"), ": container c ended with exit code 137, SIGKILL."),
    (a_pod(state=ended(0, "Completed"), phase="Succeeded"), ": container c ended with exit code 0."),
    (
        a_pod(state=ended(128, "StartError", message="exec: no such file")),
        ": container c ended with exit code 128, StartError (exec: no such file).",
    ),
    (failed("Evicted", "The node was low on resource: memory."), " was evicted by its node (The node was low on resource: memory)."),
    (
        failed("NodeLost", "Node n which was running p is unresponsive"),
        " was lost with its node (Node n which was running p is unresponsive).",
    ),
    (failed("Terminated", "imminent node shutdown."), " was ended because its node was shut down (imminent node shutdown)."),
    (failed("DeadlineExceeded"), " ran longer than its activeDeadlineSeconds allow (DeadlineExceeded)."),
    (
        failed("OutOfcpu", "Node didn't have enough resource: cpu"),
        " was refused by its node (OutOfcpu, Node didn't have enough resource: cpu).",
    ),
    (
        a_pod(state=ended(143), phase="Failed", conditions=[PREEMPTED]),
        (
            " made room for a more important pod (DisruptionTarget, PreemptionByScheduler, preempting): "
            "container c ended with exit code 143, SIGTERM."
        ),
    ),
]


@pytest.mark.parametrize(("made_up", "says"), ENDS)
def test_how_a_pod_ended(made_up: Object, says: str) -> None:
    assert pod.how_it_ended(made_up) == f"Pod p{says}"


def test_a_pod_that_goes_on_has_not_ended() -> None:
    assert pod.how_it_ended(a_pod(state={"running": {}})) is None
    assert pod.how_it_ended({}) is None
    assert pod.exit_code(a_pod(state={"running": {}}), "c") is None
    assert pod.exit_code(a_pod(state=ended(3)), "c") == 3


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (
            waits("InvalidImageName", "couldn't parse image name"),
            "'bench:1' is no image name (InvalidImageName): couldn't parse image name.",
        ),
        (waits("CreateContainerConfigError", 'secret "x" not found'), '(CreateContainerConfigError): secret "x" not found.'),
        (waits("CreateContainerError", "no command"), "the container cannot be made (CreateContainerError): no command."),
        (waits("ErrImageNeverPull"), "image bench:1 is not on the node and its pull policy is Never (ErrImageNeverPull)."),
    ],
)
def test_what_stands_in_a_pods_way_and_will_not_go_by_itself(state: Object, says: str) -> None:
    found = pod.hindrance(a_pod(state=state, phase="Pending"))
    assert found is not None
    assert found.reason.startswith("Pod p, container c: ")
    assert found.reason.endswith(says)
    assert found.grace_s == 0


def test_a_container_that_ends_again_and_again_tells_how_it_last_ended() -> None:
    crashes = a_pod(state=waits("CrashLoopBackOff", "back-off 10s restarting"), last=ended(137, "OOMKilled"), restarts=1)
    assert pod.why_not_running(crashes) == (
        "Pod p, container c: the container ends again and again (CrashLoopBackOff): "
        "was killed because it used more memory than its limit allows (OOMKilled, exit code 137)."
    )


def test_a_volume_that_cannot_be_mounted_is_told_by_an_event_alone() -> None:
    """The pod's status says ContainerCreating for ever; 15 s are left for what comes right by itself."""
    pending = a_pod(state=waits("ContainerCreating"), phase="Pending")
    event = {
        "type": "Warning",
        "reason": "FailedMount",
        "message": 'configmap "x" not found',
        "involvedObject": {"kind": "Pod", "name": "p"},
    }
    other = {**event, "involvedObject": {"kind": "Pod", "name": "other"}}
    assert pod.why_not_running(pending, [other]) is None
    found = pod.hindrance(pending, [event])
    assert found == pod.Hindrance('Pod p cannot be set up on its node: configmap "x" not found.', 15.0)


# --- Skyhook ---

NAME = {"skyhook.nvidia.com/name": "s", "skyhook.nvidia.com/package": "tuning-1.1.4"}


def skyhook(status: str = "", *, nodes: str = "0/1", state: Object | None = None, **more: Any) -> Object:  # noqa: ANN401 -- JSON
    found: Object = {
        "metadata": {"name": "s", "generation": 2, "finalizers": ["skyhook.nvidia.com/skyhook"]},
        "status": {"completeNodes": nodes},
    }
    if status:
        found["status"] |= {"status": status, "nodeStatus": {"n": status}, "nodeState": {"n": state or {}}}
    found["status"] |= more
    return found


def package_pod(*codes: int | None, name: str = "s-tuning-apply", **metadata: Any) -> Object:  # noqa: ANN401 -- JSON
    steps = [{"name": f"step{i}", "state": {"running": {}} if code is None else ended(code)} for i, code in enumerate(codes)]
    return {"metadata": {"name": name, "labels": NAME, **metadata}, "status": {"phase": "Pending", "initContainerStatuses": steps}}


def test_no_operator() -> None:
    """Nothing but the resource as it was sent, for 10 s."""
    s = SkyhookProgress("s", 0.0)
    bare = {"metadata": {"name": "s", "generation": 1}}
    assert s.take("Skyhook", "ADDED", bare, 0.1).state == "waiting"
    assert s.at(9.9).state == "waiting"
    told = s.at(10.0)
    assert told.state == "stuck"
    assert "No operator takes up Skyhook s" in told.reason


BUDGET = {"interruptionBudget": {"count": 1}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"packages": {"script": {"version": "latest", "image": "r/shellscript"}}}, "package 'script': version 'latest' is none"),
        ({**BUDGET, "deploymentPolicy": "canary"}, "it has both deploymentPolicy and interruptionBudget"),
        ({"interruptionBudget": {"count": 1, "percent": 50}}, "its interruptionBudget has both count and percent"),
        ({"packages": {"script": {"version": "1.1.1", "image": "r/shellscript", "dependsOn": {"other": "1"}}}}, "depends on 'other'"),
    ],
)
@pytest.mark.parametrize("seen", [True, False])
def test_one_of_anybodys_that_stalls_the_operator_is_named_with_what_is_wrong_in_it(spec: Object, why: str, *, seen: bool) -> None:
    """Seen on the operator of May 2026, webhooks off: it notices what comes before that one in its order, and nothing behind it.

    What it notices gets its version and a count, as here; the other one stays bare.
    """
    s = SkyhookProgress("s", 0.0)
    s.take("Skyhook", "ADDED", {"metadata": {"name": "theirs", "generation": 1}, "spec": spec}, 0.1)
    bare: Object = {"apiVersion": "skyhook.nvidia.com/v1alpha1", "metadata": {"name": "s", "generation": 1}}
    marked = {"metadata": {**bare["metadata"], "annotations": {"skyhook.nvidia.com/version": "dev"}}, "status": {"completeNodes": "0/1"}}
    s.take("Skyhook", "ADDED", bare | (marked if seen else {}), 0.2)
    told = s.at(10.2)
    assert told.state == "stuck"
    assert told.reason.startswith("Skyhook 'theirs' stalls all others, s too: ")
    assert why in told.reason
    assert told.reason.endswith("no operator runs.") is not seen


def test_a_resource_of_anybodys_that_can_be_read_is_not_blamed_for_an_operator_that_is_not_there() -> None:
    """The tag of an image is no reason: the operator cuts it off."""
    s = SkyhookProgress("s", 0.0)
    package = {"version": "1.1.1", "image": "localhost:5000/shellscript:2"}
    s.take("Skyhook", "ADDED", {"metadata": {"name": "theirs"}, "spec": {**BUDGET, "packages": {"script": package}}}, 0.1)
    s.take("Skyhook", "ADDED", {"metadata": {"name": "s", "generation": 1}}, 0.2)
    assert s.at(10.2).reason.startswith("No operator takes up Skyhook s")


def test_a_stage_that_errs_for_an_instant_fails_even_if_its_pod_was_not_seen() -> None:
    """A watch that was cut may have missed the pod; nodeState keeps `erroring` when the status no longer does."""
    s = SkyhookProgress("s", 0.0)
    s.take("Skyhook", "ADDED", skyhook("in_progress", state={"tuning|1.1.4": {"stage": "apply", "state": "in_progress"}}), 1.0)
    told = s.take("Skyhook", "MODIFIED", skyhook("in_progress", state={"tuning|1.1.4": {"stage": "uninstall", "state": "erroring"}}), 2.0)
    assert (told.state, told.reason) == ("failed", "Skyhook s: package tuning 1.1.4, stage uninstall on node n is erroring.")


def test_a_reboot_that_kills_its_own_pod_is_no_failure() -> None:
    """The interrupt's pod dies with the machine that it reboots: exit 255, and `erroring` until it was run again."""
    s = SkyhookProgress("s", 0.0)
    s.take("Skyhook", "ADDED", skyhook("in_progress"), 0.1)
    killed = package_pod(255, name="s-interrupt-reboot")
    killed["metadata"]["labels"] = {**NAME, "skyhook.nvidia.com/interrupt": "True"}
    running = package_pod(None, name="s-interrupt-reboot")
    running["metadata"]["labels"] = killed["metadata"]["labels"]
    assert s.take("Pod", "ADDED", running, 1.0).state == "waiting"
    assert s.take("Pod", "MODIFIED", killed, 2.0).state == "waiting"
    state = {"tuning|1.1.4": {"stage": "interrupt", "state": "erroring"}}
    assert s.take("Skyhook", "MODIFIED", skyhook("erroring", state=state), 3.0).state == "waiting"


def test_one_that_errs_for_ever_blocks_those_behind_it() -> None:
    s = SkyhookProgress("s", 0.0)
    first = skyhook("in_progress", state={"tuning|1.1.4": {"stage": "uninstall", "state": "erroring"}})
    first["metadata"] = {"name": "a", "generation": 2}
    s.take("Skyhook", "ADDED", first, 0.1)
    told = s.take("Skyhook", "ADDED", skyhook("waiting"), 0.2)
    assert told.state == "stuck"
    assert told.reason == (
        "Skyhook s waits behind 'a' (priority 200), which is in_progress and does not end: "
        "package tuning 1.1.4, stage uninstall on node n is erroring."
    )


def test_a_pod_from_before_does_not_prove_that_anything_ran() -> None:
    """A resource of the same name was there a moment ago, its last pod is still ending; the new one is complete from its marks."""
    s = SkyhookProgress("s", 0.0)
    s.take("Pod", "ADDED", package_pod(0, 0, deletionTimestamp="2026-01-01T00:00:00Z"), 0.1)
    complete = skyhook("complete", nodes="1/1", observedGeneration=2)
    assert s.take("Skyhook", "ADDED", complete, 0.2).state == "waiting"
    assert s.take("Pod", "DELETED", package_pod(0, 0, deletionTimestamp="2026-01-01T00:00:00Z"), 1.0).state == "waiting"
    assert s.at(2.2).state == "failed"


def test_a_pod_whose_end_is_seen_after_the_resources_complete_still_counts() -> None:
    """Watches of different kinds come in no common order."""
    s = SkyhookProgress("s", 0.0)
    s.take("Pod", "ADDED", package_pod(0, None), 0.1)
    assert s.take("Skyhook", "ADDED", skyhook("complete", nodes="1/1", observedGeneration=2), 0.2).state == "waiting"
    assert s.take("Pod", "MODIFIED", package_pod(0, 0), 0.3).state == "complete"


def test_complete_of_an_earlier_generation_is_not_complete() -> None:
    """Somebody has changed the spec: what the operator says is of before."""
    s = SkyhookProgress("s", 0.0)
    s.take("Pod", "ADDED", package_pod(0, 0), 0.1)
    assert s.take("Skyhook", "ADDED", skyhook("complete", nodes="1/1", observedGeneration=1), 0.2).state == "waiting"
    assert s.take("Skyhook", "MODIFIED", skyhook("complete", nodes="1/1", observedGeneration=2), 0.3).state == "complete"


def test_a_pod_that_is_killed_because_it_is_deleted_has_not_failed() -> None:
    """The operator deletes a pod to make a new one, e.g. after a change; whatever runs in it ends with 143 or 137."""
    s = SkyhookProgress("s", 0.0)
    s.take("Pod", "ADDED", package_pod(0, None), 0.1)
    assert s.take("Pod", "MODIFIED", package_pod(0, 137, deletionTimestamp="2026-01-01T00:00:00Z"), 0.2).state == "waiting"


def test_a_step_that_failed_and_runs_again_has_failed() -> None:
    """Between two events it may have been restarted already: the exit code is in its last state."""
    again = package_pod(0, None)
    again["status"]["initContainerStatuses"][1]["lastState"] = ended(3)
    told = SkyhookProgress("s", 0.0).take("Pod", "ADDED", again, 0.1)
    assert (told.state, told.reason) == ("failed", "Pod s-tuning-apply: container step1 ended with exit code 3.")


def test_a_new_pod_of_an_old_name_is_new() -> None:
    """Names come back with each stage. Where the watch was cut while the old one went, the uid tells them apart."""
    s = SkyhookProgress("s", 0.0)
    s.take("Pod", "ADDED", package_pod(0, 0, uid="old", deletionTimestamp="2026-01-01T00:00:00Z"), 0.1)
    assert s.take("Skyhook", "MODIFIED", skyhook("complete", nodes="1/1", observedGeneration=2), 1.1).state == "waiting"
    assert s.take("Pod", "ADDED", package_pod(0, 0, uid="new"), 1.3).state == "complete"


def test_an_operator_that_died_between_two_stages_is_noticed_by_its_silence() -> None:
    s = SkyhookProgress("s", 0.0)
    s.take("Skyhook", "ADDED", skyhook("in_progress"), 1.0)
    assert s.at(20.9).state == "waiting"
    assert (s.at(21.0).state, "has been silent for 20 s" in s.at(21.0).reason) == ("stuck", True)


def test_a_node_that_leaves_the_cluster_ends_the_wait() -> None:
    s = SkyhookProgress("s", 0.0)
    s.take("Node", "ADDED", {"metadata": {"name": "n"}}, 0.0)
    s.take("Skyhook", "ADDED", skyhook("in_progress"), 1.0)
    assert s.take("Node", "DELETED", {"metadata": {"name": "n"}}, 2.0).state == "failed"


def test_the_operators_new_name_is_understood() -> None:
    """NodeWright: the same schema under another group and kind."""
    s = SkyhookProgress("s", 0.0)
    ran = package_pod(0, 0)
    ran["metadata"]["labels"] = {"nodewright.nvidia.com/name": "s"}
    s.take("Pod", "ADDED", ran, 1.0)
    assert s.take("NodeWright", "ADDED", skyhook("complete", nodes="1/1", observedGeneration=2), 1.1).state == "complete"


# --- Job, Workspace, Removal ---


def test_a_suspended_job_needs_somebody() -> None:
    told = JobProgress("j", 0.0).take("Job", "ADDED", {"metadata": {"name": "j"}, "spec": {"suspend": True}}, 0.1)
    assert (told.state, told.reason) == ("stuck", "Job j is suspended: its spec.suspend is true.")


def test_a_job_whose_pod_may_not_be_made_says_why() -> None:
    """An admission rule or a quota refuses the pod: only an Event of the Job tells it."""
    j = JobProgress("j", 0.0)
    j.take("Job", "ADDED", {"metadata": {"name": "j"}, "spec": {}}, 0.1)
    said = {"reason": "FailedCreate", "message": 'pods "j-x" is forbidden: exceeded quota', "involvedObject": {"kind": "Job", "name": "j"}}
    assert j.take("Event", "ADDED", said, 0.2).reason == 'Job j has no pod yet: pods "j-x" is forbidden: exceeded quota.'
    assert (j.at(10.0).state, "exceeded quota" in j.at(10.0).reason) == ("stuck", True)


def test_a_job_without_a_job_controller_does_not_move() -> None:
    j = JobProgress("j", 0.0)
    j.take("Job", "ADDED", {"metadata": {"name": "j"}, "spec": {}}, 0.1)
    assert "is the cluster's controller-manager running?" in j.at(10.0).reason


def test_a_pod_that_its_job_kills_is_not_why_the_job_failed() -> None:
    """Past its deadline the Job deletes its pod; the exit code 143 that follows would only lead astray."""
    j = JobProgress("j", 0.0)
    killed = a_pod(state=ended(143))
    killed["metadata"] |= {"labels": {"job-name": "j"}}
    j.take("Pod", "ADDED", a_pod(state={"running": {}}) | {"metadata": dict(killed["metadata"])}, 0.1)
    killed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    j.take("Pod", "MODIFIED", killed, 5.0)
    why = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}
    told = j.take("Job", "MODIFIED", {"metadata": {"name": "j"}, "status": {"conditions": [why]}}, 5.1)
    assert told.reason == "Job j failed (DeadlineExceeded): Job was active longer than specified deadline."


def test_a_workspace_is_not_complete_before_its_pod_is_ready() -> None:
    w = WorkspaceProgress("w", 0.0)
    starting = a_pod(state={"running": {}}, conditions=[{"type": "Ready", "status": "False"}])
    starting["metadata"]["labels"] = {"kaito.sh/workspace": "w"}
    w.take("Pod", "ADDED", starting, 1.0)
    ready = {"type": "InferenceReady", "status": "True", "observedGeneration": 2}
    resource = {"metadata": {"name": "w", "generation": 2}, "status": {"state": "Ready", "conditions": [ready]}}
    assert w.take("Workspace", "ADDED", resource, 1.1).state == "waiting"


def test_a_workspace_that_nobody_takes_up() -> None:
    w = WorkspaceProgress("w", 0.0)
    w.take("Workspace", "ADDED", {"metadata": {"name": "w", "generation": 1}}, 0.1)
    assert w.at(9.9).state == "waiting"
    assert "no controller takes it up" in w.at(10.0).reason


def test_a_workspace_ready_with_a_restarted_container_is_never_complete() -> None:
    """Who looks in late sees Ready, and one restart: what should have served has ended before."""
    w = WorkspaceProgress("w", 0.0)
    restarted = a_pod(state={"running": {}}, last=ended(0, "Completed"), restarts=1, conditions=[{"type": "Ready", "status": "True"}])
    restarted["metadata"]["labels"] = {"kaito.sh/workspace": "w"}
    w.take("Pod", "ADDED", restarted, 1.0)
    ready = {"type": "InferenceReady", "status": "True", "observedGeneration": 2}
    told = w.take(
        "Workspace", "ADDED", {"metadata": {"name": "w", "generation": 2}, "status": {"state": "Ready", "conditions": [ready]}}, 1.1
    )
    assert told.state == "failed"
    assert told.reason.startswith(
        "Pod p was started anew (restartCount 1): its container ended. It had ended with exit code 0 (Completed)."
    )


def test_a_pod_of_a_lost_node_does_not_end() -> None:
    r = Removal("Job", "j", 0.0, there=False)
    labels = {"batch.kubernetes.io/job-name": "j"}
    lost: Object = {
        "metadata": {"name": "p", "labels": labels, "deletionTimestamp": "…", "deletionGracePeriodSeconds": 30},
        "spec": {"nodeName": "n"},
    }
    assert r.take("Pod", "MODIFIED", lost, 1.0).state == "waiting"
    # Seen on the way out of the real operator's pod, after the whole of its grace: the kubelet deletes it with none.
    last = {**lost, "metadata": {**lost["metadata"], "deletionGracePeriodSeconds": 0}}
    assert r.take("Pod", "MODIFIED", last, 32.0).state == "waiting"
    told = r.at(41.0)
    assert (told.state, told.reason) == ("stuck", "Pod p does not end 40 s after its deletion; does the node n still answer?")


UNINSTALLED = {"packages": {"tuning": {"version": "1.1.4", "uninstall": {"enabled": True}}}}


def test_an_explicit_uninstall_is_waited_for_also_between_its_pods() -> None:
    """As the operator of 2026 does it (HandleFinalizer): the finalizer stays until no package that asks for it is in the node's state."""
    going = {"metadata": {"name": "s", "deletionTimestamp": "…", "finalizers": ["skyhook.nvidia.com/skyhook"]}, "spec": UNINSTALLED}
    state = {"n": {"tuning|1.1.4": {"stage": "uninstall", "state": "in_progress"}}}
    r = Removal("Skyhook", "s", 0.0)
    r.take("Skyhook", "MODIFIED", {**going, "status": {"nodeState": state}}, 1.0)
    assert r.at(20.0).state == "waiting"
    at_work = package_pod(None)
    r.take("Pod", "ADDED", at_work, 20.0)
    assert r.at(500.0).state == "waiting", "a script of ten minutes is none of our business"
    r.take("Pod", "DELETED", at_work, 500.0)
    assert r.at(519.0).state == "waiting"
    assert r.at(520.0).state == "stuck", "nobody goes on"
    r.take("Skyhook", "MODIFIED", {**going, "status": {"nodeState": {"n": {}}}}, 521.0)
    assert r.at(521.0).state == "stuck", "nothing is left to uninstall, and still it is held"


def test_a_failing_uninstall_is_told() -> None:
    r = Removal("Skyhook", "s", 0.0)
    r.take("Skyhook", "MODIFIED", {"metadata": {"name": "s", "deletionTimestamp": "…"}, "spec": UNINSTALLED}, 1.0)
    told = r.take("Pod", "ADDED", package_pod(0, 1), 6.0)
    assert (told.state, "container step1 ended with exit code 1" in told.reason) == ("stuck", True)
