"""The end of a benchmark session: its study's answer or verdicts, and the gate's answer if any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from analysis import studies

from .answer import Answer, Line
from .checks import lost_cells, warnings_of
from .compare import compare
from .compare_answer import answer_of
from .load import from_json
from .render import text
from .summary import answer, rows_of
from .terms import Refused, Run

OWN = "this run"
VERDICTS = 40  # studies with a smaller ORDER explain their verdicts themselves


class RunJudge(Protocol):
    """The judge of a run at the end of its session (`analysis.studies.gate.session`)."""

    def judge(self, run: Run) -> tuple[str, int]: ...


def ending(saved: object, gate: RunJudge | None, *, color: bool = False) -> tuple[str, int]:
    """Return a finished run's answer as text, and its gate's exit code (0 without a gate).

    Raises: Refused, if the run cannot be read or the gate cannot judge it.
    """
    run = from_json(saved, OWN)
    message = text.render(answer_of_run(run), color=color)
    ruling, code = gate.judge(run) if gate else ("", 0)
    return f"{message}\n{ruling}" if gate else message, code


def answer_of_run(
    run: Run, *, brief: bool = True, refused: Sequence[str] = (), source: str = ""
) -> Answer:
    """Return the answer of a run's study, or verdicts if it has none or `brief` ends a session."""
    for study in studies.of(run):
        if study.ORDER < VERDICTS or not brief:
            try:
                result = study.answer(run, brief=brief)
            except Refused as error:
                if run.lacks_baseline:
                    break
                if not brief:
                    raise
                result = answer_of(compare(run), [run])
                return replace(result, warnings=[*result.warnings, str(error)])
            return replace(result, refused=[*refused, *result.refused])
    comparisons = [] if run.lacks_baseline else compare(run)
    result = answer_of(comparisons, [run], refused=refused, source=source)
    if comparisons or brief:
        return result
    lost = lost_cells(run, run.cells)
    measured = answer(rows_of([run]))
    return replace(
        measured,
        title=result.title if run.lacks_baseline else measured.title,
        findings=[Line(line.removeprefix(f"{run.origin}: ")) for line in lost],
        refused=refused,
        warnings=warnings_of(run, ()),
    )
