"""GPUs with their clock states, the points that a profile measures, and each algorithm's own numbers, out of `data/power/*.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import yaml

from control.errors import Refused, one_line

from .terms import Partition, Platform

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = Path(__file__).parents[2] / "data" / "power"


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """So many processes of one share (percent of the SMs) and one batch (images)."""

    share_percent: int
    processes: int
    batch: int

    @property
    def partition(self) -> Partition:
        """The same as shares and batches, one of each per process."""
        return Partition((float(self.share_percent),) * self.processes, (self.batch,) * self.processes)


@cache
def points(part: Literal["anchor", "sweep"]) -> tuple[OperatingPoint, ...]:
    """The grid at the anchor clock (263 points, processes before batches), or the nine that are measured at every clock of the sweep."""
    said: dict[str, Any] = yaml.safe_load((DATA / "grid.yaml").read_text(encoding="utf-8"))
    return tuple(
        OperatingPoint(row["share_percent"], processes, batch)
        for row in said[part]
        for processes in row["processes"]
        for batch in row["batches"]
    )


def grid() -> list[Partition]:
    """The partitions of the grid at the anchor clock."""
    return [point.partition for point in points("anchor")]


@cache
def platforms() -> dict[str, Platform]:
    """Every GPU that is known, by name."""
    said: dict[str, Any] = yaml.safe_load((DATA / "gpus.yaml").read_text(encoding="utf-8"))
    return {
        name: Platform(
            name=name,
            sm_mhz=tuple(float(mhz) for mhz in range(one["sm_mhz"]["first"], one["sm_mhz"]["last"] + 1, one["sm_mhz"]["step"])),
            mem_mhz=tuple(map(float, one["mem_mhz"])),
            searched_mem_mhz=tuple(map(float, one["searched_mem_mhz"])),
            anchor_mhz=float(one["anchor_mhz"]),
            tdp_w=float(one["tdp_w"]),
            detect=tuple(one["detect"]),
        )
        for name, one in said["gpus"].items()
    }


def platform(name: str) -> Platform:
    """Answer the GPU of this name. Raises: Refused, with the names there are."""
    known = platforms()
    if name not in known:
        raise Refused(f"GPU {one_line(name)!r} is not known; there are {', '.join(known)}. Its clocks belong into data/power/gpus.yaml.")
    return known[name]


def configured(algorithm: str, network: str) -> Mapping[str, Any]:
    """The algorithm's own keys, and those of the network over them."""
    said = _algorithms()[algorithm]
    networks = said["networks"]
    return {**{key: value for key, value in said.items() if key != "networks"}, **networks.get(network, networks["default"])}


def every_batch() -> tuple[int, ...]:
    """All batches on any ladder, ascending."""
    ladders = [one.get("ladder", ()) for said in _algorithms().values() for one in (said, *said["networks"].values())]
    return tuple(sorted({batch for ladder in ladders for batch in ladder}))


@cache
def _algorithms() -> dict[str, Any]:
    return cast("dict[str, Any]", yaml.safe_load((DATA / "algorithms.yaml").read_text(encoding="utf-8")))
