"""The reference model: formulas as features of four regressors (trees as plain arrays)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from control.power.terms import Anchor

from . import INTEGERS, NUMBERS, laws  # whoever reads a file asks what the fields are
from .laws import (
    MemSingle,
    MemSystem,
    Padded,
    SmSingle,
    SmSystem,
    mean,
    mem_prior_percent,
    mem_util_percent,
    padded,
    sm_util_percent,
    total,
    variance,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from control.power.terms import Floats, Partition


LEAF = -1  # the child of a leaf
NO_FEATURES = 0  # of trees that are still to be grown
AT_ONCE = 8192  # rows: what goes down a hundred trees together fits into a few MB
DEEPEST = 64
ARRAYS = ("left", "right", "feature", "threshold", "value")


@dataclass(frozen=True, slots=True)
class Ensemble:
    """A sum of trees: `start` plus, per tree, `rate` times the value of a row's leaf.

    Trees stand one behind the other; `sizes` counts their nodes. A row goes to node `left` where
    its `feature` is ≤ `threshold`, else to `right`, both counted within the tree; a leaf has −1
    there.
    """

    features: int
    start: float
    rate: float
    sizes: INTEGERS
    left: INTEGERS
    right: INTEGERS
    feature: INTEGERS
    threshold: NUMBERS
    value: NUMBERS

    def __post_init__(self) -> None:
        """Check that trees can be walked: each child must be in its tree and after its parent.

        Raises: ValueError.
        """
        sizes = self.sizes
        lengths = {len(getattr(self, name)) for name in ARRAYS}
        if len(sizes) == 0 or sizes.min() < 1 or lengths != {int(sizes.sum())}:
            raise ValueError("sizes of trees and lengths of arrays do not fit")
        node = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        inner = self.left != LEAF
        for child in (self.left, self.right):
            if (
                (child[inner] <= node[inner]).any()
                or (child >= np.repeat(sizes, sizes)).any()
                or (child[~inner] != LEAF).any()
            ):
                raise ValueError("a tree has a child outside it")
        if ((self.feature[inner] < 0) | (self.feature[inner] >= self.features)).any():
            raise ValueError(f"a tree uses a feature beyond the {self.features} available")
        if not (
            np.isfinite(self.threshold[inner]).all()
            and np.isfinite(self.value).all()
            and np.isfinite([self.start, self.rate]).all()
        ):
            raise ValueError("a threshold or value is not finite")

    def predict(self, rows: Floats) -> Floats:
        """Predict rows of shape (rows, features). Returns: shape (rows,).

        Features are cut to float32 before they are compared, as they were when the trees were
        grown. Trees are added one after the other, so that a row's answer is the same to the last
        bit whichever rows are beside it.
        """
        said = np.empty(len(rows))
        for begin in range(0, len(rows), AT_ONCE):
            said[begin : begin + AT_ONCE] = self._predict(
                rows[begin : begin + AT_ONCE].astype(np.float32)
            )
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
            node = np.where(
                rows[row, feature[node]] <= self.threshold[node], left[node], right[node]
            )
            if is_leaf[node].all():
                break
        steps = np.empty((len(rows), len(first) + 1))
        steps[:, 0] = self.start
        steps[:, 1:] = self.rate * self.value[node]
        added: Floats = np.cumsum(steps, axis=1)[:, -1]
        return added


def ensemble_of(
    features: int, start: float, rate: float, sizes: Any, branches: Sequence[Any], value: Any
) -> Ensemble:
    """Return trees from scikit-learn's arrays: left, right, feature, threshold of all nodes."""
    left, right, feature, threshold = branches
    left = np.asarray(left, dtype=np.int64)
    return Ensemble(
        features=features,
        start=start,
        rate=rate,
        sizes=np.asarray(sizes, dtype=np.int64),
        left=left,
        right=np.asarray(right, dtype=np.int64),
        feature=np.where(left < 0, 0, feature).astype(np.int64),
        threshold=np.where(left < 0, 0.0, threshold).astype(np.float64),
        value=np.asarray(value, dtype=np.float64),
    )


FEATURES = {"sm": 13, "mem": 11, "throughput": 14, "power": 8}


