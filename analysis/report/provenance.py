"""Sections on a run's cells and machine, and on how several runs differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from analysis import machine
from analysis.answer import Column, Line, Section, Table
from analysis.labels import TOLD_RATE, label_of
from analysis.terms import Cell, Run
from analysis.wording import blocks_of, listed
from control import rates
from control.names import first_few, undigested

NAMED = 5  # names of cells that never ran
OPEN = ("hardware", "driver")
# Metrics in the list of all cells.
METRICS = (
    TOLD_RATE,
    "throughput_samples_per_s",
    "step_time_p10_s",
    "step_time_q1_s",
    "step_time_round_adjusted_s",
    "step_time_median_s",
    "step_time_mean_s",
)


def counts_of(run: Run) -> str:
    """Write how many cells were measured, and how many planned."""
    measured = sum(cell.outcome == "measured" for cell in run.cells)
    if not run.replicated:
        return f"{measured} of {len(run.cells)} cells measured, no replicates"
    planned = len(run.design.order) or len(run.cells)
    return (
        f"{measured} of {planned} cells measured in "
        f"{blocks_of(run)}{', interrupted' if run.interrupted else ''}"
    )


def cells(run: Run) -> Iterator[Section]:
    """Yield the cells' numbers, the lost cells with reasons, and all cells in run order."""
    seed = f", seed {run.design.seed}" if run.replicated else ""
    yield Section("", [Line(f"{counts_of(run)}{seed}.")])
    if lost := list(_lost(run)):
        columns = [
            Column(name, left=True)
            for name in ("tweak set", "workload", "outcome", "where", "reason")
        ]
        yield Section("Cells that were not measured", [Table(columns, lost)])
    metrics = [name for name in METRICS if any(name in cell.metrics for cell in run.cells)]
    columns = [
        *(Column(name) for name in ("order", "block")),
        *(
            Column(name, left=True)
            for name in ("workload", "tweak set", "outcome", "started\n(UTC)")
        ),
        Column("cell\ns", write="{:.1f}".format),
        *(Column(*_head(name)) for name in metrics),
    ]
    yield Section(
        f"All {len(run.cells)} cells in run order",
        [Table(columns, [_row(cell, metrics) for cell in run.cells])],
        folded=True,
    )


def _lost(run: Run) -> Iterator[list[str]]:
    blocks: dict[tuple[str, str, str, str], set[int]] = defaultdict(set)
    for cell in run.cells:
        if cell.outcome != "measured":
            blocks[
                cell.tweakset,
                undigested(cell.workload),
                cell.outcome,
                cell.reason or "no reason was given",
            ].add(cell.block)
    for (tweakset, workload, outcome, reason), where in blocks.items():
        yield [tweakset, workload, outcome, listed(where), reason]
    if never := sorted(set(run.design.order) - {cell.id for cell in run.cells}):
        reason = f"the run ended before them: {first_few(never, NAMED)}"
        yield ["planned, never run", "", "skipped", f"{len(never)} cells", reason]


def _head(metric: str) -> tuple[str, str]:
    unit = (
        ""
        if metric == TOLD_RATE
        else "\nms"
        if metric.endswith("_s") and "_per_" not in metric
        else "\nsamples/s"
    )
    return f"{label_of(metric)}{unit}", metric


def _row(cell: Cell, metrics: Sequence[str]) -> list[object]:
    return [
        cell.order,
        cell.block,
        undigested(cell.workload),
        cell.tweakset,
        cell.outcome,
        (cell.started_utc or "")[11:19],
        cell.duration_s,
        *(_number(cell, name) if name in cell.metrics else None for name in metrics),
    ]


def _number(cell: Cell, metric: str) -> str:
    value = cell.metrics[metric]
    if metric == TOLD_RATE:
        return rates.written(value, str(cell.facts.get("rate_unit", "")))
    return f"{value:.4g}" if metric.endswith("_per_s") else f"{1000 * value:.4g}"


def facts(run: Run) -> Iterator[Section]:
    """Yield the known facts about a run's machine, a section per group."""
    groups: dict[str, list[list[str]]] = defaultdict(list)
    for fact in machine.facts(run):
        groups[fact.group].append([fact.key, fact.value])
    columns = [Column("fact", left=True), Column("value", left=True)]
    for group, rows in groups.items():
        yield Section(
            f"{group[0].upper()}{group[1:]}", [Table(columns, rows)], folded=group not in OPEN
        )
    if not groups:
        yield Section("", [Line("The file records nothing about its machine.")])


def differences(runs: Sequence[Run]) -> Iterator[Section]:
    """Yield the keys in which several runs differ."""
    rows = [
        [one.group, one.key, *("not recorded" if value is None else value for value in one.values)]
        for one in machine.differences(runs)
    ]
    columns = [Column(name, left=True) for name in ("group", "key", *(run.run_id for run in runs))]
    parts = [Table(columns, rows)] if rows else [Line("The files record no difference.")]
    yield Section("How the runs differ", parts)
