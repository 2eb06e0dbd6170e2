"""Logs of `nvidia-smi --query-gpu=… --format=csv -l …`: a row per GPU and tick; units in the header, in the cells, or nowhere.

Often no column says which GPU a row is of. nvidia-smi writes a row per GPU and tick, always in one order, so GPUs are then numbered in the
order of a tick's rows. How many rows a tick has is known by the times, by names that repeat, or from the caller. Where a row is lost or
added and its tick cannot be put together again, the whole tick is left out: to count on would give every later row to its neighbour.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analysis.plain import one_line

from .readers import Line, Log, number_in

if TYPE_CHECKING:
    from numpy.typing import NDArray


HEAD = re.compile(r"([a-z][a-z0-9_.]*)(?: \[([^\]]+)\])?")
HEADS = {"name", "index", "count", "timestamp", "uuid", "serial", "pstate"}  # names of columns without a `.` or `_`
CELL = re.compile(r"([-+\d.eE]+) ?([A-Za-z%/]+)?")
ABSENT = re.compile(r"\[.*\]|N/A|ERR!", re.IGNORECASE)
GPU = re.compile(r"GPU-[0-9a-f-]{36}|(?:NVIDIA|Tesla|Quadro|GeForce|GRID)\b.*|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
UNITS = {"%", "MiB", "W", "MHz"}
KEYS = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
SIGNS = ("name", "gpu_name", "memory.total")  # what never changes of a GPU
STAMP = "timestamp"
UNKNOWN = "?"

MOST = 256  # GPUs of one machine
ENOUGH = 20_000  # rows to find out how many GPUs there are
FEWEST_TICKS = 2
DEFECTS = 0.3  # so often, measured by rows in random order, may a row differ from the one a tick before
MOST_LOST = 0.5  # so many of the rows without a place leave none with one
AGREE = 0.8  # of the ticks must have one size
APART = 2.0  # so many times the pause inside a tick is that between two
SHORTEST_S = 0.0005  # half of what nvidia-smi's clock shows
LOOP_S = 0.1  # rows that follow each other faster may as well be of one tick
STEADY = 0.2  # a loop's pauses are the same but for this share


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
    """`sign` is "" for a row that cannot be read; `begins`: a tick surely begins here, at the start or after a header."""

    line: Line
    cells: Mapping[str, str]
    begins: bool
    sign: str = ""
    time_s: float | None = None


def read_nvidia_smi(path: Path, *, columns: Sequence[str] = (), gpus: int | None = None) -> SmiLog:
    """Read a log. `columns` names those of one without a header; `gpus` is how many there are, where that is known from elsewhere.

    Raises: Unreadable, where there is no row in it.
    """
    log = Log(path, "nvidia-smi --query-gpu --format=csv")
    rows, units = _rows(log, tuple(columns))
    numeric = [name for name in units if _is_numeric(name, [row.cells[name] for row in rows if name in row.cells])]
    for at, row in enumerate(rows):
        if row.sign and (reason := next(filter(None, (_damage(row.cells.get(name), name, units[name]) for name in numeric)), "")):
            log.ignore(row.line, reason)
            rows[at] = _Row(row.line, {}, begins=False)
    keys, how = _keys(rows, gpus)
    found: dict[str, list[_Row]] = {}
    for row, key in zip(rows, keys, strict=True):
        if row.sign and key is None:
            log.ignore(row.line, "a row of a tick that is not whole, so nobody knows of which GPU")
        elif row.sign and key is not None:
            found.setdefault(key, []).append(row)
    if not found:
        raise log.without_samples()
    first_s = min((row.time_s for row in rows if row.time_s is not None), default=0.0)
    return SmiLog(
        origin=str(path),
        columns=tuple(units),
        units={name: unit for name, unit in units.items() if unit},
        gpus={key: _gpu(found[key], list(units), numeric, first_s) for key in sorted(found, key=lambda key: (len(key), key))},
        how=how,
        ignored=log.ignored,
    )


def _rows(log: Log, names: tuple[str, ...]) -> tuple[list[_Row], dict[str, str]]:
    """The rows of a log in their order, damaged ones without a sign, and each column's unit."""
    rows: list[_Row] = []
    units = dict.fromkeys(names, "")
    begins = True
    for line in log.lines:
        cells = [cell.strip() for cell in line.text.split(",")]
        if heads := _heads(cells):
            names, begins = tuple(heads), True
            units = {**heads, **{name: unit for name, unit in units.items() if unit or name not in heads}}
            continue
        if not names and any(GPU.fullmatch(cell) or _value(cell)[1] in UNITS for cell in cells):  # mere numbers may be anybody's
            names = tuple(f"column {at}" for at in range(1, len(cells) + 1))
            units = dict.fromkeys(names, "")
        if len(cells) == len(names):
            by_name = dict(zip(names, cells, strict=True))
            sign = ", ".join(["a row", *(by_name[name] for name in SIGNS if name in by_name)])
            rows.append(_Row(line, by_name, begins, sign, _seconds(by_name.get(STAMP, ""))))
        else:
            log.ignore(line, f"{len(cells)} cells where the header names {len(names)}" if names else "neither a header nor a row")
            rows.append(_Row(line, {}, begins=False))
        begins = False
    for row in rows:
        for name, cell in row.cells.items():
            units[name] = units[name] or _value(cell)[1] or ""
    return rows, units


