"""Readers of what other programs printed: `dcgmi dmon`, `top -b` and the output of a training.

A line that cannot be read is listed with its number and the reason, and is never taken for 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
SHOWN = 60  # letters of an unreadable line that are shown
CUT = "the log ends in the middle of it, as one does whose writer was killed"


class Line(NamedTuple):
    number: int
    text: str


class Damaged(Exception):
    """A line that cannot be read; the message is the reason."""


class Log:
    """The whole lines of a log, blank ones left out, and a list of those that could not be read.

    The last line counts as cut unless it ends with a newline or matches `end`. Raises: Unreadable, for an empty file and one that cannot
    be opened.
    """

    def __init__(self, path: Path, program: str, end: str = "$^") -> None:
        text = read_whole(path).decode("utf-8", errors="replace")
        if not text.strip():
            raise Unreadable(f"{path}: is empty: nothing was recorded, or the log was not copied; take it from its source.")
        self.path, self.program = path, program
        self._ignored: dict[int, str] = {}
        *whole, last = text.split("\n")  # str.splitlines would also break at what may stand inside a line
        self.lines = [Line(number, line.removesuffix("\r")) for number, line in enumerate(whole, 1) if line.strip()]
        if last.strip() and not re.match(end, last):
            self.ignore(Line(len(whole) + 1, last), CUT)

    def ignore(self, line: Line, reason: object) -> None:
        self._ignored[line.number] = f"line {line.number}: {reason}: {one_line(line.text, SHOWN)!r}"

    @property
    def ignored(self) -> tuple[str, ...]:
        return tuple(text for _, text in sorted(self._ignored.items()))

    def without_samples(self) -> Unreadable:
        first = f"; the first of {len(self.ignored)} lines left out: {self.ignored[0]}" if self.ignored else ""
        return Unreadable(f"{self.path}: no sample of {self.program} in it{first}. Name a log of it, or record it again.")


def number_in(text: str) -> float | None:
    """Read a number as programs print it; None for anything else, also for `nan` and `inf`, which are no measurement."""
    if NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


# dcgmi dmon: a header of field names, perhaps a line of units, then a row per entity and tick, without times. The header comes again.
HEADER = re.compile(r"\s*#\s*Entity\b")
UNITS = re.compile(r"\s*I[Dd](\s|$)")
ROW = re.compile(r"\s*([A-Za-z][A-Za-z-]*)\s+(\d+(?:/\d+)*)(?:\s+(.*))?")
STOPPED = "dmon was stopped "
ABSENT = {"N/A", "-"}


@dataclass(frozen=True, slots=True)
class DcgmiLog:
    """One log. `entities` gives by entity (`GPU 0`, `GPU-I 3`) and field (`SMACT`) the samples in their order; NaN where dcgmi says N/A.

    `units` holds what the header says of them: shares (GRACT, SMACT, …) have none, utilisations are percent.
    """

    origin: str
    fields: tuple[str, ...]
    units: Mapping[str, str]
    entities: Mapping[str, Mapping[str, NDArray[np.float64]]]
    ignored: tuple[str, ...]

    def samples(self, entity: str) -> int:
        return max((len(column) for column in self.entities[entity].values()), default=0)


def read_dcgmi(path: Path) -> DcgmiLog:
    """Read a log of `dcgmi dmon`. A field that a later header drops or adds is NaN where it was not recorded.

    Raises: Unreadable, where there is no row in it.
    """
    log = Log(path, "dcgmi dmon", end=STOPPED)
    header, fields = "", list[str]()
    units: dict[str, str] = {}
    rows: dict[str, list[dict[str, float]]] = {}
    for line in log.lines:
        if HEADER.match(line.text):
            header, fields = line.text, HEADER.sub("", line.text, count=1).split()
            units |= {name: "" for name in fields if name not in units}
        elif fields and UNITS.match(line.text):
            units |= _units(header, line.text)
        elif not line.text.startswith(STOPPED):
            match = ROW.fullmatch(line.text)
            try:
                samples = _samples(match, fields)
            except Damaged as reason:
                log.ignore(line, reason)
            else:
                rows.setdefault(" ".join(line.text.split()[:2]), []).append(samples)
    if not rows:
        raise log.without_samples()
    columns = {entity: {name: np.array([row.get(name, np.nan) for row in samples]) for name in units} for entity, samples in rows.items()}
    return DcgmiLog(str(path), tuple(units), {name: unit for name, unit in units.items() if unit}, columns, log.ignored)


def _samples(row: re.Match[str] | None, fields: Sequence[str]) -> dict[str, float]:
    if row is None or not fields:
        raise Damaged("no row" if row is None else "a row before any header")
    cells = (row[3] or "").split()
    if len(cells) != len(fields):
        raise Damaged(f"{len(cells)} values where the header names {len(fields)}")
    values = {}
    for name, cell in zip(fields, cells, strict=True):
        value = np.nan if cell in ABSENT else number_in(cell)
        if value is None:
            raise Damaged(f"{name} is {one_line(cell, 20)}, no number")
        values[name] = value
    return values


def _units(header: str, line: str) -> dict[str, str]:
    """Units by the name above them: the border between two columns lies between their names, which their units overlap or nearly do."""
    names = list(re.finditer(r"\S+", HEADER.sub(lambda match: " " * len(match[0]), header)))
    borders = [(left.end() + right.start()) / 2 for left, right in pairwise(names)]
    middles = {(unit.start() + unit.end()) / 2: unit[0] for unit in list(re.finditer(r"\S+", line))[1:]}
    return {names[sum(border <= middle for border in borders)][0]: unit for middle, unit in middles.items()}


# top -b: for each refresh a block about the machine and a table of processes, whose columns are those of its header. The first table
# covers the moment since top started and no whole interval. `TIME+`, where it is shown, counts all of a process's CPU time.
TOP = re.compile(r"top - (\d\d):(\d\d):(\d\d) up .*")
LOAD = re.compile(r"load average: *(\d+[.,]\d+)")
SUMMARY = re.compile(r"(Tasks|Threads|%?Cpu\S*|([KMGTPE]iB )?(Mem|Swap)|%Node\S*) *:.*")
CLOCK = re.compile(r"(\d{1,9}):(\d\d)(?:[.,](\d{1,9}))?", re.ASCII)
SCALED = re.compile(r"(\d+(?:[.,]\d+)?)([a-zA-Z]?)", re.ASCII)
KIB = {"": 1, "k": 1, "m": 2**10, "g": 2**20, "t": 2**30, "p": 2**40}
LONG_S = {"h": 3600, "d": 86400, "w": 7 * 86400}
WHOLE = re.compile(r"\d{1,10}", re.ASCII)
DAY_S = 86400
LIKE = 3.0  # so many times a log's usual pause may be the one in which midnight passes
ALONE_S = 60.0  # as long may it be where there is no other
PID, CPU, COMMAND = "PID", "%CPU", "COMMAND"


@dataclass(frozen=True, slots=True)
class Process:
    """One row of a table. `cpu_percent` is of one core, since the refresh before; what has no column is NaN."""

    pid: int
    command: str
    cpu_percent: float
    cpu_s: float
    res_bytes: float


@dataclass(slots=True)
class Snapshot:
    """One refresh. `time_s` counts from the first one, `clock` is what the machine's clock showed; NaN and "" without a headline."""

    line: int
    clock: str = ""
    load_average_1min: float = math.nan
    time_s: float = math.nan
    has_table: bool = False
    processes: list[Process] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TopLog:
    """One log, its snapshots in their order. `why_no_time` says why those from some line on have no `time_s`, "" where all have."""

    origin: str
    snapshots: tuple[Snapshot, ...]
    ignored: tuple[str, ...]
    why_no_time: str = ""


