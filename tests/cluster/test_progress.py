"""What the recordings lack.

These objects are made up by the Kubernetes API reference (v1.34) and the kubelet's sources, trimmed
to what is read.
"""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.kubernetes import pods as pod
from fixtures.kubernetes.progress import JobProgress, SkyhookProgress, WorkspaceProgress
from fixtures.kubernetes.removal import Removal

Object = dict[str, Any]


def a_pod(
    *, state: Object | None = None, last: Object | None = None, restarts: int = 0, **status: Any
) -> Object:
    container = {
        "name": "c",
        "image": "bench:1",
        "restartCount": restarts,
        "state": state or {},
        "lastState": last or {},
    }
    return {
        "metadata": {"name": "p"},
        "status": {"phase": "Running", "containerStatuses": [container], **status},
    }


def ended(code: int, reason: str = "Error", **more: object) -> Object:
    return {"terminated": {"exitCode": code, "reason": reason, **more}}


def waits(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}


def failed(reason: str, message: str = "") -> Object:
    return {
        "metadata": {"name": "p"},
        "status": {"phase": "Failed", "reason": reason, "message": message},
    }


PREEMPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "preempting",
}
ENDS: list[tuple[Object, str]] = [
    (
        a_pod(state=ended(137, "OOMKilled"), phase="Failed"),
        (
            ": container c ended with exit code 137, SIGKILL, OOMKilled (it exceeded its memory "
            "limit)."
        ),
    ),
    (a_pod(state=ended(137), phase="Failed"), ": container c ended with exit code 137, SIGKILL."),
    (
        a_pod(state=ended(0, "Completed"), phase="Succeeded"),
        ": container c ended with exit code 0.",
    ),
    (
        a_pod(state=ended(128, "StartError", message="exec: no such file")),
        ": container c ended with exit code 128, StartError (exec: no such file).",
    ),
    (
        failed("Evicted", "The node was low on memory."),
        " was ended from outside (Evicted, The node was low on memory).",
    ),
    (failed("DeadlineExceeded"), " was ended from outside (DeadlineExceeded)."),
    (failed("OutOfcpu", "Not enough cpu"), " was ended from outside (OutOfcpu, Not enough cpu)."),
    (
        a_pod(state=ended(143), phase="Failed", conditions=[PREEMPTED]),
        (
            " was ended from outside (PreemptionByScheduler, preempting): container c ended with "
            "exit code 143, SIGTERM."
        ),
    ),
]


@pytest.mark.parametrize(("made_up", "says"), ENDS)
def test_how_a_pod_ended(made_up: Object, says: str) -> None:
    assert pod.how_it_ended(made_up) == f"Pod p{says}"


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (
            waits("InvalidImageName", "couldn't parse"),
            "image bench:1 cannot be pulled (InvalidImageName): couldn't parse.",
        ),
        (waits("ErrImageNeverPull"), "image bench:1 cannot be pulled (ErrImageNeverPull)."),
        (
            waits("CreateContainerConfigError", 'secret "x" not found'),
            '(CreateContainerConfigError): secret "x" not found.',
        ),
        (
            waits("CreateContainerError", "no command"),
            "it cannot be started (CreateContainerError): no command.",
        ),
        (
            waits("CrashLoopBackOff", "back-off 10s restarting"),
            (
                "it cannot be started (CrashLoopBackOff): ended with exit code 137, SIGKILL, "
                "OOMKilled (it exceeded its memory limit)."
            ),
        ),
    ],
)
def test_what_stands_in_a_pods_way_and_will_not_go_by_itself(state: Object, says: str) -> None:
    found = pod.hindrance(a_pod(state=state, last=ended(137, "OOMKilled"), phase="Pending"))
    assert found is not None
    assert found.reason.startswith("Pod p, container c: ")
    assert found.reason.endswith(says)
    assert found.grace_s == 0


