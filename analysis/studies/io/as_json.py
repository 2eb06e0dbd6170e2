"""I/O studies for programs: names and units are those of the terms, and what is refused is null with its reason beside it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from analysis.plain import printable_json

from .identity import identity
from .study_json import as_dict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .asked import Found
    from .dlio_study import DlioStudy
    from .responses import Judged
    from .study import Study
    from .terms import IoRun, Response


def as_json(found: Found, pictures: Mapping[str, str]) -> str:
    """Write everything that was found; step lists are left in their files. `pictures` are files that were drawn, or why one was not."""
    said = {
        "dlio": None if found.dlio is None else _dlio(found.dlio),
        "saved": [_saved(one) for one in found.saved],
        "mlperf": [asdict(one) for one in found.submissions],
        "pictures": dict(pictures),
        "refused": list(found.refused),
    }
    return printable_json(said)


def _dlio(found: DlioStudy) -> dict[str, object]:
    return {
        "runs": [run_fields(one) for one in found.judged],
        "generations": [_about(one) for one in found.generations],
        "published": [{**asdict(row), "id": row.id, "raw": found.raw[row].origin if row in found.raw else None} for row in found.rows],
        "stale": [asdict(one) for one in found.stale],
        "compared": [one.run.origin for one in found.usable],
        "tests": [asdict(one) for one in found.tests],
        "run_error": {name: error and asdict(error) for name, error in found.error.items()},
    }


def _saved(found: Study) -> dict[str, object]:
    return {"runs": [run_fields(one) for one in found.cells], **as_dict(found)}


def run_fields(one: Judged) -> dict[str, object]:
    """One run with its figures; of one that is refused there is the reason and nothing else."""
    return {
        **_about(one.run),
        "responses": {name: _given(response) for name, response in one.responses.items()},
        "doubts": [asdict(doubt) for doubt in one.doubts],
        "identity": asdict(identity(one)),
        "notes": list(one.run.notes),
    }


def _given(one: Response) -> dict[str, object]:
    return asdict(one if one.value is not None else replace(one, per_epoch=()))


def _about(run: IoRun) -> dict[str, object]:
    names = [
        *("origin", "id", "kind", "model", "engine", "engine_version", "processes", "batch_size", "read_threads", "prefetch_factor"),
        *("computation_time_s", "record_length_bytes", "excluded_start_steps", "excluded_end_steps", "started_utc"),
        *("tweakset", "block", "order"),
    ]
    about = {name: getattr(run, name) for name in names}
    maps = {name: dict(getattr(run, name)) for name in ("params", "overrides", "dataset", "reported")}
    return {**about, **maps, "host": asdict(run.host)}
