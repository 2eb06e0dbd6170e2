"""Files of hyperfine, google-benchmark, asv and AIPerf: each becomes what pytest-benchmark would have saved, and is read as that.

A file is one run, and each of its benchmarks one cell. Whole lists of times are kept where the tool has them. A benchmark that failed,
was skipped or took no time is left out with its reason; two of one name are told apart by their parameters or labels, else by a number.
Sources:
hyperfine 1.15, `--export-json`; google-benchmark 1.4 to 1.8, `--benchmark_format=json` (docs/user_guide.md); asv 0.6,
`results/MACHINE/*.json`; AIPerf, `profile_export_aiperf.json`.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from analysis.metrics import quantile

from .fields import Fault, Foreign
from .pytest_benchmark import ARM, BY_PLACE, FAULTS, THROUGHPUT

JSON = dict[str, Any]
SCALES_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
SUMMARIES = ("mean", "median", "stddev")  # what google-benchmark always adds to repetitions
SUMMARY = re.compile(r"(.+)_(mean|median|stddev|cv|min|max|BigO|RMS)")
# A benchmark's name, the parameters that tell it from others of its name, and its times in seconds or its statistics.
Entry = tuple[str, str, Callable[[], JSON]]


def read(saved: Mapping[str, object], origin: str) -> JSON | None:
    """Such a file as pytest-benchmark would have saved it; None where it is none. Raises: Unreadable."""
    top = Foreign(saved, origin)
    if "results" in saved and "result_columns" in saved:
        return _asv(top)
    if isinstance(results := saved.get("results"), list) and results and isinstance(results[0], dict) and "command" in results[0]:
        return _document(_hyperfine(top))
    if "context" in saved and "benchmarks" in saved:
        return _google(top)
    if "request_latency" in saved and "request_throughput" in saved:
        when = top.optional_text("start_time") or top.optional_text("end_time")  # of the machine's own clock, without a zone
        return _document([("request_latency", "", lambda: _aiperf_stats(top))], datetime=when)
    return None


def _document(entries: Iterable[Entry], **known: object) -> JSON:
    """Make the file; an entry whose statistics are no times becomes a fault with its reason."""
    entries = list(entries)
    benchmarks, faults = [], {}
    names, by_place = _told_apart([(name, params) for name, params, _ in entries])
    for name, (_, _, stats) in zip(names, entries, strict=True):
        try:
            benchmarks.append(_benchmark(name, stats()))
        except Fault as fault:
            faults[name] = fault.reason
    return {"machine_info": {}, "commit_info": {}, "datetime": None, **known, "benchmarks": benchmarks, FAULTS: faults, BY_PLACE: by_place}


def _told_apart(names: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Give names that stand there twice their parameters; what is then still there twice gets a number from the second on.

    Returns: the names, and those of them that nothing but their place in the file tells apart.
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
    return {"fullname": name, "name": name, "group": None, "params": None, "extra_info": {}, "options": {}, "stats": stats}


def _stats(times_s: Sequence[float]) -> JSON:
    return {
        "min": min(times_s),
        "q1": quantile(times_s, 0.25),
        "median": statistics.median(times_s),
        "mean": math.fsum(times_s) / len(times_s),
        "rounds": len(times_s),
        "data": list(times_s),
    }


def _hyperfine(top: Foreign) -> Iterator[Entry]:
    for part in top.each("results"):
        params = part.optional_mapping("parameters")
        named = ", ".join(f"{key}={value}" for key, value in params.items())
        yield part.text("command"), named, lambda part=part: _hyperfine_stats(part)  # type: ignore[misc]


def _hyperfine_stats(part: Foreign) -> JSON:
    if any(code != 0 for code in _exit_codes(part)):
        part.refuse("has a run that did not end with 0")
    times_s = part.times("times")
    if not times_s:
        part.refuse("has no times")
    return _stats(times_s)


def _exit_codes(part: Foreign) -> Sequence[object]:
    codes = part.value.get("exit_codes") or []
    return codes if isinstance(codes, list) else [codes]


def _google(top: Foreign) -> JSON:
    parts = top.each("benchmarks")
    names = {name for part in parts if (name := part.optional_text("name"))}
    repetitions: dict[tuple[object, ...], list[Foreign]] = {}
    for part in parts:
        if not _is_summary(part, names):
            name = part.optional_text("run_name") or part.text("name")
            key = (name, part.value.get("family_index"), part.value.get("per_family_instance_index"))
            repetitions.setdefault(key, []).append(part)
    if parts and not repetitions:
        top.refuse("holds summaries of repetitions alone", "write it without --benchmark_report_aggregates_only")
    context = top.fields("context")
    cpus = context.value.get("num_cpus")
    machine = {"node": context.optional_text("host_name"), "cpu": {"count": cpus}}
    entries = [
        (str(name), own[0].optional_text("label") or "", lambda own=own: _google_stats(own)) for (name, *_), own in repetitions.items()
    ]
    return _document(entries, machine_info=machine, datetime=context.optional_text("date"))


def _is_summary(part: Foreign, names: Collection[str]) -> bool:
    """Whether an entry sums repetitions up; files of before 1.5 say so by its name alone."""
    if "run_type" in part:
        return part.value["run_type"] != "iteration"
    if "big_o" in part or "rms" in part or "aggregate_name" in part:
        return True
    known = SUMMARY.fullmatch(part.text("name"))
    return known is not None and (known[1] in names or all(f"{known[1]}_{word}" in names for word in SUMMARIES))


def _google_stats(repetitions: Sequence[Foreign]) -> JSON:
    times_s = []
    for part in repetitions:
        for flag, message in (("error_occurred", "error_message"), ("skipped", "skip_message")):
            if part.value.get(flag):
                part.refuse(f"was not measured: {part.value.get(message) or flag}")
        times_s.append(_scaled(part, "real_time", _scale_s(part, "time_unit")))
    return _stats(times_s)


def _scale_s(part: Foreign, name: str) -> float:
    unit = part.text(name)
    if unit not in SCALES_S:
        part.refuse(f"has {name} {unit!r}, which is none of {', '.join(SCALES_S)}")
    return SCALES_S[unit]


def _scaled(part: Foreign, name: str, scale_s: float) -> float:
    """Read a time of another unit in seconds, so that it is judged in seconds."""
    number = part.positive(name)
    return Foreign({name: number * scale_s}, part.origin).time(name)


def _aiperf_stats(top: Foreign) -> JSON:
    """Read latencies, and the requests that were answered per second: with several in flight, not one over a latency."""
    if top.value.get("was_cancelled"):
        top.refuse("was cancelled before it ended")
    failed = _failed_requests(top)
    if failed:
        top.refuse(f"has {failed:g} failed requests, and its latencies are those of the others alone")
    part = top.fields("request_latency")
    scale_s = _scale_s(part, "unit")
    names = {"min": "min", "q1": "p25", "median": "p50", "q3": "p75", "max": "max", "mean": "avg"}
    stats: JSON = {name: _scaled(part, written, scale_s) for name, written in names.items() if part.has(written)}
    throughput = top.fields("request_throughput")
    throughput.one_of("unit", ("requests/sec",))
    return {**stats, THROUGHPUT: throughput.positive("avg")}


def _failed_requests(top: Foreign) -> float:
    counted = top.optional_fields("error_request_count")
    listed = top.each("error_summary") if top.has("error_summary") else []
    return max(counted.number("avg") if counted.has("avg") else 0, sum(part.number("count") for part in listed))


def _asv(top: Foreign) -> JSON:
    columns = top.texts("result_columns")
    entries: list[Entry] = []
    for name, row in top.optional_mapping("results").items():
        if not name.rpartition(".")[2].startswith(("time_", "timeraw_")):  # memory, and what is tracked in a unit of its own
            continue
        if not isinstance(row, list):
            top.refuse(f"has no row of results for {name}")
        entries += _asv_entries(top, name, dict(zip(columns, row, strict=False)))
    at = top.value.get("date")
    when = datetime.fromtimestamp(at / 1000, UTC).isoformat() if isinstance(at, int) and 0 < at < 1 << 43 else None
    params = top.optional_mapping("params")
    cpus = params.get("num_cpu")
    machine = {
        "node": params.get("machine"),
        "release": params.get("os"),
        "cpu": {"brand_raw": params.get("cpu"), "count": int(cpus) if isinstance(cpus, str) and cpus.isdecimal() else None},
    }
    commit = {"id": top.value["commit_hash"]} if top.optional_text("commit_hash") else {}
    return _document(entries, machine_info=machine, commit_info=commit, datetime=when, **{ARM: top.optional_text("env_name")})


def _asv_entries(top: Foreign, name: str, known: Mapping[str, object]) -> Iterator[Entry]:
    lists = known.get("params")
    combinations = list(itertools.product(*lists)) if isinstance(lists, list) and all(isinstance(one, list) for one in lists) else [()]
    samples = known.get("samples")
    results = known.get("result")
    if results is None:  # the whole benchmark failed
        results = [None] * len(combinations)
    if not isinstance(results, list) or len(results) != len(combinations):
        top.refuse(f"has {name} with other results than it has parameters")
    lists_of_times = samples if isinstance(samples, list) and len(samples) == len(results) else [None] * len(results)
    for combination, value, times_s in zip(combinations, results, lists_of_times, strict=True):
        full = f"{name}({', '.join(map(str, combination))})" if combination else name
        yield full, "", lambda value=value, times_s=times_s: _asv_stats(top, value, times_s)  # type: ignore[misc]


def _asv_stats(top: Foreign, value: object, samples: object) -> JSON:
    if value is None:
        top.refuse("failed")
    if isinstance(value, float) and math.isnan(value):
        top.refuse("was skipped")
    own = samples if isinstance(samples, list) and samples else [value]
    return _stats(Foreign({"times": own}, top.origin).times("times"))
