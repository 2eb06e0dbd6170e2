"""The cells of a capped run, and their figures. A field is what it must be, or missing, or its cell is refused: files are foreign.

A cap is in watts, or, where no sensor reads any, in CPU seconds a second (`unit`), which is activity and never called power.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from analysis.formats.fields import LARGEST_COUNT, LONGEST_S, Fields
from analysis.terms import AGAIN, STOCK, Cell, Run, Unreadable

from .report_terms import NO_SENSOR, WATT, Capped, Iteration, Knobs, Tenant

ALGORITHM, SHADOW, BACKEND, TASK = "algorithm", "shadow", "backend", "task"
DECIDER = ("margin", "parameters")  # beside the algorithm
CHOSEN = frozenset({"", "auto"})  # the run was to choose the back-end
ON = frozenset({"on", "true", "yes", "1"})


def given_in(workload: str) -> dict[str, str]:
    """Answer the parameters that a workload's name carries: `capped_inference:task=6:algorithm=steady`."""
    return dict(part.split("=", 1) for part in workload.split(":")[1:] if "=" in part)


class PowerNames:
    """How the cells of one run are called."""

    def __init__(self, run: Run) -> None:
        self._params = {
            name: {key: str(value) for key, value in workload.params.items()} | given_in(name)
            for name, workload in run.workloads.items()
            if ALGORITHM in {*workload.params, *given_in(name)}
        }
        given = [given_in(name) for name in self._params]
        keys = {key for record in given for key in record}
        self._varied = {key for key in keys if len({record.get(key) for record in given}) > 1}

    def known(self, cell: Cell) -> bool:
        """Whether a cell is of an algorithm at all."""
        return cell.workload in self._params

    def arm(self, cell: Cell) -> str:
        """Its algorithm, whether the shadow optimiser ran beside it, and what else of the decider was varied."""
        params = self._params[cell.workload]
        shadow = [" + shadow"] if params.get(SHADOW, "").lower() in ON else []
        rest = [f", {key} {params[key]}" for key in DECIDER if key in self._varied and key in params]
        return "".join([params[ALGORITHM], *shadow, *rest])

    def group(self, cell: Cell) -> str:
        """What an arm is measured on: `task=6`, and whatever else was varied that is not the arm's."""
        params = self._params[cell.workload]
        told = [TASK, *sorted(self._varied - {TASK, ALGORITHM, SHADOW, BACKEND, *DECIDER})]
        return " ".join(f"{key}={params[key]}" for key in told if key in params) or cell.workload.partition(":")[0]

    def backend(self, cell: Cell) -> str:
        """The back-end that was asked for; "" where the run was to choose."""
        named = self._params[cell.workload].get(BACKEND, "")
        return "" if named in CHOSEN else named


ROWS, TASK, INFEASIBLE = "iteration", "task", "infeasible"
UNKNOWN = "unknown"
SENSED = ("power_mean", "power_max", "energy_j", "above_cap_s", "above_102_s", "above_cap_unit_s", "above_cap_longest_s", "above_cap_worst")
OTHERS = ("throughput_images_per_s", "decision_s")
LATENCIES = ("latency_p50_ms", "latency_p95_ms", "latency_p99_ms")
SLACK = 1.02  # a clock and a sampler do not agree to the last millisecond


def is_capped(run: Run) -> bool:
    """Whether any cell of a run told of iterations under a cap."""
    return any(ROWS in cell.report for cell in run.cells)


def capped(run: Run, names: PowerNames, refused: list[str]) -> list[Capped]:
    """Read every measured cell that told of iterations; what cannot be used is said in `refused`, a line each.

    Cells under a tweak set are for `compare`: here algorithms are compared, on the machine as it was found.
    """
    result = []
    for cell in run.cells:
        if cell.outcome == "measured" and ROWS in cell.report and cell.tweakset in {STOCK, AGAIN} and names.known(cell):
            try:
                result.append(_capped(cell, run.origin, names))
            except Unreadable as error:
                refused.append(str(error))
    return result


def _capped(cell: Cell, origin: str, names: PowerNames) -> Capped:
    place = f"cell {cell.id}, report"
    rows = [Fields(record, origin, f"{place}.{ROWS}[{at}]") for at, record in enumerate(cell.report[ROWS])]
    if not rows:
        raise Unreadable(f"{origin}: {place}.{ROWS}: has no row; the cell measured nothing, measure it again.")
    backend, unit, source = (_agreed(rows, name) for name in ("backend", "cap_unit", "power_source"))
    if names.backend(cell) not in {"", backend}:
        raise Unreadable(f"{origin}: {place}: tells of back-end {backend!r} where {names.backend(cell)!r} was asked for; it is left out.")
    iterations = tuple(_iteration(row, sensed=source != NO_SENSOR or unit != WATT) for row in rows)
    if any(later.number <= earlier.number for earlier, later in pairwise(iterations)):
        raise Unreadable(f"{origin}: {place}.{ROWS}: numbers do not rise from row to row; it was edited, measure again.")
    return Capped(
        id=cell.id,
        study=cell.study,
        group=names.group(cell),
        arm=names.arm(cell),
        block=cell.block,
        order=cell.order,
        backend=backend,
        unit=unit,
        power_source=source,
        iterations=iterations,
        task=next(iter(cell.report.get(TASK, ())), {}),
        again=cell.tweakset == AGAIN,
        infeasible=tuple(
            Fields(record, origin, f"{place}.{INFEASIBLE}[{at}]").text("sentence")
            for at, record in enumerate(cell.report.get(INFEASIBLE, ()))
        ),
    )


