"""Write an answer for people and programs: terminal, HTML, Markdown, JSON, CSV.

Foreign text is escaped here, and only here.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from analysis.answer import Answer

if TYPE_CHECKING:
    import argparse


FORMATS = {
    "json": "JSON, for programs",
    "csv": "the tables as CSV, raw values",
    "markdown": "Markdown",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    page = parser.add_argument_group("output")
    page.add_argument("--all", action="store_true", help="print everything, however long")
    group = page.add_mutually_exclusive_group()
    for name, meaning in FORMATS.items():
        group.add_argument(f"--{name}", action="store_true", help=meaning)
    group.add_argument("--explain", action="store_true", help="also explain words and columns")


def write(answer: Answer, options: argparse.Namespace) -> str:
    for name in FORMATS:
        if getattr(options, name, False):
            module = import_module(f"analysis.render.{'data' if name == 'json' else name}")
            return str(module.render(answer))
    from .text import for_stdout

    return for_stdout(
        answer, explain=getattr(options, "explain", False), whole=getattr(options, "all", True)
    )


def heads(columns: Sequence[object]) -> list[str]:
    return [
        str(getattr(column, "head", column)).replace("-\n", "-").replace("\n", " ").strip()
        for column in columns
    ]
