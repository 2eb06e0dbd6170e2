"""Logs of `nvidia-smi --query-gpu=… --format=csv -l …`: a row per GPU and tick; units in the header, in the cells, or nowhere.

Often nothing says whose a row is. Then GPUs are numbered in the order of a tick's rows, and the log says how they were told apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analysis.plain import one_line

from ._gpus import Row, tell
from ._lines import CUT, Ignored, lines_of, none_of_it, number_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ._lines import Line

WHAT = "nvidia-smi --query-gpu --format=csv"
HEAD = re.compile(r"([a-z][a-z0-9_.]*)(?: \[([^\]]+)\])?")
HEADS = {"name", "index", "count", "timestamp", "uuid", "serial", "pstate"}  # names of columns without a `.` or `_`
CELL = re.compile(r"([-+\d.eE]+) ?([A-Za-z%/]+)?")
ABSENT = re.compile(r"\[.*\]|N/A|ERR!", re.IGNORECASE)
GPU = re.compile(r"GPU-[0-9a-f-]{36}|(?:NVIDIA|Tesla|Quadro|GeForce|GRID)\b.*|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
TIME = re.compile(r"(\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})", re.ASCII)
UNITS = {"%", "MiB", "W", "MHz"}
KEYS = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
SIGNS = ("name", "gpu_name", "memory.total")
STAMP = "timestamp"
UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU's samples in their order. `columns` are numbers in the log's `units`, NaN where `missing` has nvidia-smi's words for it.

    `time_s` counts from the log's first row, NaN without times. `texts` holds what are no numbers (name, pstate).
    """

    columns: Mapping[str, NDArray[np.float64]]
    texts: Mapping[str, tuple[str, ...]]
    missing: Mapping[str, str]
    time_s: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SmiLog:
    """One log; `gpus` by index, or by what else names them, or `?` where rows cannot be told apart, which `how` says."""

    origin: str
    columns: tuple[str, ...]
    units: Mapping[str, str]
    gpus: Mapping[str, Gpu]
    how: str
    ignored: tuple[str, ...]


class _Row(NamedTuple):
    line: Line
    cells: Mapping[str, str]
    begins: bool
    time_s: float | None


def read(path: Path, *, columns: Sequence[str] = (), gpus: int | None = None) -> SmiLog:
    """Read a log. `columns` names those of one without a header; `gpus` is how many there are, where that is known from elsewhere.

    Raises: Unreadable, where there is no row in it.
    """
    ignored = Ignored()
    rows, units = _rows(lines_of(path), tuple(columns), ignored)
    names = tuple(units)
    numeric = {name for name in names if _is_numeric(name, [row.cells[name] for row in rows if row and name in row.cells])}
    for at, row in enumerate(rows):
        wrong = row and next((reason for name in names if (reason := _wrong(row, name, units, numeric))), None)
        if row and wrong:
            ignored(row.line, wrong)
            rows[at] = None
    keys, how = _keys(rows, gpus)
    result: dict[str, list[_Row]] = {}
    for row, key in zip(rows, keys, strict=True):
        if row is not None and key is None:
            ignored(row.line, "a row of a tick that is not whole, so nobody knows of which GPU")
        elif row is not None and key is not None:
            result.setdefault(key, []).append(row)
    if not result:
        raise none_of_it(path, WHAT, ignored)
    first = min((row.time_s for row in rows if row and row.time_s is not None), default=0.0)
    return SmiLog(
        origin=str(path),
        columns=names,
        units={name: unit for name, unit in units.items() if unit},
        gpus={key: _gpu(result[key], names, numeric, first) for key in sorted(result, key=lambda key: (len(key), key))},
        how=how,
        ignored=tuple(sorted(ignored.said, key=lambda text: int(text.split(":")[0].removeprefix("line ")))),
    )


