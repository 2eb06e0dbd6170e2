"""What a model says of partitions over all clocks, asked once each: looking a setting up again costs next to nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .terms import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .terms import Anchor, Floats, Model, Platform, Tenant


@dataclass(frozen=True, slots=True)
class Curve:
    """One partition at one memory clock; `power_w` and `throughput_images_per_s` have shape (states of the clock,)."""

    anchor: Anchor
    power_w: Floats
    throughput_images_per_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """A network's models by memory clock, MHz, on a platform, and the curves that were asked for."""

    models: Mapping[float, Model]
    platform: Platform
    _known: dict[tuple[float, Partition], Curve] = field(default_factory=dict)

    def curve(self, mem_mhz: float, partition: Partition) -> Curve:
        """What the model of this memory clock says over `platform.sm_mhz`."""
        known = self._known.get((mem_mhz, partition))
        if known is None:
            model, clocks = self.models[mem_mhz], np.array(self.platform.sm_mhz)
            anchor = model.anchor([partition])
            known = Curve(anchor, model.power_w(anchor, clocks), model.throughput_images_per_s(anchor, clocks))
            self._known[mem_mhz, partition] = known
        return known


def partition_of(tenants: Sequence[Tenant]) -> Partition:
    """The shares and batches of processes."""
    return Partition(tuple(one.share_percent for one in tenants), tuple(one.batch for one in tenants))