def _agreed(rows: list[Fields], name: str) -> str:
    """Answer the text that all rows of a cell must agree in."""
    result = dict.fromkeys(row.text(name) for row in rows)
    if len(result) > 1:
        rows[0].refuse(f"and others differ in {name} ({', '.join(result)}): figures of different kinds are never mixed")
    return next(iter(result))


def _iteration(part: Fields, *, sensed: bool) -> Iteration:
    numbers = Fields({"row": part.value}, part.origin, part.place).known_numbers("row", (*SENSED, *OTHERS))
    for name, value in numbers.items():
        if value < 0 and name != "above_cap_worst":
            part.refuse(f"has {name} = {value:g}, which cannot be below 0")
    measured_s = part.positive("measured_s")
    if measured_s > LONGEST_S:
        part.refuse(f"has measured_s = {measured_s:g}, longer than any run")
    tenants = tuple(_tenant(tenant) for tenant in part.each("tenants"))
    above, more = numbers.get("above_cap_s"), numbers.get("above_102_s")
    if above is not None and above > SLACK * measured_s:
        part.refuse(f"has above_cap_s = {above:g} of {measured_s:g} s measured")
    if above is not None and more is not None and more > SLACK * above + 1e-9:
        part.refuse(f"is said to be {more:g} s above 1.02 times the cap and {above:g} s above the cap")
    predicted = part.optional_fields("predicted")
    foretold = Fields({"row": predicted.value}, part.origin, predicted.place).known_numbers("row", ("throughput_images_per_s", "power_w"))
    rate = numbers.get("throughput_images_per_s")
    return Iteration(
        number=part.whole("iteration"),
        cap=part.positive("cap"),
        measured_s=measured_s,
        throughput_images_per_s=math.fsum(tenant.images for tenant in tenants) / measured_s if rate is None else rate,
        tenants=tenants,
        asked=_knobs(part.optional_fields("asked")),
        actual=_knobs(part.optional_fields("actual")),
        **({name: numbers.get(name) for name in SENSED} if sensed else {}),
        decision_s=numbers.get("decision_s"),
        predicted_images_per_s=foretold.get("throughput_images_per_s"),
        predicted_power=foretold.get("power_w"),
        refused=part.texts("refused") if part.has("refused") else (),
        lost=tuple(text for name in ("oom", "crashed") if part.has(name) for text in part.texts(name)),
    )


def _tenant(part: Fields) -> Tenant:
    p50, p95, p99 = (part.up_to(name, 1000 * LONGEST_S) for name in LATENCIES)
    images = part.up_to("images", float(LARGEST_COUNT))
    return Tenant(images or 0.0, p50, p95, p99, part.up_to("over_slo_share", 1.0))


def _knobs(part: Fields) -> Knobs:
    tenants = part.each("tenants") if part.has("tenants") else []
    numbers = Fields({"row": part.value}, part.origin, part.place).known_numbers("row", ("sm_mhz", "mem_mhz", "power_limit_w", "throttle"))
    return Knobs(
        batches=tuple(tenant.whole("batch") for tenant in tenants),
        **numbers,
    )


FIRST = 3
RULE = f"steady: of the iterations since the cap last changed, the second half, and none of the first {FIRST}"


def phases(iterations: Sequence[Iteration]) -> list[list[Iteration]]:
    """Part iterations where the cap changes."""
    result: list[list[Iteration]] = []
    for iteration in iterations:
        if not result or result[-1][-1].cap != iteration.cap:
            result.append([])
        result[-1].append(iteration)
    return result


