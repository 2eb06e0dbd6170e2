"""Output streams: a closed stream, full disk or lost reader is neither a finding nor a crash."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from contextlib import suppress
from typing import TextIO

from .plain import inert, one_line

LONGEST = 2000
LONG_WORD = re.compile(r"(\S{200})\S{200,}(\S{50})")


class _Closed(io.TextIOBase):
    """Replaces a closed standard output (`>&-`), for which Python's None makes printing fail."""

    def write(self, _text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class _Nowhere(io.TextIOBase):
    """Replaces a closed standard error: its messages are discarded, as intended."""

    def write(self, text: str) -> int:
        return len(text)


def mend() -> None:
    """Make both streams usable, even if closed or on a terminal that lacks characters."""
    sys.stdout = sys.stdout or _Closed()
    sys.stderr = sys.stderr or _Nowhere()
    for stream in (sys.stdout, sys.stderr):
        # A terminal shows a question mark in place of a character that it cannot encode, not a
        # traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def say(text: str = "", stream: TextIO | None = None) -> str | None:
    """Write a text and all buffered output to standard output or another stream.

    Returns: the reason for a failure; None for success or if the reader (head, less) has closed it.
    """
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OSError as error:
        silence(stream)
        return error.strerror or str(error)
    return None


def complain(what: object) -> None:
    """Write one line to standard error; if that fails, only the exit code reports the error."""
    short = LONG_WORD.sub(r"\1…\2", str(what))  # the error follows the name, however long
    say(f"error: {inert(one_line(short, LONGEST))}\n", sys.stderr)


def silence(stream: TextIO) -> None:
    """Discard a stream's buffered output, so the interpreter does not fail on it again at exit."""
    with suppress(OSError, ValueError):  # a stream without a file has nothing buffered
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
