"""Record benchmark tools again: `python -m tests.command.recordings.programs.tools [PREFIX …]`.

Each row of TOOLS is a recording: name, program, command, the truth as a person reads it from the
tool's own output, and extra environment variables. Debian packages: fio, sysbench, wrk,
apache2-utils, redis, stress-ng, p7zip-full, iperf3, hyperfine, hey, qperf, linux-perf,
libbenchmark-dev. What must run or exist first:

    pgbench -i with PGHOST etc. set; redis-server --port 6399; iperf3 -s -p 5299; qperf
    g++ -O2 google_benchmark.cpp -lbenchmark -lpthread -o /tmp/google_benchmark
    sysbench fileio --file-total-size=16M --file-num=2 prepare, in /tmp/sysbench

mock_server.py is started here: ports 8110 and 8120 answer after 40 and 80 ms (a token per 40 and
80 ms for a model's client), and port 8119 also fails each fifth request.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).parents[1]
SERVERS = (("8110", "40"), ("8120", "80"), ("8119", "40", "5"))
PORTS = {"fast": "8110", "slow": "8120", "failed": "8119"}

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
        counts = {"READ": sum(int(row[0]) for row in finals), "WRITE": sum(int(row[1]) for row in finals)}
        rates = {kind: round(counts[kind] * block / int(ms) * 1000) for kind, ms in runs.items()}
        return {"rate_per_s": next(iter(rates.values())), "unit": "B", "figures": rates}

    return truth


def fio_json(text: str) -> dict[str, Any]:
    """Read `bw_bytes` of each direction that moved bytes, in the last document."""
    documents = re.findall(r"^\{\n.*?^\}$", text, re.MULTILINE | re.DOTALL)
    job = json.loads(documents[-1])["jobs"][0]
    rates = {kind.upper(): job[kind]["bw_bytes"] for kind in ("read", "write") if job[kind]["io_bytes"]}
    return {"rate_per_s": next(iter(rates.values())), "unit": "B", "figures": rates, "error": job["error"]}


def iperf(text: str) -> dict[str, Any]:
    """Read the received rate of the whole run."""
    return {"rate_per_s": json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8, "unit": "B"}


def google(text: str) -> dict[str, Any]:
    """Read the first benchmark's real time."""
    rows = json.loads(text[text.index("{") :])["benchmarks"]
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
    medians = [row for row in rows if row.get("aggregate_name") == "median"] or rows
    return {"run_s": medians[0]["real_time"] * scale[medians[0]["time_unit"]]}


def hyper(text: str) -> dict[str, Any]:
    """Read the mean of the first command."""
    return {"run_s": json.loads(text[text.index("{") :])["results"][0]["mean"]}


FIO = "fio --name=job --bs=64k --size=16m --filename=/dev/shm/fio.dat --time_based --runtime=2".split()
FIO += ["--disable_lat=1", "--disable_clat=1", "--disable_slat=1"]
NULL = "fio --name=job --bs=64k --size=64g --ioengine=null --time_based --runtime=2".split()
NULL += ["--disable_lat=1", "--disable_clat=1", "--disable_slat=1"]
REDIS = "redis-benchmark -p 6399 -c 4".split()
PG = "pgbench -n -c 2".split()
SLEEPS = str(Path(__file__).parent / "pgbench_sleep.sql")
ALONE = "-c /dev/null --rootdir=/tmp --noconftest -p no:cacheprovider"
BENCHED = str(Path(__file__).parent / "sleeping_benchmark.py")
STAND_INS = str(Path(__file__).parent / "stand_ins.py")
LLAMA = "ggml-org/llama.cpp tools/llama-bench/llama-bench.cpp at 0104b151"
SOURCES = {
    "vllm-serve": "vllm-project/vllm vllm/benchmarks/serve.py at def9ce85",
    "vllm-throughput": "vllm-project/vllm vllm/benchmarks/throughput.py at 02028314",
    "vllm-latency": "vllm-project/vllm vllm/benchmarks/latency.py at 00cae075",
    "nccl-tests": "NVIDIA/nccl-tests 2.19.6 src/util.cu at a0b82b22",
    "llama-md": LLAMA,
    "llama-csv": LLAMA,
    "llama-json": LLAMA,
    "llama-jsonl": LLAMA,
    "trtllm-bench": "the report in TensorRT-LLM's documentation",
    "mllog": "mlcommons/logging mlperf_logging/mllog",
}
BENCH = "/tmp/google_benchmark"
MIB = 2**20

