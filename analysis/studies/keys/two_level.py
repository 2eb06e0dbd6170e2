"""Designs of factors with two levels: factorial and fractional. Main effects, interactions where they can be told, and the rest.

Which effects can be told is worked out twice from the points themselves: of those that were planned, which share a column; of the cells
that were measured, which can still be estimated. Terms enter in order of size of their factors' number, so an interaction never takes the
place of a main effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from analysis.stats.linear import DEPENDENT, FEWEST_CELLS, Basis, VariationSource, coded_levels, fit, pure_error
from analysis.terms import NotComparable, Refused
from control.names import first_few

from .frame import Frame, aliases, column, defining_words, effects_up_to, frame_of, partly_mixed, resolution
from .terms import Effects, Level, Observed, Term

if TYPE_CHECKING:
    import numpy.typing as npt

    from analysis.stats.linear import Fit, Floats

    from .frame import Effect

    Singles = npt.NDArray[np.float32]


MOST_SHOWN = 2  # factors of an interaction that is listed as lost or as an alias, unless only larger ones are there
MIXED = 0.999


def two_level(data: Observed, requested: Iterable[tuple[str, ...]] = ()) -> Effects:
    """Estimate the effects of a two-level design; `asked` are effects that must be told, by their factors' names.

    Raises: NotComparable, where nothing can be said. Refused, where an effect asked for cannot be told from another.
    """
    frame = frame_of(data)
    names = [factor.name for factor in data.factors]
    planned = _coded(data, list(data.points.values()))
    try:
        defining = defining_words(planned)
    except ValueError as error:
        raise NotComparable(f"{error}: a design that tells nothing apart.") from None
    effects_requested = [tuple(sorted(names.index(name) for name in entry)) for entry in requested]
    partly = partly_mixed(planned)
    for entry in effects_requested:
        _require_estimable(entry, data, planned, defining)
    order = 1 if partly else 2 if frame.replicated else len(names)
    coded = _coded(data, frame.keys)
    estimable = _estimable(frame, coded, chain(effects_up_to(len(names), 1), effects_requested, effects_up_to(len(names), order)))
    if not estimable:
        raise NotComparable("no factor stood at both of its levels: nothing can be told.")
    columns = np.column_stack([frame.base, *(column(coded, entry) for entry in estimable)])
    fitted = fit(columns, frame.y)
    first = frame.base.shape[1]
    terms = [_term(frame, fitted, first + at, entry, defining) for at, entry in enumerate(estimable)]
    if frame.replicated and min(min(frame.count(at).values()) for at in range(len(names)) if (at,) in estimable) < FEWEST_CELLS:
        raise NotComparable(f"fewer than {FEWEST_CELLS} cells at one of the two levels of a factor.")
    shared = np.abs(columns[:, first:].T @ columns)
    np.fill_diagonal(shared[:, first:], 0)
    return Effects(
        observed=data,
        terms=tuple(terms),
        anova=tuple(_anova(frame, terms, fitted)),
        levels=tuple(_levels(frame, fitted, estimable, first)),
        pairs=frame.pairs(),
        error=_error(frame),
        error_df=frame.error_df if frame.replicated else 0,
        error_ms=frame.error_ms,
        mean=frame.mean,
        blocks=first if first > 1 else 0,
        resolution=None if partly else resolution(defining),
        orthogonal=bool(shared.max() < 1e-6 * len(columns)),
        unestimable=tuple(_unestimable(frame, estimable, defining, order)),
        notes=tuple(_mixed_notes(partly, order)),
        mixed=partly,
    )


def _coded(data: Observed, points: Sequence[tuple[str, ...]]) -> Floats:
    lows = [factor.levels[0] for factor in data.factors]
    return np.array([[-1.0 if level == low else 1.0 for level, low in zip(point, lows, strict=True)] for point in points])


def _estimable(frame: Frame, coded: Floats, candidates: Iterable[Effect]) -> list[Effect]:
    """Those effects that add something to the mean, the blocks and the effects before them, until the points have no more to tell."""
    most = len(coded) - frame.error_df
    basis = Basis([frame.base], most)
    result: list[Effect] = []
    for effect in candidates:
        if basis.rank == most:
            break
        if effect not in result and basis.grow(column(coded, effect)):
            result.append(effect)
    return result


def named(effect: Effect, data: Observed) -> str:
    return ":".join(data.factors[at].name for at in effect)


def _require_estimable(effect: Effect, data: Observed, planned: Floats, defining: Sequence[Effect]) -> None:
    """Check that an effect asked for is mixed with none of its own size or smaller.

    Raises: Refused, naming those it is mixed with.
    """
    same = [alias for alias in aliases(effect, defining, max(len(effect), 1)) if alias != effect]
    what = named(effect, data)
    if same:
        others = ", ".join(named(entry, data) if entry else "the mean" for entry in same)
        grade = _roman(resolution(defining))
        raise Refused(
            f"{what} cannot be told from {others} in this design (resolution {grade}); one of a higher resolution can, or a factorial."
        )
    if len(effect) > 1:
        shared = np.abs(planned.T @ column(planned, effect)) / len(planned)
        mixed = [at for at in range(planned.shape[1]) if at not in effect and 1e-9 < shared[at] < MIXED]
        if mixed:
            others = first_few([data.factors[at].name for at in mixed], 4)
            raise Refused(
                f"{what} is mixed with the main effects of {others} (correlation {shared[mixed].max():.2f}): a screening design cannot "
                f"tell it; lay a factorial out over these keys."
            )


def _roman(number: int | None) -> str:
    return {None: "full", 1: "I", 2: "II", 3: "III", 4: "IV", 5: "V"}.get(number, str(number))


def _term(frame: Frame, fitted: Fit, at: int, effect: Effect, defining: Sequence[Effect]) -> Term:
    """One effect: its coefficient times 2 (main), 4 (interaction of two): what changing the factor does, or changes of another's effect."""
    data, times = frame.data, 2.0 ** len(effect)
    same: list[Effect] = []
    for order in (MOST_SHOWN, MOST_SHOWN + 1):
        same = same or [alias for alias in aliases(effect, defining, order) if alias]
    return frame.term(
        named(effect, data),
        tuple(data.factors[number].name for number in effect),
        "main" if len(effect) == 1 else "interaction",
        times * float(fitted.beta[at]),
        times**2 * float(fitted.inverse[at, at]),
        aliases=tuple(named(entry, data) for entry in same),
        coefficient=float(fitted.beta[at]),
    )


