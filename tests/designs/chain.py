"""A design for tests, and with `-p tests.designs.chain` for sessions under test: each key alone beside stock, until one fails.

What it asks for never depends on a time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from control.adaptive import Trial
from fixtures import designs
from fixtures.terms import TweakSet

if TYPE_CHECKING:
    from fixtures.designs import Factor, Options

_names = designs.names
DESCRIPTION = "each key alone, until one of them fails"


def pytest_configure() -> None:
    """Make it known."""
    sys.modules["fixtures.designs.chain"] = sys.modules[__name__]
    designs.names = lambda: (*_names(), "chain")


def engine(profile: TweakSet, factors: Sequence[Factor], options: Options) -> Chain:
    """A block of two cells for each key."""
    return Chain(profile, factors, options.trials or 2 * len(factors))


class Chain:
    """Told of a failure of a key, it ends after the block."""

    def __init__(self, profile: TweakSet, factors: Sequence[Factor], trials: int) -> None:
        self.profile, self.factors = profile, factors
        self.blocks: Sequence[int] = [number // 2 + 1 for number in range(trials)]
        self.told: list[tuple[str, float | None]] = []

    def ask(self) -> Trial | None:
        """Stock and a key in turn."""
        number = len(self.told)
        if self.conclusion()["done"]:
            return None
        if number % 2 == 0:
            return Trial("stock", dict.fromkeys((factor.name for factor in self.factors), None))
        key = self.factors[number // 2]
        levels = {factor.name: factor.levels[-1] if factor is key else None for factor in self.factors}
        return Trial(f"{self.profile.name}.t{number // 2 + 1:02d}", levels)

    def tell(self, trial: Trial, cost: float | None) -> None:
        """Remember it."""
        self.told.append((trial.name, cost))

    def conclusion(self) -> dict[str, Any]:
        """The key that failed."""
        failed = [name for name, cost in self.told if cost is None]
        text = f"{failed[0]} failed." if failed else f"{len(self.told)} cells, none of which failed."
        return {"text": text, "done": bool(failed) or len(self.told) == len(self.blocks), "told": [name for name, _ in self.told]}
