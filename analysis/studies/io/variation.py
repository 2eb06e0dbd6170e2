"""How much of what a response varies goes with which factor: a description, which pools all combinations as if they scattered alike.

Sums of squares are of Type II: each term adjusted for all that do not contain it. Where cells were lost they ask the question that makes
sense (Langsrud 2003), and do not add up to the total.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.effect import ROUNDING
from analysis.terms import NotComparable

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy.typing as npt

    from .factors import ObservedFactor

    Floats = npt.NDArray[np.float64]
    Term = tuple[int, ...]

FEWEST_BLOCKS = 3
FEWEST_DF = 2  # fewer say too little of the error
MOST_COLUMNS = 300  # of interactions; of more nobody reads the table
DEPENDENT = 1e-8  # a column of which less than this part is new adds nothing to those before it
TOO_MANY = "there are more interactions of these factors than a table shows: main effects alone."


@dataclass(frozen=True, slots=True)
class VarianceSource:
    """A row of the table: what varied (`factors`), its sum of squares, and its share of the total."""

    name: str
    df: int
    ss: float
    share: float
    factors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Level:
    """The mean of `n` cells at one level, adjusted for blocks and what was lost, in the response's unit."""

    factor: str
    level: str
    n: int
    mean: float


@dataclass(frozen=True, slots=True)
class Variation:
    """The table, the means at levels, what cannot be estimated and why, and whether every combination has equally many cells."""

    rows: tuple[VarianceSource, ...]
    levels: tuple[Level, ...]
    unestimable: tuple[tuple[str, str], ...]
    balanced: bool
    notes: tuple[str, ...]


def variation(seen: ObservedFactor) -> Variation:
    """Allot the variation to factors and every two of them, blocks taken off. Raises: NotComparable."""
    there, keys, blocks = seen.levels(), [row.levels for row in seen.rows], [row.block for row in seen.rows]
    if len(seen.points) < 2:
        raise NotComparable(f"nothing was varied: there is only {next(iter(seen.points))}.")
    if len(set(keys)) < 2:
        raise NotComparable(f"cells of {len(set(keys))} of {len(seen.points)} points were measured: nothing to set against each other.")
    y = np.array([math.log(row.value) if seen.scale == "log" else row.value for row in seen.rows])
    base = np.column_stack([np.ones(len(y)), _coded(blocks)])
    total = float(((y - y.mean()) ** 2).sum())
    error_ss, error_df = _rss([base, _coded(keys)], y)
    if total <= ROUNDING**2 * max(1.0, float((y**2).sum())):
        raise NotComparable(f"all {len(y)} values of {seen.response} are the same: these are no measurements.")
    if error_df and math.sqrt(error_ss / error_df) <= ROUNDING * max(1.0, float(np.abs(y).max())):
        raise NotComparable(f"repeats of a point have the very same {seen.response}: these are not independent measurements.")
    mains: dict[Term, Floats] = {
        (at,): _coded([key[at] for key in keys], there[factor.name])
        for at, factor in enumerate(seen.factors)
        if len(there[factor.name]) > 1
    }
    many = sum(a.shape[1] * b.shape[1] for a, b in combinations(mains.values(), 2)) > MOST_COLUMNS
    pairs = {} if many else {(*a, *b): _product(mains[a], mains[b]) for a, b in combinations(mains, 2)}
    columns, error_ss, error_df = _error(seen, base, mains, pairs, y, (error_ss, error_df))

    def source(name: str, df: int, ss: float, term: Term = ()) -> VarianceSource:
        return VarianceSource(name, df, ss, ss / total, tuple(seen.factors[at].name for at in term))

    terms = []
    for term in columns:
        others = [made for other, made in columns.items() if other != term and not set(term) <= set(other)]
        without, df = _rss([base, *others], y)
        with_it, df_with = _rss([base, *others, columns[term]], y)
        terms.append(source(":".join(seen.factors[at].name for at in term), df - df_with, max(0.0, without - with_it), term))
    left, left_df = _rss([base, *columns.values()], y)
    block_df = base.shape[1] - 1
    rows = [source("blocks", block_df, _rss([base[:, :1], *columns.values()], y)[0] - left)] if block_df else []
    rows += [term for term in terms if term.df]
    rows += [source("what these leave", left_df - error_df, max(0.0, left - error_ss))] if left_df > error_df else []
    lost = sorted({lost.point for lost in seen.lost})
    reason = f"cells of {', '.join(lost)} are missing" if lost else "there are combinations of levels that were never run"
    counts = Counter(zip(blocks, keys, strict=True))
    whole = len(set(blocks)) * math.prod(map(len, there.values()))
    return Variation(
        (*rows, source("error", error_df, error_ss), source("total", len(y) - 1, total)),
        _levels(seen, base, columns, y),
        tuple((term.name, reason) for term in terms if not term.df),
        len(counts) == whole and len(set(counts.values())) == 1,
        (TOO_MANY,) if many else (),
    )


