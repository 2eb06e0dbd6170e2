"""Effects of factors: which factor, how large, how certain.

Each step of a factor, or of two together, is a contrast of cells within each block, and its error
is the scatter of these differences: paired t, blocks − 1 degrees of freedom. So configurations need
not scatter alike: reads from a disk scatter ten times as far as reads from memory, and with one
pooled error they would look more precise than they are. An effect of several steps has its smallest
p, adjusted over its steps, and all effects of a response are one family (Holm both times).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.adjust import holm
from analysis.stats.estimate import Change, Mean, change_of, contrast, mean_of
from analysis.stats.linear import LinearModel, VariationRow, add_up, why_lost
from analysis.terms import AGAIN, STOCK, NotComparable
from analysis.wording import counted
from control.t_test import ALPHA

from .design import Varied, level_name, on_scale, scale_of, without_loners

if TYPE_CHECKING:
    from .figures import Judged

FEWEST_BLOCKS, COMFORTABLE_BLOCKS = 3, 5
Point = tuple[str, ...]
# A contrast of levels: weights of levels by factor; cells are averaged over all other factors.
Question = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectStep(Change):
    """The change from one level to another; for two factors, the change in the effect of one.

    `levels` is its destination, a level per factor. `low` and `high` hold with 95 % for all steps
    of the effect together, because the reported one was chosen among them. `p_adjusted` is Holm's
    over the steps of its effect and the effects of the response; None for a step that is shown but
    not tested.
    """

    name: str
    levels: Point


@dataclass(frozen=True, slots=True)
class JointEffects:
    """An interaction: the effect of `factor` from `first` to `last` at each level of `along`."""

    factor: str
    first: str
    last: str
    along: str
    steps: tuple[EffectStep, ...]


@dataclass(frozen=True, slots=True)
class IoEffect:
    """The effect of one factor, or of two together; `share` describes the variation.

    `p_adjusted` is Holm's over steps and effects. `levels` are the means of a factor's levels,
    adjusted for blocks and losses, in the response's unit.
    """

    factors: tuple[str, ...]
    share: float
    p_adjusted: float
    steps: tuple[EffectStep, ...]
    levels: Mapping[str, float]
    together: JointEffects | None = None

    @property
    def shown(self) -> bool:
        return self.p_adjusted < ALPHA

    @property
    def clearest(self) -> EffectStep:
        """Return the step to describe: the largest named one, else that with the smallest p."""
        named = [step for step in self.steps if step.shown]
        return (
            max(named, key=lambda step: abs(step.value))
            if named
            else min(self.steps, key=lambda step: step.p)
        )


@dataclass(frozen=True, slots=True)
class Analysis:
    """The findings on one response, or the reason in `refusal`; `variation` is not tested."""

    response: str
    layout: ResponseLayout
    findings: tuple[IoEffect, ...] = ()
    variation: tuple[VariationRow, ...] = ()
    refusal: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResponseLayout:
    """One response over the factors of untouched machines.

    `planned` are the combinations that were run, `lost` those without a value: point, reason →
    blocks. `cells` are the values by block and point, as logarithms if compared by ratios; block
    None is for runs without blocks.
    """

    response: str
    varied: Varied
    planned: Mapping[Point, str]
    cells: Mapping[tuple[int | None, Point], float]
    lost: Mapping[tuple[str, str], Sequence[int | None]]

    @cached_property
    def levels(self) -> dict[str, list[str]]:
        """Return the levels of each factor that have a value."""
        measured = {
            at: {point[at] for _, point in self.cells} for at in range(len(self.varied.levels))
        }
        return {
            name: [level for level in levels if level in measured[at]]
            for at, (name, levels) in enumerate(self.varied.levels.items())
        }

    @cached_property
    def blocks(self) -> list[dict[Point, float]]:
        """Return the values of each block by point; runs without blocks are excluded."""
        result: dict[int, dict[Point, float]] = defaultdict(dict)
        for (block, point), y in self.cells.items() if self.varied.levels else ():
            if block is not None:
                result[block][point] = y
        return list(result.values())

    def values(self, question: Question) -> list[float]:
        """Return a contrast in each block that has all its cells.

        It is averaged over the combinations of the other factors at which all its cells were
        measured in enough blocks.

        Raises: NotComparable, if there is none, or too few such blocks.
        """
        blocks, names = self.blocks, list(self.varied.levels)
        own, others = (
            [at for at, name in enumerate(names) if (name in question) is inside]
            for inside in (True, False)
        )
        corners = {
            tuple(level for level, _ in parts): math.prod(weight for _, weight in parts)
            for parts in product(*(question[names[at]].items() for at in own))
        }
        groups: dict[Point, dict[Point, Point]] = defaultdict(dict)
        for point, count in Counter(point for block in blocks for point in block).items():
            corner = tuple(point[at] for at in own)
            if corner in corners and count >= FEWEST_BLOCKS:
                groups[tuple(point[at] for at in others)][corner] = point
        whole = [group for group in groups.values() if len(group) == len(corners)]
        if not whole:
            raise NotComparable(
                "no combination of the other factors was measured at all its levels in "
                f"{FEWEST_BLOCKS} blocks"
            )
        result = contrast(
            {
                point: corners[corner] / len(whole)
                for group in whole
                for corner, point in group.items()
            },
            blocks,
        )
        if len(result) < FEWEST_BLOCKS:
            raise NotComparable(
                f"{len(result)} blocks have all its cells; at least {FEWEST_BLOCKS} are required"
            )
        return result

    def step(self, name: str, levels: Point, question: Question, among: int) -> EffectStep:
        """Judge one step of an effect. Raises: NotComparable (see `values`; equal changes)."""
        one = change_of(self.values(question), log=scale_of(self.response) == "log", among=among)
        return EffectStep(
            one.n, value=one.value, low=one.low, high=one.high, p=one.p, name=name, levels=levels
        )

    def means(self, first: str, second: str) -> dict[Point, Mean]:
        """Return known means over blocks for two factors' levels, each with its 95 % interval."""
        levels, result = self.varied.levels, dict[Point, Mean]()
        for pair in (
            product(levels[first], levels[second]) if {first, second} <= levels.keys() else ()
        ):
            try:
                values = self.values(
                    {name: {level: 1.0} for name, level in zip((first, second), pair, strict=True)}
                )
            except NotComparable:
                continue
            if mean := mean_of(values, log=scale_of(self.response) == "log"):
                result[pair] = mean
        return result


