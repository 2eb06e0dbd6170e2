"""What saved runs say together, in plain types: the fields are those of `study.Study` and of what it holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .answer import answer, head
from .sentences import answers, reversals, tweaks, untouched

if TYPE_CHECKING:
    from .anova import Analysis
    from .configurations import Configuration
    from .study import Study


def as_dict(found: Study) -> dict[str, Any]:
    """Put a study into plain types, but for its single runs."""
    plain = [one for one in found.analyses if not one.sets]
    return {
        "origin": found.origin,
        "answer": answer(found),
        "stands_on": head(found),
        "alike": found.alike,
        "configurations": [_configuration(one) for one in found.configurations],
        "caches": {name: asdict(one) for name, one in found.caches.items()},
        "analyses": [_analysis(one) for one in found.analyses],
        "contrasts": asdict(found.contrasts),
        "changed_nothing": [asdict(one) for one in found.idle],
        "reversals": list(reversals(plain)),
        "tweak_sets": [untouched(found.contrasts), *tweaks(found.contrasts)] if found.cells else [],
        "refused": list(found.refused),
    }


def _configuration(one: Configuration) -> dict[str, Any]:
    return {
        "name": one.name,
        "tweakset": one.tweakset,
        "runs": [run.id for run in one.runs],
        "responses": {name: asdict(mean) for name, mean in one.responses.items()},
    }


def _analysis(one: Analysis) -> dict[str, Any]:
    return {
        "response": one.response,
        "unit": one.unit,
        "tweak_sets": one.sets,
        "scale": one.observed.scale,
        "factors": {factor.name: list(factor.levels) for factor in one.observed.factors},
        "variation": [{"name": row.name, "df": row.df, "ss": row.ss, "share": row.share} for row in one.variation],
        "findings": [{**asdict(finding), "shown": finding.shown} for finding in one.findings],
        "answers": answers(one),
        "refusal": one.refusal or None,
        "notes": list(one.notes),
    }
