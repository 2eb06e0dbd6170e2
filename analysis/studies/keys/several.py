"""Factors of any number of levels: analysis of variance, and each level against the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.stats.linear import FEWEST_CELLS, FactorModel, why_lost
from analysis.terms import Refused

from .frame import frame_of
from .terms import Effects, Observed, Term

if TYPE_CHECKING:
    from .frame import Frame


def several(data: Observed, requested: Iterable[tuple[str, ...]] = ()) -> Effects:
    """Estimate the effects of factors of any number of levels.

    Raises: NotComparable, where nothing can be said. Refused, where an interaction asked for cannot be told.
    """
    frame = frame_of(data)
    levels = {factor.name: [level for level in factor.levels if frame.count(at)[level]] for at, factor in enumerate(data.factors)}
    model = FactorModel.of(frame, levels)
    for effect in requested:
        _require_estimable(effect, model)
    # The error that terms stand on is the model's: the frame's own is that of replicates alone.
    frame = replace(frame, error_ss=model.cells.error_ss, error_df=model.cells.error_df)
    reason = why_lost(lost.point for lost in data.lost)
    return Effects(
        observed=data,
        terms=tuple(_terms(frame, model)),
        anova=tuple(model.sources()),
        levels=tuple(frame.level((mean.factor, mean.level), mean.n, *mean.mean) for mean in model.means()),
        pairs=frame.pairs(),
        error=model.error,
        error_df=frame.error_df,
        error_ms=frame.error_ms,
        mean=frame.mean,
        blocks=frame.base.shape[1] if frame.blocked else 0,
        orthogonal=frame.balanced,
        unestimable=tuple((name, reason) for name in model.unestimable),
        notes=model.notes,
    )


def _terms(frame: Frame, model: FactorModel) -> Iterator[Term]:
    for mean in model.means():
        if mean.level != mean.first and min(mean.n, mean.n_first) >= (FEWEST_CELLS if frame.blocked else 1):
            label = f"{mean.factor} {mean.first} → {mean.level}"
            yield frame.term(label, (mean.factor,), "level", *mean.change, level=mean.level)


def _require_estimable(requested: tuple[str, ...], model: FactorModel) -> None:
    known = {frozenset(term): source for term, source in model.terms.items()}
    if not (source := known.get(frozenset(requested))) or not source.df:
        message = ", ".join(source.name for source in known.values() if source.df)
        raise Refused(f"{':'.join(requested)} cannot be told here, by the cells there are; what can be: {message}.")
