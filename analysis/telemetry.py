"""Telemetry in full: what the sampler recorded beside each cell, and what its columns mean."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from .load import REMEDY, lines_of
from .terms import Unreadable

if TYPE_CHECKING:
    from .terms import Cell, Run

CLOCK = "t_monotonic_s"

Column = tuple["float | None", ...]


class Missing(Exception):
    """No telemetry can be read; the message is the reason, printed in place of a picture."""


@dataclass(frozen=True, slots=True)
class Series:
    """The samples of one cell: seconds since its first, and columns by name, None if missing.

    The measured steps ran from `measured_from_s` to `measured_to_s`; None if not recorded.
    """

    time_s: tuple[float, ...]
    columns: Mapping[str, Column]
    measured_from_s: float | None = None
    measured_to_s: float | None = None


def series_of(run: Run) -> dict[str, Series]:
    """Return the samples of each cell by its id; a cell without samples is absent.

    Raises: Missing, if the run has no telemetry, or its file is absent or is not the run's.
    """
    inside = {
        cell.id: _by_step(cell) for cell in run.cells if cell.series and cell.steps is not None
    }
    return inside or _from_file(run)


def _by_step(cell: Cell) -> Series:
    if cell.steps is None:
        raise ValueError("a cell without steps has no time")
    wall_s, warmup = cell.steps.wall_s, cell.steps.warmup
    time_s = tuple(end - wall_s[0] for end in accumulate(wall_s))
    measured_from_s = time_s[warmup - 1] if warmup else -wall_s[0]
    return Series(time_s, cell.series, measured_from_s, time_s[-1])


def _from_file(run: Run) -> dict[str, Series]:
    named = run.telemetry_file
    if not isinstance(named.get("name"), str) or not isinstance(named.get("sha256"), str):
        raise Missing("the run was saved without telemetry samples")
    cells = {cell.id: cell for cell in run.cells}
    try:
        result = map(msgspec.json.decode, lines_of(Path(run.origin), named))
        return {
            one["cell"]: _sampled(one["columns"], cells[one["cell"]])
            for one in result
            if one["cell"] in cells
        }
    except Unreadable as error:
        raise Missing(str(error)) from None
    except (LookupError, TypeError, ValueError) as error:
        raise Missing(
            f"{named['name']} is damaged ({type(error).__name__}: {error}); {REMEDY}"
        ) from None


def _sampled(columns: dict[str, list[float | None]], cell: Cell) -> Series:
    clock = [float(at) for at in columns.pop(CLOCK) if at is not None]
    for name, values in columns.items():
        if len(values) != len(clock):
            raise ValueError(f"{cell.id} has {len(values)} {name} for {len(clock)} times")
    window = (None, None) if cell.window_s is None else tuple(at - clock[0] for at in cell.window_s)
    kept = {name: _numbers(values) for name, values in columns.items()}
    return Series(tuple(at - clock[0] for at in clock), kept, *window)


def _numbers(values: Sequence[Any]) -> tuple[float | None, ...]:
    kinds = {*map(type, values)}
    if kinds <= {float, int} and all(map(math.isfinite, values)):  # the usual case, ≥ 100,000 times
        return tuple(map(float, values))
    return tuple(map(_number, values))


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is not a sample")
    return float(value)


MIB, GIB = 2.0**20, 2.0**30


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity on an axis; the columns of the first pattern that matches any are combined."""

    label: str
    unit: str
    patterns: tuple[str, ...]
    combine: Literal["sum", "mean", "max"] = "sum"
    scale: float = 1.0

    def columns(self, names: Collection[str]) -> list[str]:
        return list(_matching(self.patterns, tuple(names)))

    def combined(self, values: Sequence[float | None]) -> float | None:
        """Combine the values of all its columns at one time; None if any is missing."""
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        total = (
            max(known)
            if self.combine == "max"
            else sum(known) / (len(known) if self.combine == "mean" else 1)
        )
        return total * self.scale

    def over_time(self, columns: Mapping[str, Sequence[float | None]]) -> list[float | None] | None:
        names = self.columns(columns)
        if len(names) == 1:
            values = [None if value is None else value * self.scale for value in columns[names[0]]]
        else:
            values = [
                self.combined(row) for row in zip(*(columns[name] for name in names), strict=True)
            ]
        return values if any(value is not None for value in values) else None


@lru_cache(maxsize=1024)
def _matching(patterns: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    result = (sorted(name for name in names if re.fullmatch(pattern, name)) for pattern in patterns)
    return next((matches for matches in result if matches), [])


GPU_UTIL = Quantity("GPU utilisation", "%", (r"gpu\d+_util_percent",), "mean")
GPU_POWER = Quantity("GPU power", "W", (r"gpu\d+_power_w",))
CPU_BUSY = Quantity("CPU busy", "%", ("cpu_busy_percent", r"cpu_(user|system|irq)_percent"))
MEM_USED = Quantity("memory used", "GiB", ("mem_used_bytes",), scale=1 / GIB)
MEM_AVAILABLE = Quantity("memory available", "GiB", ("mem_available_bytes",), scale=1 / GIB)

# In drawing order.
QUANTITIES = (
    GPU_UTIL,
    GPU_POWER,
    Quantity("GPU temperature", "°C", (r"gpu\d+_temperature_c",), "max"),
    Quantity("GPU SM clock", "MHz", (r"gpu\d+_sm_clock_mhz",), "mean"),
    Quantity("GPU memory clock", "MHz", (r"gpu\d+_mem_clock_mhz",), "mean"),
    Quantity("GPU memory busy", "%", (r"gpu\d+_mem_util_percent",), "mean"),
    Quantity("GPU memory used", "GiB", (r"gpu\d+_mem_used_bytes",), scale=1 / GIB),
    CPU_BUSY,
    Quantity("CPU steal", "%", ("cpu_steal_percent",)),
    Quantity("CPU iowait", "%", ("cpu_iowait_percent",)),
    Quantity("context switches", "1/s", ("context_switches_per_s",)),
    MEM_USED,
    MEM_AVAILABLE,
    Quantity("workload's memory", "GiB", ("process_rss_bytes",), scale=1 / GIB),
    Quantity("in huge pages", "GiB", ("mem_anon_hugepages_bytes",), scale=1 / GIB),
    Quantity("dirty memory", "MiB", ("mem_dirty_bytes",), scale=1 / MIB),
    Quantity("swap used", "GiB", ("swap_used_bytes",), scale=1 / GIB),
    Quantity("page faults", "1/s", ("page_faults_per_s",)),
    Quantity("disk read", "MiB/s", (r"disk_\w+_read_bytes_per_s",), scale=1 / MIB),
    Quantity("disk written", "MiB/s", (r"disk_\w+_written_bytes_per_s",), scale=1 / MIB),
    Quantity("network received", "MiB/s", (r"net_\w+_rx_bytes_per_s",), scale=1 / MIB),
    Quantity("waiting for a CPU", "%", ("psi_cpu_some_percent",)),
)
