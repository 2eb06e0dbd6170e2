"""PctoDL: the greedy partition, the clock by `Thermo`, and optionally a shadow optimiser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import copysign, log
from typing import TYPE_CHECKING

import numpy as np

from control.power.models.laws import power_slope_w_per_mhz
from control.power.models.reference import Reference
from control.power.tables import (
    SpeedKnob,
    model_clock,
    nearest,
    partition_of,
    predicted,
    searched,
    settings_of,
    tables_of,
)
from control.power.terms import (
    Anchor,
    Decision,
    Infeasible,
    Model,
    Question,
    Seen,
    Settings,
    Unsupported,
)

from .ladder import guarded
from .limited import halved

if TYPE_CHECKING:
    from control.power.shadow import Shadow

PART_OF_STEP = 0.8
LEAST_SLOPE = 1e-6
SAME_CAP = 1e-3
PROBE = 1e-3  # of the range: how far apart a slope is taken where the model has none of its own


@dataclass(frozen=True, slots=True)
class Draw:
    """Power as a function of the clock for one partition: end points, exponent, slope (W/MHz)."""

    low_mhz: float
    high_mhz: float
    low_w: float
    high_w: float
    exponent: float
    slope: Callable[[float], float]


@dataclass(frozen=True, slots=True)
class StepRange:
    """Smallest and largest step (MHz), and how near the cap (W) only the smallest is taken."""

    least: float = 15.0
    most: float = 300.0
    near: float = 7.0


def draw_of(model: Model, anchor: Anchor) -> Draw:
    """Return a partition's power curve by the model."""
    low, high = model.sm_range_mhz

    def power_w(mhz: float) -> float:
        return float(model.power_w(anchor, np.array([mhz]))[0])

    low_w, high_w = power_w(low), power_w(high)
    if isinstance(model, Reference):
        curve, dynamic_w = model.power, anchor.dynamic_power_w
        slope = lambda mhz: float(  # noqa: E731
            power_slope_w_per_mhz(curve, dynamic_w, np.array([mhz]))[0]
        )
        return Draw(low, high, low_w, high_w, curve.gamma, slope)
    apart = PROBE * (high - low) or PROBE  # where one clock alone was measured, the slope is 0
    half = (power_w((low + high) / 2) - low_w) / max(high_w - low_w, LEAST_SLOPE)
    exponent = log(min(max(half, 0.05), 0.95)) / log(0.5)
    return Draw(
        low,
        high,
        low_w,
        high_w,
        exponent,
        lambda mhz: (power_w(mhz + apart) - power_w(mhz - apart)) / (2 * apart),
    )


class Thermo:
    """The controller for one partition; `cap` is None until its first decision."""

    def __init__(self, draw: Draw, steps: StepRange) -> None:
        self.draw, self.steps = draw, steps
        self.cap: float | None = None

    def next_mhz(self, mhz: float, power_max_w: float, cap_w: float) -> float:
        """Return the next clock after `power_max_w` was read at `mhz`, within the model's range."""
        draw = self.draw
        if self.cap is None or abs(cap_w - self.cap) > SAME_CAP:
            self.cap = cap_w
            part = (cap_w - draw.low_w) / max(draw.high_w - draw.low_w, LEAST_SLOPE)
            return float(
                draw.low_mhz
                + (draw.high_mhz - draw.low_mhz) * min(max(part, 0.0), 1.0) ** (1 / draw.exponent)
            )
        below_w = cap_w - power_max_w
        if abs(below_w) > self.steps.near:
            newton = PART_OF_STEP * below_w / max(draw.slope(mhz), LEAST_SLOPE)
            step = copysign(min(max(abs(newton), self.steps.least), self.steps.most), below_w)
        else:
            step = copysign(self.steps.least, below_w) if below_w else 0.0
        return min(max(mhz + step, draw.low_mhz), draw.high_mhz)


def pctodl(question: Question) -> Pctodl:
    """Search the partition, and return the controller. Raises: Unsupported, Infeasible."""
    shadow = None
    if question.shadow:
        from control.power.shadow import Shadow

        shadow = Shadow(tables_of(question), question)
    return Pctodl(question, shadow)


class Pctodl:
    def __init__(self, question: Question, shadow: Shadow | None = None) -> None:
        self.question, self.shadow, self.tables = question, shadow, tables_of(question)
        self.pace = SpeedKnob.of(question.knobs)
        self.cap = question.cap
        self.answer = searched(question, self.cap, compatible=True)
        self.thermo: Thermo | None = None

    def first(self) -> Decision:
        return Decision(
            settings_of(self.answer.setting, self.question.knobs),
            "greedy partition",
            predicted(self.answer),
        )

    def then(self, seen: Seen) -> Decision:
        """Step by the highest power reading; after a new cap, search a new partition."""
        now = seen.settings
        if seen.cap != self.cap:
            self.cap = seen.cap
            return self._anew(now)
        if seen.oom:
            self.thermo = None
            return Decision(
                replace(now, tenants=halved(now.tenants, seen.oom, self.question.knobs)),
                "out of memory",
            )
        assert seen.power_max is not None  # noqa: S101  # the caller's promise
        before = self.pace.state(now, self.pace.top)
        thermo = self._thermo(now)
        reason = "feed-forward" if thermo.cap is None else "feedback"
        decided = nearest(
            self.pace.states, thermo.next_mhz(self.pace.states[before], seen.power_max, seen.cap)
        )
        state = guarded(decided, before, seen.power_max, seen.cap)
        tenants = self.shadow.moved(seen) if self.shadow else None
        if tenants is not None:
            now, reason, self.thermo = replace(now, tenants=tenants), "shadow optimiser", None
        return Decision(self.pace.at(now, self.pace.states[state]), reason)

    def _anew(self, now: Settings) -> Decision:
        self.thermo = None
        try:
            self.answer = searched(self.question, self.cap, compatible=True)
        except (Infeasible, Unsupported):
            return Decision(now, "no partition within the new cap: held")
        return self.first()

    def _thermo(self, now: Settings) -> Thermo:
        if self.thermo is None:
            mem_mhz = model_clock(self.tables, now.mem_mhz)
            curve = self.tables.curve(mem_mhz, partition_of(now.tenants))
            self.thermo = Thermo(draw_of(self.tables.models[mem_mhz], curve.anchor), StepRange())
        return self.thermo
