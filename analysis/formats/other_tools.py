"""Files of hyperfine, google-benchmark, asv and AIPerf, converted to pytest-benchmark's format.

A file is one run, and each of its benchmarks one cell. One that failed, was skipped or took no time
is omitted with its reason; two of one name are distinguished by parameters or labels, else by a
number.

Sources: hyperfine 1.15, `--export-json`; google-benchmark 1.5 to 1.8, `--benchmark_format=json`;
asv 0.6, `results/MACHINE/*.json`; AIPerf, `profile_export_aiperf.json`.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from msgspec import Struct

from analysis.metrics import quantile
from control.saved import Count, Positive, Seconds

from .checked import FOREIGN, InvalidField, Part

JSON = dict[str, Any]
SCALES_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
SUMMARIES = ("mean", "median", "stddev")  # google-benchmark always adds these to repetitions
FAMILY = ("family_index", "per_family_instance_index")
SUMMARY = re.compile(r"(.+)_(mean|median|stddev|cv|min|max|BigO|RMS)")
Unit = Literal["ns", "us", "ms", "s", "sec", "seconds"]
# A benchmark's name, the parameters that distinguish it, and its times in seconds or statistics.
Entry = tuple[str, str, Callable[[], JSON]]


class Timings(Struct):
    times: tuple[Seconds, ...]


class HyperfineResult(Struct):
    command: str
    parameters: dict[str, Any] | None = None


class Context(Struct):
    host_name: str | None = None
    num_cpus: Any = None
    date: str | None = None


class Entries(Struct):
    context: Context
    benchmarks: list[dict[str, Any]]


class Loop(Struct):
    name: str
    run_name: str | None = None
    label: str | None = None


class LoopTime(Struct):
    real_time: Positive
    time_unit: Unit


class Latency(Struct):
    unit: Unit
    avg: Positive
    min: Positive | None = None
    p25: Positive | None = None
    p50: Positive | None = None
    p75: Positive | None = None
    max: Positive | None = None


class Throughput(Struct):
    unit: Literal["requests/sec"]
    avg: Positive


class Failed(Struct):
    avg: float = 0


class Failure(Struct):
    count: Count


class Requests(Struct):
    request_latency: Latency
    request_throughput: Throughput
    error_request_count: Failed | None = None
    error_summary: list[Failure] | None = None
    was_cancelled: Any = None


class Commit(Struct):
    result_columns: list[str]
    results: dict[str, Any]
    date: Any = None
    params: dict[str, Any] | None = None
    commit_hash: str | None = None
    env_name: str | None = None


def read(saved: Mapping[str, Any], origin: str) -> JSON | None:
    """Convert a file to pytest-benchmark's format; None for other files. Raises: Unreadable."""
    top = Part(saved, origin, remedy=FOREIGN)
    if "results" in saved and "result_columns" in saved:
        return _asv(top)
    if (
        isinstance(results := saved.get("results"), list)
        and results
        and isinstance(results[0], dict)
        and "command" in results[0]
    ):
        return _document(_hyperfine(top.at("results")))
    if "context" in saved and "benchmarks" in saved:
        return _google(top)
    if "request_latency" in saved and "request_throughput" in saved:
        when = saved.get("start_time") or saved.get("end_time")  # without a time zone
        return _document([("request_latency", "", lambda: _aiperf_stats(top))], datetime=when)
    return None


def _document(entries: Iterable[Entry], **known: object) -> JSON:
    entries = list(entries)
    benchmarks, faults = [], {}
    names, by_place = _told_apart([(name, params) for name, params, _ in entries])
    for name, (_, _, stats) in zip(names, entries, strict=True):
        try:
            benchmarks.append(_benchmark(name, stats()))
        except InvalidField as fault:
            faults[name] = fault.reason
    return {
        "machine_info": {},
        "commit_info": {},
        "datetime": None,
        **known,
        "benchmarks": benchmarks,
        "faults": faults,
        "by_place": by_place,
    }


