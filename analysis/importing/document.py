"""A run of another tool as the JSON that we save, and its series as the telemetry file beside it (`data/README.md`)."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.telemetry import CLOCK
from control import record as record_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Cell, Run, Steps, TweakSet

    from .merge import Merged

SCHEMA_VERSION = 1
JSON = dict[str, Any]


def document(merged: Merged, sources: Sequence[tuple[Path, str]], source_format: str) -> tuple[JSON, bytes | None]:
    """Write a merged run; `sources` are the files it came from with their SHA-256.

    Returns: the JSON, and the content of its telemetry file, None where the sources had no series.
    """
    run, ended_utc = merged.run, merged.ended_utc
    run_id = f"imported-{hashlib.sha256(''.join(digest for _, digest in sources).encode()).hexdigest()[:12]}"
    packed = _telemetry(run)
    ours = {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "started_utc": run.started_utc or None,
        "ended_utc": ended_utc or None,
        "interrupted": False,
        "imported_from": {
            "format": source_format,
            "baseline": run.baseline,
            "sources": [{"path": str(path), "sha256": digest} for path, digest in sources],
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
        "benchmarks": [_benchmark(cell, merged.stats.get(cell.id)) for cell in run.cells],
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
    from analysis.formats import skyhook  # noqa: PLC0415  # stock files have no manifest and no need of YAML

    manifest = skyhook.read(Path(tweakset.path)) if tweakset.path else skyhook.Manifest()
    return {
        "path": tweakset.path,
        "sha256": tweakset.sha256,
        "description": tweakset.description,
        "requested": [
            {"kind": request.setting.kind, "key": request.setting.key, "value": request.setting.value, "package": request.package}
            for request in manifest.asked
        ],
        "scripts": [{"package": script.package, "stage": script.stage, "sha256": script.sha256} for script in manifest.scripts],
        "warnings": list(tweakset.warnings),
    }


def _line(cell: Cell) -> JSON:
    names = ("id", "study", "workload", "tweakset", "block", "order", "outcome", "reason")
    return {name: getattr(cell, name) for name in names} | {"fullname": _fullname(cell)}


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
    names = ("id", "study", "workload", "tweakset", "block", "order", "outcome", "reason")
    record: JSON = {"schema_version": SCHEMA_VERSION, **{name: getattr(cell, name) for name in names}, "target": "imported"}
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
    """Statistics as pytest-benchmark makes them of the steps, by its own code."""
    from pytest_benchmark.stats import Stats  # noqa: PLC0415  # it brings pytest, and only DeepTweak's directories need it

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
