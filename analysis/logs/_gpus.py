"""Which row of an unlabelled table is which GPU's: nvidia-smi writes a row per GPU and tick, always in one order.

How many rows a tick has is told by the times, by names that repeat, or by the caller. Where a row is lost or added and its tick cannot
be put together again, the whole tick is left out: to count on would give every later row to its neighbour.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
class Row:
    """What tells a row: `sign` is what never changes of a GPU (its name, its memory), "" where it cannot be read; a time, if any.

    `begins` is whether a tick surely begins here: at the start and after a header.
    """

    sign: str
    time_s: float | None
    begins: bool


@dataclass(frozen=True, slots=True)
class Told:
    """`places` gives each row's place in its tick, None where that cannot be told; `how` says how, for a reader."""

    places: tuple[int | None, ...]
    gpus: int | None
    how: str


def tell(rows: Sequence[Row], gpus: int | None = None) -> Told:
    ticks = _by_time(rows)
    size = _size(ticks)
    if size and gpus in (None, size):
        places = _in_ticks(rows, ticks, size)
        return _told(rows, places, size, f"no index: {_rows(size)} a tick, told by their times; numbered in the order of the rows")
    result = gpus or _period(rows)
    if result is None:
        how = "no index: rows of one name, and too little to tell how many GPUs there are; query `index`, or say how many"
        return Told((None,) * len(rows), None, how)
    reason = "as was said" if gpus else "as names repeat"
    return _told(rows, _counted(rows, result), result, f"no index: {_rows(result)} a tick, {reason}; numbered in the order of the rows")


def _told(rows: Sequence[Row], places: tuple[int | None, ...], gpus: int, how: str) -> Told:
    """Answer places only if most rows have one: an order that most ticks do not keep is none. One name alone is in any order."""
    real = [place for row, place in zip(rows, places, strict=True) if row.sign]
    lost = sum(place is None for place in real)
    if lost < MOST_LOST * len(real) or len({row.sign for row in rows if row.sign}) < 2:
        return Told(places, gpus, how)
    reason = f"no index: {lost} of {_rows(len(real))} fit no order of {gpus} GPUs; query `index`, or take the log again"
    return Told((None,) * len(rows), None, reason)


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _by_time(rows: Sequence[Row]) -> list[list[int]]:
    """Split rows where the pause before a row is a loop's and no query's; nothing where times do not tell."""
    timed = [(at, row.time_s) for at, row in enumerate(rows) if row.time_s is not None]
    if len(timed) < FEWEST_TICKS or any(row.sign and row.time_s is None for row in rows):
        return []
    pauses = [max(abs(after - before), SHORTEST_S) for (_, before), (_, after) in pairwise(timed)]
    border = _border(pauses)
    ticks: list[list[int]] = [[timed[0][0]]]
    for (at, _), pause in zip(timed[1:], pauses, strict=True):
        if pause > border:
            ticks.append([])
        ticks[-1].append(at)
    slow = [pause for pause in pauses if pause <= border and pause >= LOOP_S]
    if border and _size(ticks) and len(ticks) >= FEWEST_TICKS + bool(slow):  # slow ones may be a loop's, and those between them its halts
        return ticks
    typical = median(pauses)
    steady = sum(abs(pause / typical - 1) < STEADY for pause in pauses)
    one = len({row.sign for row in rows if row.sign}) == 1 and typical >= LOOP_S and steady >= AGREE * len(pauses)
    return [[at] for at, _ in timed] if one else []


def _size(ticks: Sequence[Sequence[int]]) -> int | None:
    if len(ticks) < FEWEST_TICKS:
        return None
    size, times = Counter(map(len, ticks)).most_common(1)[0]
    return size if times >= AGREE * (len(ticks) - (len(ticks[-1]) < size)) else None


def _border(pauses: Sequence[float]) -> float:
    """Answer the pause that best parts short ones from long ones (Otsu 1979, on logarithms); 0 where all are of one kind."""
    logs = sorted(map(math.log, pauses))
    total, below, best, border = math.fsum(logs), 0.0, 0.0, 0.0
    for count, (here, following) in enumerate(pairwise(logs), 1):
        below += here
        low, high = below / count, (total - below) / (len(logs) - count)
        between = count * (len(logs) - count) * (high - low) ** 2
        if following > here and between > best and high - low > math.log(APART):
            best, border = between, math.exp((here + following) / 2)
    return border


