"""Runs that read other data than their own: a data set made anew for one run of a study and left in place for those after it.

Nothing in such a run fails, and its figures look like figures. Three traces are left, and none is taken for proof where it can be
something else:

* generations: what was last written into the data folder (of that format) before the run is not what the run was to read;
* samples/s: those of a run on the other data, and far from every run on the data it was to read;
* `Cached`: as large as under the other data, where putting its own back would have changed it by the difference of the two.

A generation that was kept is enough by itself; throughput needs `Cached` or the order of a design beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .terms import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .dlio_published import PublishedRow
    from .responses import JudgedResponse
    from .terms import IoRun

# What makes files of one name hold other samples. The format gives them another name.
SHAPE = ("num_files_train", "num_samples_per_file", "record_length_bytes", "record_length_bytes_stdev")
SAME, OTHER = 0.02, 0.10  # a run repeated stays within the first; what lies beyond the second is another supply
FLAT = 0.2  # of the difference that exchanging the data sets would have made in the page cache


@dataclass(frozen=True, slots=True)
class Stale:
    """A run that read the data of `ran_on`, and why that is so, in a sentence."""

    id: str
    origin: str
    ran_on: str
    evidence: str


@dataclass(frozen=True, slots=True)
class _Read:
    """One run as far as its data go: what it was to read, how fast it read, and the page cache it began with."""

    id: str
    origin: str
    started_utc: str
    folder: str
    shape: tuple[object, ...]
    setting: tuple[object, ...]
    samples_per_s: float | None
    cached_bytes: float | None
    size_bytes: float
    generates: bool = False


def stale_runs(judged: Sequence[JudgedResponse], generations: Sequence[IoRun] = ()) -> list[Stale]:
    """Find result folders whose run read other data than its own."""
    reads = [_of_run(one.run, one.formula("samples_per_s_whole")) for one in judged if one.run.configured]
    reads += [_of_run(generation, None) for generation in generations]
    reads.sort(key=lambda read: read.started_utc)
    folders = dict.fromkeys(read.folder for read in reads)
    return [stale for folder in folders for stale in _in_folder([read for read in reads if read.folder == folder])]


def _of_run(run: IoRun, samples_per_s: float | None) -> _Read:
    counts = [run.dataset.get(name) for name in ("files", "samples_per_file")]
    return _Read(
        run.id,
        run.origin,
        run.started_utc or "",
        f"{run.dataset.get('folder')} {run.dataset.get('format')}",
        tuple(run.params.get(name) for name in SHAPE),
        (run.processes, run.batch_size or 0),
        samples_per_s,
        run.host.cached_bytes,
        math.prod(count if isinstance(count, int) else 0 for count in counts) * (run.record_length_bytes or 0.0),
        run.kind == "generation",
    )


def _in_folder(reads: Sequence[_Read]) -> list[Stale]:
    result: list[Stale] = []
    lies: _Read | None = None  # what was last written there and noted
    for at, read in enumerate(reads):
        if read.generates:
            lies = read
        elif lies is not None and not _holds(lies, read):
            what = f"the data set in its folder was made for {lies.id} ({_differing(lies, read)}) and not made anew"
            result.append(Stale(read.id, read.origin, lies.id, what + _and_supply(read, reads[:at], lies.shape)))
        elif lies is None:
            suspect = _by_traces(read, [read for read in reads[:at] if read.origin not in {known.origin for known in result}])
            result += [suspect] if suspect else []
    return result


def _holds(lies: _Read, read: _Read) -> bool:
    """Whether a data set is the one a run was to read; more files of the same kind do no harm."""
    (there, *kind), (own, *own_kind) = lies.shape, read.shape
    return kind == own_kind and (there == own or (isinstance(there, int) and isinstance(own, int) and there >= own))


def _and_supply(read: _Read, before: Sequence[_Read], shape: tuple[object, ...]) -> str:
    alike = next((one for one in before if one.shape == shape and _alike(one, read)), None)
    return "" if alike is None else f"; it has the samples/s of {alike.id} ({_rates(read, alike)})"


def _by_traces(read: _Read, before: Sequence[_Read]) -> Stale | None:
    """Judge by throughput and page cache, where no generation was kept."""
    own = [one for one in before if one.shape == read.shape and one.setting == read.setting and one.samples_per_s]
    last = next((one for one in reversed(before) if one.shape != read.shape), None)
    if last is None or not own or not _alike(last, read) or not read.samples_per_s:
        return None
    if any(one.samples_per_s and abs(read.samples_per_s / one.samples_per_s - 1) <= OTHER for one in own):
        return None
    if read.cached_bytes is None or last.cached_bytes is None:
        return None
    moved, would = read.cached_bytes - last.cached_bytes, read.size_bytes - last.size_bytes
    if abs(moved) > FLAT * abs(would):
        return None
    evidence = (
        f"it has the samples/s of {last.id}, which ran before it on other data ({_rates(read, last)}), and not those of {own[-1].id}, "
        f"which read the same as it should ({own[-1].samples_per_s:.2f}); Cached is {read.cached_bytes / GIB:.1f} GiB as before "
        f"({last.cached_bytes / GIB:.1f}), where putting its own data back would have moved it by {abs(would) / GIB:.1f} GiB"
    )
    return Stale(read.id, read.origin, last.id, evidence)


def _alike(read: _Read, other: _Read) -> bool:
    if not read.samples_per_s or not other.samples_per_s:
        return False
    return read.setting == other.setting and abs(read.samples_per_s / other.samples_per_s - 1) <= SAME


def _rates(read: _Read, other: _Read) -> str:
    return f"{read.samples_per_s:.2f} and {other.samples_per_s:.2f}"


def _differing(lies: _Read, read: _Read) -> str:
    pairs = zip(SHAPE, lies.shape, read.shape, strict=True)
    return ", ".join(f"{name} {there}, its own {own}" for name, there, own in pairs if there != own)


def stale_rows(rows: Sequence[PublishedRow], record_bytes: float | None, changes_data: Mapping[PublishedRow, float]) -> list[Stale]:
    """Find rows of a published table that ran on other data than their own, by the order of the design and their samples/s.

    `record_bytes` is the record length that MB/s of most rows were reckoned with, `changes_data` that of rows which had their data made
    anew with another one. Without the former AU stands for samples/s, the same measurement at one batch and computation. Rows whose order
    is unknown are not judged.
    """
    known = sorted((row for row in rows if row.order is not None), key=lambda row: row.order or 0)
    if record_bytes is None:
        what, rates = "AU", {row: row.au_percent for row in known}
    else:
        what, rates = "samples/s", {row: row.mb_per_s * MIB / changes_data.get(row, record_bytes) for row in known}
    result, lies = [], None
    for at, row in enumerate(known):
        if row in changes_data:
            lies = row
            continue
        own = next((one for one in known[:at] if one.setting is None and one.processes == row.processes), None)
        if lies is None or own is None or not rates[lies] or not rates[own] or lies.processes != row.processes:
            continue
        if abs(rates[row] / rates[lies] - 1) <= SAME and abs(rates[row] / rates[own] - 1) > OTHER:
            evidence = (
                f"in the design it comes after {lies.id}, for which the data set was made anew, and it has that one's {what} "
                f"({rates[row]:.2f} and {rates[lies]:.2f}), not the baseline's ({rates[own]:.2f})"
            )
            result.append(Stale(row.id, f"line {row.line}", lies.id, evidence))
    return result
