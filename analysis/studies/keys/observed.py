"""From a saved run to what was observed at the points of its design: which cells count, which were lost and why, and the A/A check.

An effect is the difference between a key set and the key as found. A cell writes down what it found of the keys that it sets; what the
other cells ran under is known from the cells around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from analysis.arms import Arm, baseline_name, met, parts, side, studies
from analysis.checks import READ_BACK, different_data, must_be_in_force, must_have_done_its_jobs, must_not_contradict, same_value
from analysis.pairing import metric_named, primary_of, value_of
from analysis.switched import is_switched
from analysis.terms import AGAIN, Cell, Metric, NotComparable, Run, Unreadable
from analysis.terms import Factor as Setting

from .terms import DesignFactor, EffectRow, LostPoint, Observed

AS_FOUND = "as found"
SETS = "tweak set"  # the one factor of a matrix
# Designs that set whole tweak sets against each other.
WHOLE_SETS = frozenset({"matrix", "ablation"})
# Those of the design's own notes: no I, which is the identity in every alias table, and no O, which reads as nought.
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz"


def letters(count: int) -> list[str]:
    most = len(LETTERS)
    return [LETTERS[at % most] + (str(at // most + 1) if at >= most else "") for at in range(count)]


def observed(run: Run, metric: str | None = None) -> list[Observed]:
    """Answer what was observed of each tweak set that was taken apart, under each workload of each study; of a matrix, of all its sets.

    `metric` takes the place of the declared primary one.

    Raises: Unreadable, where the design's points contradict what their tweak sets asked for.
    """
    if is_switched(run):
        return []  # each tweak set against the values found, as `compare` says it: nothing is taken apart
    must_be_as_requested(run)
    result = []
    arm = Arm(run.origin, (run,))
    for study in studies([arm]):
        for workload, names in met(arm, study).items():
            taken = metric_named(metric) if metric else primary_of(run, study, workload)
            profiles = list(dict.fromkeys(factor.tweakset for factor in run.design.factors))
            of_profiles = [one for profile in profiles if (one := _profile(run, study, workload, profile, taken)) is not None]
            result += of_profiles or [_matrix(run, study, workload, names, taken)]
    return result


def _profile(run: Run, study: str, workload: str, profile: str, metric: Metric) -> Observed | None:
    """One tweak set taken apart; None where this workload never met a point of it."""
    varied = [factor for factor in run.design.factors if factor.tweakset == profile]
    points = {_stock(run, study): dict.fromkeys((factor.name for factor in varied), None)}
    points |= {name: dict(point.levels) for name, point in run.design.points.items() if point.tweakset == profile}
    factors = tuple(
        DesignFactor(factor.name, letter, tuple(AS_FOUND if level is None else level for level in factor.levels))
        for factor, letter in zip(varied, letters(len(varied)), strict=True)
    )
    named = {
        name: tuple(AS_FOUND if levels[factor.name] is None else str(levels[factor.name]) for factor in varied)
        for name, levels in points.items()
    }
    rows, lost = _gather(run, (study, workload), metric, named)
    if not any(cell.tweakset in run.design.points for cell in _cells(run, study, workload)):
        return None
    return Observed(
        study=study,
        workload=workload,
        profile=profile,
        design=run.design.kind,
        metric=metric.name,
        better=metric.better,
        scale="log",
        margin=run.studies[study].margin,
        factors=factors,
        points=named,
        rows=rows,
        lost=lost,
        design_notes=dict(run.design.notes.get(profile, {})),
        notes=tuple(_in_force(run, study, workload, profile)),
    )


def _matrix(run: Run, study: str, workload: str, names: list[str], metric: Metric) -> Observed:
    sets = [_stock(run, study), *(name for name in names if name not in {run.baseline, AGAIN})]
    points: dict[str, tuple[str, ...]] = {name: (name,) for name in sets}
    rows, lost = _gather(run, (study, workload), metric, points)
    return Observed(
        study=study,
        workload=workload,
        profile="",
        design="matrix",
        metric=metric.name,
        better=metric.better,
        scale="log",
        margin=run.studies[study].margin,
        factors=(DesignFactor(SETS, "A", tuple(sets)),),
        points=points,
        rows=rows,
        lost=lost,
    )


def _stock(run: Run, study: str) -> str:
    return baseline_name(Arm(run.origin, (run,)), study)


def _cells(run: Run, study: str, workload: str) -> list[Cell]:
    return [cell for cell in run.cells if (cell.study, cell.workload) == (study, workload)]


def _gather(
    run: Run, where: tuple[str, str], metric: Metric, points: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[EffectRow, ...], tuple[LostPoint, ...]]:
    cells = {(cell.tweakset, cell.block): cell for cell in _cells(run, *where)}
    untouched = side(Arm(run.origin, (run,)), *where, next(iter(points)))  # more than one arm, where these were declared
    cells |= {(cell.tweakset, cell.block): cell for cell in untouched.cells.values()} if untouched else {}
    doubts = moved(run)
    planned = max(run.design.blocks_of(*where, name) for name in points if name in run.tweaksets)
    blocks = sorted({block for _, block in cells} | set(range(1, planned + 1)))
    rows, lost = [], dict[tuple[str, str], list[str]]()
    for block in blocks:
        measured = [cells[name, block] for name in points if (name, block) in cells and cells[name, block].outcome == "measured"]
        for name in points:
            cell = cells.get((name, block))
            try:
                value = _value(run, cell, metric, measured[0] if measured else None, doubts)
            except NotComparable as reason:
                lost.setdefault((name, str(reason).rstrip(".")), []).append(str(block))
            else:
                rows.append(EffectRow(name, points[name], str(block), value))
    return tuple(rows), tuple(LostPoint(name, reason, tuple(missing)) for (name, reason), missing in lost.items())


def _value(run: Run, cell: Cell | None, metric: Metric, first: Cell | None, doubts: Mapping[str, str]) -> float:
    """Read a cell as `compare` would: measured, its settings in force, its numbers those of its steps, its work that of its block."""
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
    reason = different_data(first, cell) if first is not None and first is not cell else None
    if reason:
        raise NotComparable(f"did other work than {first.tweakset if first else ''} in its block: {reason}")
    return value_of(cell, metric)


def _in_force(run: Run, study: str, workload: str, profile: str) -> Iterator[str]:
    """Keys that had their value already: setting them changed nothing, whatever is found."""
    for factor in (factor for factor in run.design.factors if factor.tweakset == profile and factor.kind in READ_BACK):
        cells = [
            cell
            for cell in _cells(run, study, workload)
            if cell.outcome == "measured"
            and cell.tweakset in run.design.points
            and run.design.points[cell.tweakset].levels.get(factor.name) is not None
        ]
        if cells and all(cell.applied is not None and factor.name in cell.applied.already_in_force for cell in cells):
            yield f"{factor.name} had its value before: setting it changed nothing here, so no effect of it is one."


def moved(run: Run) -> dict[str, str]:
    """Cells, by id, round which a key was found at another value than in the beginning, each with the reason.

    Nodes of a cluster may each have their own values: a cell is held against those of its node.
    """
    nodes: dict[str | None, list[Cell]] = {}
    for cell in sorted(run.cells, key=lambda cell: cell.order):
        nodes.setdefault(cell.node, []).append(cell)
    result: dict[str, str] = {}
    for cells in nodes.values():
        for key in dict.fromkeys(key for cell in cells if cell.applied for key, value in cell.applied.before.items() if value is not None):
            for cell, value, first in _round(cells, key):
                result.setdefault(cell.id, f"{key} was found at {value} about this cell, at {first} in the beginning")
    return result


def _round(cells: Sequence[Cell], key: str) -> Iterator[tuple[Cell, object, object]]:
    """Cells at which, or at the next of which to either side that looked, a key stood elsewhere than at the first that looked."""
    looked = [cell.applied.before.get(key) if cell.applied else None for cell in cells]
    first = next(value for value in looked if value is not None)
    for cell, *sides in zip(cells, _carried(looked), reversed([*_carried(reversed(looked))]), strict=True):
        neighbour = next((value for value in sides if value is not None and not same_value(value, first)), None)
        if neighbour is not None:
            yield cell, neighbour, first


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
        requested = {
            name: {setting.key: setting.value for setting in run.tweaksets[name].requested} for name in points if name in run.tweaksets
        }
        if not any(factor.name in values for values in requested.values()):
            continue  # a script, or several settings under one name
        points[run.baseline] = None
        requested[run.baseline] = {setting.key: setting.value for setting in run.tweaksets[run.baseline].requested}
        for name, values in requested.items():
            level, value = points[name], values.get(factor.name)
            if (level is None) != (value is None) or (level is not None and not _same(factor, level, value)):
                lines = ["leaves it as found" if text is None else f"sets it to {text}" for text in (level, value)]
                raise Unreadable(
                    f"{run.origin}: design.points.{name} {lines[0]}, {factor.name}, but its tweak set {lines[1]}: one of the "
                    "two was edited."
                )


def _same(factor: Setting, level: str, value: object) -> bool:
    # Limits and the like have ways to write one value that are not compared here.
    return factor.kind != "sysctl" or same_value(level, value)
