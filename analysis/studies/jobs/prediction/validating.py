"""Cross-validation by groups: every model is asked of groups it never saw, with intervals calibrated on its training groups alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from analysis.terms import Refused
from analysis.wording import unsigned

from . import coding, conformal, folds, models, scoring, white
from .terms import HeldOut, TooFew, Validation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .models import Learner
    from .terms import By, Floats, Scored, Table, Whole

SAME = "same"


def learners(table: Table, by: By) -> dict[str, Learner]:
    """All models that can be asked: the black boxes, the white ones that have their factors here, and by run the mean of the same factors.

    Jobs have sizes of their own: there the last would have nothing to go by.
    """
    again = by == "run" and white.WORK not in table.points.numbers
    return {**models.BLACK, **({SAME: models.same} if again else {}), **white.learners(table)}


def validate(table: Table, by: By, asked: Sequence[str] = (), level: float = conformal.LEVEL) -> Validation:
    """Leave groups out, fold by fold, and score every model, or those asked for, on them.

    Raises: TooFew, with how many groups there are; Refused, for a model that is none.
    """
    units = table.units(by)
    try:
        splits = folds.each(folds.folds(units))
    except TooFew as error:
        raise TooFew(f"{table.response} by {by}: {error}.") from None
    known = learners(table, by)
    for name in asked:
        if name not in known:
            raise Refused(f"{name}: is no model of these rows; there are {', '.join(known)}.")
    scheme = _Scheme(table, by, splits, level)
    with threadpool_limits(1):  # many small fits: threads would cost more than they bring, and sums would come in another order
        mean, _ = scheme.held_out(models.BASELINE, models.mean, sure=False)
        made = [scheme.held_out(name, known[name]) for name in asked or known]
    baseline = replace(scheme.scored(mean, mean, ""), difference=None, why="")
    return Validation(
        response=table.response,
        by=by,
        rows=len(table.values),
        groups=len(np.unique(units)),
        folds=len(splits),
        log=table.log,
        scored=(baseline, *scoring.adjusted([scheme.scored(one, mean, why) for one, why in made])),
        measured=table.values,
        units=units,
        held_out=(mean, *(one for one, _ in made)),
        extrapolated=_extrapolated(table, splits),
    )


@dataclass(frozen=True, slots=True)
class _Scheme:
    """How groups are left out: the same for every model."""

    table: Table
    by: By
    splits: Sequence[tuple[Whole, Whole]]
    level: float

    def held_out(self, name: str, learner: Learner, *, sure: bool = True) -> tuple[HeldOut, str]:
        """What a model says of rows left out, with intervals if it is to be sure; and why it could not, where it could not."""
        table, units = self.table, self.table.units(self.by)
        predicted, low, high = (np.full(len(table.values), np.nan) for _ in range(3))
        why = ""
        for training, test in self.splits:
            known, points = table.take(training), table.points.take(test)
            try:
                predicted[test] = learner(known, units[training])(points)
                if sure and conformal.enough(len(np.unique(units[training])), self.level):
                    low[test], high[test] = conformal.intervals(conformal.calibrated(known, self.by, learner), points, self.level)
            except Refused as error:
                why = str(error)
        return HeldOut(name, in_unit(predicted, table), in_unit(low, table), in_unit(high, table)), why

    def scored(self, one: HeldOut, mean: HeldOut, why: str) -> Scored:
        """Score it; what it could not do is said."""
        table, units = self.table, self.table.units(self.by)
        found = scoring.scored(one, mean.predicted, scoring.Truth(table.values, units, len(self.splits), table.log))
        covered = scoring.coverage(one, table.values, units, self.level, log=table.log)
        reason = why or found.why
        if covered is None and not reason:
            reason = f"too few groups for intervals of {unsigned(self.level)}"
        return replace(found, coverage=covered, why=reason)


def in_unit(seen: Floats, table: Table) -> Floats:
    """Answer values in the response's unit; an end that is infinitely far is none (NaN)."""
    with np.errstate(over="ignore"):
        found = np.exp(seen) if table.log else seen
    return np.where(np.isfinite(seen) & np.isfinite(found), found, np.nan)


def _extrapolated(table: Table, splits: Sequence[tuple[Whole, Whole]]) -> int:
    """How many rows, when they were left out, lay outside what was left."""
    return sum(bool(one) for training, test in splits for one in coding.beyond(table.points.take(training), table.points.take(test)))
