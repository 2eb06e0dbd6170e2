"""The points that are measured to fit a model: the grid of partitions at the anchor clock, and a few of them over all clocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from .terms import Partition

DATA = Path(__file__).parents[2] / "data" / "power"


@dataclass(frozen=True, slots=True)
class Point:
    """So many processes of one share (percent of the SMs) and one batch (images)."""

    share_percent: int
    processes: int
    batch: int

    @property
    def partition(self) -> Partition:
        """The same as shares and batches, one of each per process."""
        return Partition((float(self.share_percent),) * self.processes, (self.batch,) * self.processes)


@cache
def anchor() -> tuple[Point, ...]:
    """The grid at the anchor clock: 263 points, processes before batches."""
    return _points("anchor")


@cache
def sweep() -> tuple[Point, ...]:
    """The nine points that are measured at every clock of the sweep."""
    return _points("sweep")


def _points(part: str) -> tuple[Point, ...]:
    said: dict[str, Any] = yaml.safe_load((DATA / "grid.yaml").read_text(encoding="utf-8"))
    return tuple(
        Point(row["share_percent"], processes, batch) for row in said[part] for processes in row["processes"] for batch in row["batches"]
    )
