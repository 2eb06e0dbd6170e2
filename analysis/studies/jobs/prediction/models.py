"""Models by name. Each learns from a table and answers what it says of points, as models see values (logarithms, where the table says so).

Black boxes: ridge regression, boosted trees, a Gaussian process. White boxes are in `white`. Two need no model: the mean of the training
set, which everything is held against, and the mean of what was measured under the very same configuration.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Protocol

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.linear_model import Ridge

from . import coding, folds
from .terms import TooFew

if TYPE_CHECKING:
    from collections.abc import Callable

    from .terms import Floats, Points, Table, Texts

    Fitted = Callable[[Points], Floats]

BASELINE = "mean"
ALPHAS = np.logspace(-4, 4, 17)
TREES, RATE, DEPTH, LEAF, SHARE, SEED = 100, 0.1, 3, 2, 0.8, 0
MOST_POINTS = 250  # of a Gaussian process, whose work grows with their cube


class Learner(Protocol):
    """A model: fitted to a table, whose groups must not be split where it needs to choose something itself.

    Raises: Refused, where the table cannot tell what the model needs.
    """

    def __call__(self, table: Table, groups: Texts) -> Fitted:
        """Fit it."""


def mean(table: Table, groups: Texts) -> Fitted:
    """The mean of the training set as models see it: the geometric one, where they see logarithms."""
    del groups
    level = float(table.seen().mean())
    return lambda points: np.full(points.count, level)


def ridge(table: Table, groups: Texts) -> Fitted:
    """Ridge regression on the coded factors; its penalty is chosen by leaving groups out."""
    code = coding.learn(table.points)
    rows, seen = code.coded(table.points), table.seen()
    try:
        splits = folds.each(folds.folds(groups, folds.INNER))
    except TooFew:
        splits = folds.each(np.arange(len(rows)) % folds.INNER)
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


def trees(table: Table, groups: Texts) -> Fitted:
    """Gradient-boosted regression trees (Friedman 2001): 100 of depth 3, each grown on 80 % of the rows."""
    del groups
    code = coding.learn(table.points)
    model = GradientBoostingRegressor(
        n_estimators=TREES, learning_rate=RATE, max_depth=DEPTH, min_samples_leaf=LEAF, subsample=SHARE, random_state=SEED
    )
    model.fit(code.coded(table.points), table.seen())
    return lambda points: np.asarray(model.predict(code.coded(points)))


def gp(table: Table, groups: Texts) -> Fitted:
    """A Gaussian process: a linear trend, a Matérn-5/2 surface over it, and noise; rows of equal factors are one point, their mean.

    Where there are more than 250 points, so many of them are drawn.
    """
    del groups
    code = coding.learn(table.points)
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


def same(table: Table, groups: Texts) -> Fitted:
    """The mean of what was measured under the very same factors; where there is none, it cannot tell (NaN)."""
    del groups
    code = coding.learn(table.points)
    rows, place, count = np.unique(code.coded(table.points), axis=0, return_inverse=True, return_counts=True)
    level = np.bincount(place.ravel(), table.seen()) / count
    known = {row.tobytes(): float(one) for row, one in zip(rows, level, strict=True)}
    return lambda points: np.array([known.get(np.ascontiguousarray(row).tobytes(), np.nan) for row in code.coded(points)])


BLACK: dict[str, Learner] = {"ridge": ridge, "trees": trees, "gp": gp}
