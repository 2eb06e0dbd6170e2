"""Synthetic machines whose truth is known: thousands of benchmark sessions at once, as arrays of step times.

In each session two arms run in `BLOCKS` blocks, as a study does. A run's level is drift · exp(run effect), its steps scatter around it:
runs differ by themselves, which no number of steps averages away. What real machines add can be switched on one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLOCKS = 10
STEPS = 20
STALL = 10.0  # times as long as it should take: a step that stalled
STRUCK = 2.0  # the same for a whole run, say beside another tenant's job


@dataclass(frozen=True, slots=True)
class Machine:
    """How a machine errs. Times are log-normal; the coefficients of variation are fractions.

    `drift` 0.05: the last run of a session takes 5 % longer than the first, in a straight line between. `carry_over` is the correlation of
    neighbouring runs' effects (AR(1)). `tails`: degrees of freedom of Student's t for run effects, scaled to the same CV; None is Gaussian.
    `stalled` is the share of steps that take 10 times as long, `struck` that of runs that take twice as long. `interleaved`: arms in random
    order inside each block; otherwise first all runs of one arm, then all of the other.
    """

    run_cv: float = 0.02
    step_cv: float = 0.01
    drift: float = 0.0
    carry_over: float = 0.0
    tails: int | None = None
    stalled: float = 0.0
    struck: float = 0.0
    interleaved: bool = True


def simulate(machine: Machine, slower: float, count: int, rng: np.random.Generator) -> Sessions:
    """Make sessions whose candidate takes `1 + slower` times as long as the baseline; 0 makes them A/A."""
    runs = 2 * BLOCKS
    levels = np.exp(machine.run_cv * _run_effects(machine, (count, runs), rng)) * (1 + machine.drift * np.linspace(0, 1, runs))
    levels[rng.random((count, runs)) < machine.struck] *= STRUCK
    when = _when(count, rng) if machine.interleaved else np.arange(runs).reshape(2, BLOCKS).T
    levels = np.take_along_axis(levels, np.broadcast_to(when.reshape(-1, runs), (count, runs)), axis=1).reshape(count, BLOCKS, 2)
    steps_s = (levels * [1, 1 + slower])[..., np.newaxis] * np.exp(machine.step_cv * rng.standard_normal((count, BLOCKS, 2, STEPS)))
    steps_s[rng.random(steps_s.shape) < machine.stalled] *= STALL
    return Sessions(steps_s, machine.interleaved)


def log_levels(machine: Machine, shape: tuple[int, int, int], rng: np.random.Generator) -> Floats:
    count, blocks, arms = shape
    runs = blocks * arms
    in_time = machine.run_cv * _run_effects(machine, (count, runs), rng)
    in_time += np.log1p(machine.drift * np.linspace(0, 1, runs))
    when = rng.random(shape).argsort(axis=-1) + arms * np.arange(blocks)[:, np.newaxis]
    return np.take_along_axis(in_time, when.reshape(count, runs), axis=1).reshape(shape)


def _run_effects(machine: Machine, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    if machine.tails is None:
        effects = rng.standard_normal(shape)
    else:
        effects = rng.standard_t(machine.tails, shape) / math.sqrt(machine.tails / (machine.tails - 2))
    for run in range(1, shape[1]):
        fresh = math.sqrt(1 - machine.carry_over**2)
        effects[:, run] = machine.carry_over * effects[:, run - 1] + fresh * effects[:, run]
    return effects


def _when(count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Place in time of each run, shape (sessions, blocks, 2): a coin is thrown in each block for which arm goes first."""
    second = rng.integers(0, 2, (count, BLOCKS, 1))
    return np.asarray(2 * np.arange(BLOCKS)[:, np.newaxis] + np.concatenate([second, 1 - second], axis=-1))


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Step times, shape (sessions, blocks, 2, steps), seconds; arm 0 is the baseline, 1 the candidate.

    Blocks are in time order. Where arms are not interleaved, all of arm 1 came after all of arm 0.
    """

    steps_s: Floats
    interleaved: bool = True

    @property
    def blocks(self) -> int:
        return int(self.steps_s.shape[1])


def run_means(sessions: Sessions) -> Floats:
    return np.asarray(sessions.steps_s.mean(axis=-1))


def pooled(sessions: Sessions, steps: int | None = None) -> Floats:
    """All steps of an arm in one heap, or the first few of each run: shape (sessions, 2, blocks · steps)."""
    return sessions.steps_s[..., :steps].swapaxes(1, 2).reshape(len(sessions.steps_s), 2, -1)


def few_runs(sessions: Sessions, runs: int) -> Floats:
    """What a rule sees that looks at a few runs an arm: blocks that follow each other, shape (sessions, runs, 2, steps).

    It is another stretch in each session, so that no part of a session speaks for all of it.
    """
    count = len(sessions.steps_s)
    starts = np.arange(count) % (sessions.blocks - runs + 1)
    return np.asarray(sessions.steps_s[np.arange(count)[:, np.newaxis], starts[:, np.newaxis] + np.arange(runs)])


def history_and_newest(sessions: Sessions, history: int, newest: int) -> tuple[Floats, Floats]:
    """Mean step time of the last baseline runs and of the candidate runs that came right after, shape (sessions, runs) each.

    Where arms were interleaved no candidate run came after all of the baseline; the last ones are taken.
    """
    means = run_means(sessions)
    return means[:, -history:, 0], means[:, -newest:, 1] if sessions.interleaved else means[:, :newest, 1]
