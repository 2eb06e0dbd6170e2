"""Fitting the project's own model, and how wrong it is on rows it was not shown.

The model is a Gaussian process for each quantity that the traces have. Errors are those on whole groups that were held
out, never on single rows, because neighbours tell on each other.
"""

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

Key = float | tuple[float, ...]  # of a group; all groups of a grouping are of one kind
GROUPINGS: dict[str, Callable[[Partition], Key]] = {
    "partition": lambda partition: tuple(sorted(partition.shares)),
    "share": lambda partition: tuple(sorted(set(partition.shares))),
    "batch": lambda partition: tuple(sorted(set(partition.batches))),
    "processes": lambda partition: len(partition.shares),
    "mixed": lambda partition: len(set(partition.shares)) > 1 or len(set(partition.batches)) > 1,
}
CLOCK = "clock"  # the grouping of points that are no anchors
ORDERED = ("share", "batch", "processes", CLOCK)  # groupings whose groups have a smallest and a largest
GUARDED = ("partition", CLOCK)  # groupings whose rows the guard band is learnt from
MANY = 100  # points above which the kernel's scales are not searched again for each group: that takes minutes
THROUGHPUT, POWER = SURFACES[:2]


def fit(material: Material, *, like: Own | None = None, utilisation: bool = True) -> Own:
    """Fit everything the material has; utilisations at the anchor clock alone, where they are answered.

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
    """The model with its held-out errors by quantity and grouping, and with the guard band that they teach.

    The band holds for nine rows in ten and more of those it is learnt from (`GUARDED`); of other groupings that is a
    check.
    """
    rows = {name: hold_out(material, model, name) for name in (*GROUPINGS, CLOCK)}
    learnt = [1.0 / ratio for name in GUARDED for ratio in rows[name][POWER].dropna()]
    guard = max(1.0, band_of(learnt)) if learnt else None
    held_out: dict[str, dict[str, Any]] = {}
    for name, ratios in rows.items():
        for quantity in (THROUGHPUT, POWER):
            known = ratios.dropna(subset=[quantity])
            if len(known):
                band = guard if quantity == POWER else None
                its = errors(list(known["group"]), known[quantity].to_numpy(), ordered=name in ORDERED, guard=band)
                held_out.setdefault(name, {})[quantity] = its
    return replace(model, guard=guard, held_out=held_out)


def hold_out(material: Material, model: Own, grouping: str) -> pd.DataFrame:
    """Predicted over measured throughput and power, a row per point that was held out, with its `group`.

    Each group of partitions is held out at every clock and judged at the anchors' clock; of the grouping `clock` the
    rows of each other clock are. A group is skipped where too few anchors remain.
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
    """Predict points by a fit to what was kept, and divide by what was measured."""
    model = fit(kept, like=whole if len(whole.points) > MANY else None, utilisation=False)
    anchor, clocks = model.anchor(list(held["partition"])), held["clock"].to_numpy()
    throughput = model.throughput_images_per_s(anchor, clocks) / held["throughput_images_per_s"]
    power = model.power_w(anchor, clocks) / held["power"].where(held["power"] > 0.0)
    return pd.DataFrame({THROUGHPUT: throughput, POWER: power})


def errors(groups: Sequence[Key], ratio: np.ndarray, *, ordered: bool, guard: float | None = None) -> dict[str, Any]:
    """Sum up predicted over measured, shape (rows,), as fractions.

    Of |ratio - 1|: the mean `mape`, `median` and 95th percentile `p95`; `bias` is the mean with its sign. `inside` is
    the mean without the first and the last group, None where that leaves none, or where groups are not `ordered`.
    `guarded` is the share of rows whose power the guard band held, None without one. `worst_group` has the largest
    mean error.
    """
    size = np.abs(ratio - 1.0)
    names = sorted(set(groups))
    places = np.array([names.index(group) for group in groups])
    of_group = [float(size[places == place].mean()) for place in range(len(names))]
    worst = int(np.argmax(of_group))
    between = size[(places > 0) & (places < len(names) - 1)] if ordered else size[:0]
    return {
        "rows": len(ratio),
        "groups": len(names),
        "mape": float(size.mean()),
        "inside": float(between.mean()) if len(between) else None,
        "median": float(np.median(size)),
        "p95": float(np.quantile(size, 0.95)),
        "bias": float(np.mean(ratio - 1.0)),
        "guarded": None if guard is None else float(np.mean(ratio * guard >= 1.0 - 1e-12)),
        "worst_group": _named(names[worst]),
        "worst_group_mape": of_group[worst],
    }


def _named(group: Key) -> str:
    return "+".join(f"{value:g}" for value in group) if isinstance(group, tuple) else str(group)


def judge_memory_stage(material: Material) -> dict[str, dict[str, dict[str, Any]]]:
    """Errors by grouping, as `judge` has them, of throughput given the measured memory utilisation.

    It is a stage of the original's, and no prediction: nobody knows the utilisation of a partition that never ran.
    Empty where too few anchors have one.
    """
    anchors = material.anchors
    known = anchors[anchors["mem_util_percent"] > 0.0]
    result = {}
    for name, key in GROUPINGS.items() if len(known) >= FEWEST else ():
        groups = list(map(key, known["partition"]))
        if len(set(groups)) > 1:
            result[name] = {THROUGHPUT: errors(groups, by_memory(known, groups), ordered=name in ORDERED)}
    return result


def by_memory(points: pd.DataFrame, groups: Sequence[Key]) -> np.ndarray:
    """Predicted over measured throughput of each point, from a fit to the other groups, given its memory utilisation."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel
    from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    memory = points["mem_util_percent"].to_numpy()
    sizes = [(np.mean(np.log(its.shares)), np.log(len(its.shares)), np.mean(np.log(its.batches))) for its in points["partition"]]
    columns = np.column_stack([sizes, np.log(memory)])
    per_percent = points["throughput_images_per_s"].to_numpy() / memory
    # A power law of anything, exponents of the order of a half, and what departs from it nearby.
    law = ConstantKernel(100.0) + ConstantKernel(0.25) * DotProduct(1e-3)
    kernel = law + ConstantKernel(0.0225) * Matern([1.0, 1.0, 1.5, 1.0], nu=2.5) + WhiteKernel(9e-4)
    process = GaussianProcessRegressor(kernel, optimizer=None)
    about_mean = TransformedTargetRegressor(process, transformer=StandardScaler(with_std=False))
    names = sorted(set(groups))
    places = [names.index(group) for group in groups]
    with threadpool_limits(1, user_api="blas"):
        logs = cross_val_predict(about_mean, columns, np.log(per_percent), groups=places, cv=LeaveOneGroupOut())
    ratios: np.ndarray = np.exp(logs) / per_percent
    return ratios
