"""Steps from level to level, each on its own differences from block to block.

A step is a contrast of cells that is taken inside each block, and its error is what those differences scatter by: paired t, blocks − 1
degrees of freedom. Configurations need not scatter alike for that, and they do not: what comes from a disk scatters ten times as far as
what comes from memory, and on one error pooled over both the one looks surer than it is, and is named though it does nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from analysis.stats.effect import ROUNDING, moments
from analysis.studies.keys.contrasts import differences
from analysis.studies.keys.frame import FEWEST_RUNS as FEWEST_BLOCKS
from analysis.terms import NotComparable
from control.t_test import ALPHA, LARGEST_LOG, t_quantile, t_tail

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from analysis.studies.keys.terms import Observed

Point = tuple[str, ...]
# What is asked of the factors by their place: how much each level counts; the cells are averaged over all other factors.
Question = dict[int, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Table:
    """One response by block and point, as logarithms where it is compared by ratios (`log`)."""

    blocks: tuple[Mapping[Point, float], ...]
    log: bool


@dataclass(frozen=True, slots=True)
class Paired:
    """A mean over blocks, as a gain (rates) or in the response's own unit, with its 95 % interval and the p of being none at all."""

    effect: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class Step:
    """What going from one level to another does; of two factors: by how much what the one does changes with the other.

    `levels` is where it leads, a level a factor. `low` and `high` hold with 95 % for all steps of the effect together: the one that is told
    was chosen among them, and an interval of that one alone would miss more often. `p` is its own, `p_adjusted` Holm's over the steps of
    its effect and the effects of the response; None for a step that is told and not tested.
    """

    name: str
    levels: Point
    blocks: int
    effect: float
    low: float
    high: float
    p: float
    p_adjusted: float | None = None

    @property
    def shown(self) -> bool:
        """Whether it is named."""
        return self.p_adjusted is not None and self.p_adjusted < ALPHA


def by_block(seen: Observed) -> Table:
    """Lay responses out by block; runs that know no blocks are in none."""
    found: dict[str, dict[Point, float]] = {}
    for row in seen.rows:
        if row.block:
            found.setdefault(row.block, {})[row.levels] = math.log(row.value) if seen.scale == "log" else row.value
    return Table(tuple(found.values()), seen.scale == "log")


def values(asked: Question, table: Table) -> list[float]:
    """Answer a question in each block that has all its cells.

    It is averaged over those combinations of the other factors at which everything that it asks for was measured, often enough to count.

    Raises: NotComparable, where there is no such combination, or too few such blocks.
    """
    counts = Counter(point for block in table.blocks for point in block)
    found = differences(_weights(asked, [point for point, count in counts.items() if count >= FEWEST_BLOCKS]), table.blocks)
    if len(found) < FEWEST_BLOCKS:
        raise NotComparable(f"{len(found)} blocks hold all that it takes, and at least {FEWEST_BLOCKS} are needed")
    return found


def step(name: str, levels: Point, asked: Question, table: Table, among: int) -> Step:
    """Take one step `among` so many. Raises: NotComparable, as `values` and `paired`."""
    found = values(asked, table)
    one = paired(found, log=table.log, among=among)
    return Step(name, levels, len(found), one.effect, one.low, one.high, one.p)


def paired(changes: Sequence[float], *, log: bool, among: int = 1) -> Paired:
    """One-sample t on what changed in each block; the interval as `interval` has it.

    Raises: NotComparable, where all blocks changed by the very same.
    """
    mean, sd = moments(changes)
    if sd < ROUNDING:
        raise NotComparable("every block has the very same change: these are no measurements")
    p = min(1.0, 2 * t_tail(abs(mean) * math.sqrt(len(changes)) / sd, len(changes) - 1))
    effect, low, high = (math.expm1(min(end, LARGEST_LOG)) if log else end for end in interval(changes, among))
    return Paired(effect, low, high, p)


def interval(found: Sequence[float], among: int = 1) -> tuple[float, float, float]:
    """Mean and 95 % interval by Student's t; of one `among` several, so wide that all of them hold together (Bonferroni)."""
    mean, sd = moments(found)
    half = t_quantile(1 - ALPHA / (2 * among), len(found) - 1) * sd / math.sqrt(len(found))
    return mean, mean - half, mean + half


def _weights(asked: Question, points: Collection[Point]) -> Mapping[Point, float]:
    """Spread a question evenly over the combinations of all other factors that have a point for every part of it."""
    groups: dict[Point, dict[Point, Point]] = {}
    for point in points:
        corner = tuple(point[at] for at in asked)
        if all(level in levels for level, levels in zip(corner, asked.values(), strict=True)):
            rest = tuple(level for at, level in enumerate(point) if at not in asked)
            groups.setdefault(rest, {})[corner] = point
    corners = {
        tuple(level for level, _ in parts): math.prod(weight for _, weight in parts)
        for parts in product(*(levels.items() for levels in asked.values()))
    }
    whole = [group for group in groups.values() if len(group) == len(corners)]
    if not whole:
        raise NotComparable(f"nothing else alike was measured at all its levels in {FEWEST_BLOCKS} blocks")
    return {point: corners[corner] / len(whole) for group in whole for corner, point in group.items()}
