"""Rows out of streams of jobs: one a job that was done, under the factors of its stream, its class and itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import factors
from .terms import Row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Cell, Run

ROWS, STREAM, RESULT = "job", "stream", "result."
SERVICE = "service_s"
TIMES = {SERVICE: ("start_s", "end_s"), "response_s": ("submit_s", "end_s"), "wait_s": ("submit_s", "start_s")}
USED = ("cpu_s", "max_rss_mib", "memory_peak_mib", "throttled_s")
OF_STREAM = frozenset({"response_s", "wait_s"})  # made by the whole stream: its conditions are the configuration, not the job's class
OWN = ("class", "priority", "tenant", "replicas", "cores", "memory_mib", "work")
# Not what a job is, but how large it was drawn, when it came and who went first: jobs that differ in these alone are of one configuration.
NO_CONFIGURATION = frozenset(
    {"work", "priority", "tenant", "policy", "arrivals", "rate_per_s", "burst", "burst_s", "jobs", "trace", "retries", "patience_s"}
)


def tells_of_jobs(run: Run) -> bool:
    """Whether any cell told of jobs."""
    return any(cell.report.get(ROWS) for cell in run.cells)


def responses(run: Run) -> list[str]:
    """Name what can be predicted of jobs: times, what they used, and the numbers of their results."""
    results: dict[str, None] = {}
    for cell in run.cells:
        for row in cell.report.get(ROWS, ()):
            results |= dict.fromkeys(_results(row))
    return [*TIMES, *USED, *results]


def rows(run: Run, response: str, left_out: list[str]) -> list[Row]:
    """Read every job that was done and tells the response; of the others how many, in `left_out`."""
    found = []
    for cell in run.cells:
        jobs = cell.report.get(ROWS, ())
        own = factors.of_cell(run, cell)
        classes = _classes(cell)
        made = [_row(row, own, classes, response, f"{run.run_id} {cell.id}") for row in jobs if row.get("outcome") == "done"]
        known = [row for row in made if row is not None]
        found += known
        if len(known) < len(jobs):
            left_out.append(f"{run.origin}: {cell.id}: {len(jobs) - len(known)} of {len(jobs)} jobs were not done, or tell no {response}.")
    return found


def value(row: Mapping[str, object], response: str) -> float | None:
    """Answer a response of one job; None where it is not told, or a clock went backwards."""
    if response in TIMES:
        begin, end = (row.get(name) for name in TIMES[response])
        taken = _number(end) - _number(begin)
        return taken if taken >= 0 and (taken > 0 or response == "wait_s") else None
    said = row.get(response)
    if response.startswith(RESULT):
        said = _results(row).get(response)
    found = _number(said)
    return None if math.isnan(found) else found


def _row(
    row: Mapping[str, object], stream: Mapping[str, float | str], classes: Mapping[str, Mapping[str, float | str]], response: str, run: str
) -> Row | None:
    taken = value(row, response)
    if taken is None:
        return None
    own = {**factors.plain({name: row.get(name) for name in OWN}), **classes.get(str(row.get("class")), {})}
    own |= {name: one for name, one in stream.items() if name not in own}  # a job's own work stands, not the mean that was asked for
    configuration = factors.named(stream) if response in OF_STREAM else factors.named(own, NO_CONFIGURATION)
    return Row(configuration, run, own, taken)


def _classes(cell: Cell) -> dict[str, dict[str, float | str]]:
    """What the stream says of each class beside its name: its kind, and the kind's own parameters."""
    told = cell.report.get(STREAM, ())
    listed = told[0].get("classes") if told else None
    made: dict[str, dict[str, float | str]] = {}
    for one in listed if isinstance(listed, list | tuple) else ():
        if isinstance(one, dict):
            params = one.get("params")
            made[str(one.get("name"))] = factors.plain({"kind": one.get("kind")}) | factors.plain(
                params if isinstance(params, dict) else {}
            )
    return made


def _results(row: Mapping[str, object]) -> dict[str, object]:
    result = row.get("result")
    return {f"{RESULT}{name}": value for name, value in result.items()} if isinstance(result, dict) else {}


def _number(said: object) -> float:
    return float(said) if isinstance(said, int | float) and not isinstance(said, bool) and math.isfinite(said) else math.nan


def streams_of(runs: Sequence[Run]) -> list[Mapping[str, object]]:
    """Answer the rows that tell of a stream, of all cells of runs."""
    return [cell.report[STREAM][0] for run in runs for cell in run.cells if cell.report.get(STREAM)]
