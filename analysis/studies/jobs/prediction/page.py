"""Validations and predictions as text of at most 100 columns, and for programs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line, printable_json
from analysis.printing import columns, hanging, on_page, tiny
from analysis.wording import digits, unsigned

from .models import BASELINE, WORK
from .validation import SAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .predictions import ClassTime, ModelChoice, Prediction
    from .tables import Table
    from .validation import Coverage, CrossValidation, Scored


NO_VALUE = "–"
SHOWN_FACTORS = 12
METHOD = (
    "Intervals are CV+ over groups (Barber et al. 2021; groups as Lee et al. 2023), calibrated on training groups alone; coverage is of "
    "the groups left out, its interval Wilson's for as many trials as groups."
)


def validations(table: Table, found: Sequence[CrossValidation], said: Sequence[str], *, color: bool = False) -> str:
    """Write cross-validations of one table; `said` is what could not be done, a sentence each."""
    return on_page(_validations(table, found, said), color=color)


def fitted(table: Table, model: str, leans: Sequence[tuple[str, float]], found: CrossValidation, *, color: bool = False) -> str:
    """Write what a model leans on, and how far it may be trusted."""
    return on_page(_fitted(table, model, leans, found), color=color)


def predictions(table: Table, asked: ModelChoice, found: Sequence[Prediction], *, color: bool = False) -> str:
    """Write predictions of points."""
    return on_page(_predictions(table, asked, found), color=color)


def served(model: str, found: Sequence[ClassTime], validation: CrossValidation, notes: Sequence[str], *, color: bool = False) -> str:
    """Write predicted times by class."""
    return on_page(_served(model, found, validation, notes), color=color)


def answers(found: CrossValidation) -> list[str]:
    """Say in sentences, as a report does, what came of a cross-validation."""
    ranked = sorted((one for one in found.scored if one.model != BASELINE and one.typical is not None), key=lambda one: one.typical or 0.0)
    if not ranked:
        return [f"No model could predict {found.response} of a {found.by} left out."]
    best = ranked[0]
    errors = f"typically {_error(best.typical, found)} off, the mean of the training set {_error(best.baseline_typical, found)}"
    made = [f"{found.response} of {found.groups} {found.by}s left out in {found.folds} folds: {best.model} is {errors}; {_verdict(best)}."]
    if best.coverage is not None:
        made.append(f"Its {unsigned(best.coverage.nominal)} intervals held {_covered(best.coverage)} of what they had not seen.")
    if found.extrapolated:
        made.append(f"{found.extrapolated} of {found.rows} rows lay outside what was left when they were left out: extrapolations.")
    return made


def _validations(table: Table, found: Sequence[CrossValidation], said: Sequence[str]) -> Iterator[RenderableType]:
    yield from _head(table)
    for one in found:
        yield Text(f"{one.groups} {one.by}s left out in {one.folds} folds, never a row of one on both sides", "bold")
        yield columns(
            ("model", "MAPE", "RMSE", "typically off", "than the mean's [95 %]", "p", "", "covered [95 %]"),
            [_row(row, one) for row in one.scored],
        )
        yield hanging(_notes(one))
        yield ""
    yield hanging([("•", line) for line in said], style="bold yellow")
    yield hanging([("•", line) for line in _legend(found)], "dim", "dim")


def _head(table: Table) -> Iterator[RenderableType]:
    yield Text(one_line(table.response), "bold")
    numbers, names = list(table.points.numbers), list(table.points.names)
    varied = ", ".join([*names, *numbers])
    yield hanging([("", f"{len(table.values)} rows; varied: {one_line(varied, 600)}")])
    for kept, copies in table.copies.items():
        yield hanging([("•", f"{kept} stands for {', '.join(map(one_line, copies))} too: these rows cannot tell them apart.")])
    yield hanging([("•", one_line(line)) for line in table.notes])
    yield ""


def _row(one: Scored, of: CrossValidation) -> list[str]:
    better = one.difference
    ratio, p, verdict = NO_VALUE, "", ""
    if better is not None:
        ratio = f"{_times(better.value, of)} [{_times(better.low, of)}, {_times(better.high, of)}]"
        p, verdict = tiny(better.p), better.verdict
    mape = NO_VALUE if one.mape is None else unsigned(one.mape)
    rmse = NO_VALUE if one.rmse is None else digits(one.rmse, 3)
    return [one.model, mape, rmse, _error(one.typical, of), ratio, p, verdict, _covered(one.coverage) if one.coverage else NO_VALUE]


def _notes(of: CrossValidation) -> Iterator[tuple[str, str]]:
    reasons: dict[str, list[str]] = {}
    for one in of.scored:
        if one.why:
            reasons.setdefault(one_line(one.why).rstrip("."), []).append(one.model)
    for why, names in reasons.items():
        yield "•", f"{', '.join(names)}: {why}."
    for one in of.scored:
        if 0 < one.rows < of.rows:
            told = f"it predicts {one.rows} of {of.rows} rows, in {one.groups} of {of.groups} groups; on these the mean is"
            yield "•", f"{one.model}: {told} typically {_error(one.baseline_typical, of)} off."
        if one.coverage is not None and one.coverage.high < one.coverage.nominal:
            yield "•", f"{one.model}: its intervals are TOO NARROW: they cover less than the {unsigned(one.coverage.nominal)} they promise."
    widths = ", ".join(f"{one.model} {_width(one.coverage, of)}" for one in of.scored if one.coverage)
    if widths:
        yield "•", f"median width of intervals: {widths}."
    if of.extrapolated:
        yield "•", f"{of.extrapolated} of {of.rows} rows lay outside what was left when they were left out: these are extrapolations."


def _legend(found: Sequence[CrossValidation]) -> Iterator[str]:
    log = any(one.log for one in found)
    mean = "the mean of the training set" + (", of logarithms: geometric" if log else "")
    how = "times smaller than the mean's" if log else "by how much smaller than the mean's"
    yield (
        f"mean: {mean}. MAPE, RMSE: each group counts once. than the mean's: the error {how}, paired by group; variance after Nadeau and "
        "Bengio for training sets that overlap; p after Holm."
    )
    yield "A run is a block of cells, or one stream of jobs. A group is what is left out whole."
    if any(row.model == SAME for one in found for row in one.scored):
        yield f"{SAME}: the mean of what was measured under the same factors before; a model that is not below it knows no more."
    if any(row.model == WORK for one in found for row in one.scored):
        yield f"{WORK}: time = start + cost·work, of each class its own."
    yield METHOD


def _fitted(table: Table, model: str, leans: Sequence[tuple[str, float]], found: CrossValidation) -> Iterator[RenderableType]:
    yield from _head(table)
    unit = "typically by" if table.log else f"by, {table.response}"
    heads = ("factor", f"taken from another row, {model} moves {unit}")
    yield columns(
        heads, [(one_line(name, 40), NO_VALUE if math.isnan(away) else _error(away, found)) for name, away in leans[:SHOWN_FACTORS]]
    )
    yield hanging([("•", "What the model uses; whether it is so, only what was left out can tell:")])
    yield hanging([("•", line) for line in answers(found)])


def _predictions(table: Table, asked: ModelChoice, found: Sequence[Prediction]) -> Iterator[RenderableType]:
    yield from _head(table)
    yield Text(f"{table.response} by {asked.model}, intervals of {unsigned(asked.level)} for a {asked.by} that was never measured", "bold")
    for one in found:
        ends = "no interval: too few groups" if one.low is None or one.high is None else f"[{digits(one.low)}, {digits(one.high)}]"
        said = " ".join(f"{name}={value}" if isinstance(value, str) else f"{name}={value:g}" for name, value in one.factors.items())
        told = (NO_VALUE, "this law cannot tell:") if one.value is None else (digits(one.value), ends)
        yield hanging([(told[0], f"{told[1]}  {one_line(said)}")])
        yield hanging([("  ", f"EXTRAPOLATED: {line}") for line in one.beyond], style="bold yellow")
    yield hanging([("•", METHOD)], "dim", "dim")


def _served(model: str, found: Sequence[ClassTime], validation: CrossValidation, notes: Sequence[str]) -> Iterator[RenderableType]:
    yield Text(f"Seconds a unit of work, on one replica, by {model}", "bold")
    heads = ("class", "predicted_s_per_work", "measured", "jobs", "typically off", "pairs in order")
    yield columns(heads, [_class(one) for one in found])
    yield hanging([("•", line) for line in [*map(one_line, notes), *answers(validation)]])
    yield hanging(
        [("•", "typically off, pairs in order: of jobs left out; measured: as they ran. A coin puts half of the pairs in order.")],
        "dim",
        "dim",
    )


def _class(one: ClassTime) -> list[str]:
    off, ordered = (NO_VALUE if math.isnan(value) else unsigned(value) for value in (one.off, one.ordered))
    return [one_line(one.name, 40), digits(one.predicted_s_per_work), digits(one.measured_s_per_work), str(one.jobs), off, ordered]


def _verdict(one: Scored) -> str:
    if one.difference is None:
        return "too few groups to test"
    words = {"better": "shown to be better", "worse": "shown to be worse", "not shown": "a difference is not shown"}
    return f"{words[one.difference.verdict]} (p {tiny(one.difference.p)})"


def _error(value: float | None, of: CrossValidation) -> str:
    return NO_VALUE if value is None else unsigned(value) if of.log else digits(value, 3)


def _times(value: float, of: CrossValidation) -> str:
    return f"{value:.2f}" if of.log else digits(value, 3)


def _covered(one: Coverage) -> str:
    return f"{100 * one.share:.0f} [{100 * one.low:.0f}, {100 * one.high:.0f}] %"


def _width(one: Coverage | None, of: CrossValidation) -> str:
    return NO_VALUE if one is None else f"a factor of {one.width:.2f}" if of.log else digits(one.width, 3)


def validations_json(table: Table, found: Sequence[CrossValidation], said: Sequence[str]) -> str:
    """Write cross-validations, with what every model said of every row when it was left out."""
    return printable_json(
        {"table": _table_document(table), "method": METHOD, "validations": [_validation_document(one) for one in found], "said": list(said)}
    )


def fitted_json(table: Table, model: str, leans: Sequence[tuple[str, float]], found: CrossValidation) -> str:
    """Write what a model leans on, and how far it may be trusted."""
    return printable_json(
        {"table": _table_document(table), "model": model, "leans_on": dict(leans), "validation": _validation_document(found)}
    )


def predictions_json(table: Table, asked: ModelChoice, found: Sequence[Prediction]) -> str:
    """Write predictions."""
    made = [asdict(one) for one in found]
    return printable_json({"table": _table_document(table), **asdict(asked), "method": METHOD, "predictions": made})


def served_json(model: str, found: Sequence[ClassTime], validation: CrossValidation, notes: Sequence[str]) -> str:
    """Write predicted times by class."""
    made = [asdict(one) for one in found]
    return printable_json({"model": model, "classes": made, "validation": _validation_document(validation), "notes": list(notes)})


def _table_document(table: Table) -> dict[str, object]:
    return {
        "response": table.response,
        "rows": len(table.values),
        "log": table.log,
        "numbers": list(table.points.numbers),
        "names": list(table.points.names),
        "copies": {name: list(others) for name, others in table.copies.items()},
        "notes": list(table.notes),
    }


def _validation_document(one: CrossValidation) -> dict[str, object]:
    held = {model.model: {name: getattr(model, name).tolist() for name in ("predicted", "low", "high")} for model in one.held_out}
    plain = ("response", "by", "rows", "groups", "folds", "log", "extrapolated")
    return {
        **{name: getattr(one, name) for name in plain},
        "models": [asdict(row) for row in one.scored],
        "measured": one.measured.tolist(),
        "units": one.units.tolist(),
        "held_out": held,
    }