def test_only_an_event_reports_a_volume_that_cannot_be_mounted() -> None:
    """The pod's status stays ContainerCreating; 15 s are allowed for what may recover."""
    pending = a_pod(state=waits("ContainerCreating"), phase="Pending")
    event = {
        "type": "Warning",
        "reason": "FailedMount",
        "message": 'configmap "x" not found',
        "involvedObject": {"kind": "Pod", "name": "p"},
    }
    other = {**event, "involvedObject": {"kind": "Pod", "name": "other"}}
    assert pod.hindrance(pending, [other]) is None
    found = pod.hindrance(pending, [event])
    assert found == pod.Hindrance(
        'Pod p cannot be set up on its node: configmap "x" not found.', 15.0
    )


# --- Skyhook ---

NAME = {"skyhook.nvidia.com/name": "s", "skyhook.nvidia.com/package": "tuning-1.1.4"}


def skyhook(
    status: str = "", *, nodes: str = "0/1", state: Object | None = None, **more: Any
) -> Object:
    found: Object = {
        "metadata": {"name": "s", "generation": 2, "finalizers": ["skyhook.nvidia.com/skyhook"]},
        "status": {"completeNodes": nodes},
    }
    if status:
        found["status"] |= {
            "status": status,
            "nodeStatus": {"n": status},
            "nodeState": {"n": state or {}},
        }
    found["status"] |= more
    return found


def package_pod(*codes: int | None, name: str = "s-tuning-apply", **metadata: Any) -> Object:
    steps = [
        {"name": f"step{i}", "state": {"running": {}} if code is None else ended(code)}
        for i, code in enumerate(codes)
    ]
    return {
        "metadata": {"name": name, "labels": NAME, **metadata},
        "status": {"phase": "Pending", "initContainerStatuses": steps},
    }


Step = tuple[str, str, Object, float] | float  # an event and when it came, or a look at the clock


Client = type[SkyhookProgress | JobProgress | WorkspaceProgress]
# Steps, what is thought after each, and the last reason: a whole sentence, or its beginning.
Story = tuple[list[Step], list[str], str]


GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
BARE: Object = {"metadata": {"name": "s", "generation": 1}}
COMPLETE = skyhook("complete", nodes="1/1", observedGeneration=2)


def interrupts(code: int | None) -> Object:
    found = package_pod(code, name="s-interrupt-reboot")
    return {
        **found,
        "metadata": {
            **found["metadata"],
            "labels": {**NAME, "skyhook.nvidia.com/interrupt": "True"},
        },
    }


def fails_and_runs_again() -> Object:
    """Between two events it may have been restarted already: the exit code is in its last state."""
    found = package_pod(0, None)
    found["status"]["initContainerStatuses"][1]["lastState"] = ended(3)
    return found


GROUP = "nodewright.nvidia.com"


def stage_job(*conditions: str, failed: int = 0, stage: str = "apply", **metadata: Any) -> Object:
    """The Job of a package's stage from v0.18 on."""
    labels = {f"{GROUP}/name": "s", f"{GROUP}/stage": stage}
    found = [
        {
            "type": kind,
            "status": "True",
            "reason": "BackoffLimitExceeded" if kind == "Failed" else "",
        }
        for kind in conditions
    ]
    return {
        "metadata": {
            "name": f"s-tuning-{stage}",
            "labels": labels,
            **metadata,
        },
        "spec": {"backoffLimit": 3},
        "status": {"conditions": found, "failed": failed, "active": 0 if conditions else 1},
    }


def of_job(*codes: int | None, stage: str = "apply", attempt: int = 1, **metadata: Any) -> Object:
    """A pod of such a Job. It stays when it has ended."""
    found = package_pod(*codes, name=f"s-tuning-{stage}-{attempt}", **metadata)
    owner = {"kind": "Job", "name": f"s-tuning-{stage}"}
    labels = {f"{GROUP}/name": "s", "batch.kubernetes.io/job-name": owner["name"]}
    phase = "Failed" if any(codes) else "Succeeded" if None not in codes else "Pending"
    found["metadata"] |= {"labels": labels, "ownerReferences": [owner]}
    found["status"]["phase"] = phase
    return found


