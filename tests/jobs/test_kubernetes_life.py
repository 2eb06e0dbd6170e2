"""Jobs, pods and nodes: each stage of a job's life is reported once, in order, despite gaps."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.studies.jobs.engines.job_states import AttemptState, JobStates
from fixtures.studies.jobs.terms import Event, Used

Json = dict[str, Any]
NAME, NODE = "deeptweak-0123456789ab-0-1", "node-a"
WORK = 4.0


def said(**more: object) -> str:
    """A container's last word."""
    return json.dumps(
        {
            "reason": "",
            "done_work": WORK,
            "checkpoints": 0,
            "result": None,
            "ran_s": 2.0,
            "cpu_s": 1.0,
            **more,
        }
    )


def running() -> Json:
    return {"running": {"startedAt": "2026-01-01T00:00:01Z"}}


def ended(code: int = 0, message: str = "", reason: str = "Completed") -> Json:
    times = {"startedAt": "2026-01-01T00:00:01Z", "finishedAt": "2026-01-01T00:00:03Z"}
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, **times}}


def pod(*states: Json, phase: str = "Running", going: bool = False, reason: str = "") -> Json:
    metadata = {"name": f"{NAME}-x", "uid": "1", "labels": {"batch.kubernetes.io/job-name": NAME}}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:02Z"
    statuses = [
        {"name": f"replica-{number}", "state": state} for number, state in enumerate(states)
    ]
    return {
        "metadata": metadata,
        "spec": {"nodeName": NODE},
        "status": {"phase": phase, "reason": reason, "containerStatuses": statuses},
    }


def job(*, suspend: bool = False, failed: str = "") -> Json:
    conditions = (
        [{"type": "Failed", "status": "True", "reason": failed, "message": "so it is"}]
        if failed
        else []
    )
    return {
        "metadata": {"name": NAME},
        "spec": {"suspend": suspend},
        "status": {"conditions": conditions},
    }


def lives(*, replicas: int = 1, admitted: bool = True, lines: tuple[Json, ...] = ()) -> JobStates:
    made = JobStates(lambda _life, _pod: lines)
    made.by_name[NAME] = AttemptState(0, 1, NAME, WORK, replicas, node=NODE, admitted=admitted)
    return made


def only_end(events: list[Event]) -> Event:
    [end] = [one for one in events if one.what == "ended"]
    return end


STAGES = [
    pod(phase="Pending"),
    pod({"waiting": {"reason": "ContainerCreating"}}, phase="Pending"),
    pod(running()),
    pod(running(), going=True),
    pod(ended(message=said()), going=True),
    pod(ended(message=said()), phase="Succeeded"),
]


@given(
    shown=st.sets(st.integers(0, len(STAGES) - 2)),
    again=st.lists(st.integers(1, 3), min_size=7, max_size=7),
)
def test_missed_or_repeated_watch_events_report_a_life_once(
    shown: set[int], again: list[int]
) -> None:
    """A new list shows the present: stages may be missing or repeated, but the last one comes."""
    at_s, one, events = itertools.count(10.0), lives(), []
    for stage in [*sorted(shown), len(STAGES) - 1]:
        for _ in range(again[stage]):
            events += one.pod(next(at_s), "MODIFIED", STAGES[stage])
    assert [event.what for event in events] == ["started", "ended"]
    start, end = events
    assert start.at_s <= end.at_s
    assert (end.outcome, end.done_work, end.node) == ("done", WORK, NODE)
    assert [life.job for life in one.over] == [0]
    assert one.running() == {}


def test_an_unseen_start_is_derived_from_the_pods_own_clock() -> None:
    """2 s before its end, by what it said; else by the kubelet's stamps, 00:00:01 to 00:00:03."""
    for message in (said(), ""):
        start, end = lives().pod(100.0, "ADDED", pod(ended(message=message), phase="Succeeded"))
        assert (start.what, start.at_s, end.at_s) == ("started", 98.0, 100.0)


def test_the_end_has_all_replicas_usage_and_the_firsts_result() -> None:
    states = [
        ended(message=said(cpu_s=1.0, max_rss_mib=10.0, throttled_s=None, result={"loss": value}))
        for value in (0.5, 0.7)
    ]
    end = only_end(lives(replicas=2).pod(1.0, "MODIFIED", pod(*states, phase="Succeeded")))
    assert (end.used.cpu_s, end.used.max_rss_mib, end.used.throttled_s) == (2.0, 20.0, None)
    assert end.result == {
        "loss": 0.5,
        "pod_ran_s": 2.0,
        "server_started_unix_s": 1767225601.0,
        "server_ended_unix_s": 1767225603.0,
    }