EVENTS = quotient(r"total number of events: +(\d+)", r"total time: +([\d.]+)s", "events")
TPS = both(
    rate(r"^tps = ([\d.]+)", "transactions"),
    failed=r"number of failed transactions: (\d+)",
    processed=r"actually processed: (\d+)",
)
WRK = both(
    quotient(r"(\d+) requests in", r"requests in ([\d.]+)s", "requests"),
    requests=r"(\d+) requests in",
    failed=r"Non-2xx or 3xx responses: (\d+)",
)
AB = both(
    quotient(r"Complete requests: +(\d+)", r"Time taken for tests: +([\d.]+)", "requests"),
    requests=r"Complete requests: +(\d+)",
    failed=r"Failed requests: +(\d+)",
    non_2xx=r"Non-2xx responses: +(\d+)",
)
HEY = both(
    rate(r"Requests/sec:\s+([\d.]+)", "requests"),
    ok=r"\[200\]\s+(\d+) responses",
    failed=r"\[500\]\s+(\d+) responses",
)
VEGETA = both(
    rate(r"\[total, rate, throughput\] +\d+, [\d.]+, ([\d.]+)", "requests"),
    requests=r"\[total, rate, throughput\] +(\d+)",
    success_percent=r"\[ratio\] +([\d.]+)%",
)


