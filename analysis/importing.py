"""Runs of another tool made into one of ours: what was kept is kept, what was never known stays unknown.

Several runs of another tool become one of ours: which tweak set each is, and which block.

The first run of an arm is its block 1, the second its block 2, in order of time where all say when they were saved, else as they are named.
A block then holds one run of each arm; where these did not follow each other, `compare` takes no pairs of them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from control import record as record_file

from .telemetry import CLOCK
from .terms import Cell, Design, Refused, Run, Steps, TweakSet

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


def merge(sources: Sequence[MergeSource]) -> tuple[Run, dict[str, Mapping[str, object]]]:
    """Make one run of all sources; and by its cells' ids the statistics that these had.

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
    merged = Run(
        origin=", ".join(str(source.path) for source in sources),
        run_id="",
        started_utc=min((run.started_utc for run in runs if run.started_utc), default=""),
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
    return merged, stats


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
    when: dict[str, list[str]] = {}
    for run in runs:
        for name in run.tweaksets:
            when.setdefault(name, []).append(run.started_utc)
    for text, other in pairwise(sorted(when, key=lambda name: min(when[name]))):
        if len(runs) > len(when) and all(when[text]) and max(when[text]) < min(when[other]):
            yield f"all of {text} ran before {other}: whatever changed between them is part of their difference; let them take turns."


SCHEMA_VERSION = 1
JSON = dict[str, Any]
NAMES = ("id", "study", "workload", "tweakset", "block", "order", "outcome", "reason")  # of a cell, in its line and its record


def document(sources: Sequence[MergeSource], files: Sequence[tuple[Path, str]]) -> tuple[JSON, bytes | None]:
    """Merge the sources and write them as a saved run; `files` are those they came from with their SHA-256.

    Returns: the JSON, and the content of its telemetry file, None where the sources had no series.
    """
    run, stats = merge(sources)
    run_id = f"imported-{hashlib.sha256(''.join(digest for _, digest in files).encode()).hexdigest()[:12]}"
    packed = _telemetry(run)
    ours = {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "started_utc": run.started_utc or None,
        "ended_utc": max(source.run.started_utc for source in sources) or None,
        "interrupted": False,
        "imported_from": {
            "format": sources[0].run.format,
            "baseline": run.baseline,
            "sources": [{"path": str(path), "sha256": digest} for path, digest in files],
            "warnings": list(run.warnings),
        },
        "studies": {name: _study(run, name) for name in run.studies},
        "design": {"seed": run.design.seed, "blocks": run.design.blocks, "steps": run.design.steps, "order": list(run.design.order)},
        "workloads": {
            name: {"params": dict(workload.params), "description": workload.description} for name, workload in run.workloads.items()
        },
        "tweaksets": {name: _tweakset(tweakset) for name, tweakset in run.tweaksets.items()},
        "cells": [_line(cell) for cell in run.cells],
        "telemetry_file": packed and record_file.described(f"telemetry-{run_id}.jsonl.xz", packed),
    }
    commit, _, dirty = (run.commit or "unversioned").partition("+")
    saved = {
        "machine_info": {"deeptweak": dict(run.machine)},
        "commit_info": {"id": commit, "dirty": bool(dirty)},
        "benchmarks": [_benchmark(cell, stats.get(cell.id)) for cell in run.cells],
        "datetime": datetime.now(UTC).isoformat(),
        "deeptweak": ours,
    }
    return saved, packed


def _study(run: Run, name: str) -> JSON:
    study = run.studies[name]
    primary = {"name": study.primary.name, "better": study.primary.better}
    return {"question": study.question, "margin": study.margin, "blocks": study.blocks, "primary": primary}


def _tweakset(tweakset: TweakSet) -> JSON:
    """A tweak set with its packages and the hashes of its scripts, for which its manifest is read again."""
    from analysis.formats import skyhook

    manifest = skyhook.read(Path(tweakset.path)) if tweakset.path else skyhook.Manifest()
    return {
        "path": tweakset.path,
        "sha256": tweakset.sha256,
        "description": tweakset.description,
        "requested": [
            {"kind": request.setting.kind, "key": request.setting.key, "value": request.setting.value, "package": request.package}
            for request in manifest.settings
        ],
        "scripts": [{"package": script.package, "stage": script.stage, "sha256": script.sha256} for script in manifest.scripts],
        "warnings": list(tweakset.warnings),
    }


def _line(cell: Cell) -> JSON:
    return {name: getattr(cell, name) for name in NAMES} | {"fullname": _fullname(cell)}


def _fullname(cell: Cell) -> str:
    return f"imported[{cell.workload}-{cell.tweakset}-b{cell.block}]"


def _benchmark(cell: Cell, stats: Mapping[str, object] | None) -> JSON:
    return {
        "group": cell.workload,
        "name": _fullname(cell),
        "fullname": _fullname(cell),
        "params": {"workload": cell.workload, "tweakset": cell.tweakset, "block": cell.block},
        "param": f"{cell.workload}-{cell.tweakset}-b{cell.block}",
        "extra_info": _record(cell),
        "options": {},
        "stats": dict(stats) if stats is not None else _stats(cell.steps),
    }


def _record(cell: Cell) -> JSON:
    record: JSON = {"schema_version": SCHEMA_VERSION, **{name: getattr(cell, name) for name in NAMES}, "target": "imported"}
    if cell.started_utc:
        record["started_utc"] = cell.started_utc
    if cell.steps is not None:
        ends_s = accumulate(cell.steps.wall_s)
        record["steps"] = {
            "wall_s": list(cell.steps.wall_s),
            "samples": list(cell.steps.samples),
            "start_monotonic_s": [round(end - took, 6) for end, took in zip(ends_s, cell.steps.wall_s, strict=True)],
            "warmup": cell.steps.warmup,
        }
    if cell.telemetry or cell.telemetry_missing:
        record["telemetry"] = {"summary": dict(cell.telemetry), "missing": dict(cell.telemetry_missing)}
    return record | {"workload_facts": dict(cell.facts), "metrics": dict(cell.metrics)}


def _stats(steps: Steps | None) -> JSON:
    from pytest_benchmark.stats import Stats

    stats = Stats()
    stats.data = list(steps.wall_s) if steps else []
    return {**stats.as_dict(), "data": stats.data, "iterations": 1}


def _telemetry(run: Run) -> bytes | None:
    lines = [
        json.dumps({"cell": cell.id, "columns": {CLOCK: [round(end, 6) for end in accumulate(cell.steps.wall_s)], **cell.series}})
        for cell in run.cells
        if cell.series and cell.steps
    ]
    return record_file.pack(lines) if lines else None