@dataclass(frozen=True, slots=True)
class Reference:
    """A network on a GPU at one memory clock, as fitted by the original's procedure.

    It is a `terms.Model`.

    `gflops` and `million_parameters` describe the network to the regressors; the original lost its
    table of them and says the same of all.
    """

    network: str
    gpu: str
    mem_mhz: float
    sm_single: SmSingle
    sm_system: SmSystem
    mem_single: MemSingle
    mem_system: MemSystem
    throughput: laws.ThroughputCurve
    power: laws.PowerCurve
    sm_trees: Ensemble
    mem_trees: Ensemble
    throughput_trees: Ensemble
    power_trees: Ensemble
    gflops: float = 1000.0
    million_parameters: float = 25.0

    def __post_init__(self) -> None:
        """Check the numbers of features of the trees. Raises: ValueError."""
        for name, width in FEATURES.items():
            features = getattr(self, f"{name}_trees").features
            if features not in {width, NO_FEATURES}:
                raise ValueError(f"the trees of {name} have {features} features instead of {width}")

    @property
    def sm_range_mhz(self) -> tuple[float, float]:
        return self.power.low_mhz, self.power.high_mhz

    def anchor(self, partitions: Sequence[Partition]) -> Anchor:
        """Return each partition's figures at the anchor clock, shape (partitions,)."""
        if not partitions:
            return Anchor(*(np.empty(0) for _ in range(4)))
        among = padded(partitions)
        alone = total(sm_util_percent(self.sm_single, among.shares, among.batches), among)
        sm = self.sm_trees.predict(self.sm_features(among, alone))
        mem = self.mem_trees.predict(self.mem_features(among))
        throughput = self.throughput_trees.predict(self.throughput_features(among, mem))
        power = self.power_trees.predict(self.power_features(among, sm, mem))
        return Anchor(sm, mem, throughput, power)

    def throughput_images_per_s(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """Return all processes' throughput. Shape: anchor's fields broadcast with `sm_mhz`."""
        return laws.throughput_images_per_s(self.throughput, anchor.throughput_images_per_s, sm_mhz)

    def power_w(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """Return the board's largest reading. Shape: anchor's fields broadcast with `sm_mhz`."""
        return laws.power_w(self.power, anchor.dynamic_power_w, sm_mhz)

    def sm_features(self, among: Padded, prior: Floats) -> Floats:
        """Return the features for SM utilisation, shape (partitions, 13).

        `prior`: the formulas' when growing trees, the sum of all alone else.
        """
        alone = total(sm_util_percent(self.sm_single, among.shares, among.batches), among)
        shares = [mean(among.shares, among), total(among.shares, among)]
        return _columns(prior, alone, *self._mixture(among), *shares, *self._network())

    def mem_features(self, among: Padded) -> Floats:
        """Return the features for memory utilisation, shape (partitions, 11)."""
        prior = mem_prior_percent(self.mem_single, self.mem_system, among)
        alone = total(mem_util_percent(self.mem_single, among.shares, among.batches), among)
        return _columns(prior, alone, *self._mixture(among), *self._network())

    def throughput_features(self, among: Padded, mem: Floats) -> Floats:
        """Return the features for images/s at the reference clock, shape (partitions, 14)."""
        batch, share = mean(among.batches, among), mean(among.shares, among)
        kinetic = laws.kappa(self.throughput, batch) * mem
        batches = [among.batches[:, 0], total(among.batches, among), batch]
        shares = [
            among.shares[:, 0],
            total(among.shares, among),
            share,
            variance(among.shares, among),
        ]
        return _columns(kinetic, mem, among.processes, *self._network(), *batches, *shares)

    def power_features(self, among: Padded, sm: Floats, mem: Floats) -> Floats:
        """Return the features for dynamic power at the reference clock, shape (partitions, 8)."""
        count = among.processes
        share, spread = mean(among.shares, among), variance(among.shares, among)
        return _columns(
            sm,
            mem,
            count,
            count * self.million_parameters,
            share,
            spread,
            mean(among.batches, among),
            self.mem_mhz / 10_000,
        )

    def _mixture(self, among: Padded) -> list[Floats]:
        sizes = [mean(among.batches, among), total(among.batches, among)]
        return [
            among.processes,
            variance(among.shares, among),
            variance(among.batches, among),
            *sizes,
        ]

    def _network(self) -> list[float]:
        size = self.million_parameters
        return [self.mem_mhz / 10_000, self.gflops / 1000, size / 100, self.gflops / (size + 1)]


def _columns(*columns: Floats | float) -> Floats:
    return np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.float64)
