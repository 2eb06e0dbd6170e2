"""List the recordings of benchmark tools: name, command, truth, environment variables."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.command.recordings.programs import truths
from tests.command.recordings.programs.truths import Truth, both, duration, quotient, rate

HERE = Path(__file__).parent
PORTS = {"fast": "8110", "slow": "8120", "failed": "8119"}
MIB = 2**20
PROGRAMS = {
    "fio": "fio 3.33",
    "sysbench": "sysbench 1.0.20",
    "pgbench": "pgbench 15.18",
    "wrk": "wrk 4.1.0",
    "ab": "ab 2.3 (apache2-utils 2.4)",
    "hey": "hey 0.1.4",
    "vegeta": "vegeta 12.13.0",
    "redis": "redis-benchmark 7.0.15",
    "stress-ng": "stress-ng 0.15.06",
    "openssl": "openssl 3.0.19",
    "7z": "7-Zip 26.02 (p7zip 16.02)",
    "iperf3": "iperf 3.12",
    "qperf": "qperf 0.4.11",
    "perf-bench": "perf 6.1.192",
    "hyperfine": "hyperfine 1.15.0",
    "google-benchmark": "google-benchmark 1.7.1",
    "pytest-benchmark": "pytest-benchmark 5.3.1",
    "timeit": "timeit of Python 3.11.7",
    "pyperf": "pyperf 2.11.0",
    "torch-benchmark": "torch.utils.benchmark of torch 2.15.0+cu132",
    "aiperf": "aiperf 0.13.0",
    "sglang": "sglang.benchmark.serving 0.5.23",
}
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


class Row(NamedTuple):
    """One recording."""

    name: str
    command: list[str]
    truth: Truth
    variables: dict[str, str]

    @property
    def program(self) -> str:
        """The program and its version."""
        for tool, source in SOURCES.items():
            if self.name.startswith(f"{tool}-"):
                return f"STAND-IN for {tool} (from its source, {source})"
        return next(
            program for tool, program in PROGRAMS.items() if self.name.startswith(f"{tool}-")
        )


def row(name: str, command: str, truth: Truth, **variables: str) -> Row:
    """Build a row from a command line."""
    return Row(name, shlex.split(command), truth, variables)


def disk() -> Iterator[Row]:
    """List fio's recordings."""
    quiet = "--disable_lat=1 --disable_clat=1 --disable_slat=1"
    timed = f"--bs=64k --time_based --runtime=2 {quiet}"
    base = f"fio --name=job --size=16m --filename=/dev/shm/fio.dat {timed}"
    null = f"fio --name=job --size=64g --ioengine=null {timed} --rw=read"
    text = truths.fio_text(65536)
    for speed, mib in (("slow", 50), ("fast", 100)):
        read = f"{base} --rw=read --rate={mib}m"
        mixed = f"{base} --rw=randrw --rwmixread=75 --rate={mib}m,{mib // 2}m"
        jobs = f"--numjobs=2 --group_reporting --rate={mib // 2}m"
        yield row(f"fio-read-{speed}", read, text)
        yield row(f"fio-write-{speed}", f"{base} --rw=write --rate={mib}m", text)
        yield row(f"fio-randrw-{speed}", mixed, text)
        yield row(f"fio-group-{speed}", f"{base} --rw=read {jobs}", text)
        yield row(f"fio-status-{speed}", f"{read} --status-interval=1", text)
        yield row(f"fio-json-{speed}", f"{mixed} --output-format=json", truths.fio_json)
        yield row(f"fio-jsonplus-{speed}", f"{mixed} --output-format=json+", truths.fio_json)
        yield row(f"fio-both-{speed}", f"{mixed} --output-format=normal,json", truths.fio_json)
    for speed, mib in (("slow", 1500), ("fast", 3000)):
        yield row(f"fio-gigabyte-{speed}", f"{null} --rate={mib}m", text)
    two = f"{base} --rate=50m --rw=read --name=other"
    two += f" --size=16m --filename=/dev/shm/fio.dat {timed} --rw=write --rate=25m"
    yield row("fio-jobs-slow", two, truths.fio_total)
    yield row("fio-null-fast", f"{null} --runtime=1", text)
    full = "fio --name=job --rw=write --bs=64k --size=1m --filename=/dev/full --ioengine=sync"
    on = f"{full} --continue_on_error=all --time_based --runtime=1 --thinktime=10ms"
    yield row("fio-failed", full, truths.untold)
    yield row("fio-failed-goes-on", on, truths.untold)
    yield row("fio-failed-json", f"{on} --output-format=json", truths.untold)


