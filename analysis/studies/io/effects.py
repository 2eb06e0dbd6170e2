"""Which factor, how much, how sure; and tweak sets against stock.

Each step of a factor, or of two together, is a contrast of cells inside each block, and its error is what those differences scatter by:
paired t, blocks − 1 degrees of freedom. So configurations need not scatter alike: what comes from a disk scatters ten times as far as what
comes from memory, and on one pooled error it would look surer than it is. An effect of several steps is named by its smallest p, adjusted
over its own steps, and all effects of a response are one family (Holm both times).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.adjust import holm
from analysis.stats.estimate import Change, Estimate, Mean, adjusted, change_in, change_of, contrast, differences, mean_of
from analysis.stats.linear import Cells, FactorModel, VariationSource, why_lost
from analysis.terms import AGAIN, STOCK, NotComparable
from control.t_test import ALPHA

from .factors import BLOCK, Layout, Y, common, configuration, layout_of, level_name, level_of, on_scale, scale_of, treated_sets

if TYPE_CHECKING:
    from .responses import JudgedResponse

FEWEST_BLOCKS, COMFORTABLE_BLOCKS = 3, 5
CACHE = "cache"
Point = tuple[str, ...]
Blocks = list[dict[Point, float]]  # one response by block and point, as logarithms where it is compared by ratios
# A contrast of levels: by the place of each factor, how much each level counts; the cells are averaged over all other factors.
Question = dict[int, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Level:
    """The mean of `n` cells at one level, adjusted for blocks and what was lost, in the response's unit."""

    factor: str
    level: str
    n: int
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectStep(Change):
    """What going from one level to another does; of two factors: by how much what the one does changes with the other.

    `levels` is where it leads, a level a factor. `low` and `high` hold with 95 % for all steps of the effect together, for the one that is
    reported was chosen among them. `p_adjusted` is Holm's over the steps of its effect and the effects of the response; None for a step
    that is shown and not tested.
    """

    name: str
    levels: Point


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
        return self.p_adjusted < ALPHA

    @property
    def clearest(self) -> EffectStep:
        """The step to describe it by: the largest of those that are named, else the one of the smallest p."""
        named = [one for one in self.steps if one.shown]
        return max(named, key=lambda one: abs(one.value)) if named else min(self.steps, key=lambda one: one.p)


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is known of one response, or in `refusal` why nothing is. `variation` is allotted, and not tested."""

    response: str
    unit: str
    layout: Layout
    findings: tuple[IoEffect, ...] = ()
    variation: tuple[VariationSource, ...] = ()
    refusal: str = ""
    notes: tuple[str, ...] = ()


def analyse(cells: Sequence[JudgedResponse], response: str) -> Analysis:
    """Analyse one response over everything that was varied."""
    layout = layout_of(cells, response)
    empty = Analysis(response, layout.unit, layout)
    blocks = by_block(layout)
    if not layout.factors:
        return replace(empty, refusal="nothing was varied: `--vary NAME=A,B` crosses a parameter.")
    if not layout.rows[Y]:
        reasons = ", ".join(dict.fromkeys(reason.partition(":")[0] for _, reason, _ in layout.lost)) or "nothing ran"
        return replace(empty, refusal=f"no run has it: {reasons}.")
    if len(blocks) < FEWEST_BLOCKS:
        count = f"{len(blocks)} block{'' if len(blocks) == 1 else 's'}"
        why = f"measured in {count}: how far a difference scatters from block to block takes {FEWEST_BLOCKS} at least."
        return replace(empty, refusal=why)
    try:
        model = _model(layout)
        described, levels = model.sources(), _levels(layout, model)
    except NotComparable as reason:
        return replace(empty, refusal=str(reason))
    tested, gone = _test_steps(layout, described, blocks)
    notes = (*gone, *_notes(layout, model, len(blocks)))
    if not tested:
        return replace(empty, refusal=next(iter(gone), "the levels of no factor can be told apart."), notes=notes)
    return replace(empty, variation=tuple(described), findings=_effects(layout, described, levels, tested, blocks), notes=notes)


def _model(layout: Layout) -> FactorModel:
    """Lay out how the response varies with its factors: a description, which pools all combinations as if they scattered alike."""
    cells = Cells.of(np.array(layout.rows[Y], float), layout.rows[BLOCK], layout.keys(), len(layout.points), layout.response)
    return FactorModel.of(cells, layout.levels())


def _levels(layout: Layout, model: FactorModel) -> list[Level]:
    means = [(mean, mean.mean[0]) for mean in model.means()]
    return [Level(one.factor, one.level, one.n, math.exp(value) if layout.scale == "log" else value) for one, value in means]


def _test_steps(
    layout: Layout, described: Sequence[VariationSource], blocks: Blocks
) -> tuple[dict[tuple[str, ...], list[EffectStep]], list[str]]:
    """Return the steps of each effect, and what cannot be tested, a sentence each."""
    levels, places = layout.levels(), [one.name for one in layout.factors]
    result: dict[tuple[str, ...], list[EffectStep]] = defaultdict(list)
    gone: list[str] = []
    for row in described:
        lost: dict[str, str] = {}
        firsts = [levels[factor][0] for factor in row.factors]
        count = math.prod(len(levels[factor]) - 1 for factor in row.factors)
        for ends in product(*(levels[factor][1:] for factor in row.factors)) if row.factors else ():
            question = {places.index(factor): {a: -1.0, b: 1.0} for factor, a, b in zip(row.factors, firsts, ends, strict=True)}
            name = ", ".join(f"{first} → {last}" for first, last in zip(firsts, ends, strict=True))
            try:
                step = _step(name, ends, question, blocks, layout.scale == "log", count)
            except NotComparable as reason:
                lost[name] = str(reason)
            else:
                result[row.factors].append(step)
        if lost:
            part = f", {'; '.join(lost)}," if row.factors in result else ""
            gone.append(f"{' × '.join(row.factors)}{part} cannot be told: {next(iter(lost.values()))}.")
    return result, gone


def _effects(
    layout: Layout,
    described: Sequence[VariationSource],
    means: Sequence[Level],
    tested: Mapping[tuple[str, ...], Sequence[EffectStep]],
    blocks: Blocks,
) -> tuple[IoEffect, ...]:
    """Adjust all together; the largest first, main effects before those of two."""
    smallest = [min(1.0, len(steps) * min(one.p for one in steps)) for steps in tested.values()]
    shares = {row.factors: row.share for row in described}
    result = []
    for (factors, steps), p, p_adjusted in zip(tested.items(), smallest, holm(smallest), strict=True):
        times = p_adjusted / p if p else 1.0  # what the other effects cost this one, its steps pay too
        own = tuple(replace(one, p_adjusted=min(1.0, times * its)) for one, its in zip(steps, holm([one.p for one in steps]), strict=True))
        levels = tuple(level for level in means if (level.factor,) == factors)
        effect = IoEffect(factors, shares[factors], p_adjusted, own, levels)
        result.append(replace(effect, together=_together(layout, effect, blocks)) if len(factors) > 1 else effect)
    return tuple(sorted(result, key=lambda effect: (len(effect.factors), -effect.share)))


def _together(layout: Layout, effect: IoEffect, blocks: Blocks) -> JointEffects | None:
    """Describe an interaction by the factor with fewer levels, to the level that shows it best."""
    levels, places = layout.levels(), [one.name for one in layout.factors]
    inner = 0 if len(levels[effect.factors[0]]) < len(levels[effect.factors[1]]) else 1
    factor, along = effect.factors[inner], effect.factors[1 - inner]
    first, last = levels[factor][0], effect.clearest.levels[inner]
    count = len(levels[along]) * (len(levels[factor]) - 1)
    steps = []
    for level in levels[along]:
        question = {places.index(factor): {first: -1.0, last: 1.0}, places.index(along): {level: 1.0}}
        try:
            steps.append(_step(level, (last, level), question, blocks, layout.scale == "log", count))
        except NotComparable:
            continue
    return JointEffects(factor, first, last, along, tuple(steps)) if steps else None


def _notes(layout: Layout, model: FactorModel, blocks: int) -> list[str]:
    varied = layout.varied
    notes = [f"{name} always went with {twin}: the two cannot be told apart, and {twin} stands for both." for name, twin in varied.same]
    for point, reason, lost in layout.lost:
        where = f" in block {', '.join(lost)}" if any(lost) else ""
        notes.append(f"left out: {point}{where}: {reason}.")
    notes += [f"left out: the only configuration with {level_name(*one)}; the others are a complete design." for one in varied.alone]
    if blocks < COMFORTABLE_BLOCKS:
        notes.append(f"{blocks} blocks only: with fewer than {COMFORTABLE_BLOCKS} one odd cell can decide, and small effects are not seen.")
    reason = why_lost(point for point, *_ in layout.lost)
    notes += [*model.notes, *(f"{name} cannot be told: {reason}." for name in model.unestimable)]
    if not model.cells.balanced:
        notes.append("the cells do not balance: a step is taken where all of it was measured, and shares do not add up.")
    return notes


def means(analysis: Analysis, pair: tuple[str, str]) -> dict[Point, Mean]:
    """Return means over blocks at every two levels of two factors, as far as they are known, each with its 95 % interval."""
    layout, blocks = analysis.layout, by_block(analysis.layout)
    levels = {factor.name: factor.levels for factor in layout.factors}
    places = list(levels)
    result: dict[Point, Mean] = {}
    for ends in product(*(levels[name] for name in pair)) if set(pair) <= levels.keys() else ():
        try:
            each = values({places.index(name): {level: 1.0} for name, level in zip(pair, ends, strict=True)}, blocks)
        except NotComparable:
            continue
        if mean := mean_of(each, log=layout.scale == "log"):
            result[ends] = mean
    return result


def by_block(layout: Layout) -> Blocks:
    """Lay a response out by block; runs that know no blocks are in none."""
    result: dict[str, dict[Point, float]] = defaultdict(dict)
    for block, point, y in zip(layout.rows[BLOCK], layout.keys(), layout.rows[Y], strict=True) if layout.factors else ():
        if block:
            result[block][point] = y
    return list(result.values())


def values(question: Question, blocks: Blocks) -> list[float]:
    """Take a contrast in each block that has all its cells.

    It is averaged over those combinations of the other factors at which all that it asks for was measured often enough.

    Raises: NotComparable, where there is none, or too few such blocks.
    """
    counts = Counter(point for block in blocks for point in block)
    corners = {
        tuple(level for level, _ in parts): math.prod(weight for _, weight in parts)
        for parts in product(*(levels.items() for levels in question.values()))
    }
    groups: dict[Point, dict[Point, Point]] = defaultdict(dict)
    for point, count in counts.items():
        corner = tuple(point[at] for at in question)
        if corner in corners and count >= FEWEST_BLOCKS:
            groups[tuple(level for at, level in enumerate(point) if at not in question)][corner] = point
    whole = [group for group in groups.values() if len(group) == len(corners)]
    if not whole:
        raise NotComparable(f"nothing else alike was measured at all its levels in {FEWEST_BLOCKS} blocks")
    weights = {point: corners[corner] / len(whole) for group in whole for corner, point in group.items()}
    result = contrast(weights, blocks)
    if len(result) < FEWEST_BLOCKS:
        raise NotComparable(f"{len(result)} blocks hold all that it takes, and at least {FEWEST_BLOCKS} are needed")
    return result


def _step(name: str, levels: Point, question: Question, blocks: Blocks, log: bool, among: int) -> EffectStep:  # noqa: FBT001  # what one is made of
    one = change_of(values(question, blocks), log=log, among=among)
    return EffectStep(one.n, value=one.value, low=one.low, high=one.high, p=one.p, name=name, levels=levels)


# Tweak sets. Where the data set is in memory no disk is read, so that a setting of the disk cannot matter: what it seems to do there is
# what this machine makes out of nothing (a negative control).


@dataclass(frozen=True, slots=True, kw_only=True)
class IoContrast(Estimate):
    """One tweak set against stock in one configuration: a mean over blocks, as a gain (rates) or in the response's own unit.

    `p_adjusted` is Holm's over the table. `cache` is the state of the page cache before each epoch, "" where it was no parameter, and
    `rest` the configuration without it.
    """

    tweakset: str
    configuration: str
    rest: str
    cache: str


@dataclass(frozen=True, slots=True)
class Contrasts:
    """All contrasts against stock in one response. `differences` are cold minus warm (its negative control), block by block."""

    response: str
    unit: str
    again: tuple[IoContrast, ...]
    tweaks: tuple[IoContrast, ...]
    differences: tuple[IoContrast, ...]


def contrasts(cells: Sequence[JudgedResponse], response: str) -> Contrasts:
    """Compare every tweak set, and the copy of stock, with stock: paired by block."""
    values: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    about: dict[str, tuple[str, str]] = {}
    alike = common([cell.run for cell in cells])
    for cell in cells:
        run, y = cell.run, on_scale(response, cell.responses[response].value)
        name = configuration(run, alike)
        about[name] = configuration(run, alike | {CACHE}), level_of(run, CACHE) if CACHE in {*run.overrides, *run.params} else ""
        blocks = values[run.tweakset, name]
        if run.block is not None and y is not None:
            blocks[run.block] = y
    changes = {
        (tweakset, name): differences(values.get((STOCK, name), {}), values[tweakset, name])
        for tweakset in (AGAIN, *treated_sets(cells))
        for name in about
        if (tweakset, name) in values
    }
    made = [_contrast(response, each, tweakset, name, *about[name]) for (tweakset, name), each in changes.items()]
    less_warm = []
    for (tweakset, name), cold in changes.items():
        rest, cache = about[name]
        warm = next((changes.get((tweakset, other)) for other, state in about.items() if state == (rest, "warm")), None)
        if tweakset != AGAIN and cache == "cold" and warm is not None:
            less_warm.append(_contrast(response, differences(warm, cold), tweakset, rest, rest, ""))
    unit = cells[0].responses[response].unit if cells else ""
    judged = adjusted(made)  # the copy of stock among them, as `compare` has it: one question has one p
    again, tweaks = (tuple(one for one in judged if (one.tweakset == AGAIN) is copy) for copy in (True, False))
    return Contrasts(response, unit, again, tweaks, tuple(adjusted(less_warm)))


def _contrast(response: str, changes: Mapping[int, float], tweakset: str, configuration: str, rest: str, cache: str) -> IoContrast:
    one = change_in([*changes.values()], log=scale_of(response) == "log")
    figures = one.n, one.value, one.low, one.high, one.p, one.p_adjusted, one.missing
    return IoContrast(*figures, tweakset=tweakset, configuration=configuration, rest=rest, cache=cache)
