"""Files as a table of responses and factors: cells or jobs of saved runs, and lines of CSV."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.plain import one_line
from analysis.studies.jobs import csv_file
from analysis.studies.jobs.records import Stream, of_one_machine, streams, tells_of_jobs
from analysis.terms import AGAIN, Cell, Refused, Run, Unreadable
from analysis.wording import suggestion
from control.names import first_few

from .tables import FactorTable, Measurement, table

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
OF_JOB = ("priority", "tenant", "replicas", "work", "submit_s", "start_s", "end_s")
OWN = ("class", "priority", "tenant", "replicas", "cores", "memory_mib", "work")
# A job's size, arrival and priority. Jobs that differ in nothing else share a configuration.
NO_CONFIGURATION = frozenset(
    {"work", "priority", "tenant", "policy", "arrivals", "rate_per_s", "burst", "burst_s"}
)
NO_CONFIGURATION |= {"jobs", "trace", "retries", "patience_s"}
PASSED_OVER = frozenset(
    {"job", "submit_s", "admit_s", "start_s", "end_s", "outcome", "reason", "node", "due_s"}
)
PASSED_OVER |= {"predicted_s", "planned_submit_s"}


@dataclass(frozen=True, slots=True)
class DataRow:
    """A cell, a job or a line: its factors, and every number that could be predicted.

    `run` names what happened at the same time. `configuration` is the request, unless the factors
    determine it, and `stream` that of the job's whole stream. `reasons` are the reasons for missing
    numbers, `reason` that for all others.
    """

    run: str
    factors: Factors
    values: Mapping[str, float]
    configuration: str = ""
    stream: str = ""
    reasons: Mapping[str, object] = field(default_factory=dict)
    reason: str = "not recorded"


@dataclass(frozen=True, slots=True)
class RowSource:
    """The rows of one file; `primary` is the default response."""

    origin: str
    noun: str
    primary: str
    rows: Sequence[DataRow]

    def has(self, response: str) -> bool:
        return any(response in row.values for row in self.rows)


def read(names: Sequence[str], response: str | None, without: Sequence[str] = ()) -> FactorTable:
    """Read all named files into one table; models do not see the factors in `without`.

    The default response is the service time of jobs, the primary metric of other runs, `time_s` of
    CSV.
    Raises: Refused, for an unknown response or factor, with the available ones, and for different
    machines.
    """
    rows, wanted, notes = rows_of(names, response)
    factors = list(dict.fromkeys(name for row in rows for name in row.factors))
    for name in without:
        if name not in factors:
            raise Refused(
                f"{one_line(name)}: not a factor of these rows. "
                f"{_listed(name, factors, 'Factors:')}"
            )
    kept = [
        replace(
            row, factors={name: value for name, value in row.factors.items() if name not in without}
        )
        for row in rows
    ]
    return table(kept, wanted, notes)


def rows_of(names: Sequence[str], response: str | None) -> tuple[list[Measurement], str, list[str]]:
    """Return all measurements of a response, its name, and the unusable ones."""
    notes: list[str] = []
    files = [*_of_runs([name for name in names if not name.endswith(".csv")], notes)]
    files += [[_of_csv(Path(name))] for name in names if name.endswith(".csv")]
    known = list(
        dict.fromkeys(
            name
            for sources in files
            for source in sources
            for row in source.rows
            for name in row.values
        )
    )
    if not known:
        reason = f"{', '.join(map(one_line, names))}: no measurement can be predicted."
        raise Refused(notes[0] if notes else reason)
    primaries = [source.primary for sources in files for source in sources]
    wanted = response or (SERVICE if SERVICE in primaries else primaries[0])
    rows = [row for sources in files for row in _measured(sources, wanted, notes)]
    if wanted not in known:
        reasons = [note for note in notes if not note.endswith(": not recorded.")]
        there = _listed(wanted, known, "Available:")
        raise Refused(" ".join([f"{one_line(wanted)}: was not measured. {there}", *reasons[:3]]))
    return rows, wanted, notes


def _measured(
    sources: Sequence[RowSource], response: str, notes: list[str]
) -> Iterator[Measurement]:
    source = next((source for source in sources if source.has(response)), sources[-1])
    missing = [
        str(row.reasons.get(response) or row.reason)
        for row in source.rows
        if response not in row.values
    ]
    if missing:
        shown = "; ".join(one_line(reason, 200) for reason in sorted(set(missing))[:3])
        count = f"{len(missing)} of {len(source.rows)} {source.noun}"
        notes.append(f"{source.origin}: {count} have no {response}: {shown}.")
    for row in source.rows:
        if response in row.values:
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


def _of_runs(names: Sequence[str], notes: list[str]) -> Iterator[list[RowSource]]:
    # Two machines confound all their differences, and no held-out group represents a third.
    runs = [*of_one_machine(load_each(names, notes), notes)]
    jobs = [streams(run, notes, copies=True) if tells_of_jobs(run) else [] for run in runs]
    groups = _sharing(chain.from_iterable(jobs))
    for run, every in zip(runs, jobs, strict=True):
        sources = [
            RowSource(
                run.origin, "cells", _primary(run), [_of_cell(run, cell) for cell in run.cells]
            )
        ]
        if tells_of_jobs(run):
            rows = [row for one in every for row in _of_stream(run, one, groups[one.drawn[0]])]
            sources.insert(0, RowSource(run.origin, "jobs", SERVICE, rows))
        yield sources


def _sharing(every: Iterable[Stream]) -> dict[Hashable, str]:
    groups: dict[Hashable, str] = {}
    for one in every:
        known = {groups[key] for key in one.drawn if key in groups}
        first = min(known, default=f"{one.unit[0]} {one.name}")
        if len(known) > 1:
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
    if cell.outcome != "measured":
        return DataRow(when, factors, {}, named(factors), reason=cell.outcome)
    used = {name: cell.usage.get(name) for name in USED_BY_CELLS}
    unused = cell.usage.get("missing")
    reasons = {**cell.telemetry_missing, **(unused if isinstance(unused, dict) else {})}
    return DataRow(
        when,
        factors,
        _known(cell.telemetry) | _known(used) | _known(cell.metrics),
        named(factors),
        reasons=reasons,
    )


def _known(values: Mapping[str, object]) -> dict[str, float]:
    return {
        name: number for name, value in values.items() if (number := _number(value)) is not None
    }


def _number(value: object) -> float | None:
    is_number = (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    )
    return float(value) if is_number else None  # type: ignore[arg-type]  # a number


def _of_stream(run: Run, stream: Stream, group: str) -> Iterator[DataRow]:
    of_stream = _factors(run, next(cell for cell in run.cells if cell.id == stream.name))
    classes = {str(class_.get("name")): _class_factors(class_) for class_ in stream.classes}
    for job in stream.jobs:
        row = {"class": job.class_, **{name: getattr(job, name) for name in OF_JOB}, **job.used}
        # Use a job's own work, not the requested mean.
        factors = plain({name: row.get(name) for name in OWN}) | classes.get(job.class_, {})
        factors |= {name: value for name, value in of_stream.items() if name not in factors}
        results = {f"result.{name}": value for name, value in job.result.items()}
        yield DataRow(
            group,
            factors,
            times_of(row) | _known(job.used) | _known(results) if job.done else {},
            configuration=named(factors, NO_CONFIGURATION),
            stream=named(of_stream),
            reason="not recorded, or a clock that went backwards" if job.done else job.outcome,
        )


def times_of(row: Mapping[str, object]) -> dict[str, float]:
    """Return the times between a job's known events; a clock that ran backwards gives none."""
    times = {}
    for name, pair in TIMES.items():
        begin, end = (_number(row.get(moment)) for moment in pair)
        if (
            begin is not None
            and end is not None
            and (end > begin or (end == begin and name == "wait_s"))
        ):
            times[name] = end - begin
    return times


def _class_factors(class_: Mapping[str, object]) -> Factors:
    params = class_.get("params")
    return plain({"kind": class_.get("kind")}) | plain(params if isinstance(params, dict) else {})


def _of_csv(path: Path) -> RowSource:
    names, lines = csv_file.parse(csv_file.text_of(path), path)
    if not any(names):
        raise Unreadable(f"{path}: line 1: empty; it must have the names of columns.")
    rows = []
    for at, line in enumerate(plain(cells) for _, cells in lines):
        factors = {
            name: value
            for name, value in line.items()
            if name not in PASSED_OVER | {CONFIGURATION, RUN}
        }
        run = f"{path} {line.get(RUN, f'row {at}')}"
        rows.append(
            DataRow(
                run, factors, times_of(line) | _known(factors), str(line.get(CONFIGURATION, ""))
            )
        )
    primary = next(
        (name for name in (RESPONSE, *TIMES) if any(name in row.values for row in rows)), RESPONSE
    )
    return RowSource(str(path), "rows", primary, rows)
