"""What cannot be, and what does not fit: bounds on samples, SMACT as the number of blocks predicts it, and cells of other launches.

A kernel of b blocks reaches at most b SMs, and no SM holds more warps than fit. These are bounds and no predictions: for a share of the
time (duty) the kernel is not there at all. Where nobody recorded that, the duty is taken as 1, which is above every other.

What SMACT should be, from how many blocks there are: between b / (SMs × ⌈b / SMs⌉) and min(b, SMs) / SMs, times the duty.

The upper end holds where blocks that share an SM do not slow each other (few warps, which wait for their own results). The lower one holds
where they do, or wait for each other: of 133 full blocks on 132 SMs one SM has two, works twice as long as all others, and these have
nothing to do meanwhile. Seen so on an H200 (docs/gpu_metrics.md).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .grid import ACTIVE, DRAM, GRACT, MEDIAN, SMACT, SMOCC, TENSOR, statistics

if TYPE_CHECKING:
    from .grid import Chip, GridCell, Samples, Size

ROUNDING = 0.002  # of figures with three decimals, two of them
DUTY_TOLERANCE = 0.01  # the duty is a measurement itself
WARP = 32
SHARES = (GRACT, SMACT, SMOCC, TENSOR, DRAM)


@dataclass(frozen=True, slots=True)
class Violation:
    """A cell in which `count` of `of` samples broke a bound; `worst` is the furthest value, `limit` what it must not pass."""

    place: str
    size: Size
    bound: str
    count: int
    of: int
    worst: float
    limit: float


@dataclass(frozen=True, slots=True)
class GridBounds:
    """What was tested: each bound with how many samples of how many cells, what broke it, and which were not tested and why."""

    tested: dict[str, tuple[int, int]]
    violations: tuple[Violation, ...]
    untested: dict[str, str]


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """What a kernel of one size can reach while it runs: shares of SMs with work, of warps, and of warps on an SM that has work."""

    smact: float
    smocc: float
    smocc_per_smact: float


def limits(size: Size, chip: Chip) -> KernelLimits | None:
    """Compute them: a block takes whole warps, so many blocks fit on an SM, and no more SMs work than there are blocks."""
    if chip.sms is None:
        return None
    blocks, threads = size
    smact = min(blocks, chip.sms) / chip.sms
    if chip.max_warps is None:
        return KernelLimits(smact, smact, 1.0)
    warps = math.ceil(threads / WARP)
    fit = min(chip.max_warps // warps, chip.max_blocks or chip.max_warps)
    full = min(1.0, fit * warps / chip.max_warps)
    return KernelLimits(smact, min(blocks * warps / (chip.sms * chip.max_warps), full), full)


def bounds_of(cells: Sequence[GridCell], chip: Chip) -> GridBounds:
    """Test every bound on every sample of every cell."""
    tested: dict[str, tuple[int, int]] = {}
    violations: list[Violation] = []
    untested: dict[str, str] = {}
    for cell in cells:
        for tolerance, each in ((ROUNDING, _each), (ROUNDING + DUTY_TOLERANCE, _with_duty)):
            for bound, values, limit in each(cell, chip):
                if values.size:
                    samples, runs = tested.get(bound, (0, 0))
                    tested[bound] = samples + values.size, runs + 1
                    violations += _broken(cell, bound, values, limit, tolerance)
    if chip.sms is None:
        untested["SMACT ≤ min(b, SMs) / SMs"] = chip.missing or "how many SMs the GPU has is not known"
    elif not any("duty" in bound for bound in tested):
        untested["SMACT ≤ min(b, SMs) / SMs × duty"] = "how long a kernel ran was not recorded; tested with duty 1"
    for metric in (GRACT, SMACT, SMOCC):
        if not any(metric in log.columns and not np.isnan(log.columns[metric]).all() for cell in cells for log in cell.logs):
            untested[f"bounds of {metric.upper()}"] = "no sample of it was recorded"
    return GridBounds(tested, tuple(violations), untested)


def _each(cell: GridCell, chip: Chip) -> Iterator[tuple[str, Samples, Samples]]:
    """Yield each bound with the values that have to lie at or below the limits beside them."""
    most = limits(cell.size, chip)
    for log in cell.logs:
        have = {metric: log.columns[metric] for metric in SHARES if metric in log.columns}
        pairs = [("0 ≤ every share", -values, np.zeros_like(values)) for values in have.values()]
        pairs += [("every share ≤ 1", values, np.ones_like(values)) for values in have.values()]
        smact, smocc = have.get(SMACT), have.get(SMOCC)
        if smact is not None and smocc is not None:
            pairs.append(("SMOCC ≤ SMACT", smocc, smact))
        if smact is not None and GRACT in have:
            pairs.append(("SMACT ≤ GRACT", smact, have[GRACT]))
        if smact is not None and most is not None:
            pairs.append(("SMACT ≤ min(b, SMs) / SMs", smact, np.full_like(smact, most.smact)))
        if smocc is not None and most is not None:
            pairs.append(("SMOCC ≤ b × warps / all warps", smocc, np.full_like(smocc, most.smocc)))
            if smact is not None and chip.max_warps:
                pairs.append(("SMOCC ≤ SMACT × warps that fit", smocc, smact * most.smocc_per_smact))
        for bound, values, limit in pairs:
            known = ~(np.isnan(values) | np.isnan(limit))
            yield bound, values[known], limit[known]


def _broken(cell: GridCell, bound: str, values: Samples, limit: Samples, tolerance: float) -> Iterator[Violation]:
    over = values - limit
    count = int((over > tolerance + 1e-9).sum())
    if count:
        worst = int(over.argmax())
        sign = -1.0 if bound.startswith("0") else 1.0
        yield Violation(cell.place, cell.size, bound, count, values.size, sign * float(values[worst]), sign * float(limit[worst]))


def _with_duty(cell: GridCell, chip: Chip) -> Iterator[tuple[str, Samples, Samples]]:
    """Yield the mean of the active part beside the bound times the duty: of single samples the duty says nothing."""
    most, duty = limits(cell.size, chip), cell.work.duty
    if most is None or duty is None:
        return
    for metric, limit in ((SMACT, most.smact), (SMOCC, most.smocc)):
        mean = statistics(cell, metric).get(ACTIVE)
        if mean is not None:
            yield f"mean {metric.upper()} ≤ the same × duty", np.array([mean]), np.array([limit * duty])


NEAR = 0.02


@dataclass(frozen=True, slots=True)
class PredictedSmact:
    """One cell's SMACT beside the range it should be in; all are means over its runs."""

    size: Size
    least: float
    most: float
    observed: float
    duty: float

    @property
    def off(self) -> float:
        """How far it is above the range, or below it (negative); 0 inside."""
        return max(self.observed - self.most, 0.0) + min(self.observed - self.least, 0.0)