def nodewright(
    status: str = "in_progress", state: str = "in_progress", stage: str = "apply", **more: Any
) -> Object:
    return skyhook(status, state={"tuning|1.1.4": {"stage": stage, "state": state}}, **more)


TRIED = "Pod s-tuning-apply-1: container step1 ended with exit code 1."
SPENT = (
    "NodeWright s: package tuning 1.1.4, stage apply on node n is erroring. Job s-tuning-apply "
    "failed (BackoffLimitExceeded)."
)
NODEWRIGHTS: dict[str, Story] = {
    # The first stage's pod stays for an hour; the second stage takes longer than 5 s.
    "a later stage that takes long": (
        [
            ("NodeWright", "ADDED", nodewright(), 0.1),
            ("Pod", "ADDED", of_job(0, 0), 1.0),
            ("Job", "ADDED", stage_job("Complete"), 1.1),
            ("Job", "ADDED", stage_job(stage="config"), 1.5),
            ("Pod", "ADDED", of_job(0, None, stage="config"), 1.6),
            600.0,
            ("Job", "MODIFIED", stage_job("Complete", stage="config"), 601.0),
            ("NodeWright", "MODIFIED", COMPLETE, 601.1),
        ],
        [*["waiting"] * 7, "complete"],
        "",
    ),
    # Up to v0.19 the status says so after the first attempt; the second one succeeds.
    "an attempt that fails and is tried again": (
        [
            ("Job", "ADDED", stage_job(), 0.1),
            ("Pod", "MODIFIED", of_job(0, 1), 1.0),
            ("NodeWright", "MODIFIED", nodewright("erroring", "erroring"), 1.1),
            ("Job", "MODIFIED", stage_job(failed=1), 1.2),
            60.0,
            ("Pod", "ADDED", of_job(0, 0, attempt=2), 61.0),
            ("Job", "MODIFIED", stage_job("Complete", failed=1), 61.1),
            ("NodeWright", "MODIFIED", COMPLETE, 61.2),
        ],
        [*["waiting"] * 7, "complete"],
        "",
    ),
    "the last attempt": (
        [
            ("Pod", "ADDED", of_job(0, 1), 1.0),
            ("Job", "MODIFIED", stage_job(failed=1), 1.2),
            ("Job", "MODIFIED", stage_job("Failed", failed=4), 71.0),
            ("NodeWright", "MODIFIED", nodewright("erroring", "erroring"), 71.1),
        ],
        ["waiting", "waiting", "waiting", "failed"],
        f"{SPENT} {TRIED}",
    ),
    # The kubelet took none of its pods: the operator makes the Job anew, under the same name.
    "a Job without an attempt of its own": (
        [
            ("NodeWright", "ADDED", nodewright(), 0.1),
            ("Job", "ADDED", stage_job("Failed", failed=4, uid="1"), 60.0),
            ("Job", "DELETED", stage_job("Failed", failed=4, uid="1"), 61.0),
            ("Job", "ADDED", stage_job(uid="2"), 62.0),
            ("Pod", "ADDED", of_job(0, 0), 63.0),
            ("NodeWright", "MODIFIED", COMPLETE, 64.0),
        ],
        [*["waiting"] * 5, "complete"],
        "",
    ),
    # Its own shutdown ends it, also with `erroring` up to v0.19; the same pod goes on afterwards.
    "a reboot, of which the Job says nothing yet": (
        [
            ("Job", "ADDED", stage_job(stage="interrupt"), 0.1),
            ("Pod", "MODIFIED", of_job(255, stage="interrupt"), 1.0),
            ("NodeWright", "MODIFIED", nodewright("erroring", "erroring", "interrupt"), 1.1),
        ],
        ["waiting"] * 3,
        "",
    ),
    # No Job has failed: a drain has lasted too long.
    "erroring without a Job": (
        [("NodeWright", "ADDED", skyhook("erroring"), 0.1), 2.0, 2.1],
        ["waiting", "waiting", "failed"],
        "NodeWright s: its status is erroring.",
    ),
    "a Job's end that nobody notes": (
        [
            ("NodeWright", "ADDED", nodewright(), 0.1),
            ("Job", "ADDED", stage_job(), 0.2),
            ("Job", "MODIFIED", stage_job("Complete"), 5.0),
            24.9,
            25.0,
        ],
        [*["waiting"] * 4, "stuck"],
        "NodeWright s is in_progress, has no running pod, and the operator has been silent",
    ),
}
SKYHOOKS: dict[str, Story] = {
    # A watch that was cut may have missed the pod; nodeState keeps `erroring` when the status no
    # longer does.
    "a stage that errs for an instant": (
        [
            ("Skyhook", "ADDED", skyhook("in_progress"), 1.0),
            (
                "Skyhook",
                "MODIFIED",
                skyhook(
                    "in_progress",
                    state={"tuning|1.1.4": {"stage": "uninstall", "state": "erroring"}},
                ),
                2.0,
            ),
        ],
        ["waiting", "failed"],
        "Skyhook s: package tuning 1.1.4, stage uninstall on node n is erroring.",
    ),
    # The interrupt's pod dies with the machine that it reboots: exit 255, and `erroring` until it
    # was run again.
    "a reboot that kills its own pod": (
        [
            ("Skyhook", "ADDED", skyhook("in_progress"), 0.1),
            ("Pod", "ADDED", interrupts(None), 1.0),
            ("Pod", "MODIFIED", interrupts(255), 2.0),
            (
                "Skyhook",
                "MODIFIED",
                skyhook(
                    "erroring", state={"tuning|1.1.4": {"stage": "interrupt", "state": "erroring"}}
                ),
                3.0,
            ),
        ],
        ["waiting"] * 4,
        "",
    ),
    # A resource of the same name was there a moment ago, its last pod is still ending; the new one
    # is complete from its marks.
    "a pod from before proves nothing": (
        [
            ("Pod", "ADDED", package_pod(0, 0, **GOING), 0.1),
            ("Skyhook", "ADDED", COMPLETE, 0.2),
            ("Pod", "DELETED", package_pod(0, 0, **GOING), 1.0),
            2.2,
        ],
        ["waiting", "waiting", "waiting", "failed"],
        "Nothing ran",
    ),
    # Watches of different kinds come in no common order.
    "a pod's end after complete": (
        [
            ("Pod", "ADDED", package_pod(0, None), 0.1),
            ("Skyhook", "ADDED", COMPLETE, 0.2),
            ("Pod", "MODIFIED", package_pod(0, 0), 0.3),
        ],
        ["waiting", "waiting", "complete"],
        "",
    ),
    # Somebody has changed the spec: what the operator says is of before.
    "complete of an earlier generation": (
        [
            ("Pod", "ADDED", package_pod(0, 0), 0.1),
            ("Skyhook", "ADDED", skyhook("complete", nodes="1/1", observedGeneration=1), 0.2),
            ("Skyhook", "MODIFIED", COMPLETE, 0.3),
        ],
        ["waiting", "waiting", "complete"],
        "",
    ),
    # The operator deletes a pod to make a new one, e.g. after a change; whatever runs in it ends
    # with 143 or 137.
    "a pod killed because it is deleted": (
        [
            ("Pod", "ADDED", package_pod(0, None), 0.1),
            ("Pod", "MODIFIED", package_pod(0, 137, **GOING), 0.2),
        ],
        ["waiting", "waiting"],
        "",
    ),
    "a step that failed and runs again": (
        [("Pod", "ADDED", fails_and_runs_again(), 0.1)],
        ["failed"],
        "Pod s-tuning-apply: container step1 ended with exit code 3.",
    ),
    "an operator that died between two stages": (
        [("Skyhook", "ADDED", skyhook("in_progress"), 1.0), 20.9, 21.0],
        ["waiting", "waiting", "stuck"],
        "Skyhook s is in_progress, has no running pod, and the operator has been silent for 20 s.",
    ),
    "a node that leaves the cluster": (
        [
            ("Node", "ADDED", {"metadata": {"name": "n"}}, 0.0),
            ("Skyhook", "ADDED", skyhook("in_progress"), 1.0),
            ("Node", "DELETED", {"metadata": {"name": "n"}}, 2.0),
        ],
        ["waiting", "waiting", "failed"],
        "Node n is no longer part of the cluster.",
    ),
    # NodeWright: the same schema under another group and kind.
    "the operator's new name": (
        [
            (
                "Pod",
                "ADDED",
                {
                    **package_pod(0, 0),
                    "metadata": {"name": "p", "labels": {"nodewright.nvidia.com/name": "s"}},
                },
                1.0,
            ),
            ("NodeWright", "ADDED", COMPLETE, 1.1),
        ],
        ["waiting", "complete"],
        "",
    ),
}


