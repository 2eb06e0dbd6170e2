"""How much of what a response varies goes with which factor: a description, which pools all combinations as if they scattered alike.

Sums of squares are of Type II: each term adjusted for all that do not contain it. Where cells were lost they ask the question that makes
sense (Langsrud 2003), and do not add up to the total.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.effect import ROUNDING
from analysis.terms import NotComparable

from .factors import BLOCK, Layout, Y

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Term = tuple[str, ...]

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
    rows: tuple[VarianceSource, ...]
    levels: tuple[Level, ...]
    notes: tuple[str, ...]


def variation(layout: Layout) -> Variation:
    """Allot the variation to factors and every two of them, blocks taken off. Raises: NotComparable."""
    levels, keys, blocks = layout.levels(), layout.keys(), list(layout.rows[BLOCK])
    if len(set(keys)) < 2:
        raise NotComparable(f"cells of {len(set(keys))} of {len(layout.points)} points were measured: nothing to set against each other.")
    y = np.array(layout.rows[Y], float)
    base = np.column_stack([np.ones(len(y)), _coded(blocks)])
    total = float(((y - y.mean()) ** 2).sum())
    pure_ss, pure_df = _rss([base, _coded(keys)], y)
    if total <= ROUNDING**2 * max(1.0, float((y**2).sum())):
        raise NotComparable(f"all {len(y)} values of {layout.response} are the same: these are no measurements.")
    if pure_df and math.sqrt(pure_ss / pure_df) <= ROUNDING * max(1.0, float(np.abs(y).max())):
        raise NotComparable(f"repeats of a point have the very same {layout.response}: these are not independent measurements.")
    mains: dict[Term, Floats] = {(name,): _coded(list(layout.rows[name]), there) for name, there in levels.items() if len(there) > 1}
    many = sum(first.shape[1] * second.shape[1] for first, second in combinations(mains.values(), 2)) > MOST_COLUMNS
    pairs = {} if many else {(*a, *b): _product(mains[a], mains[b]) for a, b in combinations(mains, 2)}
    columns, error_ss, error_df = _terms(layout, base, mains, pairs, (pure_ss, pure_df))

    def source(name: str, df: int, ss: float, term: Term = ()) -> VarianceSource:
        return VarianceSource(name, df, ss, ss / total, term)

    terms = []
    for term in columns:
        others = [made for other, made in columns.items() if other != term and not set(term) <= set(other)]
        without, df = _rss([base, *others], y)
        with_it, df_with = _rss([base, *others, columns[term]], y)
        terms.append(source(":".join(term), df - df_with, max(0.0, without - with_it), term))
    left, left_df = _rss([base, *columns.values()], y)
    block_df = base.shape[1] - 1
    rows = [source("blocks", block_df, _rss([base[:, :1], *columns.values()], y)[0] - left)] if block_df else []
    rows += [term for term in terms if term.df]
    rows += [source("what these leave", left_df - error_df, max(0.0, left - error_ss))] if left_df > error_df else []
    rows += [source("error", error_df, error_ss), source("total", len(y) - 1, total)]
    lost = sorted({point for point, *_ in layout.lost})
    reason = f"cells of {', '.join(lost)} are missing" if lost else "there are combinations of levels that were never run"
    notes = [TOO_MANY] if many else []
    notes += [f"{term.name} cannot be told: {reason}." for term in terms if not term.df]
    counts = Counter(zip(blocks, keys, strict=True))
    if len(counts) < len(set(blocks)) * math.prod(map(len, levels.values())) or len(set(counts.values())) > 1:
        notes.append("the cells do not balance: a step is taken where all of it was measured, and shares do not add up.")
    return Variation(tuple(rows), _level_means(layout, base, columns, y), tuple(notes))


def _terms(
    layout: Layout, base: Floats, mains: dict[Term, Floats], pairs: dict[Term, Floats], pure: tuple[float, int]
) -> tuple[dict[Term, Floats], float, int]:
    """Choose the terms, and their error: that of replicates where there are enough, else what the terms leave."""
    if not mains:
        raise NotComparable("no factor stood at more than one level.")
    if pure[1] >= FEWEST_DF:
        for (name,) in mains:
            if sum(count >= FEWEST_BLOCKS for count in Counter(layout.rows[name]).values()) < 2:
                raise NotComparable(f"fewer than {FEWEST_BLOCKS} cells at the levels of {name}.")
        return mains | pairs, *pure
    for columns in (mains | pairs, mains):
        ss, df = _rss([base, *columns.values()], np.array(layout.rows[Y], float))
        if len(mains) > 1 and df >= FEWEST_DF:
            return columns, ss, df
    raise NotComparable("no point was run twice, and too few are left over to see how far equal cells differ: run more blocks.")


def _level_means(layout: Layout, base: Floats, columns: Mapping[Term, Floats], y: Floats) -> tuple[Level, ...]:
    """Return means at levels by least squares: over all other levels alike, whatever was lost."""
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
            names, counts = layout.levels()[term[0]], Counter(layout.rows[term[0]])
            for name, code in zip(names, _coded(names), strict=True):
                mean = float(beta[0] + code @ beta[start:stop])
                result.append(Level(term[0], name, counts[name], math.exp(mean) if layout.scale == "log" else mean))
        start = stop
    return tuple(result)


def _rss(columns: Sequence[Floats], y: Floats) -> tuple[float, int]:
    """Return the residual sum of squares and degrees of freedom of columns that may depend on each other, the first constant."""
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


def _product(first: Floats, second: Floats) -> Floats:
    """Return the columns of an interaction: every column of the one times every column of the other."""
    return np.column_stack([a * b for a in first.T for b in second.T])
