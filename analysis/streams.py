"""Where words go: a stream may be closed, its disk full, or its reader gone, and none of that is a finding or a crash."""

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
    """Stands where the caller has closed standard output (`>&-`): Python has None there, which everything that prints falls over."""

    def write(self, _text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class _Nowhere(io.TextIOBase):
    """Stands where standard error was closed: what is said there is lost, and was meant to be."""

    def write(self, text: str) -> int:
        return len(text)


def mend() -> None:
    """See to it that both streams can be asked and written to, whatever the caller closed and whatever a terminal cannot show."""
    sys.stdout = sys.stdout or _Closed()
    sys.stderr = sys.stderr or _Nowhere()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a question mark in its place, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def say(text: str = "", stream: TextIO | None = None) -> str | None:
    """Write a text, and whatever waits to be written, to standard output or another stream.

    Returns: why that cannot be done; None where it was, or where the reader (head, less) has seen enough.
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
    """Write one line to standard error; where that cannot be done, the exit code must do."""
    short = LONG_WORD.sub(r"\1…\2", str(what))  # what is wrong with a very long name stands after it
    say(f"error: {inert(one_line(short, LONGEST))}\n", sys.stderr)


def silence(stream: TextIO) -> None:
    """Let what still waits in a stream go nowhere, so that the interpreter does not fail on it once more when it ends."""
    with suppress(OSError, ValueError):  # a stream without a file behind it has nothing that waits
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
