"""Our algorithm: the best partition, then the fastest state whose guarded power keeps the cap.

Guarded power is the prediction times a band: the model's own at first, then learnt from readings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from control.power.search import waited_for
from control.power.tables import (
    Curve,
    SpeedKnob,
    model_clock,
    partition_of,
    searched,
    settings_of,
    tables_of,
)
from control.power.terms import (
    Decision,
    Infeasible,
    Predicted,
    Question,
    Seen,
    Settings,
    Unsupported,
)

from .limited import halved

PROMISED = 0.95  # part of the rows that are to stay below guarded power
STILL = 2  # iterations after a move before readings no longer show the power of before
FEW = 3  # readings at rest after which the band is learnt from them alone
WINDOW = 40  # readings that count: temperature and images change
TOLERATED = 1.02  # of the cap: a single reading above it is a violation
UNJUDGED = 1.08  # the band of a model that was never judged on held-out rows
BAND = 0.002  # part of the cap that a move upwards must leave free
WORTH = 0.005  # so much more throughput another partition must promise: all tenants start anew
MISSES = 2  # iterations in a row in which the latency bound was missed: one may be an accident
HASTE = 0.97  # of the latency bound: what is searched for after it was missed


def band_of(ratios: Sequence[float]) -> float:
    """Return the quantile `PROMISED` of measured over predicted power, valid for a new row.

    With fewer than 19 rows there is no such rank; the largest is taken, which n/(n + 1) of further
    rows keep to.
    """
    rank = min(ceil(PROMISED * (len(ratios) + 1)), len(ratios))
    return sorted(ratios)[rank - 1]


class Guard:
    """A run's guard band: `first` until the device has been read, then from the readings."""

    def __init__(self, first: float) -> None:
        self.first = self.band = first
        self._still = 0
        self._rose = False
        self._model: float | None = None
        self._ratios: deque[float] = deque(maxlen=WINDOW)

    @property
    def known(self) -> bool:
        return len(self._ratios) >= FEW

    def learn(self, model: float, reading: float) -> None:
        """Learn from a reading at settings for which the model predicts `model`.

        Readings lag behind a move. On the way up a reading is the least that the power can be, so
        the band may only widen; on the way down it says nothing.
        """
        if model == self._model:
            self._still += 1
        else:
            self._rose = self._model is None or model > self._model
            self._still, self._model = 0, model
        ratio = reading / model
        if self._still >= STILL:
            self._ratios.append(ratio)
            self.band = band_of(self._ratios) if self.known else self.band
        elif self._rose:
            self.band = max(self.band, ratio)

    def another(self) -> None:
        self.band = max(self.band, self.first)
        self._ratios.clear()
        self._model = None


def steady(question: Question) -> Steady:
    """Search the partition, and return the controller. Raises: Unsupported, Infeasible."""
    judged = [
        guard
        for model in tables_of(question).models.values()
        if (guard := getattr(model, "guard", None))
    ]
    guard = Guard(max(judged, default=UNJUDGED))
    try:
        found = searched(question, question.cap, guard=guard.band)
    except Infeasible:  # with the band; begin with what keeps the cap without one
        found = searched(question, question.cap, guard=1.0)
    return Steady(question, settings_of(found.setting, question.knobs), guard)


