"""A published table of DLIO results: one row a run, as the collecting notebook of a DLIO study writes it.

Columns `Model,Parameter,Value,Procs,AU (%),I/O (MB/s)`. The notebook cut the name of a run's folder at its `_`: `4_read_threads_8` stands
as `read` with value `threads_8`. Here it is put together again. The design file beside it has the order of the rows.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.files import read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from .terms import IoRun

COLUMNS = ("Model", "Parameter", "Value", "Procs", "AU (%)", "I/O (MB/s)")
DESIGN = ("model", "processes", "overrides", "run")
OWN_DESIGN = ("block", "workload", "tweakset", "run")  # this project's
REPORTED = ("train_au_mean_percentage", "train_io_mean_MB_per_second")
ABOVE = 3  # results/model/setting
BEGINNING = 4096  # characters that say what a file is
AGREES = 0.005 + 1e-9  # what rounding to two decimals can do


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One published run. `setting` is the override's last key and its value, None for the baseline; `order` its place in the design.

    `named`: its id begins with the model, since there are several.
    """

    line: int
    model: str
    processes: int
    setting: tuple[str, str] | None
    au_percent: float
    mb_per_s: float
    order: int | None = None
    named: bool = False

    @property
    def id(self) -> str:
        return f"{self.model} " * self.named + "_".join([str(self.processes), *(self.setting or ())])


def is_published(path: Path) -> bool:
    return _head(path) == COLUMNS


def is_design(path: Path) -> bool:
    """Whether a file is the design of a study, by its first line: which rows there were to be, and no figure."""
    return any(set(columns) <= set(_head(path)) for columns in (DESIGN, OWN_DESIGN))


def beside(path: Path) -> list[Path]:
    """Find published tables beside a folder of results, or beside what is above it."""
    above = path.resolve().parents[:ABOVE]
    return [one for where in above for one in sorted(where.glob("*.csv")) if is_published(one)]


def beginning(path: Path) -> str:
    try:
        if not path.is_file():  # opening a pipe can already take for ever
            return ""
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(BEGINNING)
    except OSError:
        return ""


def _head(path: Path) -> tuple[str, ...]:
    lines = (line for line in beginning(path).splitlines() if line.strip() and not line.startswith("#"))
    return tuple(next(lines, "").strip().split(","))


def rows_of(path: Path, design: Path | None = None) -> list[PublishedRow]:
    """Read a table; with its design, rows know their order. Raises: Unreadable, with the line."""
    planned = []
    for line, cells in _lines(design, DESIGN) if design is not None else ():
        override, _, value = cells["overrides"].partition("=")
        processes = int(_number(f"{design}, line {line}", "processes", cells))
        planned.append((cells["model"], processes, (override.rpartition(".")[2], value) if override else None))
    result = []
    for line, cells in _lines(path, COLUMNS):
        place = f"{path}, line {line}"
        parameter, (rest, _, level) = cells["Parameter"], cells["Value"].rpartition("_")
        setting = None if parameter in ("", "baseline") else (f"{parameter}_{rest}" if rest else parameter, level)
        count, au, rate = (_number(place, name, cells) for name in COLUMNS[3:])
        if count != count // 1 or count < 1:
            raise Unreadable(f"{place}: Procs = {cells['Procs']!r} is no count of processes.")
        key = (cells["Model"], int(count), setting)
        result.append(PublishedRow(line, *key, au, rate, planned.index(key) if key in planned else None))
    if not result:
        raise Unreadable(f"{path}: no row after the head.")
    return result


def match(rows: Sequence[PublishedRow], runs: Sequence[IoRun]) -> dict[PublishedRow, IoRun]:
    """Find the run of each row: the same setting where that is known, and reported figures that round to those published."""
    candidates = ((row, next((run for run in runs if _is_run_of(row, run)), None)) for row in rows)
    return {row: run for row, run in candidates if run is not None}


def _is_run_of(row: PublishedRow, run: IoRun) -> bool:
    if run.kind != "training" or row.processes != run.processes or (run.configured and row.setting != setting_of(run)):
        return False
    reported = zip((run.reported.get(name) for name in REPORTED), (row.au_percent, row.mb_per_s), strict=True)
    return all(isinstance(value, float) and abs(value - published) <= AGREES for value, published in reported)


def setting_of(run: IoRun) -> tuple[str, str] | None:
    """Return the one override of a run, by its last key; None for the baseline. Of several, all."""
    if not run.overrides:
        return None
    return " ".join(key.rpartition(".")[2] for key in run.overrides), " ".join(map(str, run.overrides.values()))


def _lines(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        text = read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{path}: not a text file.") from None
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")]
    rows = [(number, next(csv.reader([line]))) for number, line in numbered]
    if not rows or not set(columns) <= set(rows[0][1]):
        raise Unreadable(f"{path}: has no columns {', '.join(columns)} in its first line.")
    head = rows[0][1]
    for number, row in rows[1:]:
        if len(row) != len(head):
            raise Unreadable(f"{path}, line {number}: has {len(row)} fields where {len(head)} belong: {one_line(','.join(row), 60)}.")
        yield number, dict(zip(head, row, strict=True))


def _number(place: str, name: str, cells: dict[str, str]) -> float:
    try:
        number = float(cells[name])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Unreadable(f"{place}: {name} = {one_line(cells[name], 40)!r} is no number.")
    return number
