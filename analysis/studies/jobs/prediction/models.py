"""Models by name. Each learns from a table and predicts points, as models see values (logarithms, where the table says so).

Black boxes: ridge regression, boosted trees. White boxes: laws with parameters that mean something, fitted to the same rows. Amdahl's takes
`replicas` (and `work`), the law of work takes `work`. Where rows have classes, each class has its own law; a class, or what else a law
needs, that the training rows lack is not predicted (NaN). One needs no model: the mean of the training set, with which everything is
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls
from sklearn import config_context
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from analysis.terms import Refused
from control.scaling import TimedJob, fits, time_s

from . import tables
from .tables import FactorTable, Floats, Texts, TooFew

if TYPE_CHECKING:
    from pandas import DataFrame as Points

    Law = Callable[[Points], Floats]
    Fitted = Callable[[Points], Floats]
    # Fits a table, whose groups must not be split where the model needs to choose something itself.
    # Raises Refused, where the table cannot tell what the model needs.
    Learner = Callable[[FactorTable, Texts], Fitted]

BASELINE = "mean"
ALPHAS = np.logspace(-4, 4, 17)
TREES, RATE, DEPTH, LEAF, SHARE, SEED = 100, 0.1, 3, 2, 0.8, 0


@contextmanager
def many_small_fits() -> Iterator[None]:
    """Run on one thread, where sums keep their order, and spare each tree a check of its options."""
    with threadpool_limits(1), config_context(skip_parameter_validation=True, assume_finite=True):
        yield


def mean(table: FactorTable, groups: Texts) -> Fitted:
    del groups
    level = float(table.seen().mean())
    return lambda points: np.full(len(points), level)


def ridge(table: FactorTable, groups: Texts) -> Fitted:
    code = tables.learn(table.points)
    rows, seen = code.coded(table.points), table.seen()
    try:
        splits = tables.each(tables.folds(groups, tables.INNER))
    except TooFew:
        splits = tables.each(np.arange(len(rows)) % tables.INNER)
    off = np.zeros(len(ALPHAS))
    for training, test in splits:
        off += ((_ridges(rows[training], seen[training], rows[test]) - seen[test, None]) ** 2).sum(axis=0)
    model = Ridge(float(ALPHAS[np.argmin(off)])).fit(rows, seen)
    return lambda points: np.asarray(model.predict(code.coded(points)))


def _ridges(rows: Floats, seen: Floats, points: Floats) -> Floats:
    """What ridge regression with each of the penalties says of points, shape (points, penalties), by one decomposition for all."""
    centre, level = rows.mean(axis=0), seen.mean()
    left, size, right = np.linalg.svd(rows - centre, full_matrices=False)
    shrunk = size[:, None] / (size[:, None] ** 2 + ALPHAS) * (left.T @ (seen - level))[:, None]
    return np.asarray((points - centre) @ right.T @ shrunk + level)


def trees(table: FactorTable, groups: Texts) -> Fitted:
    """Gradient-boosted regression trees (Friedman 2001): 100 of depth 3, each grown on 80 % of the rows."""
    del groups
    code = tables.learn(table.points)
    model = GradientBoostingRegressor(
        n_estimators=TREES, learning_rate=RATE, max_depth=DEPTH, min_samples_leaf=LEAF, subsample=SHARE, random_state=SEED
    )
    model.fit(code.coded(table.points), table.seen())
    return lambda points: np.asarray(model.predict(code.coded(points)))


BLACK: dict[str, Learner] = {"ridge": ridge, "trees": trees}

CLASS, REPLICAS, WORK = "class", "replicas", "work"


def white_boxes(table: FactorTable) -> dict[str, Learner]:
    laws: dict[str, tuple[str, Callable[[FactorTable], Law]]] = {"amdahl": (REPLICAS, amdahl), WORK: (WORK, of_work)}
    known = set(tables.numbers_of(table.points)) if table.log else set()  # these are laws of times
    return {name: partial(_by_class, law=law) for name, (needed, law) in laws.items() if needed in known}


def _by_class(table: FactorTable, groups: Texts, law: Callable[[FactorTable], Law]) -> Fitted:
    del groups
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
    fitted = next((fit for fit in fits(_points(table)) if fit.name == "amdahl"), None)
    if fitted is None:
        raise Refused("too few numbers of replicas for this law.")
    return lambda points: time_s(fitted.law, _column(points, WORK, 1.0), _column(points, REPLICAS, 1.0))


def of_work(table: FactorTable) -> Law:
    work = table.points[WORK].to_numpy()
    known = ~np.isnan(work)
    if len(np.unique(work[known])) < 2:
        raise Refused("all jobs had one size.")
    columns = np.column_stack([np.ones(int(known.sum())), work[known]]) / table.measured[known, None]
    (start, cost), _ = nnls(columns, np.ones(len(columns)))
    return lambda points: np.asarray(start + cost * points[WORK])


def _points(table: FactorTable) -> list[TimedJob]:
    replicas, work = (_column(table.points, name, 1.0).tolist() for name in (REPLICAS, WORK))
    rows = zip(replicas, work, table.measured.tolist(), strict=True)
    return [TimedJob(int(n), size, value) for n, size, value in rows if n >= 1 and n == int(n) and size > 0]


def _column(points: Points, name: str, missing: float) -> Floats:
    known = name in tables.numbers_of(points)
    return points[name].fillna(missing).to_numpy() if known else np.full(len(points), missing)


def _logs(times: Floats) -> Floats:
    """Laws tell times, models are compared where they see logarithms; a time that is not above 0 is no prediction."""
    return np.log(np.where(times > 0, times, np.nan))
