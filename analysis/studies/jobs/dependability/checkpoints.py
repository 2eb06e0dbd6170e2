"""Checkpoint intervals that were tried on real jobs: which took least time, and where the least lies, against Young's and Daly's.

Time per work is the time that attempts held slots, over that of the same jobs without faults. Over interval τ it is a + b·τ + c/τ to
first order (lost work grows with τ, checkpoints cost 1/τ), which is least at √(c/b). Each block has a b and a c; their ratio has Fieller's
interval over blocks, open at an end where the blocks cannot tell it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaincinv

from analysis.studies.jobs.estimates import FEW, FEWEST, Figure, average, holm_by_key, mean, ratio
from control.t_test import ALPHA, t_quantile

from .intervals import time_per_work
from .outcomes import held, shared, totals
from .study import twin_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.studies.jobs.estimates import Ratio
    from analysis.studies.jobs.records import Stream, Unit

    ByLevel = Mapping[float, Mapping[Unit, Sequence[float]]]  # by loss or interval, and block


LEVELS = 3  # intervals above 0 that a curve with three numbers needs
TOO_FEW_LEVELS = "fewer than 3 intervals above 0 in every block: no curve"
NO_LEAST = "no least: longer intervals cost nothing more, or shorter ones nothing"
OUTSIDE = "outside the intervals that were tried"


@dataclass(frozen=True, slots=True)
class TriedInterval:
    """One interval; 0 is no checkpoint at all. `time` is time per work, `foretold` the same by Daly's formula, with the time to restart.

    `more` is how much more time than the best it takes, `p` that of the difference after Holm; both None for the best itself. `lost` jobs
    were not done and are in no time, which is the shorter for it: the longest are lost most.
    """

    checkpoint_s: float
    streams: int
    time: Figure | None
    foretold: float | None
    more: float | None = None
    p: float | None = None
    lost: int = 0


@dataclass(frozen=True, slots=True)
class CheckpointTrial:
    """All intervals under one fault. `cost_s`, `mtbf_s` and `restart_s` are measured; None where nothing of the kind was.

    `killed` attempts in `ran_s` of attempts make the MTBF of one running job; its interval is exact for a Poisson count. `least_s` is where
    the curve is least, infinite or 0 as an end of its interval where the blocks cannot tell it; `why` there is none, or none to rely on.
    """

    condition: str
    fault: str
    blocks: int
    cost_s: float | None
    checkpoints: int
    mtbf_s: Figure | None
    killed: int
    ran_s: float
    restart_s: float | None
    tried: tuple[TriedInterval, ...]
    least_s: Figure | None
    why: str


def trials(streams: Sequence[Stream]) -> list[CheckpointTrial]:
    by_fault: dict[tuple[str, str], list[Stream]] = {}
    for stream in streams:
        if stream.fault:
            by_fault.setdefault((stream.condition, stream.fault_label), []).append(stream)
    several = {key: own for key, own in by_fault.items() if len({stream.checkpoint_s for stream in own}) > 1}
    return [_trial(condition, words, own, streams) for (condition, words), own in several.items()]


def _trial(condition: str, fault: str, streams: Sequence[Stream], every: Sequence[Stream]) -> CheckpointTrial:
    times: dict[float, dict[Unit, list[float]]] = {}
    for guarded in streams:
        spent = _time_per_work(guarded, twin_of(guarded, every))
        if spent is not None:
            times.setdefault(guarded.checkpoint_s, {}).setdefault(guarded.unit, []).append(spent)
    checkpoints, cost_s = _cost(streams)
    killed, ran_s = _failures(streams)
    mtbf, restart_s = _mtbf(killed, ran_s), _restart_s(streams)
    least, why = _least({level: own for level, own in times.items() if level > 0})
    tried = []
    for level, own in sorted(times.items()):
        foretold = time_per_work(level, cost_s, mtbf.value, restart_s or 0.0) if level and cost_s and mtbf else None
        lost = sum(job.outcome != "done" for stream in streams if stream.checkpoint_s == level for job in stream.jobs)
        tried.append(TriedInterval(level, sum(map(len, own.values())), mean(own), foretold, lost=lost))
    blocks = len({stream.unit for stream in streams})
    return CheckpointTrial(
        condition, fault, blocks, cost_s, checkpoints, mtbf, killed, ran_s, restart_s, _against_best(tried, times), least, why
    )


def _time_per_work(stream: Stream, twin: Stream | None) -> float | None:
    """Over the jobs that were done in both; where there is no twin, over what was useful of the stream's own time."""
    if twin is None:
        useful = totals(stream).useful
        return 1 / useful if useful else None
    held_s, twin_s = held(stream), held(twin)
    if held_s is None or twin_s is None:
        return None
    both = [job.number for job, other in shared(stream, twin) if job.outcome == other.outcome == "done"]
    work_s = math.fsum(twin_s.get(number, 0.0) for number in both)
    return math.fsum(held_s.get(number, 0.0) for number in both) / work_s if work_s > 0 else None


