"""Cells under a cap: their iterations, a row each, and the figures that steady iterations give.

A field of a row is what it must be, or missing, or its cell is refused: files are foreign. A cap is in watts, or, where
no sensor reads any, in CPU seconds a second (`unit`), which is activity and never called power.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import cells
from analysis.formats.fields import LARGEST_COUNT, LONGEST_S, Fields
from analysis.terms import AGAIN, STOCK, Unreadable

if TYPE_CHECKING:
    import pandas as pd

    from analysis.contrasts import Scale
    from analysis.terms import Cell, Run

ROWS, TASK, INFEASIBLE = "iteration", "task", "infeasible"
ALGORITHM, SHADOW, BACKEND = "algorithm", "shadow", "backend"
DECIDER = ("margin", "parameters")  # beside the algorithm
CHOSEN = frozenset({"", "auto"})  # the run was to choose the back-end
ON = frozenset({"on", "true", "yes", "1"})
WATT, ACTIVITY = "W", "cpu_s_per_s"
SIMULATED, NO_SENSOR = "simulated", "none"

THROUGHPUT, ABOVE_102, ABOVE = "throughput_images_per_s", "above_102_share", "above_cap_share"
POWER, PER_IMAGE, P95, OVER_SLO = "power_mean", "energy_j_per_image", "latency_p95_ms", "over_slo_share"
EXCESS, WHOLE_102 = "above_cap_unit_s_per_min", "above_102_share_whole"
LONGEST, WORST = "above_cap_longest_s", "above_cap_worst"
# Figures of a cell, compared by ratios (`log`) or by differences (`raw`). `EXCESS` is W·s above the cap in a minute;
# `WHOLE_102` is of all iterations, the way to a new cap included.
SCALES: dict[str, Scale] = {
    THROUGHPUT: "log",
    ABOVE_102: "raw",
    ABOVE: "raw",
    EXCESS: "raw",
    WHOLE_102: "raw",
    POWER: "log",
    PER_IMAGE: "log",
    "latency_p50_ms": "log",
    P95: "log",
    "latency_p99_ms": "log",
    OVER_SLO: "raw",
    "decision_s": "log",
}
# What a sensor gives. `power_max` is the largest reading; what is above the cap is in seconds, in the cap's unit times
# seconds, as the longest stretch, and as the highest reading less the cap.
SENSED = (POWER, "power_max", "energy_j", "above_cap_s", "above_102_s", "above_cap_unit_s", LONGEST, WORST)
LATENCIES = ("latency_p50_ms", P95, "latency_p99_ms")
CLOCKS = ("sm_mhz", "mem_mhz")
KNOBS = (*CLOCKS, "power_limit_w", "throttle")
OF_CELL = ("id", "arm", "task", "block", "again")
SLACK = 1.02  # a clock and a sampler do not agree to the last millisecond
ASTRAY = 0.02  # of a clock: more than one state of any GPU at the clocks that matter
FIRST = 3
RULE = f"steady: of the iterations since the cap last changed, the second half, and none of the first {FIRST}"
UNREAD = "what it told cannot be read"
UNKNOWN = "no reason was recorded"


@dataclass(frozen=True, slots=True)
class CappedCell:
    """What a cell told: iterations, facts of its task, and why from some iteration on no setting would keep the cap."""

    rows: Sequence[Mapping[str, Any]]
    facts: Mapping[str, object]
    infeasible: tuple[str, ...]


def with_figures(cell: Cell, origin: str, backend: str) -> Cell:
    """Return a cell with its figures as metrics, and what it told; or what is wrong with that."""
    try:
        rows = iterations(cell, origin, backend)
        infeasible = tuple(
            Fields(record, origin, f"cell {cell.id}, report.{INFEASIBLE}[{at}]").text("sentence")
            for at, record in enumerate(cell.report.get(INFEASIBLE, ()))
        )
    except Unreadable as error:
        return replace(cell, reading=str(error))
    known = figures(rows) if any(row["steady"] for row in rows) else {}
    metrics = {**cell.metrics, **{name: value for name, value in known.items() if not math.isnan(value)}}
    return replace(cell, metrics=metrics, reading=CappedCell(rows, next(iter(cell.report.get(TASK, ())), {}), infeasible))


def is_capped(run: Run) -> bool:
    """Whether any cell of a run told of iterations under a cap."""
    return any(ROWS in cell.report for cell in run.cells)


def capped(run: Run, refused: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the cells of algorithms on the machine as it was found; what cannot be used is said in `refused`.

    Cells under a tweak set are for `compare`. What a cell told that cannot be read, or has no steady iteration, is a
    cell without figures and with a reason.

    Returns: cells, a row each, with `arm`, `task`, `backend`, `unit`, `power_source`, `again` (the copy of an arm),
        `facts` of the task, `infeasible` (why from some iteration on no setting would keep the cap) and figures; and
        their iterations, with `id`, `arm`, `task`, `block` and `again` of the cell.
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
        told = {name: rows[0][name] for name in ("backend", "unit", "power_source")}
        place = {**place, **told, "read": told["backend"], "facts": cell.reading.facts, "infeasible": cell.reading.infeasible}
        if not any(row["steady"] for row in rows):
            reason = f"{len(rows)} iterations: none is steady, which takes more than {FIRST} under one cap"
            return place | {"outcome": "skipped", "reason": reason}
        return place

    frame = cells.cells([run], own)
    own_columns = ["read", "unit", "power_source", "facts", "infeasible", *SCALES]
    frame = frame.reindex(columns=[*dict.fromkeys([*frame.columns, *own_columns])])
    # A cell that left the choice of the back-end to the run is of that which ran its task.
    ran = frame.dropna(subset="read").groupby("task")["read"].last()
    frame["backend"] = frame["backend"].where(~frame["backend"].isin(CHOSEN), frame["task"].map(ran))
    return frame, pd.DataFrame(every, columns=None if every else OF_CELL)


def named(run: Run) -> dict[str, dict[str, str]]:
    """What the cells of a workload are called, for workloads with an algorithm.

    Returns: `arm`, the algorithm, whether the shadow optimiser ran beside it, and what else of the decider was varied;
        `task`, what it is measured on: `task=6`, and whatever else was varied; `backend`, the one that was asked for.
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
        shadow = " + shadow" if own.get(SHADOW, "").lower() in ON else ""
        rest = "".join(f", {key} {own[key]}" for key in DECIDER if key in varied and key in own)
        task = " ".join(f"{key}={own[key]}" for key in of_task if key in own) or "all"
        result[name] = {"arm": f"{own[ALGORITHM]}{shadow}{rest}", "task": task, "backend": own.get(BACKEND, "")}
    return result


