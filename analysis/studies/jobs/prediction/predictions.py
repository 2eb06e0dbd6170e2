"""What a model says of points, how sure it is, what it leans on; its times by class, back to the scheduler; the answers.

In their data errors are fractions, values in the response's unit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from analysis.answer import Answer, Line, Part, bullets, of_parts, text_table
from analysis.files import read_whole
from analysis.plain import one_line
from analysis.studies.jobs.claims import leading
from analysis.studies.jobs.estimates import NONE, number, plural
from analysis.terms import Refused, Unreadable
from analysis.wording import digits, tiny, unsigned

from . import reading, tables, validation
from .models import BASELINE, CLASS, REPLICAS, WORK, many_small_fits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analysis.studies.jobs.estimates import Document

    from .models import Learner
    from .tables import By, FactorTable, Floats, Measurement
    from .validation import Coverage, CrossValidation, Scored

    Leans = Sequence[tuple[str, float]]  # factor, and by how much predictions move with it
    Point = Mapping[str, float | str]

SEED = 1
SHOWN_FACTORS = 12
PER_WORK, SCV, SERIAL = "predicted_s_per_work", "prediction_scv", "serial"
METHOD = (
    "Intervals are CV+ over groups (Barber et al. 2021; groups as Lee et al. 2023), calibrated on training groups alone; coverage is of "
    "the groups left out, its interval Wilson's for as many trials as groups."
)
SAID = ("better", "worse", "can't tell")


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

    factors: Point
    value: float | None
    low: float | None
    high: float | None
    beyond: tuple[str, ...] = ()


def learner(table: FactorTable, name: str) -> Learner:
    known = validation.learners(table)
    if name not in known:
        raise Refused(f"{one_line(name)}: is no model of these rows; there are {', '.join(known)}.")
    return known[name]


def by_of(table: FactorTable) -> By:
    return "configuration" if len(np.unique(table.configurations)) >= tables.LEAST else "run"


def parsed(words: Sequence[str]) -> dict[str, float | str]:
    factors: dict[str, float | str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise Refused(f"{one_line(word)!r}: a factor is given as name=value.")
        factors[name] = reading.typed(value)
    return factors


def filled(table: FactorTable, given: Point) -> dict[str, float | str]:
    """Add what a point lacks: the commonest value among the rows that agree with it, or among all where none does.

    Raises: Refused, for a factor that did not vary.
    """
    rows, factors = table.points, [str(name) for name in table.points]
    for name in given:
        if name not in factors:
            kept = next((kept for kept, copies in table.copies.items() if name in copies), "")
            reason = f"these rows cannot tell it from {kept}, which stands for both; give {kept}."
            raise Refused(f"{one_line(name)}: {reason if kept else f'is no factor that varied; there are {_listed(factors)}.'}")
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


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(one_line, names))


def predicted(table: FactorTable, choice: ModelChoice, wanted: Sequence[Point]) -> list[Prediction]:
    """Predict points that are filled, with intervals for a group that was never measured. Raises: Refused."""
    chosen = learner(table, choice.model)
    points = tables.points(wanted, table)
    with many_small_fits():
        seen = [chosen(table, table.units(choice.by))(points)]
        try:
            seen += validation.intervals(validation.calibrated(table, choice.by, chosen), points, choice.level)
        except Refused:  # too few groups, or in one fold too little that a law needs
            seen += [np.full(len(points), np.nan)] * 2
    values, lows, highs = (validation.in_unit(column, table).tolist() for column in seen)
    rows = zip(wanted, values, lows, highs, tables.beyond(table.points, points), strict=True)
    return [Prediction(point, _finite(value), _finite(low), _finite(high), beyond) for point, value, low, high, beyond in rows]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def leans_on(table: FactorTable, name: str) -> list[tuple[str, float]]:
    """Return by how much predictions move when one factor is taken from another row, the most first.

    As a typical ratio - 1 where models see logarithms, else in the response's unit. It is what the model uses, not what is so.
    """
    by, rng, points = by_of(table), np.random.default_rng(SEED), table.points
    leans = []
    with many_small_fits():
        model = learner(table, name)(table, table.units(by))
        usual = model(points)
        for factor in map(str, points):
            shuffled = points.assign(**{factor: points[factor].to_numpy()[rng.permutation(len(points))]})
            moved = np.abs(model(shuffled) - usual)
            away = float(np.nanmean(moved)) if not np.isnan(moved).all() else np.nan
            leans.append((factor, float(np.expm1(away)) if table.log else away))
    return sorted(leans, key=lambda lean: (np.isnan(lean[1]), -lean[1]))


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
    """Predict every class's time a unit of work. Models of logarithms give medians: they are raised to means by what was left out.

    Raises: Refused, TooFew.
    """
    bare = [row for row in rows if not isinstance(row.factors.get(WORK), float) or CLASS not in row.factors]
    if bare:
        raise Refused(f"{len(bare)} of {len(rows)} jobs have no class or no work; predicted times are by class and a unit of work.")
    kept = tables.thinned(rows)
    table = tables.table(kept, "service_s")
    validated = validation.validate(table, by_of(table), [model])
    predicted_s = validated.held_out[-1].predicted
    known = ~np.isnan(predicted_s)
    if not known.any():
        raise Refused(f"{model}: {validated.scored[-1].why or 'it could predict none of the jobs left out'}.")
    raised = float(table.measured[known].sum() / predicted_s[known].sum())  # Duan's smearing (1983), as a ratio of sums
    with many_small_fits():
        fitted = learner(table, model)(table, table.units(validated.by))(table.points)
    times = (np.exp(fitted) if table.log else fitted) * raised
    names = np.array([str(row.factors[CLASS]) for row in kept])
    alone = np.array([_work_alone(row) for row in kept])
    result = []
    for name in dict.fromkeys(names.tolist()):
        own = names == name
        judged = own & known
        off = float(np.abs(np.log(predicted_s[judged] / table.measured[judged])).mean()) if judged.any() and table.log else math.nan
        per_work, measured = (float(taken[own].sum() / alone[own].sum()) for taken in (times, table.measured))
        ordered = _ordered(predicted_s, table.measured, judged, known)
        result.append(ClassTime(name, int(own.sum()), per_work, measured, math.expm1(off), ordered))
    return result, validated


def _work_alone(row: Measurement) -> float:
    """Return the work of a job as its time has it: what one replica does of it, by the serial part its class declares (Amdahl)."""
    work, replicas, serial = (float(row.factors.get(name, other)) for name, other in ((WORK, 1.0), (REPLICAS, 1.0), (SERIAL, 0.0)))
    return work * (serial + (1 - serial) / replicas)


def _ordered(predicted: Floats, measured: Floats, judged: NDArray[np.bool_], known: NDArray[np.bool_]) -> float:
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
    """Return a file of classes with the predicted times in it; how wrong they are is no longer drawn (`prediction_scv`).

    Raises: Refused, for a class that was not measured.
    """
    by_name = {class_.name: class_ for class_ in times}
    for class_ in document["classes"]:
        if str(class_["name"]) not in by_name:
            raise Refused(f"{path}: class {one_line(class_['name'])} was not measured; these runs have {_listed(by_name)}.")
        class_[PER_WORK] = float(f"{by_name[str(class_['name'])].predicted_s_per_work:.6g}")
        class_.pop(SCV, None)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def _head(table: FactorTable) -> Iterator[Part]:
    names, numbers = tables.names_of(table.points), tables.numbers_of(table.points)
    yield Line(table.response, tone="strong")
    yield Line(f"{len(table.measured)} rows; varied: {', '.join([*names, *numbers])}")
    yield from bullets(
        f"{kept} stands for {', '.join(copies)} too: these rows cannot tell them apart." for kept, copies in table.copies.items()
    )
    yield from bullets(table.notes)
    yield ""


def _table(table: FactorTable) -> Document:
    return {
        "response": table.response,
        "rows": len(table.measured),
        "log": table.log,
        "numbers": tables.numbers_of(table.points),
        "names": tables.names_of(table.points),
        "copies": {name: list(others) for name, others in table.copies.items()},
        "notes": list(table.notes),
    }


def _validation(of: CrossValidation) -> Document:
    held = {model.model: {name: getattr(model, name).tolist() for name in ("predicted", "low", "high")} for model in of.held_out}
    plain = ("response", "by", "rows", "groups", "folds", "log", "extrapolated")
    lists = {"models": of.scored, "measured": of.measured.tolist(), "units": of.units.tolist()}
    return {**{name: getattr(of, name) for name in plain}, **lists, "held_out": held}


def validated(table: FactorTable, validations: Sequence[CrossValidation], notes: Sequence[str]) -> Answer:
    """Cross-validations of one table, in the data with what every model said of rows left out; `notes` are what could not be done."""
    data = {"table": _table(table), "method": METHOD, "validations": [*map(_validation, validations)], "said": list(notes)}
    return of_parts(data, _validated(table, validations, notes))


def _validated(table: FactorTable, validations: Sequence[CrossValidation], notes: Sequence[str]) -> Iterator[Part]:
    yield from leading([_better(of) for of in validations])
    yield ""
    yield from _head(table)
    heads = ("model", "MAPE", "RMSE", "typically off", "than the mean's [95 %]", "p", "", "covered [95 %]")
    for of in validations:
        groups = f"{of.groups} {of.by}s left out in {of.folds} folds"
        yield Line(f"{groups}, never a row of one on both sides", tone="strong")
        yield text_table(
            heads, [_scored(scored, of) for scored in sorted(of.scored, key=lambda scored: verdict_of(scored) in {"", SAID[2]})]
        )
        yield from bullets(_notes(of))
        yield ""
    yield from bullets(notes, tone="open")
    yield from bullets(_legend(validations), tone="quiet")


def _better(of: CrossValidation) -> str:
    """Which models are shown to be better than the mean of the training set, those with the smallest error first."""
    scores = sorted((scored for scored in of.scored if scored.difference), key=lambda scored: scored.typical or 0.0)
    models = {word: [scored.model for scored in scores if verdict_of(scored) == word] for word in SAID}
    words = "; ".join(f"{word}: {', '.join(names)}" for word, names in models.items() if names) or "not comparable"
    best = f" {scores[0].model} is {_error(scores[0].typical, of)} off." if scores else ""
    return f"By {of.by}, against the mean ({_error(of.scored[0].typical, of)} off): {words}.{best}"


def verdict_of(scored: Scored) -> str:
    return "" if scored.difference is None else {"not shown": "can't tell"}.get(scored.difference.verdict, scored.difference.verdict)


def _scored(scored: Scored, of: CrossValidation) -> list[str]:
    better = scored.difference
    against = [NONE, "", ""]
    if better is not None:
        value, low, high = (f"{end:.2f}" if of.log else digits(end, 3) for end in (better.value, better.low, better.high))
        against = [f"{value} [{low}, {high}]", tiny(better.p), verdict_of(scored)]
    mape = NONE if scored.mape is None else unsigned(scored.mape)
    covered = _covered(scored.coverage) if scored.coverage else NONE
    return [scored.model, mape, number(scored.rmse), _error(scored.typical, of), *against, covered]


def _notes(of: CrossValidation) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for scored in of.scored:
        if scored.why:
            reasons.setdefault(one_line(scored.why).rstrip("."), []).append(scored.model)
    yield from (f"{', '.join(names)}: {why}." for why, names in reasons.items())
    for scored in of.scored:
        if 0 < scored.rows < of.rows:
            some = f"it predicts {scored.rows} of {of.rows} rows, in {scored.groups} of {of.groups} groups"
            yield f"{scored.model}: {some}; on these the mean is typically {_error(scored.baseline_typical, of)} off."
        if scored.coverage is not None and scored.coverage.high < scored.coverage.nominal:
            promised = unsigned(scored.coverage.nominal)
            yield f"{scored.model}: its intervals are TOO NARROW: they cover less than the {promised} they promise."
    wide = {scored.model: scored.coverage.width for scored in of.scored if scored.coverage}
    widths = ", ".join(f"{model} {f'a factor of {width:.2f}' if of.log else digits(width, 3)}" for model, width in wide.items())
    if widths:
        yield f"median width of intervals: {widths}."
    yield from _extrapolated(of, "these are extrapolations")


def _extrapolated(of: CrossValidation, what: str) -> Iterator[str]:
    if of.extrapolated:
        yield f"{of.extrapolated} of {of.rows} rows lay outside what was left when they were left out: {what}."


def _legend(validations: Sequence[CrossValidation]) -> Iterator[str]:
    log = any(of.log for of in validations)
    models = {scored.model for of in validations for scored in of.scored}
    mean = "the mean of the training set" + (", of logarithms: geometric" if log else "")
    how = "times smaller than the mean's" if log else "by how much smaller than the mean's"
    yield (
        f"mean: {mean}. MAPE, RMSE: each group counts once. than the mean's: the error {how}, paired by group; variance after Nadeau and "
        "Bengio for training sets that overlap; p after Holm."
    )
    yield "A run is a block of cells, or one stream of jobs. A group is what is left out whole."
    if WORK in models:
        yield f"{WORK}: time = start + cost·work, of each class its own."
    yield METHOD


def fitted(table: FactorTable, model: str, leans: Leans, of: CrossValidation) -> Answer:
    data = {"table": _table(table), "model": model, "leans_on": dict(leans), "validation": _validation(of)}
    unit = "typically by" if table.log else f"by, {table.response}"
    moves = [(name, NONE if math.isnan(move) else _error(move, of)) for name, move in leans[:SHOWN_FACTORS]]
    used = text_table(("factor", f"taken from another row, {model} moves {unit}"), moves)
    what, trusts = "What the model uses; whether it is so, only what was left out can tell.", [*_trust(of)]
    return of_parts(data, [*trusts[:2], "", *_head(table), used, *bullets([what, *trusts[2:]])])


def _trust(of: CrossValidation) -> Iterator[str]:
    """Say how far the best model may be trusted."""
    scores = [scored for scored in of.scored if scored.model != BASELINE and scored.typical is not None]
    if not scores:
        yield f"No model could predict {of.response} of a {of.by} left out."
        return
    best = min(scores, key=lambda scored: scored.typical or 0.0)
    groups = f"{of.response} of {of.groups} {of.by}s left out in {of.folds} folds"
    mean = f"the mean of the training set {_error(best.baseline_typical, of)}"
    verdict = "too few groups to test"
    if best.difference is not None:
        verdict = f"{verdict_of(best)} (p {tiny(best.difference.p)})"
    yield f"{groups}: {best.model} is typically {_error(best.typical, of)} off, {mean}; {verdict}."
    if best.coverage is not None:
        yield f"Its {unsigned(best.coverage.nominal)} intervals held {_covered(best.coverage)} of what they had not seen."
    yield from _extrapolated(of, "extrapolations")


def shown(table: FactorTable, choice: ModelChoice, predictions: Sequence[Prediction]) -> Answer:
    data = {"table": _table(table), **asdict(choice), "method": METHOD, "predictions": predictions}
    promised = f"intervals of {unsigned(choice.level)} for a {choice.by} that was never measured"
    parts: list[Part] = []
    for prediction in predictions:
        value, ends = NONE, "this law cannot tell:"
        if prediction.value is not None:
            value, ends = digits(prediction.value), "no interval: too few groups"
        if prediction.value is not None and prediction.low is not None and prediction.high is not None:
            ends = f"[{digits(prediction.low)}, {digits(prediction.high)}]"
        factors = prediction.factors.items()
        point = " ".join(f"{name}={level}" if isinstance(level, str) else f"{name}={level:g}" for name, level in factors)
        parts.append(Line(f"{ends}  {point}", value))
        parts += [Line(f"EXTRAPOLATED: {line}", "  ", "open") for line in prediction.beyond]
    beyond = sum(bool(prediction.beyond) for prediction in predictions)
    title = f"{table.response} by {choice.model}: {plural(len(predictions), 'point')}, {beyond or 'none'} of them extrapolated; {promised}."
    return of_parts(data, [title, "", *parts, "", *_head(table), Line(METHOD, "•", "quiet")])


def classes(model: str, times: Sequence[ClassTime], of: CrossValidation, notes: Sequence[str]) -> Answer:
    data = {"model": model, "classes": times, "validation": _validation(of), "notes": list(notes)}
    heads = ("class", "predicted_s_per_work", "measured", "jobs", "typically off", "pairs in order")
    rows = [
        (
            *(time.name, digits(time.predicted_s_per_work), digits(time.measured_s_per_work), str(time.jobs)),
            *(NONE if math.isnan(share) else unsigned(share) for share in (time.off, time.ordered)),
        )
        for time in times
    ]
    legend = "typically off, pairs in order: of jobs left out; measured: as they ran. A coin puts half of the pairs in order."
    trusts = [*_trust(of)]
    parts: list[Part] = [
        *trusts[:2],
        "",
        Line(f"Seconds a unit of work, on one replica, by {model}", tone="strong"),
        text_table(heads, rows),
        *bullets([*notes, *trusts[2:]]),
        Line(legend, "•", "quiet"),
    ]
    return of_parts(data, parts)


def _error(value: float | None, of: CrossValidation) -> str:
    return NONE if value is None else unsigned(value) if of.log else digits(value, 3)


def _covered(coverage: Coverage) -> str:
    return f"{100 * coverage.share:.0f} [{100 * coverage.low:.0f}, {100 * coverage.high:.0f}] %"
