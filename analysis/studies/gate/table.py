"""The gate's answer on a terminal: the word first, then what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from analysis.labels import label_of
from analysis.plain import inert, one_line
from analysis.printing import hanging, on_page

from .words import figures, headline, units

if TYPE_CHECKING:
    from rich.console import RenderableType

    from .terms import Gate

ORDER = ("regression", "undecided", "pass")
SHOWN = 40
LONGEST = 2000


def render(gate: Gate) -> str:
    """Write the rulings as text, at most 100 columns, what is not a pass first."""
    parts: list[RenderableType] = [Text(headline(gate)), Text(one_line(f"{gate.candidate} against {gate.baseline}"))]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="")
    for name in ("\nworkload", "\ntweak set", "\nmetric"):
        table.add_column(name, overflow="fold")
    for name in ("\nn", "loss\n%", "at most\n%", "limit\n%"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("\nruling", no_wrap=True)
    table.add_column("\nsee", no_wrap=True)
    ordered = [one for word in ORDER for one in gate.rulings if one.ruling == word]
    marks: dict[str, int] = {}
    for one in ordered[:SHOWN]:
        said = [] if one.ruling == "pass" else [one.reason]
        notes = ",".join(str(marks.setdefault(line, len(marks) + 1)) for line in (*said, *one.comparison.notes))
        names = (one.comparison.workload, one.comparison.tweakset, label_of(one.metric))
        table.add_row(*(Text(one_line(name)) for name in names), units(one), *figures(one), one.ruling, notes)
    if ordered:
        parts += ["", table, ""]
    if len(ordered) > SHOWN:
        parts.append(Text(f"… and {len(ordered) - SHOWN} more, which stand in --json and --junit."))
    lines = [*((f"({mark})", line) for line, mark in marks.items()), *(("warning:", line) for line in dict.fromkeys(gate.warnings))]
    if lines:
        parts.append(hanging((mark, one_line(line, LONGEST)) for mark, line in lines))
    if ordered:
        parts.append(Text("loss: how much slower the candidate is, below 0 it is faster; at most: its one-sided 95 % upper bound."))
    return inert(on_page(parts))  # a name out of a file must be no command to the runner that reads the log
