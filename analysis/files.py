"""Reading and writing files: never a pipe that would be read for ever, never half a file, never over another one unasked."""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .terms import Refused, Unreadable
from .wording import suggestion

LARGEST_BYTES = 512 * 1024**2  # the largest saved run known has 40 MB
NO_FILE = "cannot be read: No such file or directory"


def read_whole(path: Path, missing: str = NO_FILE) -> bytes:
    """Read a file; a link is followed. `missing` is what is said where there is none.

    Raises: Unreadable, for what is no regular file, is larger than 512 MiB, or cannot be read.
    """
    must_be_file(path, missing)
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {reason_of(error)}.") from None


def read_text(path: Path, kind: str, missing: str = NO_FILE) -> str:
    """Read a UTF-8 text file; `kind` ends what is said of another one: "a table is UTF-8 CSV".

    Raises: Unreadable, with the line and column of the first byte that is not UTF-8.
    """
    content = read_whole(path, missing)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error, kind) from None


def not_utf8(path: Path, error: UnicodeDecodeError, kind: str) -> Unreadable:
    before = error.object[: error.start].decode("utf-8", "replace")
    return Unreadable(f"{path}: not UTF-8 at {place_in(before)} (byte 0x{error.object[error.start]:02x}); {kind}.")


def place_in(before: str) -> str:
    """Write the line and column at which a text ends, each from 1 on, as Python's JSON parser counts them."""
    line_start = before.rfind("\n") + 1
    return f"line {before.count(chr(10)) + 1} column {len(before) - line_start + 1}"


def unpacked(path: Path, packed: bytes) -> bytes:
    """Unpack what `xz` has packed. Raises: Unreadable, for what is damaged, or larger than 512 MiB."""
    import lzma

    try:
        with lzma.open(io.BytesIO(packed)) as source:
            content = source.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise Unreadable(f"{path}: cannot be unpacked ({type(error).__name__}: {error}); take the file from its source again.") from None
    if len(content) > LARGEST_BYTES:
        raise Unreadable(f"{path}: has more than {LARGEST_BYTES // 1024**2} MiB when it is unpacked: no saved run is so large.")
    return content


def must_be_file(path: Path, missing: str = NO_FILE) -> None:
    """Check that a path is a regular file of at most 512 MiB, before it is opened: opening a pipe can already take for ever.

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
            f"{path}: has {result.st_size // mib} MiB, more than {LARGEST_BYTES // mib}: no saved run is so large; name another."
        )


def resolved(path: Path | str) -> Path:
    """Return where a path leads, links followed, whether something is there or not.

    Raises: Refused, for links that lead in a circle and names that no file can have.
    """
    try:
        place = Path(path).resolve()
        place.exists()  # a name that is too long is found out by asking
        reason = reason_of(RuntimeError()) if place.is_symlink() else None  # from Python 3.13 on a circle's links are left as they are
    except (OSError, RuntimeError, ValueError) as error:  # up to 3.12 they are a RuntimeError
        reason = reason_of(error)
    if reason:
        raise Refused(f"{path}: {reason}.")
    return place


def reason_of(error: Exception) -> str:
    if isinstance(error, RuntimeError):
        return "its links lead in a circle"
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


@contextmanager
def damaged(origin: object, use: str) -> Iterator[None]:
    """What the reader let through and arithmetic choked on: the file's fault to the user, and named for whoever mends the reader.

    Raises: Refused.
    """
    try:
        yield
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Refused(f"{origin}: cannot be {use} ({type(error).__name__}: {error}); the file is damaged or was edited.") from error


NAME = re.compile(r"[\w@+=-][\w.@+=-]{,200}")


def must_be_new(path: Path, sources: Iterable[Path]) -> None:
    """Check that nothing is lost by writing a file. Raises: Refused."""
    place = resolved(path)
    if any(place == resolved(source) for source in sources):
        raise Refused(f"{path}: is what is read; a source is never overwritten, name another file.")
    if place.exists():
        raise Refused(f"{path}: is there already; name another file.")


def must_be_a_name(name: str, what: str) -> str:
    """Return a name that can be a file's: letters, digits and . _ @ + = - after the first.

    Raises: Refused, for one that is empty or would lead elsewhere.
    """
    if not NAME.fullmatch(name):
        raise Refused(f"{name!r}: {what} of this name cannot be a file; letters, digits and . _ @ + = - can.")
    return name


def write_whole(path: Path, content: bytes) -> None:
    """Write beside its place, then move it there: a reader sees the old file or the new one. A link is followed and stays.

    A pipe or a device is written to as it is: moved over `/dev/null`, a file would take its place.

    Raises: Refused, with nothing left behind.
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
        with suppress(OSError):  # it may never have come about
            beside.unlink()
        raise Refused(f"{path}: cannot be written: {reason_of(error)}.") from None
