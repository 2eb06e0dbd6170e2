"""Validations and predictions for programs: fields are those of the terms, errors as fractions, values in the response's unit."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.plain import printable_json

from .page import METHOD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .serving import Served
    from .terms import Asked, Prediction, Table, Validation


def validated(table: Table, found: Sequence[Validation], said: Sequence[str]) -> str:
    """Write cross-validations, with what every model said of every row when it was left out."""
    return printable_json(
        {"table": _table(table), "method": METHOD, "validations": [_validation(one) for one in found], "said": list(said)}
    )


def fitted(table: Table, model: str, leans: Sequence[tuple[str, float]], found: Validation) -> str:
    """Write what a model leans on, and how far it may be trusted."""
    return printable_json({"table": _table(table), "model": model, "leans_on": dict(leans), "validation": _validation(found)})


def predicted(table: Table, asked: Asked, found: Sequence[Prediction]) -> str:
    """Write predictions."""
    made = [asdict(one) for one in found]
    return printable_json({"table": _table(table), **asdict(asked), "method": METHOD, "predictions": made})


def served(model: str, found: Sequence[Served], validation: Validation, notes: Sequence[str]) -> str:
    """Write predicted times by class."""
    made = [asdict(one) for one in found]
    return printable_json({"model": model, "classes": made, "validation": _validation(validation), "notes": list(notes)})


def _table(table: Table) -> dict[str, object]:
    return {
        "response": table.response,
        "rows": len(table.values),
        "log": table.log,
        "numbers": list(table.points.numbers),
        "names": list(table.points.names),
        "copies": {name: list(others) for name, others in table.copies.items()},
        "notes": list(table.notes),
    }


def _validation(one: Validation) -> dict[str, object]:
    held = {model.model: {name: getattr(model, name).tolist() for name in ("predicted", "low", "high")} for model in one.held_out}
    plain = ("response", "by", "rows", "groups", "folds", "log", "extrapolated")
    return {
        **{name: getattr(one, name) for name in plain},
        "models": [asdict(row) for row in one.scored],
        "measured": one.measured.tolist(),
        "units": one.units.tolist(),
        "held_out": held,
    }
