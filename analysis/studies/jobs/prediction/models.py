"""Measurements as a table, and models that learn from it, by their logarithms where positive.

Black boxes: ridge regression, boosted trees, on coded factors: numbers standardised, a column per
name. White boxes: laws of `replicas` and `work`, one per class; a class that the training rows lack
is not predicted (NaN). Rows that belong together are never on both sides of a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn import config_context
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from analysis.plain import one_line
from analysis.terms import Refused
from control.names import first_few
from control.scaling import TimedJob, fits, time_s

if TYPE_CHECKING:
    import pandas as pd
    from pandas import DataFrame as Points

    Law = Callable[[Points], "Floats"]
    Fitted = Callable[[Points], "Floats"]
    # Raises Refused, if the table lacks what it needs.
    Learner = Callable[["FactorTable"], Fitted]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Texts = NDArray[np.str_]
By = Literal["configuration", "run"]
GROUPS: tuple[By, ...] = ("configuration", "run")

MOST_ROWS = 2000
MOST_LEVELS = 64  # a name with more is a label of rows rather than a factor
FOLDS, INNER = 10, 5
LEAST = 5  # groups: with fewer, a held-out error is an anecdote
SEED = 1
WIDE = 4.0  # largest over smallest from which positive numbers enter by their logarithm
ROUNDING = 1e-9
BASELINE = "mean"
ALPHAS = np.logspace(-4, 4, 17)
TREES_SEED = 0


class TooFew(Refused):
    """There are too few groups to hold any out; the message has their number and the minimum."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement of a cell or job. Factors are numbers or names; missing ones are absent.

    `configuration` names the request, `run` the time: rows that share it share what happened then.
    """

    configuration: str
    run: str
    factors: Mapping[str, float | str]
    value: float


@dataclass(frozen=True, slots=True)
class FactorTable:
    """The data for models. `log`: all values are above 0, and errors are factors on logarithms.

    `points` has a column per factor: numbers first, NaN if missing, then names, "" if missing.
    `copies`: factor → dropped duplicates of it.
    """

    response: str
    points: pd.DataFrame
    measured: Floats
    configurations: Texts
    runs: Texts
    log: bool
    notes: tuple[str, ...] = ()
    copies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def seen(self) -> Floats:
        return np.log(self.measured) if self.log else self.measured

    def units(self, by: By) -> Texts:
        return self.configurations if by == "configuration" else self.runs

    def take(self, at: Whole) -> FactorTable:
        parts = {name: getattr(self, name)[at] for name in ("measured", "configurations", "runs")}
        return replace(self, points=self.points.iloc[at], **parts)


def table(rows: Sequence[Measurement], response: str, notes: Sequence[str] = ()) -> FactorTable:
    """Make the table for models.

    More than 2,000 rows are thinned, evenly by configuration and run. Raises: Refused, if nothing
    varies.
    """
    import pandas as pd

    kept = thinned(rows)
    remarks = list(notes)
    if len(kept) < len(rows):
        remarks.append(
            f"{len(kept)} of {len(rows)} rows are used, drawn evenly by configuration and run "
            f"(seed {SEED})."
        )
    factors = pd.DataFrame([dict(row.factors) for row in kept], dtype=object)
    numbers: dict[str, pd.Series] = {}
    names: dict[str, pd.Series] = {}
    copies: dict[str, list[str]] = {}
    parted: dict[tuple[int, ...], str] = {}  # factors that split the rows alike are confounded
    for name in map(str, factors):
        column = factors[name]
        codes, levels = pd.factorize(column, use_na_sentinel=False)
        is_name = any(isinstance(value, str) for value in column)
        if len(levels) < 2:
            continue
        if is_name and len(levels) > MOST_LEVELS:
            remarks.append(
                f"{name} has {len(levels)} names, so it is not a factor; the maximum is "
                f"{MOST_LEVELS}."
            )
        elif (first := parted.setdefault(tuple(codes), name)) != name:
            copies.setdefault(first, []).append(name)
        else:
            (names if is_name else numbers)[name] = (
                column.map(_text) if is_name else column.astype(float)
            )
    if not numbers and not names:
        raise Refused(
            f"{response}: all {len(rows)} rows have the same factors; vary what a model is to "
            "learn."
        )
    values, configurations, runs = (
        np.array([getattr(row, name) for row in kept]) for name in ("value", "configuration", "run")
    )
    return FactorTable(
        response,
        pd.DataFrame({**numbers, **names}),
        values,
        configurations,
        runs,
        log=bool((values > 0).all()),
        notes=tuple(remarks),
        copies={name: tuple(others) for name, others in copies.items()},
    )


def thinned(rows: Sequence[Measurement], most: int = MOST_ROWS) -> list[Measurement]:
    import pandas as pd

    if len(rows) <= most:
        return list(rows)
    order = np.random.default_rng(SEED).permutation(len(rows))
    groups = pd.DataFrame([(rows[at].configuration, rows[at].run) for at in order])
    turns = groups.groupby([0, 1], sort=False).cumcount().to_numpy()
    kept = order[np.argsort(turns, kind="stable")[:most]]
    return [rows[at] for at in sorted(kept.tolist())]


def numbers_of(points: pd.DataFrame) -> list[str]:
    import pandas as pd

    return [str(name) for name, kind in points.dtypes.items() if pd.api.types.is_float_dtype(kind)]


def names_of(points: pd.DataFrame) -> list[str]:
    numbers = numbers_of(points)
    return [name for name in map(str, points) if name not in numbers]


def points(factors: Sequence[Mapping[str, float | str]], like: FactorTable) -> pd.DataFrame:
    """Return points in the table's form. Raises: Refused, for a text in place of a number."""
    import pandas as pd

    columns: dict[str, Sequence[object]] = {}
    for name in numbers_of(like.points):
        texts = [value for point in factors if isinstance(value := point.get(name, 0.0), str)]
        if texts:
            raise Refused(
                f"{name}: {one_line(texts[0], 60)!r} is not a number; all measured values are."
            )
        columns[name] = [float(point.get(name, np.nan)) for point in factors]
    columns |= {
        name: [_text(point.get(name)) for point in factors] for name in names_of(like.points)
    }
    return pd.DataFrame(columns)


