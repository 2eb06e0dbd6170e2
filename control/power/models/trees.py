"""Gradient-boosted regression trees as plain arrays: read, written and asked without the library that grew them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from control.power.terms import Floats

LEAF = -1  # the child of a leaf
AT_ONCE = 8192  # rows: what goes down a hundred trees together fits into a few MB
DEEPEST = 64
ARRAYS = ("left", "right", "feature", "threshold", "value")


@dataclass(frozen=True, slots=True)
class Ensemble:
    """`start` and, of each tree, `rate` times the value of the leaf a row falls into.

    Trees stand one behind the other; `sizes` counts their nodes. A row goes to node `left` where its `feature` is ≤ `threshold`, else to
    `right`, both counted within the tree; a leaf has −1 there.
    """

    features: int
    start: float
    rate: float
    sizes: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: Floats
    value: Floats

    def __post_init__(self) -> None:
        """Refuse what could not be walked: a child outside its tree, or before its parent. Raises: ValueError."""
        sizes = self.sizes
        lengths = {len(getattr(self, name)) for name in ARRAYS}
        if len(sizes) == 0 or sizes.min() < 1 or lengths != {int(sizes.sum())}:
            raise ValueError("sizes of trees and lengths of arrays do not fit")
        node = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        inner = self.left != LEAF
        for child in (self.left, self.right):
            if (child[inner] <= node[inner]).any() or (child >= np.repeat(sizes, sizes)).any() or (child[~inner] != LEAF).any():
                raise ValueError("a tree has a child outside it")
        if ((self.feature[inner] < 0) | (self.feature[inner] >= self.features)).any():
            raise ValueError(f"a tree asks for a feature beyond the {self.features} there are")
        if not (np.isfinite(self.threshold[inner]).all() and np.isfinite(self.value).all() and np.isfinite([self.start, self.rate]).all()):
            raise ValueError("a threshold or value is no finite number")

    def predict(self, rows: Floats) -> Floats:
        """Answer for each row. `rows` has shape (rows, features); the answer (rows,).

        Features are cut to float32 before they are compared, as they were when the trees were grown. Trees are added one after the other,
        so that a row's answer is the same to the last bit whichever rows are beside it.
        """
        if rows.ndim != 2 or rows.shape[1] != self.features:
            raise ValueError(f"rows of shape {rows.shape} where {self.features} features belong")
        said = np.empty(len(rows))
        for begin in range(0, len(rows), AT_ONCE):
            said[begin : begin + AT_ONCE] = self._predict(rows[begin : begin + AT_ONCE].astype(np.float32))
        return said

    def _predict(self, rows: NDArray[np.float32]) -> Floats:
        first = np.cumsum(self.sizes) - self.sizes
        base = np.repeat(first, self.sizes)
        here = np.arange(len(self.left))
        is_leaf = self.left == LEAF
        # A leaf leads to itself, so that all rows may go down equally far.
        left = np.where(is_leaf, here, self.left + base)
        right = np.where(is_leaf, here, self.right + base)
        feature = np.where(is_leaf, 0, self.feature)
        node = np.broadcast_to(first, (len(rows), len(first)))
        row = np.arange(len(rows))[:, None]
        for _ in range(DEEPEST):
            node = np.where(rows[row, feature[node]] <= self.threshold[node], left[node], right[node])
            if is_leaf[node].all():
                break
        steps = np.empty((len(rows), len(first) + 1))
        steps[:, 0] = self.start
        steps[:, 1:] = self.rate * self.value[node]
        added: Floats = np.cumsum(steps, axis=1)[:, -1]
        return added


def as_json(ensemble: Ensemble) -> dict[str, object]:
    """Write an ensemble as numbers and lists; `from_json` gives the same back, to the last bit."""
    lists = {name: getattr(ensemble, name).tolist() for name in ("sizes", *ARRAYS)}
    return {"features": ensemble.features, "start": ensemble.start, "rate": ensemble.rate, **lists}


def from_json(said: Mapping[str, Any]) -> Ensemble:
    """Read an ensemble. Raises: KeyError, TypeError, ValueError, for what is none."""
    integers: dict[str, Any] = {name: np.array(said[name], dtype=np.int64) for name in ("sizes", "left", "right", "feature")}
    floats: dict[str, Any] = {name: np.array(said[name], dtype=np.float64) for name in ("threshold", "value")}
    return Ensemble(int(said["features"]), float(said["start"]), float(said["rate"]), **integers, **floats)
