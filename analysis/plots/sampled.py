"""Samples of GPU and host over time while the cells ran."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from analysis.telemetry import QUANTITIES, Quantity, Series
from control.names import first_few

from .labels import fitted, joined
from .marks import Style, dots, trailing_mean
from .page import Chart, Page, Plot, body_width, fill, line, rounded
from .scene import Panel, Scene, measured, panels_of, series_key, some
from .style import BAND, QUIET, SMALL, ArmStyle, looks_of, picture

LEFT, TALL, GAP, TITLES, UNDER = 1.62, 0.62, 0.13, 0.3, 0.45
MANY = 3000  # points per line; above, lines are rasterised
MOST_COLUMNS, MOST_ROWS, MOST_NAMED = 4, 8, 6
# A quantity that moves by less, in its unit or relative to its largest value, counts as constant.
NOTHING, STILL = 0.005, 0.01
TRAILING, TRAILING_SHORT, SHORT = 10, 3, 100  # samples: usually, and below SHORT


class Trace(NamedTuple):
    """Samples of a tweak set's cells, and their trailing mean; NaN if missing."""

    raw_s: np.ndarray
    raw: np.ndarray
    time_s: np.ndarray
    mean: np.ndarray
    window: int


class SampledColumn(NamedTuple):
    """One workload: its panel, the samples of its cells, and quantity → tweak set → trace."""

    panel: Panel
    cells: Sequence[Series]
    traces: Mapping[Quantity, Mapping[str, Trace]]

    def of(self, quantity: Quantity) -> list[Trace]:
        """Return every trace of a quantity."""
        return list(self.traces.get(quantity, {}).values())


@picture(80, "Telemetry over time")
def telemetry(scene: Scene) -> Plot:
    """GPU, processor, memory and disk while the cells ran, per tweak set."""
    sampled = (column for panel in panels_of(scene) if (column := column_of(scene, panel)).traces)
    every = some(sampled, scene.series_missing or "no telemetry was sampled")
    flat: list[Quantity] = []
    moving: list[Quantity] = []
    for quantity in QUANTITIES:
        if traces := [trace for column in every for trace in column.of(quantity)]:
            raw = np.concatenate([trace.raw for trace in traces])
            least, most = np.nanmin(raw), np.nanmax(raw)
            still = most - least < max(NOTHING, STILL * abs(most))
            (flat if still else moving).append(quantity)
    columns, quantities = every[:MOST_COLUMNS], (moving or flat)[:MOST_ROWS]
    looks = looks_of(scene)
    names = list(dict.fromkeys(arm for column in columns for arm in column.panel.arms))
    labels = fitted(names, 2.6, SMALL, lines=1)
    legend = [
        line(labels[name], looks[name].color, 1.6, linestyle=looks[name].dashes) for name in names
    ]
    if any((cell.measured_from_s or 0) > 0 for column in columns for cell in column.cells):
        legend.append(fill("measured steps"))
    windows = {
        trace.window
        for column in columns
        for quantity in quantities
        for trace in column.of(quantity)
    }
    lead = (
        "Dots: samples of every cell. Lines: mean over the cells of a tweak set, trailing over "
        f"{' or '.join(map(str, sorted(windows)))} samples."
    )
    more = [quantity.label for quantity in moving[MOST_ROWS:]]
    hidden = [column.panel.title for column in every[MOST_COLUMNS:]]
    combined = (
        "Devices of one kind are combined. Samples far from all others, and cells longer than "
        "most, are cut off."
    )
    notes = [
        combined,
        f"Sampled as well: {joined(more)}." if more else "",
        f"Sampled, and constant: {joined(quantity.label for quantity in flat)}." if flat else "",
        f"Not drawn: {first_few(hidden, MOST_NAMED)}." if hidden else "",
        f"Without samples: {scene.series_missing}." if scene.series_missing else "",
    ]
    draw = partial(_columns, columns=columns, quantities=quantities, looks=looks)
    runs = [run for run in scene.runs if any(column.panel.run is run for column in columns)]
    chart = Chart("", TITLES + (TALL + GAP) * len(quantities) + UNDER, draw)
    return Plot(lead, [chart], legend, notes, runs=runs)


def column_of(scene: Scene, panel: Panel) -> SampledColumn:
    """Collect the samples of a workload's cells."""
    known = {cell.id: scene.series.get(series_key(panel.run, cell.id)) for cell in panel.cells}
    traces: dict[Quantity, dict[str, Trace]] = {}
    for arm in panel.arms:
        series = [one for cell in measured(panel, arm) if (one := known[cell.id])]
        for quantity in QUANTITIES:
            pairs = ((one.time_s, quantity.over_time(one.columns)) for one in series)
            sampled = [
                (np.asarray(at), np.asarray(values, dtype=float))
                for at, values in pairs
                if values is not None
            ]
            if sampled:
                traces.setdefault(quantity, {})[arm] = pooled(sampled)
    return SampledColumn(panel, [one for one in known.values() if one], traces)


