"""Contrasts of each kind of design: tweak sets, factors with two levels, factors with several."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analysis.stats.effect import ROUNDING, moments
from analysis.stats.estimate import contrast as within_blocks
from analysis.stats.linear import (
    DEPENDENT,
    FEWEST_CELLS,
    Factors,
    LinearModel,
    VariationRow,
    add_up,
    coded_levels,
    why_lost,
)
from analysis.terms import NotComparable
from control.names import first_few
from control.t_test import LARGEST_LOG, t_interval

from .aliases import (
    aliases,
    coded_points,
    defining_words,
    effects_up_to,
    partly_mixed,
    resolution,
)
from .observed import SETS, WHOLE_SETS
from .terms import DesignData, Effects, Level, Means, Term

if TYPE_CHECKING:
    from typing import Any

    from analysis.stats.linear import Floats

    from .aliases import Effect

MOST_SHOWN = 2  # factors of an interaction listed as lost or as an alias
MOST_KEYS = 3  # listed by name
OWN_ERROR = (
    "each effect's own: the scatter of its block-by-block differences as in `compare`, blocks − 1 "
    "df; variation and means pool block × tweak set, assuming equal scatter"
)


def analyse(data: DesignData) -> Effects:
    """Estimate the effects of a design. Raises: NotComparable, if there is nothing to estimate."""
    if data.design in WHOLE_SETS:
        return _whole_sets(data)
    is_two_level = all(len(factor.levels) == 2 for factor in data.factors)
    return _two_level(data) if is_two_level else _several(data)


class DesignModel(LinearModel):
    """Cells on the scale of the analysis: log gains (more is better), or the raw response."""

    def __init__(self, data: DesignData, whole: str = "") -> None:
        """Lay out the cells of a design; with `whole`, the tweak set is the only factor.

        Raises: NotComparable, if there is nothing to analyse.
        """
        if len(data.points) < 2:
            raise NotComparable(f"nothing was varied: the only point is {next(iter(data.points))}.")
        self.data = data
        values = np.array([row.value for row in data.rows])
        if data.scale == "log":
            values = np.log(values) * (-1.0 if data.better == "lower" else 1.0)
        labels = {
            factor.name: [row.levels[at] for row in data.rows]
            for at, factor in enumerate(data.factors)
        }
        levels = {factor.name: factor.levels for factor in data.factors}
        if whole:
            labels, levels = {whole: [row.name for row in data.rows]}, {whole: tuple(data.points)}
        points = [row.levels for row in data.rows]
        super().__init__(
            values,
            [row.block for row in data.rows],
            labels,
            levels,
            points,
            len(data.points),
            data.metric,
        )

    def term(
        self,
        label: str,
        factors: Factors,
        means: Means,
        estimate: tuple[float, float],
        *,
        own: tuple[float, int] | None = None,
        **more: Any,
    ) -> Term:
        """Make an unadjusted term from an effect and its variance, in units of the error's.

        It uses the common error, or its `own` standard error and degrees of freedom.
        """
        effect, variance = estimate
        se, df = own or (None, self.error_df)
        if own is None and self.error_ms is not None:
            se = math.sqrt(variance * self.error_ms)
        more["share"] = effect**2 / variance / self.total
        gains = {"gain": effect}
        if se:
            low, high, p = t_interval(effect, se, df)[1:4]
            more |= {"se": se, "df": float(df), "low": low, "high": high, "p": p}
            gains |= {"gain_low": low, "gain_high": high}
        if self.data.scale == "log":
            more |= {name: math.expm1(min(end, LARGEST_LOG)) for name, end in gains.items()}
        return Term(label, factors, means, effect, **more)

    def unit(self, value: float) -> float:
        """Convert a value of the analysis to the response's unit."""
        if self.data.scale == "raw":
            return value
        return math.exp(value if self.data.better == "higher" else -value)

    def means(self) -> Iterator[Level]:
        """Yield the means at the levels of each factor, in the response's unit."""
        for (name, level), (value, variance) in self.level_means().items():
            low = high = None
            if self.error_ms is not None:
                ends = t_interval(value, math.sqrt(variance * self.error_ms), self.error_df)
                low, high = sorted((self.unit(ends.low), self.unit(ends.high)))
            yield Level(
                name,
                level,
                self.counts[name][level],
                self.unit(value),
                value - self.mean,
                low,
                high,
            )

    def effects(
        self, terms: Iterable[Term], anova: tuple[VariationRow, ...], **more: Any
    ) -> Effects:
        return Effects(
            observed=self.data,
            terms=tuple(terms),
            anova=anova,
            levels=tuple(self.means()),
            error_df=self.error_df if self.replicated else 0,
            error_ms=self.error_ms,
            mean=self.mean,
            blocks=self.base.shape[1] if self.blocked else 0,
            orthogonal=add_up(anova),
            **more,
        )