# --- Job, Workspace, Removal ---

JOB: Object = {"metadata": {"name": "j"}, "spec": {}}
REFUSED = {
    "reason": "FailedCreate",
    "message": 'pods "j-x" is forbidden: exceeded quota',
    "involvedObject": {"kind": "Job", "name": "j"},
}
LATE = {
    "type": "Failed",
    "status": "True",
    "reason": "DeadlineExceeded",
    "message": "Job was active longer than specified deadline",
}


def owned(found: Object, label: str, of: str, **metadata: str) -> Object:
    return {**found, "metadata": {**found["metadata"], "labels": {label: of}, **metadata}}


JOBS: dict[str, Story] = {
    "suspended": (
        [("Job", "ADDED", {**JOB, "spec": {"suspend": True}}, 0.1)],
        ["stuck"],
        "Job j is suspended: its spec.suspend is true.",
    ),
    # An admission rule or a quota refuses the pod: only an Event of the Job tells it.
    "its pod may not be made": (
        [("Job", "ADDED", JOB, 0.1), ("Event", "ADDED", REFUSED, 0.2), 10.0],
        ["waiting", "waiting", "stuck"],
        'Job j has no pod 10 s after its creation: pods "j-x" is forbidden: exceeded quota.',
    ),
}


READY = {"type": "Ready", "status": "True"}
SERVES: Object = {
    "metadata": {"name": "w", "generation": 2},
    "status": {
        "state": "Ready",
        "conditions": [{"type": "InferenceReady", "status": "True", "observedGeneration": 2}],
    },
}
RESTARTED = a_pod(state={"running": {}}, last=ended(0, "Completed"), restarts=1, conditions=[READY])
WORKSPACES: dict[str, Story] = {
    "nobody takes it up": (
        [("Workspace", "ADDED", {"metadata": {"name": "w", "generation": 1}}, 0.1), 9.9, 10.0],
        ["waiting", "waiting", "stuck"],
        "Workspace w has no state 10 s after its creation: check that KAITO is installed",
    ),
    # Who looks in late sees Ready, and one restart: what should have served has ended before.
    "ready with a restarted container": (
        [
            ("Pod", "ADDED", owned(RESTARTED, "kaito.sh/workspace", "w"), 1.0),
            ("Workspace", "ADDED", SERVES, 1.1),
        ],
        ["failed", "failed"],
        "Pod p was restarted. Pod p: container c ended with exit code 0",
    ),
}


