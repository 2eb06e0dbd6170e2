"""The gate: is a candidate slower than allowed? Yes, no, or can't tell; it never passes by default.

A pass needs the one-sided 95 % upper bound of the loss below the limit (non-inferiority) in every
contrast, so no adjustment is needed (intersection-union test). A regression needs a significant
loss, after Holm's adjustment for all questions, and a best estimate above the limit. An event that
did not occur in the blocks cannot be excluded: of a stall in one process of eight, eight blocks
show none one time in three.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from analysis.answer import Answer, Column, Line, Section, Table, Tone, Word
from analysis.arms import (
    TOGETHER,
    Arm,
    both,
    control_name,
    met,
    same_runs,
    studies,
    without_candidate,
)
from analysis.checks import warnings_of
from analysis.compare import CompareOptions, compare, compare_arms, failed_guards
from analysis.labels import label_of
from analysis.pairing import primary_of
from analysis.stats.effect import holm
from analysis.studies import hooks
from analysis.terms import AGAIN, Comparison, Effect, Metric, Refused
from analysis.wording import (
    counted,
    exactly,
    interval,
    joined_names,
    number,
    percent,
    probability,
    speed,
)
from control.names import first_few, undigested
from control.t_test import ALPHA, POWER, t_quantile

from . import limits as limits_file

if TYPE_CHECKING:
    from .limits import Limits


Ruling = Literal["pass", "regression", "undecided"]


@dataclass(frozen=True, slots=True)
class Ruled:
    """The gate's ruling on one contrast in one metric.

    comparison, metric: what was judged
    ruling, reason: `pass`, `regression` or `undecided`, and why
    limit, loss, loss_high: the largest loss allowed; the loss found, below 0 if faster; its
        one-sided 95 % upper bound. None if nothing could be compared
    blocks_needed: about how many blocks (or runs per arm) would let a candidate without a loss pass
    """

    comparison: Comparison
    metric: Metric
    limit: float
    ruling: Ruling
    reason: str
    loss: float | None = None
    loss_high: float | None = None
    blocks_needed: int | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    baseline: str
    candidate: str
    rulings: tuple[Ruled, ...]
    ruling: Ruling
    warnings: tuple[str, ...] = ()


FEWEST_BLOCKS, MOST_BLOCKS = 3, 10_000
UNITS = {
    "paired": "blocks",
    "switched": "processes, or pairs of segments if there are few processes",
    "two-sample": "runs per arm",
}
Question = tuple["Comparison", "Metric", "Effect | None"]


def gate(
    comparisons: Iterable[Comparison],
    limits: Limits,
    arms: tuple[str, str],
    warnings: Sequence[str] = (),
    unquiet: Mapping[str, str] | None = None,
) -> Gate:
    """Rule on every comparison in every gated metric; `arms` names baseline and candidate.

    An A/A comparison is judged like any other. Under an `unquiet` workload nothing passes.
    """
    questions = [
        question for comparison in comparisons for question in _questions(comparison, limits)
    ]
    adjusted = iter(holm([effect.p for _, _, effect in questions if effect is not None]))
    rulings = []
    for comparison, metric, effect in questions:
        limit = limits.limit_of(comparison.workload, metric.name)
        p = 1.0 if effect is None else next(adjusted)
        ruled = _ruled(comparison, metric, effect, limit, p)
        doubt = (unquiet or {}).get(comparison.workload)
        if doubt is not None and ruled.ruling == "pass":
            ruled = replace(ruled, ruling="undecided", reason=f"{ruled.reason} {doubt}")
        rulings.append(ruled)
    outcomes = {ruled.ruling for ruled in rulings}
    overall: Ruling = "pass" if outcomes == {"pass"} else "undecided"
    overall = "regression" if "regression" in outcomes else overall
    return Gate(*arms, tuple(rulings), overall, tuple(warnings))


def _questions(comparison: Comparison, limits: Limits) -> list[Question]:
    effects = {
        effect.metric.name: effect
        for effect in (comparison.primary, comparison.second, *comparison.others)
        if effect is not None
    }
    declared = {"primary": comparison.primary, "second": comparison.second}
    questions: dict[str, Question] = {}
    for word in limits.metrics_of(comparison.workload):
        effect = declared.get(word) or effects.get(word)
        metric = comparison.primary_metric if word == "primary" else Metric(word, "lower")
        metric = effect.metric if effect else metric
        questions[metric.name] = (comparison, metric, effect)
    return list(questions.values())


def _ruled(
    comparison: Comparison, metric: Metric, effect: Effect | None, limit: float, p: float
) -> Ruled:
    undecided = Ruled(comparison, metric, limit, "undecided", comparison.reason)
    if effect is None:
        missing = f"{metric.name} was not measured in both arms."
        return undecided if comparison.primary is None else replace(undecided, reason=missing)
    loss, high = -effect.gain, -effect.low90
    undecided = replace(undecided, loss=loss, loss_high=high)
    result = f"{speed(effect.gain)} by {metric.name} (95 % {interval(effect)})"
    if comparison.verdict == "not comparable" or comparison.outlasts:
        return undecided
    if p < ALPHA and loss > limit:
        reason = f"{result}, Holm p {probability(p)}: the loss is more than {exactly(limit)}."
        return replace(undecided, ruling="regression", reason=reason)
    if comparison.failed:
        failed = counted(comparison.failed, "cell")
        reason = f"{failed} failed, so the remaining cells are not a fair sample of the arms."
        return replace(undecided, reason=reason)
    if high < limit:
        reason = f"{result}: the loss is at most {percent(max(high, 0.0)).lstrip('+')}."
        return replace(undecided, ruling="pass", reason=reason)
    needed = blocks_needed(effect, limit)
    more = f"; a candidate without a loss would pass with about {needed} {UNITS[effect.design]}"
    reason = f"{result}: a loss of {exactly(limit)} cannot be excluded{more if needed else ''}."
    return replace(undecided, reason=reason, blocks_needed=needed)


def blocks_needed(effect: Effect, limit: float) -> int | None:
    """Return the blocks (or runs per arm) with which a lossless candidate passes 4 times in 5.

    None if thousands would not. Solves (t_0.95 + t_0.80) · s / √n = -ln(1 - limit); two samples
    have √(2/n) and twice the degrees of freedom.
    """
    edge = -math.log1p(-limit)
    paired = effect.design != "two-sample"

    def reach(n: int) -> float:
        df = n - 1 if paired else 2 * n - 2
        spread = effect.log_sd * math.sqrt((1 if paired else 2) / n)
        return (t_quantile(1 - ALPHA, df) + t_quantile(POWER, df)) * spread

    counts = range(FEWEST_BLOCKS, MOST_BLOCKS + 1)
    at = bisect_left(counts, -edge, key=lambda n: -reach(n))
    return counts[at] if at < len(counts) else None


EXIT = {"pass": 0, "regression": 1, "undecided": 3}
UNDER_NO_TEST = "the limits name this workload, and the candidate was not run under it."


def judge(
    base: Arm,
    candidate: Arm,
    limits: Limits,
    relative_to: str | None = None,
    workloads: tuple[str, ...] = (),
) -> Gate:
    """Compare two arms and rule on the result. Raises: Refused, if there is nothing to compare."""
    base, itself = without_candidate(base, candidate)
    runs = [run for arm in (base, candidate) for run in arm.runs]
    lost = limits_file.unknown(
        limits,
        {name for run in runs for name in run.workloads},
        {name for run in runs for name in run.tweaksets},
        {name for run in runs for cell in run.cells for name in cell.metrics},
    )
    if lost:
        raise Refused(lost[0])
    if same_runs(base, candidate) and len(base.runs) > 1:
        # A glob that also matched last week's runs would judge their mean.
        raise Refused(
            f"{base.label}: {len(base.runs)} runs have both arms, from {base.runs[0].origin} on; "
            "name the run to be judged."
        )
    tweakset = limits.baseline_tweakset or (
        base.runs[0].baseline if same_runs(base, candidate) else None
    )
    if limits.baseline_tweakset and base.tweakset not in {None, limits.baseline_tweakset}:
        raise Refused(
            f"the baseline is {limits.baseline_tweakset!r} in the limits but {base.tweakset!r} in "
            "the command: omit one."
        )
    if base.tweakset is None and tweakset is not None:
        declared = limits.baseline_tweakset is None
        base = replace(base, tweakset=tweakset, label=f"{base.label}:{tweakset}", declared=declared)
    under = {name for run in runs for name in run.workloads}
    metrics = {metric for workload in under for metric in limits.metrics_of(workload)}
    workloads = joined_names(workloads, under)
    checks = [
        one
        for run in runs
        if run.baseline in run.tweaksets and (same_runs(base, candidate) or relative_to)
        for one in compare(run, options=CompareOptions(details=False))
        if one.untouched
    ]
    apart = failed_guards(checks)
    options = CompareOptions(
        doubted={
            (name, one): apart[name] for name in apart for run in runs for one in run.tweaksets
        },
        relative_to=relative_to,
        metrics=tuple(metrics - {"primary", "second"}),
        tweaksets=limits.tweaksets or (),
        workloads=workloads,
    )
    comparisons = compare_arms(base, [candidate], options)
    named = bool(candidate.tweakset or limits.tweaksets)
    judged = [
        one
        for one in (*comparisons, *_gone(base, candidate, options))
        if named or not _check_of_the_run(one)
    ]
    missing = limits.workloads - {comparison.workload for comparison in judged}
    judged += [_unjudged(base, candidate, workload, UNDER_NO_TEST) for workload in sorted(missing)]
    under = {comparison.workload for comparison in comparisons}
    of_run = [one for one in comparisons if not one.untouched]
    of_run += [check for check in checks if check.workload in under]
    warnings = [
        *itself,
        *(line for run in runs for line in warnings_of(run, of_run)),
        *_new(base, candidate, options),
    ]
    against = ", ".join(
        dict.fromkeys(comparison.baseline for comparison in judged if comparison.baseline_arms)
    )
    label = f"{base.label.removesuffix(f':{base.tweakset}')}:{against}" if against else base.label
    unquiet = {
        workload: reason
        for run in candidate.runs
        for reasons_of in hooks("unquiet")
        for workload, reason in reasons_of(run).items()
    }
    return gate(judged, limits, (label, candidate.label), tuple(dict.fromkeys(warnings)), unquiet)


def _check_of_the_run(comparison: Comparison) -> bool:
    return comparison.tweakset == AGAIN and (
        comparison.baseline_run == comparison.candidate_run or comparison.relative_to is not None
    )


def _gone(base: Arm, candidate: Arm, options: CompareOptions) -> list[Comparison]:
    gone: list[Comparison] = []
    if same_runs(base, candidate):
        return gone
    for study in studies([base]):
        arms = met(candidate, study)
        controls = _controls(base, candidate, study, options)
        for workload, names in met(base, study).items():
            if options.workloads and workload not in options.workloads:
                continue
            # If a side names its tweak set, only the workload must exist.
            own = [name for name in names if base.tweakset in (None, name)]
            for name in [candidate.tweakset] if candidate.tweakset else own:
                left_out = name in controls or (options.tweaksets and name not in options.tweaksets)
                whole = base.tweakset and not candidate.tweakset
                if left_out or name in arms.get(workload, ()) or (whole and workload in arms):
                    continue
                reason = "the candidate lacks it, but the baseline has it."
                missing = _unjudged(base, candidate, workload, reason)
                gone.append(replace(missing, baseline=base.tweakset or name, tweakset=name))
    return gone


def _unjudged(base: Arm, candidate: Arm, workload: str, reason: str) -> Comparison:
    run = next(run for run in (*base.runs, *candidate.runs) if workload in run.workloads)
    study = next(iter(run.studies.values()))
    return Comparison(
        study=study.name,
        workload=workload,
        baseline=base.tweakset or "",
        tweakset=candidate.tweakset or "",
        verdict="not comparable",
        reason=reason,
        blocks=study.blocks,
        margin=study.margin,
        primary_metric=primary_of(run, study.name, workload),
        baseline_run=base.label,
        candidate_run=candidate.label,
    )


def _controls(base: Arm, candidate: Arm, study: str, options: CompareOptions) -> list[str]:
    return (control_name(both(base, candidate), study, options.relative_to) or "").split(TOGETHER)


def _new(base: Arm, candidate: Arm, options: CompareOptions) -> list[str]:
    if same_runs(base, candidate) or base.tweakset or candidate.tweakset:
        return []
    pairs, known = (
        {
            f"{name} under {workload}": study
            for study in studies([arm])
            for workload, names in met(arm, study).items()
            for name in names
        }
        for arm in (candidate, base)
    )
    new = [
        text
        for text, study in pairs.items()
        if text not in known
        and text.partition(" under ")[0] not in _controls(base, candidate, study, options)
    ]
    return [f"not judged because the baseline lacks them: {first_few(new, 5)}."] if new else []


TONES: dict[Ruling, Tone] = {"regression": "bad", "undecided": "open", "pass": "good"}
DOUBT = "the change is not shown to be within the limit, nor beyond it. This is not a pass."
MOST_DECIMALS = 4
MOST_PASSES = 10  # further ones are folded
COLUMNS = (
    *(Column(name, left=True) for name in ("workload", "tweak set", "metric", "ruling")),
    Column("n", spare=3),
    *(Column(f"{name}\n%") for name in ("change", "at worst")),
    Column("allowed\n%", spare=2),
    Column("see", left=True),
)
LEGEND = (
    ("change", "+ is faster, - slower."),
    ("at worst", "the one-sided 95 % bound of the change."),
    ("can't tell", DOUBT),
    (
        "n",
        (
            "blocks complete in both arms, of those planned; if the arms share none, how many "
            "cells or runs each has (8+6)."
        ),
    ),
)


def headline(gate: Gate) -> str:
    of = counted(len(gate.rulings), "contrast")
    count = sum(ruled.ruling == gate.ruling for ruled in gate.rulings)
    if gate.ruling == "regression":
        return f"Regression: {count} of {of} slower than allowed."
    if gate.ruling == "pass":
        return f"Pass: {of} compared, none slower than allowed."
    if not gate.rulings:
        return "Can't tell: nothing was compared, so nothing was shown."
    return f"Can't tell: {count} of {of} not shown within the limit, none beyond it."


def answer(gate: Gate) -> Answer:
    """Make the answer: rulings other than pass first, then reasons and notes; passes are folded."""
    ordered = [ruled for word in TONES for ruled in gate.rulings if ruled.ruling == word]
    passes = sum(ruled.ruling == "pass" for ruled in ordered)
    shown = len(ordered) - (passes if passes > MOST_PASSES else 0)
    marks: dict[str, int] = {}
    columns = list(COLUMNS)
    columns[2] = replace(COLUMNS[2], spare=len({ruled.metric for ruled in ordered}) == 1)
    sections = []
    for title, rulings in (("", ordered[:shown]), (f"{passes} passes", ordered[shown:])):
        if rulings:
            known = len(marks)
            rows = [_row(ruled, marks) for ruled in rulings]
            notes = [Line(line, f"({mark})") for line, mark in marks.items() if mark > known]
            if title:  # what only passes refer to is folded with them
                sections.append(Section(title, [Table(columns, rows), *notes], folded=True))
            else:
                sections += [Section("", [Table(columns, rows)]), Section("", notes)]
    return Answer(
        headline(gate),
        findings=[Line(gate.candidate, "candidate"), Line(gate.baseline, "baseline")],
        sections=sections,
        warnings=gate.warnings,
        legend=LEGEND,
        data={
            name: getattr(gate, name)
            for name in ("baseline", "candidate", "ruling", "warnings", "rulings")
        },
    )


def _row(ruled: Ruled, marks: dict[str, int]) -> list[object]:
    lines = [] if ruled.ruling == "pass" else [ruled.reason]
    see = ",".join(
        str(marks.setdefault(line, len(marks) + 1)) for line in (*lines, *ruled.comparison.notes)
    )
    return [
        undigested(ruled.comparison.workload),
        ruled.comparison.tweakset,
        label_of(ruled.metric),
        Word(ruled.ruling, TONES[ruled.ruling]),
        units(ruled),
        *(figure or None for figure in figures(ruled)),
        see or None,
    ]


def figures(ruled: Ruled) -> tuple[str, str, str]:
    """Write change, lower bound and limit in percent, to the same precision; empty if unknown."""
    amounts = [value for value in (ruled.loss, ruled.loss_high) if value is not None]
    for decimals in range(1, MOST_DECIMALS + 1):
        limit, *rounded = (round(100 * value, decimals) for value in (ruled.limit, *amounts))
        exact = math.isclose(limit, 100 * ruled.limit, rel_tol=1e-9)
        if exact and all(
            short != limit or value == ruled.limit
            for short, value in zip(rounded, amounts, strict=True)
        ):
            break
    change, worst = (
        "" if value is None else number(-value, decimals) for value in (ruled.loss, ruled.loss_high)
    )
    return change, worst, number(-ruled.limit, decimals)


def units(ruled: Ruled) -> str:
    """Write the number of units: `7/8` complete blocks, or `5+6` cells or runs without blocks."""
    effect = ruled.comparison.primary
    if effect is not None and effect.design == "two-sample":
        return f"{effect.n_baseline}+{effect.n_candidate}"
    return f"{ruled.comparison.pairs}/{ruled.comparison.blocks}"
