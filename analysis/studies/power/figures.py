"""Cells under a cap: their iterations, a row each, and the figures of steady iterations.

Files are foreign: each field of a row is valid or missing, or its cell is refused. A cap is in
watts or, without a power sensor, in CPU seconds per second (`unit`), which is activity and never
called power.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from analysis import cells
from analysis.formats.checked import Part
from analysis.terms import AGAIN, STOCK, Unreadable
from control.saved import LONGEST_S, Amount, Count, Finite, Positive

if TYPE_CHECKING:
    import pandas as pd

    from analysis.contrasts import Scale
    from analysis.terms import Cell, Run

ROWS, TASK, INFEASIBLE = "iteration", "task", "infeasible"
ALGORITHM, SHADOW, BACKEND = "algorithm", "shadow", "backend"
DECIDER = ("margin", "parameters")  # beside the algorithm
CHOSEN = frozenset({"", "auto"})  # the run chooses the back-end
WATT, ACTIVITY = "W", "cpu_s_per_s"
SIMULATED, NO_SENSOR = "simulated", "none"

THROUGHPUT, ABOVE_102, ABOVE = "throughput_images_per_s", "above_102_share", "above_cap_share"
POWER, PER_IMAGE, P95, OVER_SLO = (
    "power_mean",
    "energy_j_per_image",
    "latency_p95_ms",
    "over_slo_share",
)
EXCESS, WHOLE_102 = "above_cap_unit_s_per_min", "above_102_share_whole"
LONGEST, WORST = "above_cap_longest_s", "above_cap_worst"
# Figures of a cell, compared by ratios (`log`) or by differences (`raw`). `EXCESS` is W·s above the
# cap in a minute; `WHOLE_102` is of all iterations, the way to a new cap included.
SCALES: dict[str, Scale] = {
    THROUGHPUT: "log",
    ABOVE_102: "raw",
    ABOVE: "raw",
    EXCESS: "raw",
    WHOLE_102: "raw",
    POWER: "log",
    PER_IMAGE: "log",
    P95: "log",
    OVER_SLO: "raw",
}
# Sensor figures. `power_max` is the largest reading; the excess above the cap is in seconds, in the
# cap's unit times seconds, as the longest stretch, and as the highest reading minus the cap.
SENSED = (
    POWER,
    "power_max",
    "energy_j",
    "above_cap_s",
    "above_102_s",
    "above_cap_unit_s",
    LONGEST,
    WORST,
)
CLOCKS = ("sm_mhz", "mem_mhz")
OF_CELL = ("id", "arm", "task", "block", "again")
SLACK = 1.02  # clock and sampler may differ by milliseconds
ASTRAY = 0.02  # of a clock: more than one state of any GPU at relevant clocks
FIRST = 3
RULE = (
    "steady: the second half of the iterations since the last change of the cap, without the "
    f"first {FIRST}"
)
UNREAD = "its report cannot be read"
UNKNOWN = "no reason was recorded"


@dataclass(frozen=True, slots=True)
class CappedCell:
    """A cell's report: iterations, facts of its task, and why no setting could keep the cap."""

    rows: Sequence[Mapping[str, Any]]
    facts: Mapping[str, object]
    infeasible: tuple[str, ...]


class InfeasibleRow(Struct):
    sentence: str


def with_figures(cell: Cell, origin: str, backend: str) -> Cell:
    try:
        rows = iterations(cell, origin, backend)
        records = _parts(cell, origin, INFEASIBLE)
        infeasible = tuple(record.read(InfeasibleRow).sentence for record in records)
    except Unreadable as error:
        return replace(cell, reading=str(error))
    known = figures(rows) if any(row["steady"] for row in rows) else {}
    known = {name: value for name, value in known.items() if not math.isnan(value)}
    reading = CappedCell(rows, next(iter(cell.report.get(TASK, ())), {}), infeasible)
    return replace(cell, metrics={**cell.metrics, **known}, reading=reading)


def _parts(cell: Cell, origin: str, name: str) -> list[Part]:
    records = enumerate(cell.report.get(name, ()))
    return [Part(record, origin, f"cell {cell.id}, report.{name}[{at}]") for at, record in records]


def is_capped(run: Run) -> bool:
    return any(ROWS in cell.report for cell in run.cells)


