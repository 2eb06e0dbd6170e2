"""The gate of a session (`pytest --gate FILE`): checked before the first cell, applied last."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.arms import BASELINE, Arm, read_arm, same_runs
from analysis.render import text
from analysis.terms import Refused, Run

from . import limits as limits_file

if TYPE_CHECKING:
    from .limits import Limits

CONTROL = "stock"


@dataclass(frozen=True, slots=True)
class SessionGate:
    """Limits, and the reference run. Without `limits`, the study's own margin is the limit."""

    limits: Limits | None
    baseline: Arm | None = None

    def judge(self, run: Run) -> tuple[str, int]:
        """Return the gate's answer on a run, and the exit code. Raises: Refused, if undecidable."""
        from .gate import EXIT, answer, judge

        own = Arm(run.origin, (run,))
        base = self.baseline or own
        limits = self.limits or limits_file.Limits(
            min(study.margin for study in run.studies.values())
        )
        # Of two runs at different times, only results relative to their own stock are comparable.
        control = (
            BASELINE
            if len(base.runs) == 1
            and not same_runs(base, own)
            and CONTROL in base.runs[0].tweaksets
            else None
        )
        result = judge(base, own, limits, control)
        return text.render(answer(result)), EXIT[result.ruling]


def read(file: str, workloads: Collection[str], tweaksets: Collection[str]) -> SessionGate:
    """Read `--gate FILE`: a limits file, or a saved run (or folder) as the reference.

    Raises: Refused, for an unusable file: this must be known before hours of measuring.
    """
    refused: list[str] = []
    if not file.endswith((".yaml", ".yml")):
        result = SessionGate(None, read_arm(file, refused))
    else:
        limits = limits_file.read(file)
        result = SessionGate(
            limits, read_arm(limits.baseline_run, refused) if limits.baseline_run else None
        )
        planned = replace(
            limits,
            metrics=(),
            of_metric=dict.fromkeys(((workload, "") for workload, _ in limits.of_metric), 0.0),
        )
        refused += limits_file.unknown(planned, workloads, {CONTROL, *tweaksets}, {""})
    if refused:
        raise Refused(refused[0])
    return result
