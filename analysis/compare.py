"""Tweak sets against a baseline inside one saved run: pair the blocks, take the effect, adjust for how many were asked, judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .checks import different_data, must_be_in_force, must_not_contradict, same_machine
from .effect import ALPHA, detectable_gain, holm, paired_effect
from .terms import Comparison, Metric, NotComparable, UnknownName
from .verdict import inside_margin, judge
from .wording import listed, unsigned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .terms import Cell, Effect, Run, Study, TweakSet

MINIMUM_PAIRS = 3
COMFORTABLE_PAIRS = 5
THROUGHPUT = Metric("throughput_samples_per_s", "higher")
STEP_TIME_P10 = Metric("step_time_p10_s", "lower")

Arm = dict[int, "Cell"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """The blocks both arms have, in order, and why the others are left out: reason → blocks."""

    pairs: tuple[tuple[Cell, Cell], ...]
    left_out: Mapping[str, list[int]]


def compare(run: Run, baseline: str = "stock") -> list[Comparison]:
    """Compare every tweak set of the run with the baseline, under each workload of each study.

    The family of Holm's adjustment is one study: all its contrasts in their declared primary metrics, stock-again among them.

    Raises: UnknownName, if the run has no such baseline.
    """
    if baseline not in run.tweaksets:
        raise UnknownName(f"{run.origin}: no tweak set {baseline!r} to compare with; it has {', '.join(sorted(run.tweaksets))}.")
    return [comparison for study in run.studies.values() for comparison in _compare_study(run, study, baseline)]


def _compare_study(run: Run, study: Study, baseline: str) -> list[Comparison]:
    arms: dict[str, dict[str, Arm]] = {}
    for cell in run.cells:
        if cell.study == study.name:
            arms.setdefault(cell.workload, {}).setdefault(cell.tweakset, {})[cell.block] = cell
    drafts = [
        _contrast(run, _draft(run, study, workload, (baseline, tweakset)), arms[workload])
        for workload in run.workloads
        if workload in arms
        for tweakset in sorted(run.tweaksets, key=lambda name: name not in {"stock", "stock-again"})  # the A/A first
        if tweakset != baseline and tweakset in arms[workload]
    ]
    family = [index for index, draft in enumerate(drafts) if draft.primary is not None]
    adjusted = holm([draft.primary.p for draft in drafts if draft.primary is not None])
    for index, p_holm in zip(family, adjusted, strict=True):
        drafts[index] = _judged(drafts[index], p_holm, len(family))
    return drafts


def _draft(run: Run, study: Study, workload: str, arms: tuple[str, str]) -> Comparison:
    return Comparison(
        study=study.name,
        workload=workload,
        baseline=arms[0],
        tweakset=arms[1],
        verdict="not comparable",
        reason="",
        blocks=study.blocks,
        margin=study.margin,
        primary_metric=run.workloads[workload].primary or study.primary,
    )


def _contrast(run: Run, draft: Comparison, arms: Mapping[str, Arm]) -> Comparison:
    """Take the effects of one contrast, not yet judged; or say why it is not comparable."""
    pairing = _pair(arms.get(draft.baseline, {}), arms[draft.tweakset])
    draft = replace(draft, pairs=len(pairing.pairs))
    base, candidate = run.tweaksets[draft.baseline], run.tweaksets[draft.tweakset]
    base_cells, candidate_cells = [pair[0] for pair in pairing.pairs], [pair[1] for pair in pairing.pairs]
    try:
        _enough(draft, pairing)
        must_be_in_force(base, base_cells)
        must_be_in_force(candidate, candidate_cells)
        must_not_contradict([*base_cells, *candidate_cells])
        primary = _effect(draft.primary_metric, pairing, draft.margin)
    except NotComparable as reason:
        return replace(draft, reason=str(reason))
    draft = replace(
        draft,
        primary=primary,
        second=_second(draft.primary_metric, pairing, draft.margin),
        untouched=same_machine((base, candidate), pairing.pairs),
    )
    return replace(draft, notes=(*_in_force_notes(draft, candidate, candidate_cells), *_pair_notes(pairing)))


def _pair(base: Arm, candidate: Arm) -> Pairing:
    pairs, left_out = [], dict[str, list[int]]()
    for block in sorted(base.keys() | candidate.keys()):
        one, other = base.get(block), candidate.get(block)
        reason = _unusable(one, "baseline ") or _unusable(other, "")
        if not reason and one and other:
            reason = different_data(one, other)
            if not reason:
                pairs.append((one, other))
        if reason:
            left_out.setdefault(reason, []).append(block)
    return Pairing(tuple(pairs), left_out)


def _unusable(cell: Cell | None, whose: str) -> str | None:
    if cell is None:
        return f"{whose}not run"
    return None if cell.outcome == "measured" else f"{whose}{cell.outcome}: {cell.reason}"


def _enough(draft: Comparison, pairing: Pairing) -> None:
    if len(pairing.pairs) >= MINIMUM_PAIRS:
        return
    if not pairing.pairs and len(pairing.left_out) == 1:
        # One and the same reason everywhere needs no counting: the tweak set cannot be had on this machine.
        (reason,) = pairing.left_out
        raise NotComparable(f"{reason.rstrip('.')}.")
    why = "; ".join(f"{listed(blocks)} {reason.rstrip('.')}" for reason, blocks in pairing.left_out.items())
    count = (
        f"{len(pairing.pairs)} complete pair{'s' if len(pairing.pairs) != 1 else ''} of {draft.blocks}, at least {MINIMUM_PAIRS} are needed"
    )
    raise NotComparable(f"{count}{f' ({why})' if why else ''}.")


def _effect(metric: Metric, pairing: Pairing, margin: float) -> Effect:
    columns: list[list[float]] = [[], []]
    for pair in pairing.pairs:
        for column, cell in zip(columns, pair, strict=True):
            value = cell.metrics.get(metric.name)
            if value is None:
                raise NotComparable(f"{cell.id} has no {metric.name}; it has {', '.join(sorted(cell.metrics))}.")
            if value <= 0:
                raise NotComparable(f"{cell.id} has {metric.name} = {value:g}: no ratio can be taken.")
            column.append(value)
    return paired_effect(metric, columns[0], columns[1], margin)


def _second(primary: Metric, pairing: Pairing, margin: float) -> Effect | None:
    """The other summary: a throughput beside a quantile of step time, and the other way round."""
    try:
        return _effect(STEP_TIME_P10 if primary.name.startswith("throughput") else THROUGHPUT, pairing, margin)
    except NotComparable:
        return None


def _in_force_notes(draft: Comparison, candidate: TweakSet, cells: list[Cell]) -> list[str]:
    still = candidate.scripts and not any(cell.applied.side_effects for cell in cells if cell.applied)
    if draft.untouched and candidate.requested and not still:
        return [f"same as {draft.baseline} here: all it asks for was already in force, so this is a second A/A comparison."]
    if still:
        return [f"its scripts changed no kernel value here: as far as can be seen, the same machine as under {draft.baseline}."]
    keys = set[str]().union(*(cell.applied.already_in_force for cell in cells if cell.applied))
    return [f"in force before it was applied, so not part of the effect: {', '.join(sorted(keys))}."] if keys else []


def _pair_notes(pairing: Pairing) -> list[str]:
    few = len(pairing.pairs) < COMFORTABLE_PAIRS
    notes = [f"{len(pairing.pairs)} pairs only: with fewer than {COMFORTABLE_PAIRS} one odd block can decide."] if few else []
    return notes + [f"{listed(blocks)} left out: {reason.rstrip('.')}." for reason, blocks in pairing.left_out.items()]


def _judged(draft: Comparison, p_holm: float, family: int) -> Comparison:
    effect = draft.primary
    if effect is None:
        raise ValueError("only a contrast with an effect can be judged")
    draft = replace(draft, p_holm=p_holm, family=family, mde=detectable_gain(effect.log_sd, effect.pairs, ALPHA / family))
    verdict, reason = judge(draft, effect, p_holm)
    notes = draft.notes
    if verdict in {"improved", "regressed"} and inside_margin(effect, draft.margin):
        notes = (*notes, f"smaller than the margin of {unsigned(draft.margin)}: real, but perhaps not worth having.")
    return replace(draft, verdict=verdict, reason=reason, notes=notes)
