"""The original partitioner, unchanged: greedy by predicted throughput per percent of share.

Kept for comparison, defects included: the clock never falls below 500 MHz during the search, a
lowered memory clock stays low, power may end up to 1 W above the cap, a process that makes things
worse is admitted rather than none, and if handing out the leftover share leaves no clock under the
cap, the old clock is kept. Source: PctoDL's code, as its study describes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .terms import Clocks, Infeasible, Partition

if TYPE_CHECKING:
    from .terms import Anchor, Floats, Model, Platform


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """A partition and its clocks, with the model's predictions.

    `cap_w` is the cap that was searched under, the margin taken off. `evaluations` counts the
    partitions that the model was asked for, one a memory clock. `guard` is the factor on `power_w`
    that the cap must hold.
    """

    setting: Clocks
    throughput_images_per_s: float
    power_w: float
    sm_util_percent: float
    mem_util_percent: float
    cap_w: float
    evaluations: int
    guard: float = 1.0

    @property
    def feasible(self) -> bool:
        """Return True if the guarded power is within the cap, as always in our own search."""
        return self.guard * self.power_w <= self.cap_w


def figures_of(model: Model, settings: Sequence[Clocks]) -> list[list[float]]:
    """Return images/s, power, and SM and memory utilisation (% of time), with a row per setting."""
    anchor = model.anchor([setting.partition for setting in settings])
    clocks = np.array([setting.sm_mhz for setting in settings], dtype=np.float64)
    figures = model.throughput_images_per_s(anchor, clocks), model.power_w(anchor, clocks)
    rows: list[list[float]] = np.stack(
        [*figures, anchor.sm_util_percent, anchor.mem_util_percent], axis=1
    ).tolist()
    return rows


def answer_of(
    models: Mapping[float, Model],
    setting: Clocks,
    cap_w: float,
    evaluations: int,
    *,
    guard: float = 1.0,
) -> PartitionAnswer:
    ((images_per_s, power_w, sm_util, mem_util),) = figures_of(models[setting.mem_mhz], [setting])
    return PartitionAnswer(
        setting, images_per_s, power_w, sm_util, mem_util, cap_w, evaluations, guard
    )


STEP_PERCENT = 5
LADDER = (4, 8, 16, 32, 64, 96, 128, 192, 256)
MOST_BATCH = {"vgg19": 160}  # what fits into the memory of a GPU, by network


def fits(network: str, batch: int) -> bool:
    """Return True if the network's activations for this batch are known to fit into memory."""
    return batch <= MOST_BATCH.get(network, batch)


