"""How much more a device draws than its model says, learnt from readings that are noisy and late; and how far readings scatter."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

UNSURE = 0.08  # sd of a model's level before anything was read
DRIFT = 0.0015  # by how much the level may change from one iteration to the next, sd: temperature, other images
SHAPE = 0.04  # sd of the level after a move, as a part of how far, relative, power was moved: curves are wrong too
LATE, LATE_SD = 0.2, 0.15  # the part of a step of power that a reading still lacks, and how well that is known
COLD = 0.5  # of what the model says: the draw before the first iteration
NOISE_OF_CAP, SPREAD_OF_CAP = 0.005, 0.02  # what is assumed of readings until they are known
MEMORY = 0.25  # the least weight of the newest iteration in what is known of readings
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
            newest = max(MEMORY, 1 / (1 + self.heard))
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