def _error(  # noqa: PLR0913, PLR0917  # what a model is chosen by
    seen: ObservedFactor, base: Floats, mains: dict[Term, Floats], pairs: dict[Term, Floats], y: Floats, pure: tuple[float, int]
) -> tuple[dict[Term, Floats], float, int]:
    """Choose the terms, and their error: replicates where there are enough, else what the terms leave."""
    if not mains:
        raise NotComparable("no factor stood at more than one level.")
    if pure[1] >= FEWEST_DF:
        for (at,) in mains:
            if sum(count >= FEWEST_BLOCKS for count in Counter(row.levels[at] for row in seen.rows).values()) < 2:
                raise NotComparable(f"fewer than {FEWEST_BLOCKS} cells at the levels of {seen.factors[at].name}.")
        return mains | pairs, *pure
    for columns in (mains | pairs, mains):
        ss, df = _rss([base, *columns.values()], y)
        if len(mains) > 1 and df >= FEWEST_DF:
            return columns, ss, df
    raise NotComparable("no point was run twice, and too few are left over to see how far equal cells differ: run more blocks.")


def _levels(seen: ObservedFactor, base: Floats, columns: Mapping[Term, Floats], y: Floats) -> tuple[Level, ...]:
    """Means at levels by least squares: over all other levels alike, whatever was lost."""
    for terms in (list(columns), [term for term in columns if len(term) == 1]):
        made = np.column_stack([base, *(columns[term] for term in terms)])
        beta, _, rank, _ = np.linalg.lstsq(made, y, rcond=DEPENDENT)
        if rank == made.shape[1]:
            break
    else:
        raise NotComparable("the factors' levels cannot be told apart: some never varied without others.")
    result, start = [], base.shape[1]
    for term in terms:
        stop = start + columns[term].shape[1]
        if len(term) == 1:
            factor, names = seen.factors[term[0]].name, seen.levels()[seen.factors[term[0]].name]
            counts = Counter(row.levels[term[0]] for row in seen.rows)
            for name, code in zip(names, _coded(names), strict=True):
                mean = float(beta[0] + code @ beta[start:stop])
                result.append(Level(factor, name, counts[name], math.exp(mean) if seen.scale == "log" else mean))
        start = stop
    return tuple(result)


def _rss(columns: Sequence[Floats], y: Floats) -> tuple[float, int]:
    """Residual sum of squares and degrees of freedom of columns that may depend on each other, the first constant."""
    made = np.column_stack(columns)
    centred = y - y.mean()
    beta, _, rank, _ = np.linalg.lstsq(made, centred, rcond=DEPENDENT)
    rest = centred - made @ beta
    return (float(rest @ rest) if len(y) > rank else 0.0), len(y) - int(rank)


def _coded(labels: Sequence[Hashable], levels: Sequence[Hashable] = ()) -> Floats:
    """Code L levels as L - 1 columns that sum to zero over them."""
    levels = levels or list(dict.fromkeys(labels))
    rows = np.vstack([-np.ones(len(levels) - 1), np.eye(len(levels) - 1)])
    return rows[[levels.index(label) for label in labels]]


def _product(floats: Floats, other: Floats) -> Floats:
    """Columns of an interaction: every column of the one times every column of the other."""
    return np.column_stack([a * b for a in floats.T for b in other.T])
