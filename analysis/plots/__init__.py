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
STUDIES = Path(__file__).parents[1] / "studies"
OF_ANY_RUN = ("effects", "runs", "sampled")
ALTERNATION = "alternation"  # which no matrix has, and need not load


def pictures() -> dict[str, Picture]:
    """Find every picture that is drawn from a scene, by name, in the order in which a reader wants them."""
    return _loaded((*OF_ANY_RUN, ALTERNATION), tuple(sorted(path.name for path in STUDIES.iterdir())))


def fitting(runs: Iterable[Run]) -> dict[str, Picture]:
    """Leave out pictures of designs that none of the runs had, and of what none reported: nobody misses them there."""
    runs = list(runs)
    kinds = {run.design.kind for run in runs}
    reported = {name for run in runs for cell in run.cells for name in cell.report}
    monitored = {run.is_monitored for run in runs}
    general = (*OF_ANY_RUN, ALTERNATION) if kinds - {"matrix"} else OF_ANY_RUN
    candidates = _loaded(general, tuple(sorted({name for run in runs for name in studies.names_of(run)})))
    return {
        name: picture
        for name, picture in candidates.items()
        if kinds & (picture.DESIGNS or kinds)
        and reported >= picture.REPORTS
        and picture.MONITORED in {None, *monitored}
        and not picture.NOT_OF & reported
    }


@cache
def _loaded(general: tuple[str, ...], of_studies: tuple[str, ...]) -> dict[str, Picture]:
    from .style import Picture

    names = [f"{__name__}.{name}" for name in general]
    for study in of_studies:
        names += [f"analysis.studies.{study}.{path.stem}" for path in sorted((STUDIES / study).glob("pictures*.py"))]
    every = [one for name in names for one in vars(import_module(name)).values() if isinstance(one, Picture)]
    return {picture.NAME: picture for picture in sorted(every, key=lambda one: one.ORDER)}


def __getattr__(name: str) -> Picture:
    if name.startswith("_") or name not in pictures():
        raise AttributeError(name)
    return pictures()[name]
