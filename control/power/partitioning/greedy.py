"""The original's partitioner, to the letter: one process after another, by the gain in predicted throughput per percent of share.

Kept to compare with, defects included: the clock never falls below 500 MHz while it searches, a memory clock once lowered stays low, power
may end up to 1 W above the cap, a process that makes things worse is admitted rather than none, and where handing out the leftover share
leaves no clock under the cap the old one is kept. Source: PctoDL's code, as its study describes it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from control.power.terms import Partition, Setting

from . import clocks
from .batches import STEP_PERCENT, greedy_batches
from .predicted import answer
from .terms import Infeasible, rounded_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from control.power.terms import Floats, Model, Platform

    from .terms import Answer

FLOOR_MHZ = 500.0


@dataclass(slots=True)
class _Search:
    """Where the search stands: the clocks, what they give, and how often the model was asked."""

    models: Mapping[float, Model]
    platform: Platform
    cap_w: float
    sm_mhz: float
    mem_mhz: float
    throughput_images_per_s: float = 0.0
    evaluations: int = 0

    def memories(self) -> list[float]:
        """Memory clocks that may still be chosen: it never rises again."""
        return [one for one in self.platform.searched_mem_mhz if one <= self.mem_mhz]

    def solved(self, partitions: Sequence[Partition], *, narrow: bool) -> tuple[Floats, Floats, Floats]:
        """Answer (throughput, clock, memory clock) of each partition at its best memory clock; throughput is -inf where none will do.

        The clock may rise only where that of the memory is lowered. Where the highest it may be is within the cap, it is the supported one
        at or below.
        """
        best = np.full(len(partitions), -np.inf), np.zeros(len(partitions)), np.zeros(len(partitions))
        for mem_mhz in self.memories():
            model = self.models[mem_mhz]
            anchor = model.anchor(partitions)
            high_mhz = self.sm_mhz if mem_mhz == self.mem_mhz else self.platform.sm_mhz[-1]
            clock = clocks.largest(model, anchor, self.cap_w, (FLOOR_MHZ, high_mhz), narrow=narrow)
            clock[clock == high_mhz] = self.supported(high_mhz)
            possible = ~np.isnan(clock)
            throughput = model.throughput_images_per_s(anchor, np.where(possible, clock, FLOOR_MHZ))
            better = possible & (throughput > best[0])
            for kept, new in zip(best, (throughput, clock, np.full_like(clock, mem_mhz)), strict=True):
                kept[better] = new[better]
        return best

    def round_down(self, admitted: Partition) -> None:
        """Go on from the supported clock below, and from what the admitted processes give there."""
        self.sm_mhz = self.supported(self.sm_mhz)
        model = self.models[self.mem_mhz]
        self.throughput_images_per_s = float(model.throughput_images_per_s(model.anchor([admitted]), np.array([self.sm_mhz]))[0])

    def supported(self, sm_mhz: float) -> float:
        """Answer the supported clock at or below `sm_mhz`."""
        return self.platform.sm_mhz[max(0, bisect_right(self.platform.sm_mhz, sm_mhz) - 1)]


def greedy(  # noqa: PLR0913  # what `search.best` takes
    models: Mapping[float, Model], platform: Platform, cap_w: float, *, network: str, fast: bool = True, margin_w: float = 0.0
) -> Answer:
    """Search as the original does; `models` are by memory clock, `margin_w` is taken off the cap.

    `fast` is what the original calls vectorised: clocks are rounded down to supported ones; otherwise they are left as they were found.
    The answer may be above the cap (see `Answer.feasible`). Raises: Infeasible.
    """
    search = _Search(models, platform, cap_w - margin_w, platform.sm_mhz[-1], max(platform.searched_mem_mhz))
    shares: list[int] = []
    batches: list[int] = []
    while (free := 100 - sum(shares)) >= STEP_PERCENT:
        tiles = [(share, batch) for share in range(STEP_PERCENT, free + 1, STEP_PERCENT) for batch in greedy_batches(share, network)]
        search.evaluations += len(tiles) * len(search.memories())
        found = search.solved([_partition([*shares, share], [*batches, batch]) for share, batch in tiles], narrow=not fast)
        scores = (found[0] - search.throughput_images_per_s) / [share for share, _ in tiles]
        at = int(np.argmax(scores))  # the first of equals
        if scores[at] == -np.inf:
            break
        shares.append(tiles[at][0])
        batches.append(tiles[at][1])
        search.throughput_images_per_s, search.sm_mhz, search.mem_mhz = (float(one[at]) for one in found)
        if fast:
            search.round_down(_partition(shares, batches))
    if not shares:
        raise _infeasible(search, network, margin_w)
    if free > 0:
        _hand_out(search, shares, batches, free, fast=fast)
    setting = Setting(_partition(shares, batches), search.sm_mhz, search.mem_mhz)
    return answer(models, setting, search.cap_w, search.evaluations, profiled=False)


def _hand_out(search: _Search, shares: list[int], batches: list[int], free: int, *, fast: bool) -> None:
    """Give what share is left to the processes in turn, and look for clocks again; where there are none the old ones stay."""
    for turn in range(free // STEP_PERCENT):
        shares[turn % len(shares)] += STEP_PERCENT
    throughput, sm_mhz, mem_mhz = (float(one[0]) for one in search.solved([_partition(shares, batches)], narrow=True))
    if throughput > -np.inf:
        search.sm_mhz, search.mem_mhz = search.supported(sm_mhz) if fast else sm_mhz, mem_mhz


def _partition(shares: Sequence[int], batches: Sequence[int]) -> Partition:
    return Partition(tuple(map(float, shares)), tuple(batches))


def _infeasible(search: _Search, network: str, margin_w: float) -> Infeasible:
    """Say what the least power of one process at the floor of the search is."""
    alone = [
        Partition((float(share),), (batch,)) for share in range(STEP_PERCENT, 101, STEP_PERCENT) for batch in greedy_batches(share, network)
    ]
    floor = np.array([FLOOR_MHZ])
    least_w = min(float(np.min(model.power_w(model.anchor(alone), floor))) for model in search.models.values())
    return Infeasible(
        f"the greedy search has no clock from {FLOOR_MHZ:.0f} MHz on that keeps one process of {network} on {search.platform.name} within "
        f"{search.cap_w:.1f} W; its smallest cap is {rounded_up(least_w + margin_w)} W.",
        least_w + margin_w,
    )
