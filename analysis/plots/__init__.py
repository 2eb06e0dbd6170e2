"""Pictures of saved runs: `@picture` makes one of the function that draws it from a scene.

A study's own stand in its folder, in files whose names begin with `pictures`, and are found there; here are those of any run.
Each says what it is, what a reader can see in it, where it stands among the others and of which runs it is (`style.Picture`). They stand on
one sheet (`page`) and are made of few marks (`marks`); what they are drawn from is read once (`scene`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import studies
from analysis.terms import Run

if TYPE_CHECKING:
    from .style import Picture

# Without a home that can be written matplotlib keeps its fonts' cache in a temporary folder: no news to whoever asked for a picture.
logging.getLogger("matplotlib").addFilter(lambda _: False)
READ_SIDE = Path(__file__).parents[1]
ALTERNATION = "analysis.plots.alternation"  # which no matrix has, and need not load


@cache
def rooms() -> tuple[str, ...]:
    """The modules that have pictures, found without loading them."""
    paths = [path for where in ("plots/*.py", "studies/*/pictures*.py") for path in READ_SIDE.glob(where)]
    paths = [path for path in paths if "\n@picture(" in path.read_text(encoding="utf-8")]
    return tuple(sorted(".".join(("analysis", *path.relative_to(READ_SIDE).with_suffix("").parts)) for path in paths))


def _may_have(run: Run, room: str) -> bool:
    """Whether a run may have a picture of a module; asked before the module is loaded."""
    if room == ALTERNATION:
        return run.design.kind != "matrix"
    _, _, study, *_ = room.split(".")
    return not room.startswith("analysis.studies.") or study in studies.names_of(run)


def pictures() -> dict[str, Picture]:
    """Find every picture that is drawn from a scene, by name, in the order in which a reader wants them."""
    return _in(rooms())


def fitting(runs: Iterable[Run]) -> dict[str, Picture]:
    """Leave out pictures of designs that none of the runs had, and of what none reported: nobody misses them there."""
    runs = list(runs)
    kinds = {run.design.kind for run in runs}
    reported = {name for run in runs for cell in run.cells for name in cell.report}
    monitored = {run.is_monitored for run in runs}
    return {
        name: picture
        for name, picture in _in(tuple(room for room in rooms() if any(_may_have(run, room) for run in runs))).items()
        if kinds & (picture.DESIGNS or kinds)
        and reported >= picture.REPORTS
        and picture.MONITORED in {None, *monitored}
        and not picture.NOT_OF & reported
    }


@cache
def _in(rooms: tuple[str, ...]) -> dict[str, Picture]:
    from .style import Picture

    every = [one for room in rooms for one in vars(import_module(room)).values() if isinstance(one, Picture)]
    return {picture.NAME: picture for picture in sorted(every, key=lambda one: one.ORDER)}


def __getattr__(name: str) -> Picture:
    if name.startswith("_") or name not in pictures():
        raise AttributeError(name)
    return pictures()[name]
