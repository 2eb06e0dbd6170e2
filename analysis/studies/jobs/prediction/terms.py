"""The words of prediction: what was measured under which factors, how well a model tells what it never saw, and what it says of a point."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Texts = NDArray[np.str_]
By = Literal["configuration", "run"]
Verdict = Literal["better", "worse", "not shown"]


class TooFew(Refused):
    """There are too few groups to leave any out; the message says how many, and how many it takes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: of a cell, or of a job. Factors are numbers or names; one that is missing is not there.

    `configuration` names what was asked for, `run` when it was measured: rows that share it share what happened then.
    """

    configuration: str
    run: str
    factors: Mapping[str, float | str]
    value: float


@dataclass(frozen=True, slots=True)
class Points:
    """Rows as columns. `numbers` have NaN, `names` an empty text where a factor is missing; each of shape (rows,)."""

    count: int
    numbers: Mapping[str, Floats]
    names: Mapping[str, Texts]

    def take(self, at: Whole) -> Points:
        """Answer some of the rows, by their places."""
        return Points(len(at), {name: one[at] for name, one in self.numbers.items()}, {name: one[at] for name, one in self.names.items()})


@dataclass(frozen=True, slots=True)
class Table:
    """What models learn from. `log`: all values are above 0, and errors are by a factor; models then see logarithms.

    `copies`: factor → those that say the same in every row and were left away.
    """

    response: str
    points: Points
    values: Floats
    configurations: Texts
    runs: Texts
    log: bool
    notes: tuple[str, ...] = ()
    copies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def seen(self) -> Floats:
        """The values as models see them."""
        return np.log(self.values) if self.log else self.values

    def units(self, by: By) -> Texts:
        """The group of each row."""
        return self.configurations if by == "configuration" else self.runs

    def take(self, at: Whole) -> Table:
        """Answer some of the rows, by their places."""
        return Table(
            self.response, self.points.take(at), self.values[at], self.configurations[at], self.runs[at], self.log, self.notes, self.copies
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """How much smaller a model's error is than the mean's, of the groups both predicted, paired, with its 95 % interval.

    Where models see logarithms `value` is how many times smaller (errors are factors, the difference is one of logarithms); else it is the
    mean's absolute error less the model's, in the response's unit. `p` is adjusted for the number of models (Holm).
    """

    value: float
    low: float
    high: float
    p: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Coverage:
    """What share of held-out values lay within intervals of level `nominal`, with its 95 % interval, and how wide they were.

    `width` is the median of high over low, as a factor, where models see logarithms; else of high minus low, in the response's unit.
    """

    nominal: float
    share: float
    low: float
    high: float
    width: float


@dataclass(frozen=True, slots=True)
class Scored:
    """One model by its held-out errors, each group counted once. `mape` is a fraction, None where something measured 0.

    `typical` is exp(mean |log(predicted/measured)|) - 1 where models see logarithms, else the mean absolute error, in the response's unit.
    What begins with `baseline_` is of the mean of the training set, of the same groups: a white box may be unable to predict some. `why`
    says why there are no intervals, or no errors at all.
    """

    model: str
    groups: int
    rows: int
    mape: float | None = None
    rmse: float | None = None
    typical: float | None = None
    baseline_mape: float | None = None
    baseline_rmse: float | None = None
    baseline_typical: float | None = None
    difference: Difference | None = None
    coverage: Coverage | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What a model said of rows it never saw, NaN where it could not; all of shape (rows,), in the response's unit."""

    model: str
    predicted: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class Validation:
    """A cross-validation: `groups` were dealt into `folds`, never a row of a group on both sides."""

    response: str
    by: By
    rows: int
    groups: int
    folds: int
    log: bool
    scored: tuple[Scored, ...]
    measured: Floats
    units: Texts
    held_out: tuple[HeldOut, ...]
    extrapolated: int


@dataclass(frozen=True, slots=True)
class Asked:
    """Which model, for a new what, and what its intervals promise to cover."""

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
