"""A log read over several connections is one log; a pod's life and its log come into one queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fixtures.kubernetes.watch import (
    LAST_CONNECTION,
    Connected,
    Follower,
    LogLine,
    LogMerger,
    WatchEvent,
    WatchLost,
)
from tests.waiting import PATIENCE_S

Json = dict[str, Any]


def said(number: int) -> bytes:
    return b'{"event": "step", "index": %d}' % number


LOGS = st.lists(st.none() | st.text(alphabet="ab", max_size=3), max_size=12).map(
    # None is a line of the protocol; no two of these are equal.
    lambda lines: [
        said(number) if line is None else line.encode() for number, line in enumerate(lines)
    ]
)


@given(log=LOGS, cuts=st.lists(st.integers(0, 12), max_size=4), rotated=st.integers(0, 12))
def test_each_protocol_line_is_reported_once_over_repeated_reads(
    log: list[bytes], cuts: list[int], rotated: int
) -> None:
    """Each connection reads the log from its start and breaks; the last may lack early lines."""
    reader, seen = LogMerger(), []
    read = 0
    for connection, cut in enumerate(cuts, 1):
        seen += [line for line in log[:cut] if reader.take(connection, line)]
        read = max(read, min(cut, len(log)))
    seen += [line for line in log[min(rotated, read) :] if reader.take(LAST_CONNECTION, line)]
    assert seen == [line for line in log if line.startswith(b'{"event"')]


@given(log=LOGS, cuts=st.lists(st.integers(0, 12), max_size=4))
def test_the_tail_is_that_of_the_newest_connection(log: list[bytes], cuts: list[int]) -> None:
    """Not one line twice because it was read twice."""
    reader = LogMerger()
    for connection, cut in enumerate(cuts, 1):
        for line in log[:cut]:
            reader.take(connection, line)
    for line in log:
        reader.take(LAST_CONNECTION, line)
    assert reader.tail == tuple(line.decode() for line in log if not line.startswith(b'{"event"'))


def test_what_one_connection_brings_twice_was_written_twice() -> None:
    """A workload that repeats itself breaks the protocol, and the report is to see it."""
    reader = LogMerger()
    assert [reader.take(1, said(0)), reader.take(1, said(0))] == [said(0), said(0)]


def test_what_an_older_connection_still_brings_is_not_heard() -> None:
    reader = LogMerger()
    assert reader.take(2, said(0)) == said(0)
    assert reader.take(1, said(1)) is None
    assert reader.take(1, b"late") is None
    assert reader.tail == ()


def test_a_new_connection_that_brings_nothing_leaves_the_tail() -> None:
    """The pod is gone by then: what its log said before is all there is."""
    reader = LogMerger()
    reader.take(1, b"last words")
    assert reader.tail == ("last words",)


def test_the_tail_is_short_whatever_is_written() -> None:
    reader = LogMerger()
    for number in range(1000):
        reader.take(1, b"x" * 10_000 + b"%d" % number)
    assert len(reader.tail) == 20
    assert max(map(len, reader.tail)) == 500


def test_pod_states_and_log_lines_arrive_in_order_until_stopped(
    kubeconfig: Path, namespace: str, node_name: str, image: str, overlay_file: Path
) -> None:
    """A line is there while the program still runs; it waits for longer than the test would."""
    from fixtures.kubernetes import api, settings
    from fixtures.kubernetes.client import Where, connect

    cluster = connect(Where(str(kubeconfig), None, namespace))
    container = {
        "name": "main",
        "image": image,
        "command": [
            "python",
            "-S",
            "-c",
            "import time; print('one', flush=True); time.sleep(1000)",
        ],
    }
    marked = {"name": "p", "labels": {"batch.kubernetes.io/job-name": "j"}}
    spec = {"nodeName": node_name, "terminationGracePeriodSeconds": 1, "containers": [container]}
    api.create(
        cluster,
        api.PODS,
        settings.laid_over(settings.read_overlay(overlay_file), {"metadata": marked, "spec": spec}),
    )
    follower = Follower(cluster)
    follower.watch(api.PODS, labels="batch.kubernetes.io/job-name=j")
    seen: list[Any] = []

    def until(kind: type, **fields: Any) -> None:
        while True:
            seen.append(follower.next(PATIENCE_S))
            if isinstance(seen[-1], kind) and all(
                getattr(seen[-1], name) == value for name, value in fields.items()
            ):
                return

    while not seen or seen[-1].object["status"]["phase"] != "Running":
        until(WatchEvent)
    follower.read("p", "main")
    until(LogLine, text=b"one")
    follower.read_no_more("p")
    api.delete(cluster, api.PODS, "p")
    until(WatchEvent, type="DELETED")
    assert [one.text for one in seen if isinstance(one, LogLine)] == [b"one"]
    assert not [one for one in seen if isinstance(one, WatchLost)]
    assert next(one.unavailable_reason for one in seen if isinstance(one, Connected)) == ""
    follower.stop()
