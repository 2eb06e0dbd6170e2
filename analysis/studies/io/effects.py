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
from itertools import combinations, product
from typing import TYPE_CHECKING

from analysis.stats.effect import holm
from analysis.stats.estimate import Change, Mean, change_of, contrast, mean_of
from analysis.terms import AGAIN, STOCK, NotComparable
from analysis.wording import counted
from control.t_test import ALPHA

from .design import Varied, level_name, scale_of, without_loners

if TYPE_CHECKING:
    from .figures import Judged

FEWEST_BLOCKS, COMFORTABLE_BLOCKS = 3, 5
NOTHING = "the levels of no factor can be distinguished."
Point = tuple[str, ...]
# A contrast of levels: weights of levels by factor; cells are averaged over all other factors.
Question = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectStep(Change):
    """The change from one level to another; for two factors, the change in the effect of one.

    `levels` is its destination, a level per factor. `low` and `high` hold with 95 % for all steps
    of the effect together. `p_adjusted` is Holm's over the steps of its effect and the effects of
    the response; None for a step that is not tested.
    """

    name: str
    levels: Point


@dataclass(frozen=True, slots=True)
class IoEffect:
    """The effect of one factor, or of two together."""

    factors: Point
    p_adjusted: float
    steps: tuple[EffectStep, ...]

    @property
    def shown(self) -> bool:
        return self.p_adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class Analysis:
    response: str
    factors: Mapping[str, Sequence[str]]
    findings: tuple[IoEffect, ...] = ()
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

    @property
    def log(self) -> bool:
        return scale_of(self.response) == "log"

    @cached_property
    def levels(self) -> dict[str, list[str]]:
        measured = [{*column} for column in zip(*(point for _, point in self.cells), strict=True)]
        return {
            name: [level for level in levels if measured and level in measured[at]]
            for at, (name, levels) in enumerate(self.varied.levels.items())
        }

    @cached_property
    def blocks(self) -> list[dict[Point, float]]:
        result: dict[int, dict[Point, float]] = defaultdict(dict)
        for (block, point), y in self.cells.items():
            if block is not None and point:
                result[block][point] = y
        return list(result.values())

    def values(self, question: Question) -> list[float]:
        """Return a contrast in each block that has all its cells.

        It is averaged over the combinations of the other factors at which all its cells were
        measured in enough blocks.

        Raises: NotComparable, if there is none, or too few such blocks.
        """
        names = list(self.varied.levels)
        corners = math.prod(map(len, question.values()))
        groups: dict[Point, dict[Point, float]] = defaultdict(dict)
        for point, count in Counter(point for block in self.blocks for point in block).items():
            levels = dict(zip(names, point, strict=True))
            weight = math.prod(own.get(levels[name], 0.0) for name, own in question.items())
            if weight and count >= FEWEST_BLOCKS:
                others = tuple(level for name, level in levels.items() if name not in question)
                groups[others][point] = weight
        whole = [group for group in groups.values() if len(group) == corners]
        if not whole:
            raise NotComparable(
                "no combination of the other factors was measured at all its levels in "
                f"{FEWEST_BLOCKS} blocks"
            )
        weights = {point: weight / len(whole) for group in whole for point, weight in group.items()}
        result = contrast(weights, self.blocks)
        if len(result) < FEWEST_BLOCKS:
            raise NotComparable(
                f"{len(result)} blocks have all its cells; at least {FEWEST_BLOCKS} are required"
            )
        return result

    def step(self, name: str, levels: Point, question: Question, among: int) -> EffectStep:
        one = change_of(self.values(question), log=self.log, among=among)
        return EffectStep(
            one.n, value=one.value, low=one.low, high=one.high, p=one.p, name=name, levels=levels
        )

    def means(self, first: str, second: str) -> dict[Point, Mean]:
        levels, result = self.varied.levels, dict[Point, Mean]()
        for pair in product(levels.get(first, ()), levels.get(second, ())):
            try:
                values = self.values({first: {pair[0]: 1.0}, second: {pair[1]: 1.0}})
            except NotComparable:
                continue
            if mean := mean_of(values, log=self.log):
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
    lost: dict[tuple[str, str], dict[int | None, None]] = defaultdict(dict)
    values: dict[tuple[int | None, Point], list[float]] = defaultdict(list)
    log = scale_of(response) == "log"
    for cell in (cell for cell in used if (cell.run.origin, cell.run.id) in ids):
        point, figure, block = varied.point(cell.run), cell.responses[response], cell.run.block
        planned[point] = ", ".join(
            f"{name} {level}" for name, level in zip(varied.levels, point, strict=True)
        )
        if figure.value is not None and (figure.value > 0 or not log):
            values[block, point].append(math.log(figure.value) if log else figure.value)
        else:
            reason = figure.why_missing or "not above 0: no ratio can be computed"
            lost[planned[point], reason.rstrip(".")][block] = None
    return ResponseLayout(
        response,
        varied,
        planned,
        {key: math.fsum(several) / len(several) for key, several in values.items()},
        {key: list(blocks) for key, blocks in lost.items()},
    )


