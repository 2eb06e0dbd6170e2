"""A stream that is shut from another thread, and one that brings what is no event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from fixtures.cluster.streaming import Ended, Stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    import urllib3

# What one read of a TLS socket brought that had been shut meanwhile: Python had let go of TLS, so the kernel's bytes came as they were.
CIPHERTEXT = bytes.fromhex("170303001afc8e2d0a90")


class Response:
    """An answer that goes on, as far as a stream needs it: a stand-in, since the moment cannot be met in a real one."""

    connection = None

    def __init__(self) -> None:
        self.stream_of: Stream | None = None

    def stream(self, _: int) -> Iterator[bytes]:
        yield b'{"type": "ADDED"}\n'
        assert self.stream_of is not None
        self.stream_of.shut()  # while the next read waits
        yield CIPHERTEXT

    def shutdown(self) -> None:
        """Nothing: the read ends by itself."""


def test_what_comes_after_it_was_shut_is_no_line() -> None:
    response = Response()
    stream = Stream(cast("urllib3.BaseHTTPResponse", cast("Any", response)))
    response.stream_of = stream
    assert stream.line(None) == b'{"type": "ADDED"}'
    with pytest.raises(Ended) as ended:
        stream.line(None)
    assert ended.value.why is None
