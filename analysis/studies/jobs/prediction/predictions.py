"""Predictions with intervals, the factors that models use, and times by class for the scheduler."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from analysis.answer import Answer, Column, Line, Section, bullets, grouped, table_of
from analysis.plain import one_line
from analysis.studies.jobs.claims import column, leading
from analysis.studies.jobs.estimates import figure, number
from analysis.terms import Refused
from analysis.wording import counted, digits, tiny, unsigned

from . import models, reading, validation
from .models import CLASS, REPLICAS, WORK, learners, many_small_fits

if TYPE_CHECKING:
    from analysis.answer import Columns

    from .models import By, FactorTable, Measurement
    from .validation import CrossValidation

    Point = Mapping[str, float | str]

SEED = 1
SHOWN_FACTORS = 12
PER_WORK, SCV, SERIAL = "predicted_s_per_work", "prediction_scv", "serial"
METHOD = (
    "Intervals are CV+ over groups (Barber et al. 2021; groups as Lee et al. 2023), calibrated on "
    "training groups alone; "
    "coverage is that of the groups left out, with Wilson's interval (one trial per group)."
)
LEGEND = [
    ("MAPE, RMSE", "each group counts once."),
    ("mean", "the mean of the training set; the geometric mean if errors are factors."),
    (
        "than the mean's",
        (
            "how many times smaller the error is, or by how much; paired by group; p after Holm; "
            "the variance is widened after Nadeau and Bengio, for training sets that overlap."
        ),
    ),
    ("group", "what is left out whole: a configuration, or a run (a block, or the same jobs)."),
    (WORK, "time = start + cost·work, fitted per class."),
    ("intervals", METHOD),
]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A model's prediction for one point; `beyond` names every way in which it is an extrapolation.

    `value` is None if a law lacks the point's class, `low` and `high` if there are too few groups
    for an interval.
    """

    factors: Point
    value: float | None
    low: float | None
    high: float | None
    beyond: tuple[str, ...] = ()


def by_of(table: FactorTable) -> By:
    return "configuration" if len(np.unique(table.configurations)) >= models.LEAST else "run"


