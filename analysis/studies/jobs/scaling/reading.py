"""Measured jobs out of saved runs and CSV, and laws out of the JSON that `python -m analysis scale fit --json` writes."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.load import find, load, parsed
from analysis.opening import read_whole
from analysis.studies.jobs.profiles.one_machine import of_one_machine
from analysis.terms import Refused, Unreadable
from control.scaling import Law, Point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Run

NEEDED = ("replicas", "time_s")


def points(names: Sequence[str]) -> tuple[list[Point], list[str]]:
    """Read all that is named: CSV with `replicas`, `time_s` and, where sizes differ, `work`; saved runs of streams of jobs.

    Returns: the points, and what was left out, a sentence each. Raises: Refused, where nothing is left, and for runs of different machines.
    """
    left_out: list[str] = []
    paths = [path for name in names for path in ([Path(name)] if name.endswith(".csv") else find([name]))]
    found = [point for path in paths if path.suffix == ".csv" for point in _csv(path)]
    for run in of_one_machine((load(path) for path in paths if path.suffix != ".csv"), left_out):
        found += _run(run, left_out)
    if not found:
        raise Refused(f"{', '.join(names)}: no job that ended with replicas and a time. {' '.join(left_out)}".rstrip())
    return found, left_out


def _csv(path: Path) -> list[Point]:
    try:
        lines = csv.DictReader(io.StringIO(read_whole(path).decode("utf-8-sig"), newline=""), strict=True)
        missing = [name for name in NEEDED if name not in (lines.fieldnames or ())]
        if missing:
            raise Unreadable(f"{path}: has no column {missing[0]!r}; it has {', '.join(lines.fieldnames or ['none'])}.")
        return [_point(line, f"{path}: line {lines.line_num}") for line in lines]
    except (csv.Error, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: is no CSV in UTF-8 ({error}).") from None


def _run(run: Run, left_out: list[str]) -> list[Point]:
    found = []
    for cell in run.cells:
        rows = cell.report.get("job", ())
        done = [row for row in rows if row.get("outcome") == "done" and isinstance(row.get("work"), int | float)]
        for at, row in enumerate(done):
            times = [row.get(name) for name in ("start_s", "end_s")]
            if not all(isinstance(one, int | float) for one in times):
                raise Unreadable(f"{run.origin}: {cell.id}: job row {at} is done and has no start_s or end_s.")
            found.append(_point({**row, "time_s": times[1] - times[0]}, f"{run.origin}: {cell.id}: job {row.get('job')}"))  # type: ignore[operator]
        if len(done) < len(rows):
            left_out.append(f"{cell.id}: {len(rows) - len(done)} of {len(rows)} jobs were not done, or tell no size.")
    return found


def _point(row: Mapping[str, Any], where: str) -> Point:
    values = []
    for name in ("replicas", "work", "time_s"):
        said = row.get(name, 1.0) if name == "work" else row.get(name)
        try:
            value = float(said)  # type: ignore[arg-type]  # whatever it is, it is said below
        except (TypeError, ValueError, OverflowError):
            value = -1.0
        if not 0 < value < 1e12 or (name == "replicas" and value != int(value)):
            raise Unreadable(f"{where}: {name} is {said!r}; a {'whole ' if name == 'replicas' else ''}number above 0 belongs there.")
        values.append(value)
    return Point(int(values[0]), values[1], values[2])


def law(path: Path) -> Law:
    """Read the law that was fitted best, or one written by hand: {"cost_s": 100, "serial": 0.02, …}. Raises: Unreadable."""
    said = parsed(path)
    if isinstance(said, dict) and isinstance(said.get("fits"), list) and said["fits"]:
        said = said["fits"][0].get("law")
    if not isinstance(said, dict) or "cost_s" not in said:
        raise Unreadable(
            f"{path}: no law; `python -m analysis scale fit --json` writes one, or write cost_s, serial, crosstalk, startup_s."
        )
    names = [field.name for field in fields(Law)]
    unknown = [name for name in said if name not in names]
    if unknown:
        raise Unreadable(f"{path}: a law has no {unknown[0]!r}; it has {', '.join(names)}.")
    return law_of(said, str(path))


def law_of(said: Mapping[str, Any], where: str) -> Law:
    """Make a law of numbers. Raises: Refused, which is none."""
    values = {}
    for name, value in said.items():
        most = 1.0 if name in {"serial", "crosstalk"} else 1e12
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise Refused(f"{where}: {name} is {value!r}; a number from 0 to {most:g} belongs there.")
        values[name] = float(value)
    if values["cost_s"] == 0:
        raise Refused(f"{where}: cost_s is 0: no work takes no time.")
    return Law(**values)
