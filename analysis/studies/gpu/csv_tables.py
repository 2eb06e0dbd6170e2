"""Summary tables as CSV, as the study published them: one statistic a file (mean.csv, median.csv, max.csv), one row a cell."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable

from .terms import GRACT, MAX, MEAN, MEDIAN, MEMORY_MIB, MEMORY_UTILIZATION, SMACT, SMOCC, UTILIZATION, CellTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from .terms import Size

BLOCKS, THREADS = "#Thread Blocks", "#Threads"
COLUMNS = {
    "GPU Utilization": UTILIZATION,
    "GPU Memory Utilization": MEMORY_UTILIZATION,
    "GPU Memory usage (MB)": MEMORY_MIB,  # MiB, as nvidia-smi says
    "GRACT": GRACT,
    "SMACT": SMACT,
    "SMOCC": SMOCC,
}
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a table that was read compares with what the logs come to: `differing` are cell, metric, what it says and what we reckon."""

    table: str
    cells: int
    of: int
    compared: int
    largest: float
    differing: tuple[tuple[Size, str, float, float], ...]


def is_table(path: Path) -> bool:
    """Whether a file is such a table, by its header."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            head = next(csv.reader([lines.readline(4096)]), [])
    except (OSError, csv.Error):
        return False
    return {BLOCKS, THREADS} <= {name.strip() for name in head}


def read(path: Path) -> CellTable:
    """Read a table; which statistic it holds is its name.

    Raises: Unreadable, with the line.
    """
    statistic = next((text for text in (MEAN, MEDIAN, MAX) if text in path.stem.lower()), None)
    if statistic is None:
        raise Unreadable(f"{path}: which statistic it holds is not in its name; call it mean.csv, median.csv or max.csv.")
    try:
        lines = list(csv.reader(StringIO(read_whole(path).decode("utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(f"{path}: no table of comma-separated text: {one_line(error, 80)}.") from None
    heads = [name.strip() for name in lines[0]] if lines else []
    if not {BLOCKS, THREADS} <= set(heads):
        raise Unreadable(f"{path}: has no columns {BLOCKS!r} and {THREADS!r}: no summary of a grid.")
    rows: dict[Size, dict[str, float]] = {}
    for number, cells in enumerate(lines[1:], 2):
        if not any(cell.strip() for cell in cells):
            continue
        try:
            given = dict(zip(heads, cells, strict=True))
            size = _whole(given[BLOCKS]), _whole(given[THREADS])
            values = {metric: value for name, metric in COLUMNS.items() if (value := _number(given.get(name, ""))) is not None}
        except ValueError as error:
            raise Unreadable(f"{path}: line {number}: {one_line(error, 80)}; it is damaged, take it from its source again.") from None
        if size in rows:
            raise Unreadable(f"{path}: line {number}: {size[0]},{size[1]} is there twice; it was edited, take it from its source again.")
        rows[size] = values
    if not rows:
        raise Unreadable(f"{path}: holds no cell.")
    return CellTable(statistic, f"{path.name}, {len(rows)} cells", rows)


def _whole(text: str) -> int:
    value = float(text)
    if not value.is_integer() or not 0 < value < 1e9:
        raise ValueError(f"{text!r} is no number of blocks or threads")
    return int(value)


def _number(text: str) -> float | None:
    """Read a figure; an empty cell and NaN are missing."""
    value = float(text) if text.strip() else math.nan
    if math.isinf(value):
        raise ValueError(f"{text!r} is no measurement")
    return None if math.isnan(value) else value


def written(table: CellTable) -> str:
    """Write a table with the same columns, its figures to the last digit; what is missing stays empty."""
    out = StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    sheet.writerow(["", BLOCKS, THREADS, *COLUMNS])
    for at, (size, row) in enumerate(sorted(table.rows.items())):
        sheet.writerow([at, *size, *(row.get(metric, "") for metric in COLUMNS.values())])
    return out.getvalue()


def agreement(read_table: CellTable, ours: CellTable) -> Agreement:
    """Compare a table that was read with the one we reckoned, in the cells and metrics that both have."""
    differing: list[tuple[Size, str, float, float]] = []
    largest, compared, cells = 0.0, 0, 0
    for size, row in sorted(read_table.rows.items()):
        mine = ours.rows.get(size, {})
        both = [metric for metric in row if metric in mine]
        cells += bool(both)
        for metric in both:
            off = abs(row[metric] - mine[metric])
            compared, largest = compared + 1, max(largest, off)
            if off > TOLERANCE * max(1.0, abs(row[metric])):
                differing.append((size, metric, row[metric], mine[metric]))
    return Agreement(read_table.label, cells, len(read_table.rows), compared, largest, tuple(differing))


def agreements(read_tables: Sequence[CellTable], ours: Iterable[CellTable]) -> list[Agreement]:
    """Compare each table that was read with ours of its statistic, where they have a cell in common."""
    by_statistic = {table.statistic: table for table in ours}
    result = [agreement(table, by_statistic[table.statistic]) for table in read_tables if table.statistic in by_statistic]
    return [one for one in result if one.compared]
