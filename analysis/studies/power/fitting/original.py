"""The original's procedure: its formulas, its curves, and four boosted regressors with the formulas among their features.

What is mended: failed rows are not data (they were zeros), the seed is fixed, and the regressor of SM utilisation is grown on the sum over
processes, which stands in the prior's place when it is asked. It is fitted to all rows, so that its scores say nothing of other rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

from analysis.terms import Refused
from control.power.models.curves import static_w
from control.power.models.priors import padded, sm_util_percent, total
from control.power.models.reference import Reference
from control.power.models.trees import LEAF, Ensemble

from .original_rates import kappa_line, power_curve, slopes_by_batch, throughput_curve
from .original_utilisation import mem_single, mem_system, sm_single, sm_system

if TYPE_CHECKING:
    from control.power.terms import Floats, Partition

    from .material import Material, Point

TREES, DEPTH, RATE, SEED = 100, 5, 0.1, 0
NEEDED = ("power", "sm_util_percent", "mem_util_percent")
FEWEST_ALONE = 6
FEWEST_STATIC = 4


def fit(material: Material) -> Reference:
    """Fit to one network at one memory clock. Raises: Refused, with what the traces lack."""
    points = [point for point in material.anchors if all(getattr(point, name) is not None for name in NEEDED)]
    series = _series(material)
    _must_suffice(material, points, series)
    low = min(point.clock for one in series for point in one)
    partitions = [point.partition for point in points]
    throughput, _, sm, mem = _columns(points)
    alone = np.array([len(one.shares) == 1 for one in partitions])
    shares, batches = (np.array([getattr(one, name)[0] for one in partitions], dtype=np.float64)[alone] for name in ("shares", "batches"))
    sm_law, mem_law = sm_single(shares, batches, sm[alone]), mem_single(shares, batches, mem[alone])
    together = [one for one in partitions if len(one.shares) > 1]
    batch = np.array([np.mean(one.batches) for one in partitions])
    model = Reference(
        network=material.network,
        gpu=material.gpu,
        mem_mhz=material.mem_mhz,
        sm_single=sm_law,
        sm_system=sm_system(together, sm[~alone], sm_law),
        mem_single=mem_law,
        mem_system=mem_system(together, mem[~alone], mem_law),
        throughput=throughput_curve(series, kappa_line(slopes_by_batch(batch, mem, throughput)), low, material.anchor),
        power=power_curve(series, material.static, low, material.anchor),
        sm_trees=_NO_TREES,
        mem_trees=_NO_TREES,
        throughput_trees=_NO_TREES,
        power_trees=_NO_TREES,
    )
    if not np.isfinite([model.throughput.kappa_a, model.throughput.kappa_b, model.throughput.gamma, model.power.gamma]).all():
        raise Refused(
            f"{_name(material)}: the curves have no slope: five rows of a batch and clocks between the lowest and the anchor are needed."
        )
    return _with_trees(model, points)


def _with_trees(model: Reference, points: list[Point]) -> Reference:
    among = padded([point.partition for point in points])
    throughput, power, sm, mem = _columns(points)
    dynamic = power - static_w(model.power, np.array(model.power.high_mhz))
    several = among.processes > 1
    prior = total(sm_util_percent(model.sm_single, among.shares, among.batches), among)
    return replace(
        model,
        sm_trees=_grow(model.sm_features(among, prior)[several], sm[several]),
        mem_trees=_grow(model.mem_features(among), mem),
        throughput_trees=_grow(model.throughput_features(among, mem), throughput),
        power_trees=_grow(model.power_features(among, sm, mem), dynamic),
    )


def _columns(points: list[Point]) -> tuple[Floats, ...]:
    """Throughput, power, SM and memory utilisation, shape (points,) each."""
    return tuple(np.array([getattr(point, name) for point in points], dtype=np.float64) for name in ("throughput_images_per_s", *NEEDED))


def _grow(rows: Floats, values: Floats) -> Ensemble:
    """Boosted trees as plain arrays."""
    grown = GradientBoostingRegressor(n_estimators=TREES, max_depth=DEPTH, learning_rate=RATE, random_state=SEED).fit(rows, values)
    trees = [one.tree_ for one in grown.estimators_[:, 0]]
    left = np.concatenate([tree.children_left for tree in trees]).astype(np.int64)
    inner = left != LEAF
    return Ensemble(
        features=rows.shape[1],
        start=float(np.mean(values)),
        rate=RATE,
        sizes=np.array([tree.node_count for tree in trees], dtype=np.int64),
        left=left,
        right=np.concatenate([tree.children_right for tree in trees]).astype(np.int64),
        feature=np.where(inner, np.concatenate([tree.feature for tree in trees]), 0).astype(np.int64),
        threshold=np.where(inner, np.concatenate([tree.threshold for tree in trees]), 0.0),
        value=np.concatenate([tree.value[:, 0, 0] for tree in trees]),
    )


_NO_TREES = Ensemble(1, 0.0, 0.0, np.array([1]), np.array([LEAF]), np.array([LEAF]), np.array([0]), np.array([0.0]), np.array([0.0]))


def _series(material: Material) -> list[list[Point]]:
    """Points of each partition that was measured at three clocks or more, the anchor's among them where there is one."""
    of: dict[Partition, list[Point]] = defaultdict(list)
    for point in (*material.others, *material.anchors):
        of[point.partition].append(point)
    return [points for points in of.values() if len({round(point.clock) for point in points}) > 2]


def _must_suffice(material: Material, points: list[Point], series: list[list[Point]]) -> None:
    alone = sum(len(point.partition.shares) == 1 for point in points)
    lacking = [
        said
        for said, is_so in (
            ("clocks in MHz", material.clock != "sm_mhz"),
            (f"{FEWEST_ALONE} rows of one process with power and both utilisations", alone < FEWEST_ALONE),
            (f"{FEWEST_ALONE} rows of several processes", len(points) - alone < FEWEST_ALONE),
            ("a partition at three clocks", not series),
            (f"{FEWEST_STATIC} rows of `static`", len(material.static) < FEWEST_STATIC),
        )
        if is_so
    ]
    if lacking:
        raise Refused(f"{_name(material)}: the original's procedure needs {'; '.join(lacking)}. Our own (without --as original) does not.")


def _name(material: Material) -> str:
    return f"{material.network} at memory clock {material.mem_mhz:g} MHz"
