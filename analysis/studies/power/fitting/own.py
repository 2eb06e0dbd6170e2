"""Fitting the project's own model: surfaces at the anchor clock, one response to the clock each for throughput and power, static power."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn's; it ships no types

from control.power.models.features import see
from control.power.models.own import SURFACES, Own
from control.power.models.response import NONE, one_clock

from . import clocks, static, surface_fit
from .material import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control.power.models.response import Response, Static
    from control.power.models.surface import Surface
    from control.power.terms import Floats

    from .material import Material, Point

SMALLEST = 1e-3  # of dynamic power, in its unit: a partition that draws no more than the idle board


def fit(material: Material, start: Mapping[str, Surface] | None = None, *, utilisation: bool = True) -> Own:
    """Fit everything the material has. `start`: surfaces of a fit to nearly the same rows, where the search begins."""
    idle = static.fit(*np.array(material.static).T) if material.static else NONE
    partitions = tuple(point.partition for point in material.anchors)
    surfaces = {}
    for name, quantity in zip(SURFACES, QUANTITIES, strict=True):
        if not utilisation and name in SURFACES[2:]:
            continue
        rows, values = material.values(quantity)
        if len(rows) < 2:
            continue
        if quantity == "power":
            values = np.maximum(values - idle.at(np.array([material.anchor])), SMALLEST)
        before = (start or {}).get(name)
        # Matrices of a few hundred rows: further threads only wait for each other.
        with threadpool_limits(1, user_api="blas"):
            surfaces[name] = surface_fit.fit(see([partitions[row] for row in rows]), values, rows, before)
    return fit_responses(
        material,
        Own(
            network=material.network,
            gpu=material.gpu,
            mem_mhz=material.mem_mhz,
            clock=material.clock,
            cap_unit=material.cap_unit,
            sm_range_mhz=(material.anchor, material.anchor),
            partitions=partitions,
            surfaces=surfaces,
            throughput_response=one_clock(material.anchor),
            power_response=one_clock(material.anchor),
            static=idle,
            held_out={},
            sources={},
        ),
    )


def fit_responses(material: Material, model: Own) -> Own:
    """The model with what the clock makes of it fitted to the material."""
    measured = [one.clock for one in (*material.anchors, *material.others)]
    return replace(
        model,
        sm_range_mhz=(min(*measured, material.anchor), max(*measured, material.anchor)),
        throughput_response=_response(material, "throughput_images_per_s", NONE),
        power_response=_response(material, "power", model.static),
    )


def _response(material: Material, quantity: str, idle: Static) -> Response:
    """The curve over the clock, from all partitions that were measured at two clocks or more."""
    series: dict[object, list[Point]] = defaultdict(list)
    for point in (*material.others, *material.anchors):
        if getattr(point, quantity) is not None:
            series[point.partition].append(point)
    usable = [_over_clock(points, quantity, idle) for points in series.values() if len({round(point.clock, 3) for point in points}) > 1]
    reaches_below = any(clock.min() < material.anchor for clock, _ in usable)
    return clocks.fit(usable, material.anchor) if reaches_below else one_clock(material.anchor)


def _over_clock(points: list[Point], quantity: str, idle: Static) -> tuple[Floats, Floats]:
    clock = np.array([point.clock for point in points])
    values = np.array([getattr(point, quantity) for point in points], dtype=np.float64)
    return clock, np.maximum(values - idle.at(clock), SMALLEST)
