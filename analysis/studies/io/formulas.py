"""The formulas: accelerator utilisation, throughput and shares of one epoch, from the step lists of its ranks.

T is the wall time of a block, barriers and the readers' end included; the steps left out at its start and end take their load and
computation off it (T*), and their computation off the sum (C*). `nan` is the result where the clocks of a file contradict each other.

Source: DLIO, `dlio_benchmark/utils/statscounter.py` (Devarajan et al., CCGrid 2021).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from .terms import MIB, Epoch, IoRun

if TYPE_CHECKING:
    Job = Sequence[Sequence[Epoch]]  # the blocks of each rank, in one epoch

ROUNDING = 0.005  # of an epoch: by so much the clocks of its steps and of its ends may disagree
DLIO_UNCOUNTED_STEPS = 2  # hard-coded in DLIO since 2.0.0, whatever is excluded
STEADY, WHOLE, RATE = "au_steady_percent", "au_whole_percent", "samples_per_s_whole"
AU, SHARES = (STEADY, WHOLE), ("first_step_share", "barrier_share")


def job_epochs(run: IoRun) -> list[Job]:
    """Return the epochs of the whole job in order: for each, the blocks of each rank."""
    ranks: dict[tuple[int, int], list[Epoch]] = defaultdict(list)
    for epoch in sorted(run.epochs, key=lambda epoch: (epoch.number, epoch.rank, epoch.block)):
        ranks[epoch.number, epoch.rank].append(epoch)
    jobs: dict[int, list[Sequence[Epoch]]] = defaultdict(list)
    for (number, _), blocks in ranks.items():
        jobs[number].append(blocks)
    return list(jobs.values())


def retained(block: Epoch, start: int, end: int) -> range:
    """Return which steps remain when so many are left out at the start and at the end."""
    first = min(start, block.steps)
    return range(first, max(first, block.steps - end))


def job_figures(job: Job, run: IoRun, asked_s: float | None = None) -> dict[str, float | None]:
    """Return all figures of one epoch by name: means over its ranks of utilisation and shares, sums of rates.

    With `asked_s` each step counts as the computation that was asked for, in seconds: what it was late is waiting. None is a figure whose
    bytes were not counted.
    """
    ranks = [_rank_figures(blocks, run, asked_s) for blocks in job]
    result: dict[str, float | None] = {}
    for name in ranks[0]:
        values = [figures[name] for figures in ranks]
        known = [value for value in values if value is not None]
        combine = fmean if name in {*AU, *SHARES} else math.fsum
        result[name] = combine(known) if len(known) == len(values) else None
    mb = (run.record_length_bytes or 0) / MIB
    result |= {f"mb_per_s_nominal_{way}": (result[f"samples_per_s_{way}"] or 0.0) * mb for way in ("steady", "whole", "dlio")}
    counts = [(block.device_read_bytes, block.duration_s) for blocks in job for block in blocks if block.device_read_bytes is not None]
    span_s = math.fsum(span for _, span in counts)
    return result | {"device_mb_per_s": sum(count for count, _ in counts) / span_s / MIB if span_s > 0 else None}


def _rank_figures(blocks: Sequence[Epoch], run: IoRun, asked_s: float | None) -> dict[str, float | None]:
    start, end, batch = run.excluded_start_steps, run.excluded_end_steps, run.batch_size or 0
    steps = [block.steps for block in blocks]
    kept = [retained(block, start, end) for block in blocks]
    wall_s = [block.duration_s for block in blocks]
    total_s = math.fsum(wall_s)  # what lies between blocks is checkpoints
    steady_s = [
        block.duration_s - math.fsum(busy for at, busy in enumerate(block.busy_s) if at not in rest)
        for block, rest in zip(blocks, kept, strict=True)
    ]

    def computed_s(block: Epoch, part: range) -> float:
        return math.fsum(block.compute_s[part.start : part.stop]) if asked_s is None else len(part) * asked_s

    def weighted(values: Sequence[float]) -> float:
        return math.fsum(value * count for value, count in zip(values, steps, strict=True)) / sum(steps)

    steady = [_percent(computed_s(block, rest), span_s) for block, rest, span_s in zip(blocks, kept, steady_s, strict=True)]
    counted = steps if run.dlio_counts_all else [count - DLIO_UNCOUNTED_STEPS for count in steps]
    dlio = [_rate(count * batch, span_s) for count, span_s in zip(counted, wall_s if run.dlio_counts_all else steady_s, strict=True)]
    barrier = 1 - _rate(math.fsum(math.fsum(block.busy_s) for block in blocks), total_s)
    return {
        STEADY: weighted(steady),
        WHOLE: _percent(math.fsum(computed_s(block, range(block.steps)) for block in blocks), total_s),
        "samples_per_s_steady": _rate(sum(map(len, kept)) * batch, math.fsum(steady_s)),
        RATE: _rate(sum(steps) * batch, total_s),
        "samples_per_s_dlio": weighted(dlio),
        "first_step_share": _rate(blocks[0].load_s[0], total_s),
        "barrier_share": 0.0 if -ROUNDING <= barrier < 0 else barrier,
        "mb_per_s_read": _bytes_rate([block.rchar_bytes for block in blocks], total_s),
        "mb_per_s_fetched": _bytes_rate([block.read_bytes for block in blocks], total_s),
    }


def _bytes_rate(counts: Sequence[int | None], span_s: float) -> float | None:
    known = [count for count in counts if count is not None]
    return _rate(sum(known), span_s) / MIB if len(known) == len(counts) else None


def _percent(compute_s: float, span_s: float) -> float:
    return 0.0 if compute_s == 0 else 100 * _rate(compute_s, span_s)


def _rate(amount: float, span_s: float) -> float:
    return amount / span_s if span_s > 0 else math.nan
