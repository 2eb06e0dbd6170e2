"""Points that were asked for: what a model says of them, how sure it is, what it leans on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from analysis.plain import one_line
from analysis.terms import Refused

from . import coding, conformal, factors, folds, tables, validating
from .terms import Points, Prediction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .models import Learner
    from .terms import Asked, By, Table, Whole

SEED = 1


def learner(table: Table, by: By, name: str) -> Learner:
    """Answer a model by its name. Raises: Refused, with those there are."""
    known = validating.learners(table, by)
    if name not in known:
        raise Refused(f"{one_line(name)}: is no model of these rows; there are {', '.join(known)}.")
    return known[name]


def by_of(table: Table) -> By:
    """By what to leave groups out: configurations, or runs where there are too few of these."""
    many = len(np.unique(table.configurations)) >= folds.LEAST
    return "configuration" if many else "run"


def parsed(words: Sequence[str]) -> dict[str, float | str]:
    """Read `cache=warm`, `read_threads=4`. Raises: Refused."""
    made: dict[str, float | str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise Refused(f"{one_line(word)!r}: a factor is given as name=value.")
        made[name] = factors.typed(value)
    return made


def filled(table: Table, given: Mapping[str, float | str]) -> dict[str, float | str]:
    """Add to a point what was not said: the commonest value among the rows that agree with it, or among all where none does.

    Raises: Refused, for a factor that did not vary.
    """
    known = [*table.points.numbers, *table.points.names]
    for name in given:
        if name not in known:
            raise Refused(f"{one_line(name)}: {_not_varied(table, name, known)}")
    rows = _rows(table.points)
    met = {name: value for name, value in given.items() if any(row.get(name) == value for row in rows)}
    agreeing = [row for row in rows if all(row.get(name) == value for name, value in met.items())] or rows
    made = dict(given)
    for name in known:
        if name not in made:
            (common, _), *_ = Counter(row.get(name) for row in agreeing).most_common(1)
            if common is not None:
                made[name] = common
    return made


def predicted(table: Table, asked: Asked, wanted: Sequence[Mapping[str, float | str]]) -> list[Prediction]:
    """Predict points that are filled, with intervals for a group that was never measured. Raises: Refused."""
    by = asked.by
    chosen = learner(table, by, asked.model)
    points = tables.points(wanted, table)
    with threadpool_limits(1):
        value = validating.in_unit(chosen(table, table.units(by))(points), table)
        try:
            low, high = (
                validating.in_unit(one, table) for one in conformal.intervals(conformal.calibrated(table, by, chosen), points, asked.level)
            )
        except Refused:  # too few groups, or in one fold too little that a law needs
            low = high = np.full(points.count, np.nan)
    far = coding.beyond(table.points, points)
    return [Prediction(one, _end(value[at]), _end(low[at]), _end(high[at]), far[at]) for at, one in enumerate(wanted)]


def leans_on(table: Table, name: str) -> list[tuple[str, float]]:
    """By how much predictions move when one factor is taken from another row, the most first.

    As a typical ratio - 1 where models see logarithms, else in the response's unit. It is what the model uses, not what is so.
    """
    by = by_of(table)
    rng = np.random.default_rng(SEED)
    with threadpool_limits(1):
        model = learner(table, by, name)(table, table.units(by))
        said = model(table.points)
        found = []
        for factor in (*table.points.numbers, *table.points.names):
            drawn = rng.permutation(table.points.count)
            moved = np.abs(model(_shuffled(table.points, factor, drawn)) - said)
            away = float(np.nanmean(moved)) if not np.isnan(moved).all() else np.nan
            found.append((factor, float(np.expm1(away)) if table.log else away))
    return sorted(found, key=lambda one: (np.isnan(one[1]), -one[1]))


def _shuffled(points: Points, factor: str, drawn: Whole) -> Points:
    numbers = {name: one[drawn] if name == factor else one for name, one in points.numbers.items()}
    names = {name: one[drawn] if name == factor else one for name, one in points.names.items()}
    return Points(points.count, numbers, names)


def _rows(points: Points) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = [{} for _ in range(points.count)]
    for name, numbers in points.numbers.items():
        for at in np.flatnonzero(~np.isnan(numbers)):
            rows[at][name] = float(numbers[at])
    for name, names in points.names.items():
        for at in np.flatnonzero(names != ""):
            rows[at][name] = str(names[at])
    return rows


def _not_varied(table: Table, name: str, known: Sequence[str]) -> str:
    for kept, copies in table.copies.items():
        if name in copies:
            return f"these rows cannot tell it from {kept}, which stands for both; give {kept}."
    return f"is no factor that varied; there are {', '.join(map(one_line, known))}."


def _end(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