def _heads(cells: Sequence[str]) -> dict[str, str]:
    """Names and units of a header; nothing for another line."""
    matches = [HEAD.fullmatch(cell) for cell in cells]
    heads = {match[1]: match[2] or "" for match in matches if match}
    return heads if len(heads) == len(cells) and any(name in HEADS or "." in name or "_" in name for name in heads) else {}


def _is_numeric(name: str, cells: Sequence[str]) -> bool:
    there = [cell for cell in cells if not ABSENT.fullmatch(cell)]
    numbers = sum(_value(cell)[0] is not None for cell in there)
    return name not in (*KEYS, STAMP) and (not there or 2 * numbers > len(there))


@lru_cache(maxsize=4096)  # most cells of a log are alike
def _value(cell: str) -> tuple[float | None, str | None]:
    match = CELL.fullmatch(cell)
    number = number_in(match[1]) if match else None
    return (None, None) if match is None or number is None else (number, match[2])


def _damage(cell: str | None, name: str, column_unit: str) -> str:
    number, unit = _value(cell or "")
    if cell is not None and number is None and not ABSENT.fullmatch(cell):
        return f"{name} is {one_line(cell, 20)!r}, no number"
    return "" if number is None or unit in (None, column_unit) else f"{name} is in {unit} and was in {column_unit}"


