"""Rows out of CSV: a column is the response, `configuration` and `run` say what belongs together, every other column is a factor."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from analysis.opening import read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable

from . import factors, jobs
from .terms import Row

if TYPE_CHECKING:
    from pathlib import Path

CONFIGURATION, RUN = "configuration", "run"
RESPONSE = "time_s"
PASSED_OVER = frozenset(
    {"job", "submit_s", "admit_s", "start_s", "end_s", "outcome", "reason", "node", "due_s", "predicted_s", "planned_submit_s"}
)


def read(path: Path) -> tuple[list[str], list[dict[str, float | str]]]:
    """Read columns and lines; an empty cell is missing. Raises: Unreadable, with the line."""
    try:
        lines = csv.reader(io.StringIO(read_whole(path).decode("utf-8-sig"), newline=""), strict=True)
        names = [name.strip() for name in next(lines, [])]
        if not any(names) or len(set(names)) < len(names):
            raise Unreadable(f"{path}: line 1: {one_line(','.join(names)) or 'nothing'}; the names of columns belong there, each once.")
        found = []
        for cells in lines:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(names):
                raise Unreadable(f"{path}: line {lines.line_num}: has {len(cells)} cells for {len(names)} columns.")
            found.append(factors.plain({name: cell.strip() for name, cell in zip(names, cells, strict=True)}))
    except (csv.Error, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: is no CSV in UTF-8 ({error}).") from None
    return names, found


def responses(names: list[str]) -> list[str]:
    """Name the columns that can be a response; of a list of jobs, the times between."""
    between = [name for name, pair in jobs.TIMES.items() if set(pair) <= set(names)]
    return between + [name for name in names if name not in PASSED_OVER | {CONFIGURATION, RUN}]


def rows(path: Path, response: str, left_out: list[str]) -> list[Row]:
    """Read the rows that tell the response; of the others how many, in `left_out`. Without the column `run` each row is its own."""
    _, lines = read(path)
    found = []
    for at, line in enumerate(lines):
        value = jobs.value(line, response)
        if value is None:
            continue
        own = {name: one for name, one in line.items() if name not in PASSED_OVER | {response, CONFIGURATION, RUN}}
        configuration = line.get(CONFIGURATION, factors.named(own, jobs.NO_CONFIGURATION))
        found.append(Row(str(configuration), f"{path} {line.get(RUN, f'row {at}')}", own, value))
    if len(found) < len(lines):
        left_out.append(f"{path}: {len(lines) - len(found)} of {len(lines)} rows tell no {response}.")
    return found
