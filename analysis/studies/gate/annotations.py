"""The gate's answer as GitHub workflow commands: lines on stdout that the runner turns into annotations of the run.

Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions and the runner's ActionCommand.cs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.plain import one_line

from .words import headline, subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .terms import Gate

LEVELS = {"regression": "error", "undecided": "warning", "pass": "notice"}
# GitHub shows ten annotations of each level for one step and drops the rest in silence.
SHOWN = 10
LONGEST = 2000


def workflow_commands(gate: Gate) -> list[str]:
    """Write one line for the gate as a whole, one for each ruling that is no pass, and one for each warning; errors come first.

    There are at most ten of a level: where there was more to say, the tenth says how much.
    """
    said = [(LEVELS[gate.ruling], "Gate", headline(gate))]
    said += [(LEVELS[one.ruling], f"{one.ruling.capitalize()}: {subject(one)}", one.reason) for one in gate.rulings if one.ruling != "pass"]
    said += [("warning", "Gate", line) for line in gate.warnings]
    return [line for level in LEVELS.values() for line in _commands(level, [words for of, *words in said if of == level])]


def _commands(level: str, said: Sequence[Sequence[str]]) -> Iterator[str]:
    shown = said if len(said) <= SHOWN else said[: SHOWN - 1]
    for title, message in shown:
        escaped = one_line(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
        yield f"::{level} title={escaped}::{one_line(message, LONGEST).replace('%', '%25')}"
    if len(shown) < len(said):
        yield f"::{level} title=Gate::{len(said) - len(shown)} more are in the step summary."
