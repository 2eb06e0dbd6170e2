"""Our own partitioner: everything that was profiled, then mixes of its processes by local search, at every supported clock.

Nothing is assumed of the model's curves: each partition is looked at on every supported clock, so a power that falls with the clock or a
jump in the throughput cannot lead to an answer above the cap. Deterministic: no time and no random number decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nlargest
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from control.errors import Refused

from . import catalog
from .greedy import PartitionAnswer, answer_of, fits, rounded_up
from .terms import SPOKEN, Infeasible, Partition, Setting, unit_of

if TYPE_CHECKING:
    from .terms import Anchor, Floats, Model, Platform

Tile = tuple[float, int]
Tiles = tuple[Tile, ...]


@dataclass(frozen=True)
class Space:
    """The partitions that may be searched: of tiles that were profiled, no more processes and no more share together than ever were."""

    tiles: tuple[Tile, ...]
    most_share: float
    most_processes: int

    @cached_property
    def batches(self) -> dict[float, list[int]]:
        shares = sorted({share for share, _ in self.tiles})
        return {share: [batch for other, batch in self.tiles if other == share] for share in shares}

    def nearest(self, share: float, batch: int) -> Tile:
        """Answer the tile of that share whose batch is nearest, the smaller of two."""
        return share, min(self.batches[share], key=lambda number: (abs(number - batch), number))

    def alike(self) -> list[Tiles]:
        most = {tile: min(self.most_processes, int(self.most_share / tile[0] + 1e-9)) for tile in self.tiles}
        return [(tile,) * count for tile in self.tiles for count in range(1, most[tile] + 1)]

    def around(self, tiles: Tiles) -> Iterator[Tiles]:
        free = self.most_share - sum(share for share, _ in tiles)
        if len(tiles) < self.most_processes:
            yield from (_sorted((*tiles, tile)) for tile in self.tiles if tile[0] <= free)
        kinds = dict.fromkeys(tiles)
        for kind in kinds:
            rest = _without(tiles, kind)
            yield from (_sorted((*rest, tile)) for tile in self.tiles if tile[0] <= free + kind[0])
            if rest:
                yield rest
            yield from (_sorted([(kind[0], batch) if tile == kind else tile for tile in tiles]) for batch in self.batches[kind[0]])
            for other in dict.fromkeys(rest):
                yield from self._between(_without(rest, other), kind, other)

    def _between(self, rest: Tiles, giver: Tile, taker: Tile) -> Iterator[Tiles]:
        """Move share from one process to another, as little or as much as there are shares for; all of it makes one of the two."""
        together = giver[0] + taker[0]
        for share in self.batches:
            if share > taker[0] and together - share in self.batches:
                yield _sorted((*rest, self.nearest(share, taker[1]), self.nearest(together - share, giver[1])))
        if together in self.batches:
            yield _sorted((*rest, self.nearest(together, giver[1] + taker[1])))


def tiles_of(partition: Partition) -> Tiles:
    return _sorted(zip(partition.shares, partition.batches, strict=True))


def partition_of_tiles(tiles: Tiles) -> Partition:
    """Answer the partition, largest process first."""
    return Partition(tuple(share for share, _ in tiles), tuple(batch for _, batch in tiles))


def _sorted(tiles: Sequence[Tile] | Iterator[Tile]) -> Tiles:
    return tuple(sorted(tiles, reverse=True))


def _without(tiles: Tiles, tile: Tile) -> Tiles:
    at = tiles.index(tile)
    return tiles[:at] + tiles[at + 1 :]


@runtime_checkable
class Unsure(Protocol):
    """A model that knows how far from the real ones its predictions may be."""

    def throughput_sd_images_per_s(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """One standard deviation. Shape: that of `Model.throughput_images_per_s`."""


@dataclass(frozen=True, slots=True)
class Cap:
    """What must not be exceeded: predicted power and `margin_w` together."""

    cap_w: float
    margin_w: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchedPartition:
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
    """One memory clock's model and what was seen with it. `smallest_cap` is the smallest cap that any partition seen would keep."""

    model: Model
    sm_mhz: Floats
    cap: Cap
    doubting: bool = True
    smallest_cap: float = np.inf
    seen: set[Tiles] = field(default_factory=set)

    def at(self, asked: Iterable[Tiles]) -> list[SearchedPartition]:
        """Answer those not seen before that have a clock within the cap, each at its best one. What is not a number is not within it."""
        new = [tiles for tiles in dict.fromkeys(asked) if tiles not in self.seen]
        if not new:
            return []
        self.seen.update(new)
        anchors = self.model.anchor([partition_of_tiles(tiles) for tiles in new])
        anchor = anchors.column()
        power_w = self.model.power_w(anchor, self.sm_mhz)
        needed_w = power_w + self.cap.margin_w
        throughput = self.model.throughput_images_per_s(anchor, self.sm_mhz)
        throughput = np.where((needed_w <= self.cap.cap_w) & ~np.isnan(throughput), throughput, -np.inf)
        self.smallest_cap = min(self.smallest_cap, float(np.min(needed_w, initial=np.inf, where=~np.isnan(needed_w))))
        best = np.argmax(throughput, axis=1)
        clock, rows = self.sm_mhz[best], np.arange(len(new))
        given, taken = throughput[rows, best], power_w[rows, best]
        doubt = self.model.throughput_sd_images_per_s(anchors, clock) if self.doubting and isinstance(self.model, Unsure) else 0.0
        sure = given - doubt
        return [
            SearchedPartition(tiles, *map(float, numbers))
            for tiles, *numbers in zip(new, clock, given, taken, sure, strict=True)
            if numbers[1] > -np.inf
        ]