def tools() -> list[tuple[str, str, list[str], Truth, dict[str, str]]]:
    """Build the table of recordings."""
    rows: list[tuple[str, str, list[str], Truth, dict[str, str]]] = []

    def add(name: str, program: str, command: str | list[str], truth: Truth, **env: str) -> None:
        words = command.split() if isinstance(command, str) else command
        rows.append((name, program, words, truth, env))

    # fio
    for speed, mib in (("slow", 50), ("fast", 100)):
        add(f"fio-read-{speed}", "fio 3.33", [*FIO, "--rw=read", f"--rate={mib}m"], fio_text(65536))
        add(f"fio-write-{speed}", "fio 3.33", [*FIO, "--rw=write", f"--rate={mib}m"], fio_text(65536))
        mixed = [*FIO, "--rw=randrw", "--rwmixread=75", f"--rate={mib}m,{mib // 2}m"]
        add(f"fio-randrw-{speed}", "fio 3.33", mixed, fio_text(65536))
        add(
            f"fio-group-{speed}",
            "fio 3.33",
            [*FIO, "--rw=read", "--numjobs=2", "--group_reporting", f"--rate={mib // 2}m"],
            fio_text(65536),
        )
        add(f"fio-json-{speed}", "fio 3.33", [*mixed, "--output-format=json"], fio_json)
        add(f"fio-jsonplus-{speed}", "fio 3.33", [*mixed, "--output-format=json+"], fio_json)
        add(f"fio-both-{speed}", "fio 3.33", [*mixed, "--output-format=normal,json"], fio_json)
        add(
            f"fio-status-{speed}",
            "fio 3.33",
            [*FIO, "--rw=read", f"--rate={mib}m", "--status-interval=1"],
            fio_text(65536),
        )
    for speed, mib in (("slow", 1500), ("fast", 3000)):
        add(f"fio-gigabyte-{speed}", "fio 3.33", [*NULL, "--rw=read", f"--rate={mib}m"], fio_text(65536))
    add("fio-null-fast", "fio 3.33", [*NULL, "--rw=read", "--runtime=1"], fio_text(65536))

    full = "fio --name=job --rw=write --bs=64k --size=1m --filename=/dev/full --ioengine=sync".split()
    add("fio-failed", "fio 3.33", full, untold)
    on = [*full, "--continue_on_error=all", "--time_based", "--runtime=1", "--thinktime=10ms"]
    add("fio-failed-goes-on", "fio 3.33", on, untold)
    add("fio-failed-json", "fio 3.33", [*on, "--output-format=json"], untold)

    # sysbench
    for speed, number in (("slow", 100), ("fast", 200)):
        limit = f"--time=2 --rate={number}"
        add(f"sysbench-cpu-{speed}", "sysbench 1.0.20", f"sysbench cpu --cpu-max-prime=2000 {limit} run", EVENTS)
        memory = f"sysbench memory --memory-block-size=1M {limit} run"
        add(
            f"sysbench-memory-{speed}",
            "sysbench 1.0.20",
            memory,
            quotient(r"total number of events: +(\d+)", r"total time: +([\d.]+)s", "B", MIB),
        )
        add(
            f"sysbench-threads-{speed}",
            "sysbench 1.0.20",
            f"sysbench threads --thread-yields=10 {limit} run",
            EVENTS,
        )
        add(
            f"sysbench-fileio-{speed}",
            "sysbench 1.0.20",
            "sysbench fileio --file-total-size=16M --file-num=2 --file-test-mode=rndrd"
            f" {limit} --report-interval=1 run",
            rate(r"read, MiB/s: +([\d.]+)", "B", MIB),
        )

    # pgbench
    for speed, sleep_us in (("slow", 20000), ("fast", 10000)):
        script = [*PG, f"-Dsleep={sleep_us}", "-f", SLEEPS]
        add(f"pgbench-time-{speed}", "pgbench 15.18", [*script, "-T", "3"], TPS)
        add(f"pgbench-count-{speed}", "pgbench 15.18", [*script, "-t", "100"], TPS)
        add(f"pgbench-progress-{speed}", "pgbench 15.18", [*script, "-T", "3", "-P", "1"], TPS)
    failing = [*PG, "-f", SLEEPS.replace("sleep", "conflict"), "-T", "2", "--failures-detailed"]
    add("pgbench-failed", "pgbench 15.18", failing, TPS)
    aborted = [*PG, "-f", SLEEPS.replace("sleep", "error"), "-t", "40"]
    add("pgbench-aborted", "pgbench 15.18", aborted, TPS)

    # HTTP
    for speed, port in PORTS.items():
        url = f"http://127.0.0.1:{port}/"
        add(f"wrk-{speed}", "wrk 4.1.0", f"wrk -t1 -c4 -d2s {url}", WRK)
        add(f"ab-{speed}", "ab 2.3 (apache2-utils 2.4)", f"ab -n 100 -c 4 {url}", AB)
        add(f"hey-{speed}", "hey 0.1.4", f"hey -n 100 -c 4 {url}", HEY)
        add(f"hey-time-{speed}", "hey 0.1.4", f"hey -z 2s -c 4 {url}", HEY)
        attack = f"echo GET {url} | vegeta attack -rate=0 -max-workers=4 -duration=2s | vegeta report"
        add(f"vegeta-{speed}", "vegeta 12.13.0", ["sh", "-c", attack], VEGETA)
    add("wrk-latency-fast", "wrk 4.1.0", "wrk -t1 -c4 -d2s --latency http://127.0.0.1:8110/", WRK)
    add("ab-refused", "ab 2.3 (apache2-utils 2.4)", "ab -n 20 -c 2 http://127.0.0.1:8199/", untold)
    add("wrk-refused", "wrk 4.1.0", "wrk -t1 -c4 -d1s http://127.0.0.1:8199/", untold)

    # Redis
    for speed, pipeline, number in (("slow", 1, 4000), ("fast", 2, 8000)):
        base = [*REDIS, "-P", str(pipeline), "-n", str(number)]
        read = rate(r"throughput summary: ([\d.]+)", "requests")
        add(f"redis-plain-{speed}", "redis-benchmark 7.0.15", [*base, "-t", "get"], read)
        quiet = rate(r"GET: ([\d.]+) requests per second, p50", "requests")
        add(f"redis-quiet-{speed}", "redis-benchmark 7.0.15", [*base, "-t", "set,get", "-q"], quiet)
        csv = rate(r'"GET","([\d.]+)"', "requests")
        add(f"redis-csv-{speed}", "redis-benchmark 7.0.15", [*base, "-t", "get", "--csv"], csv)
    add("redis-failed", "redis-benchmark 7.0.15", [*REDIS, "-n", "1000", "-q", "LPOP", "counter"], untold)

    # stress-ng
    for speed, hertz in (("slow", 500), ("fast", 1000)):
        timer = f"stress-ng --timer 1 --timer-freq {hertz} -t 2"
        real = rate(
            r"metrc:.* timer +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)", "operations"
        )
        add(f"stress-ng-metrics-{speed}", "stress-ng 0.15.06", timer + " --metrics", real)
        add(f"stress-ng-brief-{speed}", "stress-ng 0.15.06", timer + " --metrics-brief", real)
    two = "stress-ng --cpu 1 --timer 1 --timer-freq 500 -t 2 --metrics-brief"
    add("stress-ng-two", "stress-ng 0.15.06", two, real)

    # openssl
    for speed, size in (("slow", 64), ("fast", 256)):
        base = f"openssl speed -seconds 1 -bytes {size} -elapsed -evp sha256"
        add(f"openssl-{speed}", "openssl 3.0.19", base, rate(r"^sha256 +([\d.]+)k", "B", 1000))
        add(f"openssl-mr-{speed}", "openssl 3.0.19", base + " -mr", rate(r"^\+F:\d+:sha256:([\d.]+)", "B"))
        user = f"openssl speed -seconds 1 -bytes {size} -evp sha256"
        add(f"openssl-user-{speed}", "openssl 3.0.19", user, rate(r"^sha256 +([\d.]+)k", "B", 1000))
    for speed, bits in (("slow", 3072), ("fast", 2048)):
        signs = rate(r"^rsa +\d+ bits +[\d.]+s +[\d.]+s +([\d.]+)", "operations")
        add(f"openssl-rsa-{speed}", "openssl 3.0.19", f"openssl speed -seconds 1 -elapsed rsa{bits}", signs)

    # 7-Zip
    mips = rate(r"^Tot: +\d+ +\d+ +(\d+)", "operations", 1e6)
    add("7z-slow", "7-Zip 26.02 (p7zip 16.02)", "7z b 1 -mmt1 -md12", mips)
    add("7z-fast", "7-Zip 26.02 (p7zip 16.02)", "7z b 1 -mmt2 -md12", mips)

    # iperf3
    for speed, mbit in (("slow", 400), ("fast", 800)):
        base = f"iperf3 -c 127.0.0.1 -p 5299 -t 2 -l 32K -b {mbit}M"
        text = rate(r"([\d.]+) Mbits/sec +receiver", "B", 1e6 / 8)
        add(f"iperf3-{speed}", "iperf 3.12", base, text)
        add(f"iperf3-json-{speed}", "iperf 3.12", base + " -J", iperf)
    for speed, mbit in (("slow", 100), ("fast", 200)):
        text = rate(r"([\d.]+) Mbits/sec .*receiver", "B", 1e6 / 8)
        base = f"iperf3 -u -c 127.0.0.1 -p 5299 -t 2 -l 8K -b {mbit}M"
        add(f"iperf3-udp-{speed}", "iperf 3.12", base, text)
    for speed, mbit in (("slow", 200), ("fast", 400)):
        text = rate(r"SUM.* ([\d.]+) Mbits/sec +receiver", "B", 1e6 / 8)
        base = f"iperf3 -c 127.0.0.1 -p 5299 -t 2 -l 32K -P 2 -b {mbit}M"
        add(f"iperf3-parallel-{speed}", "iperf 3.12", base, text)
    add("iperf3-refused", "iperf 3.12", "iperf3 -c 127.0.0.1 -p 5298 -J", untold)

    # qperf, perf bench
    for speed, size in (("slow", "1K"), ("fast", "4K")):
        base = f"qperf 127.0.0.1 -t 1 -m {size} tcp_bw"
        bandwidth = re.compile(r"bw += +([\d.]+) ([kMG])B/sec")
        add(f"qperf-{speed}", "qperf 0.4.11", base, lambda text: prefixed(bandwidth, text))
    for speed, loops in (("slow", 20000), ("fast", 10000)):
        base = f"perf bench sched pipe -l {loops}"
        add(f"perf-bench-{speed}", "perf 6.1.192", base, duration(r"Total time: ([\d.]+) \[sec\]"))

    # hyperfine
    for speed, seconds in (("slow", 0.1), ("fast", 0.05)):
        base = ["hyperfine", "-N", "-w", "1", "-r", "10", f"sleep {seconds}"]
        export = [*base, "--export-json", "/dev/stdout", "--style", "none"]
        add(f"hyperfine-{speed}", "hyperfine 1.15.0", base, duration(r"Time \(mean ± σ\): +([\d.]+) ms", 1e-3))
        add(f"hyperfine-json-{speed}", "hyperfine 1.15.0", export, hyper)
    two_commands = ["hyperfine", "-N", "-r", "5", "sleep 0.1", "sleep 0.05"]
    mean = duration(r"Time \(mean ± σ\): +([\d.]+) ms", 1e-3)
    add("hyperfine-two", "hyperfine 1.15.0", two_commands, mean)
    add("hyperfine-failed", "hyperfine 1.15.0", ["hyperfine", "-N", "-r", "3", "-i", "false"], untold)

    # google-benchmark
    for speed, sleep in (("slow", 20000), ("fast", 10000)):
        env = {"SLEEP_US": str(sleep)}
        base = [BENCH, "--benchmark_filter=^sleep", "--benchmark_min_time=0.5"]
        repeated = [*base, "--benchmark_repetitions=3"]
        json_form = "--benchmark_format=json"
        told = duration(r"^sleep\S* +([\d.]+) us", 1e-6)
        name = "google-benchmark 1.7.1"
        add(f"google-benchmark-{speed}", name, base, told, **env)
        add(f"google-benchmark-repeated-{speed}", name, repeated, duration(r"_median +([\d.]+) us", 1e-6), **env)
        add(f"google-benchmark-json-{speed}", name, [*base, json_form], google, **env)
        add(f"google-benchmark-json-repeated-{speed}", name, [*repeated, json_form], google, **env)
    add("google-benchmark-failed", "google-benchmark 1.7.1", [BENCH], untold, SLEEP_US="10000", FAIL="1")

    # Python
    for speed, seconds in (("slow", 0.04), ("fast", 0.02)):
        test = f"pytest -q {ALONE} --benchmark-max-time=0.3 {BENCHED}"
        env = {"SLEEP_S": str(seconds), "COLUMNS": "160"}
        columns = test + " --benchmark-columns=min,mean,stddev,median,ops,rounds"
        documented = test + " --benchmark-json=/dev/stdout"
        add(f"pytest-benchmark-{speed}", "pytest-benchmark 5.3.1", test, benched, **env)
        add(f"pytest-benchmark-columns-{speed}", "pytest-benchmark 5.3.1", columns, benched, **env)
        add(f"pytest-benchmark-json-{speed}", "pytest-benchmark 5.3.1", documented, benched_json, **env)
        statement = ["python", "-m", "timeit", "-s", "import time", f"time.sleep({seconds})"]
        add(f"timeit-{speed}", "timeit of Python 3.11.7", statement, duration(r"best of \d+: ([\d.]+) msec", 1e-3))
        perf = ["python", "-m", "pyperf", "timeit", "-p", "2", "-n", "2", "-w", "1", "-s", "import time"]
        perf += [f"time.sleep({seconds})"]
        add(f"pyperf-{speed}", "pyperf 2.11.0", perf, duration(r"Mean \+- std dev: ([\d.]+) ms", 1e-3))
    failing_test = f"pytest -q {ALONE} --benchmark-max-time=0.3 {BENCHED}"
    env = {"SLEEP_S": "0.02", "FAIL": "1", "COLUMNS": "160"}
    add("pytest-benchmark-failed", "pytest-benchmark 5.3.1", failing_test, untold, **env)

    # AIPerf, with a tokenizer in /tmp/tokenizer
    for speed, port in PORTS.items():
        add(
            f"aiperf-{speed}",
            "aiperf 0.13.0",
            f"aiperf profile --model mock --url http://127.0.0.1:{port} --endpoint-type chat --streaming"
            " --tokenizer /tmp/tokenizer --request-count 24 --concurrency 4 --isl 8 --osl 8"
            " --use-server-token-count --no-gpu-telemetry --no-server-metrics --artifact-dir /tmp/aiperf",
            exported(f"aiperf-{speed}"),
        )
        # SGLang's client alone: sglang/benchmark of its wheel in PYTHONPATH, no server package
        add(
            f"sglang-{speed}",
            "sglang.benchmark.serving 0.5.23",
            f"python -m sglang.benchmark.serving --backend vllm --base-url http://127.0.0.1:{port}"
            " --model mock --tokenizer /tmp/tokenizer --dataset-name random-ids --random-input-len 8"
            " --random-output-len 8 --random-range-ratio 1 --num-prompts 24 --max-concurrency 4"
            " --output-file /tmp/sglang.jsonl",
            sglang,
            HF_HUB_OFFLINE="1",
            TRANSFORMERS_VERBOSITY="error",
        )

    # From source; the truth is told by the stand-in itself
    for speed, seconds in (("slow", 0.08), ("fast", 0.04), ("failed", 0.04)):
        for tool, source in SOURCES.items():
            if speed != "failed" or tool in ("vllm-serve", "nccl-tests"):
                program = f"STAND-IN for {tool} (from its source, {source})"
                command = ["python", STAND_INS, tool, str(seconds)]
                add(f"{tool}-{speed}", program, [*command, "5"] if speed == "failed" else command, own)
    return rows


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
        rates = {key: found[key]["avg"] for key in ("request_throughput", "output_token_throughput")}
        rate_per_s = rates["request_throughput"]
        return {"rate_per_s": rate_per_s, "unit": "requests", "figures": rates, "counts": counts}

    return truth