# Tweak sets against tweak sets: a contrast is taken block by block, and rests on the scatter of
# these differences: the paired t of `compare`, with the same numbers. Only the table of variation
# and the means pool.


class _Contrast(NamedTuple):
    """A contrast: a weight for each point, by its name."""

    label: str
    factors: Factors
    means: Means
    weights: dict[str, float]
    level: str | None = None


def _whole_sets(data: DesignData) -> Effects:
    model = DesignModel(data, SETS)
    if not model.replicated:
        raise NotComparable(
            "too few cells: how far equal cells differ is unknown. Run 3 blocks or more."
        )
    sets = model.columns((SETS,))
    if not model.independent([sets]):
        raise NotComparable(
            "some tweak sets share no block with the others, so they cannot be compared."
        )
    model.use({(SETS,): sets})
    by_block: dict[Hashable, dict[str, float]] = {}
    for block, name, value in zip(model.blocks, model.labels[SETS], model.y, strict=True):
        by_block.setdefault(block, {})[name] = float(value)
    terms, gone = [], []
    for label, factors, means, every, level in _contrasts(data):
        weights = {name: weight for name, weight in every.items() if weight}
        differences = within_blocks(weights, by_block.values())
        blocks = len(differences)
        mean, spread = moments(differences) if blocks >= FEWEST_CELLS else (0.0, 0.0)
        if spread > ROUNDING:
            estimate = mean, sum(weight**2 for weight in weights.values()) / blocks
            own = spread / math.sqrt(blocks), blocks - 1
            terms.append(model.term(label, factors, means, estimate, own=own, level=level))
            continue
        alike = (
            f"the same ratio of {data.metric} in all {blocks} blocks: these are not independent "
            "measurements"
        )
        few = (
            f"{', '.join(weights)}: measured together in {blocks} blocks; at least {FEWEST_CELLS} "
            "are required"
        )
        gone.append((label, alike if blocks >= FEWEST_CELLS else few))
    if not terms:
        raise NotComparable(
            f"nothing can be compared with {next(iter(data.points))}: "
            f"{'; '.join(reason for _, reason in gone[:2])}."
        )
    (among,) = model.tests
    rows = [model.row("tweak sets", among.df, among.ss)]
    return model.effects(
        terms,
        model.variation(rows, [sets]),
        error=OWN_ERROR,
        unestimable=tuple(gone),
        notes=tuple(_incomplete(terms, len(by_block))),
    )


def _incomplete(terms: Iterable[Term], blocks: int) -> Iterator[str]:
    short = [
        f"{term.label} {int(term.df) + 1}"
        for term in terms
        if term.df is not None and int(term.df) + 1 < blocks
    ]
    if short:
        named = first_few(short, MOST_KEYS)
        yield f"an effect uses only blocks with all its cells; of {blocks}: {named}."


def _contrasts(data: DesignData) -> Iterator[_Contrast]:
    stock, *others = data.points
    if data.design == "ablation":
        yield from _ablation(data, stock)
    else:
        for name in others:
            yield _Contrast(name, (data.factors[0].name,), "set", {name: 1.0, stock: -1.0}, name)


def _ablation(data: DesignData, stock: str) -> Iterator[_Contrast]:
    """Yield each key's effect alone and in the profile, their disagreement, and the profile's."""
    by_levels: dict[tuple[str, ...], str] = {}
    for name, levels in data.points.items():  # stock first: a key alone of one key is the profile
        by_levels.setdefault(levels, name)
    low, high = (tuple(factor.levels[at] for factor in data.factors) for at in (0, -1))
    profile, several = by_levels.get(high, data.profile), len(data.factors) > 1
    late: list[_Contrast] = []
    for at, factor in enumerate(data.factors):
        name, level = factor.name, factor.levels[-1]
        alone = by_levels.get((*low[:at], high[at], *low[at + 1 :]))
        without = by_levels.get((*high[:at], low[at], *high[at + 1 :])) if several else None
        if alone:
            yield _Contrast(f"{name} alone", (name,), "alone", {alone: 1.0, stock: -1.0}, level)
        if without:
            weights = {profile: 1.0, without: -1.0}
            yield _Contrast(f"{name} in the profile", (name,), "in profile", weights, level)
        if alone and without:
            weights = dict.fromkeys((profile, without, alone, stock), 0.0)
            for point, weight in ((profile, 1.0), (without, -1.0), (alone, -1.0), (stock, 1.0)):
                weights[point] += weight
            if all(weights != contrast.weights for contrast in late):  # the same for two keys
                late.append(_Contrast(name, (name,), "disagreement", weights, level))
    if several:
        keys = tuple(factor.name for factor in data.factors)
        yield _Contrast(profile, keys, "profile", {profile: 1.0, stock: -1.0})
    yield from late


# Factors with two levels. Planned points determine which effects share a column, measured cells
# which can still be estimated. Terms enter by their number of factors, so an interaction never
# takes the place of a main effect.