def supported(model: Model, platform: Platform) -> Floats:
    """Answer the clocks that the platform supports, up to its anchor's and within what the model was fitted on, ascending.

    Raises: Refused, where there is none.
    """
    low, high = model.sm_range_mhz
    clocks = [value for value in platform.sm_mhz if low <= value <= min(high, platform.anchor_mhz)]
    if not clocks:
        raise Refused(f"The model of {model.network} was fitted from {low:g} to {high:g}; {platform.name} supports no clock of these.")
    return np.array(clocks, dtype=np.float64)


WORTH = 1.01  # a gain below what the original's own fits are off by in sample (0.96 %, by its stored scores) is none
BEAM = 6  # partitions whose surroundings are looked at together
ROUNDS = 12
GIVEN: Callable[[SearchedPartition], float] = attrgetter("throughput_images_per_s")
SURE: Callable[[SearchedPartition], float] = attrgetter("sure_images_per_s")


def best(
    models: Mapping[float, Model],
    platform: Platform,
    cap_w: float,
    *,
    network: str,
    margin_w: float = 0.0,
    max_processes: int | None = None,
    only: Sequence[Partition] | None = None,
) -> PartitionAnswer:
    """Answer the setting of the highest predicted throughput whose predicted power is at most `cap_w`.

    `margin_w` is kept free below the cap. `models` are by memory clock, MHz. Clocks are the supported ones up to the anchor's. Partitions
    are those that the models were fitted on, or the profiling grid; their processes are what mixes are made of, never more of them nor a
    larger share together; a controller has `only` those that can be set, and takes predictions for what they say, for it will see. There
    the model extrapolates: a mix is answered only where its throughput, less one standard deviation if the model knows it, is `WORTH` more
    than all that was profiled.
    Raises: Infeasible; Refused, where there is no model, clock or partition to search.
    """
    known = _usable(profiled(models) if only is None else only, network, max_processes)
    searched = [models[mem_mhz] for mem_mhz in platform.searched_mem_mhz if mem_mhz in models]
    if not searched:
        has, have = (", ".join(f"{value:g}" for value in some) or "none" for some in (platform.searched_mem_mhz, models))
        raise Refused(f"No model of {network} at a memory clock that is searched on {platform.name} ({has} MHz); there is {have}.")
    cap = Cap(cap_w, margin_w)
    lookings = {model.mem_mhz: Looking(model, supported(model, platform), cap, doubting=only is None) for model in searched}
    result = {mem_mhz: looking.at(known) for mem_mhz, looking in lookings.items()}
    if not any(result.values()):
        raise _infeasible(lookings.values(), platform, network)
    winners = [_best(result, GIVEN)]
    space = _space(known, max_processes)
    mixed = _best({mem_mhz: _climbed(looking, space, result[mem_mhz]) for mem_mhz, looking in lookings.items()}, SURE)
    if mixed[1].sure_images_per_s > WORTH * winners[0][1].throughput_images_per_s:
        winners.insert(0, mixed)
    evaluations = sum(len(looking.seen) for looking in lookings.values())
    told = [
        answer_of(
            models,
            Setting(partition_of_tiles(found.tiles), found.sm_mhz, mem_mhz),
            cap_w - margin_w,
            evaluations,
            profiled=found.tiles in known,
        )
        for mem_mhz, found in winners
    ]
    return told[0] if told[0].profiled else replace(told[0], best_profiled=told[-1])