def read_top(path: Path) -> TopLog:
    """Read a log of `top -b`. A snapshot whose table is cut short keeps the rows that are there.

    Raises: Unreadable, where there is no table of processes in it.
    """
    log = Log(path, "top -b")
    snapshots: list[Snapshot] = []
    columns: list[str] = []
    for line in log.lines:
        text = line.text.strip()
        words = text.split()
        if headline := TOP.fullmatch(text):
            load = LOAD.search(text)
            number = _number(load[1]) if load else None
            snapshots.append(Snapshot(line.number, ":".join(headline.groups()), math.nan if number is None else number))
        elif {PID, CPU, COMMAND} <= set(words):
            columns = words
            if not snapshots or (snapshots[-1].has_table and not snapshots[-1].clock):
                snapshots.append(Snapshot(line.number))  # top was told to leave its summary out
            snapshots[-1].has_table = True
        elif snapshots and snapshots[-1].has_table:
            try:
                snapshots[-1].processes.append(_process(text, columns))
            except Damaged as reason:
                log.ignore(line, reason)
        elif not snapshots or not SUMMARY.fullmatch(text):
            log.ignore(line, "no line of top")
    why_no_time = _set_times(snapshots)
    tables = tuple(snapshot for snapshot in snapshots if snapshot.has_table)
    if not tables:
        raise log.without_samples()
    return TopLog(str(path), tables, log.ignored, why_no_time)


def _set_times(snapshots: Sequence[Snapshot]) -> str:
    """Set the seconds since the first snapshot by the clock, which has no date. Returns: why it cannot be followed from some line on.

    A clock that goes back has passed midnight if the pause is then like the others of the log. Else it was set, or a second log begins.
    """
    timed = [snapshot for snapshot in snapshots if snapshot.clock]
    pauses = [_clock_s(after) - _clock_s(before) for before, after in pairwise(timed)]
    usual = [pause for pause in pauses if pause > 0]
    longest = LIKE * median(usual) if usual else ALONE_S
    now = 0
    for at, snapshot in enumerate(timed):
        pause = pauses[at - 1] if at else 0
        if pause < 0 and pause + DAY_S > longest:
            back = f"the clock goes back from {timed[at - 1].clock} to {snapshot.clock}"
            return f"line {snapshot.line}: {back}: it was set, or another log begins"
        now += pause % DAY_S
        snapshot.time_s = now
    return ""


