"""Files that were named → one table of what is to be predicted: saved runs by their cells or jobs, and CSV."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.plain import one_line
from analysis.studies.jobs.profiles.one_machine import of_one_machine
from analysis.terms import Refused

from . import cells, factor_csv, jobs
from .tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Run

    from .terms import Row, Table

SHOWN = 24  # names in one sentence


def read(names: Sequence[str], response: str | None, without: Sequence[str] = ()) -> Table:
    """Read all that is named. `without` are factors that models must not see.

    The response, where it is not said, is the service time of jobs, the primary metric of other runs, `time_s` of CSV.
    Raises: Refused, for a response or a factor that nothing tells, with what there is, and for runs of different machines.
    """
    notes: list[str] = []
    runs, files = _opened(names, notes)
    asked = response or _default(runs, _known(runs, files))
    rows = _rows(names, runs, files, asked, notes)
    return table(_blind(rows, without), asked, notes)


def rows_of(names: Sequence[str], response: str) -> tuple[list[Row], list[str]]:
    """Read all rows that tell a response, and what was left out. Raises: Refused."""
    notes: list[str] = []
    return _rows(names, *_opened(names, notes), response, notes), notes


def _opened(names: Sequence[str], notes: list[str]) -> tuple[list[Run], list[Path]]:
    # Two machines are two levels of all that they differ in: what a third would do, no group that is left out can say.
    runs = list(of_one_machine(load_each([name for name in names if not name.endswith(".csv")], notes), notes))
    return runs, [Path(name) for name in names if name.endswith(".csv")]


def _rows(names: Sequence[str], runs: Sequence[Run], files: Sequence[Path], asked: str, notes: list[str]) -> list[Row]:
    known = _known(runs, files)
    if not known:
        raise Refused(notes[0] if notes else f"{', '.join(map(one_line, names))}: nothing was measured that could be predicted.")
    if asked not in known:
        raise Refused(f"{one_line(asked)}: nothing tells it. {_there_is(asked, known, 'Measured were')}")
    rows: list[Row] = []
    for run in runs:
        of_jobs = jobs.tells_of_jobs(run) and asked in jobs.responses(run)
        rows += (jobs if of_jobs else cells).rows(run, asked, notes)
    for path in files:
        rows += factor_csv.rows(path, asked, notes)
    if not rows:
        raise Refused(f"{asked}: no row tells it. {' '.join(notes[:3])}")
    return rows


def _known(runs: Sequence[Run], files: Sequence[Path]) -> list[str]:
    return list(dict.fromkeys([*(one for run in runs for one in _responses(run)), *(one for path in files for one in _of_file(path))]))


def _responses(run: Run) -> list[str]:
    return [*(jobs.responses(run) if jobs.tells_of_jobs(run) else []), *cells.responses(run)]


def _of_file(path: Path) -> list[str]:
    return factor_csv.responses(factor_csv.read(path)[0])


def _default(runs: Sequence[Run], known: Sequence[str]) -> str:
    if any(jobs.tells_of_jobs(run) for run in runs):
        return jobs.SERVICE
    if runs:
        return cells.primary(runs[0])
    return next((name for name in (factor_csv.RESPONSE, *jobs.TIMES) if name in known), factor_csv.RESPONSE)


def _blind(rows: Sequence[Row], without: Sequence[str]) -> list[Row]:
    """Take factors out of what models see; configurations stay what they were."""
    there = list(dict.fromkeys(name for row in rows for name in row.factors))
    for name in without:
        if name not in there:
            raise Refused(f"{one_line(name)}: is no factor of these rows. {_there_is(name, there, 'Factors are')}")
    return [
        type(row)(row.configuration, row.run, {name: one for name, one in row.factors.items() if name not in without}, row.value)
        for row in rows
    ]


def _there_is(word: str, known: Sequence[str], begin: str) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"{begin} {', '.join(map(one_line, known[:SHOWN]))}{more}." + (f" Did you mean {near[0]!r}?" if near else "")
