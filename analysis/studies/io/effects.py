"""Which factor, how much, how sure; and tweak sets against stock.

Each step of a factor, or of two together, is a contrast of cells inside each block, and its error is what those differences scatter by:
paired t, blocks − 1 degrees of freedom. So configurations need not scatter alike: what comes from a disk scatters ten times as far as what
comes from memory, and on one pooled error it would look surer than it is. An effect of several steps is named by its smallest p, adjusted
over its own steps, and all effects of a response are one family (Holm both times).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from analysis.stats.adjust import holm
from analysis.stats.effect import Paired, interval, paired
from analysis.terms import NotComparable
from control.t_test import ALPHA

from .configurations import Mean
from .factors import AGAIN, STOCK, common, configuration, level_of, observed, scale_of, spoken, touched
from .variation import FEWEST_BLOCKS, variation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from .factors import ObservedFactor, Varied
    from .responses import JudgedResponse
    from .variation import Level, VarianceSource, Variation

COMFORTABLE_BLOCKS = 5
FEWEST_IN_CONTRAST = 2
CACHE = "cache"
Point = tuple[str, ...]
# What is asked of the factors by their place: how much each level counts; the cells are averaged over all other factors.
Question = dict[int, dict[str, float]]


@dataclass(frozen=True, slots=True)
class EffectTable:
    """One response by block and point, as logarithms where it is compared by ratios (`log`)."""

    blocks: tuple[Mapping[Point, float], ...]
    log: bool


@dataclass(frozen=True, slots=True)
class EffectStep:
    """What going from one level to another does; of two factors: by how much what the one does changes with the other.

    `levels` is where it leads, a level a factor. `low` and `high` hold with 95 % for all steps of the effect together, for the one that is
    told was chosen among them. `p_adjusted` is Holm's over the steps of its effect and the effects of the response; None for a step that is
    told and not tested.
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


@dataclass(frozen=True, slots=True)
class JointEffects:
    """An interaction as it is used: what `factor` does from `first` to `last` at each level of `along`, which names the steps."""

    factor: str
    first: str
    last: str
    along: str
    steps: tuple[EffectStep, ...]


