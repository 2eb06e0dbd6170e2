"""A log read over several connections is one log; a pod's life and its log come into one queue."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fixtures.kubernetes.watch import (
    LAST_CONNECTION,
    LogMerger,
)

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


def test_the_tail_is_short_whatever_is_written() -> None:
    reader = LogMerger()
    for number in range(1000):
        reader.take(1, b"x" * 10_000 + b"%d" % number)
    assert len(reader.tail) == 20
    assert max(map(len, reader.tail)) == 500
