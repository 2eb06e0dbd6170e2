"""What a model says of points that were asked for, how sure it is, what it leans on; and its times by class, back to the scheduler."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from threadpoolctl import threadpool_limits

from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable

from . import reading, tables, validation
from .models import CLASS, REPLICAS, WORK
from .tables import By, Points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from .models import Learner
    from .tables import FactorTable, Floats, Measurement, Whole
    from .validation import CrossValidation

    Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    model: str
    by: By
    level: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model says of one point. `beyond` names every way in which the point lies outside what was measured.

    `value` is None where a law cannot tell (a class that it never met), `low` and `high` where there are too few groups for an interval.
    """

    factors: Mapping[str, float | str]
    value: float | None
    low: float | None
    high: float | None
    beyond: tuple[str, ...] = ()


SEED = 1


def learner(table: FactorTable, by: By, name: str) -> Learner:
    known = validation.learners(table, by)
    if name not in known:
        raise Refused(f"{one_line(name)}: is no model of these rows; there are {', '.join(known)}.")
    return known[name]


def by_of(table: FactorTable) -> By:
    many = len(np.unique(table.configurations)) >= tables.LEAST
    return "configuration" if many else "run"


def parsed(words: Sequence[str]) -> dict[str, float | str]:
    factors: dict[str, float | str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise Refused(f"{one_line(word)!r}: a factor is given as name=value.")
        factors[name] = reading.typed(value)
    return factors


def filled(table: FactorTable, given: Mapping[str, float | str]) -> dict[str, float | str]:
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
    point = dict(given)
    for name in known:
        if name not in point:
            (common, _), *_ = Counter(row.get(name) for row in agreeing).most_common(1)
            if common is not None:
                point[name] = common
    return point


def predicted(table: FactorTable, choice: ModelChoice, wanted: Sequence[Mapping[str, float | str]]) -> list[Prediction]:
    """Predict points that are filled, with intervals for a group that was never measured. Raises: Refused."""
    by = choice.by
    chosen = learner(table, by, choice.model)
    points = tables.points(wanted, table)
    with threadpool_limits(1):
        value = validation.in_unit(chosen(table, table.units(by))(points), table)
        try:
            low, high = (
                validation.in_unit(end, table)
                for end in validation.intervals(validation.calibrated(table, by, chosen), points, choice.level)
            )
        except Refused:  # too few groups, or in one fold too little that a law needs
            low = high = np.full(points.count, np.nan)
    far = tables.beyond(table.points, points)
    return [Prediction(end, _end(value[at]), _end(low[at]), _end(high[at]), far[at]) for at, end in enumerate(wanted)]


def leans_on(table: FactorTable, name: str) -> list[tuple[str, float]]:
    """By how much predictions move when one factor is taken from another row, the most first.

    As a typical ratio - 1 where models see logarithms, else in the response's unit. It is what the model uses, not what is so.
    """
    by = by_of(table)
    rng = np.random.default_rng(SEED)
    with threadpool_limits(1):
        model = learner(table, by, name)(table, table.units(by))
        usual = model(table.points)
        leans = []
        for factor in (*table.points.numbers, *table.points.names):
            drawn = rng.permutation(table.points.count)
            moved = np.abs(model(_shuffled(table.points, factor, drawn)) - usual)
            away = float(np.nanmean(moved)) if not np.isnan(moved).all() else np.nan
            leans.append((factor, float(np.expm1(away)) if table.log else away))
    return sorted(leans, key=lambda lean: (np.isnan(lean[1]), -lean[1]))


def _shuffled(points: Points, factor: str, drawn: Whole) -> Points:
    numbers = {name: column[drawn] if name == factor else column for name, column in points.numbers.items()}
    names = {name: column[drawn] if name == factor else column for name, column in points.names.items()}
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


def _not_varied(table: FactorTable, name: str, known: Sequence[str]) -> str:
    for kept, copies in table.copies.items():
        if name in copies:
            return f"these rows cannot tell it from {kept}, which stands for both; give {kept}."
    return f"is no factor that varied; there are {', '.join(map(one_line, known))}."


def _end(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


PER_WORK, SCV, SERIAL = "predicted_s_per_work", "prediction_scv", "serial"


@dataclass(frozen=True, slots=True)
class ClassTime:
    """What a unit of work of one class is predicted to take, seconds on one replica; `measured_s_per_work` is what its jobs took.

    `off` is how far the predicted times of its jobs typically were from the measured, of groups left out; a fraction. `ordered` is the
    share of pairs of its and other classes' jobs that were predicted in the right order.
    """

    name: str
    jobs: int
    predicted_s_per_work: float
    measured_s_per_work: float
    off: float
    ordered: float


def class_times(rows: Sequence[Measurement], model: str) -> tuple[list[ClassTime], CrossValidation]:
    """Predict every class's time a unit of work. Models of logarithms tell medians: they are raised to means by what was left out.

    Raises: Refused, TooFew.
    """
    bare = [row for row in rows if not isinstance(row.factors.get(WORK), float) or CLASS not in row.factors]
    if bare:
        raise Refused(f"{len(bare)} of {len(rows)} jobs tell no class or no work; predicted times are by class and a unit of work.")
    kept = tables.thinned(rows)
    table = tables.table(kept, "service_s")
    validated = validation.validate(table, by_of(table), [model])
    predicted_s = validated.held_out[-1].predicted
    known = ~np.isnan(predicted_s)
    if not known.any():
        raise Refused(f"{model}: {validated.scored[-1].why or 'it could predict none of the jobs left out'}.")
    raised = float(table.values[known].sum() / predicted_s[known].sum())  # Duan's smearing (1983), as a ratio of sums
    with threadpool_limits(1):
        fitted = learner(table, validated.by, model)(table, table.units(validated.by))(table.points)
    times = (np.exp(fitted) if table.log else fitted) * raised
    names = np.array([str(row.factors[CLASS]) for row in kept])
    alone = np.array([_work_alone(row) for row in kept])
    result = []
    for name in dict.fromkeys(names.tolist()):
        own = names == name
        judged = own & known
        off = float(np.abs(np.log(predicted_s[judged] / table.values[judged])).mean()) if judged.any() and table.log else math.nan
        predicted, measured = (float(taken[own].sum() / alone[own].sum()) for taken in (times, table.values))
        result.append(
            ClassTime(name, int(own.sum()), predicted, measured, math.expm1(off), _ordered(predicted_s, table.values, own, known))
        )
    return result, validated


def _work_alone(row: Measurement) -> float:
    """The work of a job as its time has it: what one replica does of it, by the serial part its class declares (Amdahl)."""
    work, replicas, serial = (float(row.factors.get(name, other)) for name, other in ((WORK, 1.0), (REPLICAS, 1.0), (SERIAL, 0.0)))
    return work * (serial + (1 - serial) / replicas)


def _ordered(predicted: Floats, measured: Floats, own: Flags, known: Flags) -> float:
    judged = own & known
    above = np.sign(predicted[judged][:, None] - predicted[known]) * np.sign(measured[judged][:, None] - measured[known])
    pairs = above[above != 0]
    return float((pairs > 0).mean()) if len(pairs) else math.nan


def classes_of(path: Path) -> dict[str, Any]:
    try:
        document: Any = yaml.safe_load(read_whole(path).decode())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: is no YAML: {one_line(error)}.") from None
    classes = document.get("classes") if isinstance(document, dict) else None
    if not isinstance(classes, list) or not all(isinstance(class_, dict) and "name" in class_ for class_ in classes):
        raise Unreadable(f"{path}: has no list of classes with names; a file of data/jobs belongs here.")
    return dict(document)


def written(path: Path, document: dict[str, Any], times: Sequence[ClassTime]) -> str:
    """Write a file of classes anew with the predicted times in it; how wrong they are is no longer drawn (`prediction_scv`).

    Raises: Refused, for a class that was not measured.
    """
    by_name = {class_.name: class_ for class_ in times}
    for class_ in document["classes"]:
        if str(class_["name"]) not in by_name:
            raise Refused(
                f"{path}: class {one_line(class_['name'])} was not measured; these runs have {', '.join(map(one_line, by_name))}."
            )
        class_[PER_WORK] = float(f"{by_name[str(class_['name'])].predicted_s_per_work:.6g}")
        class_.pop(SCV, None)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
