"""A capped run for programs: the fields are those of `terms`; shares and differences are fractions, verdicts the house's words."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.plain import printable_json

from .figures import RULE
from .said import answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Run

    from .terms import Side


def as_json(found: Sequence[tuple[Run, Sequence[Side]]], refused: Sequence[str]) -> str:
    """Write everything that is said of some runs."""
    return printable_json({"steady": RULE, "runs": [_run(run, sides) for run, sides in found], "refused": list(refused)})


def _run(run: Run, sides: Sequence[Side]) -> dict[str, object]:
    about: dict[str, object] = {"run_id": run.run_id, "origin": run.origin, "started_utc": run.started_utc, "commit": run.commit}
    about |= {"seed": run.design.seed, "interrupted": run.interrupted, "warnings": list(run.warnings)}
    return {**about, "backends": [{**asdict(one), "answer": answer(one)} for one in sides]}
