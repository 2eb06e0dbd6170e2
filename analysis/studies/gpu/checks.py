"""What cannot be, and what does not fit: bounds on samples, SMACT as the number of blocks predicts it, and cells of other work.

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
from collections.abc import Iterator, Mapping, Sequence
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


# Whether every cell ran what the others ran, by how long it took. With equally many launches a kernel of more blocks takes at least as
# long, and at most as many times as long as it has more blocks. A cell that breaks this with others was cut short or ran on: the one that
# disagrees with most is named, then it is left out and the rest looked at again. Where two disagree with each other alone, the line through
# the cells that nobody disagrees with decides; where it cannot, both are named as a pair of which one is wrong. A count is off by up to
# `SAMPLES`, and what is computed from it by as many times more.

FACTOR = 1.5  # caches fill and clocks fall: a little off is no other work
SAMPLES = 2.0  # the error of a count: a sample more or less at each end
SHORT = 0.5  # of two logs of one run, the shorter has less than so much of the longer


@dataclass(frozen=True, slots=True)
class OddCell:
    """A cell whose run does not fit: `samples` that it took, and what the others with as many threads leave it (either may be unknown).

    `rival` is the other cell of a pair of which one is wrong and nothing tells which; then the limits are what the rival leaves it.
    """

    size: Size
    samples: float
    least: float | None
    most: float | None
    rival: Size | None = None


def odd_ones(samples: Mapping[Size, float]) -> list[OddCell]:
    """Find the cells that did not run what the others of equal threads ran; `samples` is how long each took."""
    result = []
    for threads in sorted({size[1] for size in samples}):
        left = {size[0]: count for size, count in samples.items() if size[1] == threads and count}  # 0 is no run at all
        while disagreements := _disagreements(left):
            blamed = _blamed(disagreements, left)
            counts = {blocks: left.pop(blocks) for blocks in blamed}
            for blocks, count in counts.items():
                rival = next((other for other in blamed if other != blocks), None)
                others = left if rival is None else {rival: counts[rival]}
                result.append(OddCell((blocks, threads), count, *_between(blocks, others), None if rival is None else (rival, threads)))
    return sorted(result, key=lambda odd: odd.size)


def _disagreements(left: Mapping[int, float]) -> dict[tuple[int, int], float]:
    """Return the pairs of numbers of blocks that disagree, and by how much (logarithm of the ratio)."""
    result = {
        (few, many): max(_over(left[few], left[many]), _over(left[many], left[few], many / few))
        for few in left
        for many in left
        if few < many
    }
    return {pair: off for pair, off in result.items() if off > 0}


def _over(count: float, other: float, times: float = 1.0) -> float:
    """By how much a count lies above so many times another, beyond what is tolerated."""
    return math.log(count / (max(other, 1.0) * times)) if count - SAMPLES > FACTOR * times * (other + SAMPLES) else 0.0


def _blamed(disagreements: Mapping[tuple[int, int], float], left: Mapping[int, float]) -> tuple[int, ...]:
    """Return the cell that is wrong, or both of a pair of which one is."""
    times = Counter(blocks for pair in disagreements for blocks in pair)
    most = max(times.values())
    worst = [blocks for blocks, number in times.items() if number == most]
    if len(worst) == 1:
        return (worst[0],)
    pair = max((pair_of for pair_of in disagreements if set(pair_of) & set(worst)), key=lambda pair_of: disagreements[pair_of])
    agreed = {blocks: count for blocks, count in left.items() if blocks not in times}
    off = tuple(blocks for blocks in pair if _off_line(blocks, left[blocks], agreed))
    return off if len(off) == 1 else pair


def _off_line(blocks: int, count: float, others: Mapping[int, float]) -> bool:
    """Whether a count lies beside the line through the others, with logarithms on both axes.

    The line is flat while launches take longest and then bends upwards to in proportion, nowhere down: between two others a cell lies below
    their chord, and beyond two of them it lies above where these lead.
    """
    below, above = sorted(number for number in others if number < blocks), sorted(number for number in others if number > blocks)
    here, at = math.log(blocks), {number: (math.log(number), math.log(max(value, 1.0))) for number, value in others.items()}
    for near, far in (*([below[:-3:-1]] if len(below) > 1 else []), *([above[:2]] if len(above) > 1 else [])):
        (x, y), (x_far, y_far) = at[near], at[far]
        if _over(math.exp(y + min(max((y - y_far) / (x - x_far), 0.0), 1.0) * (here - x)), count):
            return True
    if not (below and above):
        return False
    (x, y), (x_above, y_above) = at[below[-1]], at[above[0]]
    return bool(_over(count, math.exp(y + (y_above - y) / (x_above - x) * (here - x))))


def _between(blocks: int, others: Mapping[int, float]) -> tuple[float | None, float | None]:
    """Return what its neighbours leave a cell: as long as the smaller one at least, as the larger one at most, and by proportion."""
    below, above = (
        max((number for number in others if number < blocks), default=None),
        min((number for number in others if number > blocks), default=None),
    )
    least = [others[below] - SAMPLES] if below is not None else []
    most = [(others[below] + SAMPLES) * blocks / below] if below is not None else []
    least += [(others[above] - SAMPLES) * blocks / above] if above is not None else []
    most += [others[above] + SAMPLES] if above is not None else []
    low, high = max(least, default=None), min(most, default=None)
    return (low, high) if low is None or high is None or low <= high else (high, low)


def uneven(cells: Sequence[GridCell]) -> dict[str, dict[str, int]]:
    """Find cells one of whose logs ended long before the other: how many samples each log has."""
    counts = {cell.place: {log.source: len(log) for log in cell.logs} for cell in cells}
    return {place: each for place, each in counts.items() if len(each) > 1 and min(each.values()) < SHORT * max(each.values())}


def launches_differ(cells: Sequence[GridCell]) -> dict[Size, float]:
    """Return the cells that launched another number of kernels than most did; none where no number is most cells'."""
    known = {cell.size: cell.work.launches for cell in cells if cell.work.launches is not None}
    usual, times = Counter(known.values()).most_common(1)[0] if known else (0.0, 0)
    return {size: count for size, count in sorted(known.items()) if count != usual} if 2 * times > len(known) else {}