@dataclass(frozen=True, slots=True)
class IoEffect:
    """One factor's effect, or that of two together. `share` of the variation describes; `p_adjusted` is Holm's over steps and effects."""

    factors: tuple[str, ...]
    share: float
    p_adjusted: float
    steps: tuple[EffectStep, ...]
    levels: tuple[Level, ...] = ()
    together: JointEffects | None = None

    @property
    def shown(self) -> bool:
        """Whether it is named."""
        return self.p_adjusted < ALPHA

    @property
    def clearest(self) -> EffectStep:
        """The step to tell it by: the largest of those that are named, else the one of the smallest p."""
        named = [one for one in self.steps if one.shown]
        return max(named, key=lambda one: abs(one.effect)) if named else min(self.steps, key=lambda one: one.p)


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that is said of one response, or in `refusal` why nothing can be. `variation` is allotted, and not tested."""

    response: str
    unit: str
    sets: bool
    observed: ObservedFactor
    findings: tuple[IoEffect, ...] = ()
    variation: tuple[VarianceSource, ...] = ()
    refusal: str = ""
    notes: tuple[str, ...] = ()


def analysed(cells: Sequence[JudgedResponse], response: str, *, sets: bool) -> Analysis:
    """Analyse one response over everything that was varied; `sets` takes the tweak set for a factor too."""
    seen, varied = observed(cells, response, sets=sets)
    empty = Analysis(response, seen.unit, sets, seen)
    table = by_block(seen)
    blocks = len(table.blocks)
    if not varied.factors:
        return replace(empty, refusal="nothing was varied: `--vary NAME=A,B` crosses a parameter.")
    if not seen.rows:
        reasons = ", ".join(dict.fromkeys(lost.reason.partition(":")[0] for lost in seen.lost)) or "nothing ran"
        return replace(empty, refusal=f"no run has it: {reasons}.")
    if blocks < FEWEST_BLOCKS:
        count = f"{blocks} block{'' if blocks == 1 else 's'}"
        why = f"measured in {count}: how far a difference scatters from block to block takes {FEWEST_BLOCKS} at least."
        return replace(empty, refusal=why)
    try:
        described = variation(seen)
    except NotComparable as reason:
        return replace(empty, refusal=str(reason))
    tested, gone = _tested(seen, described, table)
    notes = (*described.notes, *gone, *_notes(seen, described, varied, blocks))
    if not tested:
        return replace(empty, refusal=next(iter(gone), "the levels of no factor can be told apart."), notes=notes)
    return replace(empty, variation=described.rows, findings=_effects(seen, described, tested, table), notes=notes)


def _tested(seen: ObservedFactor, described: Variation, table: EffectTable) -> tuple[dict[tuple[str, ...], list[EffectStep]], list[str]]:
    """Take all steps of all effects; answer them by effect, and what cannot be told in words."""
    there = seen.levels()
    result: dict[tuple[str, ...], list[EffectStep]] = {}
    gone: list[str] = []
    for row in described.rows:
        if not row.factors:
            continue
        lost: dict[str, str] = {}
        count = math.prod(len(there[name]) - 1 for name in row.factors)
        for ends in product(*(there[name][1:] for name in row.factors)):
            pairs = [(factor, there[factor][0], last) for factor, last in zip(row.factors, ends, strict=True)]
            name = ", ".join(f"{first} → {last}" for _, first, last in pairs)
            try:
                one = step(name, ends, {seen.place(factor): {first: -1.0, last: 1.0} for factor, first, last in pairs}, table, count)
            except NotComparable as reason:
                lost[name] = str(reason)
            else:
                result.setdefault(row.factors, []).append(one)
        if lost:
            part = f", {'; '.join(lost)}," if row.factors in result else ""
            gone.append(f"{' × '.join(row.factors)}{part} cannot be told: {next(iter(lost.values()))}.")
    return result, gone


def _effects(
    seen: ObservedFactor, described: Variation, tested: dict[tuple[str, ...], list[EffectStep]], table: EffectTable
) -> tuple[IoEffect, ...]:
    """Adjust all together; the largest first, main effects before those of two."""
    smallest = [min(1.0, len(steps) * min(one.p for one in steps)) for steps in tested.values()]
    shares = {row.factors: row.share for row in described.rows}
    result = []
    for (factors, steps), p, adjusted in zip(tested.items(), smallest, holm(smallest), strict=True):
        times = adjusted / p if p else 1.0  # what the other effects cost this one, its steps pay too
        ours = tuple(replace(one, p_adjusted=min(1.0, times * its)) for one, its in zip(steps, holm([one.p for one in steps]), strict=True))
        effect = IoEffect(
            factors, shares[factors], adjusted, ours, tuple(level for level in described.levels if (level.factor,) == factors)
        )
        result.append(replace(effect, together=_together(seen, effect, table)) if len(factors) > 1 else effect)
    return tuple(sorted(result, key=lambda effect: (len(effect.factors), -effect.share)))


def _together(seen: ObservedFactor, effect: IoEffect, table: EffectTable) -> JointEffects | None:
    """Tell an interaction by the factor with fewer levels, to the level that shows it best."""
    there = seen.levels()
    inner = 0 if len(there[effect.factors[0]]) < len(there[effect.factors[1]]) else 1
    factor, along = effect.factors[inner], effect.factors[1 - inner]
    first, last = there[factor][0], effect.clearest.levels[inner]
    count = len(there[along]) * (len(there[factor]) - 1)
    steps = []
    for level in there[along]:
        try:
            question = {seen.place(factor): {first: -1.0, last: 1.0}, seen.place(along): {level: 1.0}}
            steps.append(step(level, (last, level), question, table, count))
        except NotComparable:
            continue
    return JointEffects(factor, first, last, along, tuple(steps)) if steps else None


def _notes(seen: ObservedFactor, described: Variation, varied: Varied, blocks: int) -> list[str]:
    notes = [
        f"{name} always went with {twin}: the two cannot be told apart, and what is said of {twin} is of both."
        for name, twin in varied.same
    ]
    for lost in seen.lost:
        where = f" in block {', '.join(lost.blocks)}" if any(lost.blocks) else ""
        notes.append(f"left out: {lost.point}{where}: {lost.reason}.")
    notes += [
        f"left out: the only configuration with {spoken(name, level)}; the others are a complete design." for name, level in varied.alone
    ]
    notes += [f"{name} cannot be told: {reason}." for name, reason in described.unestimable]
    if not described.balanced:
        notes.append("the cells do not balance: a step is taken where all of it was measured, and shares do not add up.")
    if blocks < COMFORTABLE_BLOCKS:
        notes.append(f"{blocks} blocks only: with fewer than {COMFORTABLE_BLOCKS} one odd cell can decide, and small effects are not seen.")
    return notes


def means(analysis: Analysis, pair: tuple[str, str]) -> dict[Point, Mean]:
    """Means over blocks at every two levels of two factors, as far as they can be told, each with its 95 % interval."""
    levels = {factor.name: factor.levels for factor in analysis.observed.factors}
    table = by_block(analysis.observed)
    result: dict[Point, Mean] = {}
    for ends in product(*(levels[name] for name in pair)) if set(pair) <= levels.keys() else ():
        try:
            each = values({analysis.observed.place(name): {level: 1.0} for name, level in zip(pair, ends, strict=True)}, table)
        except NotComparable:
            continue
        mean, low, high = (math.exp(end) if table.log else end for end in interval(each))
        result[ends] = Mean(len(each), mean, low, high)
    return result


def by_block(seen: ObservedFactor) -> EffectTable:
    """Lay responses out by block; runs that know no blocks are in none."""
    result: dict[str, dict[Point, float]] = {}
    for row in seen.rows:
        if row.block:
            result.setdefault(row.block, {})[row.levels] = math.log(row.value) if seen.scale == "log" else row.value
    return EffectTable(tuple(result.values()), seen.scale == "log")


def values(question: Question, table: EffectTable) -> list[float]:
    """Answer a question in each block that has all its cells.

    It is averaged over those combinations of the other factors at which all that it asks for was measured often enough.

    Raises: NotComparable, where there is none, or too few such blocks.
    """
    counts = Counter(point for block in table.blocks for point in block)
    weights = _weights(question, [point for point, count in counts.items() if count >= FEWEST_BLOCKS])
    whole = [block for block in table.blocks if block.keys() >= weights.keys()]
    if len(whole) < FEWEST_BLOCKS:
        raise NotComparable(f"{len(whole)} blocks hold all that it takes, and at least {FEWEST_BLOCKS} are needed")
    return [math.fsum(weight * block[point] for point, weight in weights.items()) for block in whole]


def step(name: str, levels: Point, question: Question, table: EffectTable, among: int) -> EffectStep:
    """Take one step `among` so many. Raises: NotComparable, as `values` and `paired`."""
    result = values(question, table)
    one = paired(result, log=table.log, among=among)
    return EffectStep(name, levels, len(result), one.effect, one.low, one.high, one.p)


def _weights(question: Question, points: Collection[Point]) -> Mapping[Point, float]:
    """Spread a question evenly over the combinations of all other factors that have a point for every part of it."""
    groups: dict[Point, dict[Point, Point]] = {}
    for point in points:
        corner = tuple(point[at] for at in question)
        if all(level in levels for level, levels in zip(corner, question.values(), strict=True)):
            groups.setdefault(tuple(level for at, level in enumerate(point) if at not in question), {})[corner] = point
    corners = {
        tuple(level for level, _ in parts): math.prod(weight for _, weight in parts)
        for parts in product(*(levels.items() for levels in question.values()))
    }
    whole = [group for group in groups.values() if len(group) == len(corners)]
    if not whole:
        raise NotComparable(f"nothing else alike was measured at all its levels in {FEWEST_BLOCKS} blocks")
    return {point: corners[corner] / len(whole) for group in whole for corner, point in group.items()}


# Tweak sets. Where the data set is in memory no disk is read, so that a setting of the disk cannot matter: what it seems to do there is
# what this machine makes out of nothing (a negative control).


@dataclass(frozen=True, slots=True)
class IoContrast:
    """One tweak set against stock in one configuration: a mean over blocks, as a gain (rates) or in the response's own unit.

    `p_adjusted` is Holm's over the table. `cache` is the state of the page cache before each epoch, "" where it was no parameter, and
    `rest` the configuration without it.
    """

    tweakset: str
    configuration: str
    rest: str
    cache: str
    blocks: int = 0
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    missing: str | None = None

    @property
    def value(self) -> float | None:
        """The effect, as tables call it."""
        return self.effect

    @property
    def shown(self) -> bool:
        """Whether it differs from stock, as far as the adjusted p says."""
        return self.p_adjusted is not None and self.p_adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Everything that was set against stock in one response. `differences` are cold minus warm (its negative control), block by block."""

    response: str
    unit: str
    again: tuple[IoContrast, ...]
    tweaks: tuple[IoContrast, ...]
    differences: tuple[IoContrast, ...]


