"""What a clock, a kernel or a meter can have said: a figure outside is no measurement, and is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# A third of a year; 2^53 bytes are more than any disk holds, and 10^9 of anything more than any cell can count.
SECONDS, BYTES, COUNT, JOULES = 1e7, 2.0**53, 1e9, 1e12
LIFE_S = 1e-3  # so long a process lives at least
MOST = {
    "cpu_s": SECONDS,
    "start_cpu_s": SECONDS,
    "at_work_s": SECONDS,
    "wall_s": SECONDS,
    "start_s": SECONDS,
    "stop_s": SECONDS,
    "steps_wall_s": SECONDS,
    "steps_cpu_s": SECONDS,
    "peak_rss_bytes": BYTES,
    "written_bytes": BYTES,
    "samples": COUNT,
    "load_average_1min": COUNT,
    "energy_j": JOULES,
}
LEAST = {"wall_s": LIFE_S}


def possible(numbers: Mapping[str, float], place: str, missing: dict[str, str]) -> dict[str, float]:
    """Answer those that can be; what cannot goes into `missing` by place and name, with the reason."""
    result = {}
    for name, value in numbers.items():
        low, high = LEAST.get(name, 0.0), MOST[name]
        if low <= value <= high:
            result[name] = value
        else:
            missing[f"{place}.{name}"] = f"{value:g} was recorded, which is not from {low:g} to {high:g}"
    return result