def analyse(cells: Sequence[Judged], response: str) -> Analysis:
    layout = layout_of(cells, response)
    empty, blocks = Analysis(response, layout.varied.levels), len(layout.blocks)
    if not layout.varied.levels:
        return replace(empty, refusal="nothing was varied: `--vary NAME=A,B` varies a parameter.")
    if not layout.cells:
        reasons = dict.fromkeys(reason.partition(":")[0] for _, reason in layout.lost)
        return replace(empty, refusal=f"no run has a value: {', '.join(reasons)}.")
    if blocks < FEWEST_BLOCKS:
        return replace(
            empty,
            refusal=f"measured in {counted(blocks, 'block')}: at least {FEWEST_BLOCKS} are "
            "required to estimate how far differences vary.",
        )
    tested, untestable = _test_steps(layout)
    notes = (*untestable, *_notes(layout, blocks))
    if not tested:
        return replace(empty, refusal=next(iter(untestable), NOTHING), notes=notes)
    return replace(empty, findings=tuple(_effects(tested)), notes=notes)


def _test_steps(layout: ResponseLayout) -> tuple[dict[Point, list[EffectStep]], list[str]]:
    levels, result, untestable = layout.levels, dict[Point, list[EffectStep]](), list[str]()
    varied = [name for name, own in levels.items() if len(own) > 1]
    for factors in (*((name,) for name in varied), *combinations(varied, 2)):
        firsts = [levels[factor][0] for factor in factors]
        among = math.prod(len(levels[factor]) - 1 for factor in factors)
        steps: list[EffectStep] = []
        lost: dict[str, str] = {}
        for ends in product(*(levels[factor][1:] for factor in factors)):
            moves = list(zip(factors, firsts, ends, strict=True))
            name = ", ".join(f"{first} → {last}" for _, first, last in moves)
            question = {factor: {first: -1.0, last: 1.0} for factor, first, last in moves}
            try:
                steps.append(layout.step(name, ends, question, among))
            except NotComparable as error:
                lost[name] = str(error)
        if lost:
            part = f", {'; '.join(lost)}," if steps else ""
            reason = next(iter(lost.values()))
            untestable.append(f"{' × '.join(factors)}{part} cannot be estimated: {reason}.")
        if steps:
            result[factors] = steps
    return result, untestable


def _effects(tested: Mapping[Point, Sequence[EffectStep]]) -> Iterator[IoEffect]:
    smallest = [min(1.0, len(steps) * min(step.p for step in steps)) for steps in tested.values()]
    for (factors, steps), p, p_adjusted in zip(
        tested.items(), smallest, holm(smallest), strict=True
    ):
        times = p_adjusted / p if p else 1.0  # the steps share their effect's adjustment
        ps = holm([step.p for step in steps])
        own = tuple(
            replace(step, p_adjusted=min(1.0, times * p)) for step, p in zip(steps, ps, strict=True)
        )
        yield IoEffect(factors, p_adjusted, own)


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
