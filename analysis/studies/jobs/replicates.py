"""Runs and streams as replicates: each once, all of one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.arms import times_of
from analysis.load import load_each
from analysis.machine import Machines
from analysis.terms import Refused

from .records import ROWS, streams

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from analysis.terms import Run

    from .records import Stream


def streams_of(names: Sequence[str], refused: list[str]) -> list[Stream]:
    """Read every stream of the runs that are named; what cannot be used is said in `refused`, a line each.

    Raises: Refused, for none, and for runs of different machines.
    """
    every: list[Stream] = []
    for run in of_one_machine(load_each(names, refused), refused):
        try:
            every += streams(run, refused)
        except Refused as error:
            refused.append(str(error))
    if not every:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no stream of jobs.")
    return every


def replicates_of(names: Sequence[str], refused: list[str]) -> list[Stream]:
    """Streams of the runs that are named as replicates of the untouched machine and its tweak sets: `streams_of` in `in_order`.

    Raises: Refused, as `streams_of`, and where none is in order.
    """
    kept = in_order(streams_of(names, refused), refused)
    if not kept:
        raise Refused(refused[0] if refused else f"{', '.join(names)}: no stream of jobs.")
    return kept


def of_one_machine(runs: Iterable[Run], refused: list[str]) -> Iterator[Run]:
    """Hand runs on as replicates: each once, and all of one machine; what differs between two is no matter of chance between blocks.

    Of a run that was resumed or copied it is the file with most in it; what is left out is said in `refused`.
    Raises: Refused, at the first run of another machine.
    """
    machines, first = Machines(), ""
    files: dict[str, list[Run]] = {}
    for run in runs:
        machines.number_of(run.machine)
        first = first or run.origin
        if len(machines.known) > 1:
            here, there = machines.known
            raise Refused(f"{run.origin}: is of another machine ({there}) than {first} ({here}); name runs of one.")
        files.setdefault(run.run_id, []).append(run)
    seen: dict[object, str] = {}
    for same in files.values():
        run = max(same, key=lambda file: len(dict(times_of(file))))
        times = dict(times_of(run))
        refused += [
            f"{file.origin}: is of the same run as {run.origin}, where all of it is: a copy is no replicate, and is left out."
            for file in same
            if file is not run
        ]
        twin = next((seen[key] for key in times if key in seen), None)
        if twin is not None:
            refused.append(f"{run.origin}: has the very times of {twin}: a copy is no replicate, and is left out.")
            continue
        seen |= dict.fromkeys(times, run.origin)
        yield run


def distinct(streams: Sequence[Stream], notes: list[str]) -> list[Stream]:
    """Leave streams out that had the jobs of another at the same times, those of the untouched machine first; how many is noted.

    A block's seed draws its stream, so that `stock-again` has the jobs of `stock`; two runs of one seed have the same, and a trace is the
    same in every block. What chance did to one it did to both, so it counts once.
    """
    seen: set[Hashable] = set()
    kept: list[Stream] = []
    copies: dict[str, int] = {}
    for stream in sorted(streams, key=lambda stream: stream.again):
        keys = {(stream.group, key) for key in stream.drawn}
        if keys & seen:
            copies[stream.group] = copies.get(stream.group, 0) + 1
        else:
            kept.append(stream)
        seen |= keys
    for group, count in copies.items():
        were = "stream had the jobs of another" if count == 1 else "streams had the jobs of others"
        notes.append(f"{group}: {count} {were} at the same times: a copy is no replicate, and is left out.")
    order = {id(stream): at for at, stream in enumerate(streams)}
    return sorted(kept, key=lambda stream: order[id(stream)])


def in_order(streams: Iterable[Stream], refused: list[str]) -> list[Stream]:
    kept = []
    for stream in streams:
        if stream.again:
            continue
        of_jobs = ((job.submit_s, job.admit_s, job.start_s, job.end_s) for job in stream.jobs)
        times = [[time_s for time_s in of_job if time_s is not None] for of_job in of_jobs]
        back = next((at for at, known in enumerate(times) if known != sorted(known)), None)
        if back is not None:
            what = "it was submitted, admitted, started and ended in another order; one clock must read them all"
            refused.append(f"{stream.origin}: cell {stream.name}, report.{ROWS}[{back}] has times that go back: {what}.")
        else:
            kept.append(stream)
    return kept
