"""What six settings may do to the cost of a step: families of true surfaces, a fresh one for each seed. None is made for a method.

Six knobs with 3, 3, 4, 4, 5 and 5 levels (3600 combinations) that cost up to 12, 10, 8, 6, 4 and 2 percent, dealt out at random. Over a
knob's levels the cost is a line, a plateau after a third, a valley, or a step, up or down, at random; the machine as found stands anywhere
among them. Families: `adds` (costs add), `multiplies`, `interacts` (two knobs cost 10 % more unless they go together), `bottleneck`
(the slower of two resources with three knobs each, twice the amplitudes, counts), `flat` (nothing matters), `tuned` (as found is best).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from fixtures.designs import Factor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SIZES = (3, 3, 4, 4, 5, 5)
AMPLITUDES = (0.12, 0.10, 0.08, 0.06, 0.04, 0.02)
FAMILIES = ("adds", "multiplies", "interacts", "bottleneck", "flat", "tuned")
GRID = np.array(list(product(*map(range, SIZES))))
FACTORS = [Factor("tuned", f"vm.knob_{at}", "sysctl", (None, *(str(level) for level in range(1, size)))) for at, size in enumerate(SIZES)]


class Landscape:
    """One true surface: `cost` of each row of GRID; the lowest is `best`."""

    def __init__(self, family: str, seed: int) -> None:
        dice = np.random.default_rng([seed, 6])
        amplitudes = np.array(AMPLITUDES)
        dice.shuffle(amplitudes)
        shapes = [shape(dice, size) for size in SIZES]
        unit = np.array([curve[GRID[:, knob]] for knob, curve in enumerate(shapes)]).T
        parts = unit * amplitudes
        if family == "adds":
            self.cost = 1 + parts.sum(axis=1)
        elif family == "multiplies":
            self.cost = np.prod(1 + parts, axis=1)
        elif family == "interacts":
            one, other = dice.choice(len(SIZES), 2, replace=False)
            alike = (unit[:, one] > 0.5) == (unit[:, other] > 0.5)
            self.cost = np.prod(1 + parts, axis=1) * (1 + 0.10 * alike)
        elif family == "bottleneck":
            order = dice.permutation(len(SIZES))
            self.cost = 1 + 2 * np.maximum(parts[:, order[:3]].sum(axis=1), parts[:, order[3:]].sum(axis=1))
        elif family == "flat":
            self.cost = np.ones(len(GRID))
        else:  # tuned: each change costs at least half of what its knob can cost
            self.cost = 1 + ((GRID > 0) * amplitudes * (0.5 + unit / 2)).sum(axis=1)
        self.best = float(self.cost.min())

    def at(self, levels: Mapping[str, str | None]) -> float:
        """Cost of a combination of levels."""
        row = 0
        for factor, size in zip(FACTORS, SIZES, strict=True):
            row = row * size + int(levels[factor.name] or 0)
        return float(self.cost[row])

    def off(self, levels: Mapping[str, str | None]) -> float:
        """How much more a combination costs than the best one: a fraction."""
        return self.at(levels) / self.best - 1


def shape(dice: np.random.Generator, size: int) -> Floats:
    """Relative cost, 0 to 1, of a knob's levels; of which the first is the machine as found."""
    at = np.linspace(0, 1, size)
    kind = dice.choice(["line", "plateau", "valley", "step"])
    if kind == "line":
        cost = at
    elif kind == "plateau":
        cost = np.minimum(1, at / at[max(1, size // 3)])
    elif kind == "valley":
        cost = np.abs(at - dice.choice(at[1:-1]))
    else:
        cost = (np.arange(size) >= dice.integers(1, size)).astype(float)
    cost = (cost - cost.min()) / (cost.max() - cost.min())
    if dice.random() < 0.5:
        cost = cost[::-1]
    found = dice.integers(size)
    return np.concatenate([[cost[found]], np.delete(cost, found)])
