"""The formulas: accelerator utilisation and throughput of one rank in one epoch, from its step lists.

Each takes the blocks of one rank in one epoch, in order. T is the wall time of a block, barriers and the readers' end included; the steps
left out at its start and end take their load and computation off it (T*), and their computation off the sum (C*). `nan` is what no
formula gives, where the clocks of a file contradict each other.

Source: DLIO, `dlio_benchmark/utils/statscounter.py` (Devarajan et al., CCGrid 2021).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Epoch

ROUNDING = 0.005  # of an epoch: by so much the clocks of its steps and of its ends may disagree
DLIO_UNCOUNTED_STEPS = 2  # hard-coded in DLIO since 2.0.0, whatever is excluded


def retained(block: Epoch, start: int, end: int) -> range:
    """Which steps remain when so many are left out at the start and at the end."""
    first = min(start, block.steps)
    return range(first, max(first, block.steps - end))


def steady_s(block: Epoch, start: int, end: int) -> float:
    """T* in seconds."""
    kept = retained(block, start, end)
    return block.duration_s - math.fsum(busy for at, busy in enumerate(block.busy_s) if at not in kept)


def au_steady_percent(blocks: Sequence[Epoch], start: int, end: int, asked_s: float | None = None) -> float:
    """AU as DLIO defines it: 100 C*/T*, 0 where nothing was computed; over blocks, the mean weighted by their steps.

    With `asked_s` each step counts as the computation that was asked for: what it was late is waiting.
    """
    computed_s = [_computed_s(block, retained(block, start, end), asked_s) for block in blocks]
    return weighted([_percent(each_s, steady_s(block, start, end)) for each_s, block in zip(computed_s, blocks, strict=True)], blocks)


def au_whole_percent(blocks: Sequence[Epoch], asked_s: float | None = None) -> float:
    """AU with nothing left out: 100 × all computation over all wall time."""
    return _percent(math.fsum(_computed_s(block, range(block.steps), asked_s) for block in blocks), total_s(blocks))


def _computed_s(block: Epoch, kept: range, asked_s: float | None) -> float:
    return math.fsum(block.compute_s[kept.start : kept.stop]) if asked_s is None else len(kept) * asked_s


def samples_per_s_steady(blocks: Sequence[Epoch], batch: int, start: int, end: int) -> float:
    """Samples of exactly those steps that T* spans, over T*."""
    count = sum(len(retained(block, start, end)) for block in blocks)
    return _rate(count * batch, math.fsum(steady_s(block, start, end) for block in blocks))


def samples_per_s_whole(blocks: Sequence[Epoch], batch: int) -> float:
    """All samples over all wall time."""
    return _rate(sum(block.steps for block in blocks) * batch, total_s(blocks))


def samples_per_s_dlio(blocks: Sequence[Epoch], batch: int, start: int, end: int) -> float:
    """What DLIO reports since 2.0.0: S - 2 steps over a T* that spans S - 1 of them; negative for one step, 0 for two."""
    rates = [_rate((block.steps - DLIO_UNCOUNTED_STEPS) * batch, steady_s(block, start, end)) for block in blocks]
    return weighted(rates, blocks)


def samples_per_s_dlio_2_0_0(blocks: Sequence[Epoch], batch: int) -> float:
    """What DLIO 2.0.0 of PyPI reports: all steps of each block over its wall time."""
    return weighted([_rate(block.steps * batch, block.duration_s) for block in blocks], blocks)


def first_step_share(blocks: Sequence[Epoch]) -> float:
    """The part of the epoch that went by until the first batch was there."""
    return _rate(blocks[0].load_s[0], total_s(blocks))


def barrier_share(blocks: Sequence[Epoch]) -> float:
    """The part of the epoch that is neither load nor computation: waiting for other ranks, and the readers' end."""
    share = 1 - _rate(math.fsum(math.fsum(block.busy_s) for block in blocks), total_s(blocks))
    return 0.0 if -ROUNDING <= share < 0 else share


def weighted(values: Sequence[float], blocks: Sequence[Epoch]) -> float:
    """The mean over blocks, each counted as often as it has steps."""
    return math.fsum(value * block.steps for value, block in zip(values, blocks, strict=True)) / sum(block.steps for block in blocks)


def total_s(blocks: Sequence[Epoch]) -> float:
    """Wall time of all blocks; what lies between them is checkpoints."""
    return math.fsum(block.duration_s for block in blocks)


def _percent(compute_s: float, span_s: float) -> float:
    return 0.0 if compute_s == 0 else 100 * _rate(compute_s, span_s)


def _rate(amount: float, span_s: float) -> float:
    return amount / span_s if span_s > 0 else math.nan
