"""The one place where numbers become a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .stats.effect import ALPHA
from .wording import interval, number, percent, probability, speed, unsigned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Comparison, Effect, Verdict

# The p below which two untouched arms differ too much to be a baseline. A sound workload is lost once in a hundred runs, which is cheap;
# and .01 is sharp enough: a copy that is off by d moves their mean by d / 2 alone, at √1.5 σ a block, while the guard sees all of d at √2 σ:
# 1.7 standard errors for each one of a false claim, which Holm lets through at far less than .01 (`calibrate` measures it).
GUARD = 0.01
ONE_RUN = "1 run per configuration, run-level variance not estimable"
NAMES = {"holm": "Holm", "hochberg": "Hochberg", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}


def judge(contrast: Comparison, effect: Effect, p_adjusted: float) -> tuple[Verdict, str]:
    """Find the verdict on one contrast and the sentence that justifies it.

    improved / regressed: adjusted p below 0.05. equivalent: both one-sided tests below 0.05, that is, the 90 % interval inside the
    margin. inconclusive: neither, with the smallest gain that would have been called. not comparable: an arm that changed nothing
    and differs all the same, because whatever made the difference, it was no tweak. The guard differs where its own p is below `GUARD`.
    """
    if contrast.guard and effect.p < GUARD:
        return "not comparable", (
            f"{contrast.tweakset} changes nothing and differs from {contrast.baseline}: {speed(effect.gain)} by {effect.metric.name} "
            f"(95 % {interval(effect)}), p {probability(effect.p)}. The machine did that, so nothing is concluded under {contrast.workload}."
        )
    family, margin, name = contrast.family, contrast.margin, NAMES[contrast.adjustment]
    if p_adjusted < ALPHA and not contrast.guard:
        found = f"{speed(effect.gain)} by {effect.metric.name} (95 % {interval(effect)}), {name} p {probability(p_adjusted)} of {family}"
        if contrast.untouched:
            return "not comparable", f"nothing was changed in this arm, yet it differs: {found}. The machine did that, not a tweak."
        word: Verdict = "improved" if effect.gain > 0 else "regressed"
        return word, f"{found}."
    if effect.p_equivalent < ALPHA:
        ends = f"{number(effect.low90)} to {percent(effect.high90)}"
        return "equivalent", f"the 90 % interval {ends} by {effect.metric.name} lies inside the margin of {unsigned(margin)}."
    seen = "" if contrast.mde is None else f"; one of {unsigned(contrast.mde)} would be, 4 times in 5"
    before = f" (p {probability(effect.p)} before {name}'s adjustment for {family} contrasts)" if effect.p < ALPHA and family > 1 else ""
    return "inconclusive", f"no difference shown{seen}{before}."


def without_guards(contrasts: Sequence[Comparison]) -> Sequence[Comparison]:
    """Leave out the contrasts between arms of the baseline; where there is nothing else, they stay."""
    return [one for one in contrasts if not one.guard] or contrasts


def inside_margin(effect: Effect, margin: float) -> bool:
    """Whether an effect, however certain, is smaller than what the study calls a difference."""
    return 1 / (1 + margin) < 1 + effect.gain < 1 + margin
