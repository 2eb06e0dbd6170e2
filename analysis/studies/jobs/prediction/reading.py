"""Named files → one table of what is to be predicted: saved runs by their cells or jobs, and CSV."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.load import load_each
from analysis.plain import one_line
from analysis.studies.jobs import csv_file
from analysis.studies.jobs.records import Job, Stream, of_one_machine, streams, tells_of_jobs
from analysis.terms import AGAIN, Cell, Refused, Run, Unreadable
from control.names import first_few

from .tables import FactorTable, Measurement, table

if TYPE_CHECKING:
    Factors = dict[str, float | str]
    Runs = Sequence[tuple[Run, Sequence[Stream]]]  # with their streams of jobs

SHOWN = 24  # names in one sentence
KERNEL = "kernel_release"  # of one machine nothing else changes from run to run
FOUND = "as found"
CONFIGURATION, RUN = "configuration", "run"  # columns of CSV
RESPONSE = "time_s"
RESULT = "result."
SERVICE = "service_s"
TIMES = {SERVICE: ("start_s", "end_s"), "response_s": ("submit_s", "end_s"), "wait_s": ("submit_s", "start_s")}
USED_BY_CELLS = ("cpu_s", "wall_s", "energy_j", "peak_rss_bytes")
USED_BY_JOBS = ("cpu_s", "max_rss_mib", "memory_peak_mib", "throttled_s")
OF_STREAM = frozenset({"response_s", "wait_s"})  # made by the whole stream: its conditions are the configuration, not the job's class
OWN = ("class", "priority", "tenant", "replicas", "cores", "memory_mib", "work")
# Not what a job is, but how large it was drawn, when it came and who went first: jobs that differ in these alone are of one configuration.
NO_CONFIGURATION = frozenset(
    {"work", "priority", "tenant", "policy", "arrivals", "rate_per_s", "burst", "burst_s", "jobs", "trace", "retries", "patience_s"}
)
PASSED_OVER = frozenset(
    {"job", "submit_s", "admit_s", "start_s", "end_s", "outcome", "reason", "node", "due_s", "predicted_s", "planned_submit_s"}
)


def read(names: Sequence[str], response: str | None, without: Sequence[str] = ()) -> FactorTable:
    """Read all that is named. `without` are factors that models must not see.

    The default response is the service time of jobs, the primary metric of other runs, `time_s` of CSV.
    Raises: Refused, for a response or a factor that is nowhere, with what there is, and for runs of different machines.
    """
    notes: list[str] = []
    runs, files = _opened(names, notes)
    wanted = response or _default(runs, _responses(runs, files))
    rows = _rows(names, runs, files, wanted, notes)
    factors = list(dict.fromkeys(name for row in rows for name in row.factors))
    for name in without:
        if name not in factors:
            raise Refused(f"{one_line(name)}: is no factor of these rows. {_listed(name, factors, 'Factors are')}")
    kept = [replace(row, factors={name: value for name, value in row.factors.items() if name not in without}) for row in rows]
    return table(kept, wanted, notes)


def rows_of(names: Sequence[str], response: str) -> tuple[list[Measurement], list[str]]:
    notes: list[str] = []
    return _rows(names, *_opened(names, notes), response, notes), notes


def _opened(names: Sequence[str], notes: list[str]) -> tuple[Runs, list[Path]]:
    # Two machines are two levels of all that they differ in: what a third would do, no group that is left out can say.
    runs = of_one_machine(load_each([name for name in names if not name.endswith(".csv")], notes), notes)
    with_streams = [(run, streams(run, notes) if tells_of_jobs(run) else []) for run in runs]
    return with_streams, [Path(name) for name in names if name.endswith(".csv")]


def _rows(names: Sequence[str], runs: Runs, files: Sequence[Path], response: str, notes: list[str]) -> list[Measurement]:
    known = _responses(runs, files)
    if not known:
        raise Refused(notes[0] if notes else f"{', '.join(map(one_line, names))}: nothing was measured that could be predicted.")
    if response not in known:
        raise Refused(f"{one_line(response)}: was not measured. {_listed(response, known, 'Measured were')}")
    rows: list[Measurement] = []
    for run, of_run in runs:
        rows += job_rows(run, of_run, response, notes) if response in job_responses(of_run) else cell_rows(run, response, notes)
    for path in files:
        rows += csv_rows(path, response, notes)
    if not rows:
        raise Refused(f"{response}: no row has it. {' '.join(notes[:3])}")
    return rows


def _responses(runs: Runs, files: Sequence[Path]) -> list[str]:
    names = [name for run, of_run in runs for name in (*job_responses(of_run), *cell_responses(run))]
    return list(dict.fromkeys([*names, *(name for path in files for name in csv_responses(read_csv(path)[0]))]))


def job_responses(streams: Sequence[Stream]) -> list[str]:
    """Return what can be predicted of jobs: times, what they used, and the numbers of their results; nothing where there is no job."""
    results = dict.fromkeys(f"{RESULT}{name}" for stream in streams for job in stream.jobs for name in job.result)
    return [*TIMES, *USED_BY_JOBS, *results] if streams else []


def cell_responses(run: Run) -> list[str]:
    used = ([*cell.metrics, *(name for name in USED_BY_CELLS if name in cell.usage), *cell.telemetry] for cell in run.cells)
    return list(dict.fromkeys(name for of_cell in used for name in of_cell))


def csv_responses(names: list[str]) -> list[str]:
    between = [name for name, pair in TIMES.items() if set(pair) <= set(names)]
    return between + [name for name in names if name not in PASSED_OVER | {CONFIGURATION, RUN}]


def _default(runs: Runs, known: Sequence[str]) -> str:
    if any(of_run for _, of_run in runs):
        return SERVICE
    for run, _ in runs[:1]:
        for cell in run.cells:
            workload = run.workloads.get(cell.workload)
            own = None if workload is None else workload.primary
            return (own or run.studies[cell.study].primary).name
        return "step_time_mean_s"
    return next((name for name in (RESPONSE, *TIMES) if name in known), RESPONSE)


def _listed(word: str, known: Sequence[str], begin: str) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"{begin} {first_few([*map(one_line, known)], SHOWN)}." + (f" Did you mean {near[0]!r}?" if near else "")


def plain(values: Mapping[str, object], before: str = "") -> Factors:
    """Keep what is a number or a text; a text that is a number is one, and yes and no are names."""
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


def named(factors: Mapping[str, float | str], without: frozenset[str] = frozenset()) -> str:
    kept = sorted((name, value) for name, value in factors.items() if name not in without)
    return " ".join(f"{name}={value}" if isinstance(value, str) else f"{name}={value:g}" for name, value in kept)


def factors_of_cell(run: Run, cell: Cell) -> Factors:
    """Return the factors of a cell. Parameters that are lists or objects are none: what they say, the workload's name says."""
    workload = run.workloads.get(cell.workload)
    factors: Factors = {"workload": cell.workload.partition(":")[0]}
    factors |= plain(workload.params if workload else {}) | _arm(run, cell)
    return factors | plain({"machine": cell.node, KERNEL: run.machine.get(KERNEL)})


