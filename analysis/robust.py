"""A second opinion on each contrast that assumes no distribution: is the verdict owed to one odd block?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.stats import wilcoxon

from control.t_test import ALPHA

from .stats.effect import log_gains
from .stats.ranks import centre, mann_whitney, shift, sign_flip_p
from .wording import percent, probability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .terms import Comparison, Effect


@dataclass(frozen=True, slots=True)
class Opinion:
    """The same contrast by ranks. `gain` is the Hodges-Lehmann estimate, a fraction; `p` is two-sided and not adjusted.

    `confidence` is what the interval really has: with few units order statistics do not reach 95 %. `flip_p` is the exact sign-flip
    test of paired blocks, which asks for the mean as t does, but assumes no distribution; None where there are no pairs.
    """

    test: str
    gain: float
    low: float
    high: float
    confidence: float
    p: float
    flip_p: float | None = None


def opinion(effect: Effect) -> Opinion:
    flip_p = None
    if effect.design != "two-sample":
        gains = log_gains(effect.metric, effect.values_baseline, effect.values_candidate)
        result, p, test = centre(gains), float(wilcoxon(gains).pvalue), "signed-rank"
        flip_p = sign_flip_p(gains)
    else:
        sign = 1.0 if effect.metric.better == "higher" else -1.0
        base, after = ([sign * math.log(value) for value in arm] for arm in (effect.values_baseline, effect.values_candidate))
        result, p, test = shift(after, base), mann_whitney(after, base).p, "Mann-Whitney"
    gain, low, high = (math.expm1(value) for value in (result.estimate, result.low, result.high))
    return Opinion(test, gain, low, high, result.confidence, p, flip_p)


def lines(comparisons: Sequence[Comparison]) -> list[str]:
    """Write the second opinions, one line a contrast; where the two tests part ways at the 5 % level the line says so."""
    said = []
    for comparison in comparisons:
        effect = comparison.primary
        if effect is None:
            continue
        if effect.design == "two-sample" and comparison.relative_to is None:
            said.append(
                f"{comparison.workload}, {comparison.tweakset}: none: ranks take runs to be independent, and at different "
                "times they may not be."
            )
            continue
        other = opinion(effect)
        parted = (other.p < ALPHA) != (effect.p < ALPHA)
        said.append(
            f"{comparison.workload}, {comparison.tweakset}: {percent(other.gain)} [{percent(other.low)}, {percent(other.high)}], "
            f"{other.test} p {probability(other.p)}"
            + (f", sign-flip p {probability(other.flip_p)}" if other.flip_p is not None else "")
            + f" (t: {probability(effect.p)})"
            + (": the two part ways, look at the blocks" if parted else "")
        )
    return said
