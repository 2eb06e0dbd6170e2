"""The best measured partition under a cap and a latency bound, as the model has it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from .terms import Infeasible, Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .tables import Tables
    from .terms import Anchor, Partition


def best_within(tables: Tables, partitions: Sequence[Partition], cap: float, slo_ms: float) -> Setting:
    """The setting of most images per second at most `cap` and with every tenant's batch done in `slo_ms`.

    A tenant is taken to get images in proportion to its share. Raises: Infeasible, with the smallest cap that has a setting in time.
    """
    clocks = np.array(tables.platform.sm_mhz)
    slowest = np.array([waited_for(one) for one in partitions])[:, None]
    found: list[tuple[float, Setting]] = []
    least = np.inf
    for mem_mhz, model in tables.models.items():
        anchor = _column(model.anchor(partitions))
        power, speed = model.power_w(anchor, clocks), model.throughput_images_per_s(anchor, clocks)
        in_time = 1000 * slowest <= slo_ms * speed
        least = min(least, float(np.min(np.where(in_time, power, np.inf))))
        worth = np.where(in_time & (power <= cap), speed, -np.inf)
        row, at = divmod(int(np.argmax(worth)), len(clocks))
        if worth[row, at] > 0:
            found.append((float(worth[row, at]), Setting(partitions[row], float(clocks[at]), mem_mhz)))
    if not found:
        within = "at any cap" if least == np.inf else f"within {cap:g}; the smallest cap for it is {least:.1f}"
        raise Infeasible(f"no measured partition has every batch done in {slo_ms:g} ms {within}.", least if least < np.inf else None)
    return max(found, key=lambda one: one[0])[1]


def waited_for(partition: Partition) -> float:
    """How many images all tenants together finish while the one that waits longest finishes a batch."""
    whole = sum(partition.shares)
    return max(batch * whole / share for share, batch in zip(partition.shares, partition.batches, strict=True))


def _column(anchor: Anchor) -> Anchor:
    """The anchor in shape (partitions, 1), to stand against clocks."""
    return replace(anchor, **{one.name: getattr(anchor, one.name)[:, None] for one in fields(anchor)})