def contrasts(cells: Sequence[JudgedResponse], response: str) -> Contrasts:
    """Set every tweak set, and the copy of stock, against stock: paired by block."""
    log = scale_of(response) == "log"
    table: dict[tuple[str, str], dict[int, float]] = {}
    about: dict[str, tuple[str, str]] = {}
    alike = common([cell.run for cell in cells])
    for cell in cells:
        run, value = cell.run, cell.responses[response].value
        name = configuration(run, alike)
        about[name] = configuration(run, alike | {CACHE}), level_of(run, CACHE) if CACHE in {*run.overrides, *run.params} else ""
        blocks = table.setdefault((run.tweakset, name), {})
        if run.block is not None and value is not None and (not log or value > 0):
            blocks[run.block] = math.log(value) if log else value
    changes = {
        (tweakset, name): _changes(table[tweakset, name], table.get((STOCK, name), {}))
        for tweakset in (AGAIN, *touched(cells))
        for name in about
        if (tweakset, name) in table
    }
    made = [_contrast(tweakset, name, about[name], list(blocks.values()), log=log) for (tweakset, name), blocks in changes.items()]
    differences = []
    for (tweakset, name), cold in changes.items():
        rest, cache = about[name]
        twin = next((other for other, (its, state) in about.items() if (its, state) == (rest, "warm")), None)
        if tweakset != AGAIN and cache == "cold" and twin is not None and (tweakset, twin) in changes:
            between = _changes(cold, changes[tweakset, twin])
            differences.append(_contrast(tweakset, rest, (rest, ""), list(between.values()), log=log))
    return Contrasts(
        response,
        next((cell.responses[response].unit for cell in cells), ""),
        _adjusted([contrast for contrast in made if contrast.tweakset == AGAIN]),
        _adjusted([contrast for contrast in made if contrast.tweakset != AGAIN]),
        _adjusted(differences),
    )


def _changes(blocks: Mapping[int, float], before: Mapping[int, float]) -> dict[int, float]:
    return {block: blocks[block] - before[block] for block in sorted(blocks.keys() & before.keys())}


def _contrast(tweakset: str, name: str, about: tuple[str, str], changes: Sequence[float], *, log: bool) -> IoContrast:
    empty = IoContrast(tweakset, name, *about, len(changes))
    if len(changes) < FEWEST_IN_CONTRAST:
        return replace(empty, missing=f"{len(changes)} block{'' if len(changes) == 1 else 's'} with both")
    try:
        one: Paired = paired(changes, log=log)
    except NotComparable as reason:
        return replace(empty, missing=str(reason))
    return replace(empty, effect=one.effect, low=one.low, high=one.high, p=one.p)


def _adjusted(result: Sequence[IoContrast]) -> tuple[IoContrast, ...]:
    ps = iter(holm([contrast.p for contrast in result if contrast.p is not None]))
    return tuple(contrast if contrast.p is None else replace(contrast, p_adjusted=next(ps)) for contrast in result)