def sysbench() -> Iterator[Row]:
    """List sysbench's recordings."""
    counted, passed = r"total number of events: +(\d+)", r"total time: +([\d.]+)s"
    events = quotient(counted, passed, "events")
    files = "--file-total-size=16M --file-num=2 --file-test-mode=rndrd --report-interval=1"
    for speed, number in (("slow", 100), ("fast", 200)):
        limit = f"--time=2 --rate={number} run"
        memory = quotient(counted, passed, "B", MIB)
        read = rate(r"read, MiB/s: +([\d.]+)", "B", MIB)
        yield row(f"sysbench-cpu-{speed}", f"sysbench cpu --cpu-max-prime=2000 {limit}", events)
        yield row(
            f"sysbench-memory-{speed}", f"sysbench memory --memory-block-size=1M {limit}", memory
        )
        yield row(
            f"sysbench-threads-{speed}", f"sysbench threads --thread-yields=10 {limit}", events
        )
        yield row(f"sysbench-fileio-{speed}", f"sysbench fileio {files} {limit}", read)


def databases() -> Iterator[Row]:
    """List the recordings of pgbench and redis-benchmark."""
    tps = both(
        rate(r"^tps = ([\d.]+)", "transactions"),
        failed=r"number of failed transactions: (\d+)",
        processed=r"actually processed: (\d+)",
    )
    for speed, sleep_us in (("slow", 20000), ("fast", 10000)):
        script = f"pgbench -n -c 2 -Dsleep={sleep_us} -f {HERE}/pgbench_sleep.sql"
        yield row(f"pgbench-time-{speed}", f"{script} -T 3", tps)
        yield row(f"pgbench-count-{speed}", f"{script} -t 100", tps)
        yield row(f"pgbench-progress-{speed}", f"{script} -T 3 -P 1", tps)
    conflict = f"pgbench -n -c 2 -f {HERE}/pgbench_conflict.sql -T 2 --failures-detailed"
    yield row("pgbench-failed", conflict, tps)
    yield row("pgbench-aborted", f"pgbench -n -c 2 -f {HERE}/pgbench_error.sql -t 40", tps)
    redis = "redis-benchmark -p 6399 -c 4"
    for speed, pipeline, number in (("slow", 1, 4000), ("fast", 2, 8000)):
        base = f"{redis} -P {pipeline} -n {number}"
        summary = rate(r"throughput summary: ([\d.]+)", "requests")
        last = rate(r"GET: ([\d.]+) requests per second, p50", "requests")
        yield row(f"redis-plain-{speed}", f"{base} -t get", summary)
        yield row(f"redis-quiet-{speed}", f"{base} -t set,get -q", last)
        yield row(
            f"redis-csv-{speed}", f"{base} -t get --csv", rate(r'"GET","([\d.]+)"', "requests")
        )
    yield row("redis-failed", f"{redis} -n 1000 -q LPOP counter", truths.untold)


def http() -> Iterator[Row]:
    """List the recordings of HTTP load generators."""
    wrk = both(
        quotient(r"(\d+) requests in", r"requests in ([\d.]+)s", "requests"),
        requests=r"(\d+) requests in",
        failed=r"Non-2xx or 3xx responses: (\d+)",
    )
    ab = both(
        quotient(r"Complete requests: +(\d+)", r"Time taken for tests: +([\d.]+)", "requests"),
        requests=r"Complete requests: +(\d+)",
        failed=r"Failed requests: +(\d+)",
        non_2xx=r"Non-2xx responses: +(\d+)",
    )
    hey = both(
        rate(r"Requests/sec:\s+([\d.]+)", "requests"),
        ok=r"\[200\]\s+(\d+) responses",
        failed=r"\[500\]\s+(\d+) responses",
    )
    vegeta = both(
        rate(r"\[total, rate, throughput\] +\d+, [\d.]+, ([\d.]+)", "requests"),
        requests=r"\[total, rate, throughput\] +(\d+)",
        success_percent=r"\[ratio\] +([\d.]+)%",
    )
    for speed, port in PORTS.items():
        url = f"http://127.0.0.1:{port}/"
        attack = "vegeta attack -rate=0 -max-workers=4 -duration=2s"
        yield row(f"wrk-{speed}", f"wrk -t1 -c4 -d2s {url}", wrk)
        yield row(f"ab-{speed}", f"ab -n 100 -c 4 {url}", ab)
        yield row(f"hey-{speed}", f"hey -n 100 -c 4 {url}", hey)
        yield row(f"hey-time-{speed}", f"hey -z 2s -c 4 {url}", hey)
        yield row(f"vegeta-{speed}", f"sh -c 'echo GET {url} | {attack} | vegeta report'", vegeta)
    yield row("wrk-latency-fast", "wrk -t1 -c4 -d2s --latency http://127.0.0.1:8110/", wrk)
    yield row("ab-refused", "ab -n 20 -c 2 http://127.0.0.1:8199/", truths.untold)
    yield row("wrk-timeout", "wrk -t1 -c2 -d4s --timeout 1s http://127.0.0.1:8125/", truths.untold)
    yield row("hey-refused", "hey -n 20 -c 2 http://127.0.0.1:8199/", truths.untold)
    refused = "echo GET http://127.0.0.1:8199/ | vegeta attack -rate=5 -duration=1s | vegeta report"
    yield row("vegeta-refused", f"sh -c '{refused}'", truths.untold)
    yield row("wrk-refused", "wrk -t1 -c4 -d1s http://127.0.0.1:8199/", truths.untold)


