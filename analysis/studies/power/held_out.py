"""How wrong a fit is on rows it was not shown: whole groups are held out, never single rows, because neighbours tell on each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from control.power.algorithms.steady import band_of
from control.power.models.own import Own, process_of

from . import fit_own

if TYPE_CHECKING:
    from control.power.terms import Partition

    from .material import Material, MeasuredPoint

Key = float | tuple[float, ...]  # of a group; of one grouping all are of one kind
GROUPINGS: dict[str, Callable[[Partition], Key]] = {
    "partition": lambda partition: tuple(sorted(partition.shares)),
    "share": lambda partition: tuple(sorted(set(partition.shares))),
    "batch": lambda partition: tuple(sorted(set(partition.batches))),
    "processes": lambda partition: len(partition.shares),
    "mixed": lambda partition: len(set(partition.shares)) > 1 or len(set(partition.batches)) > 1,
}
ORDERED = ("share", "batch", "processes", "clock")  # groupings whose groups have a smallest and a largest
GUARDED = ("partition", "clock")  # groupings whose rows the guard band is learnt from
FEWEST = 5  # rows that must remain to be fitted to
MANY = 100  # points of a fit above which the kernel's scales are not searched anew for each group: that takes minutes
THROUGHPUT, POWER = "throughput_images_per_s", "power_w"


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors on held-out rows, as fractions: mean, median and 95th percentile of |predicted/measured − 1|, and the mean with its sign.

    `inside` is the mean without the first and the last group, None where that leaves none or groups have no order. `guarded` is the part
    of rows whose power the guard band held, None for throughput. `worst_group` has the largest mean error.
    """

    rows: int
    groups: int
    mape: float
    inside: float | None
    median: float
    p95: float
    bias: float
    guarded: float | None
    worst_group: str
    worst_group_mape: float


@dataclass(frozen=True, slots=True)
class Held:
    """A row that was held out: its group, and predicted/measured."""

    group: Key
    ratio: float


def judge(material: Material, model: Own) -> Own:
    """The model with its held-out errors by quantity and grouping, and with the guard band that they teach.

    The band holds for nine rows in ten and more of those it is learnt from (`GUARDED`); of other groupings that is a check.
    """
    rows = {name: by_anchor(material, model, key) for name, key in GROUPINGS.items()}
    rows["clock"] = _by_clock(material, model)
    learnt = [1.0 / row.ratio for name in GUARDED for row in rows[name][POWER]]
    guard = max(1.0, band_of(learnt)) if learnt else None
    held_out = {
        name: {
            quantity: asdict(errors(its, ordered=name in ORDERED, guard=guard if quantity == POWER else None))
            for quantity, its in result.items()
            if its
        }
        for name, result in rows.items()
    }
    return replace(model, guard=guard, held_out={name: result for name, result in held_out.items() if result})


def by_anchor(material: Material, model: Own, key: Callable[[Partition], Key]) -> dict[str, list[Held]]:
    """Hold out each group of partitions in turn, at every clock, and judge throughput and power at the anchor clock."""
    groups = [key(point.partition) for point in material.anchors]
    rows: dict[str, list[Held]] = {THROUGHPUT: [], POWER: []}
    for group in sorted(set(groups)) if len(set(groups)) > 1 else []:
        anchors = tuple(point for point in material.anchors if key(point.partition) != group)
        others = tuple(point for point in material.others if key(point.partition) != group)
        if len(anchors) >= FEWEST:
            held = [point for point, its in zip(material.anchors, groups, strict=True) if its == group]
            _judge(rows, replace(material, anchors=anchors, others=others), model, held, group)
    return rows


def _by_clock(material: Material, model: Own) -> dict[str, list[Held]]:
    """Hold out all rows of each clock below the anchor's in turn."""
    groups = [round(point.clock if point.asked is None else point.asked, 3) for point in material.others]
    rows: dict[str, list[Held]] = {THROUGHPUT: [], POWER: []}
    for group in sorted(set(groups)) if len(set(groups)) > 1 else []:
        kept = tuple(point for point, its in zip(material.others, groups, strict=True) if its != group)
        held = [point for point, its in zip(material.others, groups, strict=True) if its == group]
        _judge(rows, replace(material, others=kept), model, held, group)
    return rows


