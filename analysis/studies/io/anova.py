"""Which factor, how much, how sure: what each step of a factor, and of two together, does to one response.

Each step stands on its own differences from block to block (`steps`); runs' steps and epochs never enter. An effect of several steps is
named by its smallest p, adjusted over its own steps, and all effects of a response, main and of two together, are one family (Holm both
times). The table of variation is a description: it pools all combinations, as if they scattered alike, and nothing is named by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from analysis.stats.adjust import holm
from analysis.studies.keys.contrasts import COMFORTABLE_RUNS
from analysis.studies.keys.frame import FEWEST_RUNS as FEWEST_BLOCKS
from analysis.studies.keys.several import several
from analysis.terms import NotComparable
from control.t_test import ALPHA

from .configurations import Mean
from .factors import observed, spoken
from .steps import Step, by_block, interval, step, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.studies.keys.terms import Effects, Level, Observed, Source

    from .factors import Varied
    from .responses import Judged
    from .steps import Point, Question, Table


@dataclass(frozen=True, slots=True)
class Together:
    """An interaction told as it is used: what `factor` does from `first` to `last` at each level of `along`, by which a step is called."""

    factor: str
    first: str
    last: str
    along: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One effect: a factor's, or of two together. `share` of the variation describes; `p_adjusted` is Holm's over steps and effects.

    `levels` are the means at a factor's levels; `together` tells an interaction.
    """

    factors: tuple[str, ...]
    share: float
    p_adjusted: float
    steps: tuple[Step, ...]
    levels: tuple[Level, ...] = ()
    together: Together | None = None

    @property
    def shown(self) -> bool:
        """Whether it is named."""
        return self.p_adjusted < ALPHA

    @property
    def told(self) -> Step:
        """The step to tell it by: the largest of those that are named, else the clearest."""
        named = [one for one in self.steps if one.shown]
        return max(named, key=lambda one: abs(one.effect)) if named else min(self.steps, key=lambda one: one.p)


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that is said of one response; where nothing can be, `refusal` says why. `variation` is allotted, and not tested."""

    response: str
    unit: str
    sets: bool
    observed: Observed
    varied: Varied
    findings: tuple[Finding, ...] = ()
    variation: tuple[Source, ...] = ()
    refusal: str = ""
    notes: tuple[str, ...] = ()


def analysed(cells: Sequence[Judged], response: str, *, sets: bool) -> Analysis:
    """Analyse one response over everything that was varied; `sets` takes the tweak set for a factor too."""
    seen, found = observed(cells, response, sets=sets)
    empty = Analysis(response, seen.workload, sets, seen, found)
    if not found.factors:
        return replace(empty, refusal="nothing was varied: `--vary NAME=A,B` crosses a parameter.")
    if not seen.rows:
        return replace(
            empty, refusal=f"no run has it: {', '.join(dict.fromkeys(one.reason.partition(':')[0] for one in seen.lost)) or 'nothing ran'}."
        )
    table = by_block(seen)
    blocks = len(table.blocks)
    if blocks < FEWEST_BLOCKS:
        return replace(
            empty,
            refusal=f"measured in {blocks} block{'' if blocks == 1 else 's'}: how far a difference scatters from block to block "
            f"takes {FEWEST_BLOCKS} at least.",
        )
    try:
        effects = several(seen)
    except NotComparable as reason:
        return replace(empty, refusal=str(reason))
    tested, gone = _tested(effects, table)
    notes = (*effects.notes, *gone, *_notes(effects, found, blocks))
    if not tested:
        return replace(empty, refusal=next(iter(gone), "the levels of no factor can be told apart."), notes=notes)
    variation = tuple(replace(row, f=None, p=None) for row in effects.anova)
    return replace(empty, variation=variation, findings=_findings(effects, tested, table), notes=notes)


def _tested(effects: Effects, table: Table) -> tuple[dict[tuple[str, ...], list[Step]], list[str]]:
    """Take all steps of all effects; answer them by effect, and what cannot be told in words."""
    there = _levels(effects)
    found: dict[tuple[str, ...], list[Step]] = {}
    gone: list[str] = []
    for row in effects.anova:
        if not row.factors:
            continue
        lost: dict[str, str] = {}
        count = math.prod(len(there[name]) - 1 for name in row.factors)
        for ends in product(*(there[name][1:] for name in row.factors)):
            firsts = [there[name][0] for name in row.factors]
            name = ", ".join(f"{first} → {last}" for first, last in zip(firsts, ends, strict=True))
            asked: Question = {
                _at(effects, factor): {first: -1.0, last: 1.0} for factor, first, last in zip(row.factors, firsts, ends, strict=True)
            }
            try:
                one = step(name, ends, asked, table, count)
            except NotComparable as reason:
                lost[name] = str(reason)
            else:
                found.setdefault(row.factors, []).append(one)
        if lost:
            part = f", {'; '.join(lost)}," if row.factors in found else ""
            gone.append(f"{' × '.join(row.factors)}{part} cannot be told: {next(iter(lost.values()))}.")
    return found, gone


def _findings(effects: Effects, tested: dict[tuple[str, ...], list[Step]], table: Table) -> tuple[Finding, ...]:
    """Adjust all together; the largest first, main effects before those of two."""
    smallest = [min(1.0, len(steps) * min(one.p for one in steps)) for steps in tested.values()]
    shares = {row.factors: row.share for row in effects.anova}
    found = []
    for (factors, steps), p, adjusted in zip(tested.items(), smallest, holm(smallest), strict=True):
        times = adjusted / p if p else 1.0  # what the other effects cost this one, its steps pay too
        ours = tuple(replace(one, p_adjusted=min(1.0, times * its)) for one, its in zip(steps, holm([one.p for one in steps]), strict=True))
        levels = tuple(replace(one, low=None, high=None) for one in effects.levels if (one.factor,) == factors)
        finding = Finding(factors, shares[factors], adjusted, ours, levels)
        found.append(replace(finding, together=_together(effects, finding, table)) if len(factors) > 1 else finding)
    return tuple(sorted(found, key=lambda one: (len(one.factors), -one.share)))


def _together(effects: Effects, one: Finding, table: Table) -> Together | None:
    """Tell an interaction by the factor with fewer levels, to the level that shows it best, at each level of the other."""
    there = _levels(effects)
    inner = 0 if len(there[one.factors[0]]) < len(there[one.factors[1]]) else 1
    factor, along = one.factors[inner], one.factors[1 - inner]
    first, last = there[factor][0], one.told.levels[inner]
    count = len(there[along]) * (len(there[factor]) - 1)
    told = []
    for level in there[along]:
        asked: Question = {_at(effects, factor): {first: -1.0, last: 1.0}, _at(effects, along): {level: 1.0}}
        try:
            told.append(step(level, (last, level), asked, table, count))
        except NotComparable:
            continue
    return Together(factor, first, last, along, tuple(told)) if told else None


def _levels(effects: Effects) -> dict[str, list[str]]:
    """The levels of each factor that were measured, in order."""
    rows = effects.observed.rows
    return {
        one.name: [level for level in one.levels if any(row.levels[at] == level for row in rows)]
        for at, one in enumerate(effects.observed.factors)
    }


def _at(effects: Effects, factor: str) -> int:
    return [one.name for one in effects.observed.factors].index(factor)


def means(one: Analysis, pair: tuple[str, str]) -> dict[Point, Mean]:
    """Means over blocks at every two levels of two factors, as far as they can be told, each with its own 95 % interval."""
    names = [factor.name for factor in one.observed.factors]
    table = by_block(one.observed)
    found: dict[Point, Mean] = {}
    for ends in product(*(one.observed.factors[names.index(name)].levels for name in pair)) if set(pair) <= set(names) else ():
        try:
            each = values({names.index(name): {level: 1.0} for name, level in zip(pair, ends, strict=True)}, table)
        except NotComparable:
            continue
        mean, low, high = (math.exp(end) if table.log else end for end in interval(each))
        found[ends] = Mean(len(each), mean, low, high)
    return found


def _notes(effects: Effects, found: Varied, blocks: int) -> list[str]:
    notes = [
        f"{name} always went with {twin}: the two cannot be told apart, and what is said of {twin} is of both." for name, twin in found.same
    ]
    notes += [
        f"left out: {one.point}{' in block ' + ', '.join(one.blocks) if any(one.blocks) else ''}: {one.reason}."
        for one in effects.observed.lost
    ]
    notes += [
        f"left out: the only configuration with {spoken(name, level)}; the others are a complete design." for name, level in found.alone
    ]
    notes += [f"{name} cannot be told: {why}." for name, why in effects.unestimable]
    if not effects.orthogonal:
        notes.append("the cells do not balance: a step is taken where all of it was measured, and shares do not add up.")
    if blocks < COMFORTABLE_RUNS:
        notes.append(f"{blocks} blocks only: with fewer than {COMFORTABLE_RUNS} one odd cell can decide, and small effects are not seen.")
    return notes