@dataclass(frozen=True, slots=True)
class Predictions:
    """All cells whose duty is known, and how many of them are near their range."""

    cells: tuple[PredictedSmact, ...]
    near: int
    missing: str | None = None


def predictions(cells: Sequence[GridCell], chip: Chip) -> Predictions:
    """Compare SMACT (median of the cell's samples) with its prediction, where duty and SMs are known."""
    if chip.sms is None:
        return Predictions((), 0, chip.missing)
    pairs: dict[Size, list[tuple[float, float, float, float]]] = defaultdict(list)
    for cell in cells:
        most, observed, duty = limits(cell.size, chip), statistics(cell, SMACT).get(MEDIAN), cell.work.duty
        if most is not None and observed is not None and duty is not None:
            blocks = cell.size[0]
            least = blocks / (chip.sms * math.ceil(blocks / chip.sms))
            pairs[cell.size].append((least * duty, most.smact * duty, observed, duty))
    if not pairs:
        return Predictions((), 0, "how long a kernel ran of the time between two launches was not recorded")
    result = [PredictedSmact(size, *(float(one) for one in np.mean(each, axis=0))) for size, each in sorted(pairs.items())]
    return Predictions(tuple(result), sum(abs(predicted.off) <= NEAR for predicted in result))


def launches_differ(cells: Sequence[GridCell]) -> dict[Size, float]:
    """Return the cells that launched another number of kernels than most did; none where no number is most cells'."""
    known = {cell.size: cell.work.launches for cell in cells if cell.work.launches is not None}
    usual, times = Counter(known.values()).most_common(1)[0] if known else (0.0, 0)
    return {size: count for size, count in sorted(known.items()) if count != usual} if 2 * times > len(known) else {}
