"""Whether the page cache was in the state that a run's `cache` parameter names: by resident pages, and by what was fetched.

A figure of storage that was read from memory is one of memory, and the other way round: either is another run's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .terms import Epoch, IoRun

# As far as a workload lets pages be off before an epoch.
COLD_AT_MOST, WARM_AT_LEAST = 0.01, 0.99
# Of the bytes of the data set. Cold: what lies between is directories and read-ahead; more was read twice. Warm: stray pages.
COLD_FETCHES, WARM_FETCHES = (0.95, 1.05), 0.01
# Python and its libraries, whose pages may be gone too: what they may add to a warm epoch, and to a cold one, in which they go first (a
# single page of a library brings up to `read_ahead_kb` around it).
OWN_BYTES, OWN_COLD_BYTES = 1_000_000, 64_000_000


def not_as_named(run: IoRun) -> str | None:
    """Say what speaks against the state that was asked for; None where nothing does, or no state was.

    What was not recorded speaks against nothing: `configurations.Cache` shows what was.
    """
    return next(_against(run), None)


def _against(run: IoRun) -> Iterator[str]:
    state = str(run.params.get("cache", ""))
    if state not in {"cold", "warm"}:
        return
    numbers = sorted({one.number for one in run.epochs})
    for number in numbers:
        ranks = [one for one in run.epochs if one.number == number]
        before = [one.resident_before for one in ranks if one.resident_before is not None]
        if state == "cold" and before and max(before) > COLD_AT_MOST:
            yield f"cache=cold, and {max(before):.1%} of the data set was in memory when epoch {number} began ({COLD_AT_MOST:.0%} may be)"
        if state == "warm" and before and min(before) < WARM_AT_LEAST:
            yield f"cache=warm, and {min(before):.1%} of the data set was in memory when epoch {number} began ({WARM_AT_LEAST:.0%} must be)"
        yield from _fetched(run, state, number, ranks)


def _fetched(run: IoRun, state: str, number: int, ranks: Sequence[Epoch]) -> Iterator[str]:
    """Hold what an epoch fetched from a device against what it went through of the data set."""
    size, counts = run.dataset.get("bytes"), [one.read_bytes for one in ranks]
    if not isinstance(size, int | float) or size <= 0 or any(count is None for count in counts):
        return
    fetched = sum(count for count in counts if count is not None)
    said = f"cache={state}, and epoch {number} fetched {fetched / size:.1%} of the data set from a device"
    # What comes from a device while all of the data set is locked in memory is Python and its libraries.
    own_bytes = OWN_COLD_BYTES if any(one.locked for one in ranks) else OWN_BYTES
    if state == "warm" and fetched > max(WARM_FETCHES * size, own_bytes):
        yield f"{said} ({WARM_FETCHES:.0%} may be)"
    if state == "cold":
        # Where no device lies below the files, nobody counts what is fetched.
        counted = fetched > 0 or any(one.device_read_bytes is not None for one in ranks)
        least, most = COLD_FETCHES
        if counted and fetched < least * _went_through(run, ranks, size):
            yield f"{said} ({least:.0%} of what it read must be)"
        if fetched > most * size + OWN_COLD_BYTES:
            yield f"{said}: part of it was read twice ({most:.0%} may be)"


def _went_through(run: IoRun, ranks: Sequence[Epoch], size: float) -> float:
    """Bytes that all steps of an epoch need. Where they are not all of the data set, no more than was asked for: sizes of files differ."""
    files, each = run.dataset.get("files"), run.dataset.get("samples_per_file", 1)
    if not isinstance(files, int) or not isinstance(each, int) or files * each < 1:
        return 0.0
    share = sum(one.steps for one in ranks) * (run.batch_size or 0) / (files * each)
    asked = [one.rchar_bytes for one in ranks]
    if share >= 1:
        return size
    return min(share * size, sum(count or 0 for count in asked))
