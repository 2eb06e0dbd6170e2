"""What a design says nothing of: keys that were lost, never varied inside a block, or too seldom measured. No answer may cover them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .settle import SCREENED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .terms import Effects, Term

MOST = 4  # named one by one
SEARCH = "search"


def judged(term: Term) -> bool:
    """Whether there was anything to judge a term by."""
    return term.p_adjusted is not None


def unjudged(one: Effects) -> list[str]:
    """What was planned to be answered and is not, as the sentence calls it: keys, levels of keys, keys alone or in the profile, whole sets.

    An adaptive design leaves out what it acquitted on its way: that is not judged by the cells that confirm, and is listed as well.
    """
    seen = one.observed
    gone = [label for label, _ in one.unestimable]
    terms = [term for term in one.terms if term.means not in SCREENED and judged(term)]
    if seen.design in {SEARCH, "matrix"}:
        return gone
    found: list[str] = []
    for factor in seen.factors:
        mine = [term for term in terms if term.factors == (factor.name,) and term.means != "profile"]
        if not mine:
            found.append(factor.name)
        elif any(term.means == "level" for term in mine):
            there = {term.level for term in mine}
            found += [f"{factor.name} = {level}" for level in factor.levels[1:] if level not in there]
        else:
            found += [label for label in gone if label in {f"{factor.name} alone", f"{factor.name} in the profile"}]
    return found + [f"{label} as a whole" for label in gone if label == seen.profile]


def not_covered(one: Effects) -> Iterator[str]:
    """Say what the answer does not speak of."""
    missing = unjudged(one)
    if missing:
        more = f" and {len(missing) - MOST} more" if len(missing) > MOST else ""
        yield f"Cannot be judged, so nothing is said of: {', '.join(missing[:MOST])}{more}."


def caveat(one: Effects) -> Iterator[str]:
    """Say where main effects are not those of their keys alone: a design that is for finding suspects."""
    confirm = "what it names is a suspect, and what it does not name may hide; confirm with a design of fewer keys."
    if one.mixed:
        yield f"A main effect of this design holds shares of others' interactions (up to {one.mixed:.2f} of each): {confirm}"
    elif one.resolution is not None and one.resolution <= 3:
        yield f"A main effect of this design (resolution {'I' * one.resolution}) is one with interactions of others: {confirm}"
