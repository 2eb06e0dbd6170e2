"""Samples and what they come to: which were taken while the GPU worked, and mean, median and maximum of a cell.

A whole log begins before the kernel and ends after it. Its mean tells how long somebody waited as much as what the kernel did, so the
active part stands beside it: the longest stretch of samples in each of which something ran. What ran before it (nvidia-smi's utilisation
lags, and shows the run before) is none of it; its first and last sample are partly idle still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .terms import ACTIVE, GRACT, MAX, MEAN, MEDIAN, METRICS, UTILIZATION, CellTable, GpuLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from .terms import GridCell, Samples, Size

PLURAL = {MEAN: "means", MEDIAN: "medians", MAX: "peaks", ACTIVE: "active means"}


def log_of(source: str, gpu: str, columns: Mapping[str, Samples], others: float | None = None) -> GpuLog:
    """Make a log of columns. Something runs where GRACT is above 0; utilisation tells it only where there is no GRACT, for it lags."""
    length = len(next(iter(columns.values()), np.zeros(0)))
    tell = next((name for name in (GRACT, UTILIZATION) if name in columns and not np.isnan(columns[name]).all()), None)
    works = columns[tell] > 0 if tell is not None else np.zeros(length, bool)  # NaN is not
    at_work = np.zeros(length, bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], works, [False]])))
    if edges.size:
        starts, ends = edges[::2], edges[1::2]
        longest = int((ends - starts).argmax())
        at_work[starts[longest] : ends[longest]] = True
    return GpuLog(source, gpu, dict(columns), at_work, others)


def column(cell: GridCell, metric: str) -> tuple[Samples, NDArray[np.bool_]]:
    """Answer a metric's samples and which of them were active; none where no log has any. NaN are left out."""
    for log in cell.logs:
        values = log.columns.get(metric)
        if values is not None and not np.isnan(values).all():
            there = ~np.isnan(values)
            return values[there], log.at_work[there]
    return np.zeros(0), np.zeros(0, bool)


def statistics(cell: GridCell, metric: str) -> dict[str, float]:
    """Answer mean, median and maximum over the whole log, and the mean over its active part (missing where nothing ran)."""
    values, at_work = column(cell, metric)
    if not values.size:
        return {}
    result = {MEAN: float(values.mean()), MEDIAN: float(np.median(values)), MAX: float(values.max())}
    return result | ({ACTIVE: float(values[at_work].mean())} if at_work.any() else {})


def idle(cell: GridCell) -> tuple[int, int, int]:
    """Answer the samples before, in and after the active part: by GRACT where a log has it, else of the log that has most."""
    log = max(cell.logs, key=lambda log: (GRACT in log.columns, len(log)))
    where = np.flatnonzero(log.at_work)
    return (int(where[0]), where.size, len(log) - int(where[-1]) - 1) if where.size else (len(log), 0, 0)


def table(cells: Sequence[GridCell], statistic: str) -> CellTable:
    """Reckon one statistic of every cell; runs of equal size are one cell, its statistic their mean."""
    by_size: dict[Size, list[GridCell]] = {}
    for cell in cells:
        by_size.setdefault(cell.size, []).append(cell)
    rows = {size: _row(same, statistic) for size, same in sorted(by_size.items())}
    return CellTable(statistic, f"{PLURAL[statistic]} of {len(rows)} cells", rows)


def _row(cells: Iterable[GridCell], statistic: str) -> dict[str, float]:
    result: dict[str, list[float]] = {}
    for cell in cells:
        for metric in METRICS:
            value = statistics(cell, metric).get(statistic)
            if value is not None:
                result.setdefault(metric, []).append(value)
    return {metric: float(np.mean(values)) for metric, values in result.items()}


def spread(cells: Iterable[GridCell], metric: str) -> float | None:
    """Answer by how much the active means of runs of one size differ at most; None where each size ran once."""
    result: dict[Size, list[float]] = {}
    for cell in cells:
        value = statistics(cell, metric).get(ACTIVE)
        if value is not None:
            result.setdefault(cell.size, []).append(value)
    return max((max(values) - min(values) for values in result.values() if len(values) > 1), default=None)


def lengths(cells: Iterable[GridCell]) -> dict[Size, float]:
    """How many samples each cell's run took: the active part (mean of runs of one size)."""
    result: dict[Size, list[int]] = {}
    for cell in cells:
        result.setdefault(cell.size, []).append(idle(cell)[1])
    return {size: float(np.mean(counts)) for size, counts in sorted(result.items())}
