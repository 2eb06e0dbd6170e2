"""Our search: the profiled partition and clock with most predicted images/s under a cap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from control.errors import Refused

from . import catalog
from .greedy import PartitionAnswer, answer_of, fits
from .terms import SPOKEN, Clocks, Infeasible, Partition, unit_of

if TYPE_CHECKING:
    from .terms import Floats, Model, Platform


def waited_for(partition: Partition) -> float:
    """Return the images that all tenants finish in the time of the slowest tenant's batch.

    A tenant is taken to get images in proportion to its share.
    """
    whole = sum(partition.shares)
    return max(
        batch * whole / share
        for share, batch in zip(partition.shares, partition.batches, strict=True)
    )


def supported(model: Model, platform: Platform) -> Floats:
    """Return the platform's clocks up to the anchor clock that the model covers, ascending.

    Raises: Refused, where there is none.
    """
    low, high = model.sm_range_mhz
    clocks = [value for value in platform.sm_mhz if low <= value <= min(high, platform.anchor_mhz)]
    if not clocks:
        raise Refused(
            f"The model of {model.network} was fitted from {low:g} to {high:g}; {platform.name} "
            "supports no clock in that range."
        )
    return np.array(clocks, dtype=np.float64)


def best(
    models: Mapping[float, Model],
    platform: Platform,
    cap_w: float,
    *,
    network: str,
    margin_w: float = 0.0,
    only: Sequence[Partition] | None = None,
    slo_ms: float | None = None,
    guard: float | None = None,
) -> PartitionAnswer:
    """Return the setting with the highest predicted throughput and guarded power up to `cap_w`.

    Guarded power is the predicted power times `guard` (by default each model's own guard band, 1
    where it was never judged on held-out rows), plus `margin_w`. `models` are by memory clock, MHz.
    Partitions are `only` those given, or those that the models were fitted on, or the profiling
    grid. With `slo_ms`, every tenant must finish a batch within it.
    Raises: Infeasible, with the smallest cap that a setting keeps; Refused, if no clock is covered.
    """
    partitions = _usable(profiled(models) if only is None else only, network)
    searched = [models[mem_mhz] for mem_mhz in platform.searched_mem_mhz if mem_mhz in models]
    slowest = np.array([waited_for(partition) for partition in partitions])[:, None]
    found: list[tuple[float, float, int, Clocks, float]] = []
    smallest = inf
    for model in searched:
        clocks, factor = supported(model, platform), guard or getattr(model, "guard", None) or 1.0
        anchor = model.anchor(partitions).column()
        power, images = model.power_w(anchor, clocks), model.throughput_images_per_s(anchor, clocks)
        needed = factor * power + margin_w
        possible = ~np.isnan(images) & (
            images > 0 if slo_ms is None else 1000 * slowest <= slo_ms * images
        )
        smallest = min(
            smallest, float(np.min(needed, initial=inf, where=possible & ~np.isnan(needed)))
        )
        worth = np.where(possible & (needed <= cap_w), images, -inf)
        for row, at in enumerate(np.argmax(worth, axis=1)):
            if worth[row, at] > -inf:
                setting = Clocks(partitions[row], float(clocks[at]), model.mem_mhz)
                # Of equals the one that draws less, then any, as long as it is always the same.
                found.append((-float(worth[row, at]), float(power[row, at]), row, setting, factor))
    if not found:
        raise _infeasible(searched[0], platform, cap_w, margin_w, slo_ms, smallest)
    *_, setting, factor = min(found, key=lambda each: each[:3])
    return answer_of(
        models, setting, cap_w - margin_w, len(partitions) * len(searched), guard=factor
    )


def profiled(models: Mapping[float, Model]) -> list[Partition]:
    """Return the partitions that the models were fitted on, or the profiling grid if unknown."""
    return [one for model in models.values() for one in getattr(model, "partitions", ())] or list(
        catalog.grid()
    )


def _usable(partitions: Sequence[Partition], network: str) -> list[Partition]:
    usable = {
        tuple(sorted(zip(one.shares, one.batches, strict=True), reverse=True))
        for one in partitions
        if all(fits(network, batch) for batch in one.batches)
    }
    return [
        Partition(tuple(share for share, _ in tiles), tuple(batch for _, batch in tiles))
        for tiles in sorted(usable)
    ]


def _infeasible(
    model: Model,
    platform: Platform,
    cap_w: float,
    margin_w: float,
    slo_ms: float | None,
    smallest_w: float,
) -> Infeasible:
    unit = SPOKEN.get(unit_of(model), unit_of(model))
    less = f" less {margin_w:g} {unit}" if margin_w else ""
    in_time = "" if slo_ms is None else f" with every batch done in {slo_ms:g} ms"
    what = f"No partition of {model.network} on {platform.name} stays within"
    if smallest_w == inf:
        return Infeasible(f"{what} any cap{in_time}.", None)
    return Infeasible(
        f"{what} {cap_w:g} {unit}{less}{in_time}; the smallest feasible cap is "
        f"{ceil(100 * smallest_w) / 100:.2f} {unit}.",
        smallest_w,
    )
