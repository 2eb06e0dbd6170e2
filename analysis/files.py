"""Read and write files and streams: never wait on a pipe, write half a file, or overwrite one."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from .plain import inert, one_line
from .terms import Refused, Unreadable
from .wording import suggestion

LARGEST_BYTES = 512 * 1024**2  # the largest saved run known has 40 MB
NO_FILE = "cannot be read: No such file or directory"


def read_whole(path: Path, missing: str = NO_FILE) -> bytes:
    """Read a file, following a link. `missing` is the message if the file does not exist.

    Raises: Unreadable, if it is not a regular file, is larger than 512 MiB, or cannot be read.
    """
    must_be_file(path, missing)
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {reason_of(error)}.") from None


def read_text(path: Path, kind: str, missing: str = NO_FILE) -> str:
    """Read a UTF-8 text file; `kind` ends the error message. Raises: Unreadable."""
    content = read_whole(path, missing)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error, kind) from None


def not_utf8(path: Path, error: UnicodeDecodeError, kind: str) -> Unreadable:
    before = error.object[: error.start].decode("utf-8", "replace")
    return Unreadable(
        f"{path}: not UTF-8 at {place_in(before)} (byte 0x{error.object[error.start]:02x}); {kind}."
    )


def place_in(before: str) -> str:
    line_start = before.rfind("\n") + 1
    return f"line {before.count(chr(10)) + 1} column {len(before) - line_start + 1}"


def unpacked(path: Path, packed: bytes) -> bytes:
    import lzma

    try:
        with lzma.open(io.BytesIO(packed)) as source:
            content = source.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise Unreadable(
            f"{path}: cannot be unpacked ({type(error).__name__}: {error}); copy the file from "
            "its source again."
        ) from None
    if len(content) > LARGEST_BYTES:
        raise Unreadable(
            f"{path}: unpacks to more than {LARGEST_BYTES // 1024**2} MiB, which is too large for "
            "a saved run."
        )
    return content


def must_be_file(path: Path, missing: str = NO_FILE) -> None:
    """Check that a path is a regular file of at most 512 MiB. Opening a pipe could already block.

    Raises: Unreadable.
    """
    try:
        result = path.stat()
    except FileNotFoundError:
        siblings = [sibling.stem for sibling in path.parent.glob(f"*{path.suffix}")]
        hint = suggestion(path.stem, siblings).replace("'?", f"{path.suffix}'?")
        raise Unreadable(f"{path}: {missing}.{hint}") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: cannot be read: {reason_of(error)}.") from None
    if not stat.S_ISREG(result.st_mode):
        what = "Is a directory" if stat.S_ISDIR(result.st_mode) else "It is a pipe or a device"
        raise Unreadable(f"{path}: cannot be read: {what}; name a file.")
    if result.st_size > LARGEST_BYTES:
        mib = 1024**2
        raise Unreadable(
            f"{path}: has {result.st_size // mib} MiB, too large for a saved run (at most "
            f"{LARGEST_BYTES // mib}); name another file."
        )


def resolved(path: Path | str) -> Path:
    """Return the target of a path after following links, whether or not it exists.

    Raises: Refused, for circular links and invalid file names.
    """
    try:
        place = Path(path).resolve()
        place.exists()  # raises for a name that is too long
        # Python 3.13 and later leave circular links as they are.
        reason = reason_of(RuntimeError()) if place.is_symlink() else None
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: up to Python 3.12
        reason = reason_of(error)
    if reason:
        raise Refused(f"{path}: {reason}.")
    return place


def reason_of(error: Exception) -> str:
    if isinstance(error, RuntimeError):
        return "its links are circular"
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


@contextmanager
def damaged(origin: object, use: str) -> Iterator[None]:
    """Turn arithmetic errors on data that passed the reader into a Refused that names the file.

    Raises: Refused.
    """
    try:
        yield
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Refused(
            f"{origin}: cannot be {use} ({type(error).__name__}: {error}); the file is damaged or "
            "was edited."
        ) from error


NAME = re.compile(r"[\w@+=-][\w.@+=-]{,200}")


def must_be_new(path: Path, sources: Iterable[Path]) -> None:
    """Check that writing a file overwrites nothing. Raises: Refused."""
    place = resolved(path)
    if any(place == resolved(source) for source in sources):
        raise Refused(f"{path}: is an input, and inputs are never overwritten; name another file.")
    if place.exists():
        raise Refused(f"{path}: already exists; name another file.")


def must_be_a_name(name: str, what: str) -> str:
    """Return a name if it is safe for a file. Raises: Refused."""
    if not NAME.fullmatch(name):
        raise Refused(
            f"{name!r}: not a valid file name for {what}; use letters, digits and . _ @ + = - only."
        )
    return name


def write_whole(path: Path, content: bytes) -> None:
    """Write a temporary file and move it into place: readers see the old file or the new one.

    A link is followed; a pipe or device is written to. Raises: Refused, with nothing left behind.
    """
    place = resolved(path)
    beside = place.with_name(f".{os.getpid()}-{place.name}"[:200])
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        beside.replace(place)
    except OSError as error:
        with suppress(OSError):  # it may not exist
            beside.unlink()
        raise Refused(f"{path}: cannot be written: {reason_of(error)}.") from None


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
    """Write to a stream at once; return the reason for a failure, none if the reader closed it."""
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
    short = LONG_WORD.sub(r"\1…\2", str(what))  # the error follows the name, however long
    say(f"error: {inert(one_line(short, LONGEST))}\n", sys.stderr)


def silence(stream: TextIO) -> None:
    with suppress(OSError, ValueError):  # a stream without a file has nothing buffered
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