def sglang(_text: str) -> dict[str, Any]:
    """Read the last line of the file that the client appends to."""
    exported = json.loads(Path("/tmp/sglang.jsonl").read_text().splitlines()[-1])
    counts = {"requests": 24, "completed": exported["completed"]}
    rates = {key: exported[key] for key in ("request_throughput", "output_throughput")}
    return {"rate_per_s": rates["request_throughput"], "unit": "requests", "figures": rates, "counts": counts}


def prefixed(pattern: re.Pattern[str], text: str) -> dict[str, Any]:
    """Read a rate with a decimal prefix."""
    value, prefix = pattern.findall(text)[-1]
    return {"rate_per_s": float(value) * UNITS[prefix + "B"], "unit": "B"}


def main(prefixes: list[str]) -> None:
    """Record the rows whose name begins with one of the prefixes."""
    server = str(Path(__file__).parent / "mock_server.py")
    servers = [subprocess.Popen([sys.executable, server, *one]) for one in SERVERS]
    try:
        time.sleep(1)
        for name, program, command, truth, env in tools():
            if not prefixes or name.startswith(tuple(prefixes)):
                record(name, program, command, truth, env)
    finally:
        for process in servers:
            process.terminate()


def record(
    name: str, program: str, command: list[str], truth: Truth, env: dict[str, str]
) -> None:
    """Record one program and write its truth into the header."""
    recorder = ["-m", "tests.command.recordings.record", name, f"--program={program}", "--"]
    folder = "/tmp/sysbench" if command[0] == "sysbench" and "fileio" in command else None
    where = {"PYTHONPATH": str(RECORDINGS.parents[2])}
    environment = {**os.environ, **where, **env}
    subprocess.run([sys.executable, *recorder, *command], env=environment, cwd=folder, check=True)
    finish(RECORDINGS / f"{name}.jsonl", truth, env)


def finish(path: Path, truth: Truth, env: dict[str, str]) -> None:
    """Put truth and variables into the header, and general names for host and folders."""
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    header = json.loads(first)
    chunks = [json.loads(line) for line in rest]
    try:
        if not header["truth"]:
            header["truth"] = truth("".join(text for _, _, text in chunks))
    except (LookupError, ValueError) as error:
        print(f"{path.stem}: no figure ({error!r})", file=sys.stderr)
    if env:
        header["variables"] = env
    lines = [json.dumps(line, ensure_ascii=False) for line in [header, *chunks]]
    clean = "\n".join(lines) + "\n"
    for private, general in (
        ("/tmp/google_benchmark", "google_benchmark"),
        (str(Path(__file__).parent), "programs"),
        (str(RECORDINGS.parents[2]), "."),
        (str(Path.home()), "/home/user"),
        (platform.node(), "host"),
        (os.environ.get("TOOLS_WORK", tempfile.gettempdir()), "/tmp"),
    ):
        clean = clean.replace(private, general)
    path.write_text(clean, encoding="utf-8")
    print(f"{header['truth']}\n", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