def steady(iterations: Sequence[Iteration]) -> list[Iteration]:
    """Answer those that count, under all caps of the run together; none where each cap held for too short."""
    return [iteration for phase in phases(iterations) for iteration in phase[max(FIRST, len(phase) // 2) :]]


Scale = Literal["log", "raw"]
Better = Literal["lower", "higher"]

THROUGHPUT, ABOVE_102, ABOVE = "throughput_images_per_s", "above_102_share", "above_cap_share"
POWER, PER_IMAGE, P95, OVER_SLO = "power_mean", "energy_j_per_image", "latency_p95_ms", "over_slo_share"
EXCESS, WHOLE_102 = "above_cap_unit_s_per_min", "above_102_share_whole"
LONGEST, WORST = "above_cap_longest_s", "above_cap_worst"


@dataclass(frozen=True, slots=True)
class PowerResponse:
    """A figure of a cell: compared by ratios (`log`) or by differences (`raw`), and which way it is better."""

    name: str
    scale: Scale
    better: Better


# `above_cap_unit_s_per_min`: W·s above the cap in a minute. `above_102_share_whole` is of all iterations, the way to a new cap included.
RESPONSES = {
    response.name: response
    for response in (
        PowerResponse(THROUGHPUT, "log", "higher"),
        PowerResponse(ABOVE_102, "raw", "lower"),
        PowerResponse(ABOVE, "raw", "lower"),
        PowerResponse(EXCESS, "raw", "lower"),
        PowerResponse(WHOLE_102, "raw", "lower"),
        PowerResponse(POWER, "log", "lower"),
        PowerResponse(PER_IMAGE, "log", "lower"),
        PowerResponse("latency_p50_ms", "log", "lower"),
        PowerResponse(P95, "log", "lower"),
        PowerResponse("latency_p99_ms", "log", "lower"),
        PowerResponse(OVER_SLO, "raw", "lower"),
        PowerResponse("decision_s", "log", "lower"),
    )
}


def figures_of(cell: Capped) -> dict[str, float]:
    """Every figure that its steady iterations give; one whose readings are missing in any of them is missing."""
    counted = steady(cell.iterations)
    if not counted:
        return {}
    time_s = math.fsum(iteration.measured_s for iteration in counted)
    images = math.fsum(iteration.throughput_images_per_s * iteration.measured_s for iteration in counted)
    energy_j = _sum(counted, lambda iteration: iteration.energy_j)
    excess = _sum(counted, lambda iteration: iteration.above_cap_unit_s)
    result: dict[str, float | None] = {
        THROUGHPUT: images / time_s,
        ABOVE_102: _share(counted, lambda iteration: iteration.above_102_s),
        ABOVE: _share(counted, lambda iteration: iteration.above_cap_s),
        EXCESS: None if excess is None else 60 * excess / time_s,
        WHOLE_102: _share(cell.iterations, lambda iteration: iteration.above_102_s),
        POWER: _weighted(counted, lambda iteration: iteration.power_mean),
        PER_IMAGE: energy_j / images if energy_j is not None and images > 0 else None,
        "latency_p50_ms": _worst_process(counted, lambda tenant: tenant.p50_ms),
        P95: _worst_process(counted, lambda tenant: tenant.p95_ms),
        "latency_p99_ms": _worst_process(counted, lambda tenant: tenant.p99_ms),
        OVER_SLO: _over_slo(counted),
        "decision_s": _median([iteration.decision_s for iteration in cell.iterations]),
    }
    return {name: value for name, value in result.items() if value is not None}


def most_of(cells: Sequence[Capped]) -> Mapping[str, float]:
    """The longest stretch above the cap, and the worst reading, of all steady iterations of some cells.

    A stretch ends with its iteration: between two of them settings change and nothing is measured.
    """
    result = {}
    for name in (LONGEST, WORST):
        values = [value for cell in cells for iteration in steady(cell.iterations) if (value := getattr(iteration, name)) is not None]
        if values:
            result[name] = max(values)
    return result


def _sum(rows: Sequence[Iteration], of: Callable[[Iteration], float | None]) -> float | None:
    values = [of(row) for row in rows]
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _share(rows: Sequence[Iteration], of: Callable[[Iteration], float | None]) -> float | None:
    above_s = _sum(rows, of)
    return None if above_s is None else min(1.0, above_s / math.fsum(row.measured_s for row in rows))


def _weighted(rows: Sequence[Iteration], of: Callable[[Iteration], float | None]) -> float | None:
    total = _sum(rows, lambda iteration: None if (value := of(iteration)) is None else value * iteration.measured_s)
    return None if total is None else total / math.fsum(row.measured_s for row in rows)


def _worst_process(rows: Sequence[Iteration], of: Callable[[Tenant], float | None]) -> float | None:
    """Median over iterations; one in which nothing was done has no latency, and is out of it, and so is such a process.

    Of a process that did something and told no latency it may be the worst that is missing.
    """
    return _median([_largest([of(tenant) for tenant in row.tenants if tenant.images]) for row in rows if row.images])


def _largest(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


def _over_slo(rows: Sequence[Iteration]) -> float | None:
    """Each process's share, as heavy as its images are many."""
    pairs = [(tenant.images, tenant.over_slo_share) for row in rows for tenant in row.tenants if tenant.images]
    known = [(images, share) for images, share in pairs if share is not None]
    images = sum(images for images, _ in known)
    return math.fsum(images * share for images, share in known) / images if len(known) == len(pairs) and images else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None
