"""The one place where numbers become a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from control.t_test import ALPHA

from .wording import interval, number, percent, probability, speed, unsigned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Comparison, Effect, Verdict

# The p below which two untouched arms differ too much to be the baseline together. Where both are sound the
# guard tells nothing of the contrasts (their difference and their mean are independent) and costs a workload,
# at .01 in one run of a hundred; at .05 a run of four workloads would lose one every fifth time. Where one of
# the two is off, their mean is off by half of that, and the guard sees all of it: a false claim gets through
# in a quarter of such runs at worst; without it, or with stock alone, in half of them and more (`calibrate`).
GUARD = 0.01
ONE_RUN = "1 run per configuration, run-level variance not estimable"
NAMES = {"holm": "Holm", "hochberg": "Hochberg", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}


def judge(contrast: Comparison, effect: Effect, p_adjusted: float) -> tuple[Verdict, str]:
    """Find the verdict on one contrast and the sentence that justifies it.

    improved / regressed: adjusted p below 0.05. equivalent: both one-sided tests below 0.05, that is, the 90 % interval inside the
    margin. inconclusive: neither, with the smallest gain that would have been called. not comparable: an arm that changed nothing
    and differs all the same, because whatever made the difference, it was no tweak; a guard at `GUARD`.
    """
    if contrast.guard and effect.p < GUARD:
        return "not comparable", (
            f"{contrast.tweakset} changes nothing and differs from {contrast.baseline}: {speed(effect.gain)} "
            f"by {effect.metric.name} (95 % {interval(effect)}), p {probability(effect.p)}. "
            f"The machine did that, so nothing is concluded under {contrast.workload}."
        )
    family, margin, name = contrast.family, contrast.margin, NAMES[contrast.adjustment]
    if p_adjusted < ALPHA and not contrast.guard:
        result = f"{speed(effect.gain)} by {effect.metric.name} (95 % {interval(effect)}), {name} p {probability(p_adjusted)} of {family}"
        if contrast.untouched:
            return "not comparable", f"nothing was changed in this arm, yet it differs: {result}. The machine did that, not a tweak."
        word: Verdict = "improved" if effect.gain > 0 else "regressed"
        return word, f"{result}."
    if effect.p_equivalent < ALPHA:
        ends = f"{number(effect.low90)} to {percent(effect.high90)}"
        return "equivalent", f"the 90 % interval {ends} by {effect.metric.name} lies inside the margin of {unsigned(margin)}."
    seen = "" if contrast.mde is None else f"; one of {unsigned(contrast.mde)} would be, 4 times in 5"
    alone = f" (p {probability(effect.p)} before {name}'s adjustment for {family} contrasts)"
    before = alone if effect.p < ALPHA and family > 1 else ""
    return "inconclusive", f"no difference shown{seen}{before}."


def without_guards(contrasts: Sequence[Comparison]) -> Sequence[Comparison]:
    return [contrast for contrast in contrasts if not contrast.guard] or contrasts


def inside_margin(effect: Effect, margin: float) -> bool:
    """Whether an effect, however certain, is smaller than what the study calls a difference."""
    return 1 / (1 + margin) < 1 + effect.gain < 1 + margin
