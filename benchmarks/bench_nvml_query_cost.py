"""What does a look at a GPU cost, and how often is there something new to see?

For each query of NVML that the telemetry makes: the time one call takes, and the time after which its value really changes while the GPU
works and rests in turns. Hypotheses: a call takes 1 to 1000 µs, and 10 looks a second are more than most counters are worth; a monitor
that asks faster sees the same value again. Nothing is measured of an idle machine, so leave it alone meanwhile. Run alone:
`pytest benchmarks/bench_nvml_query_cost.py`; without a GPU all of it is skipped.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import pytest

from fixtures.studies.gpu import device
from fixtures.studies.gpu import load as gpu_load
from fixtures.telemetry import nvml
from fixtures.telemetry.gpu_sources import SENSORS
from fixtures.telemetry.sources import SourceMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

QUERY_OF = {"+".join(field.column for field in fields): query for query, fields in SENSORS.items()}
GPM = "gpm"
PROCESSES = "running_processes"
ROUNDS, FOLLOWED_S = 300, 5.0


@pytest.fixture(scope="module")
def load() -> Iterator[gpu_load.Load]:
    """Something to see; not there where CUDA cannot be used."""
    if reason := nvml.unavailable_reason():
        pytest.skip(reason)
    if reason := device.unavailable_reason():
        without = gpu_load.Load()
        without.why = reason
        yield without
        return
    with gpu_load.load() as working:
        yield working


@pytest.mark.parametrize("query", [*QUERY_OF, PROCESSES, GPM])
def bench_query(benchmark: BenchmarkFixture, query: str, load: gpu_load.Load) -> None:
    """A query of GPU 0: 300 calls are timed, then it is asked for five seconds as fast as it answers."""
    read = _query(query)
    read()
    benchmark.pedantic(read, rounds=ROUNDS, warmup_rounds=10)
    seen = gpu_load.follow(read, FOLLOWED_S)
    missing = {} if load.why is None else {"load": load.why}
    if seen.period_s is None:
        missing["period_s"] = f"its value changed {seen.changes} times in {FOLLOWED_S:g} s"
    benchmark.extra_info["updates"] = {**asdict(seen), "missing": missing}


def _query(name: str) -> Callable[[], object]:
    """The call that the telemetry would make; skipped where this GPU has it not."""
    library = nvml.library()
    gpu = nvml.Gpu(library, 0)
    if name == GPM:
        try:
            counters = nvml.Counters(library, gpu.handle)
        except SourceMissing as missing:
            pytest.skip(str(missing))
        return counters.peek  # since the first reading: it changes whenever the counters do
    reason = ""
    for read in nvml.QUERIES["processes" if name == PROCESSES else QUERY_OF[name]]:
        try:
            read(library, gpu.handle)
        except library.NVMLError as error:
            reason = str(error)
        else:
            return partial(read, library, gpu.handle)
    pytest.skip(f"this GPU has no {name}: {reason}")
