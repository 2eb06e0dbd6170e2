"""What a session of streams of jobs ends with, as text of at most 100 columns: its sentences, then its tweak sets, if it had some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from analysis.checks import warnings_of
from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.labels import headline
from analysis.plain import one_line
from analysis.printing import hanging, on_page
from analysis.render import text as page

from .said import of_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from analysis.terms import Comparison, Run

    from .gathered import Gathered

LOUD = ("UNSTABLE", "LITTLE'S LAW IS BROKEN")


def render(run: Run, found: Gathered, *, color: bool = False) -> str:
    """Write what is said of a run's streams, and below it what its tweak sets did."""
    compared = compare(run)
    text = on_page(_parts(run, found, compared), color=color)
    asked = [one for one in compared if not one.untouched]
    return f"{text}\n{page.render(answer_of(compared, [run]), color=color)}" if asked else text


def _parts(run: Run, found: Gathered, compared: Sequence[Comparison]) -> Iterator[RenderableType]:
    yield Text("\n".join(one_line(line, 400) for line in headline([run]).split("\n")), "bold")
    yield from (Text(f"{name}: {one_line(study.question, 400)}") for name, study in run.studies.items())
    for part, lines in of_run(run, found):
        yield ""
        yield Text(part, "bold")
        for line in lines:
            yield hanging([("•", one_line(line, 1000))], style="bold yellow" if any(word in line for word in LOUD) else "")
    warnings = list(dict.fromkeys(warnings_of(run, compared)))
    if warnings:
        yield ""
        yield hanging([("warning:", one_line(line, 1000)) for line in warnings], "yellow")
