"""Designs of factors with two levels: factorial, fractional, screening. Main effects, interactions where they can be told, and the rest.

Which effects can be told is worked out twice from the points themselves: of those that were planned, which share a column; of the cells
that were measured, which can still be estimated. Terms enter in order of size of their factors' number, so an interaction never takes the
place of a main effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from analysis.terms import NotComparable, Refused
from control.t_test import ALPHA, POWER

from .frame import (
    DEPENDENT,
    FEWEST_RUNS,
    Basis,
    Frame,
    aliases,
    column,
    effects_up_to,
    fit,
    frame,
    half_counts,
    partly_mixed,
    resolution,
    with_interval,
    words,
)
from .terms import Effects, Lenth, Level, Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from .frame import Effect, Floats, Frame, FrameFit
    from .terms import Observed, VariationSource

    Singles = npt.NDArray[np.float32]


MOST_SHOWN = 2  # factors of an interaction that is listed as lost or as an alias, unless only larger ones are there
MIXED = 0.999


def two_level(seen: Observed, asked: Iterable[tuple[str, ...]] = ()) -> Effects:
    """Estimate the effects of a two-level design; `asked` are effects that must be told, by their factors' names.

    Raises: NotComparable, where nothing can be said. Refused, where an effect asked for cannot be told from another.
    """
    made = frame(seen)
    names = [factor.name for factor in seen.factors]
    planned = _coded(seen, list(seen.points.values()))
    try:
        defining = words(planned)
    except ValueError as error:
        raise NotComparable(f"{error}: a design that tells nothing apart.") from None
    wanted = [tuple(sorted(names.index(name) for name in entry)) for entry in asked]
    partly = partly_mixed(planned)
    for entry in wanted:
        _must_be_told(entry, seen, planned, defining)
    order = 2 if made.replicated else len(names)
    if partly or seen.design == "screening":
        order = 1
    coded = _coded(seen, made.keys)
    told = _told(made, coded, chain(effects_up_to(len(names), 1), wanted, effects_up_to(len(names), order)))
    if not told:
        raise NotComparable("no factor stood at both of its levels: nothing can be told.")
    columns = np.column_stack([made.base, *(column(coded, entry) for entry in told)])
    done = fit(columns, made.y)
    first = made.base.shape[1]
    terms = [_term(made, done, first + at, entry, defining) for at, entry in enumerate(told)]
    lenth = None
    if not made.replicated:
        lenth, terms = judged_by_each_other(made, done, columns, terms)
    elif min(min(half_counts(made.keys, at).values()) for at in range(len(names)) if (at,) in told) < FEWEST_RUNS:
        raise NotComparable(f"fewer than {FEWEST_RUNS} cells at one of the two levels of a factor.")
    shared = np.abs(columns[:, first:].T @ columns)
    np.fill_diagonal(shared[:, first:], 0)
    return Effects(
        observed=seen,
        terms=tuple(terms),
        anova=tuple(_anova(made, terms, done)),
        levels=tuple(_levels(made, done, told, first)),
        pairs=made.pairs(),
        error=_error(made, lenth),
        error_df=made.error_df if made.replicated else 0,
        error_ms=made.error_ms,
        mean=made.mean,
        blocks=first if first > 1 else 0,
        resolution=None if partly else resolution(defining),
        orthogonal=bool(shared.max() < 1e-6 * len(columns)),
        lenth=lenth,
        unestimable=tuple(_unestimable(made, told, defining, order)),
        notes=tuple(_mixed_notes(partly, order)),
        mixed=partly,
    )


def _coded(seen: Observed, points: Sequence[tuple[str, ...]]) -> Floats:
    lows = [factor.levels[0] for factor in seen.factors]
    return np.array([[-1.0 if level == low else 1.0 for level, low in zip(point, lows, strict=True)] for point in points])


def _told(made: Frame, coded: Floats, candidates: Iterable[Effect]) -> list[Effect]:
    """Those effects that add something to the mean, the blocks and the effects before them, until the points have no more to tell."""
    most = len(coded) - made.error_df
    basis = Basis(len(coded), most)
    for one in made.base.T:
        basis.grow(one)
    result: list[Effect] = []
    for effect in candidates:
        if basis.rank == most:
            break
        if effect not in result and basis.grow(column(coded, effect)):
            result.append(effect)
    return result


def named(effect: Effect, seen: Observed) -> str:
    return ":".join(seen.factors[at].name for at in effect)


def _must_be_told(effect: Effect, seen: Observed, planned: Floats, defining: Sequence[Effect]) -> None:
    """Check that an effect asked for is mixed with none of its own size or smaller.

    Raises: Refused, naming those it is mixed with.
    """
    same = [alias for alias in aliases(effect, defining, max(len(effect), 1)) if alias != effect]
    what = named(effect, seen)
    if same:
        others = ", ".join(named(entry, seen) if entry else "the mean" for entry in same)
        grade = _roman(resolution(defining))
        raise Refused(
            f"{what} cannot be told from {others} in this design (resolution {grade}); a design laid out with `--estimate={what}` can."
        )
    if len(effect) > 1:
        shared = np.abs(planned.T @ column(planned, effect)) / len(planned)
        mixed = [at for at in range(planned.shape[1]) if at not in effect and 1e-9 < shared[at] < MIXED]
        if mixed:
            others = ", ".join(seen.factors[at].name for at in mixed[:4])
            others += f" and {len(mixed) - 4} more" if len(mixed) > 4 else ""
            raise Refused(
                f"{what} is mixed with the main effects of {others} (correlation {shared[mixed].max():.2f}): a screening design cannot "
                f"tell it; lay a factorial out over these keys."
            )


def _roman(number: int | None) -> str:
    return {None: "full", 1: "I", 2: "II", 3: "III", 4: "IV", 5: "V"}.get(number, str(number))


def _term(made: Frame, done: FrameFit, at: int, effect: Effect, defining: Sequence[Effect]) -> Term:
    """One effect: its coefficient times 2 (main), 4 (interaction of two): what changing the factor does, or changes of another's effect."""
    seen, times = made.seen, 2.0 ** len(effect)
    same: list[Effect] = []
    for order in (MOST_SHOWN, MOST_SHOWN + 1):
        same = same or [alias for alias in aliases(effect, defining, order) if alias]
    return made.term(
        named(effect, seen),
        tuple(seen.factors[number].name for number in effect),
        "main" if len(effect) == 1 else "interaction",
        times * float(done.beta[at]),
        times**2 * float(done.inverse[at, at]),
        aliases=tuple(named(entry, seen) for entry in same),
        coefficient=float(done.beta[at]),
    )


