"""Real noise of many arms that change nothing: which two are the baseline is arbitrary, and so is which blocks were measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from analysis.arms import Arm, met, side, studies
from analysis.between import primary_of
from analysis.checks import same_machine
from analysis.verdict import GUARD
from control.t_test import ALPHA

from .baselines import BLOCKS, claims, contrasts
from .rates import Rates
from .stopping import WAYS, judged

if TYPE_CHECKING:
    from analysis.arms import Place, Side
    from analysis.stats.sessions import Floats
    from analysis.terms import Run

FEWEST_ARMS = 5  # that change nothing: two are the baseline, and there must be a family
FEWEST_BLOCKS = 12  # more than are drawn


def arms_rates(run: Run, seed: int, trials: int) -> Rates | None:
    """How often equal arms of a run are called different, in draws of roles and blocks; None of a run with too few equal arms."""
    rows: dict[str, tuple[float | None, ...]] = {}
    for workload, times in _untouched(run).items():
        rng = np.random.default_rng([seed, *workload.encode()])
        blocks, arms = times.shape
        drawn = np.stack([times[rng.permutation(blocks)][:, rng.permutation(arms)] for _ in range(trials)])
        few = drawn[:, :BLOCKS]
        for way, together, level in (("stock alone", False, 0.0), ("both", True, GUARD)):
            own = contrasts(few, together=together).p[:, -(arms - 2) :] < ALPHA
            alarms = claims(few, level, together=together).any(axis=-1)
            rows[f"{workload}, {BLOCKS} blocks, {way}"] = float(alarms.mean()), float(own.mean())
        gains = (drawn[..., :2].mean(axis=-1)[..., np.newaxis] - drawn[..., 2:]).swapaxes(1, 2)
        for way, (stops, widened) in WAYS.items():
            alarm, own_share, *_ = judged(gains, 0.0, stops=stops, widened=widened)
            rows[f"{workload}, {way if stops else f'{blocks} blocks, both'}"] = alarm, own_share
    return Rates(f"Equal arms of run {run.run_id}", ("any", "own p"), rows) if rows else None


def _untouched(run: Run) -> dict[str, Floats]:
    """Logs of the primary metric in the arms that change nothing, by workload, shape (blocks, arms)."""
    arm = Arm(run.origin, (run,))
    found = {}
    for study in studies([arm]):
        for workload, names in met(arm, study).items():
            metric = primary_of(run, study, workload).name
            sides = [one for name in names if (one := side(arm, study, workload, name)) is not None]
            equal = [one for one in sides if _same(sides[0], one)]
            places = sorted(set.intersection(*map(_measured, equal)))
            if len(equal) >= FEWEST_ARMS and len(places) >= FEWEST_BLOCKS:
                found[workload] = np.array([[math.log(one.cells[place].metrics[metric]) for one in equal] for place in places])
    return found


def _same(one: Side, other: Side) -> bool:
    shared = _measured(one) & _measured(other)
    return same_machine((one.tweakset, other.tweakset), [(one.cells[place], other.cells[place]) for place in shared])


def _measured(one: Side) -> set[Place]:
    return {place for place, cell in one.cells.items() if cell.outcome == "measured"}
