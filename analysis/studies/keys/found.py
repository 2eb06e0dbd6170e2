"""Whether "as found" was one and the same all through a run, and whether points are what their tweak sets asked for.

An effect is the difference between a key set and the key as found. A cell writes down what it found of the keys that it sets; what the
other cells ran under is known from the cells around them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.checks import same_value
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from analysis.terms import Cell, Factor, Run


def moved(run: Run) -> dict[str, str]:
    """Cells, by id, round which a key was found at another value than in the beginning, each with the reason.

    Nodes of a cluster may each have their own values: a cell is held against those of its node.
    """
    nodes: dict[str | None, list[Cell]] = {}
    for cell in sorted(run.cells, key=lambda cell: cell.order):
        nodes.setdefault(cell.node, []).append(cell)
    found: dict[str, str] = {}
    for cells in nodes.values():
        for key in dict.fromkeys(key for cell in cells if cell.applied for key, value in cell.applied.before.items() if value is not None):
            for cell, value, first in _round(cells, key):
                found.setdefault(cell.id, f"{key} was found at {value} about this cell, at {first} in the beginning")
    return found


def _round(cells: Sequence[Cell], key: str) -> Iterator[tuple[Cell, object, object]]:
    """Cells at which, or at the next of which to either side that looked, a key stood elsewhere than at the first that looked."""
    looked = [cell.applied.before.get(key) if cell.applied else None for cell in cells]
    first = next(value for value in looked if value is not None)
    for cell, *sides in zip(cells, _carried(looked), reversed([*_carried(reversed(looked))]), strict=True):
        other = next((value for value in sides if value is not None and not same_value(value, first)), None)
        if other is not None:
            yield cell, other, first


def _carried(values: Iterable[object]) -> Iterator[object]:
    """Each value, or the last before it where there is none."""
    last = None
    for value in values:
        last = last if value is None else value
        yield last


def must_be_as_requested(run: Run) -> None:
    """Check that the points of a design set the keys that their tweak sets asked for, and no others.

    Raises: Unreadable, naming the first that does not: keys would be called by other names than their own.
    """
    for factor in run.design.factors:
        points = {name: point.levels.get(factor.name) for name, point in run.design.points.items() if point.tweakset == factor.tweakset}
        asked = {name: {one.key: one.value for one in run.tweaksets[name].requested} for name in points if name in run.tweaksets}
        if not any(factor.name in values for values in asked.values()):
            continue  # a script, or several settings under one name
        points[run.baseline], asked[run.baseline] = None, {one.key: one.value for one in run.tweaksets[run.baseline].requested}
        for name, values in asked.items():
            level, value = points[name], values.get(factor.name)
            if (level is None) != (value is None) or (level is not None and not _same(factor, level, value)):
                said = ["leaves it as found" if one is None else f"sets it to {one}" for one in (level, value)]
                raise Unreadable(
                    f"{run.origin}: design.points.{name} {said[0]}, {factor.name}, but its tweak set {said[1]}: one of the two was edited."
                )


def _same(factor: Factor, level: str, value: object) -> bool:
    # Limits and the like have ways to write one value that are not compared here.
    return factor.kind != "sysctl" or same_value(level, value)
