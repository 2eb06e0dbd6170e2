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
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .formulas import RATE
from .terms import GIB, MIB, IoRun

if TYPE_CHECKING:
    from .dlio_published import PublishedRow
    from .responses import JudgedResponse

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


def stale_runs(judged: Sequence[JudgedResponse], generations: Sequence[IoRun] = ()) -> list[Stale]:
    rates = {one.run.origin: one.formula(RATE) or 0.0 for one in judged}
    runs = sorted([*(one.run for one in judged if one.run.configured), *generations], key=lambda run: run.started_utc or "")
    folders: dict[tuple[object, object], list[IoRun]] = defaultdict(list)
    for run in runs:
        folders[run.dataset.get("folder"), run.dataset.get("format")].append(run)
    return [stale for folder in folders.values() for stale in _in_folder(folder, rates)]


def _in_folder(runs: Sequence[IoRun], rates: Mapping[str, float]) -> Iterator[Stale]:
    written: IoRun | None = None  # the generation that was last noted there
    sound: list[IoRun] = []
    for at, run in enumerate(runs):
        if run.kind == "generation":
            written = run
            continue
        if written is None:
            stale = _by_traces(run, sound, rates)
        elif _holds(written, run):
            stale = None
        else:
            pairs = zip(SHAPE, _shape(written), _shape(run), strict=True)
            differing = ", ".join(f"{name} {there}, its own {own}" for name, there, own in pairs if there != own)
            alike = [one for one in runs[:at] if _shape(one) == _shape(written) and _same_rate(one, run, rates)]
            supply = f"; it has the samples/s of {alike[0].id} ({_both_rates(run, alike[0], rates)})" if alike else ""
            evidence = f"the data set in its folder was made for {written.id} ({differing}) and not made anew{supply}"
            stale = Stale(run.id, run.origin, written.id, evidence)
        if stale is None:
            sound.append(run)
        else:
            yield stale


def _shape(run: IoRun) -> tuple[object, ...]:
    return tuple(run.params.get(name) for name in SHAPE)


def _size_bytes(run: IoRun) -> float:
    counts = [run.dataset.get(name) for name in ("files", "samples_per_file")]
    return math.prod(count if isinstance(count, int) else 0 for count in counts) * (run.record_length_bytes or 0.0)


def _holds(written: IoRun, run: IoRun) -> bool:
    """Whether a data set is the one a run was to read; more files of the same kind do no harm."""
    (there, *kind), (own, *own_kind) = _shape(written), _shape(run)
    return kind == own_kind and (there == own or (isinstance(there, int) and isinstance(own, int) and there >= own))


def _by_traces(run: IoRun, before: Sequence[IoRun], rates: Mapping[str, float]) -> Stale | None:
    """Judge by throughput and page cache, where no generation was kept."""
    rate = rates[run.origin]
    own = [one for one in before if _shape(one) == _shape(run) and _alike(one, run) and rates[one.origin]]
    last = next((one for one in reversed(before) if _shape(one) != _shape(run)), None)
    if last is None or not own or not _same_rate(last, run, rates):
        return None
    cached, cached_before = run.host.cached_bytes, last.host.cached_bytes
    if any(abs(rate / rates[one.origin] - 1) <= OTHER for one in own) or cached is None or cached_before is None:
        return None
    would = abs(_size_bytes(run) - _size_bytes(last))
    if abs(cached - cached_before) > FLAT * would:
        return None
    evidence = (
        f"it has the samples/s of {last.id}, which ran before it on other data ({_both_rates(run, last, rates)}), and not those of "
        f"{own[-1].id}, which read the same as it should ({rates[own[-1].origin]:.2f}); Cached is {cached / GIB:.1f} GiB as before "
        f"({cached_before / GIB:.1f}), where putting its own data back would have moved it by {would / GIB:.1f} GiB"
    )
    return Stale(run.id, run.origin, last.id, evidence)


def _alike(run: IoRun, other: IoRun) -> bool:
    return (run.processes, run.batch_size or 0) == (other.processes, other.batch_size or 0)


def _same_rate(run: IoRun, other: IoRun, rates: Mapping[str, float]) -> bool:
    first, second = (rates.get(one.origin) for one in (run, other))
    return bool(first and second and _alike(run, other) and abs(second / first - 1) <= SAME)


def _both_rates(run: IoRun, other: IoRun, rates: Mapping[str, float]) -> str:
    return f"{rates[run.origin]:.2f} and {rates[other.origin]:.2f}"


def stale_rows(rows: Sequence[PublishedRow], record_bytes: float | None, changes_data: Mapping[PublishedRow, float]) -> list[Stale]:
    """Find rows of a published table that ran on other data than their own, by the order of the design and their samples/s.

    `record_bytes` is the record length that MB/s of most rows were computed with, `changes_data` that of rows which had their data made
    anew with another one. Without the former AU stands for samples/s, the same measurement at one batch and computation. Rows whose order
    is unknown are not judged.
    """
    known = sorted((row for row in rows if row.order is not None), key=lambda row: row.order or 0)
    what, rates = "AU", {row: row.au_percent for row in known}
    if record_bytes is not None:
        what, rates = "samples/s", {row: row.mb_per_s * MIB / changes_data.get(row, record_bytes) for row in known}
    result, written = [], None
    for at, row in enumerate(known):
        if row in changes_data:
            written = row
            continue
        own = next((one for one in known[:at] if one.setting is None and one.processes == row.processes), None)
        if written is None or own is None or not rates[written] or not rates[own] or written.processes != row.processes:
            continue
        if abs(rates[row] / rates[written] - 1) <= SAME and abs(rates[row] / rates[own] - 1) > OTHER:
            evidence = (
                f"in the design it comes after {written.id}, for which the data set was made anew, and it has that one's {what} "
                f"({rates[row]:.2f} and {rates[written]:.2f}), not the baseline's ({rates[own]:.2f})"
            )
            result.append(Stale(row.id, f"line {row.line}", written.id, evidence))
    return result
