"""`--design=search`: which levels of a profile's settings are best, and is that better than the machine as found?

Exploration: first stock, the profile, and combinations in which each level comes equally often; then where a model that shrinks noise
(`surface.py`) is most hopeful, every third time where Optuna's TPE is. Confirmation: the two candidates that the model holds best are
re-run in blocks beside stock, and these fresh cells alone say what is gained: the best of many noisy cells is mostly lucky (the winner's
curse). How near the pick comes to the true best stands in docs/adaptive.md, plain Optuna beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, expm1, isfinite, log, log1p, prod
from typing import TYPE_CHECKING, Any
from zlib import crc32

from . import Factor, Json, Trial
from .confirmation import Difference, differences, gain
from .surface import Hopeful, Point, Surface, Tpe

if TYPE_CHECKING:
    import numpy as np


LEAST = 24
PER_BLOCK = 6
# Candidates: the lowest mean, then the lowest mean less half an sd among the others.
CANDIDATES = (0.0, 0.5)
HOPE = 2.5  # sd below the mean at which a combination is worth a trial
TPE_EACH, REFIT_EACH = 3, 3


class Search:
    """State: the cells so far. All else follows from them and the seed, so a run that is resumed asks the same again."""

    def __init__(self, profile: str, factors: Sequence[Factor], trials: int, *, seed: int) -> None:
        self.profile, self.factors, self.seed = profile, tuple(factors), seed
        self._sizes = [len(factor.levels) for factor in factors]
        arms = 1 + len(CANDIDATES)
        confirming = max(LEAST // 6, trials // 10)
        self._exploring = trials - arms * confirming
        per_block = min(PER_BLOCK, prod(self._sizes))
        explored = [cell // per_block + 1 for cell in range(self._exploring)]
        self.blocks: Sequence[int] = explored + [explored[-1] + 1 + cell // arms for cell in range(arms * confirming)]
        self._pending: Point | None = None
        self._asked: list[Point] = []
        self._logs: list[float | None] = []
        self._names: dict[Point, str] = {}
        self._candidates: list[Point] = []
        self._predicted: list[float | None] = []
        self._arms: list[Point] = []  # what is left of the present block of the confirmation
        self._hopeful, self._tpe = Hopeful(self._sizes), Tpe(self._sizes, seed)

    def ask(self) -> Trial | None:
        cell = len(self._asked)
        if cell == len(self.blocks):
            return None
        if self._pending is None:
            self._pending = self._explore(cell) if cell < self._exploring else self._confirm(cell)
        return Trial(self._name(self._pending, cell), self._levels(self._pending))

    def tell(self, trial: Trial, cost: float | None) -> None:
        """Cost of a step of the cell asked for; one that is no positive number counts as not measured, as None does."""
        if self._pending is None or dict(trial.levels) != self._levels(self._pending):
            raise ValueError(f"search: told of {trial.name}, which was not asked for")
        value = log(cost) if cost is not None and isfinite(cost) and cost > 0 else None
        if len(self._asked) < self._exploring:
            self._tpe.tell(self._pending, value)
        self._asked.append(self._pending)
        self._logs.append(value)
        self._pending = None

    # Exploration.

    def _explore(self, cell: int) -> Point:
        dice = self._dice(cell)
        block = {point for at, point in enumerate(self._asked) if self.blocks[at] == self.blocks[cell]}
        taken = block | self._failed()
        start = self._balanced()
        if cell < len(start) and start[cell] not in taken:
            return start[cell]
        if cell % TPE_EACH == 0 and (point := self._tpe.ask()) not in taken:
            return point
        if self._learn(again=cell % REFIT_EACH == 0) is None:
            return self._hopeful.random(dice, taken, block)
        return self._hopeful.most_hopeful(dice, HOPE, taken, self._asked) or self._hopeful.random(dice, taken, block)

    def _balanced(self) -> list[Point]:
        """Stock, the profile itself, then combinations in which the levels of each factor take turns, paired at random."""
        import numpy as np

        dice = np.random.default_rng([self.seed, crc32(self.profile.encode())])
        count = min(self._exploring // 2, 3 * max(self._sizes))
        columns = [np.concatenate([dice.permutation(size) for _ in range(-(-count // size))])[:count] for size in self._sizes]
        return [
            self._stock(),
            tuple(size - 1 for size in self._sizes),
            *(tuple(int(at) for at in row) for row in zip(*columns, strict=True)),
        ]

    def _learn(self, *, again: bool) -> Surface | None:
        import numpy as np

        measured = [cell for cell, value in enumerate(self._logs) if value is not None]
        if len(measured) < 4:
            return None
        logs = [value for value in self._logs if value is not None]
        self._hopeful.surface.fit(
            np.array([self._asked[cell] for cell in measured]), [self.blocks[cell] for cell in measured], logs, again=again
        )
        return self._hopeful.surface

    # Confirmation.

    def _confirm(self, cell: int) -> Point:
        if not self._candidates:
            self._choose(cell)
        if not self._arms:
            arms = [self._stock(), *self._candidates]
            self._arms = [arms[arm] for arm in self._dice(cell).permutation(len(arms))]
        return self._arms.pop(0)

    def _choose(self, cell: int) -> None:
        dice, never = self._dice(cell), {self._stock()} | self._failed()
        surface = self._learn(again=True)
        for hope in CANDIDATES:
            other = never | set(self._candidates)
            point = self._hopeful.most_hopeful(dice, hope, other, self._asked) if surface else None
            self._candidates.append(point or self._hopeful.random(dice, other, {self._stock(), *self._candidates}))
        self._predicted = self._expected(self._candidates)

    def _expected(self, points: Sequence[Point]) -> list[float | None]:
        """Log cost of points less that of stock, as the model of all cells has it."""
        import numpy as np

        surface = self._learn(again=True)
        if surface is None:
            return [None] * len(points)
        mean, _ = surface.predict(np.array([self._stock(), *points]))
        return [float(value - mean[0]) for value in mean[1:]]

    def _confirmed(self) -> list[Difference | None]:
        """Each candidate against stock from the confirming cells alone; 95 % for all of them together."""
        blocks: dict[int, dict[str, float]] = {}
        for cell in range(self._exploring, len(self._asked)):
            value = self._logs[cell]
            if value is not None:
                blocks.setdefault(self.blocks[cell], {})[self._name(self._asked[cell], cell)] = value
        pairs = [(self._name(point, self._exploring), "stock") for point in self._candidates]
        result = differences(list(blocks.values()), pairs, alpha=0.05 / len(CANDIDATES))
        return [result[arms] for arms in pairs]

    # Words.

    def _stock(self) -> Point:
        return (0,) * len(self._sizes)

    def _failed(self) -> set[Point]:
        return {point for point, value in zip(self._asked, self._logs, strict=True) if value is None}

    def _dice(self, cell: int) -> np.random.Generator:
        import numpy as np

        return np.random.default_rng([self.seed, crc32(self.profile.encode()), cell])

    def _levels(self, point: Point) -> dict[str, str | None]:
        return {factor.name: factor.levels[at] for factor, at in zip(self.factors, point, strict=True)}

    def _name(self, point: Point, cell: int) -> str:
        if point == self._stock():
            return "stock"
        if all(at == size - 1 for at, size in zip(point, self._sizes, strict=True)):
            return self.profile
        if cell >= self._exploring:
            return f"{self.profile}.c{self._candidates.index(point) + 1}"
        return self._names.setdefault(point, f"{self.profile}.t{len(self._names) + 1:02d}")

    def conclusion(self) -> Json:
        """The pick and its sentence, every cell, and for each candidate what the model promised and what the confirmation gave."""
        done = len(self._asked) == len(self.blocks)
        confirmed, candidates = self._confirmed() if self._candidates else [], []
        for point, promised, fresh in zip(self._candidates, self._predicted, confirmed, strict=True):
            candidates.append(
                {
                    "name": self._name(point, self._exploring),
                    "levels": self._levels(point),
                    "predicted": None if promised is None else expm1(promised),
                    "confirmed": fresh.saved() if fresh else None,
                }
            )
        after = self._expected(self._candidates) if done else []
        order = sorted((value, at) for at, value in enumerate(after) if value is not None and confirmed[at] is not None)
        pick = order[0][1] if order else None
        gains = pick is not None and (best := confirmed[pick]) is not None and best.high < 0
        measured = [point for point, value in zip(self._asked, self._logs, strict=True) if value is not None]
        state: Json = {
            "done": done,
            "unmeasured": done and pick is None,
            "unknown": [
                f"{factor.name} = {'as found' if level is None else level}"
                for at, factor in enumerate(self.factors)
                for number, level in enumerate(factor.levels)
                if not any(point[at] == number for point in measured)
            ],
            "verdict": ("gain" if gains else "no gain" if pick is not None else "not measured") if done else "going on",
            "pick": candidates[pick]["name"] if gains and pick is not None else None,
            "candidates": candidates,
            "cells": [
                {
                    "order": cell + 1,
                    "name": self._name(point, cell),
                    "block": self.blocks[cell],
                    "levels": self._levels(point),
                    "stage": "exploration" if cell < self._exploring else "confirmation",
                    "cost": None if (value := self._logs[cell]) is None else exp(value),
                }
                for cell, point in enumerate(self._asked)
            ],
            "planned": len(self.blocks),
            "noise": self._hopeful.surface.noise if done and pick is not None else None,
        }
        return state | {"text": sentence(self.profile, state, *((None, None) if pick is None else (candidates[pick], confirmed[pick])))}


def sentence(profile: str, state: Json, candidate: Mapping[str, Any] | None, fresh: Difference | None) -> str:
    """One honest sentence: nothing is claimed without the interval from the cells that confirm it.

    Args:
        profile: the tweak set searched.
        state: `cells`, `planned`, `verdict`, `candidates` and `unknown` of the conclusion.
        candidate: the one that all cells together hold best.
        fresh: its confirmation against stock.

    """
    cells, failed = len(state["cells"]), sum(cell["cost"] is None for cell in state["cells"])
    lost = f" {failed} of the cells failed." if failed else ""
    if state["unknown"] and state["done"]:
        lost += f" Nothing is known of {', '.join(state['unknown'])}: no cell with it was measured."
    if candidate is None or fresh is None:
        if state["verdict"] == "going on":
            return f"Nothing is claimed for {profile}: {cells} of {state['planned']} cells done.{lost}"
        confirming = [cell["cost"] is not None for cell in state["cells"] if cell["stage"] == "confirmation"]
        measured = f"{cells - failed or 'none'} of {cells} cells {'was' if cells - failed < 2 else 'were'} measured"
        few = f", {sum(confirming)} of the {len(confirming)} that confirm: too few beside stock" if cells > failed else ""
        return f"Nothing can be said of {profile}: {measured}{few}.{lost if cells > failed else ''}"
    missed = [other["name"] for other in state["candidates"] if other["confirmed"] is None]
    if missed:
        lost = f" Of {' and '.join(missed)}, a candidate too, nothing was confirmed: too few of its cells were measured beside stock.{lost}"
    together = "97.5 %" if missed else "95 % for both candidates together"
    promised = "" if candidate["predicted"] is None else f"; {gain(log1p(candidate['predicted']))} was expected"
    levels = ", ".join(f"{name} = {'as found' if level is None else level}" for name, level in candidate["levels"].items())
    ground = f"speed {fresh.said()}, {together}{promised}; {cells} cells"
    if state["verdict"] == "gain":
        return f"{candidate['name']} beats stock: {ground}. It is {levels}.{lost}"
    nothing = f"Nothing found in {profile} beats stock for certain: the best candidate, {candidate['name']}, came to {ground}."
    return f"{nothing} It is {levels}.{lost}"