@pytest.mark.parametrize(
    ("client", "name", "story"),
    [
        *((SkyhookProgress, "s", story) for story in (SKYHOOKS | NODEWRIGHTS).values()),
        *((JobProgress, "j", story) for story in JOBS.values()),
        *((WorkspaceProgress, "w", story) for story in WORKSPACES.values()),
    ],
    ids=[*SKYHOOKS, *NODEWRIGHTS, *JOBS, *WORKSPACES],
)
def test_what_is_thought_after_each_step(client: Client, name: str, story: Story) -> None:
    steps, states, reason = story
    judge = client(name, 0.0)
    found = [judge.at(step) if isinstance(step, float) else judge.take(*step) for step in steps]
    assert [conclusion.state for conclusion in found] == states
    said = found[-1].reason
    assert said == reason if reason.endswith(".") else said.startswith(reason)


def test_a_pod_of_a_lost_node_does_not_end() -> None:
    r = Removal("Job", "j", 0.0, there=False)
    labels = {"batch.kubernetes.io/job-name": "j"}
    lost: Object = {
        "metadata": {
            "name": "p",
            "labels": labels,
            "deletionTimestamp": "…",
            "deletionGracePeriodSeconds": 30,
        },
        "spec": {"nodeName": "n"},
    }
    assert r.take("Pod", "MODIFIED", lost, 1.0).state == "waiting"
    # Seen on the way out of the real operator's pod, after the whole of its grace: the kubelet
    # deletes it with none.
    last = {**lost, "metadata": {**lost["metadata"], "deletionGracePeriodSeconds": 0}}
    assert r.take("Pod", "MODIFIED", last, 32.0).state == "waiting"
    told = r.at(41.0)
    assert (told.state, told.reason) == (
        "stuck",
        "Pod p has not ended 40 s after its deletion; does the node n still respond?",
    )


