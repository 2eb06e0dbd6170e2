"""The index of a folder of runs: newest first, changes over time, and each run's report."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from analysis.answer import Answer, Column, Section, Table, Word, command
from analysis.ending import answer_of_run
from analysis.labels import machine_of
from analysis.plots.scene import NothingToDraw
from analysis.plots.style import svg
from analysis.render import html
from analysis.studies.history import pictures as history_picture
from analysis.studies.history.answer import answer
from analysis.studies.history.history import History, gather, judge, regressions
from analysis.terms import Refused, Run
from analysis.wording import number

from .page import FILTER, PagePart, PagePicture, figure_of, page_of, question_of, written_page
from .provenance import counts_of
from .saving import save

RECENT = 20  # runs in which a regression is listed first
COMMIT = 12  # digits suffice to find it
HEADS = (
    "run",
    "started (UTC)",
    "finding",
    "changed here",
    "question",
    "cells",
    "machine",
    "commit",
)
TOLD = 3  # number of columns that the command prints
# A number is never wrapped.
COLUMNS = [Column(head, left=head != "started (UTC)") for head in HEADS]


def write_index(
    runs: Sequence[Run], folder: Path, output: Path, again: str, refused: Sequence[str] = ()
) -> Answer:
    """Write the index of a folder's runs, and each run's report unless an up-to-date one exists.

    Returns: the answer whose table is the index. Raises: Refused, if a file cannot be written.
    """
    runs = sorted(runs, key=lambda run: run.started_utc or "", reverse=True)
    missing = list(refused)
    history = _history(runs, missing)
    rows = []
    for run in runs:
        safe = "".join(text if text.isalnum() or text in "-_." else "_" for text in run.run_id)
        path = output.with_name(f"{output.stem}-{safe}.html")
        try:
            if not _is_newer(path, run):
                save(
                    page_of(
                        [run], shlex.join(command("report", run.origin, "--output", str(path)))
                    ).html,
                    path,
                )
            rows.append(_row(run, path.name, history, folder))
        except (
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # from a damaged file
            missing.append(f"{run.origin}: cannot be reported ({type(error).__name__}: {error})")
    shown = [at for at in range(len(COLUMNS)) if any(row[at] is not None for row in rows)]
    table = Table([COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in rows])
    parts = [PagePart("runs", "Runs, newest first", FILTER + html.table(table))]
    if history:
        told = html.render(answer(history, regressions(history, RECENT)))
        parts.append(PagePart("history", "Changes over time", told + _picture(history)))
    if missing:
        unread = html.render(Answer("", warnings=missing))
        parts.append(PagePart("refused", "Files that could not be read", unread))
    body = Markup("<pre>{}</pre>").format(html.clean(again))
    parts.append(PagePart("again", "Reproduce this page", body))
    dates = (
        dict.fromkeys(text[:10] for text in (history.first_utc, history.last_utc) if text)
        if history
        else ()
    )
    name = folder.resolve().name
    page = written_page(
        title=f"DeepTweak index: {name}",
        above=f"DeepTweak index · {' to '.join(dates)}",
        heading=f"{len(rows)} saved runs in {name}",
        below="",
        parts=parts,
        foot="Each run's report is a separate file beside this one.",
    )
    size = save(page, output)
    data = [{name: _plain(value) for name, value in zip(HEADS, row, strict=True)} for row in rows]
    return Answer(
        f"{output}: {size / 1000:.0f} kB, {len(rows)} runs, each with a report beside it",
        sections=[Section("", [Table(COLUMNS[:TOLD], [row[:TOLD] for row in rows])])],
        data={"path": str(output), "size_bytes": size, "runs": data},
        refused=missing,
    )


def _plain(value: object) -> object:
    return value.text if isinstance(value, Word) else value


def _history(runs: Sequence[Run], refused: list[str]) -> History | None:
    try:
        return judge(gather(runs), [])
    except Refused as reason:
        refused.append(str(reason))
        return None


def _picture(history: History) -> Markup:
    title, question = history_picture.TITLE, history_picture.ANSWERS
    try:
        markup = svg(history_picture.draw(history), "history", title, question)
    except NothingToDraw:
        return Markup("")
    # The drawing code has escaped each text.
    picture = PagePicture("history", title, question, markup=Markup(markup))  # noqa: S704
    return figure_of(picture, 3)


def _is_newer(path: Path, run: Run) -> bool:
    try:
        return path.stat().st_mtime > Path(run.origin).stat().st_mtime
    except OSError:
        return False


def _row(run: Run, page: str, history: History | None, folder: Path) -> list[object]:
    changes = {  # a change in one metric of a workload usually appears in the other
        change.series.name: f"{change.series.name} {number(change.gain)} %"
        for change in (history.changes if history else ())
        if change.first.run_id == run.run_id
    }
    return [
        Word(
            os.path.relpath(run.origin, folder).removesuffix(".xz").removesuffix(".json"),
            href=quote(page),
        ),
        (run.started_utc or "")[:16].replace("T", " "),
        _finding(run),
        "; ".join(changes.values()) or None,
        question_of([run]),
        counts_of(run),
        machine_of(run),
        (run.commit or "")[:COMMIT] or None,
    ]


def _finding(run: Run) -> str:
    try:
        found = answer_of_run(run)
    except Refused as reason:
        return str(reason)
    first = found.title or next((line.text for line in found.findings), "")
    return " ".join([first, *(line.text for line in found.findings if line.tone == "open")])
