"""How often to write a checkpoint: rules of thumb, the exact answer, and simulation where formulas do not reach.

`cost_s` is what one checkpoint takes, `mtbf_s` the mean time between failures of what is checkpointed: one job while it runs, not the
cluster. All times in one unit. The formulas are of failures at random (exponential times between them) and of jobs without an end. In
simulation a job has so much work, and times between failures may be Weibull's: of shape 1 they are exponential, below 1 failures come in
bunches. Every interval meets the same failures, seed by seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import simpy

from analysis.studies.jobs.estimates import mean, ratio
from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from analysis.studies.jobs.estimates import Figure, Ratio


NEAR = 0.01  # how much more time than the least is no matter
_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class Advice:
    """Intervals between checkpoints for one cost and MTBF, in seconds of work, and what each makes of the time.

    `low_s` to `high_s` take at most 1 % more time than the best. Overheads are the expected time over the work, less 1; infinite where
    hardly anything is ever done. `too_dear`: a checkpoint takes so long that the rules do not hold.
    """

    cost_s: float
    mtbf_s: float
    restart_s: float
    young_s: float
    daly_s: float
    best_s: float
    low_s: float
    high_s: float
    young_overhead: float
    daly_overhead: float
    best_overhead: float
    too_dear: bool


def young_s(cost_s: float, mtbf_s: float) -> float:
    """First-order interval √(2·C·M). Source: Young, CACM 17(9), 1974."""
    return math.sqrt(2 * cost_s * mtbf_s)


def daly_s(cost_s: float, mtbf_s: float) -> float:
    """Higher-order interval; the MTBF itself where a checkpoint takes twice that and more. Source: Daly, FGCS 22(3), 2006, eq. 37."""
    if cost_s >= 2 * mtbf_s:
        return mtbf_s
    part = cost_s / (2 * mtbf_s)
    return young_s(cost_s, mtbf_s) * (1 + math.sqrt(part) / 3 + part / 9) - cost_s


def best_s(cost_s: float, mtbf_s: float) -> float:
    """The interval of least expected time, exactly: with x = τ/M and c = C/M the root of log(1 - x) + x + c = 0."""
    share = cost_s / mtbf_s
    return mtbf_s * _root(lambda x: math.log1p(-x) + x + share, 0.0, math.nextafter(1.0, 0.0))


def time_per_work(interval_s: float, cost_s: float, mtbf_s: float, restart_s: float = 0.0) -> float:
    """Expected time that one second of work takes, 1 without failures and checkpoints; infinite where a float does not hold it.

    A failure costs all since the last checkpoint and a restart, and may come during either. Source: Daly, 2006, eq. 13, exact under
    exponential times between failures.
    """
    try:
        return mtbf_s * math.exp(restart_s / mtbf_s) * math.expm1((interval_s + cost_s) / mtbf_s) / interval_s
    except OverflowError:
        return math.inf


def advise(cost_s: float, mtbf_s: float, restart_s: float = 0.0) -> Advice:
    for name, value, least in (("the cost of a checkpoint", cost_s, 0.0), ("the mean time between failures", mtbf_s, 0.0)):
        if not least < value < math.inf:
            raise Refused(f"{name} is {value:g} s; a time above 0 belongs there.")
    if not 0 <= restart_s < math.inf:
        raise Refused(f"the time to restart is {restart_s:g} s; 0 or more belongs there.")
    if not 1e-12 < cost_s / mtbf_s < 100:
        raise Refused(f"a checkpoint of {cost_s:g} s every {mtbf_s:g} s between failures: one is out of all proportion to the other.")
    young, daly, best = young_s(cost_s, mtbf_s), daly_s(cost_s, mtbf_s), best_s(cost_s, mtbf_s)
    most = time_per_work(best, cost_s, mtbf_s) * (1 + NEAR)

    def dearer(interval_s: float) -> float:
        return time_per_work(interval_s, cost_s, mtbf_s) - most

    above = 2 * best
    while dearer(above) < 0:
        above *= 2
    low_s, high_s = _root(dearer, best * 1e-9, best), _root(lambda longer_s: -dearer(longer_s), best, above)
    over = [time_per_work(each_s, cost_s, mtbf_s, restart_s) - 1 for each_s in (young, daly, best)]
    return Advice(cost_s, mtbf_s, restart_s, young, daly, best, low_s, high_s, over[0], over[1], over[2], cost_s >= mtbf_s / 2)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2


AROUND = (0.25, 0.5, 1.0, 2.0, 4.0)  # of Daly's interval
MOST_STEPS = 2_000_000  # segments of work and failures that one job may come to


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    cost_s: float
    mtbf_s: float
    work_s: float
    restart_s: float = 0.0
    shape: float = 1.0
    seeds: int = 200
    intervals_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class PlayedInterval:
    """One interval: time per work over the seeds, by Daly's formula, and over that of Daly's interval with the same failures."""

    interval_s: float
    time: Figure
    formula: float
    against_daly: Ratio | None


def simulate(plan: CheckpointPlan) -> tuple[Advice, list[PlayedInterval]]:
    if not 0 < plan.work_s < math.inf or not 0.1 <= plan.shape <= 10 or not 3 <= plan.seeds <= 100_000:
        raise Refused("the work is above 0 s, the shape from 0.1 to 10, seeds from 3 to 100000.")
    if not all(0 < interval_s < math.inf for interval_s in plan.intervals_s):
        raise Refused("an interval between checkpoints is above 0 s.")
    advice = advise(plan.cost_s, plan.mtbf_s, plan.restart_s)
    intervals_s = sorted({*(plan.intervals_s or (advice.daly_s * part for part in AROUND)), advice.daly_s})
    for every_s in intervals_s:
        _bounded(plan, every_s)
    times = {every_s: [_job(plan, every_s, seed) / plan.work_s for seed in range(plan.seeds)] for every_s in intervals_s}
    base = times[advice.daly_s]
    played = []
    for every_s in intervals_s:
        figure = mean({("", seed): [value] for seed, value in enumerate(times[every_s])})
        pairs = {("", seed): [both] for seed, both in enumerate(zip(base, times[every_s], strict=True))}
        if figure is not None:
            formula = time_per_work(every_s, plan.cost_s, plan.mtbf_s, plan.restart_s)
            played.append(PlayedInterval(every_s, figure, formula, ratio(pairs) if every_s != advice.daly_s else None))
    return advice, played


def _bounded(plan: CheckpointPlan, interval_s: float) -> None:
    segments = plan.work_s / interval_s
    steps = segments * time_per_work(interval_s, plan.cost_s, plan.mtbf_s, plan.restart_s) * interval_s
    steps = segments + steps / plan.mtbf_s
    if not steps * plan.seeds < MOST_STEPS * 10 or not steps < MOST_STEPS:
        raise Refused(
            f"{interval_s:g} s between checkpoints makes some {steps:.1g} segments and failures a job, too many to play: "
            "ask for less work, fewer seeds, or an interval nearer to the MTBF's."
        )


def _job(plan: CheckpointPlan, interval_s: float, seed: int) -> float:
    clock = simpy.Environment()
    failures = _failures(plan, seed)
    job = clock.process(_life(clock, plan, interval_s, failures))
    clock.run(job)
    return float(clock.now)


def _failures(plan: CheckpointPlan, seed: int) -> Iterator[float]:
    rng = np.random.default_rng([seed, 10])
    scale, now = plan.mtbf_s / math.gamma(1 + 1 / plan.shape), 0.0
    while True:
        for gap in scale * rng.weibull(plan.shape, 256):
            now += float(gap)
            yield now


def _life(
    clock: simpy.Environment, plan: CheckpointPlan, interval_s: float, failures: Iterator[float]
) -> Generator[simpy.Event, None, None]:
    done_s, failure = 0.0, next(failures)
    while done_s < plan.work_s:
        segment_s = min(interval_s, plan.work_s - done_s)
        # The end of the work needs no checkpoint: the job is done.
        cost_s = plan.cost_s if done_s + segment_s < plan.work_s else 0.0
        until = clock.now + segment_s + cost_s
        if until <= failure:
            yield clock.timeout(until - clock.now)
            done_s += segment_s
            continue
        yield clock.timeout(max(0.0, failure - clock.now))
        back = clock.now + plan.restart_s
        failure = next(failures)
        while failure < back:
            back, failure = failure + plan.restart_s, next(failures)
        yield clock.timeout(back - clock.now)
