"""The shadow optimiser: learns the model's residuals, and changes shares and batches."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from .greedy import fits
from .tables import SpeedKnob, Tables, at_most, model_clock, partition_of
from .terms import Partition, tenants_of

if TYPE_CHECKING:
    from .terms import Floats, Knobs, Question, Seen, Tenant

MOST_PROCESSES = 10
STEP_PERCENT = 5.0
RUNGS = (-3, -2, -1, 1, 2, 3)
BATCHES: tuple[int, ...] = (1, 2, 4, *range(8, 257, 4))


def bounds(share: float, network: str) -> tuple[int, int]:
    """Return the smallest and largest batch for a share: 0.8 and 6.4 images per percent."""
    high = int(6.4 * share)
    while not fits(network, high):
        high -= 1
    return max(4, int(0.8 * share)), high


def around(here: Partition, network: str, knobs: Knobs) -> list[Partition]:
    """Return all settable neighbours of a partition, in a fixed order; [] if too many processes.

    They move 5 % of share to or from the largest process, or one batch by up to three rungs, merge
    the two smallest processes, or split the largest.
    """
    tiles = list(zip(here.shares, here.batches, strict=True))
    if len(tiles) > MOST_PROCESSES:
        return []
    by_size = sorted(range(len(tiles)), key=lambda at: (here.shares[at], at))
    largest = max(range(len(tiles)), key=lambda at: here.shares[at])
    most, its_batch = tiles[largest]
    changes: list[dict[int, list[tuple[float, int]]]] = [
        {at: [(share + step, batch)], largest: [(most - step, its_batch)]}
        for at, (share, batch) in enumerate(tiles)
        for step in (STEP_PERCENT, -STEP_PERCENT)
        if at != largest and min(share + step, most - step) >= STEP_PERCENT
    ]
    for at, (share, batch) in enumerate(tiles):
        low, high = bounds(share, network)
        rungs = [at_most(BATCHES, batch) + step for step in RUNGS]
        others = [BATCHES[rung] for rung in rungs if 0 <= rung < len(BATCHES)]
        changes += [{at: [(share, other)]} for other in others if low <= other <= high]
    if len(tiles) > 1:
        first, second = sorted(by_size[:2])
        share = here.shares[first] + here.shares[second]
        rung = _rung(here.batches[first] + here.batches[second], share, network)
        changes.append({first: [(share, rung)], second: []})
    half = STEP_PERCENT * (most / 2 // STEP_PERCENT)
    if half >= STEP_PERCENT:
        parts = (half, most - half)
        changes.append({largest: [(part, _rung(its_batch // 2, part, network)) for part in parts]})
    result = []
    for change in changes:
        new = [tile for at, old in enumerate(tiles) for tile in change.get(at, [old])]
        shares, batches = zip(*new, strict=True)
        result.append(Partition(shares, batches))
    return [
        one
        for one in dict.fromkeys(result)
        if one != here
        and len(one.shares) <= min(MOST_PROCESSES, knobs.most_processes)
        and (knobs.shares or one.shares == here.shares)
        and all(batch in knobs.batches for batch in one.batches)
    ]


def _rung(batch: int, share: float, network: str) -> int:
    low, high = bounds(share, network)
    return BATCHES[at_most(BATCHES, min(max(batch, low), high))]


EVERY = 3  # iterations from one update to the next
LEAST_POINTS, WINDOW = 5, 300
EXPLORING = 500  # updates during which worse is accepted, the less the later
EARLY, LATE, PACE = -0.10, 0.02, 4.0  # the threshold at first, in the end, and how it gets there
ALPHA, SMOOTHNESS = 1e-3, 2.5


@dataclass(slots=True)
class Shadow:
    """The optimiser of a run: its observations, and two Gaussian processes fitted to them."""

    tables: Tables
    question: Question
    updates: int = 0
    seen: list[tuple[list[float], float, float]] = field(default_factory=list)

    def moved(self, seen: Seen) -> tuple[Tenant, ...] | None:
        """Return new tenants, or None to keep the current ones.

        Looks every third iteration, and only below the cap.
        """
        here = partition_of(seen.settings.tenants)
        if seen.throughput_images_per_s is None or seen.power_mean is None or not here.shares:
            return None
        mem_mhz, state = self._clocks(seen)
        throughput, power = self._model(mem_mhz, state, [here])
        self.seen.append(
            (
                self._features(mem_mhz, state, here),
                seen.throughput_images_per_s - float(throughput[0]),
                seen.power_mean - float(power[0]),
            )
        )
        del self.seen[:-WINDOW]
        if (
            (seen.iteration + 1) % EVERY
            or seen.power_mean > seen.cap
            or len(self.seen) < LEAST_POINTS
        ):
            return None
        self.updates += 1
        return self._best(seen, here, mem_mhz, state)

    def threshold(self) -> float:
        """Return by which fraction predicted throughput must rise (below 0: may fall)."""
        done = self.updates / EXPLORING
        return EARLY * (1 - done) if done < 1 else LATE * (1 - exp(-PACE * (done - 1)))

    def _best(
        self, seen: Seen, here: Partition, mem_mhz: float, state: int
    ) -> tuple[Tenant, ...] | None:
        others = around(here, self.question.model, self.question.knobs)
        if not others:
            return None
        points = np.array(
            [self._features(mem_mhz, state, partition) for partition in (here, *others)]
        )
        throughput, power = self._model(mem_mhz, state, [here, *others])
        missed, missed_sd = self._residual(points, 1)
        drawn, drawn_sd = self._residual(points, 2)
        gain = throughput[1:] + missed[1:] - (throughput[0] + missed[0])
        z = gain / missed_sd[1:]
        improvement = gain * norm.cdf(z) + missed_sd[1:] * norm.pdf(z)
        within = norm.cdf((seen.cap - power[1:] - drawn[1:]) / drawn_sd[1:])
        at = int(np.argmax(improvement * within))
        return (
            tenants_of(others[at])
            if gain[at] > self.threshold() * (throughput[0] + missed[0])
            else None
        )

    def _residual(self, points: Floats, which: int) -> tuple[Floats, Floats]:
        learnt, missed = (
            np.array([entry[0] for entry in self.seen]),
            np.array([entry[which] for entry in self.seen]),
        )
        process = GaussianProcessRegressor(Matern(nu=SMOOTHNESS), alpha=ALPHA, normalize_y=True)
        with warnings.catch_warnings():
            # A length beyond the bounds says that the residuals do not depend on the settings,
            # which is a fine answer.
            warnings.simplefilter("ignore", ConvergenceWarning)
            process.fit(learnt, missed)
        mean, sd = process.predict(points, return_std=True)
        return mean, np.maximum(sd, 1e-9)

    def _model(
        self, mem_mhz: float, state: int, partitions: Sequence[Partition]
    ) -> tuple[Floats, Floats]:
        curves = [self.tables.curve(mem_mhz, partition) for partition in partitions]
        return np.array([curve.throughput_images_per_s[state] for curve in curves]), np.array(
            [curve.power_w[state] for curve in curves]
        )

    def _clocks(self, seen: Seen) -> tuple[float, int]:
        pace = SpeedKnob.of(self.question.knobs)
        mem_mhz = model_clock(self.tables, seen.settings.mem_mhz)
        return mem_mhz, pace.state(seen.settings, pace.top)

    def _features(self, mem_mhz: float, state: int, partition: Partition) -> list[float]:
        batches = np.array(partition.batches, dtype=float)
        missing = [0.0] * (MOST_PROCESSES - len(partition.shares))
        speed = self.tables.platform.sm_mhz[state] / self.tables.platform.anchor_mhz
        lines = [
            speed,
            mem_mhz / 1e4,
            len(partition.shares) / 10,
            float(batches.mean()) / 100,
            float(batches.var()) / 1e4,
        ]
        return [
            *lines,
            *(share / 100 for share in partition.shares),
            *missing,
            *(batches / 100),
            *missing,
        ]