def _rows(lines: Sequence[Line], names: tuple[str, ...], ignored: Ignored) -> tuple[list[_Row | None], dict[str, str]]:
    rows: list[_Row | None] = []
    units = dict.fromkeys(names, "")
    begins = True
    for line in lines:
        cells = [cell.strip() for cell in line.text.split(",")]
        heads = _heads(cells)
        if heads is not None and line.whole:
            names, begins = tuple(heads), True
            units = {**heads, **{name: unit for name, unit in units.items() if unit or name not in heads}}
            continue
        if not names and line.whole and _is_bare_row(cells):
            names = tuple(f"column {at}" for at in range(1, len(cells) + 1))
            units = dict.fromkeys(names, "")
        if not line.whole:
            ignored(line, CUT)
            continue
        if len(cells) != len(names):
            ignored(line, f"{len(cells)} cells where the header names {len(names)}" if names else "neither a header nor a row")
            rows.append(None)
        else:
            result = dict(zip(names, cells, strict=True))
            rows.append(_Row(line, result, begins, _seconds(result.get(STAMP, ""))))
        begins = False
    for row in rows:
        for name, cell in row.cells.items() if row else ():
            if not units[name]:
                units[name] = _value(cell)[1] or ""
    return rows, units


def _heads(cells: Sequence[str]) -> dict[str, str] | None:
    if HEAD.fullmatch(cells[0]) is None:
        return None
    result = [HEAD.fullmatch(cell) for cell in cells]
    heads = {one[1]: one[2] or "" for one in result if one}
    return heads if len(heads) == len(cells) and any(name in HEADS or "." in name or "_" in name for name in heads) else None


def _is_bare_row(cells: Sequence[str]) -> bool:
    """Whether a line without a header before it is nvidia-smi's: a table of mere numbers may be anybody's."""
    return any(GPU.fullmatch(cell) or _value(cell)[1] in UNITS for cell in cells)


def _is_numeric(name: str, cells: Sequence[str]) -> bool:
    there = [cell for cell in cells if not ABSENT.fullmatch(cell)]
    numbers = sum(_value(cell)[0] is not None for cell in there)
    return name not in (*KEYS, STAMP) and (not there or 2 * numbers > len(there))


@lru_cache(maxsize=4096)  # most cells of a log are alike
def _value(cell: str) -> tuple[float | None, str | None]:
    found = CELL.fullmatch(cell)
    number = number_in(found[1]) if found else None
    return (None, None) if found is None or number is None else (number, found[2])


def _wrong(row: _Row, name: str, units: Mapping[str, str], numeric: set[str]) -> str | None:
    cell = row.cells.get(name)
    if cell is None or name not in numeric:
        return None
    number, unit = _value(cell)
    if number is None:
        return None if ABSENT.fullmatch(cell) else f"{name} is {one_line(cell, 20)!r}, no number"
    return f"{name} is in {unit} and was in {units[name]}" if unit not in (None, units[name]) else None


def _keys(rows: Sequence[_Row | None], gpus: int | None) -> tuple[list[str | None], str]:
    for name in KEYS:
        keys = [row and row.cells.get(name) for row in rows]
        if any(keys) and all(row is None or (key and not ABSENT.fullmatch(key)) for row, key in zip(rows, keys, strict=True)):
            return keys, f"by {name}"
    told = tell([_row(row) for row in rows], gpus) if rows else None
    if told is None or told.gpus is None:
        return [UNKNOWN] * len(rows), told.how if told else ""
    return [None if place is None else str(place) for place in told.places], told.how


def _row(row: _Row | None) -> Row:
    if row is None:
        return Row("", None, begins=False)
    return Row(", ".join(["a row", *(row.cells[name] for name in SIGNS if name in row.cells)]), row.time_s, row.begins)


def _seconds(stamp: str) -> float | None:
    """Read a stamp, which is of that machine's own time zone."""
    found = TIME.fullmatch(stamp)
    if found is None:
        return None
    year, month, day, hours, minutes, seconds, milliseconds = map(int, found.groups())
    try:
        days = date(year, month, day).toordinal()
    except ValueError:
        return None
    return days * 86400 + hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


def _gpu(rows: Sequence[_Row], names: Sequence[str], numeric: set[str], first: float) -> Gpu:
    cells = {name: [row.cells.get(name, "") for row in rows] for name in names}
    columns = {name: np.array([np.nan if (value := _value(cell)[0]) is None else value for cell in cells[name]]) for name in numeric}
    return Gpu(
        columns={name: columns[name] for name in names if name in numeric},
        texts={name: tuple(cells[name]) for name in names if name not in numeric},
        missing={
            name: ", ".join(dict.fromkeys(cell or "not recorded" for cell in cells[name] if _value(cell)[0] is None))
            for name in names
            if name in numeric and np.isnan(columns[name]).any()
        },
        time_s=np.array([np.nan if row.time_s is None else row.time_s - first for row in rows]),
    )