def _in_ticks(rows: Sequence[Row], ticks: Sequence[Sequence[int]], size: int) -> tuple[int | None, ...]:
    """Number the rows of whole ticks; of one cut short at the end of the log, or before a header, those that are there."""
    orders = Counter(tuple(rows[at].sign for at in tick) for tick in ticks if len(tick) == size)
    order = orders.most_common(1)[0][0]
    places: list[int | None] = [None] * len(rows)
    for tick in ticks:
        ends = tick[-1] + 1 == len(rows) or rows[tick[-1] + 1].begins
        fits = all(rows[at].sign == sign for at, sign in zip(tick, order, strict=False))
        if fits and (len(tick) == size or (len(tick) < size and ends)):
            for place, at in enumerate(tick):
                places[at] = place
    return tuple(places)


def _period(rows: Sequence[Row]) -> int | None:
    """Answer after how many rows the names repeat; None where one name is all there is, or they do not."""
    parts = [0]
    for row in rows[1:ENOUGH]:
        parts.append(parts[-1] + row.begins)
    signs = [row.sign for row in rows[:ENOUGH]]
    if len({*signs} - {""}) < 2:
        return None
    chance = 1 - sum((count / len(signs)) ** 2 for count in Counter(signs).values())
    for period in range(2, min(MOST, len(signs) // FEWEST_TICKS) + 1):
        pairs = [signs[at] != signs[at + period] for at in range(len(signs) - period) if parts[at] == parts[at + period]]
        if pairs and sum(pairs) < DEFECTS * chance * len(pairs):
            return period
    return None


def _counted(rows: Sequence[Row], size: int) -> tuple[int | None, ...]:
    """Number rows by counting, as long as their names fit; after a row that does not, count anew from the next whole tick."""
    order = _order(rows, size)
    known = len({order[turn:] + order[:turn] for turn in range(size)}) == size  # whether its names say where a tick begins
    places: list[int | None] = [None] * len(rows)
    at = before = 0
    while at < len(rows):
        tick = _tick(rows, at, size)
        end = at + len(tick)
        if all(row.sign == sign for row, sign in zip(tick, order, strict=False)):  # shorter only where the log or its part ends
            places[at:end] = range(len(tick))
            at, before = end, at
            continue
        if not rows[at].begins and all(row.sign for row in tick):  # a row that left no trace may have been of the tick before
            places[before:at] = [None] * (at - before)
        at = before = _next(rows, at + 1, order if known else None)
    return tuple(places)


def _order(rows: Sequence[Row], size: int) -> tuple[str, ...]:
    """Answer the names of a tick in their order: the most frequent one, turned so that it begins where the log and its parts do."""
    whole = [tick for at in range(len(rows)) if len(tick := _signs(rows, at, size)) == size and all(tick)]
    if not whole:
        return _signs(rows, 0, size)
    most = Counter(whole).most_common(1)[0][0]
    begun = [_signs(rows, at, size) for at in range(len(rows)) if rows[at].begins or at == 0]
    turned = [most[turn:] + most[:turn] for turn in range(size)]
    return max(turned, key=lambda order: sum(all(a in ("", b) for a, b in zip(tick, order, strict=False)) for tick in begun))


def _tick(rows: Sequence[Row], at: int, size: int) -> Sequence[Row]:
    last = min(at + size, len(rows))
    return rows[at : next((other for other in range(at + 1, last) if rows[other].begins), last)]


def _signs(rows: Sequence[Row], at: int, size: int) -> tuple[str, ...]:
    return tuple(row.sign for row in _tick(rows, at, size))


def _next(rows: Sequence[Row], at: int, order: tuple[str, ...] | None) -> int:
    while at < len(rows) and not rows[at].begins and (order is None or _signs(rows, at, len(order)) != order):
        at += 1
    return at