def layout_of(cells: Sequence[Judged], response: str) -> ResponseLayout:
    """Lay out one response over the factors of untouched machines.

    Stock and its copy in one block are averaged. A run without a value is lost, with the reason.
    """
    used = [cell for cell in cells if cell.run.tweakset in {STOCK, AGAIN}]
    rest, varied = without_loners([cell.run for cell in used])
    ids = {(run.origin, run.id) for run in rest}
    planned: dict[Point, str] = {}
    lost: dict[tuple[str, str], list[int | None]] = defaultdict(list)
    values: dict[tuple[int | None, Point], list[float]] = defaultdict(list)
    for cell in (cell for cell in used if (cell.run.origin, cell.run.id) in ids):
        point, figure, block = varied.point(cell.run), cell.responses[response], cell.run.block
        planned[point] = ", ".join(
            f"{name} {level}" for name, level in zip(varied.levels, point, strict=True)
        )
        y = on_scale(response, figure.value)
        if y is not None:
            values[block, point].append(y)
        elif block not in (
            blocks := lost[
                planned[point],
                (figure.why_missing or "not above 0: no ratio can be computed").rstrip("."),
            ]
        ):
            blocks.append(block)
    return ResponseLayout(
        response,
        varied,
        planned,
        {key: math.fsum(several) / len(several) for key, several in values.items()},
        lost,
    )


def analyse(cells: Sequence[Judged], response: str) -> Analysis:
    """Analyse one response over all factors."""
    layout = layout_of(cells, response)
    empty, blocks = Analysis(response, layout), len(layout.blocks)
    if not layout.varied.levels:
        return replace(empty, refusal="nothing was varied: `--vary NAME=A,B` varies a parameter.")
    if not layout.cells:
        reasons = (
            ", ".join(dict.fromkeys(reason.partition(":")[0] for _, reason in layout.lost))
            or "nothing ran"
        )
        return replace(empty, refusal=f"no run has a value: {reasons}.")
    if blocks < FEWEST_BLOCKS:
        refusal = (
            f"measured in {counted(blocks, 'block')}: at least {FEWEST_BLOCKS} are required to "
            "estimate how far differences vary."
        )
        return replace(empty, refusal=refusal)
    try:
        variation, means, notes = _described(layout)
    except NotComparable as reason:
        return replace(empty, refusal=str(reason))
    tested, gone = _test_steps(layout, variation)
    notes = [*gone, *_notes(layout, blocks), *notes]
    if not tested:
        return replace(
            empty,
            refusal=next(iter(gone), "the levels of no factor can be distinguished."),
            notes=tuple(notes),
        )
    return replace(
        empty,
        variation=variation,
        findings=_effects(layout, variation, means, tested),
        notes=tuple(notes),
    )


