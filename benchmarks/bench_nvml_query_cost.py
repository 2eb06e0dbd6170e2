"""What does a look at a GPU cost, and how often is there something new to see?

For each query of NVML that the telemetry makes: the time one call takes, and the time after which its value really changes while the GPU
works and rests in turns. Hypotheses: a call takes 1 to 1000 µs, and 10 looks a second are more than most counters are worth; a monitor
that asks faster sees the same value again. Nothing is measured of an idle machine, so leave it alone meanwhile. Run alone:
`pytest benchmarks/bench_nvml_query_cost.py`; without a GPU all of it is skipped.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import cache, partial
from typing import TYPE_CHECKING

import pytest

from fixtures.gpu import changing, compiler, uneven
from fixtures.node.sources import SourceMissing
from fixtures.node.sources._gpm import Counters
from fixtures.node.sources.nvml import SENSORS, initialised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

SENSOR_OF = {"+".join(field.column for field in sensor.fields): sensor for sensor in SENSORS}
GPM = "gpm"
PROCESSES = "running_processes"
ROUNDS, FOLLOWED_S = 300, 5.0


@cache
def _no_gpu() -> str | None:
    try:
        nvml = initialised()
        return None if nvml.nvmlDeviceGetCount() else "no NVIDIA GPU: the driver shows none"
    except SourceMissing as missing:
        return f"no NVIDIA GPU: {missing}"


@pytest.fixture(scope="module")
def load() -> Iterator[uneven.Load]:
    """Something to see; not there where CUDA cannot be used."""
    if why := _no_gpu():
        pytest.skip(why)
    if why := compiler.missing():
        without = uneven.Load()
        without.why = why
        yield without
        return
    with uneven.load() as working:
        yield working


@pytest.mark.parametrize("query", [*SENSOR_OF, PROCESSES, GPM])
def bench_query(benchmark: BenchmarkFixture, query: str, load: uneven.Load) -> None:
    """A query of GPU 0: 300 calls are timed, then it is asked for five seconds as fast as it answers."""
    read = _query(query)
    read()
    benchmark.pedantic(read, rounds=ROUNDS, warmup_rounds=10)
    seen = changing.follow(read, FOLLOWED_S)
    missing = {} if load.why is None else {"load": load.why}
    if seen.period_s is None:
        missing["period_s"] = f"its value changed {seen.changes} times in {FOLLOWED_S:g} s"
    benchmark.extra_info["updates"] = {**asdict(seen), "missing": missing}


def _query(name: str) -> Callable[[], object]:
    """The call that the telemetry would make; skipped where this GPU has it not."""
    nvml = initialised()
    gpu = nvml.nvmlDeviceGetHandleByIndex(0)
    if name == PROCESSES:
        return lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(gpu))
    if name == GPM:
        try:
            counters = Counters(nvml, gpu)
        except SourceMissing as missing:
            pytest.skip(str(missing))
        return counters.peek  # since the first reading: it changes whenever the counters do
    why = ""
    for read in SENSOR_OF[name].reads:
        try:
            read(nvml, gpu)
        except nvml.NVMLError as error:
            why = str(error)
        else:
            return partial(read, nvml, gpu)
    pytest.skip(f"this GPU has no {name}: {why}")
