"""The linear model beneath every design: blocks, points, terms, and the error that effects are measured against.

The error is what the same point scatters by from block to block, after each block's own level is taken off (block × point): the
scatter of whole cells run again. Steps inside a cell never enter. It is *pure*: no effect that the terms leave out can inflate it.
Least squares are those of statsmodels, by QR on columns with the mean taken off the response.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from statsmodels.regression.linear_model import OLS

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

# A column of which less than this part is new adds nothing to those before it.
DEPENDENT = 1e-8


@dataclass(frozen=True, slots=True)
class Fit:
    """Least squares: coefficients, (XᵀX)⁻¹, residual sum of squares and its degrees of freedom."""

    beta: Floats
    inverse: Floats
    rss: float
    df: int

    def contrast(self, weights: Floats) -> tuple[float, float]:
        """A weighted sum of coefficients, and its variance in units of the error's."""
        return float(weights @ self.beta), float(weights @ self.inverse @ weights)


def fit(columns: Floats, values: Floats) -> Fit:
    """Fit columns that are independent of each other, the first of them constant; `values` as they were measured."""
    level = float(values.mean())
    done = OLS(values - level, columns).fit(method="qr")
    beta = np.array(done.params, float)
    beta[0] += level
    residual = values - level - columns @ np.asarray(done.params)
    return Fit(beta, np.asarray(done.normalized_cov_params), float(residual @ residual), len(values) - columns.shape[1])


def rss(columns: Floats, values: Floats) -> tuple[float, int]:
    """Residual sum of squares and degrees of freedom of columns that may depend on each other, the first of them constant."""
    basis = Basis(len(columns), columns.shape[1])
    for column in columns.T:
        basis.grow(column)
    df = len(values) - basis.rank
    rest = basis.left(values - values.mean())
    return (float(rest @ rest) if df else 0.0), df


def independent(columns: Floats) -> list[int]:
    """Which columns, from the left, add something to those before them."""
    basis = Basis(len(columns), columns.shape[1])
    return [index for index in range(columns.shape[1]) if basis.grow(columns[:, index])]


class Basis:
    """Orthonormal columns that grow by what is new in each further one (Gram-Schmidt, twice for rounding)."""

    def __init__(self, rows: int, most: int) -> None:
        self._columns = np.zeros((rows, min(rows, most)))
        self.rank = 0

    def grow(self, column: Floats) -> bool:
        """Add a column's new part; False where it has none."""
        size = float(np.linalg.norm(column))
        if size == 0 or self.rank == self._columns.shape[1]:
            return False
        rest = self.left(column.astype(float))
        left = float(np.linalg.norm(rest))
        if left < DEPENDENT * size:
            return False
        self._columns[:, self.rank] = rest / left
        self.rank += 1
        return True

    def left(self, column: Floats) -> Floats:
        """What of a column the basis does not hold."""
        known = self._columns[:, : self.rank]
        for _ in range(2):
            column = column - known @ (known.T @ column)
        return column


def coded_levels(labels: Sequence[Hashable], levels: Sequence[Hashable]) -> Floats:
    """Code a factor of L levels as L-1 columns that sum to zero over its levels: the first is -1 in all, each other +1 in its own.

    Shape (rows, L-1). With two levels it is the usual -1, +1; coefficients are deviations from the mean of all levels.
    """
    made = np.zeros((len(labels), max(0, len(levels) - 1)))
    place = {level: at for at, level in enumerate(levels)}
    for row, label in enumerate(labels):
        at = place[label]
        if at == 0:
            made[row] = -1
        else:
            made[row, at - 1] = 1
    return made


def base_columns(blocks: Sequence[str]) -> Floats:
    """The columns every model begins with: the mean, and the blocks' own levels. Shape (rows, blocks)."""
    return np.column_stack([np.ones(len(blocks)), coded_levels(blocks, list(dict.fromkeys(blocks)))])


def pure_error(base: Floats, points: Sequence[Hashable], values: Floats) -> tuple[float, int]:
    """Sum of squares and degrees of freedom of block × point: with b complete blocks of n points (b-1)(n-1), without blocks n(b-1)."""
    return rss(np.column_stack([base, coded_levels(points, list(dict.fromkeys(points)))]), values)


def total(values: Floats) -> float:
    """Sum of squares about the mean."""
    rest = values - values.mean()
    rest -= rest.mean()
    return float(rest @ rest)
