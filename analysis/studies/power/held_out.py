"""How wrong a fit is on rows it was not shown: whole groups are held out, never single rows, because neighbours tell on each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from threadpoolctl import threadpool_limits

from control.power.models.own import Own, features_of, matern

from . import fit_own
from .fit_own import AMPLITUDE, NOISE, SCALES

if TYPE_CHECKING:
    from control.power.terms import Floats, Partition

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
Z90 = 1.6449  # between minus this and this lie 90 % of a normal distribution
FEWEST = 5  # rows that must remain to be fitted to


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors on held-out rows, as fractions: mean, median and 95th percentile of |predicted/measured − 1|, and the mean with its sign.

    `inside` is the mean without the first and the last group, None where that leaves none or groups have no order. `within_90` is the share
    of rows inside the interval that was to hold 90 % of them. `worst_group` has the largest mean error.
    """

    rows: int
    groups: int
    mape: float
    inside: float | None
    median: float
    p95: float
    bias: float
    within_90: float
    worst_group: str
    worst_group_mape: float


@dataclass(frozen=True, slots=True)
class Held:
    """A row that was held out: its group, predicted/measured − 1, and how many sds the logarithm was off."""

    group: Key
    error: float
    z: float


def judge(material: Material, model: Own) -> Own:
    """The model with its held-out errors by quantity and grouping, and its uncertainty widened to what they were by partition.

    Only partition errors widen, so that within_90 of the other groupings is a check and not a tautology.
    """
    rows = {name: by_anchor(material, model, key) for name, key in GROUPINGS.items()}
    wider = {quantity: inflation(result) for quantity, result in rows["partition"].items()}
    surfaces = {name: replace(surface, inflation=wider.get(name, 1.0)) for name, surface in model.surfaces.items()}
    for result in rows.values():
        for quantity in result:
            result[quantity] = [replace(row, z=row.z / wider[quantity]) if quantity in wider else row for row in result[quantity]]
    model = replace(model, surfaces=surfaces)
    rows["clock"] = _by_clock(material, model)
    said = {
        name: {quantity: asdict(errors(each, ordered=name in ORDERED)) for quantity, each in result.items() if each}
        for name, result in rows.items()
    }
    return replace(model, held_out={name: result for name, result in said.items() if result})


def by_anchor(material: Material, model: Own, key: Callable[[Partition], Key]) -> dict[str, list[Held]]:
    """Hold out each group of anchors in turn, and judge throughput and dynamic power."""
    groups = [key(point.partition) for point in material.anchors]
    result: dict[str, list[Held]] = {"throughput_images_per_s": [], "dynamic_power_w": []}
    if len(set(groups)) < 2:
        return result
    for group in sorted(set(groups)):
        kept = tuple(point for point, its in zip(material.anchors, groups, strict=True) if its != group)
        held = [point for point, its in zip(material.anchors, groups, strict=True) if its == group]
        if len(kept) < FEWEST:
            continue
        other = fit_own.fit(replace(material, anchors=kept, others=()), model.surfaces, utilisation=False)
        _judge(result, other, held, group, idle_w=float(model.static.at(np.array(material.anchor))))
    return result


def _judge(result: dict[str, list[Held]], other: Own, held: list[MeasuredPoint], group: Key, idle_w: float) -> None:
    estimated = other.anchor([point.partition for point in held])
    throughput = np.array([point.throughput_images_per_s for point in held])
    _add(result["throughput_images_per_s"], group, estimated.throughput_images_per_s / throughput, estimated.throughput_log_sd)
    there = np.array([place for place, point in enumerate(held) if point.power is not None and point.power > idle_w], dtype=np.intp)
    if len(there) and "dynamic_power_w" in other.surfaces:
        power = np.array([held[place].power for place in there], dtype=np.float64) - idle_w
        _add(result["dynamic_power_w"], group, estimated.dynamic_power_w[there] / power, estimated.dynamic_power_log_sd[there])


def _by_clock(material: Material, model: Own) -> dict[str, list[Held]]:
    """Hold out all rows of each clock below the anchor's in turn; what the partition gives at the anchor clock is predicted too."""
    result: dict[str, list[Held]] = {"throughput_images_per_s": [], "power_w": []}
    groups = [round(point.clock if point.asked is None else point.asked, 3) for point in material.others]
    clocks = sorted(set(groups))
    for clock in clocks if len(clocks) > 1 else []:
        kept = tuple(point for point, its in zip(material.others, groups, strict=True) if its != clock)
        held = [point for point, its in zip(material.others, groups, strict=True) if its == clock]
        other = fit_own.fit_responses(replace(material, others=kept), model)
        estimated = other.anchor([point.partition for point in held])
        at = np.array([point.clock for point in held])
        throughput = np.array([point.throughput_images_per_s for point in held])
        predicted = other.throughput_images_per_s(estimated, at)
        _add(result["throughput_images_per_s"], clock, predicted / throughput, other.throughput_sd_images_per_s(estimated, at) / predicted)
        there = np.array([place for place, point in enumerate(held) if point.power], dtype=np.intp)
        if len(there) and "dynamic_power_w" in other.surfaces:
            power = np.array([held[place].power for place in there], dtype=np.float64)
            predicted = other.power_w(estimated, at)[there]
            _add(result["power_w"], clock, predicted / power, other.power_sd_w(estimated, at)[there] / predicted)
    return result


