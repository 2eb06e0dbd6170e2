"""Checkpoint intervals in simulation, each against the same failures, seed by seed.

Times between failures may be Weibull's: of shape 1 they are exponential, below 1 failures come in bunches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.answer import Answer, Column, Columns, Line, Section, Word, table_of
from analysis.terms import Refused

from .checkpoints import Advice, advise, time_per_work
from .claims import CANT_TELL, claimed, claims_first, verdict
from .estimates import Figure, Ratio, figure, mean, number, ratio

MOST_STEPS = 2_000_000  # segments of work and failures that one job may come to
AROUND = (0.25, 0.5, 1.0, 2.0, 4.0)  # of Daly's interval


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
    formulas = {every_s: time_per_work(every_s, plan.cost_s, plan.mtbf_s, plan.restart_s) for every_s in intervals_s}
    for every_s, formula in formulas.items():
        steps = plan.work_s / every_s + plan.work_s * formula / plan.mtbf_s
        if not steps * plan.seeds < MOST_STEPS * 10 or not steps < MOST_STEPS:
            raise Refused(
                f"{every_s:g} s between checkpoints makes some {steps:.1g} segments and failures a job, too many to play: "
                "ask for less work, fewer seeds, or an interval nearer to the MTBF's."
            )
    times = {every_s: [job_s(plan, every_s, _failures(plan, seed)) / plan.work_s for seed in range(plan.seeds)] for every_s in intervals_s}
    played = []
    for every_s, formula in formulas.items():
        pairs = {("", seed): [both] for seed, both in enumerate(zip(times[advice.daly_s], times[every_s], strict=True))}
        time = mean({unit: [own] for unit, [(_, own)] in pairs.items()})
        if time is not None:
            played.append(PlayedInterval(every_s, time, formula, ratio(pairs) if every_s != advice.daly_s else None))
    return advice, played


def _failures(plan: CheckpointPlan, seed: int) -> Iterator[float]:
    rng = np.random.default_rng([seed, 10])
    scale, now = plan.mtbf_s / math.gamma(1 + 1 / plan.shape), 0.0
    while True:
        for gap in scale * rng.weibull(plan.shape, 256):
            now += float(gap)
            yield now


def job_s(plan: CheckpointPlan, interval_s: float, failures: Iterator[float]) -> float:
    """Return how long a job takes that fails at these times, ascending."""
    now, done_s, failure = 0.0, 0.0, next(failures)
    while done_s < plan.work_s:
        segment_s = min(interval_s, plan.work_s - done_s)
        # The end of the work needs no checkpoint: the job is done.
        until = now + segment_s + (plan.cost_s if done_s + segment_s < plan.work_s else 0.0)
        if until <= failure:
            now, done_s = until, done_s + segment_s
            continue
        now, failure = failure + plan.restart_s, next(failures)
        while failure < now:
            now, failure = failure + plan.restart_s, next(failures)
    return now


def simulated(plan: CheckpointPlan) -> Answer:
    """The interval that takes least time in simulation, and whether it is shown to be faster than Daly's."""
    advice, intervals = simulate(plan)

    def word(played: PlayedInterval) -> Word | None:
        if played.interval_s == advice.daly_s:
            return None
        over = played.against_daly
        return CANT_TELL if over is None or over.low is None or over.high is None or over.low <= 1 <= over.high else verdict(over, 0.0)

    columns: Columns = [
        (Column("interval\ns", "interval_s", number), lambda played: played.interval_s),
        (Column("it is", "verdict", left=True), lambda played: word(played) or Word("Daly's", "strong")),
        (Column("time over\nDaly's [95 %]", "against_daly", figure), lambda played: played.against_daly),
        (Column("time/work\n[95 %]", "time_per_work", lambda time: figure(time, most=5)), lambda played: played.time),
        (Column("formula", write="{:.4f}".format), lambda played: played.formula),
    ]
    verdicts = [(mark, f"{number(played.interval_s)} s") for played in intervals if (mark := word(played)) is not None]
    failures = "at random" if plan.shape == 1 else f"by Weibull's law of shape {plan.shape:g}"
    jobs = f"SIMULATED: {plan.seeds} jobs of {number(plan.work_s)} s of work for each interval, the same failures for all, every "
    costs = f"A checkpoint takes {number(plan.cost_s)}, a restart {number(plan.restart_s)} s."
    return Answer(
        title=f"Against Daly's interval, {number(advice.daly_s)} s. {claimed(verdicts)}",
        findings=[Line(f"{jobs}{number(plan.mtbf_s)} s on average {failures}. {costs}")],
        sections=[Section("", [table_of(columns, claims_first(intervals, word))])],
        data={"simulated": True, "asked": plan, "advice": advice, "intervals": intervals},
    )
