"""Tweak sets against a baseline, in one or several runs: pair, estimate, adjust, judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from control.names import undigested
from control.t_test import ALPHA, LARGEST_LOG, detectable_errors

from .arms import (
    BASELINE,
    TOGETHER,
    Arm,
    Side,
    Sides,
    both,
    control_name,
    declared_baseline,
    met,
    must_have,
    no_copies,
    parts,
    same_runs,
    studies,
    without_candidate,
)
from .checks import (
    must_be_same_work,
    must_be_sound,
    must_share_machines,
    same_machine,
    share_of_others,
)
from .labels import TOLD_RATE, label_of
from .pairing import (
    ONE_RUN_AN_ARM,
    Reader,
    effect_of,
    enough,
    metric_named,
    must_match,
    odd_notes,
    pair,
    pair_notes,
    primary_of,
    run_notes,
)
from .stats.effect import ADJUSTMENTS
from .terms import Cell, Comparison, Effect, Metric, NotComparable, Refused, Run, SavedTweakSet
from .wording import (
    LARGEST,
    bracket,
    duration,
    interval,
    joined_names,
    number,
    percent,
    probability,
    speed,
    unsigned,
)

if TYPE_CHECKING:
    from .pairing import Pairing, Unit
    from .terms import Verdict

# The p below which two untouched arms differ too much to be the baseline together. Of sound arms it
# costs a workload in one run of a hundred; if one arm is off, a false claim gets through in a
# quarter of such runs at worst, without the guard in half of them and more (docs/verdicts.md).
GUARD = 0.01
ONE_RUN = "1 run per configuration, run-level variance not estimable"
NAMES = {"holm": "Holm", "bh": "Benjamini-Hochberg"}
CONTROL = "{} against {} alone is a control: its p is neither adjusted nor counted in adjustments."
DRIFTED_P, FEWEST_STEPS = 0.01, 4
THROUGHPUT = Metric("throughput_samples_per_s", "higher")
# The low quantile of step time shown beside it: the first of these that the cells have.
STEP_TIMES = (Metric("step_time_p10_s", "lower"), Metric("step_time_q1_s", "lower"))


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """Options of contrasts and their adjustment.

    adjustment: one of `ADJUSTMENTS`; holm for declared contrasts, bh for a screen
    relative_to: a tweak set, or `BASELINE`, whose cell in the same block divides each cell
    tweaksets, workloads: the only ones to compare; empty for all
    metrics: names of further metrics to compare
    doubted: by workload and tweak set, the reason why no conclusion is drawn
    details: whether contrasts have notes and effects in other metrics
    """

    adjustment: str = "holm"
    metrics: tuple[str, ...] = ()
    relative_to: str | None = None
    tweaksets: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    doubted: Mapping[tuple[str, str], str] = field(default_factory=dict)
    details: bool = True


def compare(
    run: Run, baseline: str | None = None, options: CompareOptions = CompareOptions()
) -> list[Comparison]:
    """Compare every tweak set of one run with the baseline, under each workload of each study.

    The family of the adjustment is a study. If it declares several arms its baseline, and none is
    named here, they form the baseline; contrasts between them are in no family.

    Raises: UnknownName, if the run has no such baseline or tweak set.

    Example:
        >>> for one in compare(load("exp1.json")):
        ...     print(one.workload, one.tweakset, one.verdict)

    """
    name = run.baseline if baseline is None else baseline
    must_have(run, "tweak set", [name], run.tweaksets)
    base = Arm(run.origin, (run,), name, declared=baseline is None)
    return compare_arms(base, [Arm(run.origin, (run,))], options)


def compare_arms(
    base: Arm, candidates: Sequence[Arm], options: CompareOptions = CompareOptions()
) -> list[Comparison]:
    """Compare each candidate with the base; if no tweak set is named, pair tweak sets by name.

    Raises: Refused, if the arms share no workload. UnknownName, if a run lacks a tweak set that
    `options` names.
    """
    arms = []
    for candidate in candidates:
        base, itself = without_candidate(base, candidate)
        arms.append(replace(candidate, notes=(*candidate.notes, *itself)))
    base, *candidates = every = list(map(_expanded, (base, *arms)))
    relative_to = [options.relative_to] if options.relative_to else []
    for run in both(*every).runs:
        must_have(run, "tweak set", options.tweaksets, run.tweaksets)
        must_have(run, "tweak set", relative_to, {*run.tweaksets, BASELINE})
    names = {name for arm in every for name in arm.workloads}
    options = replace(options, workloads=joined_names(options.workloads, names))
    for arm in every:
        must_have(arm.runs[0], "workload", options.workloads, arm.workloads)
    for candidate in candidates:
        if base.tweakset or candidate.tweakset or not same_runs(base, candidate):
            continue
        if candidate.label != base.label:
            raise Refused(
                f"{candidate.label} is the same run as {base.label}: for a resumed run, name only "
                "the later file."
            )
        raise Refused(
            f"{base.label} is compared with itself: name two of its tweak sets, "
            f"{base.label}:TWEAKSET."
        )
    no_copies([run for arm in every for run in arm.runs])
    drafts = [
        draft for name in studies([base]) for draft in _study(base, candidates, name, options)
    ]
    if not drafts and not any(same_runs(base, other) for other in candidates):
        raise Refused(
            f"{base.label} has no workload and tweak set in common with "
            f"{', '.join(arm.label for arm in candidates)}."
        )
    return drafts


def _expanded(arm: Arm) -> Arm:
    if not any(run.is_switched for run in arm.runs):
        return arm
    from .switched import expanded

    return replace(arm, runs=tuple(map(expanded, arm.runs)))


def _study(
    base: Arm, candidates: Sequence[Arm], study: str, options: CompareOptions
) -> list[Comparison]:
    drafts, shown = [], []
    for candidate in candidates:
        for draft, sides in _drafts(base, candidate, study, options):
            contrast = _contrast(draft, sides, (base, candidate), options)
            drafts.append(
                _judged(contrast, contrast.primary.p, 1)
                if contrast.guard and contrast.primary
                else contrast
            )
            # The study's other contrasts count in the adjustment all the same: picking one does not
            # make a new study.
            shown.append(
                candidate.tweakset in {None, draft.tweakset}
                and draft.tweakset in (options.tweaksets or (draft.tweakset,))
                and draft.workload in (options.workloads or (draft.workload,))
            )
    failed = failed_guards(drafts) | _failed_controls([base, *candidates], study, options)
    family = {
        index: draft.primary.p
        for index, draft in enumerate(drafts)
        if draft.primary is not None and not draft.guard
    }
    for index, p_adjusted in zip(
        family, ADJUSTMENTS[options.adjustment](list(family.values())), strict=True
    ):
        workload, tweakset = drafts[index].workload, drafts[index].tweakset
        doubt = failed.get(workload) or options.doubted.get((workload, tweakset))
        drafts[index] = _judged(drafts[index], p_adjusted, len(family), doubt)
    return [draft for draft, picked in zip(drafts, shown, strict=True) if picked]


def _failed_controls(arms: Sequence[Arm], study: str, options: CompareOptions) -> dict[str, str]:
    whole = both(*arms)
    if TOGETHER not in (control_name(whole, study, options.relative_to) or ""):
        return {}
    return {
        workload: f"{run.run_id}: {reason}"
        for run in whole.runs
        for workload, reason in failed_guards(
            one for one in compare(run) if one.study == study and one.primary
        ).items()
    }


def failed_guards(comparisons: Iterable[Comparison]) -> dict[str, str]:
    return {
        one.workload: one.reason
        for one in comparisons
        if one.guard and one.verdict == "not comparable"
    }


def _drafts(
    base: Arm, candidate: Arm, study: str, options: CompareOptions
) -> Iterator[tuple[Comparison, tuple[Side | None, Side]]]:
    base_met = met(base, study)
    inside_run = same_runs(base, candidate)
    named = not base.declared or options.relative_to is not None
    together = () if named or not inside_run else declared_baseline(base, study)
    control = control_name(both(base, candidate), study, options.relative_to)
    declared = next(run for run in base.runs if study in run.studies)
    base_sides, sides = Sides(base, study), Sides(candidate, study)
    opposite: dict[tuple[str, str], Side | None] = {}
    for workload, names in met(candidate, study).items():
        if workload not in base_met:
            continue
        for name in [candidate.tweakset] if candidate.tweakset and not inside_run else names:
            guard = name in together
            against = together[0] if guard else TOGETHER.join(together) or base.tweakset or name
            other = sides.side(workload, name)
            skip = (inside_run and name == against) or name in (control or "").split(TOGETHER)
            if other is None or skip or (against not in base_met[workload] and not inside_run):
                continue
            draft = Comparison(
                study=study,
                workload=workload,
                baseline=against,
                tweakset=name,
                verdict="not comparable",
                reason="",
                blocks=min(
                    declared.studies[study].blocks, declared.design.blocks_of(study, workload, name)
                ),
                margin=declared.studies[study].margin,
                primary_metric=primary_of(declared, study, workload),
                adjustment=options.adjustment,
                relative_to=control,
                notes=candidate.notes,
                baseline_run=base.label.removesuffix(f":{base.tweakset}"),
                candidate_run=candidate.label.removesuffix(f":{candidate.tweakset}"),
                baseline_arms=() if guard else together,
                guard=guard,
                level_of=other.tweakset.level_of,
            )
            if (workload, against) not in opposite:
                opposite[workload, against] = base_sides.side(workload, against)
            yield draft, (opposite[workload, against], other)


def _contrast(
    draft: Comparison,
    sides: tuple[Side | None, Side],
    arms: tuple[Arm, Arm],
    options: CompareOptions,
) -> Comparison:
    base, candidate = sides
    if base is None:
        return replace(draft, reason=f"{draft.baseline} was not run under {draft.workload}.")
    counted: dict[str, Any] = {}
    try:
        must_match(draft, arms)
        read = Reader(arms, draft)
        pairing = pair(base, candidate, controlled=draft.relative_to is not None)
        counted = {
            "pairs": pairing.units,
            "failed": _failed(base, candidate),
            "blocks": draft.blocks,
        }
        if pairing.by_run:
            counted["blocks"] = len(base.runs | candidate.runs)
        if pairing.processes:
            from .switched import inside

            counted |= inside(pairing, counted["blocks"])
        if alone := _single(pairing, arms):
            return _undecidable(replace(draft, **counted), alone, read, arms)
        enough(pairing, counted["blocks"])
        for own, cells in zip((base, candidate), pairing.cells, strict=True):
            must_be_sound(own.tweakset, cells)
        if base.runs & candidate.runs:
            must_share_machines(*pairing.cells)
        if pairing.samples is not None:
            must_be_same_work(*pairing.cells)
        primary = effect_of(draft.primary_metric, pairing, draft.margin, read)
    except NotComparable as reason:
        return replace(draft, reason=str(reason), **counted)
    beside = base.runs == candidate.runs and pairing.samples is None
    pairs = [(part, other) for (_, cell), (_, other) in pairing.pairs for part in parts(cell)]
    untouched = beside and same_machine((base.tweakset, candidate.tweakset), pairs)
    draft = replace(draft, **counted, primary=primary, untouched=untouched)
    return (
        _detailed(draft, pairing, (base, candidate), arms, read, options.metrics)
        if options.details
        else draft
    )


def _failed(*sides: Side) -> int:
    return sum(
        part.outcome == "failed"
        for side in sides
        for cell in side.cells.values()
        for part in parts(cell)
    )


def _detailed(
    draft: Comparison,
    pairing: Pairing,
    sides: tuple[Side, Side],
    arms: tuple[Arm, Arm],
    read: Reader,
    metrics: Sequence[str],
) -> Comparison:
    candidate = sides[1].tweakset
    of_processes: list[str] = []
    if pairing.processes:
        from .switched import inside_notes

        of_processes = inside_notes(draft, pairing, read)
    notes = (
        *draft.notes,
        *_in_force_notes(draft, candidate, pairing.cells[1]),
        *pair_notes(pairing if draft.relative_to is None else replace(pairing, caveat=None)),
        *odd_notes(draft.primary_metric, pairing, arms, read),
        *run_notes(draft, arms, sides, read),
        *of_processes,
        *([CONTROL.format(candidate.name, draft.baseline)] if draft.guard else []),
    )
    return replace(
        draft,
        second=_first_effect(_second_metrics(draft.primary_metric), draft, pairing, read),
        others=tuple(
            effect
            for name in metrics
            if (effect := _first_effect((metric_named(name),), draft, pairing, read))
        ),
        notes=notes,
    )


def _single(pairing: Pairing, arms: tuple[Arm, Arm]) -> tuple[Unit, Unit] | None:
    if pairing.samples is not None and all(len(arm) == 1 for arm in pairing.samples):
        return pairing.samples[0][0], pairing.samples[1][0]
    if len(pairing.pairs) == 1 and not any(run.replicated for arm in arms for run in arm.runs):
        return [pairing.pairs[0][0]], [pairing.pairs[0][1]]
    return None


def _undecidable(
    draft: Comparison, alone: tuple[Unit, Unit], read: Reader, arms: tuple[Arm, Arm]
) -> Comparison:
    base, candidate = (read.mean(unit, draft.primary_metric) for unit in alone)
    ratio = candidate / base if draft.primary_metric.better == "higher" else base / candidate
    draft = replace(
        draft,
        observed=ratio - 1,
        observed_baseline=base,
        notes=(*draft.notes, *_one_run_notes(alone)),
    )
    if any(run.replicated for arm in arms for run in arm.runs):
        return replace(draft, reason=ONE_RUN_AN_ARM)
    return replace(draft, verdict="inconclusive", reason=ONE_RUN)


def _one_run_notes(alone: tuple[Unit, Unit]) -> Iterator[str]:
    if any(len(unit) > 1 for unit in alone):
        return
    from .stats.within import drift, stalls

    cells = [cell for ((_, cell),) in alone if cell.steps is not None and not cell.steps.overlap]
    for cell in cells:
        walls = cell.steps.wall_s[cell.steps.warmup :] if cell.steps is not None else ()
        if len(walls) < FEWEST_STEPS:
            continue
        for stall in stalls(walls):
            where = f"steps {stall.first} to {stall.first + stall.steps - 1}"
            rest = (sum(walls) - stall.took) / (len(walls) - stall.steps) / (
                sum(walls) / len(walls)
            ) - 1
            without = f"without them its mean step is {percent(rest)}"
            yield (
                f"{cell.id} stalled: {where} took {duration(stall.took)}, {stall.times:.0f} times "
                f"the median each; {without}."
            )
        ratio, p = drift(walls)
        if p < DRIFTED_P:
            yield (
                f"{cell.id} drifted: in its second half the median step is {percent(ratio - 1)} "
                f"(Kolmogorov-Smirnov p {probability(p)})."
            )


def _second_metrics(primary: Metric) -> tuple[Metric, ...]:
    """Return metrics shown beside the primary; none beside a reported rate: time may be fixed."""
    if primary.name == TOLD_RATE:
        return ()
    return STEP_TIMES if primary.name.startswith("throughput") else (THROUGHPUT,)


def _first_effect(
    metrics: Sequence[Metric], draft: Comparison, pairing: Pairing, read: Reader
) -> Effect | None:
    for metric in metrics:
        try:
            return effect_of(metric, pairing, draft.margin, read)
        except NotComparable:
            continue
    return None


def _in_force_notes(draft: Comparison, candidate: SavedTweakSet, cells: list[Cell]) -> list[str]:
    applied = [cell.applied for cell in cells if cell.applied]
    still = candidate.scripts and not any(one.side_effects for one in applied)
    if still:
        return [
            (
                "its scripts changed no kernel value here, so the machine appears the same as "
                f"under {draft.baseline}."
            )
        ]
    if draft.untouched and candidate.requested:
        return [
            (
                f"same as {draft.baseline} here: all its values were already in force, so this is "
                "a second A/A comparison."
            )
        ]
    keys = set[str]().union(*(one.already_in_force for one in applied))
    return [
        (
            "already in force before it was applied, so not part of the effect: "
            f"{', '.join(sorted(keys))}."
        )
    ] * bool(keys)


def _judged(
    draft: Comparison, p_adjusted: float, family: int, doubt: str | None = None
) -> Comparison:
    effect = draft.primary
    if effect is None:
        raise ValueError("only a contrast with an effect can be judged")
    errors = detectable_errors(effect.df, GUARD if draft.guard else ALPHA / family)
    draft = replace(
        draft,
        p_adjusted=p_adjusted,
        family=family,
        mde=math.expm1(min(errors * effect.log_se, LARGEST_LOG)),
    )
    if doubt is not None:
        return replace(draft, reason=doubt)
    if draft.outlasts:
        from .switched import outlasting

        return replace(draft, verdict="inconclusive", reason=outlasting(draft))
    verdict, reason = judge(draft, effect, p_adjusted)
    notes, second = draft.notes, draft.second
    if verdict in {"improved", "regressed"}:
        if inside_margin(effect, draft.margin):
            notes = (*notes, f"below the margin of {unsigned(draft.margin)}.")
        if second is not None and parts_ways(effect, second):
            label = label_of(second.metric)
            gain = f"{percent(second.gain)}{bracket(second.low, second.high)}"
            disagree = f"{label_of(effect.metric)} and {label} disagree: {label} says {gain}."
            notes = (*notes, disagree)
    return replace(draft, verdict=verdict, reason=reason, notes=notes)


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

    `aa_log_sd` is the scatter of two untouched arms' log ratio, `others` the share of all CPUs that
    other programs used; medians. The `margin` takes `plan_blocks` and `plan_s` seconds.
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