class Steady:
    """The controller of one run.

    `question` follows what is learnt: batches that do not fit leave it, a missed latency bound is
    tightened.
    """

    def __init__(self, question: Question, start: Settings, guard: Guard) -> None:
        self.question, self.tables, self.slo_ms = question, tables_of(question), question.slo_ms
        self.pace = SpeedKnob.of(question.knobs)
        self.cap, self.guard, self.settings = question.cap, guard, start
        self.judged = False  # the partition, by a band that was learnt, under this cap
        self.refused: set[int] = set()
        self.asked = self.missed = 0

    def first(self) -> Decision:
        return self._decision("best partition", self._fastest(self._curve(self.settings)))

    def then(self, seen: Seen) -> Decision:
        """Learn from the readings, then move if there is a reason to."""
        now = self._state(seen)
        self.settings = seen.settings
        if seen.oom:
            self.cap = seen.cap
            return self._without_too_large(seen)
        assert seen.power_mean is not None  # noqa: S101  # the caller's promise
        assert seen.power_max is not None  # noqa: S101  # as above
        curve = self._curve(self.settings)
        # What must stay below the cap: the mean, and the largest reading less what is tolerated of
        # one.
        self.guard.learn(
            float(curve.power_w[now]), max(seen.power_mean, seen.power_max / TOLERATED)
        )
        self.missed = self.missed + 1 if self._too_slow(seen) else 0
        if self.missed == MISSES:
            self.missed, self.cap = 0, seen.cap
            return self._in_time(seen, now)
        is_new, self.cap = self.cap != seen.cap, seen.cap
        if is_new or (self.guard.known and not (self.judged and self._keeps(curve))):
            self.judged = self.guard.known
            better = self._better()
            if better is not None:
                self._go_on_with(better)
                return self._decision("a better partition", self._fastest(self._curve(better)))
        if self.guard.band * curve.power_w[now] > self._free() or now in self.refused:
            return self._decision("below the cap", self._fastest(curve))
        higher = self._fastest(curve, BAND * self.cap)
        if curve.throughput_images_per_s[higher] > curve.throughput_images_per_s[now]:
            return self._decision("room below the cap", higher)
        return self._decision("hold", now)

    def _free(self) -> float:
        return self.cap - self.question.margin

    def _fastest(self, curve: Curve, spare: float = 0.0) -> int:
        below = self.guard.band * curve.power_w <= self._free() - spare
        below[list(self.refused)] = False
        if not below.any():
            return int(np.argmin(curve.power_w))
        return int(np.argmax(np.where(below, curve.throughput_images_per_s, -np.inf)))

    def _keeps(self, curve: Curve) -> bool:
        return bool(self.guard.band * curve.power_w.min() <= self._free())

    def _better(self) -> Settings | None:
        try:
            found = searched(self.question, self.cap, guard=self.guard.band)
        except (Infeasible, Unsupported):
            return None
        curve = self._curve(self.settings)
        present = (
            float(curve.throughput_images_per_s[self._fastest(curve)])
            if self._keeps(curve)
            else 0.0
        )
        better = found.throughput_images_per_s > (1 + WORTH) * present
        return settings_of(found.setting, self.question.knobs) if better else None

    def _go_on_with(self, settings: Settings) -> None:
        if settings.tenants != self.settings.tenants:
            self.guard.another()
        self.settings = settings

    def _without_too_large(self, seen: Seen) -> Decision:
        knobs = self.question.knobs
        too_large = min(self.settings.tenants[at].batch for at in seen.oom)
        smaller = tuple(batch for batch in knobs.batches if batch < too_large)
        if smaller:
            self.question = replace(self.question, knobs=replace(knobs, batches=smaller))
        self._search_or_halve(seen.oom)
        return self._decision(
            "out of memory: smaller batches", self._fastest(self._curve(self.settings))
        )

    def _too_slow(self, seen: Seen) -> list[int]:
        said = seen.latency_p95_ms or seen.latency_ms
        return [
            at
            for at, value in enumerate(said)
            if self.slo_ms is not None and value is not None and value > self.slo_ms
        ]

    def _in_time(self, seen: Seen, now: int) -> Decision:
        slow = self._too_slow(seen)
        worst = max(value for value in seen.latency_p95_ms or seen.latency_ms if value is not None)
        if self.question.slo_ms is not None and self.slo_ms is not None:
            images = max(float(self._curve(self.settings).throughput_images_per_s[now]), 1.0)
            modelled_ms = 1000 * waited_for(partition_of(self.settings.tenants)) / images
            self.question = replace(
                self.question,
                slo_ms=HASTE * min(self.question.slo_ms, modelled_ms) * self.slo_ms / worst,
            )
        self._search_or_halve(slow)
        return self._decision(
            "latency bound: smaller batches", self._fastest(self._curve(self.settings))
        )

    def _search_or_halve(self, which: Sequence[int]) -> None:
        try:
            found = searched(self.question, self.cap, guard=self.guard.band).setting
            self._go_on_with(settings_of(found, self.question.knobs))
        except (Infeasible, Unsupported):
            self.settings = replace(
                self.settings, tenants=halved(self.settings.tenants, which, self.question.knobs)
            )

    def _curve(self, settings: Settings) -> Curve:
        return self.tables.curve(
            model_clock(self.tables, settings.mem_mhz), partition_of(settings.tenants)
        )

    def _state(self, seen: Seen) -> int:
        now = self.pace.state(seen.settings, self.asked)
        if now != self.asked and any(text.startswith(self.pace.name) for text in seen.refused):
            self.refused.add(self.asked)
        return now

    def _decision(self, reason: str, state: int) -> Decision:
        self.asked = state
        self.settings = self.pace.at(self.settings, self.pace.states[state])
        curve = self._curve(self.settings)
        power = float(curve.power_w[state])
        predicted = Predicted(float(curve.throughput_images_per_s[state]), self.guard.band * power)
        return Decision(self.settings, reason, predicted)
