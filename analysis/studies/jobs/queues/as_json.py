"""Fits, predictions and validations for programs: the fields are those of the terms, times in seconds, shares as fractions."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analysis.plain import printable_json

from .validating import RULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .fitting import Fit
    from .predicting import Predicted
    from .validating import Validation


def fitted(found: Sequence[Fit], refused: Sequence[str]) -> str:
    """Write fits."""
    return printable_json({"fits": [_fit(one) for one in found], "refused": list(refused)})


def predicted(found: Sequence[tuple[str, Sequence[Predicted], str]], refused: Sequence[str]) -> str:
    """Write predictions; where there is no stationary figure, `models` is empty and `said` says why."""
    made = [{"of": title, "models": [asdict(one) for one in some], "said": why} for title, some, why in found]
    return printable_json({"predictions": made, "refused": list(refused)})


def validated(found: Sequence[Validation], refused: Sequence[str]) -> str:
    """Write validations."""
    made = [{**_flat(one), "fit": _fit(one.fit)} for one in found]
    return printable_json({"rule": RULE, "validations": made, "refused": list(refused)})


def _flat(one: Validation) -> dict[str, Any]:
    return {
        "margin": one.margin,
        "wait_s": None if one.wait_s is None else asdict(one.wait_s),
        "held": [asdict(held) for held in one.held],
        "why": one.why,
        "unstable": one.unstable,
        "growth_s": one.growth_s,
        "notes": list(one.notes),
        "planned": None if one.planned is None else asdict(one.planned),
    }


def _fit(one: Fit) -> dict[str, Any]:
    figures = ("rate_per_s", "service_s", "scv_arrivals", "scv_service", "load", "p_wait", "wait_s", "response_s", "arrivals", "services")
    made: dict[str, Any] = {name: None if (value := getattr(one, name)) is None else asdict(value) for name in figures}
    plain = ("group", "names", "jobs", "servers", "engine", "policy", "closed", "utilisation", "findings", "priorities")
    made |= {name: getattr(one, name) for name in plain}
    made["laws"] = [None if law is None else asdict(law) for law in one.laws]
    made["units"] = {"kind": one.units.kind, "count": one.units.count, "why": one.units.why}
    return made