def parsed(words: Sequence[str]) -> dict[str, float | str]:
    factors: dict[str, float | str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise Refused(f"{one_line(word)!r}: a factor is given as name=value.")
        factors[name] = reading.typed(value)
    return factors


def filled(table: FactorTable, given: Point) -> dict[str, float | str]:
    """Complete a point with the commonest values among the rows that agree with it, or among all.

    Raises: Refused, for a factor that did not vary.
    """
    rows, factors = table.points, [str(name) for name in table.points]
    for name in given:
        if name not in factors:
            there = ", ".join(map(one_line, factors))
            raise Refused(f"{one_line(name)}: not a varied factor; available: {there}.")
    agrees = np.ones(len(rows), bool)
    for name, value in given.items():
        same = (rows[name] == value).to_numpy()
        agrees &= same | ~same.any()
    agreeing = rows[agrees] if agrees.any() else rows
    point = dict(given)
    for name in factors:
        if name not in point:
            (common, _), *_ = Counter(agreeing[name].astype(object).fillna("")).most_common(1)
            if common != "":
                point[name] = common
    return point


def predicted(
    table: FactorTable, model: str, level: float, wanted: Sequence[Point]
) -> list[Prediction]:
    """Predict completed points, with intervals for an unmeasured group. Raises: Refused."""
    (chosen,) = learners(table, [model]).values()
    by, points = by_of(table), models.points(wanted, table)
    with many_small_fits():
        seen = [chosen(table)(points)]
        try:
            seen += validation.calibrated(table, by, chosen)(points, level)
        except Refused:  # too few groups, or in one fold too little for a law
            seen += [np.full(len(points), np.nan)] * 2
    columns = (
        [_finite(value) for value in validation.in_unit(column, table).tolist()] for column in seen
    )
    return [
        Prediction(*row)
        for row in zip(wanted, *columns, models.beyond(table.points, points), strict=True)
    ]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def leans_on(table: FactorTable, model: str) -> dict[str, float]:
    """Return by how much predictions change if one factor is taken from another row, largest first.

    This is a typical ratio - 1 on logarithms, else in the response's unit. It shows what the model
    uses, not what is true.
    """
    rng, points = np.random.default_rng(SEED), table.points
    leans = {}
    with many_small_fits():
        (chosen,) = learners(table, [model]).values()
        fitted = chosen(table)
        usual = fitted(points)
        for factor in map(str, points):
            shuffled = points.assign(
                **{factor: points[factor].to_numpy()[rng.permutation(len(points))]}
            )
            moved = np.abs(fitted(shuffled) - usual)
            away = float(np.nanmean(moved)) if not np.isnan(moved).all() else np.nan
            leans[factor] = float(np.expm1(away)) if table.log else away
    return dict(sorted(leans.items(), key=lambda lean: (np.isnan(lean[1]), -lean[1])))


@dataclass(frozen=True, slots=True)
class ClassTime:
    """The predicted seconds per unit of a class's work on one replica, with the measured time.

    `off` is the typical error of its jobs' predictions if their group was held out; a fraction.
    """

    name: str
    jobs: int
    predicted_s_per_work: float
    measured_s_per_work: float
    off: float


def class_times(rows: Sequence[Measurement], model: str) -> tuple[list[ClassTime], CrossValidation]:
    """Predict every class's time per unit of work; held-out errors correct medians to means.

    Raises: Refused, TooFew.
    """
    bare = [
        row
        for row in rows
        if not isinstance(row.factors.get(WORK), float) or CLASS not in row.factors
    ]
    if bare:
        count = f"{len(bare)} of {len(rows)} jobs"
        raise Refused(
            f"{count} have no class or no work; predicted times are per class and unit of work."
        )
    kept = models.thinned(rows)
    table = models.table(kept, "service_s")
    validated = validation.validate(table, by_of(table), [model])
    held_out = np.array(validated.held_out[model]["predicted"])
    known = ~np.isnan(held_out)
    if not known.any():
        raise Refused(
            f"{model}: {validated.scored[-1].why or 'it could predict none of the jobs left out'}."
        )
    # Duan's smearing (1983), as a ratio of sums.
    raised = table.measured[known].sum() / held_out[known].sum()
    with many_small_fits():
        (chosen,) = learners(table, [model]).values()
        times = validation.in_unit(chosen(table)(table.points), table) * raised
    names = np.array([str(row.factors[CLASS]) for row in kept])
    alone = np.array([_work_alone(row) for row in kept])
    result = []
    for name in dict.fromkeys(names.tolist()):
        own = names == name
        judged = own & known
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.abs(np.log(held_out[judged] / table.measured[judged]))
        per_work, measured = (
            float(taken[own].sum() / alone[own].sum()) for taken in (times, table.measured)
        )
        typical = math.expm1(off.mean()) if len(off) and table.log else math.nan
        result.append(ClassTime(name, int(own.sum()), per_work, measured, typical))
    return result, validated


def _work_alone(row: Measurement) -> float:
    defaults = {WORK: 0.0, REPLICAS: 1.0, SERIAL: 0.0}
    work, replicas, serial = (
        float(row.factors.get(name, other)) for name, other in defaults.items()
    )
    return work * (serial + (1 - serial) / replicas)


def written(path: Path, document: dict[str, Any], times: Sequence[ClassTime]) -> str:
    """Return a file of classes with predicted times, without a random `prediction_scv`.

    Raises: Refused, for a class that was not measured.
    """
    by_name = {class_.name: class_ for class_ in times}
    for class_ in document["classes"]:
        if str(class_["name"]) not in by_name:
            there = ", ".join(map(one_line, by_name))
            raise Refused(
                f"{path}: class {one_line(class_['name'])} was not measured; available: {there}."
            )
        class_[PER_WORK] = float(f"{by_name[str(class_['name'])].predicted_s_per_work:.6g}")
        class_.pop(SCV, None)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def _about(table: FactorTable) -> tuple[dict[str, Any], list[Line]]:
    names, numbers = models.names_of(table.points), models.numbers_of(table.points)
    data = {
        "response": table.response,
        "rows": len(table.measured),
        "log": table.log,
        "numbers": numbers,
        "names": names,
        "copies": {name: list(others) for name, others in table.copies.items()},
        "notes": list(table.notes),
    }
    copies = [
        f"{kept} also represents {', '.join(others)}, which varied with it in these rows."
        for kept, others in table.copies.items()
    ]
    varied = Line(f"{len(table.measured)} rows; varied: {', '.join([*names, *numbers])}")
    return data, [varied, *bullets([*copies, *table.notes])]


def validated(
    table: FactorTable, validations: Sequence[CrossValidation], notes: Sequence[str]
) -> Answer:
    """Answer with cross-validations of one table and held-out predictions; `notes` are failures."""
    data, about = _about(table)
    title, *more = leading([_better(of) for of in validations])
    return Answer(
        title,
        [*map(Line, more)],
        [
            Section(table.response, [*about, *bullets(notes, tone="open")]),
            *map(_validation, validations),
        ],
        legend=LEGEND,
        data={"table": data, "method": METHOD, "validations": validations, "said": list(notes)},
    )


def _better(of: CrossValidation) -> str:
    scores = sorted(
        (scored for scored in of.scored if scored.difference),
        key=lambda scored: scored.typical or 0.0,
    )
    words = grouped(
        [(scored.model, scored.difference.verdict) for scored in scores if scored.difference]
    )
    verdicts = "; ".join(
        f"{word}: {names}" for names, _, word in (text.partition(": ") for text in words)
    )
    best = f" {scores[0].model} is {_error(scores[0].typical, of)} off." if scores else ""
    mean = f"against the mean ({_error(of.scored[0].typical, of)} off)"
    return f"By {of.by}, {mean}: {verdicts or 'not comparable'}.{best}"


def _validation(of: CrossValidation) -> Section:
    def write(value: float) -> str:
        return _error(value, of)

    columns: Columns = [
        column("model", left=True),
        column("MAPE", "mape", unsigned),
        column("RMSE", "rmse", number),
        column("typically\noff", "typical", write),
        column("than the mean's\n[95 %]", "than_mean", figure, of="difference"),
        (Column("p", write=tiny), lambda scored: scored.difference and scored.difference.p),
        (
            Column("", "verdict", left=True),
            lambda scored: scored.difference and scored.difference.verdict,
        ),
        column("covered\n[95 %]", "covered", _covered),
    ]
    shown = sorted(
        of.scored,
        key=lambda scored: not scored.difference or scored.difference.verdict == "can't tell",
    )
    title = f"{of.groups} groups by {of.by}, left out in {of.folds} folds, each as a whole"
    return Section(title, [table_of(columns, shown), *bullets(_notes(of))])


def _notes(of: CrossValidation) -> Iterator[str]:
    yield from grouped(
        [
            (scored.model, f"{one_line(scored.why).rstrip('.')}.")
            for scored in of.scored
            if scored.why
        ]
    )
    for scored in of.scored:
        if 0 < scored.rows < of.rows:
            yield f"{scored.model}: it predicts {scored.rows} of {of.rows} rows."
        if scored.covered is not None and (scored.covered.high or 1.0) < of.level:
            promised = unsigned(of.level)
            yield (
                f"{scored.model}: its intervals are TOO NARROW: they cover less than the "
                f"{promised} they promise."
            )
    yield from _extrapolated(of)


def _extrapolated(of: CrossValidation) -> Iterator[str]:
    if of.extrapolated:
        yield (
            f"{of.extrapolated} of {of.rows} rows were extrapolated: they lay outside all rows "
            "left for training."
        )


def fitted(
    table: FactorTable, model: str, leans: Mapping[str, float], of: CrossValidation
) -> Answer:
    data, about = _about(table)
    heads = ("factor", f"typical change in {model}'s prediction if taken from another row")
    columns: Columns = [
        (Column(heads[0], left=True), lambda lean: lean[0]),
        (Column(heads[1], "moves", lambda value: _error(value, of)), lambda lean: _finite(lean[1])),
    ]
    title, *trusts = _trust(of)
    used = table_of(columns, [*leans.items()][:SHOWN_FACTORS])
    uses = "This shows what the model uses; only held-out errors show whether it is right."
    return Answer(
        title,
        sections=[Section(table.response, [*about, used, *bullets([uses, *trusts])])],
        data={"table": data, "model": model, "leans_on": leans, "validation": of},
    )


def _trust(of: CrossValidation) -> Iterator[str]:
    best = of.best
    if best is None:
        yield f"No model could predict {of.response} of a held-out {of.by}."
        return
    verdict = "too few groups to test"
    if best.difference is not None:
        verdict = f"{best.difference.verdict} (p {tiny(best.difference.p)})"
    off = (
        f"{best.model} is typically {_error(best.typical, of)} off, the mean "
        f"{_error(best.mean_typical, of)}; {verdict}."
    )
    yield f"{of.response} of {of.groups} {of.by}s left out in {of.folds} folds: {off}"
    if best.covered is not None:
        yield (
            f"Its {unsigned(of.level)} intervals contained {_covered(best.covered)} of the "
            "held-out values."
        )
    yield from _extrapolated(of)


def shown(
    table: FactorTable, model: str, level: float, predictions: Sequence[Prediction]
) -> Answer:
    data, about = _about(table)
    lines = []
    for prediction in predictions:
        value, ends = number(prediction.value, 4), "the law has no such class:"
        if prediction.value is not None:
            ends = "no interval: too few groups"
        if prediction.low is not None and prediction.high is not None:
            ends = f"[{digits(prediction.low)}, {digits(prediction.high)}]"
        point = " ".join(reading.spelled(*factor) for factor in prediction.factors.items())
        lines.append(Line(f"{ends}  {point}", value))
        lines += [Line(f"EXTRAPOLATED: {line}", "  ", "open") for line in prediction.beyond]
    beyond = sum(bool(prediction.beyond) for prediction in predictions)
    by = by_of(table)
    points = f"{counted(len(predictions), 'point')}, {beyond or 'none'} of them extrapolated"
    return Answer(
        f"{table.response} by {model}: {points}; intervals of {unsigned(level)} for an unmeasured "
        f"{by}.",
        sections=[Section("", lines), Section(table.response, about)],
        legend=[("intervals", METHOD)],
        data={
            "table": data,
            "model": model,
            "by": by,
            "level": level,
            "method": METHOD,
            "predictions": predictions,
        },
    )


def classes(
    model: str, times: Sequence[ClassTime], of: CrossValidation, notes: Sequence[str]
) -> Answer:
    columns: Columns = [
        column("class", of="name", left=True),
        column(PER_WORK, write=digits),
        column("measured", "measured_s_per_work", digits),
        column("jobs"),
        (Column("typically off", "off", unsigned), lambda time: _finite(time.off)),
    ]
    title, *trusts = _trust(of)
    seconds = f"Seconds per unit of work, on one replica, by {model}"
    return Answer(
        title,
        sections=[Section(seconds, [table_of(columns, times), *bullets([*trusts, *notes])])],
        legend=[
            ("measured", "as the jobs ran"),
            ("typically off", "of held-out jobs"),
        ],
        data={"model": model, "classes": times, "validation": of, "notes": list(notes)},
    )


def _error(value: float | None, of: CrossValidation) -> str:
    return number(value) if value is None or not of.log else unsigned(value)


def _covered(covered: Any) -> str:
    return f"{100 * covered.value:.0f} [{100 * covered.low:.0f}, {100 * covered.high:.0f}] %"
