"""The original's procedure: its formulas, its curves, and four boosted regressors with the formulas among their features."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares, minimize_scalar
from sklearn.ensemble import GradientBoostingRegressor

from analysis.terms import Refused
from control.power.models.laws import (
    MemSingle,
    MemSystem,
    PowerCurve,
    SmSingle,
    SmSystem,
    ThroughputCurve,
    mem_prior_percent,
    mem_util_percent,
    padded,
    sm_prior_percent,
    sm_util_percent,
    static_w,
    total,
)
from control.power.models.reference import LEAF, Ensemble, Reference

if TYPE_CHECKING:
    from control.power.terms import Floats, Partition

    from .material import Material, MeasuredPoint

BUCKETS = (8, 16, 32, 64, 128)
NEAR, FEWEST = (0.8, 1.2), 5
GAMMA_T, GAMMA_P = (0.1, 2.0), (1.0, 5.0)


def slopes_by_batch(batch: Floats, mem_percent: Floats, throughput: Floats) -> dict[int, float]:
    """Images/s per percent of memory utilisation: through the origin, of each bucket of mean batch with five rows or more."""
    result = {}
    for bucket in BUCKETS:
        there = (batch >= NEAR[0] * bucket) & (batch <= NEAR[1] * bucket)
        if there.sum() >= FEWEST:
            result[bucket] = float(mem_percent[there] @ throughput[there] / (mem_percent[there] @ mem_percent[there]))
    return result


def kappa_line(slopes: Mapping[int, float]) -> tuple[float, float]:
    """κ_a and κ_b of κ = κ_a·ln b + κ_b; with fewer than two buckets the slope itself."""
    if len(slopes) < 2:
        return 0.0, next(iter(slopes.values()), float("nan"))
    kappa_a, kappa_b = np.polyfit(np.log(list(slopes)), list(slopes.values()), 1)
    return float(kappa_a), float(kappa_b)


def throughput_curve(series: Iterable[Sequence[MeasuredPoint]], kappa: tuple[float, float], low: float, high: float) -> ThroughputCurve:
    """The exponent, the median over partitions, and the start, the lowest throughput of all; each partition's points run over the clock."""
    series = list(series)
    start = min(point.throughput_images_per_s for points in series for point in points)
    gammas = []
    for points in series:
        top = max(points, key=lambda point: point.clock).throughput_images_per_s
        slope = _slope(
            np.array([_position(point.clock, low, high) for point in points]),
            np.array([(point.throughput_images_per_s - start) / (top - start) if top > start else 0.0 for point in points]),
        )
        if slope is not None:
            gammas.append(float(np.clip(slope, *GAMMA_T)))
    return ThroughputCurve(*kappa, float(np.median(gammas)) if gammas else float("nan"), start, low, high)


def power_curve(series: Iterable[Sequence[MeasuredPoint]], static: Sequence[tuple[float, float]], low: float, high: float) -> PowerCurve:
    """The cubic of static power, and exponent and base of dynamic power, from its median over partitions at each clock."""
    clocks, watts = np.array(static, dtype=np.float64).T
    cubic = np.polyfit(clocks / high, watts, 3) / high ** np.array([3.0, 2.0, 1.0, 0.0])
    idle = (float(cubic[0]), float(cubic[1]), float(cubic[2]), float(cubic[3]))
    still = PowerCurve(idle, 0.0, 1.0, low, high)
    at_clock: dict[float, list[float]] = defaultdict(list)
    for points in series:
        for point in points:
            if point.power is not None:
                at_clock[round(point.clock)].append(point.power - float(static_w(still, np.array(point.clock))))
    ordered = sorted(at_clock)
    median = np.array([np.median(at_clock[clock]) for clock in ordered])
    base, top = float(median[0]), float(median[-1])
    position = np.array([_position(clock, low, high) for clock in ordered])
    slope = _slope(position, (median - base) / (top - base)) if top > base else None
    return PowerCurve(idle, base, float("nan") if slope is None else float(np.clip(slope, *GAMMA_P)), low, high)


def _position(clock: float, low: float, high: float) -> float:
    return (clock - low) / (high - low)


def _slope(x: Floats, y: Floats) -> float | None:
    """Slope through the origin of ln y over ln x, of the points between start and top; None where there is none."""
    between = (x > 0.0) & (x < 1.0) & (y > 0.0)
    if not between.any():
        return None
    log_x, log_y = np.log(x[between]), np.log(y[between])
    return float(log_x @ log_y / (log_x @ log_x))


SM_STARTS = ((0.01, 0.4, 3.0), (1.0, 0.6, 1.0), (3.0, 0.8, 1.0))  # lam, gamma, beta
MEM_STARTS = ((80.0, 0.5, 0.6, -0.6), (40.0, 0.5, 0.3, 0.0), (60.0, 0.2, 0.8, -0.8))  # φ, a, λ, β
SYSTEM_STARTS = ((0.0, 1.0, 5.0, 0.5, 0.0, 16.0), (0.02, 0.4, 5.0, 0.5, 0.001, 16.0), (0.05, 0.1, 1.0, 0.1, 0.001, 32.0))
LIGHT_BATCHES = (4, 8)
KAPPA_BOUNDS = (0.1, 20.0)


def sm_single(shares: Floats, batches: Floats, percent: Floats) -> SmSingle:
    """Lambda, gamma, beta from rows of one process, shape (rows,)."""
    lam, gamma, beta = _best(lambda result: sm_util_percent(_sm(result), shares, batches) - percent, SM_STARTS)
    return _sm(np.array([lam, gamma, beta]))


