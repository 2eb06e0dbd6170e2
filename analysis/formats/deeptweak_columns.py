"""What DeepTweak's columns mean: our name with its unit, what to multiply by, and where nothing but 0 says that nobody measured.

Its own names mislead in places: MB and KB are MiB and KiB, `disk_*` counts since boot while `net_*` is a rate, and `gpu_mem_util` is
how busy the memory was or how full, depending on which program was asked.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.terms import Steps

    from .deeptweak_table import Values

KIB, MIB = 1024.0, 1024.0**2


class FileColumn(NamedTuple):
    """A column in our words. `summary` is what is told of a whole cell; `total` names what a counter rose by over the cell.

    `never_zero`: 0 in every row can only mean that nobody measured.
    """

    name: str
    scale: float = 1.0
    summary: tuple[Literal["mean", "min", "max"], ...] = ()
    total: str = ""
    never_zero: bool = False


CONSTANTS = {"total_params": "parameters", "trainable_params": "trainable_parameters"}
# Known, and no telemetry: which steps these are and how long they took; facts that never change, the last the quotient of two others.
KNOWN = ("step", "step_time", "time_elapsed", "batch_size", *CONSTANTS, "param_ratio")

OF_HOST = {
    "tokens_per_sec": FileColumn("tokens_per_s", never_zero=True),
    "samples_per_sec": FileColumn("samples_per_s", never_zero=True),
    "loss": FileColumn("loss"),
    "learning_rate": FileColumn("learning_rate"),
    "grad_norm": FileColumn("grad_norm"),
    "cpu_percent": FileColumn("cpu_busy_percent", summary=("mean",)),
    "mem_used": FileColumn("mem_used_bytes", summary=("mean", "max"), never_zero=True),
    "mem_available": FileColumn("mem_available_bytes", summary=("mean", "min"), never_zero=True),
    "swap_used": FileColumn("swap_used_bytes", summary=("max",)),
    "mem_percent": FileColumn("mem_used_percent", summary=("mean",), never_zero=True),
    "disk_read_MB": FileColumn("disk_read_since_boot_bytes", MIB, total="disk_read_bytes_total", never_zero=True),
    "disk_write_MB": FileColumn("disk_written_since_boot_bytes", MIB, total="disk_written_bytes_total", never_zero=True),
    "net_sent_KB": FileColumn("net_all_tx_bytes_per_s", KIB, ("mean",), never_zero=True),
    "net_recv_KB": FileColumn("net_all_rx_bytes_per_s", KIB, ("mean",), never_zero=True),
    "fd_count": FileColumn("process_open_files", summary=("max",), never_zero=True),
}
# Without a number in its name a column is of the first GPU, the only one DeepTweak looks at.
OF_GPU = re.compile(r"gpu(\d*)_(.+)")
GPU = {
    "util": FileColumn("util_percent", summary=("mean",)),
    "mem_used": FileColumn("mem_used_bytes", summary=("max",), never_zero=True),
    "mem_total": FileColumn("mem_total_bytes", never_zero=True),
    "power_W": FileColumn("power_w", summary=("mean", "max"), never_zero=True),
    "temp_C": FileColumn("temperature_c", summary=("mean", "max"), never_zero=True),
    "clock_MHz": FileColumn("sm_clock_mhz", summary=("mean", "min"), never_zero=True),
    "mem_clock_MHz": FileColumn("mem_clock_mhz", never_zero=True),
    "mem_util": FileColumn("mem_util_percent"),
}
EXPECTED = (*OF_HOST, *(f"gpu_{name}" for name in GPU))


class ColumnFact(NamedTuple):
    """A configuration's columns under our names, what they sum up to, our name → why it has no values, and what a reader should know.

    `noticed` is a remark → the DeepTweak columns it is about.
    """

    series: dict[str, Values]
    summary: dict[str, float]
    missing: dict[str, str]
    noticed: dict[str, tuple[str, ...]]


def column_of(written: str) -> FileColumn | None:
    if written in OF_HOST:
        return OF_HOST[written]
    found = OF_GPU.fullmatch(written)
    if found is None or found[2] not in GPU:
        return None
    known = GPU[found[2]]
    return known._replace(name=f"gpu{int(found[1] or 0)}_{known.name}")


def told(columns: Mapping[str, Values], steps: Steps) -> ColumnFact:
    """Give columns as written (name → a value a step) our names and units; what was not measured is left out, with the reason."""
    series: dict[str, Values] = {}
    summary: dict[str, float] = {}
    missing: dict[str, str] = {}
    about: dict[str, list[str]] = {}
    for written in dict.fromkeys([*columns, *EXPECTED]):
        column = column_of(written)
        if column is None:
            continue
        why = _why_absent(columns.get(written), column)
        if why:
            missing[column.name] = f"{written}: {why}"
            about.setdefault(why, []).append(written)
            continue
        values = tuple(None if value is None else value * column.scale for value in columns[written])
        if written.endswith("_mem_util") and _is_fill(columns, written):
            column = column._replace(name=column.name.replace("mem_util", "mem_used"))
            about.setdefault("how full the memory is, not how busy: it was read by another program", []).append(written)
        series[column.name] = values
        summary |= _summary(column, values)
    summary |= _energy(series, steps)
    return ColumnFact(series, summary, missing, {reason: tuple(names) for reason, names in about.items()})


def _why_absent(values: Values | None, column: FileColumn) -> str | None:
    if values is None:
        return "no such column, so not measured"
    known = {value for value in values if value is not None}
    if not known:
        return "empty in every row, so not measured"
    return "0 in every row, so not measured" if column.never_zero and known == {0} else None


def _is_fill(columns: Mapping[str, Values], written: str) -> bool:
    """Whether `gpu_mem_util` is used / total memory in every row; the reading that has power and clocks says how busy the memory was."""
    used, total = (columns.get(written.replace("_mem_util", name)) for name in ("_mem_used", "_mem_total"))
    if used is None or total is None:
        return False
    rows = [(a, b, c) for a, b, c in zip(columns[written], used, total, strict=True) if a is not None and b is not None and c]
    return bool(rows) and all(abs(100 * in_use / whole - percent) <= 1 for percent, in_use, whole in rows)


def _summary(column: FileColumn, values: Values) -> dict[str, float]:
    known = [value for value in values if value is not None]
    whole = {"mean": math.fsum(known) / len(known), "min": min(known), "max": max(known)}
    result = {f"{column.name}_{statistic}": whole[statistic] for statistic in column.summary}
    # A counter that fell was reset: what it counted meanwhile is not known.
    if column.total and known == sorted(known):
        result[column.total] = known[-1] - known[0]
    return result


def _energy(series: Mapping[str, Values], steps: Steps) -> dict[str, float]:
    """Σ power · step time of each GPU whose power is known in every step, in joules."""
    result = {}
    for name, values in series.items():
        power_w = [value for value in values if value is not None]
        if name.endswith("_power_w") and len(power_w) == len(steps.wall_s):
            joules = math.fsum(watts * seconds for watts, seconds in zip(power_w, steps.wall_s, strict=True))
            result[name.replace("_power_w", "_energy_j_total")] = joules
    return result
