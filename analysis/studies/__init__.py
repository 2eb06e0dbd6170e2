"""Studies, one folder each: the core finds them here, and prints the answers of a run's studies.

A study's `__init__.py` is light (no top-level numpy or scipy) and implements `StudyModule`; the
rest is in other files of its folder. No study imports another, and nothing outside of this folder
and `commands/` imports a study.
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


class StudyModule(Protocol):
    """Interface between a study's folder and the core.

    `ORDER`: if a run belongs to several studies, a session ends with the smallest, which comes
    first in a report. `TITLE` is its heading in a report.
    """

    __name__: str
    ORDER: int
    TITLE: str

    def tells_of(self, run: Run) -> bool:
        """Return whether the run belongs to the study."""

    def answer(self, run: Run, *, brief: bool = False) -> Answer:
        """Return the study's answer on a run; `brief` at the end of a session.

        Raises: Refused, if the run cannot be judged.
        """


def of(run: Run) -> Iterator[StudyModule]:
    """Yield a run's studies in order; folders such as gate and plan only serve a command."""
    return (
        study
        for study in sorted(with_hook("ORDER"), key=lambda study: int(study.ORDER))
        if study.tells_of(run)
    )


def names_of(run: Run) -> frozenset[str]:
    """Return the folders of the studies that a run belongs to."""
    return frozenset(study.__name__.split(".")[2] for study in of(run))


@cache
def hooks(name: str) -> tuple[Callable[..., Any], ...]:
    """Return the studies' functions of a name, in the order of their folders; all are optional.

    - `with_figures(cell, origin, params, capped=…)`: a cell with the study's metrics added.
    - `for_pictures(runs)`: fields of the pictures' scene for its own runs (`plots/scene`).
    - `blocks_for(run, gain)`: blocks and time needed to detect a gain, or None.
    - `over_runs(runs, compared)`: the pooled answer of several runs and a function that draws it,
        or None.
    - `unquiet(run)`: workloads whose controls differ, and why.
    - `effects_of_grid(…)`, `effects_answer(effects)`: the effects of a grid's factors, and their
        answer.
    """
    return tuple(getattr(module, name) for module in with_hook(name))


@cache
def with_hook(name: str) -> tuple[Any, ...]:
    modules = [import_module(f"analysis.studies.{study}") for study in NAMES]
    return tuple(module for module in modules if hasattr(module, name))