def _seconds(stamp: str) -> float | None:
    """Read a stamp, which is of that machine's own time zone."""
    try:
        return datetime.strptime(stamp, "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _gpu(rows: Sequence[_Row], names: Sequence[str], numeric: Sequence[str], first_s: float) -> Gpu:
    cells = {name: [row.cells.get(name, "") for row in rows] for name in names}
    columns = {name: np.array([_value(cell)[0] for cell in cells[name]], dtype=np.float64) for name in numeric}  # None becomes NaN
    return Gpu(
        columns=columns,
        texts={name: tuple(cells[name]) for name in names if name not in numeric},
        missing={
            name: ", ".join(dict.fromkeys(cell or "not recorded" for cell in cells[name] if _value(cell)[0] is None))
            for name in numeric
            if np.isnan(columns[name]).any()
        },
        time_s=np.array([row.time_s for row in rows], dtype=np.float64) - first_s,
    )


def _keys(rows: Sequence[_Row], gpus: int | None) -> tuple[Sequence[str | None], str]:
    """Which GPU each row is of, None where nobody knows, and how that was told."""
    for name in KEYS:
        keys = [row.cells.get(name) for row in rows]
        if any(keys) and all(not row.sign or (key and not ABSENT.fullmatch(key)) for row, key in zip(rows, keys, strict=True)):
            return keys, f"by {name}"
    ticks = _ticks(rows)
    size = _size(ticks)
    if size and gpus in (None, size):
        places, reason = _in_ticks(rows, ticks, size), "told by their times"
    else:
        size = gpus or _period(rows)
        if size is None:
            return [UNKNOWN] * len(rows), (
                "no index: rows of one name, and too little to tell how many GPUs there are; query `index`, or say how many"
            )
        places, reason = _counted(rows, size), "as was said" if gpus else "as names repeat"
    # An order that most ticks do not keep is none. One name alone is in any order.
    readable = [place for row, place in zip(rows, places, strict=True) if row.sign]
    if (lost := readable.count(None)) >= MOST_LOST * len(readable) and len({row.sign for row in rows} - {""}) > 1:
        how = f"no index: {lost} of {_many(len(readable))} fit no order of {size} GPUs; query `index`, or take the log again"
        return [UNKNOWN] * len(rows), how
    how = f"no index: {_many(size)} a tick, {reason}; numbered in the order of the rows"
    return [None if place is None else str(place) for place in places], how


def _many(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _ticks(rows: Sequence[_Row]) -> list[list[int]]:
    """Split rows where the pause before a row is a loop's and no query's; nothing where times do not tell."""
    timed = [at for at, row in enumerate(rows) if row.time_s is not None]
    if len(timed) < FEWEST_TICKS or any(row.sign and row.time_s is None for row in rows):
        return []
    pauses = np.maximum(np.abs(np.diff([rows[at].time_s or 0.0 for at in timed])), SHORTEST_S)
    border = _border(pauses)
    ticks = [[int(at) for at in tick] for tick in np.split(timed, np.flatnonzero(pauses > border) + 1)]
    slow = bool(((pauses <= border) & (pauses >= LOOP_S)).any())  # these may be a loop's, and those between them its halts
    if border and _size(ticks) and len(ticks) >= FEWEST_TICKS + slow:
        return ticks
    typical = float(np.median(pauses))
    is_loop = typical >= LOOP_S and (np.abs(pauses / typical - 1) < STEADY).mean() >= AGREE
    return [[at] for at in timed] if is_loop and len({row.sign for row in rows} - {""}) == 1 else []


def _size(ticks: Sequence[Sequence[int]]) -> int | None:
    if len(ticks) < FEWEST_TICKS:
        return None
    size, times = Counter(map(len, ticks)).most_common(1)[0]
    return size if times >= AGREE * (len(ticks) - (len(ticks[-1]) < size)) else None


def _border(pauses: NDArray[np.float64]) -> float:
    """The pause that best parts short ones from long ones (Otsu 1979, on logarithms); 0 where all are of one kind."""
    logs = np.sort(np.log(pauses))
    count = np.arange(1, len(logs))
    below = np.cumsum(logs)[:-1]
    apart = (logs.sum() - below) / (len(logs) - count) - below / count
    between = np.where((np.diff(logs) > 0) & (apart > np.log(APART)), count * (len(logs) - count) * apart**2, 0.0)
    if not between.any():
        return 0.0
    best = int(between.argmax())
    return float(np.exp((logs[best] + logs[best + 1]) / 2))


def _in_ticks(rows: Sequence[_Row], ticks: Sequence[Sequence[int]], size: int) -> list[int | None]:
    """Number the rows of whole ticks; of one cut short at the end of the log, or before a header, those that are there."""
    order = Counter(tuple(rows[at].sign for at in tick) for tick in ticks if len(tick) == size).most_common(1)[0][0]
    places: list[int | None] = [None] * len(rows)
    for tick in ticks:
        ends = tick[-1] + 1 == len(rows) or rows[tick[-1] + 1].begins
        fits = all(rows[at].sign == sign for at, sign in zip(tick, order, strict=False))
        if fits and (len(tick) == size or (len(tick) < size and ends)):
            for place, at in enumerate(tick):
                places[at] = place
    return places


def _period(rows: Sequence[_Row]) -> int | None:
    """After how many rows the names repeat; None where one name is all there is, or they do not."""
    signs = np.array([row.sign for row in rows[:ENOUGH]])
    part = np.cumsum([row.begins for row in rows[:ENOUGH]])
    if len(set(signs) - {""}) < 2:
        return None
    chance = 1 - sum((count / len(signs)) ** 2 for count in Counter(signs).values())
    for period in range(2, min(MOST, len(signs) // FEWEST_TICKS) + 1):
        differs = (signs[:-period] != signs[period:])[part[:-period] == part[period:]]
        if differs.size and differs.mean() < DEFECTS * chance:
            return period
    return None


def _counted(rows: Sequence[_Row], size: int) -> list[int | None]:
    """Number rows by counting, as long as their names fit; after a row that does not, count anew from the next whole tick."""
    order = _order(rows, size)
    known = len({order[turn:] + order[:turn] for turn in range(size)}) == size  # whether its names say where a tick begins
    places: list[int | None] = [None] * len(rows)
    at = before = 0
    while at < len(rows):
        tick = _signs(rows, at, size)
        if tick == order[: len(tick)]:  # shorter only where the log or its part ends
            places[at : at + len(tick)] = range(len(tick))
            at, before = at + len(tick), at
            continue
        if not rows[at].begins and all(tick):  # a row that left no trace may have been of the tick before
            places[before:at] = [None] * (at - before)
        at += 1
        while at < len(rows) and not rows[at].begins and not (known and _signs(rows, at, size) == order):
            at += 1
        before = at
    return places


def _order(rows: Sequence[_Row], size: int) -> tuple[str, ...]:
    """The names of a tick in their order: the most frequent one, turned so that it begins where the log and its parts do."""
    whole = Counter(tick for at in range(len(rows)) if len(tick := _signs(rows, at, size)) == size and all(tick))
    if not whole:
        return _signs(rows, 0, size)
    most = whole.most_common(1)[0][0]
    begun = [_signs(rows, at, size) for at in range(len(rows)) if rows[at].begins or at == 0]
    turned = [most[turn:] + most[:turn] for turn in range(size)]
    return max(turned, key=lambda order: sum(all(a in ("", b) for a, b in zip(tick, order, strict=False)) for tick in begun))


def _signs(rows: Sequence[_Row], at: int, size: int) -> tuple[str, ...]:
    """The signs of the rows that would be a tick if it began here; it ends where another surely begins."""
    last = min(at + size, len(rows))
    last = next((later for later in range(at + 1, last) if rows[later].begins), last)
    return tuple(row.sign for row in rows[at:last])