def profiled(models: Mapping[float, Model]) -> list[Partition]:
    """The partitions that models were fitted on, or the profiling grid, where they do not say."""
    return [one for model in models.values() for one in getattr(model, "partitions", ())] or list(catalog.grid())


def _usable(partitions: Sequence[Partition], network: str, max_processes: int | None) -> list[Tiles]:
    """Those that may be searched, sorted. Raises: Refused, where there is none."""
    usable = [
        one
        for one in partitions
        if all(fits(network, batch) for batch in one.batches) and (max_processes is None or len(one.shares) <= max_processes)
    ]
    if not usable:
        raise Refused(f"No profiled partition of {network} has at most {max_processes} processes with batches that fit into memory.")
    return sorted({tiles_of(one) for one in usable})


def _space(known: Iterable[Tiles], max_processes: int | None) -> Space:
    profiled = list(known)
    tiles = tuple(sorted({tile for entry in profiled for tile in entry}))
    most = max(len(entry) for entry in profiled) if max_processes is None else max_processes
    return Space(tiles, max(sum(share for share, _ in entry) for entry in profiled), most)


def _climbed(looking: Looking, space: Space, start: Sequence[SearchedPartition]) -> list[SearchedPartition]:
    """Look around the best found so far, again and again, until nothing better turns up.

    Of partitions that are predicted to give the same, as trees do, only one is looked around, or a plateau would be all that is seen.
    """
    result = [*start, *looking.at(space.alike())]
    expanded: set[Tiles] = set()
    for _ in range(ROUNDS):
        first = {SURE(one): one.tiles for one in sorted(result, key=lambda found: found.rank(SURE(found)), reverse=True)}
        beam = [first[images_per_s] for images_per_s in nlargest(BEAM, first) if first[images_per_s] not in expanded]
        if not beam:
            break
        expanded.update(beam)
        result += looking.at(tiles for entry in beam for tiles in space.around(entry))
    return result


def _best(
    result: Mapping[float, Sequence[SearchedPartition]], images_per_s: Callable[[SearchedPartition], float]
) -> tuple[float, SearchedPartition]:
    """Answer the best of all memory clocks by what `images_per_s` says; of equals, that of the clock searched first."""
    every = ((mem_mhz, one) for mem_mhz, some in result.items() for one in some)
    return min(every, key=lambda pair: pair[1].rank(images_per_s(pair[1])))


def _infeasible(lookings: Iterable[Looking], platform: Platform, network: str) -> Infeasible:
    some = list(lookings)
    smallest_w, cap = min(looking.smallest_cap for looking in some), some[0].cap
    unit = unit_of(some[0].model)
    unit = SPOKEN.get(unit, unit)
    less = f" less {cap.margin_w:g} {unit}" if cap.margin_w else ""
    return Infeasible(
        f"No partition of {network} on {platform.name} stays within {cap.cap_w:g} {unit}{less}; "
        f"the smallest cap that one would keep is {rounded_up(smallest_w)} {unit}.",
        smallest_w,
    )