def _two_level(data: DesignData) -> Effects:
    model = DesignModel(data)
    names = [factor.name for factor in data.factors]
    planned = coded_points(data)
    words, partly = defining_words(planned), partly_mixed(planned)
    order = 1 if partly else 2 if model.replicated else len(names)
    estimable = _estimable(model, names, effects_up_to(len(names), order))
    if not estimable:
        raise NotComparable("no factor had both of its levels, so nothing can be estimated.")
    model.use({_named(effect, names): columns for effect, columns in estimable.items()})
    model.must_repeat(names[effect[0]] for effect in estimable if len(effect) == 1)
    terms = [_factorial_term(model, effect, names, words) for effect in estimable]
    rows = [
        model.row(term.label, 1, (term.share or 0.0) * model.total, term.factors) for term in terms
    ]
    return model.effects(
        terms,
        model.variation(rows, [model.points]),
        error=model.error
        if model.replicated
        else f"none: {'one repeat is too few' if model.error_df else 'nothing was replicated'}",
        resolution=None if partly else resolution(words),
        unestimable=tuple(_lost_effects(model, estimable, words, order)),
        mixed=partly,
    )


def _named(effect: Effect, names: Sequence[str]) -> Factors:
    return tuple(names[at] for at in effect)


def _estimable(
    model: DesignModel, names: Sequence[str], candidates: Iterable[Effect]
) -> dict[Effect, Floats]:
    """Return the estimable effects: each adds to the mean, the blocks and the effects before it."""
    basis = np.linalg.qr(model.base)[0]
    result: dict[Effect, Floats] = {}
    for effect in candidates:
        if basis.shape[1] == len(model.y) - model.error_df:
            break
        columns = model.columns(_named(effect, names))
        rest = columns.sum(axis=1)  # one column, or none if a factor had one level only
        for _ in range(2):  # twice, because of rounding
            rest = rest - basis @ (basis.T @ rest)
        left = float(np.linalg.norm(rest))
        if left > DEPENDENT * math.sqrt(len(rest)):
            basis = np.column_stack([basis, rest / left])
            result[effect] = columns
    return result


def _factorial_term(
    model: DesignModel, effect: Effect, names: Sequence[str], words: Sequence[Effect]
) -> Term:
    """Make the term of an effect: its coefficient times 2 (main) or 4 (interaction of two)."""
    factors, is_main = _named(effect, names), len(effect) == 1
    same = [alias for alias in aliases(effect, words, MOST_SHOWN) if alias]
    same = same or aliases(effect, words, MOST_SHOWN + 1)
    return model.term(
        ":".join(factors),
        factors,
        "main" if is_main else "interaction",
        model.contrast(factors, [2.0 ** len(effect)]),
        aliases=tuple(_named(alias, names) for alias in same if alias),
        level=model.data.factors[effect[0]].levels[-1] if is_main and model.data.profile else None,
        coefficient=model.contrast(factors, [1.0])[0],
    )


def _lost_effects(
    model: DesignModel, estimable: Iterable[Effect], words: Sequence[Effect], order: int
) -> Iterator[tuple[str, str]]:
    """Yield effects that the planned points could estimate but the measured cells cannot."""
    names = [*model.labels]
    known = {same for effect in estimable for same in (effect, *aliases(effect, words, len(names)))}
    reason = why_lost((lost.point for lost in model.data.lost), "the design has too few points")
    for effect in effects_up_to(len(names), min(order, MOST_SHOWN)):
        if effect not in known and () not in aliases(effect, words, 0):
            signs = model.columns(_named(effect, names)).sum(axis=1)
            stood = {*zip(model.blocks, signs, strict=True)}
            by_blocks = len({*signs}) > 1 and len(stood) == len({*model.blocks})
            one_level = "in each block it had one level only, so it is confounded with the blocks"
            yield ":".join(_named(effect, names)), one_level if by_blocks else reason


# Factors with any number of levels: analysis of variance, and each level against the first.


def _several(data: DesignData) -> Effects:
    model = DesignModel(data)
    model.cross()
    reason = why_lost(lost.point for lost in data.lost)
    return model.effects(
        _level_terms(model),
        model.variation(model.tests, model.terms.values()),
        error=model.error,
        unestimable=tuple((row.name, reason) for row in model.tests if not row.df),
        notes=model.notes,
    )


def _level_terms(model: DesignModel) -> Iterator[Term]:
    for (name,) in (term for term in model.terms if len(term) == 1):
        (first, *others), counts = model.levels[name], model.counts[name]
        codes = coded_levels(model.levels[name])
        for level, code in zip(others, codes[1:], strict=True):
            if min(counts[level], counts[first]) >= (FEWEST_CELLS if model.blocked else 1):
                estimate = model.contrast((name,), code - codes[0])
                label = f"{name} {first} → {level}"
                yield model.term(label, (name,), "level", estimate, level=level)
