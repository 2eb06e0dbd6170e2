"""Checkpoint intervals in simulation: jobs that fail at random, write checkpoints and begin again, where formulas do not reach.

Daly's formula is of jobs without an end and of failures without a memory. Here a job has so much work, and times between failures may be
Weibull's: of shape 1 they are exponential, below 1 failures come in bunches. Every interval meets the same failures, seed by seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import simpy

from analysis.terms import Refused

from .blocks import mean, ratio
from .intervals import advise, time_per_work

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from analysis.studies.jobs.queues.terms import Figure

    from .blocks import Ratio
    from .intervals import Advice

AROUND = (0.25, 0.5, 1.0, 2.0, 4.0)  # of Daly's interval
MOST_STEPS = 2_000_000  # segments of work and failures that one job may come to


@dataclass(frozen=True, slots=True)
class Asked:
    """What is simulated: times in seconds, `shape` that of Weibull, one job a seed."""

    cost_s: float
    mtbf_s: float
    work_s: float
    restart_s: float = 0.0
    shape: float = 1.0
    seeds: int = 200
    intervals_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Played:
    """One interval: time per work over the seeds, by Daly's formula, and over that of Daly's interval with the same failures."""

    interval_s: float
    time: Figure
    formula: float
    against_daly: Ratio | None


def simulate(asked: Asked) -> tuple[Advice, list[Played]]:
    """Play every interval, those around Daly's where none is asked for. Raises: Refused."""
    if not 0 < asked.work_s < math.inf or not 0.1 <= asked.shape <= 10 or not 3 <= asked.seeds <= 100_000:
        raise Refused("the work is above 0 s, the shape from 0.1 to 10, seeds from 3 to 100000.")
    if not all(0 < one < math.inf for one in asked.intervals_s):
        raise Refused("an interval between checkpoints is above 0 s.")
    advice = advise(asked.cost_s, asked.mtbf_s, asked.restart_s)
    wanted = sorted({*(asked.intervals_s or (advice.daly_s * part for part in AROUND)), advice.daly_s})
    for one in wanted:
        _bounded(asked, one)
    times = {one: [_job(asked, one, seed) / asked.work_s for seed in range(asked.seeds)] for one in wanted}
    base = times[advice.daly_s]
    found = []
    for one in wanted:
        figure = mean({("", seed): [value] for seed, value in enumerate(times[one])})
        pairs = {("", seed): [both] for seed, both in enumerate(zip(base, times[one], strict=True))}
        if figure is not None:
            formula = time_per_work(one, asked.cost_s, asked.mtbf_s, asked.restart_s)
            found.append(Played(one, figure, formula, ratio(pairs) if one != advice.daly_s else None))
    return advice, found


def _bounded(asked: Asked, interval_s: float) -> None:
    """Refuse what would be played for hours: segments that hardly ever end without a failure, or too many of them."""
    segments = asked.work_s / interval_s
    steps = segments * time_per_work(interval_s, asked.cost_s, asked.mtbf_s, asked.restart_s) * interval_s
    steps = segments + steps / asked.mtbf_s
    if not steps * asked.seeds < MOST_STEPS * 10 or not steps < MOST_STEPS:
        raise Refused(
            f"{interval_s:g} s between checkpoints makes some {steps:.1g} segments and failures a job, too many to play: "
            "ask for less work, fewer seeds, or an interval nearer to the MTBF's."
        )


def _job(asked: Asked, interval_s: float, seed: int) -> float:
    """How long one job takes in all, in seconds."""
    clock = simpy.Environment()
    failures = _failures(asked, seed)
    job = clock.process(_life(clock, asked, interval_s, failures))
    clock.run(job)
    return float(clock.now)


def _failures(asked: Asked, seed: int) -> Iterator[float]:
    """Moments of failures, by wall-clock time: the same whatever the job does."""
    rng = np.random.default_rng([seed, 10])
    scale, now = asked.mtbf_s / math.gamma(1 + 1 / asked.shape), 0.0
    while True:
        for gap in scale * rng.weibull(asked.shape, 256):
            now += float(gap)
            yield now


def _life(clock: simpy.Environment, asked: Asked, interval_s: float, failures: Iterator[float]) -> Generator[simpy.Event, None, None]:
    done_s, failure = 0.0, next(failures)
    while done_s < asked.work_s:
        segment_s = min(interval_s, asked.work_s - done_s)
        # The end of the work needs no checkpoint: the job is done.
        cost_s = asked.cost_s if done_s + segment_s < asked.work_s else 0.0
        until = clock.now + segment_s + cost_s
        if until <= failure:
            yield clock.timeout(until - clock.now)
            done_s += segment_s
            continue
        yield clock.timeout(max(0.0, failure - clock.now))
        back = clock.now + asked.restart_s
        failure = next(failures)
        while failure < back:
            back, failure = failure + asked.restart_s, next(failures)
        yield clock.timeout(back - clock.now)


def least(found: Sequence[Played]) -> Played:
    """The interval that took least time."""
    return min(found, key=lambda one: one.time.value)
