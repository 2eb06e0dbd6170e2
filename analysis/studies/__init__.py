"""Studies, a folder each: the core finds them here, asks which of them a run belongs to, and prints what they answer.

A study's `__init__.py` is light (no numpy, no scipy at its top) and holds what `Study` lists; all else of it stays in its folder. No study
imports another, and nothing outside of this folder and `commands/` imports a study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from analysis.answer import Answer
from analysis.terms import Run

NAMES = sorted(path.parent.name for path in Path(__file__).parent.glob("*/__init__.py"))


class Study(Protocol):
    """What a study's folder offers to the core.

    `ORDER`: where a run belongs to several, the one with the smallest is what a session ends with, and stands first in a report.
    `TITLE` is its heading in a report.
    """

    __name__: str
    ORDER: int
    TITLE: str

    def tells_of(self, run: Run) -> bool:
        """Whether the run belongs to it."""

    def answer(self, run: Run, *, brief: bool = False) -> Answer:
        """What the study says of a run; `brief` where a session ends with it.

        Raises: Refused, where the run cannot be judged.
        """


def of(run: Run) -> Iterator[Study]:
    """Studies that a run belongs to, in their order; some folders hold a command's work alone (a gate, a plan)."""
    return (study for study in sorted(with_hook("ORDER"), key=lambda study: int(study.ORDER)) if study.tells_of(run))


def names_of(run: Run) -> frozenset[str]:
    """Return the folders of the studies that a run belongs to."""
    return frozenset(study.__name__.split(".")[2] for study in of(run))


@cache
def hooks(name: str) -> tuple[Callable[..., Any], ...]:
    """Return what studies offer to the core under a name, in the order of their folders; most offer nothing.

    - `with_figures(cell, origin, params, capped=…)`: a cell that was read, with more metrics.
    - `command_for(folder)`: what reads a folder without saved runs, or None.
    - `for_pictures(runs)`: of its own runs, fields of the scene that pictures are drawn from (`plots/scene`).
    - `blocks_for(run, gain)`: what seeing a gain takes, or None.
    - `over_runs(runs, compared)`: what several runs say together and what draws it, or None.
    - `unquiet(run)`: workloads whose controls differ, and why.
    - `effects_of_grid(…)`, `effects_answer(effects)`: which factor of a grid did it.
    """
    return tuple(getattr(module, name) for module in with_hook(name))


@cache
def with_hook(name: str) -> tuple[Any, ...]:
    modules = [import_module(f"analysis.studies.{study}") for study in NAMES]
    return tuple(module for module in modules if hasattr(module, name))
