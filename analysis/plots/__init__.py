"""One file per picture; the file's name is the picture's.

A picture says what it is (`TITLE`), what a reader can see in it (`ANSWERS`), where it stands among the others (`ORDER`) and how it is
drawn: `draw(scene)` answers a figure, or raises `NothingToDraw` with the reason. `DESIGNS`, where there is one, are the designs of which it
is a picture, `REPORTS` what a workload must have reported, `NOT_OF` what it must not: where steps are stretches of time they say nothing of
speed. `MONITORED` says that it is of monitors, and other runs do without it; or, where it is False, that it is of tweak sets, and runs of
monitors do without it. A file without `draw` helps the others.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from analysis.studies.monitors.records import is_monitored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.figure import Figure

    from analysis.terms import Run

    from .scene import Scene


class Picture(Protocol):
    """What a picture's file holds."""

    TITLE: str
    ANSWERS: str
    ORDER: int

    def draw(self, scene: Scene) -> Figure:
        """Draw it. Raises: NothingToDraw."""


def pictures() -> dict[str, Picture]:
    """Find every picture that is drawn from a scene, by name, in the order in which a reader wants them.

    One that is drawn from anything else says so in `NEEDS` and has its own command.
    """
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))
    modules = {name: import_module(f"{__name__}.{name}") for name in names}
    found = {name: cast("Picture", module) for name, module in modules.items() if hasattr(module, "draw") and not hasattr(module, "NEEDS")}
    return dict(sorted(found.items(), key=lambda one: one[1].ORDER))


def fitting(known: Mapping[str, Picture], runs: Iterable[Run]) -> dict[str, Picture]:
    """Leave out pictures of designs that none of the runs had, and of what none reported: nobody misses them there."""
    runs = list(runs)
    kinds = {run.design.kind for run in runs}
    told = {name for run in runs for cell in run.cells for name in cell.report}
    monitored = {is_monitored(run) for run in runs}
    return {
        name: one
        for name, one in known.items()
        if kinds & getattr(one, "DESIGNS", kinds)
        and getattr(one, "REPORTS", frozenset()) <= told
        and (not hasattr(one, "MONITORED") or one.MONITORED in monitored)
        and not getattr(one, "NOT_OF", frozenset()) & told
    }
