"""The original procedure: its formulas and curves, and four boosted regressors that use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

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
from control.power.models.reference import (
    FEATURES,
    LEAF,
    NO_FEATURES,
    Ensemble,
    Reference,
    ensemble_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from control.power.terms import Floats, Partition

    from .material import Material

Law = TypeVar("Law", SmSingle, MemSingle, MemSystem)

BUCKETS = (8, 16, 32, 64, 128)
NEAR, FEWEST = (0.8, 1.2), 5
GAMMA_T, GAMMA_P = (0.1, 2.0), (1.0, 5.0)
SM_STARTS = ((0.01, 0.4, 3.0), (1.0, 0.6, 1.0), (3.0, 0.8, 1.0))  # lam, gamma, beta
MEM_STARTS = ((80.0, 0.5, 0.6, -0.6), (40.0, 0.5, 0.3, 0.0), (60.0, 0.2, 0.8, -0.8))  # φ, a, λ, β
SYSTEM_STARTS = (
    (0.0, 1.0, 5.0, 0.5, 0.0, 16.0),
    (0.02, 0.4, 5.0, 0.5, 0.001, 16.0),
    (0.05, 0.1, 1.0, 0.1, 0.001, 32.0),
)
LIGHT_BATCHES = (4, 8)
KAPPA_BOUNDS = (0.1, 20.0)
TREES, DEPTH, RATE, SEED = 100, 5, 0.1, 0
NEEDED = ("throughput_images_per_s", "power", "sm_util_percent", "mem_util_percent")
FEWEST_ALONE = 6
FEWEST_STATIC = 4
_LEAF, _ZERO = np.array([LEAF]), np.array([0.0])
_NO_TREES = Ensemble(
    NO_FEATURES, 0.0, 0.0, np.array([1]), _LEAF, _LEAF, np.array([0]), _ZERO, _ZERO
)


def fit(material: Material) -> Reference:
    """Fit to one network at one memory clock. Raises: Refused, naming what the traces lack."""
    points = material.anchors.dropna(subset=[*NEEDED])
    partitions = list(points["partition"])
    throughput, _, sm, mem = points[[*NEEDED]].to_numpy().T
    among = padded(partitions)
    alone = among.processes == 1
    # Partitions measured at three clocks or more, including the anchor's if there is one.
    every = material.points.assign(at=material.points["clock"].round())
    swept = every[every.groupby("partition", sort=False)["at"].transform("nunique") > 2]
    _must_suffice(material, int(alone.sum()), int((~alone).sum()), swept)
    low = float(swept["clock"].min())
    shares, batches = among.shares[alone, 0], among.batches[alone, 0]
    sm_law = _best(
        SmSingle, 1, SM_STARTS, lambda law: sm_util_percent(law, shares, batches) - sm[alone]
    )
    mem_law = _best(
        MemSingle, 1, MEM_STARTS, lambda law: mem_util_percent(law, shares, batches) - mem[alone]
    )
    several = [partition for partition in partitions if len(partition.shares) > 1]
    trees: dict[str, Any] = {f"{name}_trees": _NO_TREES for name in FEATURES}
    model = Reference(
        network=material.network,
        gpu=material.gpu,
        mem_mhz=material.mem_mhz,
        sm_single=sm_law,
        sm_system=sm_system(several, sm[~alone], sm_law),
        mem_single=mem_law,
        mem_system=mem_system(several, mem[~alone], mem_law),
        throughput=throughput_curve(
            swept, kappa_line(slopes_by_batch(partitions, mem, throughput)), low, material.anchor
        ),
        power=power_curve(swept, material.static, low, material.anchor),
        **trees,
    )
    slopes = [
        model.throughput.kappa_a,
        model.throughput.kappa_b,
        model.throughput.gamma,
        model.power.gamma,
    ]
    if not np.isfinite(slopes).all():
        raise Refused(
            f"{_name(material)}: the curves have no slope: five rows of a batch and clocks "
            "between the lowest and the anchor are required."
        )
    return _with_trees(model, points)


def slopes_by_batch(
    partitions: Sequence[Partition], mem_percent: Floats, throughput: Floats
) -> dict[int, float]:
    """Return images/s per percent of memory utilisation by bucket of mean batch, from five rows on.

    These are slopes of lines through the origin.
    """
    batch = np.array([np.mean(partition.batches) for partition in partitions])
    result = {}
    for bucket in BUCKETS:
        there = (batch >= NEAR[0] * bucket) & (batch <= NEAR[1] * bucket)
        if there.sum() >= FEWEST:
            result[bucket] = float(
                mem_percent[there] @ throughput[there] / (mem_percent[there] @ mem_percent[there])
            )
    return result


def kappa_line(slopes: Mapping[int, float]) -> tuple[float, float]:
    if len(slopes) < 2:
        return 0.0, next(iter(slopes.values()), float("nan"))
    kappa_a, kappa_b = np.polyfit(np.log(list(slopes)), list(slopes.values()), 1)
    return float(kappa_a), float(kappa_b)


def throughput_curve(
    swept: pd.DataFrame, kappa: tuple[float, float], low: float, high: float
) -> ThroughputCurve:
    start = float(swept["throughput_images_per_s"].min())
    gammas = []
    for _, points in swept.groupby("partition", sort=False):
        images = points["throughput_images_per_s"]
        top = float(images.iloc[int(points["clock"].argmax())])
        if top > start:
            gammas.append(
                _exponent(
                    (points["clock"] - low) / (high - low),
                    (images - start) / (top - start),
                    GAMMA_T,
                )
            )
    known = [gamma for gamma in gammas if not np.isnan(gamma)]
    return ThroughputCurve(
        *kappa, float(np.median(known)) if known else float("nan"), start, low, high
    )


def power_curve(
    swept: pd.DataFrame, static: Sequence[tuple[float, float]], low: float, high: float
) -> PowerCurve:
    clocks, watts = np.array(static, dtype=np.float64).T
    cubic = np.polyfit(clocks / high, watts, 3) / high ** np.array([3.0, 2.0, 1.0, 0.0])
    idle = (float(cubic[0]), float(cubic[1]), float(cubic[2]), float(cubic[3]))
    dynamic = swept["power"] - static_w(
        PowerCurve(idle, 0.0, 1.0, low, high), swept["clock"].to_numpy()
    )
    median = dynamic.dropna().groupby(swept["at"]).median()
    base, top = float(median.iloc[0]), float(median.iloc[-1])
    gamma = float("nan")
    if top > base:
        gamma = _exponent(
            (median.index.to_series() - low) / (high - low), (median - base) / (top - base), GAMMA_P
        )
    return PowerCurve(idle, base, gamma, low, high)


def _exponent(x: pd.Series, y: pd.Series, bounds: tuple[float, float]) -> float:
    between = (x > 0.0) & (x < 1.0) & (y > 0.0)
    if not between.any():
        return float("nan")
    log_x, log_y = np.log(x[between].to_numpy()), np.log(y[between].to_numpy())
    return float(np.clip(log_x @ log_y / (log_x @ log_x), *bounds))


def sm_system(partitions: Sequence[Partition], percent: Floats, single: SmSingle) -> SmSystem:
    """Return the line L and curvature κ, from partitions filled with equal processes.

    L goes through one point per batch: that of the share with the lowest utilisation, relative to a
    single process. κ is found within its bounds from batches 4 and 8.
    """
    full = [row for row, partition in enumerate(partitions) if _is_full(partition)]
    lowest: dict[int, tuple[float, float]] = {}
    for row in full:
        one = partitions[row]
        batch = np.array(one.batches[:1], dtype=np.float64)
        alone = float(sm_util_percent(single, np.array(one.shares[:1]), batch)[0])
        lowest[one.batches[0]] = min(
            lowest.get(one.batches[0], (np.inf, np.inf)), (float(percent[row]), alone)
        )
    y, x = np.array(list(lowest.values())).T
    slope, offset = np.polyfit(x, y, 1) if np.ptp(x) > 1e-6 else (0.0, float(np.mean(y)))
    light = [row for row in full if partitions[row].batches[0] in LIGHT_BATCHES] or full
    among, there = padded([partitions[row] for row in light]), percent[light]

    def off(kappa: float) -> float:
        return float(
            np.mean((sm_prior_percent(single, SmSystem(slope, offset, kappa), among) - there) ** 2)
        )

    kappa = minimize_scalar(off, bounds=KAPPA_BOUNDS, method="bounded").x
    return SmSystem(float(slope), float(offset), float(kappa))


def _is_full(partition: Partition) -> bool:
    alike = len(set(partition.shares)) == len(set(partition.batches)) == 1
    return (
        alike
        and len(partition.shares) == int(100 // partition.shares[0])
        and len(partition.shares) > 1
    )


def mem_system(partitions: Sequence[Partition], percent: Floats, single: MemSingle) -> MemSystem:
    among = padded(partitions)
    return _best(
        MemSystem, 0, SYSTEM_STARTS, lambda law: mem_prior_percent(single, law, among) - percent
    )


def _best(
    kind: type[Law], signed: int, starts: Sequence[Sequence[float]], off: Callable[[Law], Floats]
) -> Law:
    def law(numbers: Floats) -> Law:
        positive = len(numbers) - signed
        return kind(*map(abs, numbers[:positive].tolist()), *numbers[positive:].tolist())

    tried = [
        least_squares(lambda numbers: off(law(numbers)), start, x_scale="jac") for start in starts
    ]
    return law(min(tried, key=lambda one: one.cost).x)


def _with_trees(model: Reference, points: pd.DataFrame) -> Reference:
    among = padded(list(points["partition"]))
    throughput, power, sm, mem = points[[*NEEDED]].to_numpy().T
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


def _grow(rows: Floats, values: Floats) -> Ensemble:
    grown = GradientBoostingRegressor(
        n_estimators=TREES, max_depth=DEPTH, learning_rate=RATE, random_state=SEED
    ).fit(rows, values)
    trees = [estimator.tree_ for estimator in grown.estimators_[:, 0]]
    parts = ("children_left", "children_right", "feature", "threshold")
    return ensemble_of(
        rows.shape[1],
        float(np.mean(values)),
        RATE,
        [tree.node_count for tree in trees],
        [np.concatenate([getattr(tree, part) for tree in trees]) for part in parts],
        np.concatenate([tree.value[:, 0, 0] for tree in trees]),
    )


def _must_suffice(material: Material, alone: int, several: int, swept: pd.DataFrame) -> None:
    needs = {
        "clocks in MHz": material.clock == "sm_mhz",
        f"{FEWEST_ALONE} rows of one process with power and both utilisations": alone
        >= FEWEST_ALONE,
        f"{FEWEST_ALONE} rows of several processes": several >= FEWEST_ALONE,
        "a partition at three clocks": len(swept) > 0,
        f"{FEWEST_STATIC} rows of `static`": len(material.static) >= FEWEST_STATIC,
    }
    lacking = "; ".join(text for text, is_met in needs.items() if not is_met)
    if lacking:
        raise Refused(
            f"{_name(material)}: the original's procedure needs {lacking}. Our own (without --as "
            "original) does not."
        )


def _name(material: Material) -> str:
    return f"{material.network} at memory clock {material.mem_mhz:g} MHz"