def _judge(rows: dict[str, list[Held]], kept: Material, whole: Own, held: Sequence[MeasuredPoint], group: Key) -> None:
    model = fit_own.fit(kept, like=whole if len(whole.points) > MANY else None, utilisation=False)
    anchor, clocks = model.anchor([point.partition for point in held]), np.array([point.clock for point in held])
    predicted = model.throughput_images_per_s(anchor, clocks), model.power_w(anchor, clocks)
    for point, images, power in zip(held, *predicted, strict=True):
        rows[THROUGHPUT].append(Held(group, float(images) / point.throughput_images_per_s))
        if point.power and POWER in model.surfaces:
            rows[POWER].append(Held(group, float(power) / point.power))


def errors(rows: Sequence[Held], *, ordered: bool, guard: float | None = None) -> Errors:
    """Sum up rows. `ordered`: their groups have a smallest and a largest."""
    ratio = np.array([row.ratio for row in rows])
    size = np.abs(ratio - 1.0)
    groups = sorted({row.group for row in rows})
    between = np.isin([groups.index(row.group) for row in rows], range(1, len(groups) - 1)) if ordered else np.zeros(len(rows), dtype=bool)
    by_group: Mapping[Any, float] = {
        group: float(np.mean([abs(row.ratio - 1.0) for row in rows if row.group == group])) for group in groups
    }
    worst = max(by_group, key=by_group.__getitem__)
    return Errors(
        rows=len(rows),
        groups=len(groups),
        mape=float(size.mean()),
        inside=float(size[between].mean()) if between.any() else None,
        median=float(np.median(size)),
        p95=float(np.quantile(size, 0.95)),
        bias=float(np.mean(ratio - 1.0)),
        guarded=None if guard is None else float(np.mean(ratio * guard >= 1.0 - 1e-12)),
        worst_group=_named(worst),
        worst_group_mape=by_group[worst],
    )


def _named(group: Key) -> str:
    return "+".join(f"{value:g}" for value in group) if isinstance(group, tuple) else str(group)


def judge_memory_stage(material: Material) -> dict[str, dict[str, dict[str, Any]]]:
    """Errors by grouping, as `judge` has them, of throughput given the memory utilisation; empty where too few anchors have one."""
    rows, _ = material.values("mem_util_percent")
    if len(rows) < FEWEST:
        return {}
    result = {name: by_memory(material, key) for name, key in GROUPINGS.items()}
    return {name: {THROUGHPUT: asdict(errors(its, ordered=name in ORDERED))} for name, its in result.items() if its}


def by_memory(material: Material, key: Callable[[Partition], Key]) -> list[Held]:
    """Hold out each group of anchors in turn; anchors without a memory utilisation are in none."""
    from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel

    rows, memory = material.values("mem_util_percent")
    points = [material.anchors[row] for row in rows]
    groups = [key(point.partition) for point in points]
    logs = [(np.mean(np.log(it.shares)), np.log(len(it.shares)), np.mean(np.log(it.batches))) for it in (one.partition for one in points)]
    columns = np.column_stack([logs, np.log(memory)])
    per_percent = np.array([point.throughput_images_per_s for point in points]) / memory
    # A power law of anything, exponents of the order of a half, and what departs from it nearby.
    law = ConstantKernel(100.0) + ConstantKernel(0.25) * DotProduct(1e-3)
    kernel = law + ConstantKernel(0.0225) * Matern([1.0, 1.0, 1.5, 1.0], nu=2.5) + WhiteKernel(9e-4)
    result = []
    for group in sorted(set(groups)) if len(set(groups)) > 1 else []:
        out = np.array([its == group for its in groups])
        if (~out).sum() >= FEWEST:
            mean = np.log(per_percent[~out]).mean()
            process = process_of(kernel, columns[~out], np.log(per_percent[~out]) - mean)
            result += [Held(group, float(one)) for one in np.exp(mean + process.predict(columns[out])) / per_percent[out]]
    return result
