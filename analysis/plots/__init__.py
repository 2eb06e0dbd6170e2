"""Pictures of saved runs, one module a study: `@picture` makes one of the function that draws it from a scene.

Each says what it is, what a reader can see in it, where it stands among the others and of which runs it is (`style.Picture`). They stand on
one sheet (`page`) and are made of six marks (`marks`); what they are drawn from is read once (`scene`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.studies.monitors.records import is_monitored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from analysis.terms import Run

    from .style import Picture

# What was drawn once, and what says it now.
DROPPED = {
    "averages": "`--picture summary` has the averages in a table, `forest` the differences with their intervals",
    "impact": "`forest` has the effect of each tweak set, `parameters` the keys it changes",
}


FOLDER = Path(__file__).parent
# Rooms of pictures that only some runs have; the others need not load them.
ONLY_OF: dict[str, Callable[[Run], bool]] = {
    **dict.fromkeys(("adaptive", "alternation", "factors", "keys"), lambda run: run.design.kind != "matrix"),
    **dict.fromkeys(("experiments", "faults", "io", "power", "queues", "streams"), lambda run: any(cell.report for cell in run.cells)),
    "monitors": is_monitored,
}


@cache
def rooms() -> tuple[str, ...]:
    """The modules that have pictures, found without loading them."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.py") if "\n@picture(" in path.read_text(encoding="utf-8")))


def pictures() -> dict[str, Picture]:
    """Find every picture that is drawn from a scene, by name, in the order in which a reader wants them."""
    return _in(rooms())


def fitting(runs: Iterable[Run]) -> dict[str, Picture]:
    """Leave out pictures of designs that none of the runs had, and of what none reported: nobody misses them there."""
    runs = list(runs)
    kinds = {run.design.kind for run in runs}
    reported = {name for run in runs for cell in run.cells for name in cell.report}
    monitored = {is_monitored(run) for run in runs}
    return {
        name: picture
        for name, picture in _in(tuple(room for room in rooms() if room not in ONLY_OF or any(map(ONLY_OF[room], runs)))).items()
        if kinds & getattr(picture, "DESIGNS", kinds)
        and reported >= picture.REPORTS
        and picture.MONITORED in {None, *monitored}
        and not picture.NOT_OF & reported
    }


@cache
def _in(rooms: tuple[str, ...]) -> dict[str, Picture]:
    from .style import Picture

    every = [one for room in rooms for one in vars(import_module(f"{__name__}.{room}")).values() if isinstance(one, Picture)]
    return {picture.NAME: picture for picture in sorted(every, key=lambda one: one.ORDER)}


def __getattr__(name: str) -> Picture:
    if name.startswith("_") or name not in pictures():
        raise AttributeError(name)
    return pictures()[name]