def processor() -> Iterator[Row]:
    """List the recordings of stress-ng, openssl, 7z and perf bench."""
    real = rate(r"metrc:.* timer +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)", "operations")
    for speed, hertz in (("slow", 500), ("fast", 1000)):
        timer = f"stress-ng --timer 1 --timer-freq {hertz} -t 2"
        yield row(f"stress-ng-metrics-{speed}", f"{timer} --metrics", real)
        yield row(f"stress-ng-brief-{speed}", f"{timer} --metrics-brief", real)
    two = "stress-ng --cpu 1 --timer 1 --timer-freq 500 -t 2 --metrics-brief"
    yield row("stress-ng-two", two, real)
    table = rate(r"^sha256 +([\d.]+)k", "B", 1000)
    machine = rate(r"^\+F:\d+:sha256:([\d.]+)", "B")
    for speed, size in (("slow", 64), ("fast", 256)):
        user = f"openssl speed -seconds 1 -bytes {size} -evp sha256"
        elapsed = f"openssl speed -seconds 1 -bytes {size} -elapsed -evp sha256"
        yield row(f"openssl-{speed}", elapsed, table)
        yield row(f"openssl-mr-{speed}", f"{elapsed} -mr", machine)
        yield row(f"openssl-user-{speed}", user, table)
    signs = rate(r"^rsa +\d+ bits +[\d.]+s +[\d.]+s +([\d.]+)", "operations")
    for speed, bits in (("slow", 3072), ("fast", 2048)):
        yield row(f"openssl-rsa-{speed}", f"openssl speed -seconds 1 -elapsed rsa{bits}", signs)
    mips = rate(r"^Tot: +\d+ +\d+ +(\d+)", "operations", 1e6)
    for speed, threads in (("slow", 1), ("fast", 2)):
        yield row(f"7z-{speed}", f"7z b 1 -mmt{threads} -md12", mips)
    total = duration(r"Total time: ([\d.]+) \[sec\]")
    for speed, loops in (("slow", 20000), ("fast", 10000)):
        yield row(f"perf-bench-{speed}", f"perf bench sched pipe -l {loops}", total)


def network() -> Iterator[Row]:
    """List the recordings of iperf3 and qperf."""
    base = "iperf3 -c 127.0.0.1 -p 5299 -t 2"
    received = r"([\d.]+) Mbits/sec .*receiver"
    one, summed = rate(received, "B", 1e6 / 8), rate(r"SUM.* " + received, "B", 1e6 / 8)
    for speed, mbit in (("slow", 400), ("fast", 800)):
        yield row(f"iperf3-{speed}", f"{base} -l 32K -b {mbit}M", one)
        yield row(f"iperf3-json-{speed}", f"{base} -l 32K -b {mbit}M -J", truths.iperf)
        yield row(f"iperf3-udp-{speed}", f"{base} -u -l 8K -b {mbit // 4}M", one)
        yield row(f"iperf3-parallel-{speed}", f"{base} -l 32K -P 2 -b {mbit // 2}M", summed)
    yield row("iperf3-refused", "iperf3 -c 127.0.0.1 -p 5298 -J", truths.untold)
    for speed, size in (("slow", "1K"), ("fast", "4K")):
        yield row(f"qperf-{speed}", f"qperf 127.0.0.1 -t 1 -m {size} tcp_bw", truths.qperf)