def _text(value: object) -> str:
    if value is None or value != value:  # noqa: PLR0124  # NaN: pandas, for a missing factor
        return ""
    return value if isinstance(value, str) else f"{value:g}"


def folds(groups: Texts, most: int = FOLDS, seed: int = SEED) -> Whole:
    """Deal groups into folds at random; return each row's fold, shape (rows,). Raises: TooFew."""
    names, group = np.unique(groups, return_inverse=True)
    if len(names) < LEAST:
        raise TooFew(
            f"{len(names)} group{'s' if len(names) != 1 else ''}; holding groups out needs at "
            f"least {LEAST}"
        )
    dealt = np.empty(len(names), dtype=np.int64)
    dealt[np.random.default_rng(seed).permutation(len(names))] = np.arange(len(names)) % min(
        most, len(names)
    )
    return np.asarray(dealt[group])


def weights(groups: Texts) -> np.ndarray:
    """Return weights that count each group once: 1/rows of its group, shape (rows,)."""
    _, group, count = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / count[group])


class Coding:
    """Standardised numbers, logs for wide ranges, and a column per level, from training points.

    A missing number is at the centre, with an indicator column. A level that was never seen has 0
    in every column of its factor.
    """

    def __init__(self, points: pd.DataFrame) -> None:
        self.numbers = numbers_of(points)
        self.levels = {name: sorted(points[name].unique()) for name in names_of(points)}
        values = self._values(points)
        self.missing = np.asarray(np.isnan(values).any(axis=0))
        self.low: Floats = np.fmin.reduce(values)
        self.high: Floats = np.fmax.reduce(values)
        self.log = (self.low > 0) & (self.high >= WIDE * self.low)
        known = [column[~np.isnan(column)] for column in self._seen(values).T]
        self.centre = np.array([column.mean() if len(column) else 0.0 for column in known])
        spread = np.array([column.std() if len(column) else 0.0 for column in known])
        self.scale = np.where(spread > ROUNDING * abs(self.centre), spread, 1.0)

    def _values(self, points: pd.DataFrame) -> Floats:
        return np.reshape(
            [points[name].to_numpy(float) for name in self.numbers],
            (len(self.numbers), len(points)),
        ).T

    def _seen(self, values: Floats) -> Floats:
        # Values ≤ 0 have no logarithm: they become the smallest seen, and `beyond` reports it.
        positive = np.where(values <= 0, self.low, values)
        return np.where(self.log, np.log(np.where(self.log, positive, 1.0)), values)

    def coded(self, points: pd.DataFrame) -> Floats:
        """Code points, shape (points, columns), with indicators for missing numbers."""
        values = self._values(points)
        standard = np.nan_to_num((self._seen(values) - self.centre) / self.scale)
        both = np.stack([standard, np.isnan(values)], axis=2).reshape(len(points), -1)
        known = both[:, np.column_stack([np.ones_like(self.missing), self.missing]).ravel()]
        columns = ((points[name].to_numpy(object), levels) for name, levels in self.levels.items())
        names = [column == level for column, levels in columns for level in levels]
        return np.column_stack([known, *names])


