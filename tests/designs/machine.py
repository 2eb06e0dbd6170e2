"""Synthetic machines: a true cost of a step for each combination of levels, noise from run to run, and drift.

What they are is written down before any engine sees them; none is made for a method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fixtures.designs import Factor

if TYPE_CHECKING:
    from control.adaptive import Engine


@dataclass
class Machine:
    """`truth`: log cost of a combination. `noise`: sd of log cost from run to run. `drift`: how far cost wanders over the whole run.

    `walk`: the drift is a slow random walk with that sd at its end, else a straight line up or down. `fails`: which combinations do not
    run; `losing`: how many of the others are lost all the same.
    """

    truth: Callable[[Mapping[str, str | None]], float]
    noise: float
    drift: float = 0.0
    walk: bool = False
    fails: Callable[[Mapping[str, str | None]], bool] = field(default=lambda _: False)
    losing: float = 0.0

    def run(self, engine: Engine, seed: int) -> int:
        """Lets the engine ask until it is done; returns how many cells that took."""
        dice = np.random.default_rng(seed)
        most = len(engine.blocks)
        if self.walk:
            wander = np.cumsum(dice.normal(0.0, self.drift / np.sqrt(most), most))
        else:
            wander = dice.choice([-1.0, 1.0]) * self.drift * np.arange(most) / most
        cell = 0
        while (trial := engine.ask()) is not None:
            if self.fails(trial.levels) or dice.random() < self.losing:
                engine.tell(trial, None)
            else:
                engine.tell(trial, float(np.exp(self.truth(trial.levels) + wander[cell] + dice.normal(0.0, self.noise))))
            cell += 1
        return cell


def keys(count: int) -> list[Factor]:
    """A profile of this many keys, each as found or set."""
    return [Factor("tuned", f"vm.key_{number:02d}", "sysctl", (None, "1")) for number in range(count)]
