"""Files of unsupported tools: name the tool, and the way to a supported file.

Sources: JMH `-rf json`; criterion.rs `target/criterion/*/new/*.json` and `cargo criterion
--message-format=json`; Go's benchmark format (golang.org/design/14313-benchmark-format) and
`go test -json`; Apache Otava's CSV importer; github-action-benchmark's `data.js`; asv's results
before 0.4 and the files beside its results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

SHAPE = (
    'write the times of one run, in seconds, as {"results": [{"command": NAME, "times": [0.12, '
    "0.13]}]}, the JSON of hyperfine"
)
KEEP = (
    "such a file contains many runs; name the file that the benchmark's own tool wrote for each run"
)
CRITERION_SAMPLE = {"sampling_mode", "iters", "times"}
CRITERION_ESTIMATES = {"mean", "median", "std_dev", "median_abs_dev"}


def of_text(text: str) -> str | None:
    """Identify the tool that wrote a text that is not JSON, with the remedy; else None."""
    start = text.lstrip("\ufeff \t\r\n")[:4000]
    return next((f"{name}; {way}." for name, way, is_it in TEXTS if is_it(start)), None)


def of_json(saved: object) -> str | None:
    """Identify the tool that wrote a JSON value, with the remedy; else None."""
    first = saved[0] if isinstance(saved, list) and saved else saved
    if not isinstance(first, dict):
        return None
    return next((f"{name}; {way}." for name, way, is_it in VALUES if is_it(first)), None)


def _is_asv_1(first: Mapping[str, Any]) -> bool:
    return "commit_hash" in first and "results" in first and "result_columns" not in first


def _is_asv_list(first: Mapping[str, Any]) -> bool:
    described = [one for one in first.values() if isinstance(one, dict)]
    return bool(described) and all(
        {"code", "name", "param_names"} <= one.keys() for one in described
    )


def _is_github(first: Mapping[str, Any]) -> bool:
    return {"name", "unit", "value"} <= first.keys() or {"lastUpdate", "entries"} <= first.keys()


def _is_bencher(first: Mapping[str, Any]) -> bool:
    measures = [
        one for named in first.values() if isinstance(named, dict) for one in named.values()
    ]
    return bool(measures) and all(isinstance(one, dict) and "value" in one for one in measures)


def _has(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda first: set(names) <= first.keys()


def _matches(pattern: str) -> Callable[[str], bool]:
    known = re.compile(pattern, re.MULTILINE)
    return lambda start: bool(known.search(start))


CRITERION = "a stream of criterion (cargo criterion --message-format=json)"
GO_JSON = "a stream of go test -json"
JMH = f"run it with -rf json and {SHAPE}"
PATTERNS = (
    ("the data.js of github-action-benchmark", KEEP, r"\Awindow\.BENCHMARK_DATA\s*="),
    (CRITERION, SHAPE, r'\A\{"reason":"(benchmark|group)-complete"'),
    (GO_JSON, SHAPE, r'\A\{("Time":"[^"]*",)?"Action":"'),
    (
        "benchmark text of Go",
        SHAPE,
        r"^Benchmark\S*\s+\d+\s+[\d.e+]+ ns/op|\A(goos|goarch|pkg): \S",
    ),
    ("a table of JMH", JMH, r"^Benchmark\s+(\(.*\)\s+)*Mode\s+Cnt\s+Score"),
    ("a CSV of JMH", JMH, r'\A"?Benchmark"?,"?Mode"?,'),
    (
        "a table of google-benchmark",
        "write it with --benchmark_format=json",
        r"\ARun on \(|\Aname,iterations,real_time|^Benchmark +Time +CPU",
    ),
    (
        "a table of hyperfine",
        "write it with --export-json FILE",
        r"\Acommand,mean,stddev,median|\A\| Command +\| Mean",
    ),
    (
        "a CSV of pytest-benchmark",
        "write the run with --benchmark-json FILE",
        r"\Aname,(.*,)?(min|mean|median),",
    ),
    (
        "a CSV of Otava (one row for each run)",
        KEEP,
        r"\A\"?(time|timestamp|date|commit)\"?[,;]\S",
    ),
)
TEXTS = tuple((name, way, _matches(pattern)) for name, way, pattern in PATTERNS)
VALUES: tuple[tuple[str, str, Callable[[Mapping[str, Any]], bool]], ...] = (
    ("results of JMH", SHAPE, _has("benchmark", "mode", "primaryMetric")),
    (
        "the samples of one benchmark of criterion",
        SHAPE,
        lambda first: first.keys() >= CRITERION_SAMPLE,
    ),
    (
        "the estimates of one benchmark of criterion",
        SHAPE,
        lambda first: first.keys() >= CRITERION_ESTIMATES,
    ),
    ("the description of a benchmark of criterion", SHAPE, _has("group_id", "full_id")),
    (CRITERION, SHAPE, _has("reason", "id")),
    (GO_JSON, SHAPE, _has("Action", "Package")),
    ("results of asv in format 1", "convert them with `asv update`", _is_asv_1),
    (
        "asv's list of benchmarks",
        "name the results of a machine, results/MACHINE/*.json",
        _is_asv_list,
    ),
    (
        "asv's description of a machine",
        "name the results beside it, *.json of the same folder",
        _has("machine", "arch", "num_cpu"),
    ),
    ("results for github-action-benchmark", KEEP, _is_github),
    (
        "results of pyperf",
        SHAPE,
        lambda first: "benchmarks" in first and "version" in first and "machine_info" not in first,
    ),
    ("results for Bencher", KEEP, _is_bencher),
)