def _anova(made: Frame, terms: Sequence[Term], done: FrameFit) -> list[VariationSource]:
    sources = made.blocks_source()
    sources += [made.source(term.label, 1, (term.share or 0.0) * made.total, term.factors, tested=True) for term in terms]
    left = done.df - made.error_df
    if left > 0:
        name = "what these leave" if made.replicated else "not told apart"
        sources.append(made.source(name, left, max(0.0, done.rss - made.error_ss), tested=made.replicated))
    return sources + made.closing_sources()


def _levels(made: Frame, done: FrameFit, told: Sequence[Effect], first: int) -> list[Level]:
    result = []
    for index, effect in enumerate(told):
        if len(effect) == 1:
            factor = made.seen.factors[effect[0]]
            counts = half_counts(made.keys, effect[0])
            for level, sign in zip((factor.levels[0], factor.levels[-1]), (-1.0, 1.0), strict=True):
                weights = np.zeros(len(done.beta))
                weights[[0, first + index]] = 1.0, sign
                mean, variance = done.contrast(weights)
                result.append(made.level((factor.name, level), counts.get(level, 0), mean, variance))
    return result


def _error(made: Frame, lenth: Lenth | None) -> str:
    if made.replicated and made.base.shape[1] > 1:
        return "block × point: how far the same point scatters from block to block"
    if made.replicated:
        return "cells of the same point"
    few = "one repeat is too few" if made.error_df else "nothing was replicated"
    if lenth is not None:
        return f"none: {few}, so {lenth.contrasts} contrasts are judged by each other (Lenth)"
    return f"none: {few}"


def _unestimable(made: Frame, told: Sequence[Effect], defining: Sequence[Effect], order: int) -> list[tuple[str, str]]:
    """Effects that the planned points could tell and the measured cells cannot."""
    seen = made.seen
    coded = _coded(seen, made.keys)
    blocks = Basis(len(coded), made.base.shape[1])
    for one in made.base.T:
        blocks.grow(one)
    known = {entry for effect in told for entry in (effect, *aliases(effect, defining, len(seen.factors)))}
    missing = [entry for entry in effects_up_to(len(seen.factors), min(order, MOST_SHOWN)) if entry not in known]
    gone = sorted({lost.point for lost in seen.lost})
    reason = f"cells of {', '.join(gone)} are missing" if gone else "the design has too few points"

    def why(effect: Effect) -> str:
        contrast = column(coded, effect)
        constant = len(set(contrast)) == 1
        within = float(np.linalg.norm(blocks.left(contrast))) > DEPENDENT * math.sqrt(len(contrast))
        return reason if constant or within else "in each block it stood at one level only: it cannot be told from the blocks"

    return [(named(entry, seen), why(entry)) for entry in missing if () not in aliases(entry, defining, 0)]


def _mixed_notes(partly: float, order: int) -> list[str]:
    if not partly or order > 1:
        return []
    text = f"a screening design: up to {partly:.2f} of each interaction of two keys is part of every other key's main effect."
    return [f"{text} What is found is a suspect; its interactions are for a second, smaller design."]


DRAWS = 100_000
CHUNK = 10_000
FEWEST = 3
REAL = 1e9  # standard errors


