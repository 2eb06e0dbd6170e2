"""The index of a folder of runs: newest first, what changed over time, and each run's report."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from analysis import studies
from analysis.compare import compare
from analysis.plots.scene import NothingToDraw
from analysis.plots.style import svg
from analysis.render import html as as_html
from analysis.studies.history import pictures as history_picture
from analysis.studies.history.answer import answer
from analysis.studies.history.history import History, gather, judge, regressions
from analysis.terms import Refused, Run, Verdict
from analysis.verdict import without_guards
from analysis.wording import number
from control.called import JUDGE

from .answers import counted
from .page import Picture, page_of, question_of, render
from .saving import save
from .view import counts_of, machine_of

RECENT = 20  # runs in which a change for the worse is named first
COMMIT = 12  # digits are enough to find it by


@dataclass(frozen=True, slots=True)
class RunEntry:
    name: str
    href: str
    run_id: str
    started: str
    question: str
    counts: str
    verdicts: Mapping[Verdict, int]
    nothing: str
    changes: Sequence[tuple[str, str]]
    machine: str
    commit: str


def write_index(runs: Sequence[Run], folder: Path, output: Path, command: str, refused: Sequence[str] = ()) -> tuple[int, list[RunEntry]]:
    """Write the index of a folder's runs, and a report of each run beside it that has none newer than itself.

    Returns: the bytes of the index, and its lines.
    Raises: Refused, where a file cannot be written.
    """
    runs = sorted(runs, key=lambda run: run.started_utc or "", reverse=True)
    lines, missing = [], list(refused)
    history = _history(runs, missing)
    for run in runs:
        path = output.with_name(f"{output.stem}-{''.join(text if text.isalnum() or text in '-_.' else '_' for text in run.run_id)}.html")
        try:
            finding = ""
            if not _is_newer(path, run):
                again = shlex.join([*JUDGE.split(), "report", run.origin, "--output", str(path)])
                report = page_of([run], again)
                save(report.html, path)
                finding = next((told.answer for told in report.views[0].told), "")
            line = _line(run, quote(path.name), history, folder, finding)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # of a damaged file
            missing.append(f"{run.origin}: cannot be reported ({type(error).__name__}: {error})")
            continue
        lines.append(line)
    page = render(
        "index.html",
        title=f"DeepTweak index: {folder.resolve().name}",
        dates=" to ".join(dict.fromkeys(text[:10] for text in (history.first_utc, history.last_utc) if text)) if history else "",
        folder=folder.resolve().name,
        runs=lines,
        history=as_html.render(answer(history, regressions(history, RECENT)), 3) if history else "",
        picture=_picture(history) if history else None,
        refused=missing,
        command=command,
    )
    return save(page, output), lines


def _history(runs: Sequence[Run], refused: list[str]) -> History | None:
    try:
        return judge(gather(runs), [])
    except Refused as reason:
        refused.append(str(reason))
        return None


def _picture(history: History) -> Picture | None:
    try:
        markup = svg(history_picture.draw(history), "history", history_picture.TITLE, history_picture.ANSWERS)
    except NothingToDraw:
        return None
    return Picture("history", history_picture.TITLE, history_picture.ANSWERS, markup=Markup(markup))  # noqa: S704  # what draws has escaped every text


def _finding(run: Run) -> str:
    """What the run's study answers first, where no tweak set was compared."""
    for study in studies.of(run):
        try:
            result = study.answer(run, brief=True)
        except Refused as reason:
            return str(reason)
        return result.title or next((line.text for line in result.findings), "")
    return "nothing to compare"


def _is_newer(path: Path, run: Run) -> bool:
    try:
        return path.stat().st_mtime > Path(run.origin).stat().st_mtime
    except OSError:
        return False


def _line(run: Run, href: str, history: History | None, folder: Path, finding: str) -> RunEntry:
    comparisons = without_guards(compare(run))
    changes = [change for change in history.changes if change.first.run_id == run.run_id] if history else []
    return RunEntry(
        name=os.path.relpath(run.origin, folder).removesuffix(".json"),
        href=href,
        run_id=run.run_id,
        started=(run.started_utc or "")[:16].replace("T", " "),
        question=question_of([run]),
        counts=counts_of(run),
        verdicts=counted(comparisons),
        nothing="" if comparisons else finding or _finding(run),
        # What moves one metric of a workload mostly moves the other.
        changes=list(
            {change.series.name: (change.verdict, f"{change.series.name} {number(change.gain)} %") for change in changes}.values()
        ),
        machine=machine_of(run),
        commit=(run.commit or "")[:COMMIT],
    )