def greedy_batches(share_percent: int, network: str) -> list[int]:
    """Return the batches that the original tries for a share: 0.8 to 6.4 images per percent.

    Source: PctoDL.
    """
    low = max(LADDER[0], 4 * share_percent // 5)
    result = [
        batch
        for batch in LADDER
        if low <= batch <= 32 * share_percent // 5 and fits(network, batch)
    ]
    return result or [
        min((batch for batch in LADDER if fits(network, batch)), key=lambda batch: abs(batch - low))
    ]


HALVINGS = 12
CLOSE_W = 1.0
NARROW_MHZ = 100.0
NARROW_SHARE = 0.2


def largest_clock(
    model: Model, anchor: Anchor, cap_w: float, between_mhz: tuple[float, float], *, narrow: bool
) -> Floats:
    """Return the highest clocks (MHz) within the cap, shape (partitions,); NaN if none is.

    The clock is within 1 W of the cap, on either side, and not rounded to a supported clock.
    `narrow` is the original's slow way: the range is first cut down around a linear estimate, and a
    power of exactly the cap at the upper end is not sufficient yet.
    Source: PctoDL's code, as its study describes it.
    """
    low, high = (np.full(anchor.throughput_images_per_s.shape, value) for value in between_mhz)
    at_low, at_high = model.power_w(anchor, low), model.power_w(anchor, high)
    fits = at_high < cap_w if narrow else at_high <= cap_w
    clock = np.where(at_low > cap_w, np.nan, high)
    sought = ~((at_low > cap_w) | fits)
    if narrow:
        low, high = _narrowed(model, anchor, cap_w, (low, at_low), (high, at_high))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        power_w = model.power_w(anchor, middle)
        close = sought & (np.abs(power_w - cap_w) <= CLOSE_W)
        clock[close] = middle[close]
        sought &= ~close
        under = power_w < cap_w
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    clock[sought] = low[sought]
    return clock


def _narrowed(
    model: Model,
    anchor: Anchor,
    cap_w: float,
    lower: tuple[Floats, Floats],
    upper: tuple[Floats, Floats],
) -> tuple[Floats, Floats]:
    (low, at_low), (high, at_high) = lower, upper
    rise = at_high - at_low
    part = np.clip(np.divide(cap_w - at_low, rise, out=np.zeros_like(rise), where=rise != 0), 0, 1)
    estimate = low + part * (high - low)
    width = np.maximum(NARROW_MHZ, NARROW_SHARE * (high - low))
    near_low, near_high = np.maximum(low, estimate - width), np.minimum(high, estimate + width)
    holds = (model.power_w(anchor, near_low) <= cap_w) & (model.power_w(anchor, near_high) >= cap_w)
    return np.where(holds, near_low, low), np.where(holds, near_high, high)


FLOOR_MHZ = 500.0


@dataclass(slots=True)
class _Search:
    models: Mapping[float, Model]
    platform: Platform
    cap_w: float
    sm_mhz: float
    mem_mhz: float
    throughput_images_per_s: float = 0.0
    evaluations: int = 0

    def memories(self) -> list[float]:
        """Return the memory clocks that may still be chosen, which never rise."""
        return [value for value in self.platform.searched_mem_mhz if value <= self.mem_mhz]

    def solved(
        self, partitions: Sequence[Partition], *, narrow: bool
    ) -> tuple[Floats, Floats, Floats]:
        """Return (throughput, clock, memory clock) of partitions, at their best memory clock.

        Throughput is -inf without a possible clock. The clock may rise only where that of the
        memory is lowered. If the highest allowed clock keeps the cap, it is rounded down to a
        supported one.
        """
        best = (
            np.full(len(partitions), -np.inf),
            np.zeros(len(partitions)),
            np.zeros(len(partitions)),
        )
        for mem_mhz in self.memories():
            model = self.models[mem_mhz]
            anchor = model.anchor(partitions)
            high_mhz = self.sm_mhz if mem_mhz == self.mem_mhz else self.platform.sm_mhz[-1]
            clock = largest_clock(model, anchor, self.cap_w, (FLOOR_MHZ, high_mhz), narrow=narrow)
            clock[clock == high_mhz] = self.supported(high_mhz)
            possible = ~np.isnan(clock)
            throughput = model.throughput_images_per_s(anchor, np.where(possible, clock, FLOOR_MHZ))
            better = possible & (throughput > best[0])
            for column, new in zip(
                best, (throughput, clock, np.full_like(clock, mem_mhz)), strict=True
            ):
                column[better] = new[better]
        return best

    def round_down(self, admitted: Partition) -> None:
        self.sm_mhz = self.supported(self.sm_mhz)
        model = self.models[self.mem_mhz]
        self.throughput_images_per_s = float(
            model.throughput_images_per_s(model.anchor([admitted]), np.array([self.sm_mhz]))[0]
        )

    def supported(self, sm_mhz: float) -> float:
        """Return the highest supported clock at or below `sm_mhz`."""
        return self.platform.sm_mhz[max(0, bisect_right(self.platform.sm_mhz, sm_mhz) - 1)]


def greedy(
    models: Mapping[float, Model],
    platform: Platform,
    cap_w: float,
    *,
    network: str,
    fast: bool = True,
    margin_w: float = 0.0,
) -> PartitionAnswer:
    """Search as the original does, with models by memory clock and a cap lowered by `margin_w`.

    `fast` is what the original calls vectorised: clocks are rounded down to supported ones;
    otherwise they are left as they were found. The answer may be above the cap (see
    `Answer.feasible`). Raises: Infeasible.
    """
    search = _Search(
        models, platform, cap_w - margin_w, platform.sm_mhz[-1], max(platform.searched_mem_mhz)
    )
    shares: list[int] = []
    batches: list[int] = []
    while (free := 100 - sum(shares)) >= STEP_PERCENT:
        tiles = [
            (share, batch)
            for share in range(STEP_PERCENT, free + 1, STEP_PERCENT)
            for batch in greedy_batches(share, network)
        ]
        search.evaluations += len(tiles) * len(search.memories())
        result = search.solved(
            [_partition([*shares, share], [*batches, batch]) for share, batch in tiles],
            narrow=not fast,
        )
        scores = (result[0] - search.throughput_images_per_s) / [share for share, _ in tiles]
        at = int(np.argmax(scores))  # the first of equals
        if scores[at] == -np.inf:
            break
        shares.append(tiles[at][0])
        batches.append(tiles[at][1])
        search.throughput_images_per_s, search.sm_mhz, search.mem_mhz = (
            float(array[at]) for array in result
        )
        if fast:
            search.round_down(_partition(shares, batches))
    if not shares:
        raise Infeasible(
            f"the greedy search found no clock of at least {FLOOR_MHZ:.0f} MHz that keeps one "
            f"process of {network} on {platform.name} within {search.cap_w:.1f} W.",
            None,
        )
    if free > 0:
        _hand_out(search, shares, batches, free, fast=fast)
    setting = Clocks(_partition(shares, batches), search.sm_mhz, search.mem_mhz)
    return answer_of(models, setting, search.cap_w, search.evaluations)


def _hand_out(
    search: _Search, shares: list[int], batches: list[int], free: int, *, fast: bool
) -> None:
    for turn in range(free // STEP_PERCENT):
        shares[turn % len(shares)] += STEP_PERCENT
    throughput, sm_mhz, mem_mhz = (
        float(array[0]) for array in search.solved([_partition(shares, batches)], narrow=True)
    )
    if throughput > -np.inf:
        search.sm_mhz, search.mem_mhz = search.supported(sm_mhz) if fast else sm_mhz, mem_mhz


def _partition(shares: Sequence[int], batches: Sequence[int]) -> Partition:
    return Partition(tuple(map(float, shares)), tuple(batches))