def iterations(cell: Cell, origin: str, backend: str = "") -> list[dict[str, Any]]:
    """Read a cell's iterations, a record each; NaN is what nothing measured.

    Keys: `number`, `cap` in force, `measured_s`; `backend`, `unit` and `power_source`; `THROUGHPUT`, `images` of all
    processes, latencies of the slowest, `over_slo_images`; `SENSED`; `decision_s`; `predicted.…` of images/s and the
    largest reading; `asked.…` and `actual.…` settings; `refused` settings and `lost` processes, a sentence each;
    `astray`, whether a clock was another than requested, though nobody refused it; `steady`.

    Raises: Unreadable, also where rows are of another `backend` than the one that was asked for.
    """
    place = f"cell {cell.id}, report"
    rows = [Fields(record, origin, f"{place}.{ROWS}[{at}]") for at, record in enumerate(cell.report.get(ROWS, ()))]
    if not rows:
        raise Unreadable(f"{origin}: {place}.{ROWS}: has no row; the cell measured nothing, measure it again.")
    told: dict[str, Any] = {"backend": _agreed(rows, "backend"), "unit": _agreed(rows, "cap_unit")}
    told["power_source"] = _agreed(rows, "power_source")
    if backend not in {*CHOSEN, told["backend"]}:
        raise Unreadable(f"{origin}: {place}: tells of back-end {told['backend']!r} where {backend!r} was asked for; it is left out.")
    if told["power_source"] == NO_SENSOR and told["unit"] == WATT:
        told |= dict.fromkeys(SENSED, math.nan)
    result = [_iteration(row) | told for row in rows]
    if any(later["number"] <= earlier["number"] for earlier, later in pairwise(result)):
        raise Unreadable(f"{origin}: {place}.{ROWS}: numbers do not rise from row to row; it was edited, measure again.")
    for _, phase in groupby(result, key=itemgetter("cap")):
        under_cap = list(phase)
        for at, row in enumerate(under_cap):
            row["steady"] = at >= max(FIRST, len(under_cap) // 2)
    return result


def _agreed(rows: list[Fields], name: str) -> str:
    """Answer the text that all rows of a cell must agree in."""
    texts = dict.fromkeys(row.text(name) for row in rows)
    if len(texts) > 1:
        rows[0].refuse(f"and others differ in {name} ({', '.join(texts)}): figures of different kinds are never mixed")
    return next(iter(texts))


def _numbers(part: Fields, *names: str) -> dict[str, float]:
    return {name: part.optional(Fields.number, name, math.nan) for name in names}


def _iteration(part: Fields) -> dict[str, Any]:
    numbers = _numbers(part, *SENSED, THROUGHPUT, "decision_s")
    for name, value in numbers.items():
        if value < 0 and name != WORST:
            part.refuse(f"has {name} = {value:g}, which cannot be below 0")
    measured_s = part.positive("measured_s")
    if measured_s > LONGEST_S:
        part.refuse(f"has measured_s = {measured_s:g}, longer than any run")
    above, more = numbers["above_cap_s"], numbers["above_102_s"]
    if above > SLACK * measured_s:
        part.refuse(f"has above_cap_s = {above:g} of {measured_s:g} s measured")
    if more > SLACK * above + 1e-9:
        part.refuse(f"is said to be {more:g} s above 1.02 times the cap and {above:g} s above the cap")
    work = _work(part)
    asked, actual = (_settings(part.optional_fields(name)) for name in ("asked", "actual"))
    refused = part.optional(Fields.texts, "refused", ())
    moved = any(abs(actual[name] - asked[name]) > ASTRAY * asked[name] for name in CLOCKS)
    predicted = _numbers(part.optional_fields("predicted"), THROUGHPUT, "power_w")
    return {
        "number": part.whole("iteration"),
        "cap": part.positive("cap"),
        "measured_s": measured_s,
        **numbers,
        THROUGHPUT: work["images"] / measured_s if math.isnan(numbers[THROUGHPUT]) else numbers[THROUGHPUT],
        **work,
        **{f"predicted.{name}": value for name, value in predicted.items()},
        **{f"asked.{name}": value for name, value in asked.items()},
        **{f"actual.{name}": value for name, value in actual.items()},
        "refused": refused,
        "lost": tuple(text for name in ("oom", "crashed") for text in part.optional(Fields.texts, name, ())),
        "astray": moved and not refused,
    }


def _work(part: Fields) -> dict[str, float]:
    """Images of all processes, and of those that did something the worst latencies and the images over the SLO."""
    tenants = []
    for tenant in part.each("tenants"):
        images = tenant.up_to("images", float(LARGEST_COUNT)) or 0.0
        told = [tenant.up_to(name, 1000 * LONGEST_S) for name in LATENCIES]
        tenants.append([images, *told, tenant.up_to("over_slo_share", 1.0)])
    every = np.array(tenants, dtype=np.float64).reshape(len(tenants), len(LATENCIES) + 2)
    busy = every[every[:, 0] > 0]
    # A process that did something and told no latency may be the slowest: NaN is the largest.
    worst = busy[:, 1:-1].max(axis=0) if len(busy) else np.full(len(LATENCIES), math.nan)
    over = float((busy[:, 0] * busy[:, -1]).sum())
    return {"images": math.fsum(every[:, 0]), **dict(zip(LATENCIES, worst.tolist(), strict=True)), "over_slo_images": over}


def _settings(part: Fields) -> dict[str, float]:
    """MHz, W and a duty from 0 to 1 where there is such a knob, and the images of all batches together."""
    batches = [tenant.whole("batch") for tenant in part.each("tenants")] if part.has("tenants") else []
    return {**_numbers(part, *KNOBS), "batches": float(sum(batches)) if batches else math.nan}


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Every figure that a cell's steady iterations give; one whose readings are missing in any of them is missing."""
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
        PER_IMAGE: math.fsum(row["energy_j"] for row in counted) / images if images > 0 else math.nan,
        **{name: _median(at_work, name) for name in LATENCIES},
        OVER_SLO: math.fsum(row["over_slo_images"] for row in at_work) / done if done else math.nan,
        "decision_s": _median(rows, "decision_s"),
    }


def _share(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    part = math.fsum(row[name] for row in rows) / math.fsum(row["measured_s"] for row in rows)
    return part if math.isnan(part) else min(1.0, part)


def _median(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(np.median([row[name] for row in rows])) if rows else math.nan