def _anova(frame: Frame, terms: Sequence[Term], fitted: Fit) -> list[VariationSource]:
    sources = frame.blocks_source([coded_levels(frame.keys)])
    sources += [frame.source(term.label, 1, (term.share or 0.0) * frame.total, term.factors, tested=True) for term in terms]
    left = fitted.df - frame.error_df
    if left > 0:
        name = "what these leave" if frame.replicated else "not told apart"
        sources.append(frame.source(name, left, max(0.0, fitted.rss - frame.error_ss), tested=frame.replicated))
    return sources + frame.closing_sources()


def _levels(frame: Frame, fitted: Fit, estimable: Sequence[Effect], first: int) -> list[Level]:
    result = []
    for index, effect in enumerate(estimable):
        if len(effect) == 1:
            factor = frame.data.factors[effect[0]]
            counts = frame.count(effect[0])
            for level, sign in zip((factor.levels[0], factor.levels[-1]), (-1.0, 1.0), strict=True):
                weights = np.zeros(len(fitted.beta))
                weights[[0, first + index]] = 1.0, sign
                mean, variance = fitted.contrast(weights)
                result.append(frame.level((factor.name, level), counts[level], mean, variance))
    return result


def _error(frame: Frame) -> str:
    if frame.replicated:
        return pure_error(frame)
    few = "one repeat is too few" if frame.error_df else "nothing was replicated"
    return f"none: {few}"


def _unestimable(frame: Frame, estimable: Sequence[Effect], defining: Sequence[Effect], order: int) -> list[tuple[str, str]]:
    """Effects that the planned points could tell and the measured cells cannot."""
    data = frame.data
    coded = _coded(data, frame.keys)
    blocks = Basis([frame.base])
    known = {entry for effect in estimable for entry in (effect, *aliases(effect, defining, len(data.factors)))}
    missing = [entry for entry in effects_up_to(len(data.factors), min(order, MOST_SHOWN)) if entry not in known]
    gone = sorted({lost.point for lost in data.lost})
    reason = f"cells of {', '.join(gone)} are missing" if gone else "the design has too few points"

    def reason_of(effect: Effect) -> str:
        contrast = column(coded, effect)
        constant = len(set(contrast)) == 1
        within = float(np.linalg.norm(blocks.left(contrast))) > DEPENDENT * math.sqrt(len(contrast))
        return reason if constant or within else "in each block it stood at one level only: it cannot be told from the blocks"

    return [(named(entry, data), reason_of(entry)) for entry in missing if () not in aliases(entry, defining, 0)]


def _mixed_notes(partly: float, order: int) -> list[str]:
    if not partly or order > 1:
        return []
    text = f"a screening design: up to {partly:.2f} of each interaction of two keys is part of every other key's main effect."
    return [f"{text} What is found is a suspect; its interactions are for a second, smaller design."]
