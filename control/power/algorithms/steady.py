"""Ours: the best partition below the cap, then the fastest state that stays below it, and there it stays.

What the device draws more than the model says is learnt from the mean reading (`Level`). The margin kept below the cap follows from how
sure that is and from how far readings scatter. A state is left upwards only for one below that margin by more than the readings' doubt.
Once the level is known, a partition that turns out to be better replaces the first, or the other way round where it promised too much
(`Tried`); what did not fit into memory or was too slow is not tried again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import hypot
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from control.power.tables import (
    Curve,
    at_speed,
    best_in_time,
    model_clock,
    nearest,
    partition_of,
    settings_of,
    speed_in,
    speeds_of,
    tables_of,
    waited_for,
)
from control.power.terms import Decision, Infeasible, Predicted, Question, Seen, Settings, Tenant, Unsupported

from .limited import halved

if TYPE_CHECKING:
    Key = tuple[float | None, tuple[Tenant, ...]]

UNSURE = 0.08  # sd of a model's level before anything was read
DRIFT = 0.0015  # by how much the level may change from one iteration to the next, sd: temperature, other images
SHAPE = 0.04  # sd of the level after a move, as a part of how far, relative, power was moved: curves are wrong too
LATE, LATE_SD = 0.2, 0.15  # the part of a step of power that a reading still lacks, and how well that is known
COLD = 0.5  # of what the model says: the draw before the first iteration
NOISE_OF_CAP, SPREAD_OF_CAP = 0.005, 0.02  # what is assumed of readings until they are known
LEVEL_MEMORY = 0.25  # the least weight of the newest iteration in what is known of readings
STILL = 2  # iterations without a move after which a reading shows nothing of it any more


@dataclass(slots=True)
class Level:
    """The device's power is `ratio` times the model's, give or take `sd`; both are parts.

    `noise` is the sd of an iteration's mean reading, `spread` how far its largest is above the mean, both in the cap's unit.
    """

    noise: float
    spread: float
    ratio: float = 1.0
    sd: float = UNSURE
    still: int = 0
    heard: int = 0
    last_reading: float | None = None
    last_model: float | None = None

    def learn(self, model: float, mean: float, largest: float) -> None:
        """Take an iteration's readings at settings of which the model says `model` (a Kalman filter of one state)."""
        self._moved(model)
        before = COLD * model if self.last_reading is None else self.last_reading
        lacking = before - self.ratio * model
        seen = mean - (self.ratio * model + LATE * lacking)
        noise = hypot(self.noise, LATE_SD * lacking)
        sensitivity = (1 - LATE) * model
        weight = self.sd**2 * sensitivity / ((self.sd * sensitivity) ** 2 + noise**2)
        if self.still > STILL:
            self.heard += 1
            newest = max(LEVEL_MEMORY, 1 / (1 + self.heard))
            self.noise = ((1 - newest) * self.noise**2 + newest * seen**2) ** 0.5
            self.spread += newest * (largest - mean - self.spread)
        self.ratio += weight * seen
        self.sd = hypot(self.sd * (1 - weight * sensitivity) ** 0.5, DRIFT)
        self.last_reading = mean

    def another(self, ratio: float, sd: float) -> None:
        """Go on with another partition, of which so much is known; readings scatter as before."""
        self.ratio, self.sd, self.still = ratio, hypot(self.sd, sd), 0

    def _moved(self, model: float) -> None:
        """Count what a move makes less certain."""
        self.still = self.still + 1 if model == self.last_model else 0
        if self.last_model is not None:
            self.sd = hypot(self.sd, SHAPE * abs(model - self.last_model) / self.last_model)
        self.last_model = model


def unknown(cap: float) -> Level:
    """The level before anything was read."""
    return Level(NOISE_OF_CAP * cap, SPREAD_OF_CAP * cap)


MEMORY = 0.3  # the weight of the newest iteration


@dataclass(frozen=True, slots=True)
class Ran:
    """Power and images per second of a partition, as parts of what its model says; its settings as they were last."""

    settings: Settings
    power: float
    images: float