def _add(rows: list[Held], group: Key, ratio: Floats, log_sd: Floats) -> None:
    rows.extend(Held(group, float(one) - 1.0, float(np.log(one) / sd)) for one, sd in zip(ratio, log_sd, strict=True))


def inflation(rows: Sequence[Held]) -> float:
    """By how much sds must grow for 90 % of these rows to lie in the interval of 90 %; never below 1."""
    return max(1.0, float(np.quantile([abs(row.z) for row in rows], 0.9)) / Z90) if rows else 1.0


def errors(rows: Sequence[Held], *, ordered: bool) -> Errors:
    """Sum up rows. `ordered`: their groups have a smallest and a largest."""
    size = np.abs([row.error for row in rows])
    groups = sorted({row.group for row in rows})
    between = np.isin([groups.index(row.group) for row in rows], range(1, len(groups) - 1)) if ordered else np.zeros(len(rows), dtype=bool)
    by_group: Mapping[Any, float] = {group: float(np.mean([abs(row.error) for row in rows if row.group == group])) for group in groups}
    worst = max(by_group, key=by_group.__getitem__)
    return Errors(
        rows=len(rows),
        groups=len(groups),
        mape=float(size.mean()),
        inside=float(size[between].mean()) if between.any() else None,
        median=float(np.median(size)),
        p95=float(np.quantile(size, 0.95)),
        bias=float(np.mean([row.error for row in rows])),
        within_90=float(np.mean([abs(row.z) <= Z90 for row in rows])),
        worst_group=_named(worst),
        worst_group_mape=by_group[worst],
    )


def _named(group: Key) -> str:
    return "+".join(f"{value:g}" for value in group) if isinstance(group, tuple) else str(group)


QUANTITY = "throughput_images_per_s"
MEMORY_SCALE = 1.0  # expected, in ln of percent
LOOSE, ANYTHING = 0.5, 10.0  # sds of exponents about what is expected, and of ln k


def judge_memory_stage(material: Material) -> dict[str, dict[str, dict[str, Any]]]:
    """Errors by grouping, as `judge` has them, of throughput alone; empty where too few anchors have a memory utilisation.

    The uncertainty is widened to what the errors were by partition, as the model's is.
    """
    rows, _ = material.values("mem_util_percent")
    if len(rows) < FEWEST:
        return {}
    result = {name: by_group(material, key) for name, key in GROUPINGS.items()}
    wider = inflation(result["partition"])
    return {
        name: {QUANTITY: asdict(errors([replace(row, z=row.z / wider) for row in its], ordered=name in ORDERED))}
        for name, its in result.items()
        if its
    }


def by_group(material: Material, key: Callable[[Partition], Key]) -> list[Held]:
    """Hold out each group of anchors in turn; anchors without a memory utilisation are in none."""
    rows, memory = material.values("mem_util_percent")
    points = [material.anchors[row] for row in rows]
    groups = [key(point.partition) for point in points]
    columns = np.column_stack([features_of([point.partition for point in points]).columns, np.log(memory)])
    logs = np.log(np.array([point.throughput_images_per_s for point in points]) / memory)  # images/s per percent
    # Matrices of a few hundred rows: further threads only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        covariance = ANYTHING**2 + LOOSE**2 * columns @ columns.T
        covariance += AMPLITUDE**2 * matern(columns, columns, np.append(SCALES, MEMORY_SCALE))
        result = []
        for group in sorted(set(groups)) if len(set(groups)) > 1 else []:
            out = np.array([its == group for its in groups])
            if (~out).sum() >= FEWEST:
                said, sd = predict_held(covariance[np.ix_(~out, ~out)], covariance[np.ix_(out, ~out)], np.diag(covariance)[out], logs[~out])
                off = said - logs[out]
                result += [Held(group, float(np.expm1(one)), float(one / its)) for one, its in zip(off, sd, strict=True)]
    return result


def predict_held(known: Floats, cross: Floats, own: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Logarithms of rows held out, and their sds. Shapes: (held,).

    `known` are covariances of the rows that were kept, (kept, kept), `cross` those of the rows held out with them, (held, kept), `own` the
    variances of the rows held out, (held,), and `logs` what was measured, (kept,).
    """
    factor = cho_factor(known + NOISE**2 * np.eye(len(known)), lower=True)
    said: Floats = logs.mean() + cross @ cho_solve(factor, logs - logs.mean())
    explained = solve_triangular(factor[0], cross.T, lower=True)
    return said, np.sqrt(np.clip(own - np.einsum("ij,ij->j", explained, explained), 0.0, None) + NOISE**2)
