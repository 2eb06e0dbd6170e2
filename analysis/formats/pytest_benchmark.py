"""Files of stock pytest-benchmark (3 and later): a benchmark is a cell, a file a run.

A sample is one call, and all times are seconds per call. If the rounds were kept, a step is a
round. Source: pytest_benchmark/stats.py, 3.0.0 to 5.3.1.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from msgspec import Struct

from analysis.metrics import disagreements, metrics_of
from analysis.plain import moment
from analysis.terms import (
    Cell,
    Design,
    Metric,
    Run,
    SavedStudy,
    SavedTweakSet,
    SavedWorkload,
    Steps,
)
from control.names import cpu_name, first_few
from control.saved import LONGEST_S, Count, Positive, Seconds

from .checked import FOREIGN, InvalidField, Part
from .saved_run import commit_of

AS_RUN = "as-run"
AS_IT_WAS = "the machine as it was: such a file does not record tweaks"
STUDIES = {
    "pytest-benchmark": SavedStudy(
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
# The mean of equal numbers may differ from them by a few bits.
SLACK = 1 + 1e-9


class Named(Struct):
    fullname: str
    group: str | None = None


class BenchmarkFile(Struct):
    """A pytest-benchmark file, with additions by readers of other tools' files.

    `environment` names the only tweak set; `by_place`: only their place in the file tells these
    apart.
    """

    benchmarks: list[Named]
    machine_info: dict[str, Any] | None = None
    environment: str | None = None
    faults: dict[str, str] = {}
    by_place: frozenset[str] = frozenset()


class Stats(Struct):
    """Statistics of a benchmark in seconds per call; `told_throughput_per_s`: else 1 / mean."""

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
    """Read a run from parsed JSON; omit benchmarks without usable statistics in seconds.

    Raises: Unreadable, for a repeated benchmark, and for a file without any usable benchmark.
    """
    top = Part(saved, origin, remedy=FOREIGN)
    file = top.read(BenchmarkFile)
    cells: dict[str, Cell] = {}
    workloads: dict[str, SavedWorkload] = {}
    warnings: list[str] = []
    arm = file.environment or AS_RUN
    faults = dict(file.faults)
    for named, part in zip(file.benchmarks, top.at("benchmarks").each(), strict=True):
        name = sys.intern(named.fullname)
        if name in cells:
            part.refuse(f"is repeated: {name}")
        try:
            cell = _cell(name, len(cells), part, arm)
        except InvalidField as fault:
            faults.setdefault(name, INDEX.sub("", fault.reason))
            continue
        cells[name] = cell
        workloads[name] = _workload(name, named.group or "")
        warnings += [f"{name}: {line}" for line in cell.contradictions]
    left_out = tuple(f"left out, {name}: it {reason}." for name, reason in faults.items())
    if not cells and left_out:
        top.refuse(
            f"contains no benchmark with usable times: {first_few(left_out, 3, ' ').rstrip('.')}",
            "measure these again",
        )
    if not cells:
        top.refuse("contains no benchmark", "the session measured none: run it again")
    machine = machine_of(file.machine_info or {})
    stamp = moment(saved.get("datetime"))  # before version 5, UTC is implicit
    saved_utc = stamp.isoformat() if stamp else ""
    if not saved_utc:
        warnings.append(
            "the file does not record when it was saved: its order among other runs is unknown."
        )
    return Run(
        origin=origin,
        run_id=_run_id(machine, saved_utc, cells.values()) or origin,
        started_utc=saved_utc,
        interrupted=False,
        studies=STUDIES,
        workloads=workloads,
        tweaksets={arm: SavedTweakSet(arm, description=AS_IT_WAS)},
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
    brand = cpu.get("brand_raw") or cpu.get("brand")  # cpuinfo 6 renamed it
    texts = {
        "hostname": info.get("node"),
        "kernel_release": info.get("release"),
        "cpu_model": isinstance(brand, str)
        and cpu_name(brand, cpu.get("family"), cpu.get("model")),
        "python_version": info.get("python_version"),
    }
    facts: dict[str, object] = {
        name: value for name, value in texts.items() if isinstance(value, str) and value
    }
    count = cpu.get("count")
    return facts | {"cpu_count": count} if isinstance(count, int) and count > 0 else facts


@cache
def _workload(name: str, group: str) -> SavedWorkload:
    return SavedWorkload(name, description=group)


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
            contradictions += (
                (
                    f"saved rounds is {stats.rounds}, but the file contains {rounds}; those in "
                    "the file are used."
                ),
            )
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
    third = stats.median if stats.q3 is None else stats.q3
    most = max(third, stats.mean) if stats.max is None else stats.max
    ordered = [stats.min, stats.q1, stats.median, third, most]
    if any(before > after * SLACK for before, after in pairwise(ordered)):
        part.refuse("contradicts itself: minimum, quartiles and maximum are not in order")
    if stats.min > stats.mean * SLACK or stats.mean > most * SLACK:
        part.refuse("contradicts itself: the mean does not lie between the minimum and the maximum")


def _no_times(stats: Any) -> str | None:
    """Return why valid rounds are not times: benchmarks may save (negative) time differences."""
    data = stats.get("data") if isinstance(stats, dict) else None
    if (
        not isinstance(data, list)
        or not data
        or not all(type(one) is float and abs(one) <= LONGEST_S for one in data)
        or min(data) >= 0
    ):
        return None
    mean = stats.get("mean")
    consistent = isinstance(mean, float) and math.isclose(
        mean, math.fsum(data) / len(data), rel_tol=1e-9, abs_tol=1e-12
    )
    if not consistent or stats.get("min") != min(data):
        return None
    return (
        f"its rounds are differences of times ({min(data):.3g} to {max(data):.3g} s), so they have "
        "no ratio"
    )


def _in_seconds(part: Part) -> None:
    options, stats = part.value.get("options"), part.value.get("stats")
    timer = options.get("timer") if isinstance(options, dict) else None
    if isinstance(timer, str) and timer.endswith("_ns"):
        part.refuse(
            f"was timed with {timer}: its statistics are nanoseconds, not seconds",
            f"measure with {timer.removesuffix('_ns')}",
        )
    for place in (stats, options):
        if not isinstance(place, dict):
            continue
        for field in UNIT_FIELDS:
            if field in place and place[field] not in SECONDS:
                part.refuse(
                    f"has {field} = {place[field]!r}, but pytest-benchmark saves seconds",
                    "convert it at its source",
                )
