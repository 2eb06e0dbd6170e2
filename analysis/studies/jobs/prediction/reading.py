"""Files as a table of responses and factors: cells or jobs of saved runs, and lines of CSV."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from analysis.load import load_each
from analysis.plain import one_line
from analysis.studies.jobs import csv_file
from analysis.studies.jobs.records import Stream, of_one_machine, streams, tells_of_jobs
from analysis.terms import AGAIN, Cell, Refused, Run, Unreadable
from analysis.wording import suggestion
from control.names import first_few

from .models import FactorTable, Measurement, table

if TYPE_CHECKING:
    Factors = dict[str, float | str]

SHOWN = 24  # names in one sentence
KERNEL = "kernel_release"  # on one machine, nothing else changes between runs
FOUND = "as found"
CONFIGURATION, RUN = "configuration", "run"  # columns of CSV
RESPONSE, SERVICE = "time_s", "service_s"
TIMES = {
    SERVICE: ("start_s", "end_s"),
    "response_s": ("submit_s", "end_s"),
    "wait_s": ("submit_s", "start_s"),
}
USED_BY_CELLS = ("cpu_s", "wall_s", "energy_j", "peak_rss_bytes")
# Factors of the whole stream: its conditions are the configuration, not the job's class.
OF_STREAM = frozenset({"response_s", "wait_s"})
OWN = ("class", "priority", "tenant", "replicas", "cores", "memory_mib", "work")
# A job's size, arrival and priority. Jobs that differ in nothing else share a configuration.
NO_CONFIGURATION = frozenset(
    {"work", "priority", "tenant", "policy", "arrivals", "rate_per_s", "burst", "burst_s", "jobs"}
) | {"trace", "retries", "patience_s"}
PASSED_OVER = frozenset(
    {CONFIGURATION, RUN, "job", "submit_s", "admit_s", "start_s", "end_s", "outcome", "reason"}
) | {"node", "due_s", "predicted_s", "planned_submit_s"}


class DataRow(NamedTuple):
    """A cell, a job or a line: when it ran, its factors, and numbers that could be predicted.

    `configuration` is the request, unless the factors determine it, and `stream` that of the job's
    whole stream.
    """

    run: str
    factors: Factors
    values: Mapping[str, float]
    configuration: str = ""
    stream: str = ""


class RowSource(NamedTuple):
    """The rows of one file, by kind; `primary` is the default response."""

    origin: str
    primary: str
    rows: Mapping[str, Sequence[DataRow]]


def read(names: Sequence[str], response: str | None, without: Sequence[str] = ()) -> FactorTable:
    """Read all named files into one table; models do not see the factors in `without`.

    The default response is the service time of jobs, the primary metric of other runs, `time_s` of
    CSV. Raises: Refused, for an unknown response or factor, and for different machines.
    """
    rows, wanted, notes = rows_of(names, response)
    factors = list(dict.fromkeys(name for row in rows for name in row.factors))
    for name in without:
        if name not in factors:
            there = _listed(name, factors, "Factors:")
            raise Refused(f"{one_line(name)}: not a factor of these rows. {there}")
    kept = [
        replace(row, factors={key: row.factors[key] for key in row.factors if key not in without})
        for row in rows
    ]
    return table(kept, wanted, notes)


def rows_of(names: Sequence[str], response: str | None) -> tuple[list[Measurement], str, list[str]]:
    """Return all measurements of a response, its name, and the unusable ones."""
    notes: list[str] = []
    sources = [*_of_runs([name for name in names if not name.endswith(".csv")], notes)]
    sources += [_of_csv(Path(name)) for name in names if name.endswith(".csv")]
    every = chain.from_iterable(rows for source in sources for rows in source.rows.values())
    known = list(dict.fromkeys(name for row in every for name in row.values))
    if not known:
        reason = f"{', '.join(map(one_line, names))}: no measurement can be predicted."
        raise Refused(notes[0] if notes else reason)
    primaries = [source.primary for source in sources]
    wanted = response or (SERVICE if SERVICE in primaries else primaries[0])
    if wanted not in known:
        there = _listed(wanted, known, "Available:")
        raise Refused(" ".join([f"{one_line(wanted)}: was not measured. {there}", *notes[:3]]))
    return [row for source in sources for row in _measured(source, wanted, notes)], wanted, notes


def _measured(source: RowSource, response: str, notes: list[str]) -> Iterator[Measurement]:
    having = {
        kind: [row for row in rows if response in row.values] for kind, rows in source.rows.items()
    }
    kind = next((kind for kind, rows in having.items() if rows), [*having][-1])
    if missing := len(source.rows[kind]) - len(having[kind]):
        count = f"{missing} of {len(source.rows[kind])} {kind}"
        notes.append(f"{source.origin}: {count} have no {response}.")
    for row in having[kind]:
        factors = {name: value for name, value in row.factors.items() if name != response}
        stream = row.stream if response in OF_STREAM else ""
        configuration = stream or row.configuration or named(factors, NO_CONFIGURATION)
        yield Measurement(configuration, row.run, factors, row.values[response])


def _listed(word: str, known: Sequence[str], begin: str) -> str:
    return f"{begin} {first_few([*map(one_line, known)], SHOWN)}.{suggestion(word, known)}"


def plain(values: Mapping[str, object], before: str = "") -> Factors:
    """Keep numbers and texts; numeric texts become numbers, and booleans names."""
    factors: Factors = {}
    for name, value in values.items():
        if isinstance(value, bool):
            factors[before + name] = "yes" if value else "no"
        elif isinstance(value, int | float) and math.isfinite(value):
            factors[before + name] = float(value)
        elif isinstance(value, str) and value:
            factors[before + name] = typed(value)
    return factors


def typed(text: str) -> float | str:
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) and "_" not in text else text


def spelled(name: str, value: float | str) -> str:
    return f"{name}={value}" if isinstance(value, str) else f"{name}={value:g}"


def named(factors: Mapping[str, float | str], without: frozenset[str] = frozenset()) -> str:
    return " ".join(
        spelled(name, value) for name, value in sorted(factors.items()) if name not in without
    )


def _of_runs(names: Sequence[str], notes: list[str]) -> Iterator[RowSource]:
    # Two machines confound all their differences, and no held-out group represents a third.
    runs = [*of_one_machine(load_each(names, notes), notes)]
    jobs = [streams(run, notes, copies=True) if tells_of_jobs(run) else [] for run in runs]
    groups = _sharing(chain.from_iterable(jobs))
    for run, every in zip(runs, jobs, strict=True):
        rows = {"cells": [_of_cell(run, cell) for cell in run.cells]}
        if not tells_of_jobs(run):
            yield RowSource(run.origin, _primary(run), rows)
            continue
        of_jobs = [row for one in every for row in _of_stream(run, one, groups[one.drawn[0]])]
        yield RowSource(run.origin, SERVICE, {"jobs": of_jobs} | rows)


def _sharing(every: Iterable[Stream]) -> dict[Hashable, str]:
    """Name the group of streams with the same jobs, by draw: groups are held out whole."""
    groups: dict[Hashable, str] = {}
    for one in every:
        known = {groups[key] for key in one.drawn if key in groups}
        first = min(known, default=f"{one.unit[0]} {one.name}")
        groups = {key: first if group in known else group for key, group in groups.items()}
        groups |= dict.fromkeys(one.drawn, first)
    return groups


def _primary(run: Run) -> str:
    for cell in run.cells[:1]:
        workload = run.workloads.get(cell.workload)
        own = None if workload is None else workload.primary
        return (own or run.studies[cell.study].primary).name
    return "step_time_mean_s"


def _factors(run: Run, cell: Cell) -> Factors:
    workload = run.workloads.get(cell.workload)
    factors: Factors = {"workload": cell.workload.partition(":")[0]}
    factors |= plain(workload.params if workload else {}) | _arm(run, cell)
    return factors | plain({"machine": cell.node, KERNEL: run.machine.get(KERNEL)})


def _arm(run: Run, cell: Cell) -> Factors:
    """Return the tweak set, or its levels if decomposed; a stock copy counts as stock."""
    name = run.baseline if cell.tweakset == AGAIN else cell.tweakset
    if cell.monitor:
        params = cell.monitor.get("params")
        own = plain(params if isinstance(params, dict) else {}, "monitor.")
        return {"monitor": str(cell.monitor.get("base") or "none")} | own
    point = run.design.points.get(name)
    if not run.design.points or (point is None and name != run.baseline):
        return {"tweakset": name}
    levels = point.levels if point else {}
    return {factor.name: levels.get(factor.name) or FOUND for factor in run.design.factors}


def _of_cell(run: Run, cell: Cell) -> DataRow:
    factors = _factors(run, cell)
    when = f"{run.run_id} block {cell.block if cell.process is None else cell.process}"
    used = {name: cell.usage.get(name) for name in USED_BY_CELLS}
    values = _known(cell.telemetry) | _known(used) | _known(cell.metrics)
    return DataRow(when, factors, values if cell.outcome == "measured" else {}, named(factors))


def _known(values: Mapping[str, object]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _of_stream(run: Run, stream: Stream, group: str) -> Iterator[DataRow]:
    of_stream = _factors(run, next(cell for cell in run.cells if cell.id == stream.name))
    classes = {str(class_.get("name")): _class_factors(class_) for class_ in stream.classes}
    for job in stream.jobs:
        told = {"class": job.class_, **job.used}
        # Use a job's own work, not the requested mean.
        own = {name: told.get(name, getattr(job, name, None)) for name in OWN}
        factors = plain(own) | classes.get(job.class_, {})
        factors |= {name: value for name, value in of_stream.items() if name not in factors}
        moments = {name: getattr(job, name) for name in ("submit_s", "start_s", "end_s")}
        results = {f"result.{name}": value for name, value in job.result.items()}
        values = times_of(moments) | _known(job.used) | results if job.done else {}
        yield DataRow(group, factors, values, named(factors, NO_CONFIGURATION), named(of_stream))


def times_of(row: Mapping[str, object]) -> dict[str, float]:
    """Return the times between a job's known events; a clock that ran backwards gives none."""
    known, times = _known(row), {}
    for name, (begin, end) in TIMES.items():
        if begin in known and end in known:
            took_s = known[end] - known[begin]
            if took_s > 0 or (took_s == 0 and name == "wait_s"):
                times[name] = took_s
    return times


def _class_factors(class_: Mapping[str, object]) -> Factors:
    """Return a class's recorded facts besides its name: kind, and the kind's parameters."""
    params = class_.get("params")
    return plain({"kind": class_.get("kind")}) | plain(params if isinstance(params, dict) else {})


def _of_csv(path: Path) -> RowSource:
    names, lines = csv_file.parse(csv_file.text_of(path), path)
    if not any(names):
        raise Unreadable(f"{path}: line 1: empty; it must have the names of columns.")
    rows = []
    for at, line in enumerate(plain(cells) for _, cells in lines):
        factors = {name: value for name, value in line.items() if name not in PASSED_OVER}
        run = f"{path} {line.get(RUN, f'row {at}')}"
        values = times_of(line) | _known(factors)
        rows.append(DataRow(run, factors, values, str(line.get(CONFIGURATION, ""))))
    measured = {name for row in rows for name in row.values}
    primary = next((name for name in (RESPONSE, *TIMES) if name in measured), RESPONSE)
    return RowSource(str(path), primary, {"rows": rows})
