"""What is one change away from a partition: one process more, fewer, other, or some share moved between two.

Here a partition is a sorted tuple of tiles, a tile is (share in percent, batch): which process is which makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from control.power.terms import Partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        """Batches by share."""
        shares = sorted({share for share, _ in self.tiles})
        return {share: [batch for other, batch in self.tiles if other == share] for share in shares}

    def nearest(self, share: float, batch: int) -> Tile:
        """Answer the tile of that share whose batch is nearest, the smaller of two."""
        return share, min(self.batches[share], key=lambda one: (abs(one - batch), one))

    def alike(self) -> list[Tiles]:
        """All partitions of equal processes."""
        most = {tile: min(self.most_processes, int(self.most_share / tile[0] + 1e-9)) for tile in self.tiles}
        return [(tile,) * count for tile in self.tiles for count in range(1, most[tile] + 1)]

    def around(self, tiles: Tiles) -> Iterator[Tiles]:
        """All partitions one change away; some come twice."""
        free = self.most_share - sum(share for share, _ in tiles)
        if len(tiles) < self.most_processes:
            yield from (_sorted((*tiles, tile)) for tile in self.tiles if tile[0] <= free)
        kinds = dict.fromkeys(tiles)
        for one in kinds:
            rest = _without(tiles, one)
            yield from (_sorted((*rest, tile)) for tile in self.tiles if tile[0] <= free + one[0])
            if rest:
                yield rest
            yield from (_sorted([(one[0], batch) if tile == one else tile for tile in tiles]) for batch in self.batches[one[0]])
            for other in dict.fromkeys(rest):
                yield from self._between(_without(rest, other), one, other)

    def _between(self, rest: Tiles, giver: Tile, taker: Tile) -> Iterator[Tiles]:
        """Move share from one process to another, as little or as much as there are shares for; all of it makes one of the two."""
        together = giver[0] + taker[0]
        for share in self.batches:
            if share > taker[0] and together - share in self.batches:
                yield _sorted((*rest, self.nearest(share, taker[1]), self.nearest(together - share, giver[1])))
        if together in self.batches:
            yield _sorted((*rest, self.nearest(together, giver[1] + taker[1])))


def tiles_of(partition: Partition) -> Tiles:
    """Answer a partition's tiles."""
    return _sorted(zip(partition.shares, partition.batches, strict=True))


def partition_of(tiles: Tiles) -> Partition:
    """Answer the partition, largest process first."""
    return Partition(tuple(share for share, _ in tiles), tuple(batch for _, batch in tiles))


def _sorted(tiles: Sequence[Tile] | Iterator[Tile]) -> Tiles:
    return tuple(sorted(tiles, reverse=True))


def _without(tiles: Tiles, one: Tile) -> Tiles:
    at = tiles.index(one)
    return tiles[:at] + tiles[at + 1 :]