def _told_apart(names: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Add parameters, or else a number from the second on, to repeated names.

    Returns: the names, and those distinguished only by their place in the file.
    """
    counts = Counter(name for name, _ in names)
    full = [f"{name} ({params})" if counts[name] > 1 and params else name for name, params in names]
    counts, seen = Counter(full), Counter[str]()
    result = []
    for name in full:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return result, [own for own, name in zip(result, full, strict=True) if counts[name] > 1]


def _benchmark(name: str, stats: JSON) -> JSON:
    return {
        "fullname": name,
        "name": name,
        "group": None,
        "params": None,
        "extra_info": {},
        "options": {},
        "stats": stats,
    }


def _stats(times_s: Sequence[float]) -> JSON:
    return {
        "min": min(times_s),
        "q1": quantile(times_s, 0.25),
        "median": statistics.median(times_s),
        "mean": math.fsum(times_s) / len(times_s),
        "rounds": len(times_s),
        "data": list(times_s),
    }


def _hyperfine(results: Part) -> Iterator[Entry]:
    for part in results.each():
        result = part.read(HyperfineResult)
        named = ", ".join(f"{key}={value}" for key, value in (result.parameters or {}).items())
        yield result.command, named, lambda part=part: _hyperfine_stats(part)  # type: ignore[misc]


def _hyperfine_stats(part: Part) -> JSON:
    codes = part.value.get("exit_codes") or []
    if any(code != 0 for code in (codes if isinstance(codes, list) else [codes])):
        part.refuse("has a run with a non-zero exit code")
    times_s = part.read(Timings).times
    if not times_s:
        part.refuse("has no times")
    return _stats(times_s)


def _google(top: Part) -> JSON:
    file = top.read(Entries)
    names = {part.get("name") for part in file.benchmarks}
    repetitions: dict[tuple[object, ...], list[Part]] = {}
    for part in top.at("benchmarks").each():
        loop = part.read(Loop)
        if not _is_summary(loop.name, part.value, names):
            key = (loop.run_name or loop.name, *(part.value.get(name) for name in FAMILY))
            repetitions.setdefault(key, []).append(part)
    if file.benchmarks and not repetitions:
        top.refuse(
            "contains only aggregates of repetitions",
            "write it without --benchmark_report_aggregates_only",
        )
    entries = [
        (str(name), own[0].value.get("label") or "", lambda own=own: _google_stats(own))
        for (name, *_), own in repetitions.items()
    ]
    machine = {"node": file.context.host_name, "cpu": {"count": file.context.num_cpus}}
    return _document(entries, machine_info=machine, datetime=file.context.date)


def _is_summary(name: str, entry: Mapping[str, object], names: Collection[object]) -> bool:
    if "run_type" in entry:
        return entry["run_type"] != "iteration"
    if "big_o" in entry or "rms" in entry or "aggregate_name" in entry:
        return True
    known = SUMMARY.fullmatch(name)
    return known is not None and (
        known[1] in names or all(f"{known[1]}_{word}" in names for word in SUMMARIES)
    )


def _google_stats(repetitions: Sequence[Part]) -> JSON:
    times_s = []
    for part in repetitions:
        for flag, message in (("error_occurred", "error_message"), ("skipped", "skip_message")):
            if part.value.get(flag):
                part.refuse(f"was not measured: {part.value.get(message) or flag}")
        loop = part.read(LoopTime)
        times_s.append(loop.real_time * SCALES_S[loop.time_unit])
    return _stats(repetitions[0].made(Timings, times=times_s).times)  # judged in seconds


def _aiperf_stats(top: Part) -> JSON:
    file = top.read(Requests)
    if file.was_cancelled:
        top.refuse("was cancelled before it ended")
    listed = sum(failure.count for failure in file.error_summary or [])
    if failed := max(listed, file.error_request_count.avg if file.error_request_count else 0):
        top.refuse(f"has {failed:g} failed requests, and its latencies exclude them")
    latency = file.request_latency
    known = {
        "min": latency.min,
        "q1": latency.p25,
        "median": latency.p50,
        "q3": latency.p75,
        "max": latency.max,
        "mean": latency.avg,
    }
    stats = {
        name: value * SCALES_S[latency.unit] for name, value in known.items() if value is not None
    }
    return {**stats, "told_throughput_per_s": file.request_throughput.avg}


def _asv(top: Part) -> JSON:
    file = top.read(Commit)
    entries: list[Entry] = []
    for name, row in file.results.items():
        if not name.rpartition(".")[2].startswith(("time_", "timeraw_")):  # memory, tracked values
            continue
        if not isinstance(row, list):
            top.refuse(f"has no results for {name}")
        entries += _asv_entries(top, name, dict(zip(file.result_columns, row, strict=False)))
    at, params = file.date, file.params or {}
    when = (
        datetime.fromtimestamp(at / 1000, UTC).isoformat()
        if isinstance(at, int) and 0 < at < 1 << 43
        else None
    )
    cpus = params.get("num_cpu")
    machine = {
        "node": params.get("machine"),
        "release": params.get("os"),
        "cpu": {
            "brand_raw": params.get("cpu"),
            "count": int(cpus) if isinstance(cpus, str) and cpus.isdecimal() else None,
        },
    }
    commit = {"id": file.commit_hash} if file.commit_hash else {}
    return _document(
        entries, machine_info=machine, commit_info=commit, datetime=when, environment=file.env_name
    )


def _asv_entries(top: Part, name: str, known: Mapping[str, object]) -> Iterator[Entry]:
    lists = known.get("params")
    combinations = (
        list(itertools.product(*lists))
        if isinstance(lists, list) and all(isinstance(one, list) for one in lists)
        else [()]
    )
    samples = known.get("samples")
    results = known.get("result")
    if results is None:  # the whole benchmark failed
        results = [None] * len(combinations)
    if not isinstance(results, list) or len(results) != len(combinations):
        top.refuse(f"has {name} with results that do not match its parameters")
    lists_of_times = (
        samples
        if isinstance(samples, list) and len(samples) == len(results)
        else [None] * len(results)
    )
    for combination, value, times_s in zip(combinations, results, lists_of_times, strict=True):
        full = f"{name}({', '.join(map(str, combination))})" if combination else name
        yield full, "", partial(_asv_stats, top, value, times_s)


def _asv_stats(top: Part, value: object, samples: object) -> JSON:
    if value is None:
        top.refuse("failed")
    if isinstance(value, float) and math.isnan(value):
        top.refuse("was skipped")
    own = samples if isinstance(samples, list) and samples else [value]
    return _stats(top.made(Timings, times=own).times)
