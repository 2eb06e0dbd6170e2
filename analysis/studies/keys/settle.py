"""Many effects are looked at: adjusting their p-values for it, and the word each of them gets.

The declared family is what the design was laid out to answer: the keys (main effects, levels, keys alone and in the profile, whole
sets) of one study, all its workloads together. One false accusation would be one too many, so it is Holm's. Interactions are looked
at because they are there: they are many, few matter, each is a hint for another run. So they are a screen after Benjamini and Hochberg,
adjusted among themselves and costing the keys nothing. Where nothing was replicated the simulated margins are for all contrasts of a
design already; several such designs in a study share the level evenly (Bonferroni). Where the A/A check fails nothing is called.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.stats.adjust import benjamini_hochberg, holm
from control.t_test import ALPHA, LARGEST_LOG, detectable_errors, t_tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .terms import Effects, Source, Term, Word

SCREENED = frozenset({"interaction", "disagreement"})


def settle(found: Sequence[Effects]) -> list[Effects]:
    """Adjust the terms of all designs of each study together, and judge them."""
    settled = list(found)
    for study in dict.fromkeys(one.observed.study for one in found):
        mine = [at for at, one in enumerate(found) if one.observed.study == study]
        for at, one in zip(mine, _settled([found[at] for at in mine]), strict=True):
            settled[at] = one
    return settled


def _settled(designs: Sequence[Effects]) -> list[Effects]:
    designs = [replace(one, terms=tuple(_simulated(term, designs) for term in one.terms)) for one in designs]
    keys = [term.p for one in designs for term in one.terms if term.adjustment != "lenth" and term.means not in SCREENED]
    screened = [term.p for one in designs for term in one.terms if term.adjustment != "lenth" and term.means in SCREENED]
    rows = [row.p for one in designs for row in one.anova if _own_test(one, row)]
    holms = iter(holm([p for p in keys if p is not None]))
    bhs = iter(benjamini_hochberg([p for p in (*screened, *rows) if p is not None]))
    terms = [
        [
            _adjusted(term, bhs, len(screened) + len(rows)) if term.means in SCREENED else _adjusted(term, holms, len(keys))
            for term in one.terms
        ]
        for one in designs
    ]
    anova = [[replace(row, p_adjusted=next(bhs)) if _own_test(one, row) else row for row in one.anova] for one in designs]
    return [
        replace(one, terms=tuple(_judged(term, one) for term in settled), anova=tuple(table))
        for one, settled, table in zip(designs, terms, anova, strict=True)
    ]


def _own_test(one: Effects, row: Source) -> bool:
    """Whether a row is an interaction that no term stands for."""
    return len(row.factors) > 1 and row.p is not None and not any(term.factors == row.factors for term in one.terms)


def _simulated(term: Term, designs: Sequence[Effects]) -> Term:
    if term.adjustment != "lenth" or term.p_adjusted is None:
        return term
    return replace(term, p_adjusted=min(1.0, term.p_adjusted * sum(one.lenth is not None for one in designs)))


def _adjusted(term: Term, ps: Iterator[float], family: int) -> Term:
    if term.adjustment == "lenth" or term.p is None:
        return term
    return replace(term, p_adjusted=next(ps), family=family, adjustment="bh" if term.means in SCREENED else "holm")


def _judged(term: Term, one: Effects) -> Term:
    seen = one.observed
    mde = term.mde
    if term.adjustment != "lenth" and term.se and term.df:
        mde = detectable_errors(term.df, ALPHA / max(1, term.family)) * term.se
    if mde is not None and seen.scale == "log":
        mde = math.expm1(min(mde, LARGEST_LOG))
    return replace(term, mde=mde, verdict=_word(term, one))


def _word(term: Term, one: Effects) -> Word:
    if term.p_adjusted is None:
        return "not comparable"
    if term.p_adjusted < ALPHA and not one.again_fails:
        if term.means in SCREENED:
            return "interacts"
        more = term.effect > 0
        if one.observed.better is None:
            return "raises" if more else "lowers"
        # Effects of logarithms are gains already; those in the response's own unit are more or less of it.
        good = more if one.observed.scale == "log" else more == (one.observed.better == "higher")
        return "improved" if good else "regressed"
    # Where a copy of stock differs from stock, an effect of that kind is what this run makes out of nothing.
    return "equivalent" if _inside(term, one.observed.margin) and not one.again_fails else "inconclusive"


def _inside(term: Term, margin: float | None) -> bool:
    """Whether both one-sided tests against the margin succeed (TOST)."""
    if margin is None or term.gain is None or not term.se or term.df is None:
        return False
    edge = math.log1p(margin)
    return max(t_tail((edge - term.effect) / term.se, term.df), t_tail((edge + term.effect) / term.se, term.df)) < ALPHA
