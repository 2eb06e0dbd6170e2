"""Print what tools print that cannot run here: `python stand_ins.py TOOL SECONDS [FAIL]`.

Each function follows the print statements of the tool's source, named in its docstring, with real
clocks around real sleeps: one unit of work takes SECONDS. The truth goes to $RECORDING_TRUTH.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from tqdm import tqdm  # type: ignore[import-untyped]

REQUESTS = 24


def tell(**truth: object) -> None:
    """Write the truth for the recorder."""
    if "RECORDING_TRUTH" in os.environ:
        Path(os.environ["RECORDING_TRUTH"]).write_text(json.dumps(truth), encoding="utf-8")


def row(label: str, number: float | str, form: str = "") -> None:
    """Print a row as vLLM does."""
    print(f"{label:<40} {number:<10{form}}")


def vllm_serve(seconds: float, failed: int) -> None:
    """Follow vllm/benchmarks/serve.py at def9ce85."""
    print("Starting initial single prompt test run...")
    time.sleep(0.3)
    print("Initial test run completed.")
    print("Starting main benchmark run...")
    print("Traffic request rate: inf")
    print("Burstiness factor: 1.0 (Poisson process)")
    print("Maximum request concurrency: 1")
    began_s = time.perf_counter()
    bar = tqdm(total=REQUESTS)
    for _ in range(REQUESTS):
        time.sleep(seconds)
        bar.update(1)
    bar.close()
    passed_s = time.perf_counter() - began_s
    completed = REQUESTS - failed
    print(f"{' Serving Benchmark Result ':=^50}")
    row("Successful requests:", completed)
    row("Failed requests:", failed)
    row("Maximum request concurrency:", 1)
    row("Benchmark duration (s):", passed_s, ".2f")
    row("Total input tokens:", completed * 8)
    row("Total generated tokens:", completed * 16)
    row("Request throughput (req/s):", completed / passed_s, ".2f")
    row("Output token throughput (tok/s):", completed * 16 / passed_s, ".2f")
    row("Peak output token throughput (tok/s):", 16 // seconds, ".2f")
    row("Peak concurrent requests:", 2, ".2f")
    row("Total token throughput (tok/s):", completed * 24 / passed_s, ".2f")
    for name, header, share in (
        ("TTFT", "Time to First Token", 0.1),
        ("TPOT", "Time per Output Token (excl. 1st token)", 0.06),
        ("ITL", "Inter-token Latency", 0.06),
    ):
        print(f"{header:-^50}")
        for kind in ("Mean", "Median", "P99"):
            row(f"{kind} {name} (ms):", seconds * share * 1000, ".2f")
    print("=" * 50)
    counts = {"completed": completed, "failed": failed}
    figures = {"output_tokens": completed * 16 / passed_s, "tokens": completed * 24 / passed_s}
    tell(rate_per_s=completed / passed_s, unit="requests", figures=figures, counts=counts)


def vllm_throughput(seconds: float, _failed: int) -> None:
    """Follow vllm/benchmarks/throughput.py at 02028314, with the bars of LLM.generate."""
    for _ in tqdm(range(REQUESTS), desc="Adding requests"):
        time.sleep(0.001)
    began_s = time.perf_counter()
    bar = tqdm(total=REQUESTS, desc="Processed prompts", dynamic_ncols=True)
    bar.postfix = f"est. speed input: {0:.2f} toks/s, output: {0:.2f} toks/s"
    for number in range(1, REQUESTS + 1):
        time.sleep(seconds)
        speed = number * 8 / (time.perf_counter() - began_s)
        bar.postfix = f"est. speed input: {speed:.2f} toks/s, output: {speed * 2:.2f} toks/s"
        bar.update(1)
    bar.close()
    passed_s = time.perf_counter() - began_s
    rate = REQUESTS / passed_s
    print(
        f"Throughput: {rate:.2f} requests/s, {rate * 24:.2f} total tokens/s, {rate * 16:.2f} "
        "output tokens/s"
    )
    print(f"Total num prompt tokens:  {REQUESTS * 8}")
    print(f"Total num output tokens:  {REQUESTS * 16}")
    figures = {"output_tokens": rate * 16, "tokens": rate * 24}
    tell(rate_per_s=rate, unit="requests", figures=figures)


def vllm_latency(seconds: float, _failed: int) -> None:
    """Follow vllm/benchmarks/latency.py at 00cae075."""
    print("Warming up...")
    for _ in tqdm(range(4), desc="Warmup iterations"):
        time.sleep(seconds * 1.5)
    latencies = []
    for _ in tqdm(range(REQUESTS), desc="Bench iterations"):
        began_s = time.perf_counter()
        time.sleep(seconds)
        latencies.append(time.perf_counter() - began_s)
    mean_s = sum(latencies) / len(latencies)
    spread_s = (sum((one - mean_s) ** 2 for one in latencies) / len(latencies)) ** 0.5
    print(f"Avg latency: {mean_s} seconds")
    print(f"Std latency: {spread_s} seconds")
    for percent in (10, 25, 50, 75, 90, 99):
        percentile_s = sorted(latencies)[percent * len(latencies) // 100]
        print(f"{percent}% percentile latency: {percentile_s} seconds")
    tell(run_s=mean_s)


def nccl(seconds: float, wrong: int) -> None:
    """Follow nccl-tests src/util.cu at a0b82b22 (2.19.6): four sizes of an all-reduce."""
    print("# nccl-tests version 2.19.6 nccl-headers=22904 nccl-library=22904")
    print("# Collective test starting: all_reduce_perf")
    print(
        "# nThread 1 nGpus 8 minBytes 1048576 maxBytes 8388608 step: 2(factor) warmup iters: 1"
        " iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0"
    )
    print("#\n# Using devices")
    for rank in range(8):
        name = f"device {rank:2d} [0000:{rank + 1:02x}:00] NVIDIA H100 80GB HBM3"
        print(f"#  Rank {rank:2d} Group  0 Pid   4242 on {'host':>10} {name}")
    print("#")
    blank = " ".join(f"{'':>{width}} " for width in (10, 12, 8, 6, 6))
    print(f"# {blank}          out-of-place                       in-place          ")
    columns = ("time", "algbw", "busbw", "#wrong")
    for head, cells in (
        (("size", "count", "type", "redop", "root"), columns),
        (("(B)", "(elements)", "", "", ""), ("(us)", "(GB/s)", "(GB/s)", "")),
    ):
        words = [f"{word:>{width}}" for word, width in zip(head, (10, 12, 8, 6, 6), strict=True)]
        words += [
            f"{word:>{width}}" for word, width in zip(cells * 2, (7, 6, 6, 6) * 2, strict=True)
        ]
        print("# " + "  ".join(words) + " ")
    busses = []
    for power in range(4):
        size = 2**20 * 2**power
        print(f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}  {-1:6d}", end="")
        for _place in range(2):
            began_s = time.perf_counter()
            time.sleep(seconds * 2**power)
            passed_s = (time.perf_counter() - began_s) / 1000
            algbw = size / passed_s / 1e9
            busses.append(algbw * 2 * 7 / 8)
            printed = [fitted(passed_s * 1e6, 7), fitted(algbw, 6), fitted(busses[-1], 6)]
            print("  " + "  ".join(printed) + f"  {wrong if power == 3 else 0:6g}", end="")
        print(flush=True)
    mean = sum(busses) / len(busses)
    bad = 2 if wrong else 0
    print(f"# {'Out of bounds values':<20} : {bad} {'FAILED' if bad else 'OK'}")
    print(f"# {'Avg bus bandwidth':<20} : {mean:g} ")
    print("#\n# Collective test concluded: all_reduce_perf\n\n#")
    tell(rate_per_s=mean * 1e9, unit="B", counts={"wrong": wrong * 2})
    sys.exit(1 if bad else 0)


def fitted(value: float, width: int) -> str:
    """Format as getFloatStr of nccl-tests."""
    for digits in (2, 1, 0):
        text = f"{value:{width}.{digits}f}"
        if len(text) <= width:
            return text
    return f"{value:{width}.0e}"


def llama(seconds: float, form: str) -> None:
    """Follow llama.cpp tools/llama-bench/llama-bench.cpp at 0104b151: pp512 and tg128."""
    rows = []
    if form == "md":
        print(
            f"| {'model':<30} | {'size':>10} | {'params':>10} | {'backend':<10} | {'threads':>7} |",
            end="",
        )
        print(f" {'test':>15} | {'t/s':>20} |")
        print(f"| {'-' * 29}- | {'-' * 9}: | {'-' * 9}: | {'-' * 9}- | {'-' * 6}: |", end="")
        print(f" {'-' * 14}: | {'-' * 19}: |")
    elif form == "json":
        print("[")
    for prompt, generated, share in ((512, 0, 0.5), (0, 128, 1.0)):
        samples_ns = []
        for _ in range(5):
            began_ns = time.perf_counter_ns()
            time.sleep(seconds * share)
            samples_ns.append(time.perf_counter_ns() - began_ns)
        rates = [1e9 * (prompt + generated) / sample for sample in samples_ns]
        rows.append(measured(prompt, generated, samples_ns, rates))
        print_llama(rows, form)
    if form == "md":
        print("\nbuild: 0104b151 (9700)")
    elif form == "json":
        print("\n]")
    figures = {
        f"pp{one['n_prompt']}" if one["n_prompt"] else f"tg{one['n_gen']}": one["avg_ts"]
        for one in rows
    }
    tell(rate_per_s=rows[-1]["avg_ts"], unit="tokens", figures=figures)


def measured(
    prompt: int, generated: int, samples_ns: list[int], rates: list[float]
) -> dict[str, object]:
    """Build the fields of one test."""
    mean, mean_ns = sum(rates) / len(rates), sum(samples_ns) / len(samples_ns)
    spread = (sum((one - mean) ** 2 for one in rates) / (len(rates) - 1)) ** 0.5
    spread_ns = (sum((one - mean_ns) ** 2 for one in samples_ns) / (len(samples_ns) - 1)) ** 0.5
    return {
        "build_commit": "0104b151",
        "build_number": 9700,
        "cpu_info": "AMD EPYC",
        "gpu_info": "",
        "backends": "CPU",
        "model_filename": "model.gguf",
        "model_type": "llama 1B Q4_0",
        "model_size": 770928640,
        "model_n_params": 1235814400,
        "n_batch": 2048,
        "n_ubatch": 512,
        "n_threads": 2,
        "n_prompt": prompt,
        "n_gen": generated,
        "n_depth": 0,
        "test_time": "2026-11-28T12:00:00Z",
        "avg_ns": round(mean_ns),
        "stddev_ns": round(spread_ns),
        "avg_ts": round(mean, 6),
        "stddev_ts": round(spread, 6),
        "samples_ns": samples_ns,
        "samples_ts": [float(f"{one:g}") for one in rates],
    }


def print_llama(rows: list[dict[str, object]], form: str) -> None:
    """Print the last test."""
    one = rows[-1]
    listed = {"samples_ns", "samples_ts"}
    if form == "md":
        test = f"pp{one['n_prompt']}" if one["n_prompt"] else f"tg{one['n_gen']}"
        figure = f"{one['avg_ts']:.2f} ± {one['stddev_ts']:.2f}"
        print(
            f"| {one['model_type']:<30} | {'735.22 MiB':>10} | {'1.24 B':>10} | {'CPU':<10} |",
            end="",
        )
        print(f" {one['n_threads']:>7} | {test:>15} | {figure:>20} |", flush=True)
    elif form == "csv":
        fields = [key for key in one if key not in listed]
        if len(rows) == 1:
            print(",".join(fields))
        print(",".join(f'"{one[key]}"' for key in fields), flush=True)
    elif form == "jsonl":
        print(json.dumps(one), flush=True)
    else:
        if len(rows) > 1:
            print(",")
        fields = [f'    "{key}": {json.dumps(value)}' for key, value in one.items()]
        print("  {\n" + ",\n".join(fields) + "\n  }", end="", flush=True)


def trtllm(seconds: float, _failed: int) -> None:
    """Follow tensorrt_llm/bench/dataclasses/reporting.py as its documentation shows it."""
    began_s = time.perf_counter()
    for _ in range(REQUESTS):
        time.sleep(seconds)
    passed_s = time.perf_counter() - began_s
    rate = REQUESTS / passed_s
    print("\n===========================================================")
    print("= PERFORMANCE OVERVIEW \n===========================================================")
    print(f"Request Throughput (req/sec):                     {rate:.4f}")
    print(f"Total Output Throughput (tokens/sec):             {rate * 16:.4f}")
    print(f"Total Token Throughput (tokens/sec):              {rate * 24:.4f}")
    print(f"Total Latency (ms):                               {passed_s * 1000:.4f}")
    print(f"Average request latency (ms):                     {seconds * 1000:.4f}")
    print(f"Per User Output Throughput [w/ ctx] (tps/user):   {16 / seconds:.4f}")
    print(f"Per GPU Output Throughput (tps/gpu):              {rate * 16:.4f}")
    print("\n-- Request Latency Breakdown (ms) -----------------------\n")
    print(f"[Latency] P50    : {seconds * 1000:.4f}")
    print(f"[Latency] AVERAGE: {seconds * 1000:.4f}\n")
    print("===========================================================")
    figures = {"output_tokens": rate * 16, "tokens": rate * 24}
    tell(rate_per_s=rate, unit="requests", figures=figures)


def mllog(seconds: float, _failed: int) -> None:
    """Follow mlperf_logging/mllog: one JSON object behind `:::MLLOG` per event."""
    began_ms = time.time() * 1000
    for step in range(REQUESTS + 1):
        if step:
            time.sleep(seconds)
        key = "run_start" if step == 0 else "train_step"
        event = {
            "namespace": "",
            "time_ms": round(time.time() * 1000),
            "event_type": "INTERVAL_START" if step == 0 else "POINT_IN_TIME",
            "key": key,
            "value": None if step == 0 else 4.0 - step / 10,
            "metadata": {"file": "train.py", "lineno": 42, "step_num": step},
        }
        print(f":::MLLOG {json.dumps(event)}", flush=True)
    tell(step_s=(time.time() * 1000 - began_ms) / 1000 / REQUESTS)


def main() -> None:
    """Print the named tool's output."""
    tool, seconds = sys.argv[1], float(sys.argv[2])
    failed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    if tool.startswith("llama-"):
        llama(seconds, tool.removeprefix("llama-"))
        return
    tools = {
        "vllm-serve": vllm_serve,
        "vllm-throughput": vllm_throughput,
        "vllm-latency": vllm_latency,
        "nccl-tests": nccl,
        "trtllm-bench": trtllm,
        "mllog": mllog,
    }
    tools[tool](seconds, failed)


if __name__ == "__main__":
    main()
