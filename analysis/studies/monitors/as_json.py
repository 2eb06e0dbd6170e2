"""Monitoring overhead for programs: the fields are those of `terms`; overheads are fractions, verdicts the house's words."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.plain import printable_json

from .said import answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Run

    from .terms import Overhead


def as_json(found: Sequence[tuple[Run, Sequence[Overhead]]], folders: Sequence[dict[str, object]], refused: Sequence[str]) -> str:
    """Write everything that is said of some runs, and of folders of others' logs."""
    said = {"runs": [_run(run, workloads) for run, workloads in found], "folders": list(folders), "refused": list(refused)}
    return printable_json(said)


def _run(run: Run, workloads: Sequence[Overhead]) -> dict[str, object]:
    about: dict[str, object] = {
        "run_id": run.run_id,
        "origin": run.origin,
        "started_utc": run.started_utc,
        "commit": run.commit,
        "seed": run.design.seed,
    }
    about |= {"interrupted": run.interrupted, "warnings": list(run.warnings)}
    return {**about, "workloads": [{**asdict(one), "answer": answer(one)} for one in workloads]}
