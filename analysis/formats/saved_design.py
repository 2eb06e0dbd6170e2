"""How a saved run was laid out: its order, and for a design over the keys of a tweak set which settings made which tweak set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.terms import Design, Factor, Point

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from .fields import Fields

KINDS = ("sysctl", "ulimit", "service", "boot", "environment", "process", "script")


def read(part: Fields, tweaksets: Container[str]) -> Design:
    """Read the design of a run that has these tweak sets. Raises: Unreadable."""
    factors = tuple(_factor(factor, tweaksets) for factor in part.each("factors")) if part.has("factors") else ()
    taken_apart: dict[str, dict[str, Factor]] = {}
    for factor in factors:
        if factor.name in taken_apart.setdefault(factor.tweakset, {}):
            part.refuse(f"has the factor {factor.name!r} of {factor.tweakset!r} twice")
        taken_apart[factor.tweakset][factor.name] = factor
    points = {name: _point(name, fields, taken_apart, tweaksets) for name, fields in part.items("points")} if part.has("points") else {}
    notes = {name: fields.value for name, fields in part.items("notes")} if part.has("notes") else {}
    for name in notes:
        if name not in taken_apart:
            part.refuse(f"has notes on {name!r}, of which it has no factor")
    return Design(
        seed=part.whole("seed"),
        blocks=part.whole("blocks"),
        steps=part.whole("steps") if part.has("steps") else None,
        order=part.texts("order"),
        kind=part.text("kind") if part.has("kind") else "matrix",
        factors=factors,
        points=points,
        notes=notes,
        conclusion=_conclusion(part),
        sequential=_is_sequential(part),
        budget_s=part.positive("budget_s") if part.has("budget_s") else None,
    )


def _is_sequential(part: Fields) -> bool:
    """Whether an arm was measured until it would see a gain (`mde`) that was named before."""
    if part.has("precision") and part.fields("precision").positive("mde") >= 1:
        part.refuse("has a precision of 100 % or more")
    return part.has("precision")


def _factor(part: Fields, tweaksets: Container[str]) -> Factor:
    tweakset, levels = part.text("tweakset"), _levels(part)
    if tweakset not in tweaksets:
        part.refuse(f"is of {tweakset!r}, which the file does not describe")
    return Factor(tweakset, part.text("name"), part.one_of("kind", KINDS), levels)


def _levels(part: Fields) -> tuple[str | None, ...]:
    levels = part.value.get("levels")
    if not isinstance(levels, list | tuple) or not all(level is None or isinstance(level, str) for level in levels):
        part.refuse("has levels that are no list of texts that begins with null")
    if len(levels) < 2 or levels[0] is not None or len(set(levels)) < len(levels):
        part.refuse(f"has the levels {list(levels)}: they are null (as found) and at least one other, each once")
    return tuple(levels)


def _point(name: str, part: Fields, taken_apart: Mapping[str, Mapping[str, Factor]], tweaksets: Container[str]) -> Point:
    if name not in tweaksets:
        part.refuse("is of a tweak set that the file does not describe")
    profile = part.one_of("tweakset", tuple(taken_apart))
    factors, levels = taken_apart[profile], part.fields("levels").value
    if factors.keys() != levels.keys():
        part.refuse(f"has levels of {', '.join(levels) or 'nothing'}, where each factor of {profile!r} has one: {', '.join(factors)}")
    result: dict[str, str | None] = {}
    for factor, level in levels.items():
        if not (level is None or isinstance(level, str)) or level not in factors[factor].levels:
            part.refuse(f"has {factor} = {level!r}, where one of {list(factors[factor].levels)} belongs")
        result[factor] = level
    return Point(profile, result)


def _conclusion(part: Fields) -> Mapping[str, object]:
    if not part.has("conclusion"):
        return {}
    conclusion = part.fields("conclusion")
    conclusion.text("text")
    conclusion.flag("done")
    return conclusion.value
