"""Observations at the points of a run's design: usable cells, and lost cells with reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from analysis.arms import Arm, Sides, baseline_name, met, parts, studies
from analysis.checks import (
    READ_BACK,
    different_data,
    must_be_in_force,
    must_have_done_its_jobs,
    must_not_contradict,
    same_value,
)
from analysis.pairing import metric_named, primary_of, value_of
from analysis.terms import AGAIN, Cell, Metric, NotComparable, Run, Unreadable

from .terms import DesignData, DesignFactor, EffectRow, LostPoint

AS_FOUND = "as found"
SETS = "tweak set"  # the one factor of a matrix
# Designs that compare whole tweak sets.
WHOLE_SETS = frozenset({"matrix", "ablation"})
# Letters of the design's own notes: no I, the identity in every alias table, and no O, which looks
# like zero.
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz"
Points = dict[str, tuple[str, ...]]
Layout = tuple[tuple[DesignFactor, ...], Points]


def letters(count: int) -> list[str]:
    most = len(LETTERS)
    return [LETTERS[at % most] + (str(at // most + 1) if at >= most else "") for at in range(count)]


def observed(run: Run, metric: str | None = None) -> list[DesignData]:
    """List the observations of decomposed tweak sets, or a matrix's, by study and workload.

    `metric` replaces the declared primary metric.

    Raises: Unreadable, if the design's points contradict the settings of their tweak sets.
    """
    if run.is_switched:
        return []  # each tweak set against the found values, as in `compare`: nothing is decomposed
    must_be_as_requested(run)
    result = []
    arm = Arm(run.origin, (run,))
    for study in studies([arm]):
        stock = baseline_name(arm, study)
        for workload, names in met(arm, study).items():
            taken = metric_named(metric) if metric else primary_of(run, study, workload)
            sets = (stock, *(name for name in names if name not in {run.baseline, AGAIN}))
            designs: dict[str, Layout] = {
                "": ((DesignFactor(SETS, "A", sets),), {name: (name,) for name in sets})
            }
            if any(name in run.design.points for name in names):
                designs = {
                    name: _taken_apart(run, name, stock)
                    for name in dict.fromkeys(factor.tweakset for factor in run.design.factors)
                }
            for profile, (factors, points) in designs.items():
                result.append(
                    DesignData(
                        study,
                        workload,
                        taken.name,
                        factors,
                        points,
                        *_gather(run, (study, workload), taken, points),
                        profile=profile,
                        design=run.design.kind if profile else "matrix",
                        better=taken.better,
                        scale="log",
                        margin=run.studies[study].margin,
                        notes=tuple(_in_force(run, study, workload, profile)),
                    )
                )
    return result


def _taken_apart(run: Run, profile: str, stock: str) -> Layout:
    varied = [factor for factor in run.design.factors if factor.tweakset == profile]
    factors = tuple(
        DesignFactor(factor.name, letter, tuple(map(_level, factor.levels)))
        for factor, letter in zip(varied, letters(len(varied)), strict=True)
    )
    points = {stock: (AS_FOUND,) * len(varied)}
    for name, point in run.design.points.items():
        if point.tweakset == profile:
            points[name] = tuple(_level(point.levels[factor.name]) for factor in varied)
    return factors, points


def _level(level: object) -> str:
    return AS_FOUND if level is None else str(level)


def _cells(run: Run, study: str, workload: str) -> list[Cell]:
    return [cell for cell in run.cells if (cell.study, cell.workload) == (study, workload)]


def _gather(
    run: Run, where: tuple[str, str], metric: Metric, points: Points
) -> tuple[tuple[EffectRow, ...], tuple[LostPoint, ...]]:
    cells = {(cell.tweakset, cell.block): cell for cell in _cells(run, *where)}
    untouched = Sides(Arm(run.origin, (run,)), where[0]).side(where[1], next(iter(points)))
    cells |= (
        {(cell.tweakset, cell.block): cell for cell in untouched.cells.values()}
        if untouched
        else {}
    )
    doubts = moved(run)
    planned = max(run.design.blocks_of(*where, name) for name in points if name in run.tweaksets)
    rows, lost = [], dict[tuple[str, str], list[str]]()
    for block in sorted({block for _, block in cells} | set(range(1, planned + 1))):
        measured = (
            cells[name, block]
            for name in points
            if (name, block) in cells and cells[name, block].outcome == "measured"
        )
        first = next(measured, None)
        for name in points:
            try:
                value = _value(run, cells.get((name, block)), metric, first, doubts)
            except NotComparable as reason:
                lost.setdefault((name, str(reason).rstrip(".")), []).append(str(block))
            else:
                rows.append(EffectRow(name, points[name], str(block), value))
    return tuple(rows), tuple(
        LostPoint(name, reason, tuple(missing)) for (name, reason), missing in lost.items()
    )


def _value(
    run: Run, cell: Cell | None, metric: Metric, first: Cell | None, doubts: Mapping[str, str]
) -> float:
    """Read a cell with all checks of `compare`: measured, in force, consistent, same work."""
    if cell is None:
        raise NotComparable("not run")
    if cell.outcome != "measured":
        raise NotComparable(f"{cell.outcome}: {cell.reason}")
    for part in parts(cell):
        if part.id in doubts:
            raise NotComparable(doubts[part.id])
        must_be_in_force(run.tweaksets[part.tweakset], [part])
    must_not_contradict(parts(cell))
    must_have_done_its_jobs(parts(cell))
    if first is not None and first is not cell and (reason := different_data(first, cell)):
        raise NotComparable(f"did different work from {first.tweakset} in its block: {reason}")
    return value_of(cell, metric)


def _in_force(run: Run, study: str, workload: str, profile: str) -> Iterator[str]:
    points = run.design.points
    for factor in run.design.factors:
        already = [
            cell.applied is not None and factor.name in cell.applied.already_in_force
            for cell in _cells(run, study, workload)
            if cell.outcome == "measured"
            and cell.tweakset in points
            and points[cell.tweakset].levels.get(factor.name) is not None
        ]
        is_read = factor.tweakset == profile and factor.kind in READ_BACK
        if is_read and already and all(already):
            yield (
                f"{factor.name} already had its value: setting it changed nothing here, so any "
                "effect is spurious."
            )


def moved(run: Run) -> dict[str, str]:
    """Return cells near which a key was not at its initial value, by id, each with the reason.

    A cell records the found values of the keys that it sets; for other keys, the nearest neighbours
    that recorded them count. Nodes of a cluster may have different values: a cell is compared with
    those on its node.
    """
    nodes: dict[str | None, list[Cell]] = {}
    for cell in sorted(run.cells, key=lambda cell: cell.order):
        nodes.setdefault(cell.node, []).append(cell)
    result: dict[str, str] = {}
    for cells in nodes.values():
        found = pd.DataFrame(
            [dict(cell.applied.before) if cell.applied else {} for cell in cells], dtype=object
        )
        for key in found.columns[found.notna().any()]:
            looked = found[key]
            first = looked.dropna().iloc[0]
            for cell, *around in zip(cells, looked.ffill(), looked.bfill(), strict=True):
                for value in around:
                    if pd.notna(value) and not same_value(value, first):
                        reason = f"{key} was {value} around this cell but {first} at the beginning"
                        result.setdefault(cell.id, reason)
    return result


def must_be_as_requested(run: Run) -> None:
    """Check that the points of a design set exactly the keys that their tweak sets request.

    Raises: Unreadable, naming the first mismatch: keys would be mislabelled.
    """
    for factor in run.design.factors:
        levels = {
            name: point.levels.get(factor.name)
            for name, point in run.design.points.items()
            if point.tweakset == factor.tweakset and name in run.tweaksets
        }
        requested: dict[str, str | None] = {}
        for name in (*levels, run.baseline):
            settings = {one.key: one.value for one in run.tweaksets[name].requested}
            requested[name] = settings.get(factor.name)
        if not any(value is not None for value in requested.values()):
            continue  # a script, or several settings under one name
        for name, value in requested.items():
            level = levels.get(name)
            if level is None or value is None:
                equal = level is value
            else:  # limits and the like can be spelled in several ways, which are not compared here
                equal = factor.kind != "sysctl" or same_value(level, value)
            if not equal:
                does, asks = (
                    f"leaves {factor.name} as found"
                    if setting is None
                    else f"sets {factor.name} to {setting}"
                    for setting in (level, value)
                )
                raise Unreadable(
                    f"{run.origin}: design.points.{name} {does}, but its tweak set {asks}: one of "
                    "the two was edited."
                )