def pooled(cells: Sequence[tuple[np.ndarray, np.ndarray]]) -> Trace:
    """Pool cells, each a time and a value per sample; the mean ends when fewer than half still run.

    After that it would describe the slow ones alone.
    """
    raw_s, raw = (np.concatenate(part) for part in zip(*cells, strict=True))
    time_s, mean = cells[0] if len(cells) == 1 else _mean(cells)
    window = TRAILING if len(mean) >= SHORT else TRAILING_SHORT
    return Trace(raw_s, raw, time_s, trailing_mean(mean, window), window)


def _mean(cells: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    paces = [statistics.median(np.diff(at).tolist()) for at, _ in cells if len(at) > 1]
    ends = sorted(float(at[-1]) for at, _ in cells)
    pace_s, end_s = statistics.median(paces) if paces else 1.0, ends[len(ends) // 2]
    time_s = np.arange(0.0, end_s + pace_s / 2, pace_s)
    rows = [
        np.interp(
            time_s, at[np.isfinite(array)], array[np.isfinite(array)], left=np.nan, right=np.nan
        )
        for at, array in cells
    ]
    finite = np.isfinite(rows)
    count, total = finite.sum(axis=0), np.where(finite, rows, 0.0).sum(axis=0)
    return time_s, np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _columns(
    sheet: Page,
    top: float,
    columns: Sequence[SampledColumn],
    quantities: Sequence[Quantity],
    looks: Mapping[str, ArmStyle],
) -> None:
    """Draw workloads side by side, each quantity on one scale, while most cells ran.

    The measured steps are shaded; before them are start-up and warm-up.
    """
    sheet.rule(top + 0.02)
    wide = (body_width() - LEFT + GAP) / len(columns)
    names = fitted([column.panel.title for column in columns], wide - GAP, lines=2, weight="bold")
    for place, column in enumerate(columns):
        left = LEFT + wide * place
        sheet.text(
            left,
            top + TITLES - 0.05,
            names[column.panel.title],
            fontweight="bold",
            va="bottom",
            linespacing=1.0,
        )
        every = [trace for quantity in column.traces for trace in column.of(quantity)]
        begins, ends = (
            [at for cell in column.cells if (at := getattr(cell, f"measured_{side}_s")) is not None]
            for side in ("from", "to")
        )
        start, end = (statistics.median(side or [0.0]) for side in (begins, ends))
        last_s = max(float(trace.time_s[-1]) for trace in every) or 1.0
        pixels = sum(len(trace.time_s) for trace in every) > MANY / len(columns)
        for row, quantity in enumerate(quantities):
            down, last = top + TITLES + (TALL + GAP) * row, row == len(quantities) - 1
            limits = _limits([trace for column in columns for trace in column.of(quantity)])
            axes = sheet.axes(left, down, wide - GAP, TALL, grid="y", ylim=limits, xlim=(0, last_s))

            rounded(axes, x=3 if len(columns) > 1 else 8, y=3)
            axes.tick_params(labelleft=place == 0, left=place == 0, labelbottom=last, bottom=last)
            axes.spines["left"].set_visible(place == 0)
            axes.spines["bottom"].set_visible(last)
            axes.set_xlabel("s since the cell began" if last else "")
            if place == 0:
                sheet.text(
                    0,
                    down + TALL / 2,
                    f"{quantity.label}\n{quantity.unit}",
                    va="center",
                    fontsize=SMALL,
                )
            if start > 0:
                axes.axvspan(start, end, color=BAND, linewidth=0, zorder=0)
            for arm, trace in column.traces.get(quantity, {}).items():
                alpha = 0.15 if len(trace.raw) > MANY // 3 else 0.35
                small: Style = {"markersize": 1.4, "alpha": alpha, "rasterized": True}
                dots(axes, trace.raw_s, trace.raw, looks[arm].color, zorder=1.5, **small)
                look: Style = {
                    "color": looks[arm].color,
                    "linestyle": looks[arm].dashes,
                    "linewidth": 1.1,
                    "rasterized": pixels,
                }
                axes.plot(trace.time_s, trace.mean, **look)
            if quantity not in column.traces:
                axes.text(
                    0.5,
                    0.5,
                    "not sampled",
                    transform=axes.transAxes,
                    ha="center",
                    va="center",
                    fontsize=SMALL,
                    color=QUIET,
                )


def _limits(traces: Sequence[Trace]) -> tuple[float, float]:
    raw = np.concatenate([trace.raw for trace in traces])
    means = np.concatenate([trace.mean for trace in traces])
    shown = [*np.quantile(raw[np.isfinite(raw)], [0.005, 0.995]), *means[np.isfinite(means)]]
    low, high = float(np.min(shown)), float(np.max(shown))
    # A row with little variation is drawn flat.
    room = max(0.06 * (high - low), 0.01 * abs(high), NOTHING)
    return low - room, high + room
