"""Pictures of saved runs, one module a study: `@picture` makes one of the function that draws it from a scene.

Each says what it is, what a reader can see in it, where it stands among the others and of which runs it is (`style.Picture`). They stand on
one sheet (`page`) and are made of six marks (`marks`); what they are drawn from is read once (`scene`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.studies.monitors.records import is_monitored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from analysis.terms import Run

    from .style import Picture

# What was drawn once, and what says it now.
DROPPED = {
    "averages": "`--picture summary` has the averages in a table, `forest` the differences with their intervals",
    "impact": "`forest` has the effect of each tweak set, `parameters` the keys it changes",
}


def pictures() -> dict[str, Picture]:
    """Find every picture that is drawn from a scene, by name, in the order in which a reader wants them."""
    return dict(_every())


@cache
def _every() -> dict[str, Picture]:
    from .style import Picture  # noqa: PLC0415  # matplotlib, which a list of names need not wait for

    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))
    modules: dict[str, Any] = {name: import_module(f"{__name__}.{name}") for name in names}
    every = {one.NAME: one for module in modules.values() for one in vars(module).values() if isinstance(one, Picture)}
    every |= {name: one for name, one in modules.items() if hasattr(one, "draw") and not hasattr(one, "NEEDS")}  # until all are converted
    return dict(sorted(every.items(), key=lambda item: item[1].ORDER))


def __getattr__(name: str) -> Picture:
    if name.startswith("_") or name not in _every():
        raise AttributeError(name)
    return _every()[name]


def fitting(known: Mapping[str, Picture], runs: Iterable[Run]) -> dict[str, Picture]:
    """Leave out pictures of designs that none of the runs had, and of what none reported: nobody misses them there."""
    runs = list(runs)
    kinds = {run.design.kind for run in runs}
    reported = {name for run in runs for cell in run.cells for name in cell.report}
    monitored = {is_monitored(run) for run in runs}
    return {
        name: one
        for name, one in known.items()
        if kinds & getattr(one, "DESIGNS", kinds)
        and getattr(one, "REPORTS", frozenset()) <= reported
        and getattr(one, "MONITORED", None) in {None, *monitored}
        and not getattr(one, "NOT_OF", frozenset()) & reported
    }
