"""What must hold between two runs before their cells are compared, and what a reader must know where it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arms import same_runs
from .checks import hardware, other_hardware
from .pairing import RELATIVE
from .terms import NotComparable
from .wording import percent

if TYPE_CHECKING:
    from .arms import Arm, Side
    from .reading import Reader
    from .terms import Comparison, Metric, Run


def primary_of(run: Run, study: str, workload: str) -> Metric:
    return (run.workloads[workload].primary if workload in run.workloads else None) or run.studies[study].primary


def must_match(draft: Comparison, arms: tuple[Arm, Arm]) -> None:
    """Check what must be equal between runs before any of their cells are looked at: hardware, primary metric, the workload's parameters.

    Raises: NotComparable.
    """
    if same_runs(*arms):
        return
    other = other_hardware(arms[0].runs, arms[1].runs)
    if other:
        raise NotComparable(other)
    known = [run.workloads[draft.workload] for arm in arms for run in arm.runs if draft.workload in run.workloads]
    for run in arms[1].runs:
        declared = primary_of(run, draft.study, draft.workload) if draft.study in run.studies else draft.primary_metric
        if declared != draft.primary_metric:
            turns = {run.design.kind == "turns" for arm in arms for run in arm.runs}
            reason = ", one of whole cells and one of cells that took turns" if len(turns) > 1 else ""
            raise NotComparable(f"the runs declared different primary metrics: {draft.primary_metric.name} and {declared.name}{reason}.")
    for workload in known[1:]:
        differing = sorted(key for key in known[0].params.keys() & workload.params.keys() if known[0].params[key] != workload.params[key])
        if differing:
            text = ", ".join(f"{key} {known[0].params[key]} against {workload.params[key]}" for key in differing)
            raise NotComparable(f"the runs gave the workload different parameters: {text}.")


def run_notes(draft: Comparison, arms: tuple[Arm, Arm], sides: tuple[Side, Side], read: Reader) -> list[str]:
    """Say what the runs leave open: a control that moved, machines that say nothing of themselves, settings that went by one name."""
    if same_runs(*arms):
        return []
    notes = []
    if read.control is not None:
        name = read.control.tweakset.name
        moved = percent(read.moved((sides[0].runs, sides[1].runs), draft.primary_metric))
        notes.append(RELATIVE.format(name, name, moved, draft.primary_metric.name))
    silent = [run.origin for arm in arms for run in arm.runs if not hardware(run)]
    if silent and draft.study != "deeptweak":
        notes.append(
            f"{silent[0]}{f' and {len(silent) - 1} more' if len(silent) > 1 else ''}: says nothing of its hardware, which may be another."
        )
    asked = [{(setting.kind, setting.key): setting.value for setting in side.tweakset.requested} for side in sides]
    if draft.baseline == draft.tweakset and asked[0] != asked[1]:
        keys = sorted({key for (_, key), _ in asked[0].items() ^ asked[1].items()})
        notes.append(f"{draft.tweakset} does not ask for the same in both runs: {', '.join(keys)}.")
    return notes
