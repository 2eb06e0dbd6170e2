"""Files that stock pytest-benchmark saved (4 and later; 3 looks the same): one benchmark is one cell, one file is one run.

A sample is one call of the benchmarked function, and all times are seconds a call. Where the rounds were kept (`--benchmark-json`,
`--benchmark-save-data`), a step is a round: the mean of its calls. Source: pytest_benchmark/stats.py, 3.0.0 to 5.3.1. Many files are read
at once (a history), so what is the same in all of them is made once.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from analysis.metrics import disagreements, metrics_of
from analysis.plain import moment
from analysis.terms import Cell, Design, Metric, Run, Steps, Study, TweakSet, Workload
from control.names import first_few
from control.saved import LONGEST_S, Count, Positive, Seconds

from .checked import FOREIGN, Fault, Part
from .saved_run import commit_of

AS_RUN = "as-run"
AS_IT_WAS = "the machine as it was: such a file does not say what was tweaked"
STUDIES = {
    "pytest-benchmark": Study(
        name="pytest-benchmark",
        question="How long does one call take?",
        margin=0.03,
        blocks=1,
        primary=Metric("throughput_samples_per_s", "higher"),
    )
}
SECONDS = ("s", "sec", "second", "seconds")
UNIT_FIELDS = ("unit", "units", "time_unit")
INDEX = re.compile(r"\[\d+\]")
# A mean of equal numbers may come out a few bits beside them.
SLACK = 1 + 1e-9


class Named(Struct):
    """A benchmark as far as every one must be as it should be."""

    fullname: str
    group: str | None = None


class File(Struct):
    """Such a file, with what a reader of another tool's file adds.

    `environment` is what that file calls the environment it was measured in, which then is the name of the only tweak set. `faults`: what
    that reader left out, by name, and why. `by_place`: benchmarks of one name that only their place in the file tells apart.
    """

    benchmarks: list[Named]
    machine_info: dict[str, Any] | None = None
    environment: str | None = None
    faults: dict[str, str] = {}
    by_place: frozenset[str] = frozenset()


class Stats(Struct):
    """Statistics of a benchmark in seconds per call, by the names that pytest-benchmark gives them, and the rounds where they were kept.

    `told_throughput_per_s`: calls per second where the file says how many, as where several were in flight; elsewhere it is 1 / mean.
    """

    min: Seconds
    q1: Seconds
    median: Seconds
    mean: Seconds
    q3: Seconds | None = None
    max: Seconds | None = None
    rounds: Count | None = None
    iterations: Count | None = None
    data: tuple[Seconds, ...] | None = None
    told_throughput_per_s: Positive | None = None


class Benchmark(Struct):
    stats: Stats
    options: dict[str, Any] | None = None


def recognises(saved: Mapping[str, object]) -> bool:
    return "benchmarks" in saved and "machine_info" in saved


def from_json(saved: Mapping[str, Any], origin: str) -> Run:
    """Read a run from parsed JSON. A benchmark that lacks a statistic, was not timed in seconds, or took no time is left out.

    Raises: Unreadable, for a benchmark that is there twice, and a file of which every benchmark would be left out.
    """
    top = Part(saved, origin, remedy=FOREIGN)
    file = top.read(File)
    cells: dict[str, Cell] = {}
    workloads: dict[str, Workload] = {}
    warnings: list[str] = []
    arm = file.environment or AS_RUN
    faults = dict(file.faults)
    for named, part in zip(file.benchmarks, top.at("benchmarks").each(), strict=True):
        name = sys.intern(named.fullname)
        if name in cells:
            part.refuse(f"is there twice: {name}")
        try:
            cell = _cell(name, len(cells), part, arm)
        except Fault as fault:
            faults.setdefault(name, INDEX.sub("", fault.reason))
            continue
        cells[name] = cell
        workloads[name] = _workload(name, named.group or "")
        warnings += [f"{name}: {line}" for line in cell.contradictions]
    left_out = tuple(f"left out, {name}: it {reason}." for name, reason in faults.items())
    if not cells and left_out:
        top.refuse(f"holds no benchmark with usable times: {first_few(left_out, 3, ' ').rstrip('.')}", "measure these anew")
    if not cells:
        top.refuse("holds no benchmark", "the session measured none: run it again")
    machine = machine_of(file.machine_info or {})
    saved_utc = _utc(saved.get("datetime"))
    if not saved_utc:
        warnings.append("the file does not say when it was saved: its place among other runs is not known.")
    return Run(
        origin=origin,
        run_id=_run_id(machine, saved_utc, cells.values()) or origin,
        started_utc=saved_utc,
        interrupted=False,
        studies=STUDIES,
        workloads=workloads,
        tweaksets={arm: TweakSet(arm, description=AS_IT_WAS)},
        cells=tuple(cells.values()),
        machine=machine,
        design=Design(seed=0, blocks=1, steps=None, order=tuple(cells)),
        warnings=(*left_out, *warnings),
        left_out=left_out,
        by_place=file.by_place & cells.keys(),
        format="pytest-benchmark",
        baseline=arm,
        replicated=False,
        commit=commit_of(saved.get("commit_info")),
    )


def _run_id(machine: Mapping[str, object], saved_utc: str, cells: Iterable[Cell]) -> str | None:
    """Name a run by host and time, and by what it measured where the time is known to the second alone: two runs fit into one."""
    if not saved_utc:
        return None
    name = f"{machine.get('hostname', 'unknown')}-{saved_utc}"
    if "." in saved_utc:
        return name
    figures = [(cell.workload, cell.tweakset, sorted(cell.metrics.items())) for cell in cells]
    return f"{name}-{hashlib.sha256(repr(figures).encode()).hexdigest()[:8]}"


def machine_of(info: Mapping[str, object]) -> dict[str, object]:
    cpu = info.get("cpu")
    cpu = cpu if isinstance(cpu, dict) else {}
    texts = {
        "hostname": info.get("node"),
        "kernel_release": info.get("release"),
        "cpu_model": cpu.get("brand_raw") or cpu.get("brand"),  # cpuinfo 6 renamed it
        "python_version": info.get("python_version"),
    }
    facts: dict[str, object] = {name: value for name, value in texts.items() if isinstance(value, str) and value}
    count = cpu.get("count")
    return facts | {"cpu_count": count} if isinstance(count, int) and count > 0 else facts


def _utc(text: object) -> str:
    """Return a time as ISO 8601 in UTC; versions before 5 wrote UTC without saying so. Empty where there is none."""
    stamp = moment(text)
    return stamp.isoformat() if stamp else ""


@cache
def _workload(name: str, group: str) -> Workload:
    return Workload(name, description=group)


def _cell(name: str, order: int, part: Part, arm: str) -> Cell:
    _in_seconds(part)
    reason = _no_times(part.value.get("stats"))
    if reason:
        return Cell(name, "pytest-benchmark", name, arm, 1, order, "skipped", reason)
    stats = part.read(Benchmark).stats
    _in_order(part, stats)
    # The quartile and the minimum cannot be had from a file without rounds in any other way.
    metrics = {
        "step_time_mean_s": stats.mean,
        "step_time_median_s": stats.median,
        "step_time_q1_s": stats.q1,
        "step_time_min_s": stats.min,
    }
    facts = {"rounds": stats.rounds, "iterations": stats.iterations}
    facts = {name: count for name, count in facts.items() if count is not None}
    steps = None
    contradictions: tuple[str, ...] = ()
    if stats.data is None:
        metrics["throughput_samples_per_s"] = stats.told_throughput_per_s or 1 / stats.mean
    elif not stats.data:
        part.refuse("has an empty list of rounds")
    else:
        rounds = len(stats.data)
        steps = Steps(stats.data, (1,) * rounds, None, None, warmup=0)
        computed = {**metrics_of(steps), "step_time_min_s": min(stats.data)}
        contradictions = tuple(disagreements(metrics, computed))
        if stats.rounds not in (None, rounds):
            contradictions += (f"the file says rounds = {stats.rounds}, and holds {rounds}; those it holds are believed.",)
        metrics |= computed
    return Cell(
        id=name,
        study="pytest-benchmark",
        workload=name,
        tweakset=arm,
        block=1,
        order=order,
        outcome="measured",
        steps=steps,
        metrics=metrics,
        facts=facts,
        contradictions=contradictions,
    )


def _in_order(part: Part, stats: Stats) -> None:
    """Refuse statistics that no list of times has."""
    third = stats.median if stats.q3 is None else stats.q3
    most = max(third, stats.mean) if stats.max is None else stats.max
    if stats.min > stats.q1 * SLACK or stats.q1 > stats.median * SLACK or stats.median > third * SLACK or third > most * SLACK:
        part.refuse("contradicts itself: minimum, quartiles and maximum are not in order")
    if stats.min > stats.mean * SLACK or stats.mean > most * SLACK:
        part.refuse("contradicts itself: the mean does not lie between the minimum and the maximum")


def _no_times(stats: Any) -> str | None:
    """Return why rounds are no times although nothing is wrong: a benchmark may save differences of times, which may be negative."""
    data = stats.get("data") if isinstance(stats, dict) else None
    if not isinstance(data, list) or not data or not all(type(one) is float and abs(one) <= LONGEST_S for one in data) or min(data) >= 0:
        return None
    mean = stats.get("mean")
    consistent = isinstance(mean, float) and math.isclose(mean, math.fsum(data) / len(data), rel_tol=1e-9, abs_tol=1e-12)
    if not consistent or stats.get("min") != min(data):
        return None
    return f"its rounds are no times but differences of times ({min(data):.3g} to {max(data):.3g} s): no ratio can be taken of them"


def _in_seconds(part: Part) -> None:
    """Refuse times that are no seconds: a clock of nanoseconds, or a unit that another program wrote down."""
    options, stats = part.value.get("options"), part.value.get("stats")
    timer = options.get("timer") if isinstance(options, dict) else None
    if isinstance(timer, str) and timer.endswith("_ns"):
        part.refuse(f"was timed with {timer}: its statistics are nanoseconds, not seconds", f"measure with {timer.removesuffix('_ns')}")
    for place in (stats, options):
        if not isinstance(place, dict):
            continue
        for field in UNIT_FIELDS:
            if field in place and place[field] not in SECONDS:
                part.refuse(f"says {field} = {place[field]!r}, where pytest-benchmark has seconds", "convert it at its source")
