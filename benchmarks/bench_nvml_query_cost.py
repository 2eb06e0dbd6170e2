"""What does a look at a GPU cost, and how often is there something new to see?

For each query of NVML that the telemetry makes: the time one call takes, and the time after which its value really changes while the GPU
works and rests in turns. Hypotheses: a call takes 1 to 1000 µs, and 10 looks a second are more than most counters are worth; a monitor
that asks faster sees the same value again. Nothing is measured of an idle machine, so leave it alone meanwhile. Run alone:
`pytest benchmarks/bench_nvml_query_cost.py`; without a GPU all of it is skipped.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from fixtures.studies.gpu import device
from fixtures.telemetry import nvml
from fixtures.telemetry.gpu_sources import SENSORS
from fixtures.telemetry.sources import SourceMissing
from fixtures.terms import Refused

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

QUERY_OF = {"+".join(field.column for field in fields): query for query, fields in SENSORS.items()}
GPM = "gpm"
PROCESSES = "running_processes"
ROUNDS, FOLLOWED_S = 300, 5.0
KERNEL_S, LONGEST_S = 0.005, 0.3
FEWEST_CHANGES = 5


class Load:
    """What came of it: `why` it is not there, None where it is."""

    def __init__(self) -> None:
        self.why: str | None = None


@contextlib.contextmanager
def load_of_gpu(seed: int = 1) -> Iterator[Load]:
    """Have the first GPU work and rest in turns of up to 0.3 s each, by a thread that has CUDA to itself, until this is left."""
    state, started, over = Load(), threading.Event(), threading.Event()
    draw = random.Random(seed).uniform

    def work() -> None:
        try:
            with device.Gpu() as gpu:
                grid = gpu.grid(8 * gpu.sms, 256)
                grid.check()
                times, kernel_s = device.long_enough(grid.run, KERNEL_S)
                started.set()
                while not over.wait(draw(0.0, LONGEST_S)):
                    grid.stretch(times, device.launches(kernel_s, draw(KERNEL_S, LONGEST_S)))
        except Refused as error:
            state.why = str(error)
        finally:
            started.set()

    thread = threading.Thread(target=work, name="gpu-load", daemon=True)
    thread.start()
    started.wait()
    try:
        yield state
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True, slots=True)
class Updates:
    """How often a value changed while it was asked `polls` times, each `poll_s` after the one before (median).

    `period_s` is the median time between two changes, `shortest_s` the shortest; None where there were too few of them. An update that
    brings the same value again is not seen: the period of a value that seldom differs is an upper bound.
    """

    polls: int
    poll_s: float | None
    changes: int
    period_s: float | None
    shortest_s: float | None


def updates(times: Sequence[float], values: Sequence[object]) -> Updates:
    """Tell from values and the times at which they were read (seconds); None, no value, is left out."""
    read = [(at, value) for at, value in zip(times, values, strict=True) if value is not None]
    at_s = [later for (_, before), (later, after) in pairwise(read) if before != after]
    gaps = [after - before for before, after in pairwise(at_s)]
    polls = [after - before for before, after in pairwise(times)]
    enough = len(at_s) >= FEWEST_CHANGES
    return Updates(
        polls=len(times),
        poll_s=statistics.median(polls) if polls else None,
        changes=len(at_s),
        period_s=statistics.median(gaps) if enough else None,
        shortest_s=min(gaps) if enough else None,
    )


def follow(read: Callable[[], object], for_s: float, clock: Callable[[], float] = time.monotonic) -> Updates:
    """Ask as fast as it answers, for so long."""
    times: list[float] = []
    values: list[object] = []
    end_s = clock() + for_s
    while not times or times[-1] < end_s:
        values.append(read())
        times.append(clock())
    return updates(times, values)


@pytest.fixture(scope="module")
def load() -> Iterator[Load]:
    """Something to see; not there where CUDA cannot be used."""
    if reason := nvml.unavailable_reason():
        pytest.skip(reason)
    if reason := device.unavailable_reason():
        without = Load()
        without.why = reason
        yield without
        return
    with load_of_gpu() as working:
        yield working


@pytest.mark.parametrize("query", [*QUERY_OF, PROCESSES, GPM])
def bench_query(benchmark: BenchmarkFixture, query: str, load: Load) -> None:
    """A query of GPU 0: 300 calls are timed, then it is asked for five seconds as fast as it answers."""
    read = _query(query)
    read()
    benchmark.pedantic(read, rounds=ROUNDS, warmup_rounds=10)
    seen = follow(read, FOLLOWED_S)
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
