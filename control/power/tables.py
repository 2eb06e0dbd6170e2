"""Ladders of clocks, throttles and batches, and what a model predicts of partitions over all clocks, computed once each."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from .terms import Partition, Settings, Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .terms import Anchor, Floats, Knobs, Model, Platform, Speed, Tenant


def speeds_of(knobs: Knobs) -> tuple[Speed, tuple[float, ...]]:
    """What sets the pace here and its states, ascending: the clock, else the throttle. Raises: Unsupported, where nothing does."""
    if knobs.sm_mhz:
        return "sm_mhz", knobs.sm_mhz
    if knobs.throttle:
        return "throttle", knobs.throttle
    raise Unsupported("neither a clock nor a throttle can be set here.")


def at_speed(settings: Settings, name: Speed, value: float) -> Settings:
    """The same settings at another clock or throttle."""
    return replace(settings, sm_mhz=value) if name == "sm_mhz" else replace(settings, throttle=value)


def speed_in(settings: Settings, name: Speed) -> float | None:
    """The clock or throttle of settings."""
    return settings.sm_mhz if name == "sm_mhz" else settings.throttle


def nearest(ladder: Sequence[float], value: float) -> int:
    """The index of the rung nearest to `value`, of two the lower one."""
    above = bisect_right(ladder, value)
    return min((at for at in (above - 1, above) if 0 <= at < len(ladder)), key=lambda at: (abs(ladder[at] - value), at))


def at_most(ladder: Sequence[float], value: float) -> int:
    """The index of the highest rung that is not above `value`; 0 where all are."""
    return max(bisect_right(ladder, value) - 1, 0)


def clamped(index: int, ladder: Sequence[float]) -> int:
    """The index itself, or that of the end it ran past."""
    return min(max(index, 0), len(ladder) - 1)


def batches_of(ladder: Sequence[int], knobs: Knobs) -> tuple[int, ...]:
    """The rungs of an algorithm's ladder that exist here; where fewer than two do, the back-end's own."""
    here = tuple(batch for batch in ladder if batch in knobs.batches)
    return here if len(here) > 1 else knobs.batches


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
    return Partition(tuple(tenant.share_percent for tenant in tenants), tuple(tenant.batch for tenant in tenants))
