"""From numbers to a verdict, and why a run detected nothing: noise, detectable effect, time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from control.names import undigested
from control.t_test import ALPHA

from .checks import share_of_others
from .wording import LARGEST, duration, interval, number, percent, probability, speed, unsigned

if TYPE_CHECKING:
    from .terms import Comparison, Effect, Run, Verdict

# The p below which two untouched arms differ too much to be the baseline together. Of sound arms it
# costs a workload in one run of a hundred; if one arm is off, a false claim gets through in a
# quarter of such runs at worst, without the guard in half of them and more (docs/verdicts.md).
GUARD = 0.01
ONE_RUN = "1 run per configuration, run-level variance not estimable"
NAMES = {"holm": "Holm", "bh": "Benjamini-Hochberg"}


def judge(contrast: Comparison, effect: Effect, p_adjusted: float) -> tuple[Verdict, str]:
    """Return the verdict on one contrast and the sentence that justifies it.

    not comparable: an arm that changed nothing differs all the same, so no tweak caused it; for a
    guard, p below `GUARD`.
    """
    if contrast.guard and effect.p < GUARD:
        return "not comparable", (
            f"{contrast.tweakset} changes nothing and differs from {contrast.baseline}: "
            f"{speed(effect.gain)} "
            f"by {effect.metric.name} (95 % {interval(effect)}), p {probability(effect.p)}. "
            "The machine caused that, so no conclusion is drawn under "
            f"{undigested(contrast.workload)}."
        )
    family, margin, name = contrast.family, contrast.margin, NAMES[contrast.adjustment]
    if p_adjusted < ALPHA and not contrast.guard:
        result = (
            f"{speed(effect.gain)} by {effect.metric.name} (95 % {interval(effect)}), {name} p "
            f"{probability(p_adjusted)} of {family}"
        )
        if contrast.untouched:
            return "not comparable", (
                f"nothing was changed in this arm, yet it differs: {result}. The machine caused "
                "that, not a tweak."
            )
        word: Verdict = "improved" if effect.gain > 0 else "regressed"
        return word, f"{result}."
    if effect.p_equivalent < ALPHA:
        ends = f"{number(effect.low90)} to {percent(effect.high90)}"
        return "equivalent", (
            f"the 90 % interval {ends} by {effect.metric.name} lies inside the margin of "
            f"{unsigned(margin)}."
        )
    seen = (
        "" if contrast.mde is None else f"; one of {unsigned(contrast.mde)} would be, 4 times in 5"
    )
    alone = f" (p {probability(effect.p)} before {name}'s adjustment for {family} contrasts)"
    before = alone if effect.p < ALPHA and family > 1 else ""
    return "inconclusive", f"no difference shown{seen}{before}."


def without_guards(contrasts: Sequence[Comparison]) -> Sequence[Comparison]:
    return [contrast for contrast in contrasts if not contrast.guard] or contrasts


def inside_margin(effect: Effect, margin: float) -> bool:
    """Return whether an effect, however certain, is smaller than the study's margin."""
    return 1 / (1 + margin) < 1 + effect.gain < 1 + margin


def parts_ways(effect: Effect, other: Effect) -> bool:
    """Return whether another metric contradicts a gain: its 95 % interval excludes that gain.

    The interval must also show no effect in the same direction.
    """
    same = other.low > 0 if effect.gain > 0 else other.high < 0
    return not other.low <= effect.gain <= other.high and not same


SEEN = frozenset({"improved", "regressed", "equivalent"})


@dataclass(frozen=True, slots=True)
class Unseen:
    """Reasons why no contrast of a run is decided. Shares are fractions; None is not recorded.

    `aa_log_sd`: the scatter of two untouched arms' log ratio; `mde`: of the contrasts with the most
    `blocks`; `others`: the share of all CPUs that other programs used; all are medians. The
    `margin` takes `plan_blocks` and `plan_s` seconds.
    """

    contrasts: int
    blocks: int
    margin: float
    reason: str
    aa_log_sd: float | None
    mde: float | None
    others: float | None
    plan_blocks: int | None
    plan_s: float | None
    on_this_machine: bool | None
    sentence: str


def unseen(comparisons: Sequence[Comparison], run: Run) -> Unseen | None:
    """Return why a run detected nothing; None if it detected something or cannot be expected to."""
    contrasts = [guard for guard in without_guards(comparisons) if not guard.untouched]
    if (
        not contrasts
        or not run.replicated
        or any(comparison.verdict in SEEN for comparison in contrasts)
    ):
        return None
    refused = all(comparison.verdict == "not comparable" for comparison in contrasts)
    blocks_met = max(comparison.pairs for comparison in contrasts)
    like = [
        comparison for comparison in contrasts if comparison.pairs == blocks_met and not refused
    ]
    mdes = [comparison.mde for comparison in like if comparison.mde is not None]
    untouched = [
        comparison.primary.log_sd
        for comparison in comparisons
        if comparison.untouched and comparison.primary
    ]
    others = [share for cell in run.cells if (share := share_of_others(run, cell)) is not None]
    margin = min(comparison.margin for comparison in contrasts)
    from analysis import studies

    plans = (
        plan
        for blocks_for in studies.hooks("blocks_for")
        if mdes and (plan := blocks_for(run, margin))
    )
    blocks, takes_s, here = next(plans, (None, None, None))
    result = Unseen(
        contrasts=len(contrasts),
        blocks=blocks_met,
        margin=margin,
        reason=Counter(comparison.reason for comparison in contrasts).most_common(1)[0][0],
        aa_log_sd=median(untouched) if untouched else None,
        mde=median(mdes) if mdes else None,
        others=median(others) if others else None,
        plan_blocks=blocks,
        plan_s=takes_s,
        on_this_machine=here,
        sentence="",
    )
    return replace(result, sentence=_sentence(result))


def _sentence(one: Unseen) -> str:
    several = f"none of {one.contrasts} contrasts is decided"
    head = f"No effect was found: {'the contrast is undecided' if one.contrasts == 1 else several}."
    if one.mde is None:
        return f"{head} Most often: {one.reason}"
    noise = (
        ""
        if one.aa_log_sd is None
        else f"the A/A ratio varies by {unsigned(one.aa_log_sd)} (SD) from block to block, so "
    )
    busy = "" if one.others is None else f"; other programs used {unsigned(one.others)} of the CPUs"
    least = unsigned(one.mde) + (" or more" if one.mde < LARGEST else "")
    seen = f"{noise}{one.blocks} blocks would show differences of {least} (median MDE){busy}."
    return f"{head} {seen[0].upper()}{seen[1:]} {_way_out(one)}".rstrip()


def _way_out(one: Unseen) -> str:
    if one.on_this_machine is None:
        return ""
    if not one.on_this_machine:
        return f"{unsigned(one.margin)} cannot be found on this machine within a day (`plan`)."
    time = "" if one.plan_s is None else f", {duration(one.plan_s)}"
    return f"Finding {unsigned(one.margin)} takes {one.plan_blocks} blocks{time} (`plan`)."
