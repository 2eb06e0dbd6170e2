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


def control(comparison: Comparison | None) -> Control:
    """Judge the A/A of a workload by its own 95 % interval, which no adjustment widens: it guards the others."""
    result = figure(comparison.primary, comparison.p_adjusted) if comparison is not None else None
    if comparison is None or result is None:
        reason = comparison.reason.rstrip(".") if comparison is not None else f"there is no {AGAIN}"
        return Control("missing", None, None, f"No A/A: {reason}. How far equal cells differ is not known: no overhead is called absent.")
    half = (result.high - result.low) / 2
    if result.low > 0 or result.high < 0:
        return Control(
            "differs", result, half, f"A/A DIFFERS: none against none again {shown(result)}. NOTHING IS CLAIMED FROM THIS WORKLOAD."
        )
    if half > WIDEST:
        wide = f"half its interval is {unsigned(half)}, more than {unsigned(WIDEST)}"
        return Control("underpowered", result, half, f"UNDERPOWERED: A/A {shown(result)}: {wide}. No overhead is called absent here.")
    return Control("quiet", result, half, f"A/A holds: none against none again {shown(result)}.")


def judged(comparison: Comparison, state: Control) -> tuple[Verdict, str, str]:
    """Answer the verdict on an arm once the A/A is known: the house's word, what the table prints, and a sentence."""
    if comparison.tweakset == AGAIN:
        return "not comparable" if state.state == "differs" else comparison.verdict, SAID[state.state], state.sentence
    if comparison.primary is None:
        return comparison.verdict, "not comparable", comparison.reason
    if state.state == "differs":
        return "not comparable", "not claimed", "the A/A of this workload differs: nothing is claimed."
    if comparison.verdict == "equivalent" and state.state in {"underpowered", "missing"}:
        return "inconclusive", SAID[state.state], f"inside the margin, which says nothing here: {state.sentence}"
    if outlasts(comparison):
        return comparison.verdict, "not shown", outlasting(comparison)
    return comparison.verdict, *_words(comparison, state)


def _words(comparison: Comparison, state: Control) -> tuple[str, str]:
    result, margin = figure(comparison.primary, comparison.p_adjusted), unsigned(comparison.margin)
    seen = "" if result is None else f"{amount(result)} {ends(result)} CPU, Holm p {_p(comparison)} of {comparison.family}"
    most = "" if comparison.mde is None else f"; a difference of {unsigned(comparison.mde)} would be, 4 times in 5"
    small = f", under {margin}" if result is not None and result.high < comparison.margin else ""
    told: dict[Verdict, tuple[str, str]] = {
        "regressed": (f"costs{small}", f"costs {seen}."),
        "improved": ("less than none", f"{seen}: less than without; look for the reason."),
        "equivalent": (f"within ±{margin}", f"no effect beyond ±{margin}: the 90 % interval lies inside."),
        "inconclusive": (
            SAID[state.state] if state.state == "underpowered" else "not shown",
            f"neither a cost nor its absence is shown{most}.",
        ),
        "not comparable": ("not comparable", comparison.reason),
    }
    return told[comparison.verdict]


def _p(comparison: Comparison) -> str:
    return "unknown" if comparison.p_adjusted is None else probability(comparison.p_adjusted)
