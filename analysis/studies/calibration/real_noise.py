"""The noise of a real machine, from the cells of a saved run in which nothing was changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.arms import Arm, Place, Side, met, side, studies
from analysis.checks import same_machine
from analysis.pairing import pair, primary_of
from analysis.stats.effect import paired_effect, two_sample_effect
from analysis.stats.simulate import BLOCKS, Floats, Sessions
from analysis.terms import AGAIN, Cell, Effect, Metric, NotComparable, Refused, Run
from analysis.verdict import GUARD
from control.t_test import ALPHA

from .rates import FEW_BLOCKS, MARGIN, STOPS, Rates, any_called, ask, claims, contrasts, judged

FEWEST = 5
FEWEST_STEPS = 3
STEP_TIME = Metric("step_time_mean_s", "lower")


@dataclass(frozen=True, slots=True)
class Noise:
    """A/A cells of one workload: step times in seconds.

    `blocks_s` has shape (blocks, 2, steps), blocks in time order, baseline first; `in_time_s` the same cells in the order in which
    they ran, (2 · blocks, steps), and `work` what was done in each of those steps: tokens, else samples, where every step has some.
    """

    workload: str
    blocks_s: Floats
    in_time_s: Floats
    work: Floats


@dataclass(frozen=True, slots=True)
class Steadiness:
    """What a workload's A/A cells say of its machine: three comparisons of equals, each of which should show nothing.

    `again`: stock-again against stock, as they were named. `later_steps`: second half of each cell's steps against its first, in time
    for the same work. `later_cells`: second half of the session against its first, cells not paired.
    `run_cv` is the spread of one cell among equals, a fraction.
    """

    workload: str
    blocks: int
    run_cv: float
    again: Effect
    later_steps: Effect
    later_cells: Effect


@dataclass(frozen=True, slots=True)
class RealNoise:
    """What the A/A cells of one saved run say of the rules, and of the machine."""

    run: Run
    rates: Rates
    steadiness: tuple[Steadiness, ...]
    arms: Rates | None


def real_noise(run: Run, seed: int, trials: int) -> RealNoise:
    """Put the A/A cells of a run to every rule, and to each other.

    Raises: Refused, where there are too few cells, or they do not differ at all.
    """
    noises = noise_of(run)
    try:
        steadiness = tuple(_steadiness(noise) for noise in noises)
    except NotComparable as reason:
        raise Refused(f"{run.origin}: {reason}") from None
    return RealNoise(run, noise_rates(noises, run.run_id, seed, trials), steadiness, arms_rates(run, seed, trials))


def noise_of(run: Run) -> list[Noise]:
    """Collect the A/A cells of each workload that has at least `FEWEST` blocks of them.

    Raises: Refused, where none has.
    """
    arm = Arm(run.origin, (run,))
    result = []
    for study in studies([arm]):
        for workload in met(arm, study):
            base, again = (side(arm, study, workload, name) for name in (run.baseline, AGAIN))
            cells = pair(base, again).cells if base and again else ([], [])
            if len(cells[0]) >= FEWEST and min(map(_measured, (*cells[0], *cells[1]))) >= FEWEST_STEPS:
                result.append(_noise(workload, *cells))
    if not result:
        wanted = f"{FEWEST} blocks of both {run.baseline} and {AGAIN} with {FEWEST_STEPS} measured steps"
        raise Refused(f"{run.origin}: no workload has {wanted}; `pytest benchmarks/ --tweaks=stock` measures them.")
    return result


def _measured(cell: Cell) -> int:
    return len(cell.steps.wall_s) - cell.steps.warmup if cell.steps else 0


def _noise(workload: str, base: list[Cell], again: list[Cell]) -> Noise:
    steps = {cell.id: cell.steps for cell in (*base, *again) if cell.steps is not None}
    count = min(map(_measured, (*base, *again)))

    def of(cell: Cell, column: str) -> Sequence[float] | None:
        values: Sequence[float] | None = getattr(steps[cell.id], column)
        return values and values[steps[cell.id].warmup :][:count]

    in_time = sorted((*base, *again), key=lambda cell: cell.order)
    counted = ([of(cell, column) for cell in in_time] for column in ("tokens", "samples"))
    return Noise(
        workload,
        np.array([[of(cell, "wall_s") for cell in cells] for cells in zip(base, again, strict=True)]),
        np.array([of(cell, "wall_s") for cell in in_time]),
        np.array(next((work for work in counted if all(each and all(each) for each in work)), np.ones((len(in_time), count))), float),
    )


def swapped(noise: Noise, count: int, rng: np.random.Generator) -> Sessions:
    """Draw A/A sessions: ten of the blocks at random, in their order, and in each a coin for which cell is the candidate."""
    blocks = len(noise.blocks_s)
    chosen = np.sort(rng.random((count, blocks)).argsort(axis=1)[:, :BLOCKS], axis=1)
    arms = rng.integers(0, 2, (*chosen.shape, 1))
    return Sessions(noise.blocks_s[chosen[..., np.newaxis], np.concatenate([arms, 1 - arms], axis=-1)])


def one_after_the_other(noise: Noise) -> Sessions:
    """Take every stretch of cells that follow each other in time: its first half is the baseline, its second the candidate."""
    runs = min(BLOCKS, (len(noise.blocks_s) + 1) // 2)
    starts = np.arange(len(noise.in_time_s) - 2 * runs + 1)
    cells = starts[:, np.newaxis, np.newaxis] + np.arange(2 * runs).reshape(2, runs).T
    return Sessions(noise.in_time_s[cells], interleaved=False)


def noise_rates(noises: Sequence[Noise], run_id: str, seed: int, trials: int) -> Rates:
    """How often each rule calls a difference between equal cells: in one contrast, in any of the workloads, and A then B."""
    rng = np.random.default_rng([seed, *run_id.encode()])
    sessions = [swapped(noise, trials, rng) for noise in noises]
    record = _mean(any_called(ask([each]), 1) for each in sessions)
    any_of = any_called(ask(sessions), len(sessions))
    in_time = _mean(any_called(ask([one_after_the_other(noise)]), 1) for noise in noises)
    rows = {rule: (record[rule], any_of.get(rule), in_time[rule]) for rule in record}
    return Rates(f"A/A cells of {run_id}", ("swapped", f"any of {len(noises)}", "A then B"), rows)


def _mean(shares: Iterable[dict[str, float | None]]) -> dict[str, float | None]:
    columns = list(shares)
    means: dict[str, float | None] = {}
    for rule in columns[0]:
        known = [share for share in (column[rule] for column in columns) if share is not None]
        means[rule] = sum(known) / len(known) if len(known) == len(columns) else None
    return means


def _steadiness(noise: Noise) -> Steadiness:
    means = noise.blocks_s.mean(axis=-1)
    again = paired_effect(STEP_TIME, means[:, 0].tolist(), means[:, 1].tolist(), MARGIN)
    before, after = (half.mean(axis=-1).tolist() for half in np.array_split(noise.in_time_s, 2))
    return Steadiness(
        workload=noise.workload,
        blocks=len(means),
        run_cv=again.log_sd / math.sqrt(2),
        again=again,
        later_steps=_later_steps(noise),
        later_cells=two_sample_effect(STEP_TIME, before, after, MARGIN),
    )


def _later_steps(noise: Noise) -> Effect:
    seconds, work = ([half.sum(axis=1) for half in np.array_split(column, 2, axis=1)] for column in (noise.in_time_s, noise.work))
    early, late = ((time / done).tolist() for time, done in zip(seconds, work, strict=True))
    return paired_effect(STEP_TIME, early, late, MARGIN)


FEWEST_ARMS = 5  # that change nothing: two are the baseline, and there must be a family
FEWEST_BLOCKS = 12  # more than are drawn


def arms_rates(run: Run, seed: int, trials: int) -> Rates | None:
    """How often equal arms of a run are called different, in draws of roles and blocks; None of a run with too few equal arms."""
    rows: dict[str, tuple[float | None, ...]] = {}
    for workload, times in _untouched(run).items():
        rng = np.random.default_rng([seed, *workload.encode()])
        blocks, arms = times.shape
        drawn = np.stack([times[rng.permutation(blocks)][:, rng.permutation(arms)] for _ in range(trials)])
        few = drawn[:, :FEW_BLOCKS]
        for way, together, level in (("stock alone", False, 0.0), ("both", True, GUARD)):
            own = contrasts(few, together=together).p[:, -(arms - 2) :] < ALPHA
            alarms = claims(few, level, together=together).any(axis=-1)
            rows[f"{workload}, {FEW_BLOCKS} blocks, {way}"] = float(alarms.mean()), float(own.mean())
        gains = (drawn[..., :2].mean(axis=-1)[..., np.newaxis] - drawn[..., 2:]).swapaxes(1, 2)
        for way, (stops, widened) in STOPS.items():
            alarm, own_share, *_ = judged(gains, 0.0, stops=stops, widened=widened)
            rows[f"{workload}, {way if stops else f'{blocks} blocks, both'}"] = alarm, own_share
    return Rates(f"Equal arms of run {run.run_id}", ("any", "own p"), rows) if rows else None


def _untouched(run: Run) -> dict[str, Floats]:
    arm = Arm(run.origin, (run,))
    result = {}
    for study in studies([arm]):
        for workload, names in met(arm, study).items():
            metric = primary_of(run, study, workload).name
            sides = [one for name in names if (one := side(arm, study, workload, name)) is not None]
            equal = [one for one in sides if _same(sides[0], one)]
            places = sorted(set.intersection(*map(_places, equal)))
            if len(equal) >= FEWEST_ARMS and len(places) >= FEWEST_BLOCKS:
                result[workload] = np.array([[math.log(one.cells[place].metrics[metric]) for one in equal] for place in places])
    return result


def _same(one: Side, other: Side) -> bool:
    shared = _places(one) & _places(other)
    return same_machine((one.tweakset, other.tweakset), [(one.cells[place], other.cells[place]) for place in shared])


def _places(one: Side) -> set[Place]:
    return {place for place, cell in one.cells.items() if cell.outcome == "measured"}
