"""Fit the project's own model, and its errors on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from control.power.algorithms.steady import band_of
from control.power.models.own import SURFACES, Own, columns_of, fit_surface

from .material import FEWEST, QUANTITIES, Material

if TYPE_CHECKING:
    from control.power.models.own import Surface
    from control.power.terms import Partition

Key = float | tuple[float, ...]  # key of a group; all keys of a grouping have one type
GROUPINGS: dict[str, Callable[[Partition], Key]] = {
    "partition": lambda partition: tuple(sorted(partition.shares)),
    "share": lambda partition: tuple(sorted(set(partition.shares))),
    "batch": lambda partition: tuple(sorted(set(partition.batches))),
    "processes": lambda partition: len(partition.shares),
    "mixed": lambda partition: len(set(partition.shares)) > 1 or len(set(partition.batches)) > 1,
}
CLOCK = "clock"  # the grouping of points other than anchors
GUARDED = ("partition", CLOCK)  # groupings that the guard band is learnt from
MANY = 100  # points: above, scales are not searched again per group, for speed
THROUGHPUT, POWER = SURFACES[:2]


def fit(material: Material, *, like: Own | None = None, utilisation: bool = True) -> Own:
    """Fit everything in the material; utilisations only at the anchor clock, if reported.

    With `like`, the kernel's scales are that model's, and are not searched.
    """
    points = material.points
    columns = columns_of(list(points["partition"]), points["clock"].to_numpy() / material.anchor)
    surfaces: dict[str, Surface] = {}
    for name, quantity in zip(SURFACES, QUANTITIES, strict=True):
        is_utilisation = name in SURFACES[2:]
        values = points[quantity].to_numpy()
        rows = np.flatnonzero((values > 0.0) & (points["is_anchor"] | (not is_utilisation)))
        if len(rows) > 1 and (utilisation or not is_utilisation):
            theta = like.surfaces[name].theta if like else None
            surfaces[name] = fit_surface(rows.tolist(), columns[rows], values[rows], theta)
    return Own(
        network=material.network,
        gpu=material.gpu,
        mem_mhz=material.mem_mhz,
        clock=material.clock,
        cap_unit=material.cap_unit,
        anchor_clock=material.anchor,
        points=tuple(zip(points["partition"], points["clock"], strict=True)),
        surfaces=surfaces,
        guard=None,
        held_out={},
        sources={},
    )


def judge(material: Material, model: Own) -> Own:
    """Return the model with held-out errors by quantity and grouping, and the guard band."""
    rows = {name: hold_out(material, model, name) for name in (*GROUPINGS, CLOCK)}
    learnt = [1.0 / ratio for name in GUARDED for ratio in rows[name][POWER].dropna()]
    guard = max(1.0, band_of(learnt)) if learnt else None
    held_out: dict[str, dict[str, Any]] = {}
    for name, ratios in rows.items():
        for quantity in (THROUGHPUT, POWER):
            known = ratios.dropna(subset=[quantity])
            if len(known):
                band = guard if quantity == POWER else None
                its = errors(list(known["group"]), known[quantity].to_numpy(), guard=band)
                held_out.setdefault(name, {})[quantity] = its
    return replace(model, guard=guard, held_out=held_out)


def hold_out(material: Material, model: Own, grouping: str) -> pd.DataFrame:
    """Return predicted over measured throughput and power, a row per held-out point, with `group`.

    Each group of partitions is held out at every clock and judged at the anchors' clock; in the
    grouping `clock`, the rows of each other clock are. A group is skipped if too few anchors
    remain.
    """
    points = material.points
    if grouping == CLOCK:
        judged = ~points["is_anchor"]
        asked = points["asked"].fillna(points["clock"]).round(3)
        keys = list(asked.where(judged, -1.0))
    else:
        judged = points["is_anchor"]
        keys = list(map(GROUPINGS[grouping], points["partition"]))
    frames = [pd.DataFrame(columns=["group", THROUGHPUT, POWER])]
    groups = sorted({key for key, counts in zip(keys, judged, strict=True) if counts})
    for group in groups if len(groups) > 1 else []:
        out = np.array([key == group for key in keys])
        kept = replace(material, points=points[~out].reset_index(drop=True))
        if len(kept.anchors) >= FEWEST:
            ratios = _ratios(kept, model, points[out & judged])
            frames.append(ratios.assign(group=pd.Series([group] * len(ratios), index=ratios.index)))
    return pd.concat(frames[1:] or frames, ignore_index=True)


def _ratios(kept: Material, whole: Own, held: pd.DataFrame) -> pd.DataFrame:
    model = fit(kept, like=whole if len(whole.points) > MANY else None, utilisation=False)
    anchor, clocks = model.anchor(list(held["partition"])), held["clock"].to_numpy()
    throughput = model.throughput_images_per_s(anchor, clocks) / held["throughput_images_per_s"]
    power = model.power_w(anchor, clocks) / held["power"].where(held["power"] > 0.0)
    return pd.DataFrame({THROUGHPUT: throughput, POWER: power})


def errors(
    groups: Sequence[Key], ratio: np.ndarray, *, guard: float | None = None
) -> dict[str, Any]:
    """Summarise predicted over measured, as fractions; `guarded`: rows within the guard band."""
    size = np.abs(ratio - 1.0)
    return {
        "rows": len(ratio),
        "groups": len(set(groups)),
        "mape": float(size.mean()),
        "median": float(np.median(size)),
        "p95": float(np.quantile(size, 0.95)),
        "bias": float(np.mean(ratio - 1.0)),
        "guarded": None if guard is None else float(np.mean(ratio * guard >= 1.0 - 1e-12)),
    }


def judge_memory_stage(material: Material) -> dict[str, dict[str, dict[str, Any]]]:
    """Return errors by grouping, as in `judge`, of throughput given measured memory utilisation.

    It is a stage of the original, not a prediction: the utilisation of a partition that never ran
    is unknown. Empty if too few anchors have one.
    """
    anchors = material.anchors
    known = anchors[anchors["mem_util_percent"] > 0.0]
    result = {}
    for name, key in GROUPINGS.items() if len(known) >= FEWEST else ():
        groups = list(map(key, known["partition"]))
        if len(set(groups)) > 1:
            result[name] = {THROUGHPUT: errors(groups, by_memory(known, groups))}
    return result


def by_memory(points: pd.DataFrame, groups: Sequence[Key]) -> np.ndarray:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel
    from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    memory = points["mem_util_percent"].to_numpy()
    sizes = [
        (np.mean(np.log(its.shares)), np.log(len(its.shares)), np.mean(np.log(its.batches)))
        for its in points["partition"]
    ]
    columns = np.column_stack([sizes, np.log(memory)])
    per_percent = points["throughput_images_per_s"].to_numpy() / memory
    # A power law with an exponent around one half, and local deviations from it.
    law = ConstantKernel(100.0) + ConstantKernel(0.25) * DotProduct(1e-3)
    kernel = law + ConstantKernel(0.0225) * Matern([1.0, 1.0, 1.5, 1.0], nu=2.5) + WhiteKernel(9e-4)
    process = GaussianProcessRegressor(kernel, optimizer=None)
    about_mean = TransformedTargetRegressor(process, transformer=StandardScaler(with_std=False))
    names = sorted(set(groups))
    places = [names.index(group) for group in groups]
    with threadpool_limits(1, user_api="blas"):
        logs = cross_val_predict(
            about_mean, columns, np.log(per_percent), groups=places, cv=LeaveOneGroupOut()
        )
    ratios: np.ndarray = np.exp(logs) / per_percent
    return ratios
