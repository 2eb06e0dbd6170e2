"""Least squares on columns that may depend on each other: coded factors, residual sums of squares, and which columns say something new."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

DEPENDENT = 1e-8  # a column of which less than this part is new adds nothing to those before it


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
    """Fit columns that are independent of each other, the first of them constant, by QR on values with their mean taken off."""
    level = float(values.mean())
    q, r = np.linalg.qr(columns)
    beta = np.linalg.solve(r, q.T @ (values - level))
    rest = values - level - columns @ beta
    beta[0] += level
    root = np.linalg.inv(r)
    return Fit(beta, root @ root.T, float(rest @ rest), len(values) - columns.shape[1])


def rss(columns: Sequence[Floats], values: Floats) -> tuple[float, int]:
    """Residual sum of squares and degrees of freedom of columns that may depend on each other, the first of them constant."""
    basis = Basis(columns)
    df = len(values) - basis.rank
    rest = basis.left(values - values.mean())
    return (float(rest @ rest) if df else 0.0), df


def independent(columns: Sequence[Floats]) -> bool:
    return Basis(columns).rank == sum(len(column.T) for column in columns)


class Basis:
    """Orthonormal columns that grow by what is new in each further one (Gram-Schmidt, twice for rounding)."""

    def __init__(self, columns: Sequence[Floats], most: int | None = None) -> None:
        self._columns = np.zeros((len(columns[0]), len(columns[0]) if most is None else most))
        self.rank = 0
        for column in np.column_stack(columns).T:
            self.grow(column)

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
        basis = self._columns[:, : self.rank]
        for _ in range(2):
            column = column - basis @ (basis.T @ column)
        return column


def coded_levels(labels: Sequence[Hashable], levels: Sequence[Hashable] = ()) -> Floats:
    """Code a factor of L levels as L-1 columns that sum to zero over its levels: the first is -1 in all, each other +1 in its own.

    Shape (rows, L-1). With two levels it is the usual -1, +1; coefficients are deviations from the mean of all levels.
    """
    places = {level: at for at, level in enumerate(levels or dict.fromkeys(labels))}
    rows = np.vstack([-np.ones(len(places) - 1), np.eye(len(places) - 1)])
    return rows[[places[label] for label in labels]]


def base_columns(blocks: Sequence[Hashable]) -> Floats:
    return np.column_stack([np.ones(len(blocks)), coded_levels(blocks)])
