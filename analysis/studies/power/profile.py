"""A saved profile as traces: a row a cell, one that failed too, in the format that `fit` reads and others write.

A point that failed told no row that is kept; what it was is in its workload's parameters, and why in its cell's reason. One that was
skipped was never tried: it is no row, and is counted.
"""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.saving import must_be_a_name, write_whole
from analysis.studies.power.reporting.records import given_in
from analysis.terms import Refused, Unreadable

from .traces import COLUMNS, OURS, OUTCOMES, STATIC, as_csv, parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from analysis.terms import Cell, Run

    from .traces import Row

POINT = "point"
# As a cell's reason has it: `Point oom: 2 x 256 images do not fit.`
FAILED = re.compile(rf"Point ({'|'.join(one for one in OUTCOMES if one != 'measured')}): (.*)", re.DOTALL)
COUNTED = re.compile(r"(?:(\d{1,3})x)?(\d+(?:\.\d+)?)")


def is_profile(run: Run) -> bool:
    """Whether any cell of a run told of a point of a profile."""
    return any(POINT in cell.report for cell in run.cells)


def rows_of(run: Run, refused: list[str]) -> list[Row]:
    """Make traces of a run, in the order its cells ran; what was skipped, or cannot be read, is said in `refused`, a line each.

    Raises: Refused, for a run that is no profile.
    """
    if not is_profile(run):
        raise Refused(
            f"{run.origin}: no cell of it tells of a point; `pytest benchmarks/bench_power_profile.py --benchmark-save=NAME` saves such."
        )
    found = []
    skipped: dict[str, int] = {}
    workloads = {cell.workload.partition(":")[0] for cell in run.cells if POINT in cell.report}
    for cell in run.cells:
        if cell.workload.partition(":")[0] not in workloads:
            continue
        if cell.outcome == "skipped":
            why = (cell.reason or "no reason was recorded").rstrip(".")
            skipped[why] = skipped.get(why, 0) + 1
            continue
        try:
            found.append(_measured(cell, run.origin) if cell.outcome == "measured" else _failed(cell, run))
        except Unreadable as error:
            refused.append(str(error))
    refused += [f"{run.origin}: {count} points were skipped and are in no file: {why}." for why, count in skipped.items()]
    return found


def _measured(cell: Cell, origin: str) -> Row:
    told = cell.report.get(POINT, ())
    place = f"{origin}: cell {cell.id}, report.{POINT}"
    if len(told) != 1:
        raise Unreadable(f"{place}: holds {len(told)} rows where one belongs; measure it again.")
    return _row(told[0], place)


def _failed(cell: Cell, run: Run) -> Row:
    params = {name: str(value) for name, value in run.workloads[cell.workload].params.items()} | given_in(cell.workload)
    place = f"{run.origin}: cell {cell.id}"
    said = FAILED.search(cell.reason or "")
    network = params.get("model", "")
    shares, batches = ([], []) if network == STATIC else (_listed(params.get(name, ""), place) for name in ("shares", "batches"))
    row = {
        "model_name": network,
        "p_list": shares,
        "b_list": batches * len(shares) if len(batches) == 1 else batches,
        "target_freq": params.get("sm_mhz"),
        "mem_freq": params.get("mem_mhz"),
        "outcome": said[1] if said else "failed",
        "reason": " ".join((said[2] if said else cell.reason or "no reason was recorded").split()).rstrip("."),
        "backend": params.get("backend"),
        "throttle": params.get("throttle"),
    }
    return _row(row, place)


def _row(told: Mapping[str, object], place: str) -> Row:
    """Read a row as a file of traces is read. Raises: Unreadable."""
    names = [*COLUMNS, *OURS]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([names, [_cell(told.get(name)) for name in names]])
    rows = parse(text.getvalue(), place)
    if len(rows) != 1:
        raise Unreadable(f"{place}: is no row of a trace; measure it again.")
    return replace(rows[0], line=0)


def _cell(value: object) -> str:
    return "" if value is None else json.dumps(value) if isinstance(value, list | tuple) else str(value)


def _listed(text: str, place: str) -> list[float]:
    """Read what a name says of several processes: `4x25` is 25 four times, `50+2x25` 50 and twice 25. Raises: Unreadable."""
    parts = [COUNTED.fullmatch(one) for one in text.split("+")]
    if not all(parts):
        raise Unreadable(f"{place}: {text!r} is no list of shares or batches, as in 50+2x25; it was edited, measure it again.")
    return [float(one[2]) for one in parts if one for _ in range(int(one[1] or 1))]


def files(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Part rows into files, which have one network of one back-end each: `cpu/mobilenet_v2.csv`; back-ends are never mixed."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        backend = must_be_a_name(str(row.extra.get("backend", "unknown")), "traces of a back-end")
        found.setdefault(f"{backend}/{must_be_a_name(row.network, 'traces of a network')}.csv", []).append(row)
    return found


def write(rows: Sequence[Row], folder: Path) -> dict[Path, list[Row]]:
    """Write the files under a folder; one of the same name is replaced. Raises: Refused, OSError."""
    made = {folder / name: part for name, part in files(rows).items()}
    for path, part in made.items():
        write_whole(path, as_csv(part).encode())
    return made