@dataclass(slots=True)
class Tried:
    known: dict[Key, Ran] = field(default_factory=dict)

    def note(self, settings: Settings, power: float, images: float | None) -> None:
        """Take an iteration: the level as it is known by now, and images per second over what the model says (None: none were seen)."""
        before = self.known.get(_key(settings))
        if images is None:
            images = self.images(settings)
        elif before is not None:
            images = (1 - MEMORY) * before.images + MEMORY * images
        self.known[_key(settings)] = Ran(settings, power, images)

    def power(self, settings: Settings, otherwise: float) -> float:
        """By how much more than its model a partition draws; `otherwise` where it did not run."""
        ran = self.known.get(_key(settings))
        return otherwise if ran is None else ran.power

    def images(self, settings: Settings) -> float:
        """By how much more than its model a partition gives; where it did not run the mean of those that did, 1 where none did."""
        result = self.known.get(_key(settings))
        if result is not None:
            return result.images
        return fmean(ran.images for ran in self.known.values()) if self.known else 1.0

    def forget(self, settings: Settings, from_batch: int | None = None) -> None:
        """Do not come back to these settings, nor to any with a batch of `from_batch` or more."""
        self.known.pop(_key(settings), None)
        if from_batch is not None:
            self.known = {key: ran for key, ran in self.known.items() if all(tenant.batch < from_batch for tenant in ran.settings.tenants)}

    def has(self, settings: Settings) -> bool:
        return _key(settings) in self.known


def _key(settings: Settings) -> Key:
    return settings.mem_mhz, settings.tenants


TOLERATED = 1.02  # of the cap: a reading above it is a violation
SURE = 0.012  # sd of the level from which on another partition is thought of
MOVED = 0.01  # by how much the cap, in the model's terms, must have changed since the last search to search again
WORTH = 0.005  # so much more throughput another partition must promise: all tenants start anew
CAP_STEPS = 200  # searches are asked under caps so many steps of the cap apart, so that they can be remembered
OF_SPREAD = 0.85  # of the largest reading's distance from the mean is kept below what is tolerated: one reading in thirty may be above
DOUBT, DOUBT_KNOWN = 0.03, 0.01  # sd that another partition adds to the level, one that never ran and one that did
MISSES = 2  # iterations in a row in which the latency bound was missed: one may be an accident
HASTE = 0.97  # of the latency bound: what is searched for after it was missed
BAND_OF_CAP = 0.001  # what a move upwards must leave free, beside the noise


def steady(question: Question) -> Steady:
    """Search the partition. Raises: Unsupported, Infeasible."""
    return Steady(question, settings_of(best_in_time(question, question.cap), question.knobs))


