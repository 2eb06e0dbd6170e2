"""From the iterations of one cell to its few figures: over steady iterations, each as heavy as it was long."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .terms import Capped, Iteration, Tenant


FIRST = 3
RULE = f"steady: of the iterations since the cap last changed, the second half, and none of the first {FIRST}"


def phases(iterations: Sequence[Iteration]) -> list[list[Iteration]]:
    """Part iterations where the cap changes."""
    found: list[list[Iteration]] = []
    for one in iterations:
        if not found or found[-1][-1].cap != one.cap:
            found.append([])
        found[-1].append(one)
    return found


def steady(iterations: Sequence[Iteration]) -> list[Iteration]:
    """Answer those that count, under all caps of the run together; none where each cap held for too short."""
    return [one for phase in phases(iterations) for one in phase[max(FIRST, len(phase) // 2) :]]


Scale = Literal["log", "raw"]
Better = Literal["lower", "higher"]

THROUGHPUT, ABOVE_102, ABOVE = "throughput_images_per_s", "above_102_share", "above_cap_share"
POWER, PER_IMAGE, P95, OVER_SLO = "power_mean", "energy_j_per_image", "latency_p95_ms", "over_slo_share"
EXCESS, WHOLE_102 = "above_cap_unit_s_per_min", "above_102_share_whole"
LONGEST, WORST = "above_cap_longest_s", "above_cap_worst"


@dataclass(frozen=True, slots=True)
class Response:
    """A figure of a cell: compared by ratios (`log`) or by differences (`raw`), and which way it is better."""

    name: str
    scale: Scale
    better: Better


# `above_cap_unit_s_per_min`: W·s above the cap in a minute. `above_102_share_whole` is of all iterations, the way to a new cap included.
RESPONSES = {
    one.name: one
    for one in (
        Response(THROUGHPUT, "log", "higher"),
        Response(ABOVE_102, "raw", "lower"),
        Response(ABOVE, "raw", "lower"),
        Response(EXCESS, "raw", "lower"),
        Response(WHOLE_102, "raw", "lower"),
        Response(POWER, "log", "lower"),
        Response(PER_IMAGE, "log", "lower"),
        Response("latency_p50_ms", "log", "lower"),
        Response(P95, "log", "lower"),
        Response("latency_p99_ms", "log", "lower"),
        Response(OVER_SLO, "raw", "lower"),
        Response("decision_s", "log", "lower"),
    )
}


def figures_of(cell: Capped) -> dict[str, float]:
    """Every figure that its steady iterations give; one whose readings are missing in any of them is missing."""
    counted = steady(cell.iterations)
    if not counted:
        return {}
    time_s = math.fsum(one.measured_s for one in counted)
    images = math.fsum(one.throughput_images_per_s * one.measured_s for one in counted)
    energy_j = _sum(counted, lambda one: one.energy_j)
    excess = _sum(counted, lambda one: one.above_cap_unit_s)
    found: dict[str, float | None] = {
        THROUGHPUT: images / time_s,
        ABOVE_102: _share(counted, lambda one: one.above_102_s),
        ABOVE: _share(counted, lambda one: one.above_cap_s),
        EXCESS: None if excess is None else 60 * excess / time_s,
        WHOLE_102: _share(cell.iterations, lambda one: one.above_102_s),
        POWER: _weighted(counted, lambda one: one.power_mean),
        PER_IMAGE: energy_j / images if energy_j is not None and images > 0 else None,
        "latency_p50_ms": _worst_process(counted, lambda one: one.p50_ms),
        P95: _worst_process(counted, lambda one: one.p95_ms),
        "latency_p99_ms": _worst_process(counted, lambda one: one.p99_ms),
        OVER_SLO: _over_slo(counted),
        "decision_s": _median([one.decision_s for one in cell.iterations]),
    }
    return {name: value for name, value in found.items() if value is not None}


def most_of(cells: Sequence[Capped]) -> Mapping[str, float]:
    """The longest stretch above the cap, and the worst reading, of all steady iterations of some cells.

    A stretch ends with its iteration: between two of them settings change and nothing is measured.
    """
    found = {}
    for name in (LONGEST, WORST):
        values = [value for cell in cells for one in steady(cell.iterations) if (value := getattr(one, name)) is not None]
        if values:
            found[name] = max(values)
    return found


def _sum(rows: Sequence[Iteration], of: Callable[[Iteration], float | None]) -> float | None:
    values = [of(one) for one in rows]
    known = [one for one in values if one is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _share(rows: Sequence[Iteration], of: Callable[[Iteration], float | None]) -> float | None:
    above_s = _sum(rows, of)
    return None if above_s is None else min(1.0, above_s / math.fsum(one.measured_s for one in rows))


def _weighted(rows: Sequence[Iteration], of: Callable[[Iteration], float | None]) -> float | None:
    total = _sum(rows, lambda one: None if (value := of(one)) is None else value * one.measured_s)
    return None if total is None else total / math.fsum(one.measured_s for one in rows)


def _worst_process(rows: Sequence[Iteration], of: Callable[[Tenant], float | None]) -> float | None:
    """Median over iterations; one in which nothing was done has no latency, and is out of it, and so is such a process.

    Of a process that did something and told no latency it may be the worst that is missing.
    """
    return _median([_largest([of(one) for one in row.tenants if one.images]) for row in rows if row.images])


def _largest(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return max(known) if known and len(known) == len(values) else None


def _over_slo(rows: Sequence[Iteration]) -> float | None:
    """Each process's share, as heavy as its images are many."""
    pairs = [(one.images, one.over_slo_share) for row in rows for one in row.tenants if one.images]
    known = [(images, share) for images, share in pairs if share is not None]
    images = sum(images for images, _ in known)
    return math.fsum(images * share for images, share in known) / images if len(known) == len(pairs) and images else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.median(known) if known and len(known) == len(values) else None
