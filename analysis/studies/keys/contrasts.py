"""Tweak sets against tweak sets: ablation and matrix.

A contrast is taken block by block, among the cells of one block, and stands on the scatter of those very differences: the paired t of
`compare`, with the same numbers. Tweak sets need not scatter alike for that; pooled over all of them the error would be too small for
those that scatter more. Only the table of variation and the means pool.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.effect import ROUNDING, moments
from analysis.stats.estimate import contrast as within_blocks
from analysis.stats.linear import FEWEST_CELLS, coded_levels, fit, independent, rss
from analysis.terms import NotComparable, Refused
from control.names import first_few

from .frame import frame_of
from .terms import Effects, Level, Means, Observed, Term

if TYPE_CHECKING:
    from analysis.stats.linear import Fit

    from .frame import Frame

MOST_KEYS = 3  # listed by name
COMFORTABLE_RUNS = 5
ERROR = (
    "each effect's own, the scatter of its block-by-block differences as `compare` takes them, blocks − 1 df; variation and means pool "
    "block × tweak set, as if all scattered alike"
)
# Weight by point: what is added and what is taken off.
Weights = dict[str, float]


@dataclass(frozen=True, slots=True)
class Contrast:
    label: str
    factors: tuple[str, ...]
    means: Means
    weights: Weights
    level: str | None = None


def contrasts(data: Observed, requested: Iterable[tuple[str, ...]] = ()) -> Effects:
    """Answer the contrasts of a design that sets whole tweak sets against each other.

    Raises: NotComparable, where nothing can be said. Refused, where an effect asked for is none of this design.
    """
    for effect in requested:
        if len(effect) > 1:
            raise Refused(
                f"{':'.join(effect)}: {data.design} tells no interaction of two keys; lay out a factorial or fractional design over them."
            )
    frame = frame_of(data)
    blocks = _by_block(frame)
    names = [row.name for row in data.rows]
    present = list(dict.fromkeys(name for name in data.points if name in names))
    if not frame.replicated:
        raise NotComparable("one cell a tweak set: how far equal cells differ is not known. Run 3 blocks or more.")
    columns = coded_levels(names, present)
    if not independent([frame.base, columns]):
        raise NotComparable("some tweak sets share no block with the others: they cannot be set against them.")
    fitted = fit(np.column_stack([frame.base, columns]), frame.y)
    first = frame.base.shape[1]
    counts = {name: names.count(name) for name in present}
    terms: list[Term] = []
    gone: list[tuple[str, str]] = []
    for contrast in _contrasts_of(data):
        few = [
            f"{counts.get(name, 0)} cells of {name}"
            for name, weight in contrast.weights.items()
            if weight and counts.get(name, 0) < FEWEST_CELLS
        ]
        if few:
            gone.append((contrast.label, f"{' and '.join(few)}, where at least {FEWEST_CELLS} are needed"))
            continue
        try:
            size, error, count = _paired(contrast, blocks, data)
        except NotComparable as reason:
            gone.append((contrast.label, str(reason)))
            continue
        variance = sum(weight**2 for weight in contrast.weights.values()) / count
        terms.append(
            frame.term(contrast.label, contrast.factors, contrast.means, size, variance, level=contrast.level, own=(error, count - 1))
        )
    if not terms:
        reasons = "; ".join(reason for _, reason in gone[:2]) or f"no tweak set ran {FEWEST_CELLS} times beside it"
        raise NotComparable(f"nothing can be set against {next(iter(data.points))}: {reasons}.")
    among = rss([frame.base], frame.y)[0] - rss([frame.base, columns], frame.y)[0]
    balanced = len(set(counts.values())) == 1 and len(names) == len(present) * len(set(frame.blocks))
    return Effects(
        observed=data,
        terms=tuple(terms),
        anova=(
            *frame.blocks_source([columns]),
            frame.source("tweak sets", len(present) - 1, among, tested=True),
            *frame.closing_sources(),
        ),
        levels=tuple(_levels(frame, fitted, present, counts)),
        error=ERROR,
        error_df=frame.error_df,
        error_ms=frame.error_ms,
        mean=frame.mean,
        blocks=first if first > 1 else 0,
        orthogonal=balanced,
        unestimable=tuple(gone),
        notes=(*_few(counts), *_incomplete(terms, len(blocks))),
    )


def _by_block(frame: Frame) -> list[dict[str, float]]:
    """The responses of each block by tweak set, on the scale of the analysis; of a set that ran twice in a block, their mean."""
    result: dict[str, dict[str, list[float]]] = {}
    for row, value in zip(frame.data.rows, frame.y, strict=True):
        result.setdefault(row.block, {}).setdefault(row.name, []).append(float(value))
    return [{name: math.fsum(values) / len(values) for name, values in block.items()} for block in result.values()]


def _paired(contrast: Contrast, blocks: Iterable[Mapping[str, float]], data: Observed) -> tuple[float, float, int]:
    """A contrast's mean over the blocks that hold all of its tweak sets, its standard error, and how many such blocks there are.

    Raises: NotComparable, where they are too few, or do not differ at all.
    """
    weights = {name: weight for name, weight in contrast.weights.items() if weight}
    result = within_blocks(weights, blocks)
    count = len(result)
    if count < FEWEST_CELLS:
        raise NotComparable(f"{' and '.join(weights)} were measured together in {count} blocks, where at least {FEWEST_CELLS} are needed")
    mean, spread = moments(result)
    if spread < ROUNDING:
        raise NotComparable(f"the same ratio of {data.metric} in all {count} blocks: these are no independent measurements")
    return mean, spread / math.sqrt(count), count


def _incomplete(terms: Iterable[Term], blocks: int) -> tuple[str, ...]:
    short = [f"{term.label} {int(term.df) + 1}" for term in terms if term.df is not None and int(term.df) + 1 < blocks]
    if not short:
        return ()
    return (f"an effect counts only the blocks in which all its cells were measured; of {blocks}: {first_few(short, MOST_KEYS)}.",)


def _few(counts: dict[str, int]) -> tuple[str, ...]:
    fewest = min(counts, key=lambda name: counts[name])
    if counts[fewest] >= COMFORTABLE_RUNS:
        return ()
    return (f"{counts[fewest]} cells of {fewest}: with fewer than {COMFORTABLE_RUNS} of a tweak set one odd cell can decide.",)


def _contrasts_of(data: Observed) -> Iterator[Contrast]:
    """The contrasts of a design, those of its keys first."""
    stock, *others = data.points
    if data.design == "ablation":
        yield from _ablation(data)
    else:
        for name in others:
            yield Contrast(name, (data.factors[0].name,), "set", {name: 1.0, stock: -1.0}, name)


def _ablation(data: Observed) -> Iterator[Contrast]:
    """For each key: alone, in the profile, and the two's disagreement; then the profile as a whole. Points are known by their levels."""
    by_levels: dict[tuple[str, ...], str] = {}
    for name, levels in data.points.items():  # stock first: a key alone of one key is the profile, the profile without it stock
        by_levels.setdefault(levels, name)
    low, high = (tuple(factor.levels[at] for factor in data.factors) for at in (0, -1))
    stock, profile = by_levels[low], by_levels.get(high, data.profile)
    late: list[Contrast] = []
    for at, factor in enumerate(data.factors):
        alone = by_levels.get((*low[:at], high[at], *low[at + 1 :]))
        without = by_levels.get((*high[:at], low[at], *high[at + 1 :]))
        level = factor.levels[-1]
        if alone:
            yield Contrast(f"{factor.name} alone", (factor.name,), "alone", {alone: 1.0, stock: -1.0}, level)
        if without and len(data.factors) > 1:
            yield Contrast(f"{factor.name} in the profile", (factor.name,), "in profile", {profile: 1.0, without: -1.0}, level)
        if alone and without and len(data.factors) > 1:
            weights: Weights = {}
            for name, weight in ((profile, 1.0), (without, -1.0), (alone, -1.0), (stock, 1.0)):
                weights[name] = weights.get(name, 0.0) + weight
            if all(weights != contrast.weights for contrast in late):  # of two keys it is one and the same
                late.append(Contrast(factor.name, (factor.name,), "disagreement", weights, level))
    if len(data.factors) > 1:
        yield Contrast(profile, tuple(factor.name for factor in data.factors), "profile", {profile: 1.0, stock: -1.0})
    yield from late


def _levels(frame: Frame, fitted: Fit, present: list[str], counts: dict[str, int]) -> Iterator[Level]:
    first = frame.base.shape[1]
    for name, code in zip(present, coded_levels(present, present), strict=True):
        weights = np.concatenate([np.eye(first)[0], code])
        mean, variance = fitted.contrast(weights)
        yield frame.level(("tweak set", name), counts[name], mean, variance)
