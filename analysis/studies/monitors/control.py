"""Each monitor against none, and none against none again: whether a workload was quiet enough for anything to be said of it.

Paired by block, on log ratios, Holm over the study, by the machinery that compares tweak sets. That speaks of gains, as a tweak set is
wanted to have one; here the same number is turned into what is paid.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.compare import Options, compare
from analysis.switched import outlasting, outlasts
from analysis.wording import probability, unsigned

from .arms import amount, ends, shown
from .records import ALL_CPU, ENERGY
from .terms import Control, OverheadFigure

if TYPE_CHECKING:
    from collections.abc import Collection

    from analysis.terms import Cell, Comparison, Effect, Metric, Run, Verdict

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


WALL = "step_time_mean_s"
OTHERS = (WALL, ALL_CPU, ENERGY)


def contrasts(run: Run) -> list[Comparison]:
    """Compare every arm of a run with the one without a monitor, in the primary metric and in the others beside it."""
    return compare(run, None, Options(metrics=OTHERS))


def against(run: Run, baseline: str, arms: Collection[str]) -> list[Comparison]:
    """Compare some arms with one of their own kind; these contrasts alone are the family of the adjustment."""
    names = {baseline, *arms}
    cells = tuple(cell for cell in run.cells if cell.tweakset in names)
    known = {name: tweakset for name, tweakset in run.tweaksets.items() if name in names}
    return compare(replace(run, cells=cells, tweaksets=known), baseline)


def figure(effect: Effect | None, p_adjusted: float | None = None) -> OverheadFigure | None:
    """Turn a gain into an overhead: to do 1/1.25 of the work a second is to pay 25 % more."""
    if effect is None:
        return None
    return OverheadFigure(
        cost(effect.gain), cost(effect.high), cost(effect.low), effect.n_baseline, effect.p, p_adjusted, effect.p_equivalent
    )


def other(comparison: Comparison, metric: str) -> OverheadFigure | None:
    """The overhead in one of the other metrics; None where its cells do not have it."""
    return figure(next((effect for effect in comparison.others if effect.metric.name == metric), None))


def cost(gain: float) -> float:
    """What is paid more where so much is gained: a gain of -0.2 costs a quarter more, and one of -1 more than can be written."""
    return 1 / (1 + gain) - 1 if gain > -1 else math.inf


def paid_inside(cell: Cell, metric: Metric) -> float:
    """Answer how many times as much was paid in the segments of a process with the monitor as in those without."""
    logs = [math.log(segment.metrics[metric.name]) * (1 if segment.tweakset == cell.tweakset else -1) for segment in cell.segments]
    return math.exp(2 * math.fsum(logs) / len(logs))
