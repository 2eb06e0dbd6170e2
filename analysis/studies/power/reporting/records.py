"""What the cells of a capped run told, read as a foreign file is: a field is what it must be, or missing, or its cell is refused."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from analysis.formats.fields import LARGEST_COUNT, LONGEST_S, Fields
from analysis.terms import Unreadable

from .terms import NO_SENSOR, WATT, Capped, Iteration, Knobs, Tenant

if TYPE_CHECKING:
    from analysis.terms import Cell, Run


ALGORITHM, SHADOW, BACKEND, TASK = "algorithm", "shadow", "backend", "task"
DECIDER = ("margin", "parameters")  # beside the algorithm
CHOSEN = frozenset({"", "auto"})  # the run was to choose the back-end
ON = frozenset({"on", "true", "yes", "1"})


def given_in(workload: str) -> dict[str, str]:
    """Answer the parameters that a workload's name carries: `capped_inference:task=6:algorithm=steady`."""
    return dict(part.split("=", 1) for part in workload.split(":")[1:] if "=" in part)


class Names:
    """How the cells of one run are called."""

    def __init__(self, run: Run) -> None:
        self._params = {
            name: {key: str(value) for key, value in one.params.items()} | given_in(name)
            for name, one in run.workloads.items()
            if ALGORITHM in {*one.params, *given_in(name)}
        }
        given = [given_in(name) for name in self._params]
        keys = {key for one in given for key in one}
        self._varied = {key for key in keys if len({one.get(key) for one in given}) > 1}

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
AGAIN, STOCK = "stock-again", "stock"
UNKNOWN = "unknown"
SENSED = ("power_mean", "power_max", "energy_j", "above_cap_s", "above_102_s", "above_cap_unit_s", "above_cap_longest_s", "above_cap_worst")
OTHERS = ("throughput_images_per_s", "decision_s")
LATENCIES = ("latency_p50_ms", "latency_p95_ms", "latency_p99_ms")
SLACK = 1.02  # a clock and a sampler do not agree to the last millisecond


def is_capped(run: Run) -> bool:
    """Whether any cell of a run told of iterations under a cap."""
    return any(ROWS in cell.report for cell in run.cells)


def capped(run: Run, names: Names, refused: list[str]) -> list[Capped]:
    """Read every measured cell that told of iterations; what cannot be used is said in `refused`, a line each.

    Cells under a tweak set are for `compare`: here algorithms are compared, on the machine as it was found.
    """
    found = []
    for cell in run.cells:
        if cell.outcome == "measured" and ROWS in cell.report and cell.tweakset in {STOCK, AGAIN} and names.known(cell):
            try:
                found.append(_capped(cell, run.origin, names))
            except Unreadable as error:
                refused.append(str(error))
    return found


def _capped(cell: Cell, origin: str, names: Names) -> Capped:
    place = f"cell {cell.id}, report"
    rows = [Fields(one, origin, f"{place}.{ROWS}[{at}]") for at, one in enumerate(cell.report[ROWS])]
    if not rows:
        raise Unreadable(f"{origin}: {place}.{ROWS}: has no row; the cell measured nothing, measure it again.")
    backend, unit, source = (_one(rows, name) for name in ("backend", "cap_unit", "power_source"))
    if names.backend(cell) not in {"", backend}:
        raise Unreadable(f"{origin}: {place}: tells of back-end {backend!r} where {names.backend(cell)!r} was asked for; it is left out.")
    iterations = tuple(_iteration(one, sensed=source != NO_SENSOR or unit != WATT) for one in rows)
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
            Fields(one, origin, f"{place}.{INFEASIBLE}[{at}]").text("sentence") for at, one in enumerate(cell.report.get(INFEASIBLE, ()))
        ),
    )


def _one(rows: list[Fields], name: str) -> str:
    """Answer the text that all rows of a cell must agree in."""
    found = dict.fromkeys(one.text(name) for one in rows)
    if len(found) > 1:
        rows[0].refuse(f"and others differ in {name} ({', '.join(found)}): figures of different kinds are never mixed")
    return next(iter(found))


def _iteration(part: Fields, *, sensed: bool) -> Iteration:
    numbers = Fields({"row": part.value}, part.origin, part.place).known_numbers("row", (*SENSED, *OTHERS))
    for name, value in numbers.items():
        if value < 0 and name != "above_cap_worst":
            part.refuse(f"has {name} = {value:g}, which cannot be below 0")
    measured_s = part.positive("measured_s")
    if measured_s > LONGEST_S:
        part.refuse(f"has measured_s = {measured_s:g}, longer than any run")
    tenants = tuple(_tenant(one) for one in part.each("tenants"))
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
        throughput_images_per_s=math.fsum(one.images for one in tenants) / measured_s if rate is None else rate,
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
        batches=tuple(one.whole("batch") for one in tenants),
        **numbers,
    )
