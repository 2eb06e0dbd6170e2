"""The vocabulary of the I/O study: a rank's epoch, a run, and doubts about its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MIB = 2.0**20
GIB = 2.0**30
# DLIO's defaults, unless configured otherwise (`metric.exclude_start_steps`,
# `metric.exclude_end_steps`).
EXCLUDED_START_STEPS, EXCLUDED_END_STEPS = 1, 0
PREFETCH_FACTOR = 2


@dataclass(frozen=True, slots=True)
class Epoch:
    """One stretch of steps of one rank; lists are in step order and equally long, times in seconds.

    `load_s` is the wait for each batch, `compute_s` the emulated computation as measured,
    `barrier_s` the wait for the other ranks (in neither), `proc_s` load and computation together if
    the source clocked it. All ranks have one clock. A checkpoint by steps ends a `block`; otherwise
    the epoch is one. `rchar_bytes` were requested by the rank and its readers, `read_bytes` fetched
    from a device, `device_read_bytes` by the whole machine; `resident_*` is the fraction of the
    data set in the page cache, `locked` whether all of it was locked there. None is unrecorded.
    """

    number: int
    rank: int
    start_s: float
    end_s: float
    load_s: tuple[float, ...]
    compute_s: tuple[float, ...]
    barrier_s: tuple[float, ...] | None = None
    proc_s: tuple[float, ...] | None = None
    block: int = 1
    rchar_bytes: int | None = None
    read_bytes: int | None = None
    device_read_bytes: int | None = None
    resident_before: float | None = None
    resident_after: float | None = None
    locked: bool = False

    @property
    def steps(self) -> int:
        return len(self.compute_s)

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def busy_s(self) -> tuple[float, ...]:
        return self.proc_s or tuple(
            load + compute for load, compute in zip(self.load_s, self.compute_s, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    bytes: float | None
    duration_s: float


@dataclass(frozen=True, slots=True)
class IoRun:
    """One run: `processes` ranks that read a data set epoch by epoch.

    `epochs` are of all ranks, in the order of epoch, block and rank. `read_threads` are reader
    processes per rank. `params` are all parameters under DLIO's names, `overrides` those requested
    by name, `reported` the source's own figures.
    `dlio_counts_all` is DLIO 2.0.0's method (all steps over all time), which later versions
    replaced by S - 2 steps over the time of S - 1.
    """

    origin: str
    id: str
    model: str
    engine: str
    processes: int
    batch_size: int
    read_threads: int
    prefetch_factor: int | None
    computation_time_s: float | None
    record_length_bytes: float
    epochs: tuple[Epoch, ...]
    engine_version: str | None = None
    dlio_counts_all: bool = False
    excluded_start_steps: int = EXCLUDED_START_STEPS
    excluded_end_steps: int = EXCLUDED_END_STEPS
    checkpoints: tuple[Checkpoint, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)
    overrides: Mapping[str, object] = field(default_factory=dict)
    dataset: Mapping[str, object] = field(default_factory=dict)
    reported: Mapping[str, object] = field(default_factory=dict)
    started_utc: str | None = None
    tweakset: str = "stock"
    block: int | None = None
    order: int | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason to doubt figures; `refuses` names the responses that are withheld because of it."""

    kind: str
    reason: str
    refuses: tuple[str, ...] = ()