def _described(
    layout: ResponseLayout,
) -> tuple[tuple[VariationRow, ...], dict[Point, dict[str, float]], list[str]]:
    """Describe how a response varies with its factors, assuming equal scatter of combinations.

    Returns: the table, means by factor and level on the scale of `layout`, and notes.
    Raises: NotComparable, if there is nothing to describe, or levels are confounded.
    """
    blocks, keys = zip(*layout.cells, strict=True)
    labels = dict(zip(layout.levels, zip(*keys, strict=True), strict=True))
    values = np.array([*layout.cells.values()])
    model = LinearModel(
        values, blocks, labels, layout.levels, keys, len(layout.planned), layout.response
    )
    model.cross()
    rows = model.variation(model.tests, model.terms.values())
    means: dict[Point, dict[str, float]] = defaultdict(dict)
    for (factor, level), (value, _) in model.level_means().items():
        means[factor,][level] = value
    reason = why_lost(point for point, _ in layout.lost)
    notes = [
        *model.notes,
        *(f"{row.name} cannot be estimated: {reason}." for row in model.tests if not row.df),
    ]
    if not add_up(rows):
        notes.append(
            "the design is unbalanced: each step uses the blocks that have all its cells, and "
            "shares do not add up."
        )
    return rows, means, notes


def _test_steps(
    layout: ResponseLayout, variation: Sequence[VariationRow]
) -> tuple[dict[Point, list[EffectStep]], list[str]]:
    """Return the steps of each effect, and a sentence for each untestable one."""
    levels, result, gone = layout.levels, defaultdict[Point, list[EffectStep]](list), list[str]()
    for factors in (source.factors for source in variation if source.factors):
        firsts = [levels[factor][0] for factor in factors]
        lost: dict[str, str] = {}
        for ends in product(*(levels[factor][1:] for factor in factors)):
            question = {
                factor: {a: -1.0, b: 1.0}
                for factor, a, b in zip(factors, firsts, ends, strict=True)
            }
            name = ", ".join(f"{first} → {last}" for first, last in zip(firsts, ends, strict=True))
            try:
                result[factors].append(
                    layout.step(
                        name,
                        ends,
                        question,
                        math.prod(len(levels[factor]) - 1 for factor in factors),
                    )
                )
            except NotComparable as reason:
                lost[name] = str(reason)
        if lost:
            part = f", {'; '.join(lost)}," if result[factors] else ""
            gone.append(
                f"{' × '.join(factors)}{part} cannot be estimated: {next(iter(lost.values()))}."
            )
    return {factors: steps for factors, steps in result.items() if steps}, gone


def _effects(
    layout: ResponseLayout,
    variation: Sequence[VariationRow],
    means: Mapping[Point, Mapping[str, float]],
    tested: Mapping[Point, Sequence[EffectStep]],
) -> tuple[IoEffect, ...]:
    """Adjust all effects together; sort main effects before interactions, the largest first."""
    smallest = [min(1.0, len(steps) * min(step.p for step in steps)) for steps in tested.values()]
    shares = {source.factors: source.share for source in variation}
    log = scale_of(layout.response) == "log"
    result = []
    for (factors, steps), p, p_adjusted in zip(
        tested.items(), smallest, holm(smallest), strict=True
    ):
        times = p_adjusted / p if p else 1.0  # the steps share their effect's adjustment
        own_ps = holm([step.p for step in steps])
        own = tuple(
            replace(step, p_adjusted=min(1.0, times * its))
            for step, its in zip(steps, own_ps, strict=True)
        )
        levels = {
            level: math.exp(mean) if log else mean for level, mean in means.get(factors, {}).items()
        }
        effect = IoEffect(factors, shares[factors], p_adjusted, own, levels)
        result.append(
            replace(effect, together=_together(layout, effect)) if len(factors) > 1 else effect
        )
    return tuple(sorted(result, key=lambda effect: (len(effect.factors), -effect.share)))


def _together(layout: ResponseLayout, effect: IoEffect) -> JointEffects | None:
    """Describe an interaction by the factor with fewer levels, at its most telling level."""
    levels = layout.levels
    inner = 0 if len(levels[effect.factors[0]]) < len(levels[effect.factors[1]]) else 1
    factor, along = effect.factors[inner], effect.factors[1 - inner]
    first, last = levels[factor][0], effect.clearest.levels[inner]
    among, steps = len(levels[along]) * (len(levels[factor]) - 1), []
    for level in levels[along]:
        try:
            steps.append(
                layout.step(
                    level,
                    (last, level),
                    {factor: {first: -1.0, last: 1.0}, along: {level: 1.0}},
                    among,
                )
            )
        except NotComparable:
            continue
    return JointEffects(factor, first, last, along, tuple(steps)) if steps else None


def _notes(layout: ResponseLayout, blocks: int) -> Iterator[str]:
    for name, twin in layout.varied.same:
        yield (
            f"{name} always varied with {twin}: the two cannot be distinguished, and {twin} "
            "represents both."
        )
    for (point, reason), lost in layout.lost.items():
        where = "" if lost == [None] else f" in block {', '.join(map(str, lost))}"
        yield f"omitted: {point}{where}: {reason}."
    for one in layout.varied.alone:
        yield (
            f"omitted: the only configuration with {level_name(*one)}; the others form a complete "
            "design."
        )
    if blocks < COMFORTABLE_BLOCKS:
        yield (
            f"only {blocks} blocks: with fewer than {COMFORTABLE_BLOCKS}, one outlying cell can "
            "decide, and small effects are missed."
        )
