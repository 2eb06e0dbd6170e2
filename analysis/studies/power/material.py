"""Material of a fit: a network's rows at a memory clock, as anchors, series, static power."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analysis.plain import one_line
from analysis.terms import Refused
from control.power.terms import Partition

from .traces import STATIC, PartitionRow

QUANTITIES = ("throughput_images_per_s", "power", "sm_util_percent", "mem_util_percent")
COLUMNS = ("partition", "clock", "asked", *QUANTITIES, "is_anchor")
FEWEST = 5
SAME_CLOCK = 0.02  # of the anchor clock
ONE_OF = ("backend", "power_source", "image_size")  # no law holds across different values


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Points of one network at one memory clock. `clock` is `sm_mhz` or `throttle`.

    `cap_unit` is W, cpu_s_per_s or none. `points` has `COLUMNS`, a point per row, anchors first;
    `power` is in `cap_unit`, unmeasured values are NaN, and `clock` varies a little around the
    clock `asked`. Anchors are at the clock `anchor`: the median clock of points without a requested
    one, or else the highest. Repetitions of an anchor are one point, their mean. `static` are
    clocks and watts without work. `left_out` counts unused rows by reason.
    """

    network: str
    gpu: str
    mem_mhz: float
    clock: str
    cap_unit: str
    anchor: float
    points: pd.DataFrame
    static: tuple[tuple[float, float], ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def anchors(self) -> pd.DataFrame:
        return self.points[self.points["is_anchor"]]

    @property
    def others(self) -> pd.DataFrame:
        return self.points[~self.points["is_anchor"]]


def networks(rows: Iterable[PartitionRow]) -> list[tuple[str, float]]:
    return sorted({(row.network, row.mem_mhz or 0.0) for row in rows if row.network != STATIC})


def gather(rows: Sequence[PartitionRow], network: str, mem_mhz: float, gpu: str) -> Material:
    """Sort the rows of one network at one memory clock.

    Raises: Refused, if fewer than five are usable, or if they mix back-ends, power sources or image
    sizes.
    """
    name = f"{network} at memory clock {mem_mhz:g}"
    mine = [row for row in rows if row.network == network and (row.mem_mhz or 0.0) == mem_mhz]
    clock = "throttle" if any("throttle" in row.extra for row in mine) else "sm_mhz"
    has_watts = any(row.watts is not None for row in mine)
    has_activity = any("cpu_s_per_s" in row.extra for row in mine)
    cap_unit = "W" if has_watts else "cpu_s_per_s" if has_activity else "none"
    static = [row for row in rows if row.network == STATIC and row.mem_mhz in {None, mem_mhz}]
    static = static if has_watts else []
    _must_be_of_one([*mine, *static], name)
    left_out = Counter(reason for row in mine if (reason := _unusable(row)))
    points = pd.DataFrame(
        [_point(row, clock, has_watts=has_watts) for row in mine if not _unusable(row)],
        columns=COLUMNS[:-1],
    )
    points = points.astype(dict.fromkeys(COLUMNS[1:-1], float))
    free = points["asked"].isna() & (clock == "sm_mhz")
    anchor = points["clock"][free].median() if free.any() else points["clock"].max()
    at_anchor = free | ((points["clock"] - anchor).abs() <= SAME_CLOCK * anchor)
    # A Gaussian process would take repetitions for agreeing neighbours.
    anchors = (
        points[at_anchor]
        .assign(clock=anchor, asked=np.nan)
        .groupby("partition", sort=False)
        .mean()
        .reset_index()
    )
    if len(anchors) < FEWEST:
        counts = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        raise Refused(
            f"{name}: {len(anchors)} usable rows at one clock; {FEWEST} are required "
            f"({counts or 'none was left out'})."
        )
    others = points[~at_anchor]
    if len(others) and others["clock"].min() > anchor:
        # These do not show the fall below the anchor's clock, which the curve describes.
        left_out["at clocks above the anchors', none below"] += len(others)
        others = others[:0]
    idle = [(row.clock, row.watts) for row in static if row.outcome == "measured"]
    at_rest = tuple((mhz, watts) for mhz, watts in idle if mhz and watts)
    points = pd.concat(
        [anchors.assign(is_anchor=True), others.assign(is_anchor=False)], ignore_index=True
    )
    return Material(
        network, gpu, mem_mhz, clock, cap_unit, float(anchor), points, at_rest, dict(left_out)
    )


def _unusable(row: PartitionRow) -> str | None:
    if row.outcome != "measured":
        return row.outcome
    if not row.throughput_images_per_s or row.throughput_images_per_s <= 0.0:
        return "without throughput"
    return "with a share of 0" if min(row.shares) <= 0.0 else None


def _point(row: PartitionRow, clock: str, *, has_watts: bool) -> tuple[object, ...]:
    pace = row.clock if clock == "sm_mhz" else row.extra.get("throttle", 1.0)
    asked = row.target_mhz if clock == "sm_mhz" else None
    power = row.watts if has_watts else row.extra.get("cpu_s_per_s")
    measured = row.throughput_images_per_s, power, row.sm_util_percent, row.mem_util_percent
    return Partition(row.shares, row.batches), pace or 0.0, asked, *measured


def _must_be_of_one(rows: Sequence[PartitionRow], name: str) -> None:
    known = [row.extra for row in rows if row.outcome == "measured"]
    for column in ONE_OF:
        values = sorted({str(extra[column]) for extra in known if column in extra})
        if len(values) > 1:
            listed = ", ".join(one_line(text, 40) for text in values)
            raise Refused(
                f"{name}: rows of more than one {column}: {listed}. No law holds across them; fit "
                "each separately."
            )
