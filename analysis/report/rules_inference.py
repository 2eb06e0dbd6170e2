"""Rules about what may be concluded: intervals, normality, sound comparison (5, 6, 7)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from analysis.stats.adjust import holm
from analysis.stats.effect import log_gains
from analysis.verdict import GUARD, NAMES, ONE_RUN, without_guards
from analysis.wording import probability, unsigned
from control.t_test import ALPHA

from .answers import is_control
from .subject import paired_values

if TYPE_CHECKING:
    from analysis.terms import Comparison

    from .subject import Answer, Subject


def intervals_are_given(subject: Subject) -> Answer:
    """Rule 5: are the results deterministic? If not, each carries a confidence interval."""
    if not subject.comparisons:
        return "not applicable", subject.nothing
    bare = [comparison for comparison in subject.comparisons if comparison.primary is None]
    if bare and not subject.compared:
        reason = ONE_RUN if any(comparison.observed is not None for comparison in bare) else f"{subject.run.design.blocks} block(s)"
        return "not met", f"no comparison has an interval ({reason}): how far two runs of the same differ is not known."
    spreads = sorted(effect.log_sd for _, effect in subject.compared)
    low, high = unsigned(spreads[0]).removesuffix(" %"), unsigned(spreads[-1])
    text = f"not deterministic: ratios of equal blocks scatter by {low} to {high}; {len(spreads)} comparisons carry a 95 % interval"
    if bare:
        return "met", f"{text}, {len(bare)} have neither interval nor verdict (the table says why)."
    return "met", f"{text}."


def normality_is_checked(subject: Subject) -> Answer:
    """Rule 6: normality is not assumed but looked at, by Shapiro and Wilk's test of each comparison's log ratios, Holm-adjusted."""
    from scipy.stats import shapiro  # noqa: PLC0415  # half a second that the other rules need not pay

    if not subject.compared:
        return "not applicable", subject.nothing
    tested: list[tuple[str, float]] = []
    for comparison, effect in subject.compared:
        gains = log_gains(effect.metric, *paired_values(subject.run, comparison, effect.metric))
        if len(gains) < 3:
            return "not met", f"too few blocks to look at the distribution of {comparison.workload} × {comparison.tweakset}."
        tested.append((f"{comparison.workload} × {comparison.tweakset}", float(shapiro(gains).pvalue)))
    adjusted = holm([p for _, p in tested])
    odd = [f"{name} (p {probability(p)})" for (name, _), p in zip(tested, adjusted, strict=True) if p < ALPHA]
    if odd:
        return "not met", f"the block ratios are not normal for {', '.join(odd)}: the t interval there is doubtful, look at the raw points."
    blocks = min(effect.n_baseline for _, effect in subject.compared)
    text = (
        f"Shapiro-Wilk on the log ratios of {len(tested)} comparisons finds no departure (smallest adjusted p {probability(min(adjusted))})"
    )
    return "met", f"{text}; with {blocks} blocks only gross ones would show."


def comparison_is_sound(subject: Subject) -> Answer:
    """Rule 7: compared soundly: replicated, interleaved, adjusted for the number of questions, and with a clean control."""
    if not subject.comparisons:
        return "not applicable", subject.nothing
    if not subject.compared:
        return (
            "not met",
            f"no comparison has replicates enough ({ONE_RUN})." if not subject.run.replicated else "no comparison was possible.",
        )
    problems = [*_not_interleaved(subject), *_bad_controls(subject)]
    if problems:
        return "not met", " ".join(problems)
    controls = [comparison for comparison in subject.comparisons if is_control(subject.run, comparison)]
    one = without_guards([comparison for comparison, _ in subject.compared])[0]
    text = f"paired t-test on blocks in random order, {NAMES[one.adjustment]} over {one.family} comparisons, no verdict below 3 blocks"
    if not controls:
        return "not met", f"{text}; but no untouched control (stock-again) was run beside it."
    return "met", f"{text}; the untouched control differs nowhere."


def _bad_controls(subject: Subject) -> list[str]:
    odd = [
        comparison
        for comparison in subject.comparisons
        if is_control(subject.run, comparison) and (_differs(comparison) or comparison.workload in subject.doubted)
    ]
    return [
        f"the control differs from {comparison.baseline} under {comparison.workload}, though nothing was changed." for comparison in odd
    ]


def _differs(comparison: Comparison) -> bool:
    level = GUARD if comparison.guard else ALPHA
    return comparison.primary is not None and comparison.p_adjusted is not None and comparison.p_adjusted < level


def _not_interleaved(subject: Subject) -> list[str]:
    """Whether each block's cells of a workload ran together: before the next block began, after the one before had ended."""
    spans: dict[tuple[str, int], list[int]] = {}
    for cell in subject.run.cells:
        spans.setdefault((cell.study, cell.block), []).append(cell.order)
    for study in subject.run.studies:
        blocks = sorted((min(orders), max(orders)) for (name, _), orders in spans.items() if name == study)
        if any(end > start for (_, end), (start, _) in pairwise(blocks)):
            return [f"the blocks of {study} were not run one after the other: drift is part of every difference."]
    return []