def mem_single(shares: Floats, batches: Floats, percent: Floats) -> MemSingle:
    """φ, a, λ, β from rows of one process, shape (rows,). What fits best may not be unique; the curve is."""
    return _mem(_best(lambda result: mem_util_percent(_mem(result), shares, batches) - percent, MEM_STARTS))


def sm_system(partitions: Sequence[Partition], percent: Floats, single: SmSingle) -> SmSystem:
    """The line L and the curvature κ, from partitions filled with as many processes as fit, all alike.

    L goes through one point a batch: that of the share with the lowest utilisation, over what one process has there. κ is found
    within its bounds from batches 4 and 8.
    """
    full = [row for row, partition in enumerate(partitions) if _is_full(partition)]
    lowest: dict[int, tuple[float, float]] = {}
    for row in full:
        one = partitions[row]
        alone = float(sm_util_percent(single, np.array(one.shares[:1]), np.array(one.batches[:1], dtype=np.float64))[0])
        lowest[one.batches[0]] = min(lowest.get(one.batches[0], (np.inf, np.inf)), (float(percent[row]), alone))
    y, x = np.array(list(lowest.values())).T
    slope, offset = np.polyfit(x, y, 1) if np.ptp(x) > 1e-6 else (0.0, float(np.mean(y)))
    light = [row for row in full if partitions[row].batches[0] in LIGHT_BATCHES] or full
    among, there = padded([partitions[row] for row in light]), percent[light]

    def off(kappa: float) -> float:
        return float(np.mean((sm_prior_percent(single, SmSystem(slope, offset, kappa), among) - there) ** 2))

    return SmSystem(float(slope), float(offset), float(minimize_scalar(off, bounds=KAPPA_BOUNDS, method="bounded").x))


def mem_system(partitions: Sequence[Partition], percent: Floats, single: MemSingle) -> MemSystem:
    """What further processes add, from all rows of several processes."""
    among = padded(partitions)
    return _system(_best(lambda result: mem_prior_percent(single, _system(result), among) - percent, SYSTEM_STARTS))


def _best(off: Callable[[Floats], Floats], starts: Sequence[Sequence[float]]) -> Floats:
    tried = [least_squares(off, start, x_scale="jac") for start in starts]
    best: Floats = min(tried, key=lambda one: one.cost).x
    return best


def _is_full(partition: Partition) -> bool:
    alike = len(set(partition.shares)) == len(set(partition.batches)) == 1
    return alike and len(partition.shares) == int(100 // partition.shares[0]) and len(partition.shares) > 1


def _sm(result: Floats) -> SmSingle:
    return SmSingle(abs(float(result[0])), abs(float(result[1])), float(result[2]))


def _mem(result: Floats) -> MemSingle:
    return MemSingle(abs(float(result[0])), abs(float(result[1])), abs(float(result[2])), float(result[3]))


def _system(result: Floats) -> MemSystem:
    return MemSystem(*(abs(float(one)) for one in result))


TREES, DEPTH, RATE, SEED = 100, 5, 0.1, 0
NEEDED = ("power", "sm_util_percent", "mem_util_percent")
FEWEST_ALONE = 6
FEWEST_STATIC = 4


def fit(material: Material) -> Reference:
    """Fit to one network at one memory clock. Raises: Refused, with what the traces lack."""
    points = [point for point in material.anchors if all(getattr(point, name) is not None for name in NEEDED)]
    series = _series(material)
    _must_suffice(material, points, series)
    low = min(point.clock for group in series for point in group)
    partitions = [point.partition for point in points]
    throughput, _, sm, mem = _columns(points)
    alone = np.array([len(partition.shares) == 1 for partition in partitions])
    shares, batches = (
        np.array([getattr(partition, name)[0] for partition in partitions], dtype=np.float64)[alone] for name in ("shares", "batches")
    )
    sm_law, mem_law = sm_single(shares, batches, sm[alone]), mem_single(shares, batches, mem[alone])
    together = [partition for partition in partitions if len(partition.shares) > 1]
    batch = np.array([np.mean(partition.batches) for partition in partitions])
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


def _with_trees(model: Reference, points: list[MeasuredPoint]) -> Reference:
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


def _columns(points: list[MeasuredPoint]) -> tuple[Floats, ...]:
    """Throughput, power, SM and memory utilisation, shape (points,) each."""
    return tuple(np.array([getattr(point, name) for point in points], dtype=np.float64) for name in ("throughput_images_per_s", *NEEDED))


def _grow(rows: Floats, values: Floats) -> Ensemble:
    """Boosted trees as plain arrays."""
    grown = GradientBoostingRegressor(n_estimators=TREES, max_depth=DEPTH, learning_rate=RATE, random_state=SEED).fit(rows, values)
    trees = [estimator.tree_ for estimator in grown.estimators_[:, 0]]
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


def _series(material: Material) -> list[list[MeasuredPoint]]:
    """Points of each partition that was measured at three clocks or more, the anchor's among them where there is one."""
    of: dict[Partition, list[MeasuredPoint]] = defaultdict(list)
    for point in (*material.others, *material.anchors):
        of[point.partition].append(point)
    return [points for points in of.values() if len({round(point.clock) for point in points}) > 2]


def _must_suffice(material: Material, points: list[MeasuredPoint], series: list[list[MeasuredPoint]]) -> None:
    alone = sum(len(point.partition.shares) == 1 for point in points)
    lacking = [
        text
        for text, is_so in (
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
