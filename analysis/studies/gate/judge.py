"""From two arms to the gate's answer: what is compared, and what is missing that should have been."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.arms import TOGETHER, both, control_name, met, same_runs, studies
from analysis.between import primary_of
from analysis.checks import warnings_of
from analysis.compare import Options, compare_arms
from analysis.studies.monitors.records import is_monitored
from analysis.studies.monitors.study import overheads
from analysis.terms import Comparison, Refused

from . import limits as limits_file
from .rule import gate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.arms import Arm
    from analysis.terms import Run

    from .limits import Limits
    from .terms import Gate

EXIT = {"pass": 0, "regression": 1, "undecided": 3}
AGAIN = "stock-again"
UNDER_NO_TEST = "the limits name this workload, and the candidate was not run under it."


def judge(base: Arm, candidate: Arm, limits: Limits, relative_to: str | None = None, workloads: tuple[str, ...] = ()) -> Gate:
    """Compare two arms and rule on it.

    Raises: Refused, where limits name what the runs do not have, or the arms have nothing in common.
    """
    runs = [one for arm in (base, candidate) for one in arm.runs]
    _must_know(limits, runs)
    if same_runs(base, candidate) and len(base.runs) > 1:
        # A glob that also took last week's runs would judge their mean.
        raise Refused(f"{base.label}: {len(base.runs)} runs hold both arms, from {base.runs[0].origin} on; name the one that is judged.")
    tweakset = limits.baseline_tweakset or (base.runs[0].baseline if same_runs(base, candidate) else None)
    if limits.baseline_tweakset and base.tweakset not in {None, limits.baseline_tweakset}:
        raise Refused(
            f"the limits name the baseline {limits.baseline_tweakset!r} and the command {base.tweakset!r}: leave one of them out."
        )
    if base.tweakset is None and tweakset is not None:
        declared = limits.baseline_tweakset is None
        base = replace(base, tweakset=tweakset, label=f"{base.label}:{tweakset}", declared=declared)
    names = tuple({metric for one in runs for workload in one.workloads for metric in limits.metrics_of(workload)} - {"primary", "second"})
    options = Options(relative_to=relative_to, metrics=names, tweaksets=limits.tweaksets or (), workloads=workloads)
    comparisons = compare_arms(base, [candidate], options)
    named = bool(candidate.tweakset or limits.tweaksets)
    judged = [one for one in comparisons if named or not _check_of_the_run(one)]
    judged += [one for one in _gone(base, candidate, options) if named or not _check_of_the_run(one)]
    limited = {*limits.of_workload, *(workload for workload, _ in limits.of_metric)} - {one.workload for one in judged}
    judged += [_unjudged(base, candidate, workload, UNDER_NO_TEST) for workload in sorted(limited)]
    warnings = [line for one in runs for line in warnings_of(one, comparisons)] + _new(base, candidate, options)
    against = ", ".join(dict.fromkeys(one.baseline for one in judged if one.baseline_arms))
    label = f"{base.label.removesuffix(f':{base.tweakset}')}:{against}" if against else base.label
    return gate(judged, limits, (label, candidate.label), tuple(dict.fromkeys(warnings)), _unquiet(candidate))


def _unquiet(candidate: Arm) -> dict[str, str]:
    """Workloads under monitors whose two arms without one differ, or agree too loosely to call a cost absent: why none passes there."""
    found = [one for run in candidate.runs if is_monitored(run) for one in overheads(run)]
    return {one.workload: one.control.sentence for one in found if one.control.state != "quiet"}


def _must_know(limits: Limits, runs: Sequence[Run]) -> None:
    lost = limits_file.unknown(
        limits,
        {name for one in runs for name in one.workloads},
        {name for one in runs for name in one.tweaksets},
        {name for one in runs for cell in one.cells for name in cell.metrics},
    )
    if lost:
        raise Refused(lost[0])


def _check_of_the_run(one: Comparison) -> bool:
    """Whether this is the A/A check that every run makes of itself: a warning where it fails, no candidate."""
    return one.tweakset == AGAIN and (one.baseline_run == one.candidate_run or one.relative_to is not None)


def _gone(base: Arm, candidate: Arm, options: Options) -> list[Comparison]:
    """What the baseline has and the candidate has not: a workload that is gone cannot be slower, and must not pass for that."""
    gone: list[Comparison] = []
    if same_runs(base, candidate):
        return gone
    for study in studies([base]):
        there = met(candidate, study)
        controls = _controls(base, candidate, study, options)
        for workload, names in met(base, study).items():
            if options.workloads and workload not in options.workloads:
                continue
            # Where a side names its tweak set only the workload must be there; else each tweak set with its like.
            wanted = [candidate.tweakset] if candidate.tweakset else [name for name in names if base.tweakset in (None, name)]
            for name in wanted:
                left_out = name in controls or (options.tweaksets and name not in options.tweaksets)
                if left_out or (name in there.get(workload, ()) or (base.tweakset and not candidate.tweakset and workload in there)):
                    continue
                reason = "the baseline has it and the candidate has not."
                gone.append(replace(_unjudged(base, candidate, workload, reason), baseline=base.tweakset or name, tweakset=name))
    return gone


def _unjudged(base: Arm, candidate: Arm, workload: str, reason: str) -> Comparison:
    """Stand in for a comparison that should have been and could not."""
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


def _controls(base: Arm, candidate: Arm, study: str, options: Options) -> list[str]:
    """The arms of a study that others are relative to, which are judged by nobody."""
    return (control_name(both(base, candidate), study, options.relative_to) or "").split(TOGETHER)


def _new(base: Arm, candidate: Arm, options: Options) -> list[str]:
    """Say what the candidate has beyond the baseline: it was not judged."""
    if same_runs(base, candidate) or base.tweakset or candidate.tweakset:
        return []
    pairs = [
        (workload, name)
        for study in studies([candidate])
        for workload, names in met(candidate, study).items()
        for name in names
        if name not in _controls(base, candidate, study, options)
    ]
    known = {(workload, name) for study in studies([base]) for workload, names in met(base, study).items() for name in names}
    new = [f"{name} under {workload}" for workload, name in pairs if (workload, name) not in known]
    shown = ", ".join(new[:5]) + (f" and {len(new) - 5} more" if len(new) > 5 else "")
    return [f"not judged, because the baseline has no like of it: {shown}."] if new else []
