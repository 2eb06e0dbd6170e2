"""Files of hyperfine, google-benchmark, asv and AIPerf: each becomes what pytest-benchmark would have saved, and is read as that.

A file is one run, and each of its benchmarks one cell. Whole lists of times are kept where the tool has them. Sources: hyperfine 1.15,
`--export-json`; google-benchmark 1.7, `--benchmark_format=json` (docs/user_guide.md); asv 0.6, `results/MACHINE/*.json`;
AIPerf, `profile_export_aiperf.json`.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from analysis.metrics import quantile

from .fields import Fields

JSON = dict[str, Any]
SCALES_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}


def read(saved: Mapping[str, object], origin: str) -> JSON | None:
    """Such a file as pytest-benchmark would have saved it; None where it is none. Raises: Unreadable."""
    top = Fields(saved, origin)
    if "results" in saved and "result_columns" in saved:
        return _asv(top)
    if isinstance(results := saved.get("results"), list) and results and isinstance(results[0], dict) and "command" in results[0]:
        return _document(list(_hyperfine(top)))
    if "context" in saved and "benchmarks" in saved:
        return _google(top)
    if "request_latency" in saved and "request_throughput" in saved:
        return _document([_benchmark("request_latency", _summary(top.fields("request_latency")))])
    return None


def _document(benchmarks: list[JSON], *, machine: JSON | None = None, at: str | None = None, commit: str | None = None) -> JSON:
    return {
        "machine_info": machine or {},
        "commit_info": {"id": commit} if commit else {},
        "datetime": at,
        "benchmarks": benchmarks,
    }


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


def _hyperfine(top: Fields) -> Iterator[JSON]:
    for part in top.each("results"):
        name = part.text("command")
        if any(code != 0 for code in _exit_codes(part)):
            part.refuse(f"has a run of {name!r} that did not end with 0", "measure it again; `--ignore-failure` times failures")
        times_s = part.times("times")
        if not times_s:
            part.refuse("has no times")
        yield _benchmark(name, _stats(times_s))


def _exit_codes(part: Fields) -> Sequence[object]:
    codes = part.value.get("exit_codes") or []
    return codes if isinstance(codes, list) else [codes]


def _google(top: Fields) -> JSON:
    times_s: dict[str, list[float]] = {}
    for part in top.each("benchmarks"):
        if part.value.get("run_type", "iteration") != "iteration" or part.value.get("error_occurred"):
            continue  # its own summary of the repetitions beside it; or a benchmark that failed
        name = part.optional_text("run_name") or part.text("name")
        scale_s = _scale_s(part, "time_unit")
        times_s.setdefault(name, []).append(part.time("real_time") * scale_s)
    context = top.fields("context")
    cpus = context.value.get("num_cpus")
    machine = {"node": context.optional_text("host_name"), "cpu": {"count": cpus}}
    result = [_benchmark(name, _stats(own)) for name, own in times_s.items()]
    return _document(result, machine=machine, at=context.optional_text("date"))


def _scale_s(part: Fields, name: str) -> float:
    unit = part.text(name)
    if unit not in SCALES_S:
        part.refuse(f"has {name} {unit!r}, which is none of {', '.join(SCALES_S)}")
    return SCALES_S[unit]


def _summary(part: Fields) -> JSON:
    scale_s = _scale_s(part, "unit")
    names = {"min": "min", "q1": "p25", "median": "p50", "mean": "avg"}
    return {ours: part.time(theirs) * scale_s for ours, theirs in names.items()}


def _asv(top: Fields) -> JSON:
    columns = top.texts("result_columns")
    results = top.optional_mapping("results")
    benchmarks: list[JSON] = []
    for name, row in results.items():
        if not name.rpartition(".")[2].startswith("time_"):  # memory, and what a benchmark tracks in a unit of its own
            continue
        if not isinstance(row, list):
            top.refuse(f"has no row of results for {name}")
        known = dict(zip(columns, row, strict=False))
        benchmarks += [_benchmark(full, _stats(times_s)) for full, times_s in _asv_times(top, name, known)]
    at = top.value.get("date")
    when = datetime.fromtimestamp(at / 1000, UTC).isoformat() if isinstance(at, int) and 0 < at < 1 << 43 else None
    params = top.optional_mapping("params")
    cpus = params.get("num_cpu")
    machine = {
        "node": params.get("machine"),
        "release": params.get("os"),
        "cpu": {"brand_raw": params.get("cpu"), "count": int(cpus) if isinstance(cpus, str) and cpus.isdecimal() else None},
    }
    return _document(benchmarks, machine=machine, at=when, commit=top.optional_text("commit_hash"))


def _asv_times(top: Fields, name: str, known: Mapping[str, object]) -> Iterator[tuple[str, Sequence[float]]]:
    lists = known.get("params")
    combinations = list(itertools.product(*lists)) if isinstance(lists, list) and all(isinstance(one, list) for one in lists) else [()]
    samples = known.get("samples")
    values = samples if isinstance(samples, list) else known.get("result")
    if not isinstance(values, list) or len(values) != len(combinations):
        top.refuse(f"has {name} with other results than it has parameters")
    for combination, value in zip(combinations, values, strict=True):
        own = value if isinstance(value, list) else [value]
        if value is None or own in ([], [None]):
            continue  # it failed, or was skipped
        full = f"{name}({', '.join(map(str, combination))})" if combination else name
        yield full, Fields({"times": own}, f"{top.origin}: {full}").times("times")
