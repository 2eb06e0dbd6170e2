"""Models by name. Each learns from a table and predicts points, as models see values (logarithms, where the table says so).

Black boxes: ridge regression, boosted trees, a Gaussian process. White boxes: laws with parameters that mean something, fitted to the same
rows. Amdahl's and Gunther's take `replicas` (and `work`), the law of work takes `work`, the roofline takes `flop` and `bytes`. Where rows
have classes, each class has its own law; a class, or what else a law needs, that the training rows lack is not predicted (NaN). Two need no
model: the mean of the training set, with which everything is compared, and the mean of what was measured under the very same factors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.optimize import nnls
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.linear_model import Ridge

from analysis.terms import Refused
from control.scaling import TimedJob, fits, time_s

from . import tables
from .tables import FactorTable, Floats, Texts, TooFew

if TYPE_CHECKING:
    from pandas import DataFrame as Points

    Law = Callable[[Points], Floats]
    Fitted = Callable[[Points], Floats]

BASELINE = "mean"
ALPHAS = np.logspace(-4, 4, 17)
TREES, RATE, DEPTH, LEAF, SHARE, SEED = 100, 0.1, 3, 2, 0.8, 0
MOST_POINTS = 250  # of a Gaussian process, whose work grows with their cube


class Learner(Protocol):
    """A model: fitted to a table, whose groups must not be split where it needs to choose something itself.

    Raises: Refused, where the table cannot tell what the model needs.
    """

    def __call__(self, table: FactorTable, groups: Texts) -> Fitted:
        """Fit it."""


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


def gp(table: FactorTable, groups: Texts) -> Fitted:
    """A Gaussian process: a linear trend, a Matérn-5/2 surface over it, and noise; rows of equal factors are one point, their mean.

    Where there are more than 250 points, so many of them are drawn.
    """
    del groups
    code = tables.learn(table.points)
    rows, place, count = np.unique(code.coded(table.points), axis=0, return_inverse=True, return_counts=True)
    seen = np.bincount(place.ravel(), table.seen()) / count
    if len(rows) > MOST_POINTS:
        drawn = np.sort(np.random.default_rng(SEED).permutation(len(rows))[:MOST_POINTS])
        rows, seen = rows[drawn], seen[drawn]
    level, spread = float(seen.mean()), float(seen.std()) or 1.0
    kernel = ConstantKernel(0.5, (1e-4, 1e4)) * DotProduct(1.0, (1e-3, 1e3))
    kernel += ConstantKernel(0.5, (1e-4, 1e4)) * Matern(1.0, (5e-2, 1e2), nu=2.5)
    kernel += WhiteKernel(0.1, (1e-6, 1e1))
    model = GaussianProcessRegressor(kernel, alpha=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a hyper-parameter on its bound is an answer: no noise, or no surface
        model.fit(rows, (seen - level) / spread)
    return lambda points: np.asarray(level + spread * model.predict(code.coded(points)))


def same(table: FactorTable, groups: Texts) -> Fitted:
    """The mean of what was measured under the very same factors; NaN where there is none."""
    del groups
    factors = list(table.points)
    means = table.points.assign(**{MEAN: table.seen()}).groupby(factors, dropna=False, as_index=False).mean()
    return lambda points: points.merge(means, how="left", on=factors)[MEAN].to_numpy()


BLACK: dict[str, Learner] = {"ridge": ridge, "trees": trees, "gp": gp}

MEAN = "the mean of the same factors"
CLASS, REPLICAS, WORK, FLOP, BYTES = "class", "replicas", "work", "flop", "bytes"


def white_boxes(table: FactorTable) -> dict[str, Learner]:
    laws: dict[str, tuple[set[str], Callable[[FactorTable], Law]]] = {
        "amdahl": ({REPLICAS}, partial(scaling, name="amdahl")),
        "usl": ({REPLICAS}, partial(scaling, name="usl")),
        WORK: ({WORK}, of_work),
        "roofline": ({FLOP, BYTES}, roofline),
    }
    known = set(tables.numbers_of(table.points)) if table.log else set()  # these are laws of times
    return {name: partial(_by_class, law=law) for name, (needed, law) in laws.items() if needed <= known}


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


def scaling(table: FactorTable, name: str) -> Law:
    fitted = next((fit for fit in fits(_points(table)) if fit.name == name), None)
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


def roofline(table: FactorTable) -> Law:
    """Fit time = max(flop / peak, bytes / bandwidth) on logarithms (Williams, Waterman and Patterson 2009). Raises: Refused.

    In order of their flop a byte, rows up to some place are bound by bandwidth and the others by the peak; every place is tried.
    """
    flop, bytes_ = (table.points[name].to_numpy() for name in (FLOP, BYTES))
    known = (flop > 0) & (bytes_ > 0)
    if known.sum() < 3:
        raise Refused(f"{int(known.sum())} rows with flop and bytes above 0; a roofline takes 3.")
    log_flop, log_bytes, seen = np.log(flop[known]), np.log(bytes_[known]), np.log(table.measured[known])
    order = np.argsort(log_flop - log_bytes, kind="stable")
    log_flop, log_bytes, seen = log_flop[order], log_bytes[order], seen[order]
    best = (np.inf, 0.0, 0.0)
    for place in range(len(seen) + 1):
        bandwidth = np.mean((log_bytes - seen)[:place]) if place else np.inf
        peak = np.mean((log_flop - seen)[place:]) if place < len(seen) else np.inf
        off = float(((np.maximum(log_flop - peak, log_bytes - bandwidth) - seen) ** 2).sum())
        best = min(best, (off, float(peak), float(bandwidth)))
    _, peak, bandwidth = best
    return lambda points: np.maximum(points[FLOP] / np.exp(peak), points[BYTES] / np.exp(bandwidth)).to_numpy()


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