def beyond(training: pd.DataFrame, points: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return how each point is an extrapolation; nothing if it is interpolated.

    That is: outside a number's range, an unseen name, or a missing factor that never was.
    """
    coding = Coding(training)
    rows = points.to_dict("records")
    return [tuple(_outside(coding, {str(name): row[name] for name in row})) for row in rows]


def _outside(coding: Coding, point: Mapping[str, float | str]) -> Iterable[str]:
    bounds = zip(
        coding.numbers,
        coding.low.tolist(),
        coding.high.tolist(),
        coding.missing.tolist(),
        strict=True,
    )
    for name, low, high, missing in bounds:
        value = float(point[name])
        if np.isnan(value) and not missing:
            yield f"{name} is not given"
        elif not np.isnan(value) and not low * (1 - ROUNDING) <= value <= high * (1 + ROUNDING):
            seen = "never given" if np.isnan(low) else f"measured from {low:g} to {high:g}"
            yield f"{name}={value:g} was {seen}"
    for name, levels in coding.levels.items():
        if point[name] not in levels:
            met = first_few([one_line(level or "none", 30) for level in levels], 8)
            level = one_line(point[name], 40)
            yield (
                f"{name}={level} was never measured ({met} were)"
                if level
                else f"{name} is not given"
            )


@contextmanager
def many_small_fits() -> Iterator[None]:
    """Run on one thread, for a fixed order of sums, and skip each tree's check of options."""
    with threadpool_limits(1), config_context(skip_parameter_validation=True, assume_finite=True):
        yield


def mean(table: FactorTable) -> Fitted:
    level = float(table.seen().mean())
    return lambda points: np.full(len(points), level)


def ridge(table: FactorTable) -> Fitted:
    code = Coding(table.points)
    model = RidgeCV(ALPHAS).fit(code.coded(table.points), table.seen())
    return lambda points: np.asarray(model.predict(code.coded(points)))


def trees(table: FactorTable) -> Fitted:
    """Fit gradient-boosted trees (Friedman 2001): 100 of depth 3, each on 80 % of the rows."""
    code = Coding(table.points)
    model = GradientBoostingRegressor(
        n_estimators=100,
        learning_rate=0.1,
        max_depth=3,
        min_samples_leaf=2,
        subsample=0.8,
        random_state=TREES_SEED,
    )
    model.fit(code.coded(table.points), table.seen())
    return lambda points: np.asarray(model.predict(code.coded(points)))


CLASS, REPLICAS, WORK = "class", "replicas", "work"


def learners(table: FactorTable, names: Sequence[str] = ()) -> dict[str, Learner]:
    """Return the named models, or all that the table's factors support. Raises: Refused."""
    known: dict[str, Learner] = {"ridge": ridge, "trees": trees}
    if table.log:  # these are laws of times
        laws = {"amdahl": (REPLICAS, amdahl), WORK: (WORK, of_work)}
        there = numbers_of(table.points)
        known |= {
            name: partial(_by_class, law=law)
            for name, (factor, law) in laws.items()
            if factor in there
        }
    for name in names:
        if name not in known:
            raise Refused(
                f"{one_line(name)}: not a model for these rows; available: {', '.join(known)}."
            )
    return {name: known[name] for name in names or known}


def _by_class(table: FactorTable, law: Callable[[FactorTable], Law]) -> Fitted:
    if CLASS not in names_of(table.points):
        whole = law(table)
        return lambda points: _logs(whole(points))
    laws: dict[str, Law] = {}
    reason = ""
    for class_, rows in table.points.reset_index(drop=True).groupby(CLASS):
        try:
            laws[str(class_)] = law(table.take(rows.index.to_numpy()))
        except Refused as error:
            reason = str(error)
    if not laws:
        raise Refused(reason)

    def predict(points: Points) -> Floats:
        times = np.full(len(points), np.nan)
        for class_, class_law in laws.items():
            own = (points[CLASS] == class_).to_numpy()
            times[own] = class_law(points[own])
        return _logs(times)

    return predict


def amdahl(table: FactorTable) -> Law:
    rows = zip(
        *(_column(table.points, name) for name in (REPLICAS, WORK)), table.measured, strict=True
    )
    jobs = [
        TimedJob(int(n), float(work), float(took_s))
        for n, work, took_s in rows
        if n >= 1 and n == int(n) and work > 0
    ]
    fitted = next((fit for fit in fits(jobs) if fit.name == "amdahl"), None)
    if fitted is None:
        raise Refused("too few numbers of replicas for this law.")
    return lambda points: time_s(fitted.law, _column(points, WORK), _column(points, REPLICAS))


def of_work(table: FactorTable) -> Law:
    work = table.points[WORK].to_numpy()
    known = ~np.isnan(work)
    if len(np.unique(work[known])) < 2:
        raise Refused("all jobs had the same size.")
    columns = (
        np.column_stack([np.ones(int(known.sum())), work[known]]) / table.measured[known, None]
    )
    (start, cost), _ = nnls(columns, np.ones(len(columns)))
    return lambda points: np.asarray(start + cost * points[WORK])


def _column(points: Points, name: str) -> Floats:
    known = name in numbers_of(points)
    return points[name].fillna(1.0).to_numpy() if known else np.ones(len(points))


def _logs(times: Floats) -> Floats:
    return np.log(np.where(times > 0, times, np.nan))
