"""Pictures of saved runs: `@picture` makes one from the function that draws it from a scene.

Pictures of any run are here; a study's own are found in its folder, in files whose names begin with
`pictures`. Each has a title, a caption, a place among the others, and the runs it applies to
(`style.Picture`). They are drawn on one sheet (`page`) from a few marks (`marks`); the data that
they draw are read once (`scene`).
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

# Without a writable home, matplotlib caches its fonts in a temporary folder: hide that message.
logging.getLogger("matplotlib").addFilter(lambda _: False)
STUDIES = Path(__file__).parents[1] / "studies"
OF_ANY_RUN = ("alternation", "effects", "runs", "sampled")


def pictures() -> dict[str, Picture]:
    """Find every picture drawn from a scene, by name, in reading order."""
    return _loaded(tuple(sorted(path.name for path in STUDIES.iterdir())))


def fitting(runs: Iterable[Run]) -> dict[str, Picture]:
    """Drop pictures of designs that no run had, and of reports that no run made."""
    runs = list(runs)
    kinds = {run.design.kind for run in runs}
    reported = {name for run in runs for cell in run.cells for name in cell.report}
    monitored = {run.is_monitored for run in runs}
    candidates = _loaded(tuple(sorted({name for run in runs for name in studies.names_of(run)})))
    return {
        name: picture
        for name, picture in candidates.items()
        if kinds & (picture.DESIGNS or kinds)
        and reported >= picture.REPORTS
        and picture.MONITORED in {None, *monitored}
        and not picture.NOT_OF & reported
    }


@cache
def _loaded(of_studies: tuple[str, ...]) -> dict[str, Picture]:
    from .style import Picture

    names = [f"{__name__}.{name}" for name in OF_ANY_RUN]
    for study in of_studies:
        names += [
            f"analysis.studies.{study}.{path.stem}"
            for path in sorted((STUDIES / study).glob("pictures*.py"))
        ]
    every = [
        one
        for name in names
        for one in vars(import_module(name)).values()
        if isinstance(one, Picture)
    ]
    return {picture.NAME: picture for picture in sorted(every, key=lambda one: one.ORDER)}


def __getattr__(name: str) -> Picture:
    if name.startswith("_") or name not in pictures():
        raise AttributeError(name)
    return pictures()[name]
