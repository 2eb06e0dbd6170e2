"""What a fit is made from: measured rows of one network at one memory clock, sorted into anchors, clock series and static power."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.plain import one_line
from analysis.terms import Refused
from control.power.terms import Partition

from .traces import STATIC, PartitionRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from control.power.terms import Floats


QUANTITIES = ("throughput_images_per_s", "power", "sm_util_percent", "mem_util_percent")
FEWEST = 5
SAME_CLOCK = 0.02  # of the anchor clock
ONE_OF = ("backend", "power_source", "image_size")  # columns of which a fit takes one value: no law holds across two


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """A measured partition at a clock; `power` is in the material's `cap_unit`, a value that was not measured is None.

    `asked` is the clock that was to be: what is read of it differs a little each time.
    """

    partition: Partition
    clock: float
    throughput_images_per_s: float
    power: float | None = None
    sm_util_percent: float | None = None
    mem_util_percent: float | None = None
    asked: float | None = None


@dataclass(frozen=True, slots=True)
class Material:
    """Points of one network at one memory clock. `clock` is `sm_mhz` or `throttle`, `cap_unit` W, cpu_s_per_s or none.

    `anchors` are the points at `anchor`: those for which no clock was asked, whose clock is what load and cooling allowed and counts as
    their median, and those asked to run at it; without any of the first it is the highest. `others` are at other clocks. `static` are
    clocks and watts without work. Repetitions of an anchor are one point, their mean. `left_out` counts rows that were not used, by why.
    """

    network: str
    gpu: str
    mem_mhz: float
    clock: str
    cap_unit: str
    anchor: float
    anchors: tuple[MeasuredPoint, ...]
    others: tuple[MeasuredPoint, ...] = ()
    static: tuple[tuple[float, float], ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def values(self, quantity: str) -> tuple[NDArray[np.intp], Floats]:
        """Which anchors have this quantity, above 0, and what it was there."""
        result = [getattr(anchor, quantity) for anchor in self.anchors]
        rows = np.array([place for place, value in enumerate(result) if value is not None and value > 0.0], dtype=np.intp)
        return rows, np.array([result[place] for place in rows], dtype=np.float64)


def networks(rows: Iterable[PartitionRow]) -> list[tuple[str, float]]:
    """Networks and memory clocks that the rows hold, sorted; a row that does not tell its memory clock counts as 0 MHz."""
    return sorted({(row.network, row.mem_mhz or 0.0) for row in rows if row.network != STATIC})


def gather(rows: Sequence[PartitionRow], network: str, mem_mhz: float, gpu: str) -> Material:
    """Sort the rows of one network at one memory clock.

    Raises: Refused, if fewer than five can be used, or they were measured on more than one back-end, by more than one source of power or
    with images of more than one size.
    """
    mine = [row for row in rows if row.network == network and (row.mem_mhz or 0.0) == mem_mhz]
    clock = "throttle" if any("throttle" in row.extra for row in mine) else "sm_mhz"
    cap_unit = _unit(mine)
    static = [row for row in rows if row.network == STATIC and row.mem_mhz in {None, mem_mhz}] if cap_unit == "W" else []
    _must_be_of_one([*mine, *static], f"{network} at memory clock {mem_mhz:g}")
    left_out: Counter[str] = Counter()
    points = []
    for row in mine:
        why = _unusable(row)
        if why:
            left_out[why] += 1
        else:
            points.append((clock == "sm_mhz" and row.target_mhz is None, _point(row, clock, cap_unit)))
    free = [point.clock for as_it_was, point in points if as_it_was]
    anchor = float(np.median(free)) if free else max((point.clock for _, point in points), default=0.0)
    at_anchor = [as_it_was or abs(point.clock - anchor) <= SAME_CLOCK * anchor for as_it_was, point in points]
    anchors = _merged([replace(point, clock=anchor) for (_, point), here in zip(points, at_anchor, strict=True) if here])
    if len(anchors) < FEWEST:
        why = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or "none was left out"
        raise Refused(f"{network} at memory clock {mem_mhz:g}: {len(anchors)} usable rows at one clock, {FEWEST} are needed ({why}).")
    others = tuple(point for (_, point), here in zip(points, at_anchor, strict=True) if not here)
    if others and min(point.clock for point in others) > anchor:
        # Nothing says then how far anything falls below the anchor's clock, which is what the curve is over.
        left_out["at clocks above the anchors', none below"] += len(others)
        others = ()
    return Material(network, gpu, mem_mhz, clock, cap_unit, anchor, anchors, others, _static(static), dict(left_out))


def _merged(points: Sequence[MeasuredPoint]) -> tuple[MeasuredPoint, ...]:
    """One point a partition, the mean of its repetitions: a process over repetitions would take them for neighbours that agree."""
    of: dict[Partition, list[MeasuredPoint]] = defaultdict(list)
    for point in points:
        of[point.partition].append(point)
    return tuple(
        MeasuredPoint(
            partition,
            each[0].clock,
            sum(point.throughput_images_per_s for point in each) / len(each),
            _mean([point.power for point in each]),
            _mean([point.sm_util_percent for point in each]),
            _mean([point.mem_util_percent for point in each]),
        )
        for partition, each in of.items()
    )


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def _unit(rows: Sequence[PartitionRow]) -> str:
    if any(row.watts is not None for row in rows):
        return "W"
    return "cpu_s_per_s" if any("cpu_s_per_s" in row.extra for row in rows) else "none"


def _unusable(row: PartitionRow) -> str | None:
    if row.outcome != "measured":
        return row.outcome
    if not row.throughput_images_per_s or row.throughput_images_per_s <= 0.0:
        return "without throughput"
    if min(row.shares) <= 0.0:
        return "with a share of nothing"
    return None


def _point(row: PartitionRow, clock: str, cap_unit: str) -> MeasuredPoint:
    said = row.extra.get("throttle", 1.0) if clock == "throttle" else row.sm_mhz or row.target_mhz or 0.0
    power = row.extra.get("cpu_s_per_s") if cap_unit == "cpu_s_per_s" else row.watts
    assert row.throughput_images_per_s is not None  # noqa: S101  # `_unusable` has seen to it
    return MeasuredPoint(
        Partition(row.shares, row.batches),
        float(said),
        row.throughput_images_per_s,
        None if power is None else float(power),
        row.sm_util_percent,
        row.mem_util_percent,
        row.target_mhz if clock == "sm_mhz" else None,
    )


def _must_be_of_one(rows: Sequence[PartitionRow], what: str) -> None:
    """A row that does not tell one of these counts as one of any."""
    for name in ONE_OF:
        lines = sorted({str(row.extra[name]) for row in rows if row.outcome == "measured" and name in row.extra})
        if len(lines) > 1:
            each = ", ".join(one_line(text, 40) for text in lines)
            raise Refused(f"{what}: rows of more than one {name}: {each}. No law holds across them; fit the rows of each alone.")


def _static(rows: Sequence[PartitionRow]) -> tuple[tuple[float, float], ...]:
    """Clocks and watts of idle rows."""
    told = [(row.sm_mhz or row.target_mhz, row.watts) for row in rows if row.outcome == "measured"]
    return tuple((clock, watts) for clock, watts in told if clock and watts)
