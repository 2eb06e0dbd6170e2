"""Factors of any number of levels: analysis of variance, and each level against the first.

Sums of squares are of Type II: each term adjusted for all that do not contain it. Where the design is balanced they are the textbook's;
where cells were lost they ask the question that makes sense (Langsrud 2003), and do not add up to the total.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtrc

from analysis.terms import NotComparable, Refused

from .frame import FEWEST_DF, FEWEST_RUNS, Frame, coded_levels, fit, frame_of, half_counts, independent, rss
from .terms import Effects, Level, Observed, Term, VariationSource

if TYPE_CHECKING:
    from .frame import Floats, FrameFit

MOST_COLUMNS = 300  # of interactions; of more nobody reads the table
TOO_MANY = "there are more interactions of these factors than a table shows: main effects alone."
LEFT = "what interactions of {} factors and chance leave: no combination was replicated, so these count as noise"


@dataclass(frozen=True)
class Model:
    """Terms by the numbers of their factors, with their columns; and what they are tested against."""

    frame: Frame
    columns: dict[tuple[int, ...], Floats]
    error_ss: float
    error_df: int
    error: str

    def rss(self, terms: Iterable[tuple[int, ...]]) -> tuple[float, int]:
        return rss(np.column_stack([self.frame.base, *(self.columns[term] for term in terms)]), self.frame.y)

    def source(self, term: tuple[int, ...], name: str) -> VariationSource:
        others = [column for column in self.columns if column != term and not set(term) <= set(column)]
        without, df = self.rss(others)
        with_it, df_with = self.rss([*others, term])
        ss, used = max(0.0, without - with_it), df - df_with
        factors = tuple(self.frame.data.factors[at].name for at in term)
        if not used:
            return VariationSource(name, 0, 0.0, 0.0, factors=factors)
        ms, error = ss / used, self.error_ss / self.error_df
        return VariationSource(
            name, used, ss, ss / self.frame.total, ms, ms / error, float(fdtrc(used, self.error_df, ms / error)), factors
        )


def several(data: Observed, requested: Iterable[tuple[str, ...]] = ()) -> Effects:
    """Estimate the effects of factors of any number of levels.

    Raises: NotComparable, where nothing can be said. Refused, where an interaction asked for cannot be told.
    """
    frame = frame_of(data)
    present = {
        factor.name: [level for level in factor.levels if any(key[at] == level for key in frame.keys)]
        for at, factor in enumerate(data.factors)
    }
    model = _model(frame, present)
    names = [factor.name for factor in data.factors]
    sources = {term: model.source(term, ":".join(names[at] for at in term)) for term in model.columns}
    for entry in requested:
        _require_estimable(entry, names, {frozenset(term): source for term, source in sources.items()})
    # The error that terms stand on is the model's: the frame's own is that of replicates alone.
    frame = replace(frame, error_ss=model.error_ss, error_df=model.error_df)
    mains = [term for term in model.columns if len(term) == 1]
    used = list(model.columns) if _full_rank(model, list(model.columns)) else mains
    fitted, places = _fit(frame, model, used)
    terms, levels = _terms(frame, fitted, places, present)
    left = _left(model)
    shown = [source for source in sources.values() if source.df]
    return Effects(
        observed=data,
        terms=tuple(terms),
        anova=(*_blocks(model), *shown, *left, *frame.closing_sources()),
        levels=tuple(levels),
        pairs=frame.pairs(),
        error=model.error,
        error_df=model.error_df,
        error_ms=model.error_ss / model.error_df,
        mean=frame.mean,
        blocks=frame.base.shape[1] if frame.base.shape[1] > 1 else 0,
        orthogonal=_balanced(frame),
        unestimable=tuple((source.name, _reason(data)) for source in sources.values() if not source.df),
        notes=(TOO_MANY,) if _many(model.columns[term] for term in mains) else (),
    )


def _model(frame: Frame, present: dict[str, list[str]]) -> Model:
    """Main effects and interactions of two, against replicates where there are enough, else against what the terms leave."""
    factors = frame.data.factors
    mains: dict[tuple[int, ...], Floats] = {
        (at,): coded_levels([key[at] for key in frame.keys], present[factor.name])
        for at, factor in enumerate(factors)
        if len(present[factor.name]) > 1
    }
    if not mains:
        raise NotComparable("no factor stood at more than one level.")
    both = [] if _many(mains.values()) else combinations(mains, 2)
    pairs: dict[tuple[int, ...], Floats] = {(*a, *b): _product(mains[a], mains[b]) for a, b in both}
    if frame.replicated:
        for (at,) in mains:
            if sum(count >= FEWEST_RUNS for count in half_counts(frame.keys, at).values()) < 2:
                raise NotComparable(f"fewer than {FEWEST_RUNS} cells at the levels of {factors[at].name}.")
        error = (
            "block × point: how far the same point scatters from block to block" if frame.base.shape[1] > 1 else "cells of the same point"
        )
        return Model(frame, mains | pairs, frame.error_ss, frame.error_df, error)
    for columns, size in ((mains | pairs, "three"), (mains, "two")):
        ss, df = rss(np.column_stack([frame.base, *columns.values()]), frame.y)
        if len(mains) > 1 and df >= FEWEST_DF:
            return Model(frame, columns, ss, df, LEFT.format(size))
    raise NotComparable("no point was run twice, and too few are left over to see how far equal cells differ: run more blocks.")


def _many(mains: Iterable[Floats]) -> bool:
    return sum(int(a.shape[1] * b.shape[1]) for a, b in combinations(mains, 2)) > MOST_COLUMNS


def _product(first: Floats, second: Floats) -> Floats:
    return np.column_stack([a * b for a in first.T for b in second.T])


def _full_rank(model: Model, terms: Sequence[tuple[int, ...]]) -> bool:
    columns = np.column_stack([model.frame.base, *(model.columns[term] for term in terms)])
    return len(independent(columns)) == int(columns.shape[1])


def _fit(frame: Frame, model: Model, terms: Sequence[tuple[int, ...]]) -> tuple[FrameFit, dict[tuple[int, ...], slice]]:
    places, at = {}, frame.base.shape[1]
    for term in terms:
        width = model.columns[term].shape[1]
        places[term] = slice(at, at + width)
        at += width
    columns = np.column_stack([frame.base, *(model.columns[term] for term in terms)])
    if len(independent(columns)) < columns.shape[1]:
        raise NotComparable("the factors' levels cannot be told apart: some never varied without others.")
    return fit(columns, frame.y), places


def _terms(
    frame: Frame, fitted: FrameFit, places: dict[tuple[int, ...], slice], present: dict[str, list[str]]
) -> tuple[list[Term], list[Level]]:
    terms, levels = [], []
    for at, factor in enumerate(frame.data.factors):
        if (at,) not in places:
            continue
        names = present[factor.name]
        code = coded_levels(names, names)
        counts = half_counts(frame.keys, at)
        for index, level in enumerate(names):
            weights = np.zeros(len(fitted.beta))
            weights[0] = 1.0
            weights[places[at,]] = code[index]
            mean, variance = fitted.contrast(weights)
            levels.append(frame.level((factor.name, level), counts[level], mean, variance))
            if index and min(counts[level], counts[names[0]]) >= (FEWEST_RUNS if frame.base.shape[1] > 1 else 1):
                against = np.zeros(len(fitted.beta))
                against[places[at,]] = code[index] - code[0]
                effect, variance = fitted.contrast(against)
                label = f"{factor.name} {names[0]} → {level}"
                terms.append(frame.term(label, (factor.name,), "level", effect, variance, level=level))
    return terms, levels


def _blocks(model: Model) -> list[VariationSource]:
    frame = model.frame
    df = frame.base.shape[1] - 1
    if not df:
        return []
    terms = [model.columns[column] for column in model.columns]
    without, _ = rss(np.column_stack([frame.base[:, :1], *terms]), frame.y)
    with_them, _ = rss(np.column_stack([frame.base, *terms]), frame.y)
    return [frame.source("blocks", df, without - with_them)]


def _left(model: Model) -> list[VariationSource]:
    ss, df = model.rss(model.columns)
    if df <= model.error_df:
        return []
    frame = replace(model.frame, error_ss=model.error_ss, error_df=model.error_df)
    return [frame.source("what these leave", df - model.error_df, max(0.0, ss - model.error_ss), tested=True)]


def _balanced(frame: Frame) -> bool:
    """Whether every combination of levels, and every block, holds equally many cells."""
    counts: dict[tuple[str, ...], int] = {}
    for block, key in zip(frame.blocks, frame.keys, strict=True):
        counts[block, *key] = counts.get((block, *key), 0) + 1
    whole = len(set(frame.blocks))
    for at in range(len(frame.data.factors)):
        whole *= len({key[at] for key in frame.keys})
    return len(counts) == whole and len(set(counts.values())) == 1


def _require_estimable(requested: tuple[str, ...], names: Sequence[str], sources: dict[frozenset[int], VariationSource]) -> None:
    result = sources.get(frozenset(names.index(text) for text in requested))
    if result is None or not result.df:
        message = ", ".join(source.name for source in sources.values() if source.df)
        raise Refused(f"{':'.join(requested)} cannot be told here, by the cells there are; what can be: {message}.")


def _reason(data: Observed) -> str:
    gone = sorted({lost.point for lost in data.lost})
    return f"cells of {', '.join(gone)} are missing" if gone else "there are combinations of levels that were never run"