class Steady:
    """The controller at work. `question` follows what is learnt: batches that do not fit leave it, a bound that was missed is tightened."""

    def __init__(self, question: Question, start: Settings) -> None:
        self.question, self.tables, self.slo_ms = question, tables_of(question), question.slo_ms
        self.name, self.speeds = speeds_of(question.knobs)
        self.cap, self.level = question.cap, unknown(question.cap)
        self.settings = start
        self.searched = question.cap, question.cap  # for this cap, which the model knew as that one
        self.tried, self.judged = Tried(), True
        self.refused: set[int] = set()
        self.asked = self.missed = 0

    def first(self) -> Decision:
        """The best partition, at a state that is below the cap even if the device draws more than the model says."""
        return self._decision("best partition", self._fastest(self._curve(self.settings)))

    def then(self, seen: Seen) -> Decision:
        """Learn from the readings, then move if there is reason to."""
        now = self._state(seen)
        self.settings, self.cap = seen.settings, seen.cap
        if seen.oom:
            return self._without_too_large(seen)
        assert seen.power_mean is not None  # noqa: S101  # the caller's promise
        assert seen.power_max is not None  # noqa: S101  # as above
        curve = self._curve(self.settings)
        self.level.learn(float(curve.power_w[now]), seen.power_mean, seen.power_max)
        images, said = seen.throughput_images_per_s, float(curve.throughput_images_per_s[now])
        self.tried.note(self.settings, self.level.ratio, None if images is None or said <= 0 else images / said)
        self.missed = self.missed + 1 if self._too_slow(seen) else 0
        if self.missed == MISSES:
            self.missed = 0
            return self._in_time(seen, now)
        better = self._better() if self._is_time_to_search() else None
        if better is not None:
            self._go_on_with(better)
            return self._decision("a better partition", self._fastest(self._curve(better)))
        if self.level.ratio * curve.power_w[now] > self._target() or now in self.refused:
            return self._decision("below the cap", self._fastest(curve))
        higher = self._fastest(curve, self.level.noise + BAND_OF_CAP * self.cap)
        if curve.throughput_images_per_s[higher] > curve.throughput_images_per_s[now]:
            return self._decision("room below the cap", higher)
        return self._decision("hold", now)

    def _target(self) -> float:
        """What the mean reading is to stay below: the cap by how sure the level is, and readings by what is tolerated above it."""
        cap = self.cap - self.question.margin
        return min(cap / (1 + self.level.sd), TOLERATED * cap - OF_SPREAD * self.level.spread)

    def _fastest(self, curve: Curve, free: float = 0.0, ratio: float | None = None) -> int:
        """The state of most throughput that leaves so much free below the target; where none does, that of least power."""
        below = (self.level.ratio if ratio is None else ratio) * curve.power_w <= self._target() - free
        below[list(self.refused)] = False
        if not below.any():
            return int(np.argmin(curve.power_w))
        return int(np.argmax(np.where(below, curve.throughput_images_per_s, -np.inf)))

    def _is_time_to_search(self) -> bool:
        """Under a new cap; else once the level is known, if it moved since, or the partition at work is a new one."""
        cap, models = self.searched
        moved = abs(self._target() / self.level.ratio / models - 1) > MOVED
        return self.cap != cap or (self.level.sd < SURE and (moved or not self.judged))

    def _better(self) -> Settings | None:
        """Another partition and memory clock, if it is worth it by what is known by now: a new one, or one that ran before."""
        models = self._target() / self.level.ratio
        self.searched, self.judged = (self.cap, models), True
        step = self.cap / CAP_STEPS
        others = [ran.settings for ran in self.tried.known.values()]
        with suppress(Infeasible, Unsupported):
            others.append(settings_of(best_in_time(self.question, step * (models // step)), self.question.knobs))
        best = max(others, key=self._promised)
        return best if self._promised(best) > (1 + WORTH) * self._promised(self.settings) else None

    def _promised(self, settings: Settings) -> float:
        """Images per second at the fastest state below the target; 0 where none is."""
        curve, ratio = self._curve(settings), self.tried.power(settings, self.level.ratio)
        state = self._fastest(curve, ratio=ratio)
        within = ratio * curve.power_w[state] <= self._target()
        return self.tried.images(settings) * float(curve.throughput_images_per_s[state]) if within else 0.0

    def _go_on_with(self, settings: Settings) -> None:
        """Another partition: what is known of it, or what may be assumed."""
        self.judged = self.tried.has(settings)
        self.level.another(self.tried.power(settings, self.level.ratio), DOUBT_KNOWN if self.judged else DOUBT)
        self.settings = settings

    def _without_too_large(self, seen: Seen) -> Decision:
        """Search among smaller batches than what did not fit; where there are none, halve it."""
        knobs = self.question.knobs
        too_large = min(self.settings.tenants[at].batch for at in seen.oom)
        self.tried.forget(self.settings, too_large)
        smaller = tuple(batch for batch in knobs.batches if batch < too_large)
        if smaller:
            self.question = replace(self.question, knobs=replace(knobs, batches=smaller))
        self._search_or_halve(seen.oom)
        return self._decision("out of memory: smaller batches", self._fastest(self._curve(self.settings)))

    def _too_slow(self, seen: Seen) -> list[int]:
        said = seen.latency_p95_ms or seen.latency_ms
        return [at for at, value in enumerate(said) if self.slo_ms is not None and value is not None and value > self.slo_ms]

    def _in_time(self, seen: Seen, now: int) -> Decision:
        """Search under a bound below the model's latency by as much as ours was missed; where nothing meets it, halve slow batches."""
        self.tried.forget(self.settings)
        slow = self._too_slow(seen)
        worst = max(value for value in seen.latency_p95_ms or seen.latency_ms if value is not None)
        if self.question.slo_ms is not None and self.slo_ms is not None:
            images = max(float(self._curve(self.settings).throughput_images_per_s[now]), 1.0)
            modelled_ms = 1000 * waited_for(partition_of(self.settings.tenants)) / images
            self.question = replace(self.question, slo_ms=HASTE * min(self.question.slo_ms, modelled_ms) * self.slo_ms / worst)
        self._search_or_halve(slow)
        return self._decision("latency bound: smaller batches", self._fastest(self._curve(self.settings)))

    def _search_or_halve(self, which: list[int] | tuple[int, ...]) -> None:
        try:
            settings = settings_of(best_in_time(self.question, self._target() / self.level.ratio), self.question.knobs)
            self._go_on_with(settings)
        except (Infeasible, Unsupported):
            self.settings = replace(self.settings, tenants=halved(self.settings.tenants, which, self.question.knobs))

    def _curve(self, settings: Settings) -> Curve:
        return self.tables.curve(model_clock(self.tables, settings.mem_mhz), partition_of(settings.tenants))

    def _state(self, seen: Seen) -> int:
        """The state that the iteration ran at; one that was refused is not asked for again."""
        speed = speed_in(seen.settings, self.name)
        now = self.asked if speed is None else nearest(self.speeds, speed)
        if now != self.asked and any(text.startswith(self.name) for text in seen.refused):
            self.refused.add(self.asked)
        return now

    def _decision(self, reason: str, state: int) -> Decision:
        self.asked = state
        self.settings = at_speed(self.settings, self.name, self.speeds[state])
        curve = self._curve(self.settings)
        predicted = Predicted(float(curve.throughput_images_per_s[state]), self.level.ratio * float(curve.power_w[state]))
        return Decision(self.settings, reason, predicted)