def timers() -> Iterator[Row]:
    """List the recordings of hyperfine, google-benchmark, pytest-benchmark, timeit and pyperf."""
    mean = duration(r"Time \(mean ± .\): +([\d.]+) ms", 1e-3)
    for speed, seconds in (("slow", 0.1), ("fast", 0.05)):
        base = f"hyperfine -N -w 1 -r 10 'sleep {seconds}'"
        exported = f"{base} --export-json /dev/stdout --style none"
        yield row(f"hyperfine-{speed}", base, mean)
        yield row(f"hyperfine-json-{speed}", exported, truths.hyper)
    yield row("hyperfine-two", "hyperfine -N -r 5 'sleep 0.1' 'sleep 0.05'", mean)
    yield row("hyperfine-failed", "hyperfine -N -r 3 -i false", truths.untold)
    first, median = (
        duration(r"^sleep\S* +([\d.]+) us", 1e-6),
        duration(r"_median +([\d.]+) us", 1e-6),
    )
    for speed, sleep_us in (("slow", "20000"), ("fast", "10000")):
        base = "google_benchmark --benchmark_filter=^sleep --benchmark_min_time=0.5"
        name, repeated = "google-benchmark", f"{base} --benchmark_repetitions=3"
        document = "--benchmark_format=json"
        google = truths.google
        yield row(f"{name}-{speed}", base, first, SLEEP_US=sleep_us)
        yield row(f"{name}-json-{speed}", f"{base} {document}", google, SLEEP_US=sleep_us)
        yield row(f"{name}-repeated-{speed}", repeated, median, SLEEP_US=sleep_us)
        repeated += f" {document}"
        yield row(f"{name}-json-repeated-{speed}", repeated, google, SLEEP_US=sleep_us)
    yield row(
        "google-benchmark-failed", "google_benchmark", truths.untold, SLEEP_US="10000", FAIL="1"
    )
    alone = "-c /dev/null --rootdir=/tmp --noconftest -p no:cacheprovider"
    test = f"pytest -q {alone} --benchmark-max-time=0.3 {HERE}/sleeping_benchmark.py"
    columns = "--benchmark-columns=min,mean,stddev,median,ops,rounds"
    document = "--benchmark-json=/dev/stdout"
    for speed, seconds in (("slow", 0.04), ("fast", 0.02)):
        env = {"SLEEP_S": str(seconds), "COLUMNS": "160"}
        loop = f"-s 'import time' 'time.sleep({seconds})'"
        best = duration(r"best of \d+: ([\d.]+) msec", 1e-3)
        dev = duration(r"Mean \+- std dev: ([\d.]+) ms", 1e-3)
        yield row(f"pytest-benchmark-{speed}", test, truths.benched, **env)
        yield row(f"pytest-benchmark-columns-{speed}", f"{test} {columns}", truths.benched, **env)
        yield row(
            f"pytest-benchmark-json-{speed}", f"{test} {document}", truths.benched_json, **env
        )
        yield row(f"timeit-{speed}", f"python -m timeit {loop}", best)
        imported = "from torch.utils.benchmark import Timer"
        timer = f"Timer('time.sleep({seconds})', setup='import time').blocked_autorange()"
        per_call = duration(r"^  (?:Median: )?([\d.]+) ms", 1e-3)
        yield row(f"torch-benchmark-{speed}", f'python -c "{imported}; print({timer})"', per_call)
        yield row(f"pyperf-{speed}", f"python -m pyperf timeit -p 2 -n 2 -w 1 {loop}", dev)
    env = {"SLEEP_S": "0.02", "COLUMNS": "160"}
    yield row("pytest-benchmark-failed", test, truths.untold, FAIL="1", **env)


def models() -> Iterator[Row]:
    """List the recordings of clients of model servers, and the stand-ins."""
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    for speed, port in PORTS.items():
        url = f"http://127.0.0.1:{port} --tokenizer /tmp/tokenizer"
        aiperf = f"aiperf profile --model mock --url {url} --endpoint-type chat --streaming"
        aiperf += " --request-count 24 --concurrency 4 --isl 8 --osl 8 --use-server-token-count"
        aiperf += " --no-gpu-telemetry --no-server-metrics --artifact-dir /tmp/aiperf"
        sglang = f"python -m sglang.benchmark.serving --backend vllm --base-url {url} --model mock"
        sglang += " --dataset-name random-ids --random-input-len 8 --random-output-len 8"
        sglang += " --random-range-ratio 1 --num-prompts 24 --max-concurrency 4"
        sglang += f" --output-file {truths.SGLANG_EXPORT}"
        yield row(f"aiperf-{speed}", aiperf, truths.exported(f"aiperf-{speed}"))
        yield row(f"sglang-{speed}", sglang, truths.sglang, **offline)
    for tool in SOURCES:
        base = f"python {HERE}/stand_ins.py {tool}"
        yield row(f"{tool}-slow", f"{base} 0.08", truths.own)
        yield row(f"{tool}-fast", f"{base} 0.04", truths.own)
        if tool in {"vllm-serve", "nccl-tests"}:
            yield row(f"{tool}-failed", f"{base} 0.04 5", truths.own)


def rows() -> Iterator[Row]:
    """List all recordings."""
    for group in (disk, sysbench, databases, http, processor, network, timers, models):
        yield from group()
