"""What runs are worth as evidence: sums over units that are as good as independent, and intervals that leave one out at a time.

Waits of neighbouring jobs hang together, so jobs are no replicates. With three runs or more the runs are. With fewer, busy cycles are:
under renewal arrivals they are independent, whatever the load, where batches of a fixed number of jobs still hang together. With fewer than
thirty cycles it is batches of neighbouring jobs after all. What a formula makes of the estimates of the same run goes through the same
units: a run in which much came by chance had long waits *and* a high rate, and the two must not be held against each other as strangers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from .little import cycles
from .terms import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .sound import Columns

RUNS, CYCLES, BATCHES = 3, 30, 20
MOST = 60  # groups of cycles: with more, an interval is no better and takes longer
LEVEL = 0.95
NAMES = ("runs", "busy cycles", "batches of jobs", "none")


@dataclass(frozen=True, slots=True)
class Units:
    """Sums by unit. `kind` is one of NAMES, `count` how many of these there are, `sums` name → shape (units,)."""

    kind: str
    count: int
    sums: dict[str, np.ndarray]

    @property
    def why(self) -> str:
        """Say what stands for independent, and why that."""
        return {
            "runs": f"from {self.count} runs, which are the replicates",
            "busy cycles": f"from {self.count} busy cycles, independent under renewal arrivals",
            "batches of jobs": f"from {self.count} batches of neighbouring jobs: fewer than {CYCLES} busy cycles and {RUNS} runs",
            "none": "without intervals: too few jobs, cycles and runs",
        }[self.kind]


def units(streams: Sequence[Columns]) -> Units:
    """Part the jobs of streams of one kind into units and add up what estimates are made of.

    Sums: of `gap`, `wait`, `response` and `service` the count `…_n`, the seconds `…_s` and seconds² `…_s2`, and `waited_n`, how many waits
    are above 0. The same but for gaps of each priority, ` 1` behind the name.
    """
    kind, count, labels = _labels(streams)
    priorities = sorted({float(one) for part in streams for one in part.priority if not math.isnan(one)})
    many = 1 + max(int(label.max()) for label in labels if len(label)) if any(map(len, labels)) else 0
    columns: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for part, label in zip(streams, labels, strict=True):
        gaps = np.concatenate([[np.nan], np.diff(part.submit)]) if len(part.submit) else part.submit
        _add(columns, "gap", "", gaps, label)
        for suffix, mask in [("", np.full(len(label), fill_value=True)), *((f" {one:g}", part.priority == one) for one in priorities)]:
            wait = np.where(mask, part.taken - part.submit, np.nan)
            service = np.where(mask & ~part.retried, part.end - part.taken, np.nan)
            _add(columns, "wait", suffix, wait, label)
            _add(columns, "service", suffix, service, label)
            _add(columns, "response", suffix, np.where(mask, part.end - part.submit, np.nan), label)
            _add(columns, "waited", suffix, np.where(wait > 0, 1.0, np.nan), label)
    sums = {name: np.sum([np.bincount(label, column, many) for label, column in parts], axis=0) for name, parts in columns.items()}
    return Units(kind, count, sums)


def estimate(of: Callable[[dict[str, float]], float | None], found: Units, *, logs: bool = True) -> Figure | None:
    """Estimate one number from the sums, with the interval of the grouped jackknife; None where the sums do not give it.

    With `logs`, on the logarithm where all that is seen is above 0, so that no interval reaches below; else as it is. `why` says why there
    is no interval.
    Source: Miller 1974; for ratios over busy cycles Iglehart 1975.
    """
    whole = {name: float(values.sum()) for name, values in found.sums.items()}
    value = of(whole)
    if value is None:
        return None
    count = len(next(iter(found.sums.values()))) if found.sums else 0
    if found.kind == "none" or count < 2:
        return Figure(value, why="too few units")
    without = [of({name: whole[name] - float(values[at]) for name, values in found.sums.items()}) for at in range(count)]
    known = np.array([one for one in without if one is not None], float)
    if len(known) < count:
        return Figure(value, why="not without each of the units")
    return _interval(value, known, logs=logs and value > 0 and bool((known > 0).all()))


def _interval(value: float, known: np.ndarray, *, logs: bool) -> Figure:
    """Make the interval of a value from what it is without each of the units; shape (units,)."""
    count = len(known)
    seen = np.log(known) if logs else known
    se = math.sqrt((count - 1) / count * float(((seen - seen.mean()) ** 2).sum()))
    t = float(scipy.stats.t.ppf((1 + LEVEL) / 2, count - 1))
    if logs:
        wide = min(t * se, 700.0)
        return Figure(value, value * math.exp(-wide), value * math.exp(wide), value * se)
    return Figure(value, value - t * se, value + t * se, se)


def _labels(streams: Sequence[Columns]) -> tuple[str, int, list[np.ndarray]]:
    """Which unit each job belongs to: what kind they are, how many there are, and for every stream shape (jobs,)."""
    used = [part for part in streams if len(part.submit)]
    if len(used) >= RUNS:
        numbers = iter(range(len(used)))
        return "runs", len(used), [np.full(len(part.submit), next(numbers) if len(part.submit) else 0) for part in streams]
    numbered = [cycles(part) for part in streams]
    each = [int(one[-1]) + 1 if len(one) else 0 for one in numbered]
    if sum(each) >= CYCLES:
        starts = np.cumsum([0, *each[:-1]])
        return (
            "busy cycles",
            sum(each),
            [(one + start) * min(MOST, sum(each)) // sum(each) for one, start in zip(numbered, starts, strict=True)],
        )
    jobs = [len(part.submit) for part in streams]
    if sum(jobs) >= 2 * BATCHES:
        starts = np.cumsum([0, *jobs[:-1]])
        return (
            "batches of jobs",
            BATCHES,
            [(np.arange(one) + start) * BATCHES // sum(jobs) for one, start in zip(jobs, starts, strict=True)],
        )
    return "none", 0, [np.zeros(one, int) for one in jobs]


def _add(columns: dict[str, list[tuple[np.ndarray, np.ndarray]]], what: str, suffix: str, values: np.ndarray, label: np.ndarray) -> None:
    there = ~np.isnan(values)
    filled = np.where(there, values, 0.0)
    for part, column in (("n", there.astype(float)), ("s", filled), ("s2", filled**2)):
        columns.setdefault(f"{what}_{part}{suffix}", []).append((label, column))
