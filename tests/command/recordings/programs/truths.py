"""Read the true figure from a tool's own output, as a careful person does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).parents[1]
SGLANG_EXPORT = Path("/tmp/sglang.jsonl")  # noqa: S108  # the option of the recorded command

Truth = Callable[[str], dict[str, Any]]
UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def rate(pattern: str, unit: str, factor: float = 1.0) -> Truth:
    """Take the last match's first group, times a factor, as the rate."""

    def truth(text: str) -> dict[str, Any]:
        value = float(re.findall(pattern, text, re.MULTILINE)[-1])
        return {"rate_per_s": value * factor, "unit": unit}

    return truth


def quotient(count: str, seconds: str, unit: str, factor: float = 1.0) -> Truth:
    """Divide a count by a time, both of which the tool prints beside its rate."""

    def truth(text: str) -> dict[str, Any]:
        counted = float(re.findall(count, text, re.MULTILINE)[-1])
        passed = float(re.findall(seconds, text, re.MULTILINE)[-1])
        return {"rate_per_s": round(counted * factor / passed, 3), "unit": unit}

    return truth


def duration(pattern: str, factor: float = 1.0) -> Truth:
    """Take the last match's first group, times a factor, as seconds."""

    def truth(text: str) -> dict[str, Any]:
        return {"run_s": float(re.findall(pattern, text, re.MULTILINE)[-1]) * factor}

    return truth


def untold(_text: str) -> dict[str, Any]:
    """Tell no figure: the run failed, or the figure must not be trusted."""
    return {"failed": True}


def both(truth: Truth, **beside: str) -> Truth:
    """Add the counts beside the figure, each by its pattern."""

    def whole(text: str) -> dict[str, Any]:
        found = {key: re.findall(one, text, re.MULTILINE) for key, one in beside.items()}
        counts = {key: float(matches[-1]) for key, matches in found.items() if matches}
        return {**truth(text), "counts": counts}

    return whole


def fio_text(block: int) -> Truth:
    """Divide fio's issued blocks by its milliseconds, for reads and writes."""

    def truth(text: str) -> dict[str, Any]:
        issued = re.findall(r"issued rwts: total=(\d+),(\d+)", text)
        group = text.rpartition("Run status group")[2]
        runs = dict(re.findall(r"(READ|WRITE): .*run=\d+-(\d+)msec", group))
        finals = issued[-1:]
        counts = {
            "READ": sum(int(row[0]) for row in finals),
            "WRITE": sum(int(row[1]) for row in finals),
        }
        rates = {kind: round(counts[kind] * block / int(ms) * 1000) for kind, ms in runs.items()}
        return {"rate_per_s": next(iter(rates.values())), "unit": "B", "figures": rates}

    return truth


def fio_total(text: str) -> dict[str, Any]:
    """Read the group's rows where several jobs have parts: the decimal number, three digits."""
    group = text.rpartition("Run status group")[2]
    found = re.findall(r"(READ|WRITE): bw=\S+ \(([\d.]+)([kMG]B)/s\)", group)
    rates = {kind: float(value) * UNITS[unit] for kind, value, unit in found}
    return {"rate_per_s": next(iter(rates.values())), "unit": "B", "figures": rates}


def fio_json(text: str) -> dict[str, Any]:
    """Read `bw_bytes` of each direction that moved bytes, in the last document."""
    documents = re.findall(r"^\{\n.*?^\}$", text, re.MULTILINE | re.DOTALL)
    job = json.loads(documents[-1])["jobs"][0]
    rates = {
        kind.upper(): job[kind]["bw_bytes"] for kind in ("read", "write") if job[kind]["io_bytes"]
    }
    return {
        "rate_per_s": next(iter(rates.values())),
        "unit": "B",
        "figures": rates,
        "error": job["error"],
    }


def iperf(text: str) -> dict[str, Any]:
    """Read the received rate of the whole run."""
    return {
        "rate_per_s": json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8,
        "unit": "B",
    }


def google(text: str) -> dict[str, Any]:
    """Read the first benchmark's real time."""
    rows = json.loads(text[text.index("{") :])["benchmarks"]
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
    medians = [row for row in rows if row.get("aggregate_name") == "median"] or rows
    return {"run_s": medians[0]["real_time"] * scale[medians[0]["time_unit"]]}


def hyper(text: str) -> dict[str, Any]:
    """Read the mean of the first command."""
    return {"run_s": json.loads(text[text.index("{") :])["results"][0]["mean"]}


def own(_text: str) -> dict[str, Any]:
    """Leave the truth that the program wrote itself."""
    raise LookupError("the program told the truth itself")


def benched(text: str) -> dict[str, Any]:
    """Read the mean of the table, whose unit stands in its heading."""
    unit = re.findall(r"Name \(time in (\w+)\)", text)[-1]
    names = re.findall(r"^Name \(time in.*$", text, re.MULTILINE)[-1].split(")", 1)[1].split()
    row = re.findall(r"^test_sleep +(.*)$", text, re.MULTILINE)[-1]
    values = [cell for cell in row.split() if not cell.startswith("(")]
    return {"run_s": float(values[names.index("Mean")]) * {"ms": 1e-3, "us": 1e-6, "s": 1}[unit]}


def benched_json(text: str) -> dict[str, Any]:
    """Read the mean of the JSON that stands among the other lines."""
    document, _ = json.JSONDecoder().raw_decode(text, text.index("{\n"))
    return {"run_s": document["benchmarks"][0]["stats"]["mean"]}


def exported(name: str) -> Truth:
    """Read and keep the file that AIPerf names on one of its last lines."""

    def truth(text: str) -> dict[str, Any]:
        content = Path(re.findall(r"JSON Export: (\S+)", text)[-1]).read_text(encoding="utf-8")
        (RECORDINGS / "exports" / f"{name}.json").write_text(content, encoding="utf-8")
        found = json.loads(content)
        counts = {"requests": found["completed_request_count"]["avg"]}
        counts["failed"] = found.get("error_request_count", {}).get("avg", 0)
        rates = {
            key: found[key]["avg"] for key in ("request_throughput", "output_token_throughput")
        }
        rate_per_s = rates["request_throughput"]
        return {"rate_per_s": rate_per_s, "unit": "requests", "figures": rates, "counts": counts}

    return truth


def sglang(_text: str) -> dict[str, Any]:
    """Read the last line of the file that the client appends to."""
    exported = json.loads(SGLANG_EXPORT.read_text().splitlines()[-1])
    counts = {"requests": 24, "completed": exported["completed"]}
    rates = {key: exported[key] for key in ("request_throughput", "output_throughput")}
    return {
        "rate_per_s": rates["request_throughput"],
        "unit": "requests",
        "figures": rates,
        "counts": counts,
    }


def qperf(text: str) -> dict[str, Any]:
    """Read a rate with a decimal prefix."""
    value, prefix = re.findall(r"bw += +([\d.]+) ([kMG])B/sec", text)[-1]
    return {"rate_per_s": float(value) * UNITS[prefix + "B"], "unit": "B"}
