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
from itertools import pairwise

from analysis.metrics import disagreements, metrics_of
from analysis.plain import moment
from analysis.terms import Cell, Design, Metric, Run, Steps, Study, TweakSet, Workload
from control.names import first_few

from .fields import LONGEST_S, Fault, Fields, Foreign
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
# Saved name → ours. The quartile and the minimum cannot be had from a file without rounds in any other way.
STATISTICS = {"mean": "step_time_mean_s", "median": "step_time_median_s", "q1": "step_time_q1_s", "min": "step_time_min_s"}
SECONDS = frozenset({"s", "sec", "second", "seconds"})
UNIT_FIELDS = ("unit", "units", "time_unit")
# What a reader of another tool's file left out: name → what is wrong with it.
FAULTS = "faults"
# Benchmarks of one name that only their place in such a file tells apart.
BY_PLACE = "by_place"
# Calls per second where the file says how many, as where several were in flight; elsewhere it is 1 / mean.
THROUGHPUT = "told_throughput_per_s"
# And what that file calls the environment it was measured in, which then is the name of the only tweak set.
ARM = "environment"
INDEX = re.compile(r"\[\d+\]")
# A mean of equal numbers may come out a few bits beside them.
SLACK = 1 + 1e-9


def recognises(saved: Mapping[str, object]) -> bool:
    return "benchmarks" in saved and "machine_info" in saved


def from_json(saved: Mapping[str, object], origin: str) -> Run:
    """Read a run from parsed JSON. A benchmark that lacks a statistic, was not timed in seconds, or took no time is left out.

    Raises: Unreadable, for a benchmark that is there twice, and a file of which every benchmark would be left out.
    """
    top = Foreign(saved, origin)
    cells: dict[str, Cell] = {}
    workloads: dict[str, Workload] = {}
    warnings: list[str] = []
    arm = top.optional_text(ARM) or AS_RUN
    faults: dict[str, str] = {name: str(reason) for name, reason in top.optional_mapping(FAULTS).items()}
    for part in top.each("benchmarks"):
        name = sys.intern(part.text("fullname"))
        if name in cells:
            part.refuse(f"is there twice: {name}")
        try:
            cell = _cell(name, len(cells), part, arm)
        except Fault as fault:
            faults.setdefault(name, INDEX.sub("", fault.reason))
            continue
        cells[name] = cell
        workloads[name] = _workload(name, part.optional_text("group") or "")
        warnings += [f"{name}: {line}" for line in cell.contradictions]
    left_out = tuple(f"left out, {name}: it {reason}." for name, reason in faults.items())
    if not cells and left_out:
        top.refuse(f"holds no benchmark with usable times: {first_few(left_out, 3, ' ').rstrip('.')}", "measure these anew")
    if not cells:
        top.refuse("holds no benchmark", "the session measured none: run it again")
    machine = machine_of(top.optional_mapping("machine_info"))
    saved_utc = _utc(top.value.get("datetime"))
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
        by_place=frozenset(top.optional(Fields.texts, BY_PLACE, ())) & cells.keys(),
        format="pytest-benchmark",
        baseline=arm,
        replicated=False,
        commit=commit_of(top),
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


def _cell(name: str, order: int, part: Fields, arm: str) -> Cell:
    stats = part.fields("stats")
    _in_seconds(part, stats)
    reason = _no_times(stats)
    if reason:
        return Cell(name, "pytest-benchmark", name, arm, 1, order, "skipped", reason)
    metrics = {ours: stats.time(theirs) for theirs, ours in STATISTICS.items()}
    least, median, mean = metrics["step_time_min_s"], metrics["step_time_median_s"], metrics["step_time_mean_s"]
    _in_order(stats, [least, metrics["step_time_q1_s"], median], mean)
    facts = {name: stats.whole(name) for name in ("rounds", "iterations") if stats.has(name)}
    steps = None
    contradictions: tuple[str, ...] = ()
    if stats.has("data"):
        steps, computed = _rounds(stats)
        contradictions = tuple(disagreements(metrics, computed))
        if facts.get("rounds", len(steps.wall_s)) != len(steps.wall_s):
            contradictions += (f"the file says rounds = {facts['rounds']}, and holds {len(steps.wall_s)}; those it holds are believed.",)
        metrics |= computed
    else:
        metrics["throughput_samples_per_s"] = stats.positive(THROUGHPUT) if stats.has(THROUGHPUT) else 1 / mean
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


def _in_order(stats: Fields, low: list[float], mean: float) -> None:
    """Refuse statistics that no list of times has. `low` are the minimum, the lower quartile and the median."""
    upper = [stats.time(name) for name in ("q3", "max") if stats.has(name)]
    ordered = [*low, *upper]
    if any(one > next_one * SLACK for one, next_one in pairwise(ordered)):
        stats.refuse("contradicts itself: minimum, quartiles and maximum are not in order")
    if ordered[0] > mean * SLACK or (stats.has("max") and mean > upper[-1] * SLACK):
        stats.refuse("contradicts itself: the mean does not lie between the minimum and the maximum")


def _no_times(stats: Fields) -> str | None:
    """Return why rounds are no times although nothing is wrong: a benchmark may save differences of times, which may be negative."""
    data = stats.value.get("data")
    if not isinstance(data, list) or not data or not all(type(one) is float and abs(one) <= LONGEST_S for one in data) or min(data) >= 0:
        return None
    least, mean = (stats.value.get(name) for name in ("min", "mean"))
    if (
        least != min(data)
        or not isinstance(mean, float)
        or not math.isclose(mean, math.fsum(data) / len(data), rel_tol=1e-9, abs_tol=1e-12)
    ):
        return None
    return f"its rounds are no times but differences of times ({min(data):.3g} to {max(data):.3g} s): no ratio can be taken of them"


def _rounds(stats: Fields) -> tuple[Steps, dict[str, float]]:
    wall_s = stats.times("data")
    if not wall_s:
        stats.refuse("has an empty list of rounds")
    steps = Steps(wall_s, (1,) * len(wall_s), None, None, warmup=0)
    return steps, {**metrics_of(steps), "step_time_min_s": min(wall_s)}


def _in_seconds(part: Fields, stats: Fields) -> None:
    """Refuse times that are no seconds: a clock of nanoseconds, or a unit that another program wrote down."""
    options = part.optional_mapping("options")
    timer = options.get("timer")
    if isinstance(timer, str) and timer.endswith("_ns"):
        part.refuse(f"was timed with {timer}: its statistics are nanoseconds, not seconds", f"measure with {timer.removesuffix('_ns')}")
    for place in (stats.value, options):
        for field in UNIT_FIELDS:
            if field in place and place[field] not in SECONDS:
                part.refuse(f"says {field} = {place[field]!r}, where pytest-benchmark has seconds", "convert it at its source")