def _arm(run: Run, cell: Cell) -> Factors:
    """The tweak set by name, or its levels where a design took it apart; a copy of the untouched machine is the untouched machine."""
    name = run.baseline if cell.tweakset == AGAIN else cell.tweakset
    if cell.monitor:
        params = cell.monitor.get("params")
        return {"monitor": str(cell.monitor.get("base") or "none")} | plain(params if isinstance(params, dict) else {}, "monitor.")
    point = run.design.points.get(name)
    if not run.design.points or (point is None and name != run.baseline):
        return {"tweakset": name}
    levels = point.levels if point else {}
    return {factor.name: FOUND if (level := levels.get(factor.name)) is None else level for factor in run.design.factors}


def cell_rows(run: Run, response: str, left_out: list[str]) -> list[Measurement]:
    rows, reasons = [], []
    for cell in run.cells:
        used = cell.usage.get(response) if response in USED_BY_CELLS else None
        values = (_number(value) for value in (cell.metrics.get(response), used, cell.telemetry.get(response)))
        value = next((value for value in values if value is not None), None)
        if cell.outcome != "measured" or value is None:
            reasons.append(_missing_reason(cell, response))
            continue
        own = factors_of_cell(run, cell)
        when = cell.block if cell.process is None else cell.process
        rows.append(Measurement(named(own), f"{run.run_id} block {when}", own, value))
    if reasons:
        shown = "; ".join(sorted(set(reasons))[:3])
        left_out.append(f"{run.origin}: {len(reasons)} of {len(run.cells)} cells have no {response}: {shown}.")
    return rows


