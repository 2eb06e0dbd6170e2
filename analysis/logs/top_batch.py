"""Logs of `top -b`: for each refresh a block about the machine and a table of processes, whose columns are those of its header.

The first table covers the moment since top started and no whole interval. `top -i` leaves idle processes out: one that is not shown
was below what top prints, which is not 0. `TIME+`, where it is shown, counts all of it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from analysis.plain import one_line

from ._lines import CUT, Ignored, lines_of, none_of_it, number_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

WHAT = "top -b"
TOP = re.compile(r"top - (\d\d):(\d\d):(\d\d) up .*")
LOAD = re.compile(r"load average: *(\d+[.,]\d+)")
SUMMARY = re.compile(r"(Tasks|Threads|%?Cpu\S*|([KMGTPE]iB )?(Mem|Swap)|%Node\S*) *:.*")
SIZE = re.compile(r"(\d+(?:[.,]\d+)?)([kmgtpKMGTP]?)", re.ASCII)
KIB = {"": 1, "k": 1, "m": 2**10, "g": 2**20, "t": 2**30, "p": 2**40}
LONG = re.compile(r"(\d+(?:[.,]\d+)?)([hdw])", re.ASCII)
UNIT_S = {"h": 3600, "d": 86400, "w": 7 * 86400}
CLOCK = re.compile(r"(\d{1,9}):(\d\d)(?:[.,](\d{1,9}))?", re.ASCII)
WHOLE = re.compile(r"\d{1,10}", re.ASCII)
DAY_S = 86400
LIKE = 3.0  # so many times a log's usual pause may be the one in which midnight passes
ALONE_S = 60.0  # as long may it be where there is no other
PID, CPU, COMMAND = "PID", "%CPU", "COMMAND"


@dataclass(frozen=True, slots=True)
class Process:
    """One row. `cpu_percent` is of one core, since the refresh before; what has no column is NaN."""

    pid: int
    command: str
    cpu_percent: float
    cpu_s: float
    res_bytes: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One refresh. `time_s` counts from the first one, `clock` is what the machine's clock showed; NaN and "" without a headline."""

    time_s: float
    clock: str
    load_average_1min: float
    processes: tuple[Process, ...]


@dataclass(frozen=True, slots=True)
class TopLog:
    """One log, its snapshots in their order. `why_no_time` says why those from some line on have no `time_s`, "" where all have."""

    origin: str
    snapshots: tuple[Snapshot, ...]
    ignored: tuple[str, ...]
    why_no_time: str = ""


class _Open:
    def __init__(self, line: int, clock: str, load: float) -> None:
        self.line, self.clock, self.load = line, clock, load
        self.table = False
        self.processes: list[Process] = []


def read(path: Path) -> TopLog:
    """Read a log. A snapshot whose table is cut short keeps the rows that are there.

    Raises: Unreadable, where there is no table of processes in it.
    """
    ignored = Ignored()
    result: list[_Open] = []
    columns: tuple[str, ...] = ()
    for line in lines_of(path):
        text = line.text.strip()
        headline = TOP.fullmatch(text)
        if not line.whole:
            ignored(line, CUT)
        elif headline:
            load = LOAD.search(text)
            number = None if load is None else _number(load[1])
            result.append(_Open(line.number, ":".join(headline.groups()), math.nan if number is None else number))
        elif _is_header(text):
            columns = tuple(text.split())
            if not result or (result[-1].table and not result[-1].clock):
                result.append(_Open(line.number, "", math.nan))  # top was told to leave its summary out
            result[-1].table = True
        elif result and result[-1].table:
            process = _process(text, columns)
            if isinstance(process, Process):
                result[-1].processes.append(process)
            else:
                ignored(line, process)
        elif not result or not SUMMARY.fullmatch(text):
            ignored(line, "no line of top")
    times_s, reason = _times(result)
    pairs = zip(result, times_s, strict=True)
    tables = [Snapshot(time_s, one.clock, one.load, tuple(one.processes)) for one, time_s in pairs if one.table]
    if not tables:
        raise none_of_it(path, WHAT, ignored)
    return TopLog(str(path), tuple(tables), tuple(ignored.said), reason)


def _is_header(text: str) -> bool:
    names = text.split()
    return PID in names and CPU in names and COMMAND in names


def _times(result: Sequence[_Open]) -> tuple[list[float], str]:
    """The seconds since the first snapshot by the clock, which has no date; NaN from where it cannot be followed, and why.

    A clock that goes back has passed midnight if the pause is then like the others of the log. Else it was set, or a second log begins.
    """
    pauses = {two.line: _clock_s(two) - _clock_s(one) for one, two in pairwise([one for one in result if one.clock])}
    usual = [pause for pause in pauses.values() if pause > 0]
    longest = LIKE * median(usual) if usual else ALONE_S
    now, reason, before = 0.0, "", ""
    times_s = []
    for one in result:
        pause = pauses.get(one.line, 0.0)
        if pause < 0 and pause + DAY_S > longest and not reason:
            reason = f"line {one.line}: the clock goes back from {before} to {one.clock}: it was set, or another log begins"
        now += pause % DAY_S
        before = one.clock or before
        times_s.append(math.nan if reason or not one.clock else now)
    return times_s, reason


def _clock_s(one: _Open) -> int:
    hours, minutes, seconds = map(int, one.clock.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def _process(text: str, columns: Sequence[str]) -> Process | str:
    at = columns.index(COMMAND)
    after = len(columns) - at - 1
    cells = text.split(maxsplit=at)
    ends = cells[-1].rsplit(maxsplit=after) if after and len(cells) > at else cells[at:]
    cells = [*cells[:at], *ends]
    if len(cells) != len(columns):
        return f"{len(cells)} cells where the header names {len(columns)}"
    row = dict(zip(columns, cells, strict=True))
    cpu = _number(row[CPU])
    if WHOLE.fullmatch(row[PID]) is None or cpu is None:
        return f"{PID} {one_line(row[PID], 20)} and {CPU} {one_line(row[CPU], 20)} are no numbers"
    if cpu < 0:
        return f"{CPU} is {one_line(row[CPU], 20)}, below 0"
    return Process(int(row[PID]), row[COMMAND], cpu, _seconds(row), _bytes(row.get("RES", "")))


def _number(text: str) -> float | None:
    return number_in(text.replace(",", "."))  # some languages write a decimal comma


def _seconds(row: Mapping[str, str]) -> float:
    """CPU time since the process began: minutes and seconds, or from some size on hours, days or weeks."""
    text = row.get("TIME+", row.get("TIME", ""))
    clock, long = CLOCK.fullmatch(text), LONG.fullmatch(text)
    if clock:
        return float(f"{int(clock[1]) * 60 + int(clock[2])}.{clock[3] or 0}")
    number = _number(long[1]) if long else None
    return math.nan if long is None or number is None else number * UNIT_S[long[2]]


def _bytes(text: str) -> float:
    found = SIZE.fullmatch(text)
    number = _number(found[1]) if found else None
    return math.nan if found is None or number is None else number * KIB[found[2].lower()] * 1024
