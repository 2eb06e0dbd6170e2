"""Fitting the project's own model: a Gaussian process for each quantity that the traces have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from control.power.models.own import SURFACES, Own, columns_of, fit_surface

from .material import QUANTITIES, Material

if TYPE_CHECKING:
    from control.power.models.own import Surface


def fit(material: Material, *, like: Own | None = None, utilisation: bool = True) -> Own:
    """Fit everything the material has; utilisations at the anchor clock alone, where they are answered.

    With `like`, the kernel's scales are that model's, and are not searched.
    """
    points = (*material.anchors, *material.others)
    columns = columns_of([point.partition for point in points], np.array([point.clock for point in points]) / material.anchor)
    surfaces: dict[str, Surface] = {}
    for name, quantity in zip(SURFACES, QUANTITIES, strict=True):
        is_utilisation = name in SURFACES[2:]
        values = [getattr(point, quantity) for point in (material.anchors if is_utilisation else points)]
        rows = [row for row, value in enumerate(values) if value is not None and value > 0.0]
        if len(rows) > 1 and (utilisation or not is_utilisation):
            surfaces[name] = fit_surface(
                rows, columns[rows], np.array([values[row] for row in rows]), like.surfaces[name].theta if like else None
            )
    return Own(
        network=material.network,
        gpu=material.gpu,
        mem_mhz=material.mem_mhz,
        clock=material.clock,
        cap_unit=material.cap_unit,
        anchor_clock=material.anchor,
        points=tuple((point.partition, point.clock) for point in points),
        surfaces=surfaces,
        guard=None,
        held_out={},
        sources={},
    )
