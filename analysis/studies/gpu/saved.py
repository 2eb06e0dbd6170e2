"""A saved run of `bench_gpu_metrics` as a grid: each measured cell with the samples its workload reported.

The report is read as a foreign file is: what is not as it should be is named with its cell and left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.formats.fields import Fields
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable

from .sampled import log_of
from .terms import METRICS, GridCell, KernelGrid, Work, chip_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Cell as SavedCell
    from analysis.terms import Run

    from .terms import Chip, Samples

REPORT, SAMPLES = "gpu_metrics", "samples"
SOURCES = {"gpm": "NVML GPM", "dcgm": "DCGM", "nvml": "NVML"}
LARGEST = 1e12
UNTOUCHED = "stock-again"
OFTEN = 3  # reasons of one kind that are written out


def reports_gpu_metrics(run: Run) -> bool:
    """Whether any cell of a run is one of such a grid."""
    return any(REPORT in cell.report for cell in run.cells)


def grid_of(run: Run, refused: list[str], *, sms: int | None = None) -> KernelGrid:
    """Take the grid out of a run that was read, on the machine as it was found; what cannot be used is said in `refused`.

    Raises: Refused, where no cell is left.
    """
    reporting = {cell.workload for cell in run.cells if REPORT in cell.report}
    cells: list[GridCell] = []
    chips: list[Chip] = []
    notes: list[str] = []
    others = 0
    lost: dict[str, list[str]] = {}
    for cell in run.cells:
        if cell.workload not in reporting and cell.workload.partition(":")[0] not in {text.partition(":")[0] for text in reporting}:
            continue
        if cell.tweakset not in {run.baseline, UNTOUCHED}:
            others += 1
            continue
        if cell.outcome != "measured":
            lost.setdefault(f"{cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}", []).append(cell.id)
            continue
        try:
            result, chip = _cell(cell, run, sms)
        except Unreadable as error:
            refused.append(one_line(error))
            continue
        cells.append(result)
        chips.append(chip)
    for reason, ids in lost.items():
        more = f" and {len(ids) - OFTEN} more" if len(ids) > OFTEN else ""
        refused.append(f"{run.origin}: {', '.join(ids[:OFTEN])}{more} {reason}.")
    if not cells:
        raise Refused(f"{run.origin}: no cell of a GPU grid was measured in it{f'; {refused[-1]}' if refused else '.'}")
    if others:
        notes.append(f"{others} cells under tweak sets or monitors are left out: only the untouched machine is looked at")
    if len({(chip.name, chip.sms) for chip in chips}) > 1:
        notes.append(f"the GPU is not the same in all cells: {', '.join(dict.fromkeys(str(chip.name) for chip in chips))}")
        chips = [replace(chips[0], sms=None, missing="cells ran on different GPUs")]
    missing = dict.fromkeys(f"{metric} was not recorded: {reason}" for cell in cells for metric, reason in cell.missing.items())
    return KernelGrid(run.origin, tuple(sorted(cells, key=lambda cell: cell.size)), chips[0], notes=(*notes, *missing), run=run)


def _cell(cell: SavedCell, run: Run, sms: int | None) -> tuple[GridCell, Chip]:
    place = f"{cell.id}.report.{REPORT}"
    told = cell.report.get(REPORT, ())
    if len(told) != 1:
        raise Unreadable(f"{run.origin}: {place} has {len(told)} entries where one belongs; measure again.")
    about = Fields(told[0], run.origin, place)
    sizes = Fields(_params(cell, run), run.origin, f"{cell.workload}")
    blocks, threads = (_size(sizes, name) for name in ("blocks", "threads"))
    name = about.optional_text("device")
    known = chip_of(name, sms)
    if sms is None and about.has("sms"):
        known = replace(known, name=name, sms=about.whole("sms") or None, source="as the run recorded", missing=None)
    if about.has("max_warps_per_sm"):
        known = replace(known, max_warps=about.whole("max_warps_per_sm") or None)
    work = Work(
        duty=about.up_to("duty", 1.0),
        kernel_s=about.positive("kernel_s") if about.has("kernel_s") else None,
        launch_interval_s=about.positive("launch_interval_s") if about.has("launch_interval_s") else None,
        launches=about.positive("launches") if about.has("launches") else None,
    )
    source = about.optional_text("source") or "?"
    columns = _columns(cell.report.get(SAMPLES, ()), run.origin, cell.id)
    missing = {key: one_line(reason, 120) for key, reason in about.optional_mapping("missing").items() if key not in columns}
    if not columns:
        why = "; ".join(f"{key}: {reason}" for key, reason in missing.items()) or "let its cells last longer, or sample more often"
        raise Unreadable(f"{run.origin}: {cell.id} reports no sample: {why}.")
    return GridCell(cell.id, blocks, threads, (log_of(SOURCES.get(source, source), name or "GPU", columns),), name, work, missing), known


def _size(sizes: Fields, name: str) -> int:
    count = sizes.whole(name)
    if count < 1:
        sizes.refuse(f"has {name} = {count}, and a kernel has one at least")
    return count


def _params(cell: SavedCell, run: Run) -> dict[str, object]:
    """What a cell's workload was asked: as the run describes it, and where that is silent, as its name says."""
    given = (part.split("=", 1) for part in cell.workload.split(":")[1:] if "=" in part)
    by_name = {key: int(value) if value.isdecimal() and len(value) < 10 else value for key, value in given}
    return {**by_name, **run.workloads[cell.workload].params}


def _columns(told: Sequence[Mapping[str, object]], origin: str, place: str) -> dict[str, Samples]:
    """Turn what was told into columns, whether by columns or sample by sample; null is missing, and an empty metric is not there.

    Raises: Unreadable, for a column that is not as long as the others and a value that is no number.
    """
    parts: list[dict[str, list[float]]] = []
    for at, record in enumerate(told):
        where = f"{place}.report.{SAMPLES}[{at}]"
        known = {metric: record[metric] for metric in METRICS if metric in record}
        listed = {metric: value if isinstance(value, list | tuple) else [value] for metric, value in known.items()}
        lengths = {len(values) for values in listed.values()}
        if len(lengths) > 1:
            raise Unreadable(
                f"{origin}: {where} has columns of {', '.join(map(str, sorted(lengths)))} samples; it was edited, measure again."
            )
        parts.append({metric: [_value(value, f"{where}.{metric}", origin) for value in values] for metric, values in listed.items()})
    counts = [max(map(len, part.values()), default=0) for part in parts]
    result = {
        metric: np.array([value for part, count in zip(parts, counts, strict=True) for value in part.get(metric, [np.nan] * count)])
        for metric in METRICS
    }
    return {metric: values for metric, values in result.items() if not np.isnan(values).all()}


def _value(value: object, place: str, origin: str) -> float:
    number = float("nan") if value is None else value
    if isinstance(number, bool) or not isinstance(number, int | float) or abs(number) > LARGEST:
        raise Unreadable(f"{origin}: {place} has {one_line(repr(value), 40)} where a finite number or null belongs; measure again.")
    return float(number)