def _clock_s(snapshot: Snapshot) -> int:
    hours, minutes, seconds = map(int, snapshot.clock.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def _process(text: str, columns: Sequence[str]) -> Process:
    at = columns.index(COMMAND)
    after = len(columns) - at - 1
    cells = text.split(maxsplit=at)
    cells = [*cells[:at], *(cells[at].rsplit(maxsplit=after) if after and len(cells) > at else cells[at:])]
    if len(cells) != len(columns):
        raise Damaged(f"{len(cells)} cells where the header names {len(columns)}")
    row = dict(zip(columns, cells, strict=True))
    cpu = _number(row[CPU])
    if WHOLE.fullmatch(row[PID]) is None or cpu is None:
        raise Damaged(f"{PID} {one_line(row[PID], 20)} and {CPU} {one_line(row[CPU], 20)} are no numbers")
    if cpu < 0:
        raise Damaged(f"{CPU} is {one_line(row[CPU], 20)}, below 0")
    time = row.get("TIME+", row.get("TIME", ""))  # minutes and seconds, or from some size on hours, days or weeks
    clock = CLOCK.fullmatch(time)
    cpu_s = float(f"{int(clock[1]) * 60 + int(clock[2])}.{clock[3] or 0}") if clock else _scaled(time, LONG_S)
    return Process(int(row[PID]), row[COMMAND], cpu, cpu_s, _scaled(row.get("RES", "").lower(), KIB) * 1024)


def _number(text: str) -> float | None:
    return number_in(text.replace(",", "."))  # some languages write a decimal comma


def _scaled(text: str, units: Mapping[str, int]) -> float:
    """A number with a unit behind it; NaN for anything else."""
    match = SCALED.fullmatch(text)
    number = _number(match[1]) if match and match[2] in units else None
    return math.nan if match is None or number is None else number * units[match[2]]


# A small PyTorch training: a loss now and then, an accuracy after each epoch, and its wall time at the end.
VALUE = r"([+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|nan|inf))"
LOSS = re.compile(rf"Train Epoch: (\d{{1,12}}) \[(\d{{1,12}})/\d{{1,12}} \(\d+(?:\.\d+)?%\)\]\s+Loss: {VALUE}\s*", re.ASCII)
TEST = re.compile(rf"Test set: Average loss: {VALUE}, Accuracy: (\d{{1,12}})/(\d{{1,12}}) \(\d+(?:\.\d+)?%\)\s*", re.ASCII)
TIME = re.compile(r"time:\s+(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*", re.ASCII)
NO_TIME = {0: "it says no time: it did not end, or its output was cut", 1: ""}


@dataclass(frozen=True, slots=True)
class Test:
    """One look at the held-out samples: how many of them were named rightly."""

    average_loss: float
    correct: int
    samples: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.samples


@dataclass(frozen=True, slots=True)
class TrainingLog:
    """One training. A loss that diverged is NaN, as it was printed. Without `time_s` the last field says why."""

    origin: str
    epoch: NDArray[np.int64]
    seen: NDArray[np.int64]
    loss: NDArray[np.float64]
    tests: tuple[Test, ...]
    time_s: float | None
    ignored: tuple[str, ...]
    why_no_time: str = ""


def read_training(path: Path) -> TrainingLog:
    """Read the output of a training. Raises: Unreadable, where there is neither a loss nor an accuracy nor a time in it."""
    log = Log(path, "the output of a training")
    losses: list[tuple[int, int, float]] = []
    tests: list[Test] = []
    times: list[float] = []
    for line in log.lines:
        if match := LOSS.fullmatch(line.text):
            losses.append((int(match[1]), int(match[2]), float(match[3])))
        elif (match := TEST.fullmatch(line.text)) and 0 < int(match[3]) >= int(match[2]):
            tests.append(Test(float(match[1]), int(match[2]), int(match[3])))
        elif (match := TIME.fullmatch(line.text)) and 0 < float(match[1]) < np.inf:
            times.append(float(match[1]))
        else:
            log.ignore(line, "neither a loss nor an accuracy nor a time")
    if not (losses or tests or times):
        raise log.without_samples()
    epoch, seen, loss = zip(*losses, strict=True) if losses else ((), (), ())
    return TrainingLog(
        origin=str(path),
        epoch=np.array(epoch, dtype=np.int64),
        seen=np.array(seen, dtype=np.int64),
        loss=np.array(loss, dtype=np.float64),
        tests=tuple(tests),
        time_s=times[0] if len(times) == 1 else None,
        ignored=log.ignored,
        why_no_time=NO_TIME.get(len(times), f"it says {len(times)} times: outputs of several runs in one file"),
    )