def capped(run: Run, refused: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the cells of algorithms on the untouched machine; add unusable ones to `refused`.

    A cell whose report is unreadable or has no steady iteration has no figures, but a reason.

    Returns: a row per cell, with `arm`, `task`, `backend`, `unit`, `power_source`, `again` (the
        copy of an arm), `facts` of the task, `infeasible` (why from some iteration on no setting
        would keep the cap) and figures; and their iterations, with `OF_CELL`.
    """
    import pandas as pd

    names = named(run)
    every: list[dict[str, Any]] = []

    def own(_: Run, cell: Cell) -> dict[str, Any] | None:
        if cell.tweakset not in {STOCK, AGAIN} or cell.workload not in names:
            return None
        place: dict[str, Any] = {**names[cell.workload], "id": cell.id, "block": cell.block}
        place["again"] = cell.tweakset == AGAIN
        if cell.outcome != "measured":
            return place | {"reason": cell.reason or UNKNOWN}
        if not isinstance(cell.reading, CappedCell):
            refused.extend([cell.reading] if isinstance(cell.reading, str) else [])
            return place | {"outcome": "failed", "reason": UNREAD}
        rows = cell.reading.rows
        every.extend({**row, **{name: place[name] for name in OF_CELL}} for row in rows)
        place |= {name: rows[0][name] for name in ("backend", "unit", "power_source")}
        place["read"], place["facts"] = rows[0]["backend"], cell.reading.facts
        place["infeasible"] = cell.reading.infeasible
        if any(row["steady"] for row in rows):
            return place
        few = f"{len(rows)} iterations: none is steady, which needs more than {FIRST} under one cap"
        return place | {"outcome": "skipped", "reason": few}

    frame = cells.cells([run], own)
    own_columns = ["read", "unit", "power_source", "facts", "infeasible", *SCALES]
    frame = frame.reindex(columns=[*dict.fromkeys([*frame.columns, *own_columns])])
    # A cell that left the back-end to the run counts under the one that ran its task.
    ran = frame.dropna(subset="read").groupby("task")["read"].last()
    chosen = frame["backend"].isin(CHOSEN)
    frame["backend"] = frame["backend"].where(~chosen, frame["task"].map(ran))
    return frame, pd.DataFrame(every, columns=None if every else OF_CELL)


def named(run: Run) -> dict[str, dict[str, str]]:
    """Return `arm`, `task` and requested `backend` of each workload with an algorithm.

    The arm is the algorithm, its shadow optimiser, and varied parameters of the decider; the task
    has all other varied parameters.
    """
    params = {
        name: {key: str(value) for key, value in workload.params.items() if value is not None}
        for name, workload in run.workloads.items()
        if ALGORITHM in workload.params
    }
    keys = {key for own in params.values() for key in own}
    varied = {key for key in keys if len({own.get(key) for own in params.values()}) > 1}
    of_task = [TASK, *sorted(varied - {TASK, ALGORITHM, SHADOW, BACKEND, *DECIDER})]
    result = {}
    for name, own in params.items():
        shadow = " + shadow" if own.get(SHADOW) == "on" else ""
        rest = "".join(f", {key} {own[key]}" for key in DECIDER if key in varied and key in own)
        result[name] = {
            "arm": f"{own[ALGORITHM]}{shadow}{rest}",
            "task": " ".join(f"{key}={own[key]}" for key in of_task if key in own) or "all",
            "backend": own.get(BACKEND, ""),
        }
    return result


Known = Amount | None


class TenantRow(Struct):
    """One process in one iteration: images, with partial batches, and their share over the SLO."""

    images: Annotated[float, Meta(ge=0, le=2.0**63)] | None = None
    latency_p95_ms: Annotated[float, Meta(ge=0, le=1000 * LONGEST_S)] | None = None
    over_slo_share: Annotated[float, Meta(ge=0, le=1)] | None = None


class ClockRow(Struct):
    sm_mhz: Finite | None = None
    mem_mhz: Finite | None = None


class PredictedRow(Struct):
    throughput_images_per_s: Finite | None = None
    power_w: Finite | None = None


class IterationRow(Struct):
    """A row as saved by the run side; None was not measured."""

    iteration: Count
    backend: str
    cap_unit: str
    power_source: str
    cap: Positive
    measured_s: Annotated[float, Meta(gt=0, le=LONGEST_S)]
    tenants: list[TenantRow]
    throughput_images_per_s: Known = None
    power_mean: Known = None
    power_max: Known = None
    energy_j: Known = None
    above_cap_s: Known = None
    above_102_s: Known = None
    above_cap_unit_s: Known = None
    above_cap_longest_s: Known = None
    above_cap_worst: Finite | None = None
    predicted: PredictedRow | None = None
    asked: ClockRow | None = None
    actual: ClockRow | None = None
    refused: tuple[str, ...] | None = None
    oom: tuple[str, ...] | None = None
    crashed: tuple[str, ...] | None = None


def iterations(cell: Cell, origin: str, backend: str = "") -> list[dict[str, Any]]:
    """Read a cell's iterations, a record each; NaN is unmeasured.

    Keys: `number`, `cap` in force, `measured_s`; `backend`, `unit` and `power_source`;
    `THROUGHPUT`, `images` of all processes, `P95` of the slowest, `over_slo_images`; `SENSED`;
    `predicted.…` of images/s and the largest reading; `refused` settings and `lost`
    processes, a sentence each; `astray`: whether a clock differed from the requested one without a
    refusal; `steady`.

    Raises: Unreadable, also for rows of a different `backend` from the requested one.
    """
    place, parts = f"{origin}: cell {cell.id}, report.{ROWS}", _parts(cell, origin, ROWS)
    rows = [part.read(IterationRow) for part in parts]
    kinds = {(row.backend, row.cap_unit, row.power_source) for row in rows}
    if len(kinds) != 1:
        raise Unreadable(
            f"{place}: must have rows of one back-end, unit and power source, but has {len(kinds)} "
            "such kinds, which are never mixed; measure it again."
        )
    ((reported, unit, source),) = kinds
    if backend not in {*CHOSEN, reported}:
        raise Unreadable(
            f"{place}: reports back-end {reported!r} but {backend!r} was requested; it is omitted."
        )
    told: dict[str, Any] = {"backend": reported, "unit": unit, "power_source": source}
    if source == NO_SENSOR and unit == WATT:
        told |= dict.fromkeys(SENSED, math.nan)
    result = [_iteration(row, part) | told for row, part in zip(rows, parts, strict=True)]
    if any(later["number"] <= earlier["number"] for earlier, later in pairwise(result)):
        raise Unreadable(
            f"{place}: numbers do not increase from row to row; the file was edited: measure again."
        )
    for _, phase in groupby(result, key=itemgetter("cap")):
        under_cap = list(phase)
        for at, row in enumerate(under_cap):
            row["steady"] = at >= max(FIRST, len(under_cap) // 2)
    return result


def _numbers(row: Struct, *names: str) -> dict[str, float]:
    return {
        name: math.nan if (value := getattr(row, name)) is None else float(value) for name in names
    }


def _iteration(row: IterationRow, part: Part) -> dict[str, Any]:
    numbers = _numbers(row, *SENSED, THROUGHPUT)
    above, more = numbers["above_cap_s"], numbers["above_102_s"]
    if above > SLACK * row.measured_s:
        part.refuse(f"has above_cap_s = {above:g} of {row.measured_s:g} s measured")
    if more > SLACK * above + 1e-9:
        part.refuse(f"reports {more:g} s above 1.02 times the cap but {above:g} s above the cap")
    work, is_unknown = _work(row.tenants), math.isnan(numbers[THROUGHPUT])
    asked, actual = (_numbers(clocks or ClockRow(), *CLOCKS) for clocks in (row.asked, row.actual))
    moved = any(abs(actual[name] - asked[name]) > ASTRAY * asked[name] for name in CLOCKS)
    predicted = _numbers(row.predicted or PredictedRow(), THROUGHPUT, "power_w")
    return {
        "number": row.iteration,
        "cap": row.cap,
        "measured_s": row.measured_s,
        **numbers,
        THROUGHPUT: work["images"] / row.measured_s if is_unknown else numbers[THROUGHPUT],
        **work,
        **{f"predicted.{name}": value for name, value in predicted.items()},
        "refused": row.refused or (),
        "lost": (*(row.oom or ()), *(row.crashed or ())),
        "astray": moved and not row.refused,
    }


def _work(tenants: Sequence[TenantRow]) -> dict[str, float]:
    every = [_numbers(tenant, "images", P95, "over_slo_share") for tenant in tenants]
    busy = [tenant for tenant in every if tenant["images"] > 0]
    return {
        "images": math.fsum(tenant["images"] for tenant in busy),
        # An active process without a latency may be the slowest: NaN is the largest.
        P95: float(np.max([tenant[P95] for tenant in busy])) if busy else math.nan,
        "over_slo_images": math.fsum(one["images"] * one["over_slo_share"] for one in busy),
    }


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the figures of a cell's steady iterations; one that misses any reading is missing."""
    counted = [row for row in rows if row["steady"]]
    at_work = [row for row in counted if row["images"] > 0]
    time_s = math.fsum(row["measured_s"] for row in counted)
    images = math.fsum(row[THROUGHPUT] * row["measured_s"] for row in counted)
    done = math.fsum(row["images"] for row in at_work)
    return {
        THROUGHPUT: images / time_s,
        ABOVE_102: _share(counted, "above_102_s"),
        ABOVE: _share(counted, "above_cap_s"),
        EXCESS: 60 * math.fsum(row["above_cap_unit_s"] for row in counted) / time_s,
        WHOLE_102: _share(rows, "above_102_s"),
        POWER: math.fsum(row[POWER] * row["measured_s"] for row in counted) / time_s,
        PER_IMAGE: math.fsum(row["energy_j"] for row in counted) / images
        if images > 0
        else math.nan,
        P95: float(np.median([row[P95] for row in at_work])) if at_work else math.nan,
        OVER_SLO: math.fsum(row["over_slo_images"] for row in at_work) / done if done else math.nan,
    }


def _share(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    part = math.fsum(row[name] for row in rows) / math.fsum(row["measured_s"] for row in rows)
    return part if math.isnan(part) else min(1.0, part)
