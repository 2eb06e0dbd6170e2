"""None against none again: whether a workload was quiet enough for anything to be said of it, and what an arm's verdict then is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.switched.inside import outlasting, outlasts
from analysis.wording import probability, unsigned

from .contrasts import figure
from .terms import Control
from .words import amount, ends, shown

if TYPE_CHECKING:
    from analysis.terms import Comparison, Verdict

    from .terms import State

AGAIN = "stock-again"
# Half an A/A interval above which "no effect" is not said of a workload: the study's own demand, not the margin.
WIDEST = 0.03
SAID: dict[State, str] = {"quiet": "A/A holds", "underpowered": "underpowered", "differs": "A/A DIFFERS", "missing": "no A/A"}


def control(one: Comparison | None) -> Control:
    """Judge the A/A of a workload by its own 95 % interval, which no adjustment widens: it guards the others."""
    found = figure(one.primary, one.p_adjusted) if one is not None else None
    if one is None or found is None:
        why = one.reason.rstrip(".") if one is not None else f"there is no {AGAIN}"
        return Control("missing", None, None, f"No A/A: {why}. How far equal cells differ is not known: no overhead is called absent.")
    half = (found.high - found.low) / 2
    if found.low > 0 or found.high < 0:
        return Control(
            "differs", found, half, f"A/A DIFFERS: none against none again {shown(found)}. NOTHING IS CLAIMED FROM THIS WORKLOAD."
        )
    if half > WIDEST:
        wide = f"half its interval is {unsigned(half)}, more than {unsigned(WIDEST)}"
        return Control("underpowered", found, half, f"UNDERPOWERED: A/A {shown(found)}: {wide}. No overhead is called absent here.")
    return Control("quiet", found, half, f"A/A holds: none against none again {shown(found)}.")


def judged(one: Comparison, state: Control) -> tuple[Verdict, str, str]:
    """Answer the verdict on an arm once the A/A is known: the house's word, what the table prints, and a sentence."""
    if one.tweakset == AGAIN:
        return "not comparable" if state.state == "differs" else one.verdict, SAID[state.state], state.sentence
    if one.primary is None:
        return one.verdict, "not comparable", one.reason
    if state.state == "differs":
        return "not comparable", "not claimed", "the A/A of this workload differs: nothing is claimed."
    if one.verdict == "equivalent" and state.state in {"underpowered", "missing"}:
        return "inconclusive", SAID[state.state], f"inside the margin, which says nothing here: {state.sentence}"
    if outlasts(one):
        return one.verdict, "not shown", outlasting(one)
    return one.verdict, *_words(one, state)


def _words(one: Comparison, state: Control) -> tuple[str, str]:
    found, margin = figure(one.primary, one.p_adjusted), unsigned(one.margin)
    seen = "" if found is None else f"{amount(found)} {ends(found)} CPU, Holm p {_p(one)} of {one.family}"
    most = "" if one.mde is None else f"; a difference of {unsigned(one.mde)} would be, 4 times in 5"
    small = f", under {margin}" if found is not None and found.high < one.margin else ""
    told: dict[Verdict, tuple[str, str]] = {
        "regressed": (f"costs{small}", f"costs {seen}."),
        "improved": ("less than none", f"{seen}: less than without; look for the reason."),
        "equivalent": (f"within ±{margin}", f"no effect beyond ±{margin}: the 90 % interval lies inside."),
        "inconclusive": (
            SAID[state.state] if state.state == "underpowered" else "not shown",
            f"neither a cost nor its absence is shown{most}.",
        ),
        "not comparable": ("not comparable", one.reason),
    }
    return told[one.verdict]


def _p(one: Comparison) -> str:
    return "unknown" if one.p_adjusted is None else probability(one.p_adjusted)