def pse(contrasts: Floats) -> Floats:
    """Pseudo standard error of contrasts that scatter alike, along the last axis."""
    size = np.abs(contrasts)
    s0 = 1.5 * np.median(size, axis=-1, keepdims=True)
    inner = np.where(size < 2.5 * s0, size, np.nan)
    # All of them nought: nothing lies below 0, and the error is 0 as well.
    inner[np.isnan(inner).all(axis=-1)] = 0
    result: Floats = 1.5 * np.nanmedian(inner, axis=-1)
    return result


@dataclass(frozen=True)
class Null:
    """What designs in which nothing has an effect show, in pseudo standard errors.

    `every` and `largest` are the ratios |c| / PSE of all contrasts, and of the largest of each design, sorted. Beyond `alone` one in 20 of
    the former lies, beyond `together` one in 20 of the latter. An effect of `needed` goes beyond `together` 4 times in 5.
    """

    every: Singles
    largest: Singles
    alone: float
    together: float
    needed: float

    def chances(self, result: float) -> tuple[float, float]:
        """How often so large a ratio comes of nothing, for one contrast and for the largest of all: (1 + hits) / (1 + draws), never 0."""
        alone, together = (
            float((1 + len(ratios) - np.searchsorted(ratios, np.float32(result))) / (1 + len(ratios)))
            for ratios in (self.every, self.largest)
        )
        return alone, together


def null(correlation: Floats) -> Null:
    """Simulate a design whose estimates hang together so (the identity where it is orthogonal).

    Seeded: the same design has the same margins.
    """
    contrasts = len(correlation)
    if np.allclose(correlation, np.eye(contrasts), atol=1e-9):
        return _independent(contrasts)
    return _draw(np.asarray(np.linalg.cholesky(correlation + 1e-12 * np.eye(contrasts)), np.float64))


@lru_cache(maxsize=8)
def _independent(contrasts: int) -> Null:
    return _draw(np.eye(contrasts, dtype=np.float64))


def _draw(root: Floats) -> Null:
    rng = np.random.default_rng(1989)
    parts, errors = [], []
    for _ in range(DRAWS // CHUNK):
        drawn = rng.standard_normal((CHUNK, len(root))) @ root.T
        parts.append((np.abs(drawn) / pse(drawn)[:, None]).astype(np.float32))
        # What one real effect leaves to judge it by: itself it is too large to count.
        errors.append(np.stack([pse(np.column_stack([np.full(CHUNK, REAL), drawn[:, 1:]])), drawn[:, 0]]))
    ratios = np.concatenate(parts)
    every, largest = np.sort(ratios, axis=None), np.sort(ratios.max(axis=1))
    alone, together = (float(np.quantile(one, 1 - ALPHA)) for one in (every, largest))
    error, chance = np.concatenate(errors, axis=1)
    return Null(every, largest, alone, together, float(np.quantile(together * error - chance, POWER)))


def judged_by_each_other(made: Frame, done: FrameFit, columns: Floats, terms: Sequence[Term]) -> tuple[Lenth | None, list[Term]]:
    first = made.base.shape[1]
    inverse = done.inverse[first:, first:]
    scale = np.sqrt(np.diag(inverse))
    ratios = np.asarray(done.beta[first:]) / scale
    correlation = inverse / np.outer(scale, scale)
    rest = _completing(columns)
    spare = rest.T @ made.y
    every = np.concatenate([ratios, spare])
    if len(every) < FEWEST:
        return None, list(terms)
    whole = np.eye(len(every))
    whole[: len(ratios), : len(ratios)] = correlation
    nothing = null(whole)
    error = float(pse(every))
    if error <= 0:
        raise NotComparable("most contrasts are exactly nought: these are no measurements.")
    # On the scale of main effects: twice the coefficient of an orthogonal contrast of all cells.
    unit = 2 * float(np.median(scale))
    result = []
    for term, size, ratio in zip(terms, scale, ratios, strict=True):
        p, p_adjusted = nothing.chances(abs(float(ratio)) / error)
        times = 2.0 ** len(term.factors) * float(size) * error
        judged = with_interval(term, nothing.alone * times, made.seen.scale == "log")
        result.append(
            replace(judged, se=times, p=p, p_adjusted=p_adjusted, adjustment="lenth", family=len(every), mde=nothing.needed * times)
        )
    labels = [*(term.label for term in terms), *[""] * len(spare)]
    sizes = [*(2 * float(beta) for beta in done.beta[first:]), *(unit * float(one) for one in spare)]
    return Lenth(
        unit * error, unit * error * nothing.alone, unit * error * nothing.together, len(every), tuple(zip(labels, sizes, strict=True))
    ), result


def _completing(columns: Floats) -> Floats:
    """Orthonormal contrasts that the columns leave over: shape (rows, rows - columns)."""
    rows, used = columns.shape
    q, _ = np.linalg.qr(np.column_stack([columns, np.eye(rows)]))
    made: Floats = q[:, used:rows]
    return made
