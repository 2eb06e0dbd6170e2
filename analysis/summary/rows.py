"""Summary tables: what each tweak set measured in absolute numbers, beside what it changes and what may be said of it.

One row a tweak set, workload and run. Nothing is called best: what is shown to be better or worse has a verdict, the rest has not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.quantities import CPU_BUSY, GIB, GPU_UTIL, MEM_AVAILABLE, MEM_USED
from analysis.wording import gpus_of

from .averages import step_time_mean_s, throughput_samples_per_s, time_weighted
from .changes import changes, sections
from .energy import energy_j_per_sample, power_w

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analysis.quantities import Quantity
    from analysis.terms import Cell, Comparison, Run


@dataclass(frozen=True, slots=True)
class Row:
    """One tweak set under one workload in one run; None where something was not measured.

    Means of telemetry are over the measured time. `changes` counts parameters by section. `gain` and its 95 % interval are fractions in
    `metric`, above 0 where it was faster than the baseline, whose arms have that word in place of a verdict.
    """

    run_id: str
    machine: str
    study: str
    workload: str
    tweakset: str
    cells: int
    throughput_samples_per_s: float | None
    step_time_mean_s: float | None
    gpu_util_percent: float | None
    gpu_power_w: float | None
    energy_j_per_sample: float | None
    cpu_busy_percent: float | None
    memory_used_gib: float | None
    changes: Mapping[str, int]
    metric: str
    gain: float | None
    low: float | None
    high: float | None
    verdict: str


def rows_of(runs: Sequence[Run], comparisons: Iterable[Comparison]) -> list[Row]:
    """Make the rows of all runs; workloads and tweak sets stand in the order in which a run lists them, the baseline first."""
    said = {(one.candidate_run, one.study, one.workload, one.tweakset): one for one in comparisons if one.baseline_run == one.candidate_run}
    rows = []
    for run in runs:
        arms: dict[tuple[str, str], dict[str, list[Cell]]] = {(study, workload): {} for study in run.studies for workload in run.workloads}
        for cell in run.cells:
            arms[cell.study, cell.workload].setdefault(cell.tweakset, []).append(cell)
        for (study, workload), cells in arms.items():
            names = dict.fromkeys([run.baseline, *run.tweaksets])
            rows += [_row(run, cells[name], said.get((run.origin, study, workload, name))) for name in names if name in cells]
    return rows


def machine_of(run: Run) -> str:
    """Name the machine a run was made on: its GPUs, else its processor, else what the run calls itself."""
    parts = gpus_of(run.machine)
    if not parts and run.machine.get("cpu_model"):
        count = run.machine.get("cpu_count")
        parts = [f"{count} × {run.machine['cpu_model']}" if count else str(run.machine["cpu_model"])]
    return ", ".join(parts) or "unknown"


def _row(run: Run, cells: Sequence[Cell], said: Comparison | None) -> Row:
    measured = [cell for cell in cells if cell.outcome == "measured"]
    first = cells[0]
    primary = run.workloads[first.workload].primary or run.studies[first.study].primary
    effect = said.primary if said else None
    in_baseline = said.guard and said.verdict != "not comparable" if said else first.tweakset == run.baseline
    return Row(
        run_id=run.run_id,
        machine=machine_of(run),
        study=first.study,
        workload=first.workload,
        tweakset=first.tweakset,
        cells=len(measured),
        throughput_samples_per_s=throughput_samples_per_s(measured),
        step_time_mean_s=step_time_mean_s(measured),
        gpu_util_percent=time_weighted(measured, lambda cell: mean_of(GPU_UTIL, cell)),
        gpu_power_w=time_weighted(measured, power_w),
        energy_j_per_sample=energy_j_per_sample(measured),
        cpu_busy_percent=time_weighted(measured, lambda cell: mean_of(CPU_BUSY, cell)),
        memory_used_gib=time_weighted(measured, lambda cell: _memory_used_gib(cell, run.machine)),
        changes=sections(changes(run, first.tweakset)),
        metric=primary.name,
        gain=effect.gain if effect else said.observed if said else None,
        low=effect.low if effect else None,
        high=effect.high if effect else None,
        verdict="baseline" if in_baseline else said.verdict if said else "",
    )


def mean_of(quantity: Quantity, cell: Cell) -> float | None:
    """Answer the mean of a quantity over a cell's measured steps, from its saved summary; None where there is none."""
    means = {name.removesuffix("_mean"): value for name, value in cell.telemetry.items() if name.endswith("_mean")}
    return quantity.combined([means[name] for name in quantity.columns(means)])


def _memory_used_gib(cell: Cell, machine: Mapping[str, object]) -> float | None:
    used, available, total = mean_of(MEM_USED, cell), mean_of(MEM_AVAILABLE, cell), machine.get("mem_total_bytes")
    if used is not None or available is None or not isinstance(total, int | float):
        return used
    return total / GIB - available
