"""Several runs of another tool become one of ours: which tweak set each is, and which block.

The first run of an arm is its block 1, the second its block 2, in order of time where all say when they were saved, else as they are named.
A block then holds one run of each arm; where these did not follow each other, `compare` takes no pairs of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from analysis.terms import Cell, Design, Refused, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from analysis.terms import TweakSet

OURS = "deeptweak"
BASELINES = ("stock", "base")


@dataclass(frozen=True, slots=True)
class MergeSource:
    """A run and where it was read. `tweakset` and `workload` are new names, where given.

    `stats` are pytest-benchmark's own statistics by cell id, for a format that has them.
    """

    path: Path
    run: Run
    tweakset: str | None = None
    workload: str | None = None
    stats: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Merged:
    """The run that came out, by its cells' ids the statistics that its sources had, and when the last of these was saved."""

    run: Run
    ended_utc: str
    stats: Mapping[str, Mapping[str, object]]


def merge(sources: Sequence[MergeSource]) -> Merged:
    """Make one run of all sources.

    Raises: Refused, where they are not of one kind, one machine, or not all there once.
    """
    _one_kind(sources)
    runs = [_renamed(source) for source in sources]
    cells: list[Cell] = []
    stats: dict[str, Mapping[str, object]] = {}
    taken: Counter[tuple[str, str]] = Counter()
    timed = all(run.started_utc for run in runs)
    for source, run in sorted(zip(sources, runs, strict=True), key=lambda entry: entry[1].started_utc if timed else ""):
        before = taken.copy()
        for cell, original in zip(run.cells, source.run.cells, strict=True):
            block = before[cell.workload, cell.tweakset] + cell.block
            name = f"{cell.study}/{cell.workload}-{cell.tweakset}-b{block}"
            started_utc = cell.started_utc or run.started_utc or None
            cells.append(replace(cell, id=name, block=block, order=len(cells), started_utc=started_utc))
            taken[cell.workload, cell.tweakset] += 1
            if original.id in source.stats:
                stats[name] = source.stats[original.id]
    blocks = max(cell.block for cell in cells)
    tweaksets = _tweaksets(runs)
    started = sorted(run.started_utc for run in runs if run.started_utc)
    merged = Run(
        origin=", ".join(str(source.path) for source in sources),
        run_id="",
        started_utc=started[0] if started else "",
        interrupted=False,
        studies={name: replace(study, blocks=blocks) for run in runs for name, study in run.studies.items()},
        workloads={name: workload for run in runs for name, workload in run.workloads.items()},
        tweaksets=tweaksets,
        cells=tuple(cells),
        machine=_machine(sources),
        design=Design(seed=0, blocks=blocks, steps=None, order=tuple(cell.id for cell in cells)),
        warnings=(*_warnings(sources), *_out_of_turn(runs)),
        baseline=next((name for name in BASELINES if name in tweaksets), runs[0].baseline),
        replicated=blocks > 1,
        commit=runs[0].commit if len({run.commit for run in runs}) == 1 else None,
    )
    return Merged(merged, max(started, default=""), stats)


def _one_kind(sources: Sequence[MergeSource]) -> None:
    seen: dict[str, MergeSource] = {}
    for source in sources:
        run = source.run
        if run.format == OURS:
            raise Refused(f"{source.path}: is a run of ours already; there is nothing to import.")
        if run.format != sources[0].run.format:
            raise Refused(f"{source.path}: is of another format than {sources[0].path}; import them into files of their own.")
        first = seen.setdefault(run.run_id, source)
        if first is not source:
            raise Refused(f"{source.path}: is the same run as {first.path}: a copy is no second measurement; name one of them.")


def _renamed(source: MergeSource) -> Run:
    run = source.run
    tweaksets, workloads = run.tweaksets, run.workloads
    if source.tweakset is not None:
        if len(tweaksets) > 1 or run.format != "pytest-benchmark":
            raise Refused(f"{source.path}: names its tweak sets itself ({', '.join(tweaksets)}); leave --tweakset out.")
        (known,) = tweaksets.values()
        tweaksets = {source.tweakset: replace(known, name=source.tweakset, description="")}
    if source.workload is not None:
        if len(workloads) > 1:
            raise Refused(f"{source.path}: has {len(workloads)} workloads, which cannot all be {source.workload!r}; leave --workload out.")
        (only,) = workloads.values()
        workloads = {source.workload: replace(only, name=source.workload)}
    cells = tuple(replace(cell, workload=source.workload or cell.workload, tweakset=source.tweakset or cell.tweakset) for cell in run.cells)
    return replace(run, tweaksets=tweaksets, workloads=workloads, cells=cells, baseline=source.tweakset or run.baseline)


def _tweaksets(runs: Sequence[Run]) -> dict[str, TweakSet]:
    result: dict[str, TweakSet] = {}
    for run in runs:
        for name, tweakset in run.tweaksets.items():
            known = result.setdefault(name, tweakset)
            if (known.requested, known.scripts) != (tweakset.requested, tweakset.scripts):
                raise Refused(f"{run.origin}: {name} asks for something else than elsewhere; import these into files of their own.")
    return result


def _machine(sources: Sequence[MergeSource]) -> dict[str, object]:
    """Answer the facts all sources agree on. Other processors or GPUs are another machine. Raises: Refused."""
    first = sources[0]
    for other in sources[1:]:
        for fact in ("cpu_model", "cpu_count", "gpus"):
            here, there = first.run.machine.get(fact), other.run.machine.get(fact)
            if here != there:
                raise Refused(
                    f"{other.path}: ran on another machine than {first.path}: {fact} is {there}, not {here}; import it by itself."
                )
    return {name: value for name, value in first.run.machine.items() if all(source.run.machine.get(name) == value for source in sources)}


def _warnings(sources: Sequence[MergeSource]) -> Iterator[str]:
    for source in sources:
        for line in source.run.warnings:
            yield line if len(sources) == 1 else f"{source.path.name}: {line}"
    facts = {name for source in sources for name in source.run.machine}
    for name in sorted(facts):
        values = list(dict.fromkeys(str(source.run.machine.get(name, "not said")) for source in sources))
        if len(values) > 1:
            yield f"the sources differ in {name}: {', '.join(values)}."


def _out_of_turn(runs: Sequence[Run]) -> Iterator[str]:
    """Say which tweak sets did not take turns, as far as the sources say when they ran."""
    when: dict[str, list[str]] = {}
    for run in runs:
        for name in run.tweaksets:
            when.setdefault(name, []).append(run.started_utc)
    for text, other in pairwise(sorted(when, key=lambda name: min(when[name]))):
        if len(runs) > len(when) and all(when[text]) and max(when[text]) < min(when[other]):
            yield f"all of {text} ran before {other}: whatever changed between them is part of their difference; let them take turns."
