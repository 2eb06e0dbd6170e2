"""Partitions looked at on every supported clock, at one memory clock: which of them has a clock within the cap, and its best one."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import numpy as np

from control.errors import Refused

from .neighbours import Tiles, partition_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from control.power.terms import Anchor, Floats, Model, Platform


@runtime_checkable
class Unsure(Protocol):
    """A model that knows how far from the real ones its predictions may be."""

    def power_sd_w(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """One standard deviation, W. Shape: that of `Model.power_w`."""

    def throughput_sd_images_per_s(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """One standard deviation. Shape: that of `Model.throughput_images_per_s`."""


@dataclass(frozen=True, slots=True)
class Cap:
    """What must not be exceeded: predicted power, `margin_w` and `sds` standard deviations of the model's own together."""

    cap_w: float
    margin_w: float = 0.0
    sds: float = 0.0


@dataclass(frozen=True, slots=True)
class Found:
    """The best clock of a partition, and what it gives there.

    `sure_images_per_s` is the throughput less one standard deviation of the model's own, where it knows it.
    """

    tiles: Tiles
    sm_mhz: float
    throughput_images_per_s: float
    power_w: float
    sure_images_per_s: float

    def rank(self, images_per_s: float) -> tuple[float, float, Tiles]:
        """What sorts the best first: images/s, one or the other; then less power; then anything, as long as it is always the same."""
        return -images_per_s, self.power_w, self.tiles


@dataclass(slots=True)
class Looking:
    """One memory clock's model and what was seen with it. `smallest_cap_w` is the smallest cap that any partition seen would keep."""

    model: Model
    sm_mhz: Floats
    cap: Cap
    smallest_cap_w: float = np.inf
    seen: set[Tiles] = field(default_factory=set)

    def at(self, asked: Iterable[Tiles]) -> list[Found]:
        """Answer those not seen before that have a clock within the cap, each at its best one. What is not a number is not within it."""
        new = [tiles for tiles in dict.fromkeys(asked) if tiles not in self.seen]
        if not new:
            return []
        self.seen.update(new)
        anchors = self.model.anchor([partition_of(tiles) for tiles in new])
        anchor = _as_column(anchors)
        power_w = self.model.power_w(anchor, self.sm_mhz)
        needed_w = power_w + self.cap.margin_w
        if self.cap.sds:
            needed_w = needed_w + self.cap.sds * _unsure(self.model).power_sd_w(anchor, self.sm_mhz)
        throughput = self.model.throughput_images_per_s(anchor, self.sm_mhz)
        throughput = np.where((needed_w <= self.cap.cap_w) & ~np.isnan(throughput), throughput, -np.inf)
        self.smallest_cap_w = min(self.smallest_cap_w, float(np.min(needed_w, initial=np.inf, where=~np.isnan(needed_w))))
        best = np.argmax(throughput, axis=1)
        clock, rows = self.sm_mhz[best], np.arange(len(new))
        given, taken = throughput[rows, best], power_w[rows, best]
        sure = given - self.model.throughput_sd_images_per_s(anchors, clock) if isinstance(self.model, Unsure) else given
        return [
            Found(tiles, *map(float, numbers))
            for tiles, *numbers in zip(new, clock, given, taken, sure, strict=True)
            if numbers[1] > -np.inf
        ]


def supported(model: Model, platform: Platform) -> Floats:
    """Answer the clocks that the platform supports, up to its anchor's and within what the model was fitted on, ascending.

    Raises: Refused, where there is none.
    """
    low, high = model.sm_range_mhz
    clocks = [one for one in platform.sm_mhz if low <= one <= min(high, platform.anchor_mhz)]
    if not clocks:
        raise Refused(f"The model of {model.network} was fitted from {low:g} to {high:g}; {platform.name} supports no clock of these.")
    return np.array(clocks, dtype=np.float64)


def _unsure(model: Model) -> Unsure:
    if isinstance(model, Unsure):
        return model
    raise Refused(f"The model of {model.network} on {model.gpu} does not know how sure it is: give the margin itself.")


def _as_column(anchor: Anchor) -> Anchor:
    """Answer the anchor, and what a model added to it, in shape (partitions, 1), to stand against clocks."""
    return replace(anchor, **{one.name: cast("Floats", getattr(anchor, one.name))[:, None] for one in fields(anchor)})