def _missing_reason(cell: Cell, response: str) -> str:
    if cell.outcome != "measured":
        return cell.outcome
    missing = cell.usage.get("missing")
    reason = missing.get(response) if isinstance(missing, dict) else None
    return one_line(reason or cell.telemetry_missing.get(response) or "not recorded", 200)


def job_rows(run: Run, streams: Sequence[Stream], response: str, left_out: list[str]) -> list[Measurement]:
    cells = {cell.id: cell for cell in run.cells}
    rows: list[Measurement] = []
    for stream in streams:
        of_stream = factors_of_cell(run, cells[stream.name])
        classes = {str(class_.get("name")): _class_factors(class_) for class_ in stream.classes}
        values = [(job, row, value_of(row, response)) for job in stream.jobs if job.done for row in [_row(job)]]
        known = [(job, row, value) for job, row, value in values if value is not None]
        for job, row, value in known:
            # A job's own work stands, not the mean that was asked for.
            own = plain({name: row.get(name) for name in OWN}) | classes.get(job.class_, {})
            own |= {name: factor for name, factor in of_stream.items() if name not in own}
            configuration = named(of_stream) if response in OF_STREAM else named(own, NO_CONFIGURATION)
            rows.append(Measurement(configuration, f"{run.run_id} {stream.name}", own, value))
        if missing := len(stream.jobs) - len(known):
            left_out.append(f"{run.origin}: {stream.name}: {missing} of {len(stream.jobs)} jobs were not done, or have no {response}.")
    return rows


def _row(job: Job) -> dict[str, object]:
    results = {f"{RESULT}{name}": value for name, value in job.result.items()}
    own = {name: getattr(job, name) for name in ("priority", "tenant", "replicas", "work", "submit_s", "start_s", "end_s")}
    return {"class": job.class_, **own, **job.used, **results}


def value_of(row: Mapping[str, object], response: str) -> float | None:
    """Return a response of one job; None where it is not known, or a clock went backwards."""
    if response in TIMES:
        begin, end = (_number(row.get(name)) for name in TIMES[response])
        taken = math.nan if begin is None or end is None else end - begin
        return taken if taken >= 0 and (taken > 0 or response == "wait_s") else None
    return _number(row.get(response))


def _class_factors(class_: Mapping[str, object]) -> Factors:
    """What the stream records of a class beside its name: its kind, and the kind's own parameters."""
    params = class_.get("params")
    return plain({"kind": class_.get("kind")}) | plain(params if isinstance(params, dict) else {})


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def read_csv(path: Path) -> tuple[list[str], list[Factors]]:
    names, lines = csv_file.parse(csv_file.text_of(path), path)
    if not any(names):
        raise Unreadable(f"{path}: line 1: nothing; the names of columns belong there.")
    return names, [plain(row) for _, row in lines]


def csv_rows(path: Path, response: str, left_out: list[str]) -> list[Measurement]:
    _, lines = read_csv(path)
    rows = []
    for at, line in enumerate(lines):
        value = value_of(line, response)
        if value is not None:
            factors = {name: level for name, level in line.items() if name not in PASSED_OVER | {response, CONFIGURATION, RUN}}
            configuration = line.get(CONFIGURATION, named(factors, NO_CONFIGURATION))
            rows.append(Measurement(str(configuration), f"{path} {line.get(RUN, f'row {at}')}", factors, value))
    if len(rows) < len(lines):
        left_out.append(f"{path}: {len(lines) - len(rows)} of {len(lines)} rows have no {response}.")
    return rows