def _cost(streams: Sequence[Stream]) -> tuple[int, float | None]:
    wrote = [attempt for stream in streams for attempt in stream.attempts if attempt.checkpoints and attempt.cost_s is not None]
    count = sum(writer.checkpoints or 0 for writer in wrote)
    return count, math.fsum(writer.cost_s or 0.0 for writer in wrote) / count if count else None


def _failures(streams: Sequence[Stream]) -> tuple[int, float]:
    known = [attempt for stream in streams for attempt in stream.attempts if attempt.begin_s is not None and attempt.end_s is not None]
    ran_s = math.fsum(max(0.0, ran.end_s - ran.begin_s) for ran in known if ran.end_s is not None and ran.begin_s is not None)
    return sum(ran.outcome in {"killed", "failed"} for ran in known), ran_s


def _mtbf(killed: int, ran_s: float) -> Figure | None:
    """Time over count, with the exact interval of a Poisson count (Garwood, 1936)."""
    if not killed or ran_s <= 0:
        return None
    most = float(gammaincinv(killed + 1, 1 - ALPHA / 2))
    fewest = float(gammaincinv(killed, ALPHA / 2))
    return Figure(ran_s / killed, ran_s / most, ran_s / fewest)


def _restart_s(streams: Sequence[Stream]) -> float | None:
    waits = []
    for stream in streams:
        begins = {(attempt.job, attempt.number): attempt.begin_s for attempt in stream.attempts}
        for failed in stream.attempts:
            begin_s = begins.get((failed.job, failed.number + 1))
            if failed.end_s is not None and begin_s is not None and begin_s >= failed.end_s:
                waits.append(begin_s - failed.end_s)
    return math.fsum(waits) / len(waits) if waits else None


def _against_best(tried: Sequence[TriedInterval], times: ByLevel) -> tuple[TriedInterval, ...]:
    known = [(attempted.time.value, attempted.checkpoint_s) for attempted in tried if attempted.time is not None]
    if not known:
        return tuple(tried)
    best = min(known)[1]
    ratios: dict[float, Ratio | None] = {best: None}
    for level in times.keys() - {best}:
        common = sorted(times[level].keys() & times[best].keys())
        ratios[level] = ratio({unit: [(average(times[best][unit]), average(times[level][unit]))] for unit in common})
    p = holm_by_key({level: over.p for level, over in ratios.items() if over is not None and over.p is not None})
    return tuple(
        replace(attempted, more=over_best.value - 1 if over_best else None, p=p.get(attempted.checkpoint_s))
        for attempted in tried
        for over_best in [ratios[attempted.checkpoint_s]]
    )


def _least(times: ByLevel) -> tuple[Figure | None, str]:
    """Where a + b·τ + c/τ is least; `times` by interval and block."""
    units = sorted(set.intersection(*(set(own) for own in times.values()))) if times else []
    if len(times) < LEVELS or not units:
        return None, TOO_FEW_LEVELS
    levels = np.array(sorted(times))
    shape = np.column_stack([np.ones(len(levels)), levels, 1 / levels])
    values = np.array([[average(times[level][unit]) for level in levels] for unit in units])
    slopes = np.linalg.lstsq(shape, values.T, rcond=None)[0][1:].T  # a block each: b, c
    grows, cost = slopes.mean(axis=0)
    if grows <= 0 or cost <= 0:
        return None, NO_LEAST
    least = math.sqrt(cost / grows)
    why = "" if levels[0] <= least <= levels[-1] else OUTSIDE
    if len(units) < FEWEST:
        return Figure(least, why=FEW), why
    low, high = fieller(slopes[:, 1], slopes[:, 0])
    return Figure(least, math.sqrt(low), math.sqrt(high)), why


def fieller(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """95 % interval, cut off at 0, of the ratio of two means that are both above 0; pairs of shape (n,). Infinite where `below` may be 0.

    Source: Fieller, JRSS B 16(2), 1954.
    """
    n = len(above)
    covariance = np.cov(above, below) / n
    squared = t_quantile(1 - ALPHA / 2, n - 1) ** 2
    top, bottom = float(above.mean()), float(below.mean())
    # {r: (top - r·bottom)² ≤ t²·(v_aa - 2r·v_ab + r²·v_bb)}: a·r² - 2·b·r + c ≤ 0.
    a = bottom**2 - squared * float(covariance[1, 1])
    b = top * bottom - squared * float(covariance[0, 1])
    c = top**2 - squared * float(covariance[0, 0])
    inside = b * b - a * c
    if a > 0:
        half = math.sqrt(max(0.0, inside))
        return max(0.0, (b - half) / a), (b + half) / a
    if a == 0 or c <= 0:
        return 0.0, math.inf  # neither is shown to be above 0
    return (b - math.sqrt(inside)) / a, math.inf
