"""The answer to one question that was asked: what an effect is, before what the design says of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .sentence import NAMED, amount, evidence, or_others, subject
from .settle import SCREENED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Effects, Term


def answered(one: Effects, wanted: Sequence[tuple[str, ...]]) -> str:
    """Put the answers to the effects asked for before the sentence on all of them."""
    if one.refusal:
        return one.sentence
    known = {factor.name for factor in one.observed.factors}
    said = [_answer(one, effect) for effect in wanted if known.issuperset(effect)]
    return f"{' '.join(said)} Of all that was looked at: {one.sentence}" if said else one.sentence


def _answer(one: Effects, effect: tuple[str, ...]) -> str:
    name = ":".join(effect)
    terms = [term for term in one.terms if set(term.factors) == set(effect) and (term.means != "profile" or len(one.observed.factors) == 1)]
    known = [term for term in terms if term.p_adjusted is not None]
    if not known:
        why = next((reason for label, reason in one.unestimable if label.split(" ")[0] == name), "there is nothing to judge it by")
        return f"{name} cannot be judged: {why}."
    said = [_said(term, one) for term in known]
    gone = [
        f"{label} cannot be judged: {reason}" for label, reason in one.unestimable if label in {f"{name} alone", f"{name} in the profile"}
    ]
    return f"{'; '.join([*said, *gone])}."


def _said(term: Term, one: Effects) -> str:
    place = {"alone": " alone", "in profile": " in the profile", "disagreement": " in the profile less alone"}.get(term.means, "")
    mixed = f"; it cannot be told from {', '.join(term.aliases[:4])}" if term.aliases else ""
    if term.means in SCREENED and term.means != "disagreement":
        word = "do something else together" if term.verdict == "interacts" else "are not shown to do anything together beyond their sum"
        return f"{' and '.join(term.factors)} {word}: {amount(term, one)} ({evidence(term, one)}){mixed}"
    shown = term.verdict in NAMED or term.verdict == "interacts"
    how = amount(term, one) if shown else f"{'equivalent' if term.verdict == 'equivalent' else 'not shown to matter'}, {amount(term, one)}"
    what = f"{subject(term, one)}{', or interactions of others' if or_others(term, one) else ''}"
    return f"{what}{place}: {how} ({evidence(term, one)}){mixed}"