UNINSTALLED = {"packages": {"tuning": {"version": "1.1.4", "uninstall": {"enabled": True}}}}


def test_removal_waits_for_an_explicit_uninstall_between_pods() -> None:
    """HandleFinalizer (2026): the finalizer stays while a requesting package is in the state."""
    going = {
        "metadata": {
            "name": "s",
            "deletionTimestamp": "…",
            "finalizers": ["skyhook.nvidia.com/skyhook"],
        },
        "spec": UNINSTALLED,
    }
    state = {"n": {"tuning|1.1.4": {"stage": "uninstall", "state": "in_progress"}}}
    r = Removal("Skyhook", "s", 0.0)
    r.take("Skyhook", "MODIFIED", {**going, "status": {"nodeState": state}}, 1.0)
    assert r.at(20.0).state == "waiting"
    at_work = package_pod(None)
    r.take("Pod", "ADDED", at_work, 20.0)
    assert r.at(500.0).state == "waiting", "a script of ten minutes is none of our business"
    r.take("Pod", "DELETED", at_work, 500.0)
    assert r.at(519.0).state == "waiting"
    assert r.at(520.0).state == "stuck", "without a next step"
    r.take("Skyhook", "MODIFIED", {**going, "status": {"nodeState": {"n": {}}}}, 521.0)
    assert r.at(521.0).state == "stuck", "nothing is left to uninstall, and still it is held"


def test_a_failed_attempt_that_is_kept_hinders_no_uninstall() -> None:
    """From v0.18 on, an earlier stage's pod stays, and a failed uninstall Job tries again."""
    r = Removal("NodeWright", "s", 0.0)
    going = {"metadata": {"name": "s", "deletionTimestamp": "…"}, "spec": UNINSTALLED}
    state = {"n": {"tuning|1.1.4": {"stage": "uninstall", "state": "in_progress"}}}
    r.take("Pod", "ADDED", of_job(0, 1), 0.5)
    r.take("NodeWright", "MODIFIED", {**going, "status": {"nodeState": state}}, 1.0)
    assert r.at(20.0) == pod.Conclusion("waiting", "NodeWright s is being uninstalled.")
    assert r.at(21.0).state == "stuck", "the pod that failed is not at work"


def test_a_failing_uninstall_is_told() -> None:
    r = Removal("Skyhook", "s", 0.0)
    r.take(
        "Skyhook",
        "MODIFIED",
        {"metadata": {"name": "s", "deletionTimestamp": "…"}, "spec": UNINSTALLED},
        1.0,
    )
    told = r.take("Pod", "ADDED", package_pod(0, 1), 6.0)
    assert (told.state, "container step1 ended with exit code 1" in told.reason) == ("stuck", True)
