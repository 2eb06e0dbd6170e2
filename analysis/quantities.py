"""What telemetry columns mean to a reader: quantities with a unit, of all devices together (column names: `data/README.md`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

MIB, GIB = 2.0**20, 2.0**30


@dataclass(frozen=True, slots=True)
class Quantity:
    """`label` and `unit` as they stand on an axis; columns are found by the first pattern that any has, and combined."""

    label: str
    unit: str
    patterns: tuple[str, ...]
    combine: Literal["sum", "mean", "max"] = "sum"
    scale: float = 1.0

    def columns(self, names: Collection[str]) -> list[str]:
        return list(_matching(self.patterns, tuple(names)))

    def combined(self, values: Sequence[float | None]) -> float | None:
        """Make one value of those of all its columns at one time; None where any of them is missing."""
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        total = max(known) if self.combine == "max" else sum(known) / (len(known) if self.combine == "mean" else 1)
        return total * self.scale

    def over_time(self, columns: Mapping[str, Sequence[float | None]]) -> list[float | None] | None:
        names = self.columns(columns)
        if len(names) == 1:
            values = [None if value is None else value * self.scale for value in columns[names[0]]]
        else:
            values = [self.combined(row) for row in zip(*(columns[name] for name in names), strict=True)]
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

# In the order in which they are drawn.
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
