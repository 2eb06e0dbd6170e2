"""Validations and predictions as answers. In their data errors are fractions, values in the response's unit."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.answer import Line, bullets, marked, of_parts, text_table
from analysis.plain import one_line
from analysis.studies.jobs.estimates import NONE
from analysis.wording import digits, tiny, unsigned

from .models import BASELINE, WORK
from .validation import SAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analysis.answer import Answer, Part
    from analysis.studies.jobs.estimates import Document

    from .predictions import ClassTime, ModelChoice, Prediction
    from .tables import FactorTable
    from .validation import Coverage, CrossValidation, Scored

    Leans = Sequence[tuple[str, float]]  # factor, and by how much predictions move with it

SHOWN_FACTORS = 12
METHOD = (
    "Intervals are CV+ over groups (Barber et al. 2021; groups as Lee et al. 2023), calibrated on training groups alone; coverage is of "
    "the groups left out, its interval Wilson's for as many trials as groups."
)


def _head(table: FactorTable) -> Iterator[Part]:
    yield Line(one_line(table.response), tone="strong")
    varied = ", ".join([*table.points.names, *table.points.numbers])
    yield from marked([("", f"{len(table.values)} rows; varied: {one_line(varied, 600)}")])
    for kept, copies in table.copies.items():
        yield from marked([("•", f"{kept} stands for {', '.join(map(one_line, copies))} too: these rows cannot tell them apart.")])
    yield from bullets(one_line(note) for note in table.notes)
    yield ""


def _table(table: FactorTable) -> Document:
    return {
        "response": table.response,
        "rows": len(table.values),
        "log": table.log,
        "numbers": list(table.points.numbers),
        "names": list(table.points.names),
        "copies": {name: list(others) for name, others in table.copies.items()},
        "notes": list(table.notes),
    }


def _validation(validation: CrossValidation) -> Document:
    held = {model.model: {name: getattr(model, name).tolist() for name in ("predicted", "low", "high")} for model in validation.held_out}
    plain = ("response", "by", "rows", "groups", "folds", "log", "extrapolated")
    return {
        **{name: getattr(validation, name) for name in plain},
        "models": [*map(asdict, validation.scored)],
        "measured": validation.measured.tolist(),
        "units": validation.units.tolist(),
        "held_out": held,
    }


def validated(table: FactorTable, validations: Sequence[CrossValidation], notes: Sequence[str]) -> Answer:
    """Cross-validations of one table, in the data with what every model said of rows left out; `notes` are what could not be done."""
    data = {"table": _table(table), "method": METHOD, "validations": [*map(_validation, validations)], "said": list(notes)}
    return of_parts(data, _validated(table, validations, notes))


def _validated(table: FactorTable, validations: Sequence[CrossValidation], notes: Sequence[str]) -> Iterator[Part]:
    yield from _head(table)
    heads = ("model", "MAPE", "RMSE", "typically off", "than the mean's [95 %]", "p", "", "covered [95 %]")
    for validation in validations:
        groups = f"{validation.groups} {validation.by}s left out in {validation.folds} folds"
        yield Line(f"{groups}, never a row of one on both sides", tone="strong")
        yield text_table(heads, [_scored(scored, validation) for scored in validation.scored])
        yield from bullets(_notes(validation))
        yield ""
    yield from bullets(notes, tone="open")
    yield from bullets(_legend(validations), tone="quiet")


def _scored(scored: Scored, of: CrossValidation) -> list[str]:
    better = scored.difference
    ratio, p, verdict = NONE, "", ""
    if better is not None:
        value, low, high = (f"{end:.2f}" if of.log else digits(end, 3) for end in (better.value, better.low, better.high))
        ratio, p, verdict = f"{value} [{low}, {high}]", tiny(better.p), better.verdict
    mape = NONE if scored.mape is None else unsigned(scored.mape)
    rmse = NONE if scored.rmse is None else digits(scored.rmse, 3)
    covered = _covered(scored.coverage) if scored.coverage else NONE
    return [scored.model, mape, rmse, _error(scored.typical, of), ratio, p, verdict, covered]


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
    widths = ", ".join(f"{scored.model} {_width(scored.coverage, of)}" for scored in of.scored if scored.coverage)
    if widths:
        yield f"median width of intervals: {widths}."
    if of.extrapolated:
        yield f"{of.extrapolated} of {of.rows} rows lay outside what was left when they were left out: these are extrapolations."


def _legend(validations: Sequence[CrossValidation]) -> Iterator[str]:
    log = any(validation.log for validation in validations)
    models = {scored.model for validation in validations for scored in validation.scored}
    mean = "the mean of the training set" + (", of logarithms: geometric" if log else "")
    how = "times smaller than the mean's" if log else "by how much smaller than the mean's"
    yield (
        f"mean: {mean}. MAPE, RMSE: each group counts once. than the mean's: the error {how}, paired by group; variance after Nadeau and "
        "Bengio for training sets that overlap; p after Holm."
    )
    yield "A run is a block of cells, or one stream of jobs. A group is what is left out whole."
    if SAME in models:
        yield f"{SAME}: the mean of what was measured under the same factors before; a model that is not below it knows no more."
    if WORK in models:
        yield f"{WORK}: time = start + cost·work, of each class its own."
    yield METHOD


def fitted(table: FactorTable, model: str, leans: Leans, validation: CrossValidation) -> Answer:
    data = {"table": _table(table), "model": model, "leans_on": dict(leans), "validation": _validation(validation)}
    return of_parts(data, _fitted(table, model, leans, validation))


def _fitted(table: FactorTable, model: str, leans: Leans, validation: CrossValidation) -> Iterator[Part]:
    yield from _head(table)
    unit = "typically by" if table.log else f"by, {table.response}"
    heads = ("factor", f"taken from another row, {model} moves {unit}")
    moves = [(one_line(name, 40), NONE if math.isnan(move) else _error(move, validation)) for name, move in leans[:SHOWN_FACTORS]]
    yield text_table(heads, moves)
    yield from marked([("•", "What the model uses; whether it is so, only what was left out can tell:")])
    yield from bullets(answers(validation))


def answers(validation: CrossValidation) -> list[str]:
    scores = [scored for scored in validation.scored if scored.model != BASELINE and scored.typical is not None]
    if not scores:
        return [f"No model could predict {validation.response} of a {validation.by} left out."]
    best = min(scores, key=lambda scored: scored.typical or 0.0)
    groups = f"{validation.response} of {validation.groups} {validation.by}s left out in {validation.folds} folds"
    mean = f"the mean of the training set {_error(best.baseline_typical, validation)}"
    sentences = [f"{groups}: {best.model} is typically {_error(best.typical, validation)} off, {mean}; {_verdict(best)}."]
    if best.coverage is not None:
        sentences.append(f"Its {unsigned(best.coverage.nominal)} intervals held {_covered(best.coverage)} of what they had not seen.")
    if validation.extrapolated:
        outside = f"{validation.extrapolated} of {validation.rows} rows lay outside what was left when they were left out"
        sentences.append(f"{outside}: extrapolations.")
    return sentences


def _verdict(scored: Scored) -> str:
    if scored.difference is None:
        return "too few groups to test"
    words = {"better": "shown to be better", "worse": "shown to be worse", "not shown": "a difference is not shown"}
    return f"{words[scored.difference.verdict]} (p {tiny(scored.difference.p)})"


def predicted(table: FactorTable, choice: ModelChoice, predictions: Sequence[Prediction]) -> Answer:
    data = {"table": _table(table), **asdict(choice), "method": METHOD, "predictions": [*map(asdict, predictions)]}
    return of_parts(data, _predicted(table, choice, predictions))


def _predicted(table: FactorTable, choice: ModelChoice, predictions: Sequence[Prediction]) -> Iterator[Part]:
    yield from _head(table)
    promised = f"intervals of {unsigned(choice.level)} for a {choice.by} that was never measured"
    yield Line(f"{table.response} by {choice.model}, {promised}", tone="strong")
    for prediction in predictions:
        ends = "no interval: too few groups"
        if prediction.low is not None and prediction.high is not None:
            ends = f"[{digits(prediction.low)}, {digits(prediction.high)}]"
        value, ends = (NONE, "this law cannot tell:") if prediction.value is None else (digits(prediction.value), ends)
        factors = prediction.factors.items()
        point = " ".join(f"{name}={level}" if isinstance(level, str) else f"{name}={level:g}" for name, level in factors)
        yield from marked([(value, f"{ends}  {one_line(point)}")])
        yield from marked([("  ", f"EXTRAPOLATED: {line}") for line in prediction.beyond], "open")
    yield from marked([("•", METHOD)], "quiet")


def classes(model: str, times: Sequence[ClassTime], validation: CrossValidation, notes: Sequence[str]) -> Answer:
    data = {"model": model, "classes": [*map(asdict, times)], "validation": _validation(validation), "notes": list(notes)}
    return of_parts(data, _classes(model, times, validation, notes))


def _classes(model: str, times: Sequence[ClassTime], validation: CrossValidation, notes: Sequence[str]) -> Iterator[Part]:
    yield Line(f"Seconds a unit of work, on one replica, by {model}", tone="strong")
    heads = ("class", "predicted_s_per_work", "measured", "jobs", "typically off", "pairs in order")
    yield text_table(heads, map(_class_time, times))
    yield from bullets([*map(one_line, notes), *answers(validation)])
    line = "typically off, pairs in order: of jobs left out; measured: as they ran. A coin puts half of the pairs in order."
    yield from marked([("•", line)], "quiet")


def _class_time(time: ClassTime) -> list[str]:
    off, ordered = (NONE if math.isnan(share) else unsigned(share) for share in (time.off, time.ordered))
    return [one_line(time.name, 40), digits(time.predicted_s_per_work), digits(time.measured_s_per_work), str(time.jobs), off, ordered]


def _error(value: float | None, of: CrossValidation) -> str:
    return NONE if value is None else unsigned(value) if of.log else digits(value, 3)


def _covered(coverage: Coverage) -> str:
    return f"{100 * coverage.share:.0f} [{100 * coverage.low:.0f}, {100 * coverage.high:.0f}] %"


def _width(coverage: Coverage, of: CrossValidation) -> str:
    return f"a factor of {coverage.width:.2f}" if of.log else digits(coverage.width, 3)
