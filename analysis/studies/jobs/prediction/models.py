"""Models by name. Each learns from a table and predicts points, on the models' scale (or logs)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls
from sklearn import config_context
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from analysis.plain import one_line
from analysis.terms import Refused
from control.scaling import TimedJob, fits, time_s

from . import tables

if TYPE_CHECKING:
    from pandas import DataFrame as Points

    from .tables import FactorTable, Floats

    Law = Callable[[Points], Floats]
    Fitted = Callable[[Points], Floats]
    Learner = Callable[[FactorTable], Fitted]  # raises Refused, if the table lacks what it needs

BASELINE = "mean"
ALPHAS = np.logspace(-4, 4, 17)
SEED = 0


@contextmanager
def many_small_fits() -> Iterator[None]:
    """Run on one thread, for a fixed order of sums, and skip each tree's check of options."""
    with threadpool_limits(1), config_context(skip_parameter_validation=True, assume_finite=True):
        yield


def mean(table: FactorTable) -> Fitted:
    level = float(table.seen().mean())
    return lambda points: np.full(len(points), level)


def ridge(table: FactorTable) -> Fitted:
    code = tables.Coding(table.points)
    model = RidgeCV(ALPHAS).fit(code.coded(table.points), table.seen())
    return lambda points: np.asarray(model.predict(code.coded(points)))


def trees(table: FactorTable) -> Fitted:
    """Fit gradient-boosted trees (Friedman 2001): 100 of depth 3, each on 80 % of the rows."""
    code = tables.Coding(table.points)
    model = GradientBoostingRegressor(
        n_estimators=100,
        learning_rate=0.1,
        max_depth=3,
        min_samples_leaf=2,
        subsample=0.8,
        random_state=SEED,
    )
    model.fit(code.coded(table.points), table.seen())
    return lambda points: np.asarray(model.predict(code.coded(points)))


CLASS, REPLICAS, WORK = "class", "replicas", "work"


def learners(table: FactorTable, names: Sequence[str] = ()) -> dict[str, Learner]:
    """Return the named models, or all that the table's factors support. Raises: Refused."""
    known: dict[str, Learner] = {"ridge": ridge, "trees": trees}
    if table.log:  # these are laws of times
        laws = {"amdahl": (REPLICAS, amdahl), WORK: (WORK, of_work)}
        there = tables.numbers_of(table.points)
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
    if CLASS not in tables.names_of(table.points):
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
    known = name in tables.numbers_of(points)
    return points[name].fillna(1.0).to_numpy() if known else np.ones(len(points))


def _logs(times: Floats) -> Floats:
    return np.log(np.where(times > 0, times, np.nan))
