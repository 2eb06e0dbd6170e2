"""The effects of a saved run, or of another study's table: each design is analysed as what it is, all are adjusted together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.terms import NotComparable

from .again import again
from .claims import contradictions
from .contrasts import contrasts
from .frame import COMFORTABLE_DF
from .observed import ADAPTIVE, WHOLE_SETS, observed
from .sentence import sentence
from .settle import settle
from .several import several
from .terms import Effects
from .two_level import two_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from analysis.terms import Run

    from .terms import Observed

CHOSEN = (
    "which cells ran was decided by what came out before: intervals here are of cells as they stand, and the largest of many looks larger "
    "than it is. Only cells run again to confirm it are free of that."
)

UNBALANCED = (
    "the cells do not balance: effects are least squares, each adjusted for the others; they are not independent of each other, "
    "and sums of squares do not add up to the total."
)
UNBALANCED_ALONE = "the cells do not balance: a level of few cells is known less well, and the mean is of all cells, not of the levels."


def effects_of(run: Run, metric: str | None = None, asked: Sequence[tuple[str, ...]] = ()) -> list[Effects]:
    """Answer the effects of every tweak set of a run that was taken apart, under each workload; of a matrix, of all its sets.

    `metric` takes the place of the declared primary one. `asked` are effects that must be told, by their factors' names.

    Raises: Refused, where an effect asked for cannot be told from others.
    """
    found = []
    for whole in observed(run, metric):
        seen = _confirmed(whole, run) if whole.design in ADAPTIVE else whole
        known = {one.name for one in seen.factors}
        one = _analysed(seen, [effect for effect in asked if set(effect) <= known])
        conclusion = str(run.design.conclusion.get("text", "")) if seen.design in ADAPTIVE else ""
        said, fails = again(run, one)
        found.append(replace(one, again=said, again_fails=fails, conclusion=conclusion))
    return finished(found)


def of_table(seen: Observed, asked: Sequence[tuple[str, ...]] = ()) -> list[Effects]:
    """Answer the effects of another study's table. Raises: Refused, as `effects_of`."""
    return finished([_analysed(seen, asked)])


def finished(found: Iterable[Effects]) -> list[Effects]:
    """Adjust, judge, and say it in a sentence."""
    return [replace(one, sentence=sentence(one)) for one in settle(list(found))]


def _confirmed(seen: Observed, run: Run) -> Observed:
    """Keep of an adaptive design the cells that ran to confirm what it had found; where it says of none that they did, warn."""
    cells = run.design.conclusion.get("cells")
    staged = [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list | tuple) else []
    blocks = {str(cell.get("block")) for cell in staged if cell.get("stage") == "confirmation"}
    rows = tuple(row for row in seen.rows if row.block in blocks)
    if not rows:
        return replace(seen, notes=(*seen.notes, CHOSEN))
    note = f"{len(rows)} of {len(seen.rows)} cells: those that ran to confirm what the others found. The others chose it, and flatter it."
    return replace(seen, rows=rows, notes=(*seen.notes, note))


def _analysed(seen: Observed, asked: Iterable[tuple[str, ...]]) -> Effects:
    """Take a design for what it is; where nothing can be said, say why."""
    by_factor = two_level if all(len(one.levels) == 2 for one in seen.factors) else several
    analyse = contrasts if seen.design in WHOLE_SETS else by_factor
    try:
        one = analyse(seen, asked)
    except NotComparable as reason:
        return _refused(seen, str(reason))
    return replace(one, notes=(*seen.notes, *one.notes, *_notes(one)))


def _notes(one: Effects) -> Iterator[str]:
    """What a reader must know before believing it."""
    seen = one.observed
    yield from contradictions(one)
    for lost in seen.lost:
        where = f" in block{'s' if len(lost.blocks) > 1 else ''} {', '.join(lost.blocks)}" if any(lost.blocks) else ""
        yield f"lost: {lost.point}{where}: {lost.reason}."
    if not one.orthogonal and seen.design not in WHOLE_SETS:
        yield UNBALANCED_ALONE if _adds_up(one) else UNBALANCED
    if 0 < one.error_df < COMFORTABLE_DF:
        yield f"{one.error_df} degrees of freedom only for the error: with fewer than {COMFORTABLE_DF} one odd cell can decide."


def _adds_up(one: Effects) -> bool:
    *parts, whole = one.anova
    return math.isclose(math.fsum(part.ss for part in parts), whole.ss, rel_tol=1e-9)


def _refused(seen: Observed, reason: str) -> Effects:
    return Effects(
        observed=seen,
        terms=(),
        anova=(),
        levels=(),
        pairs=(),
        error="none",
        error_df=0,
        error_ms=None,
        mean=0.0,
        blocks=len({row.block for row in seen.rows}),
        resolution=None,
        orthogonal=False,
        lenth=None,
        unestimable=(),
        notes=seen.notes,
        refusal=reason,
    )
