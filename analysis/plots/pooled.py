"""The samples of one quantity under one tweak set: all of them, and their mean over the cells at each time."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .scene import measured, series_key
from .trailing import trailing_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.quantities import Quantity

    from .scene import Panel, Scene

TRAILING, TRAILING_SHORT, SHORT = 10, 3, 100  # samples: as DeepTweak drew it, and for cells of fewer than so many


class Trace(NamedTuple):
    """Samples of all cells, and their trailing mean over the cells; NaN where nothing was sampled."""

    raw_s: np.ndarray
    raw: np.ndarray
    time_s: np.ndarray
    mean: np.ndarray
    window: int


def traces_of(scene: Scene, panel: Panel, quantity: Quantity) -> dict[str, Trace]:
    """Answer a trace for each tweak set beside whose cells the quantity was sampled."""
    found: dict[str, Trace] = {}
    for arm in panel.arms:
        cells = []
        for cell in measured(panel, arm):
            series = scene.series.get(series_key(panel.run, cell.id))
            values = quantity.over_time(series.columns) if series is not None else None
            if series is not None and values is not None:
                cells.append((np.asarray(series.time_s), np.asarray(values, dtype=float)))
        if cells:
            found[arm] = pooled(cells)
    return found


def pooled(cells: Sequence[tuple[np.ndarray, np.ndarray]]) -> Trace:
    """Pool cells, each a time and a value for every sample; the mean ends when fewer than half of the cells still run.

    After that it would be of the slow ones alone.
    """
    raw_s, raw = (np.concatenate(part) for part in zip(*cells, strict=True))
    time_s, mean = cells[0] if len(cells) == 1 else _mean(cells)
    window = TRAILING if len(mean) >= SHORT else TRAILING_SHORT
    return Trace(raw_s, raw, time_s, trailing_mean(mean, window), window)


def _mean(cells: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    paces = [float(np.median(np.diff(at))) for at, _ in cells if len(at) > 1]
    ends = sorted(float(at[-1]) for at, _ in cells)
    pace_s, end_s = statistics.median(paces) if paces else 1.0, ends[len(ends) // 2]
    time_s = np.arange(0.0, end_s + pace_s / 2, pace_s)
    rows = [np.interp(time_s, at[np.isfinite(one)], one[np.isfinite(one)], left=np.nan, right=np.nan) for at, one in cells]
    known = np.isfinite(rows)
    count, total = known.sum(axis=0), np.where(known, rows, 0.0).sum(axis=0)
    return time_s, np.where(count > 0, total / np.maximum(count, 1), np.nan)
