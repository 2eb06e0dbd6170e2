"""What the tweak sets of an ablation are called in a picture: by the key that is taken away or left alone, not by a name that is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lettering import fitted
from .style import TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analysis.terms import Run


# Their effects are those of single keys, and have a picture.
BY_KEY = frozenset({"ablation", "factorial", "fractional", "screening", "file"})


def judged_by_key(runs: Iterable[Run]) -> bool:
    """Whether all of some runs were of designs that tell what single keys do."""
    return all(run.design.kind in BY_KEY for run in runs)


def spoken(runs: Iterable[Run], names: Iterable[str]) -> dict[str, str]:
    """Answer name → what to call it; of other designs, and where two would be called alike, the name itself."""
    runs = list(runs)
    found: dict[str, str] = {}
    for name in names:
        label = next((_spoken(run, name) for run in runs if name in run.design.points and run.design.kind == "ablation"), name)
        found[name] = name if label in found.values() else label
    return found


def fitted_arms(runs: Iterable[Run], names: Iterable[str], room_in: float, points: float = TEXT, lines: int = 2) -> dict[str, str]:
    """Answer name → what to call it, made to fit."""
    labels = spoken(runs, names)
    shown = fitted(labels.values(), room_in, points, lines)
    return {name: shown[label] for name, label in labels.items()}


def _spoken(run: Run, name: str) -> str:
    point = run.design.points[name]
    on = [key for key, level in point.levels.items() if level is not None]
    off = [key for key, level in point.levels.items() if level is None]
    # One run may take several tweak sets apart: then the key alone does not say whose.
    whose = f" ({point.tweakset})" if len({one.tweakset for one in run.design.points.values()}) > 1 else ""
    if not off:
        return name
    if len(on) == 1:
        return f"{on[0]} alone{whose}"
    return f"all but {off[0]}{whose}" if len(off) == 1 else name