def test_a_replica_that_fails_dooms_the_others_and_is_the_reason() -> None:
    """The Job is deleted then, and what its pod says of that is not why the job failed."""
    one = lives(replicas=2)
    one.pod(1.0, "MODIFIED", pod(running(), running()))
    failed = ended(1, said(reason="no such data", done_work=1.0), "Error")
    assert one.pod(2.0, "MODIFIED", pod(running(), failed)) == []
    assert one.doomed == [NAME]
    assert one.job(3.0, "DELETED", job()) == []
    end = only_end(
        one.pod(
            4.0,
            "MODIFIED",
            pod(ended(143, said(reason="told to end"), "Error"), failed, going=True),
        )
    )
    assert (end.outcome, end.reason) == ("failed", "no such data")


@pytest.mark.parametrize(
    ("last", "outcome", "words"),
    [
        (
            pod(ended(1, "Traceback: no", "Error"), phase="Failed"),
            "failed",
            "ended with exit code 1 (Traceback: no)",
        ),
        (
            pod(ended(137, "", "OOMKilled"), phase="Failed"),
            "killed",
            "OOMKilled (it exceeded its memory limit",
        ),
        (pod(ended(137, "", "Error"), phase="Failed"), "killed", "exit code 137, SIGKILL"),
        (pod(ended(143, said(), "Error"), going=True), "killed", "exit code 143, SIGTERM"),
        (
            pod(running(), phase="Failed", reason="Evicted"),
            "killed",
            "was ended from outside (Evicted",
        ),
        (pod(phase="Failed", reason="OutOfcpu"), "killed", "was ended from outside (OutOfcpu"),
        (
            pod({"waiting": {"reason": "ImagePullBackOff"}}, phase="Pending"),
            "failed",
            "cannot be pulled (ImagePullBackOff)",
        ),
    ],
)
def test_an_end_that_is_none_has_an_outcome_and_a_reason(
    last: Json, outcome: str, words: str
) -> None:
    end = only_end(lives().pod(1.0, "MODIFIED", last))
    assert end.outcome == outcome
    assert words in end.reason
    assert "{" not in end.reason


def test_a_vanished_pod_keeps_the_work_of_its_last_checkpoint() -> None:
    one = lives()
    one.pod(1.0, "MODIFIED", pod(running()))
    one.checkpoint(2.0, NAME, {"told": 1, "checkpoint": 1.5, "cost_s": 0.1})
    end = only_end(one.pod(3.0, "DELETED", pod(running())))
    assert (end.outcome, end.reason, end.done_work, end.used) == (
        "killed",
        "its pod was deleted",
        1.5,
        Used(),
    )


def test_checkpoints_come_once_by_any_connection_before_the_end() -> None:
    lines = tuple(
        {"told": number, "checkpoint": float(number), "cost_s": 0.1} for number in (1, 2, 3)
    )
    one = lives(lines=lines)
    one.pod(1.0, "MODIFIED", pod(running()))
    # A reopened log begins at its first line.
    for line in (lines[0], lines[1], lines[0]):
        one.checkpoint(2.0, NAME, line)
    events = one.pod(3.0, "MODIFIED", pod(ended(message=said()), phase="Succeeded"))
    assert [(event.what, event.done_work) for event in events] == [
        ("checkpoint", 3.0),
        ("ended", WORK),
    ]
    assert one.checkpoint(4.0, NAME, {"told": 4, "checkpoint": 4.0, "cost_s": 0.1}) == []


def test_a_job_without_a_pod_may_fail_and_be_deleted() -> None:
    end = only_end(lives().job(1.0, "MODIFIED", job(failed="DeadlineExceeded")))
    assert (end.outcome, end.reason) == (
        "failed",
        "its Job failed without a pod (DeadlineExceeded: so it is)",
    )
    end = only_end(lives().job(1.0, "DELETED", job()))
    assert (end.outcome, end.reason) == ("killed", f"its Job {NAME} was deleted from outside")


def test_a_node_of_which_nobody_hears_takes_its_jobs_with_it() -> None:
    """Whichever is heard of first: the node or the pod."""
    one = lives()
    one.pod(1.0, "MODIFIED", pod(running()))
    assert one.node(2.0, "another", ready=False) == []
    end = only_end(one.node(3.0, NODE, ready=False))
    assert (end.outcome, end.at_s) == ("killed", 3.0)
    assert f"node {NODE} is not ready; its processes may keep running" in end.reason
    other = lives()
    other.node(1.0, NODE, ready=False)
    assert only_end(other.pod(2.0, "MODIFIED", pod(running()))).outcome == "killed"
