"""What a benchmark session ends with: its verdicts, or which key did it, and the gate's answer where one was asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis import studies
from analysis.studies.gate import limits as limits_file
from analysis.studies.jobs.records import loses_packets, tells_of_jobs

from .arms import BASELINE, Arm, read_arm, same_runs
from .compare import compare
from .compare_answer import answer_of
from .load import from_json
from .render import text
from .terms import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from analysis.studies.gate.limits import Limits

    from .answer import Answer
    from .terms import Run

OWN = "this run"
CONTROL = "stock"
VERDICTS = 40  # studies of a smaller ORDER say what their verdicts mean themselves


@dataclass(frozen=True, slots=True)
class Keeper:
    """A gate that was read and found usable before the first cell ran. Without `limits` the study's own margin is the limit."""

    limits: Limits | None
    baseline: Arm | None = None


def keeper(file: str, workloads: Collection[str], tweaksets: Collection[str]) -> Keeper:
    """Read what `--gate FILE` names: a limits file, or a saved run (a folder of them) that this one must not be slower than.

    Raises: Refused, for a file that cannot be used: that must be known before hours of measuring.
    """
    refused: list[str] = []
    if not file.endswith((".yaml", ".yml")):
        result = Keeper(None, read_arm(file, refused))
    else:
        limits = limits_file.read(file)
        result = Keeper(limits, read_arm(limits.baseline_run, refused) if limits.baseline_run else None)
        planned = replace(limits, metrics=(), of_metric=dict.fromkeys(((workload, "") for workload, _ in limits.of_metric), 0.0))
        refused += limits_file.unknown(planned, workloads, {CONTROL, *tweaksets}, {""})
    if refused:
        raise Refused(refused[0])
    return result


def ending(saved: object, gate: Keeper | None, *, color: bool = False) -> tuple[str, int]:
    """Write what a finished run says, and answer the exit code its gate asks for: 0 where there is none.

    Raises: Refused, where the run cannot be read or the gate cannot judge it.
    """
    run = from_json(saved, OWN)
    message = _text(run, color=color)
    if gate is None:
        return message, 0
    from analysis.studies.gate.gate import (  # noqa: PLC0415  # scipy's tests take a second to import
        EXIT,
        answer,
        judge,
    )

    own = Arm(OWN, (run,))
    base = gate.baseline or own
    limits = gate.limits or limits_file.Limits(min(study.margin for study in run.studies.values()))
    # Of two runs made at different times only what each says relative to its own stock can be told from the time between.
    control = BASELINE if len(base.runs) == 1 and not same_runs(base, own) and CONTROL in base.runs[0].tweaksets else None
    result = judge(base, own, limits, control)
    return f"{message}\n{text.render(answer(result))}", EXIT[result.ruling]


def _text(run: Run, *, color: bool) -> str:
    if tells_of_jobs(run) or loses_packets(run):
        from analysis.studies.jobs.streams.gathered import gather  # noqa: PLC0415
        from analysis.studies.jobs.streams.sentences import render as render_streams  # noqa: PLC0415

        if streams := gather(run):
            return render_streams(run, streams, color=color)
    return text.render(answer_of_run(run), color=color)


def answer_of_run(run: Run, *, brief: bool = True, refused: Sequence[str] = (), source: str = "") -> Answer:
    """What a run's own study says of it; its verdicts, where it belongs to none or a session (`brief`) ends with them."""
    for study in studies.of(run):
        if study.ORDER < VERDICTS or not brief:
            return replace(study.answer(run, brief=brief), refused=refused)
    return answer_of(compare(run), [run], refused=refused, source=source)
