"""Predicted times back to the scheduler: seconds that a unit of each class's work takes on one replica, as classes of jobs have it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from threadpoolctl import threadpool_limits

from analysis.opening import read_whole
from analysis.plain import one_line
from analysis.terms import Refused, Unreadable

from . import asking, tables, validating
from .white import CLASS, REPLICAS, WORK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from .terms import Floats, Row, Validation

    Flags = NDArray[np.bool_]

PER_WORK, SCV, SERIAL = "predicted_s_per_work", "prediction_scv", "serial"


@dataclass(frozen=True, slots=True)
class Served:
    """What a unit of work of one class is predicted to take, seconds on one replica; `measured_s_per_work` is what its jobs took.

    `off` is how far the predicted times of its jobs typically were from the measured, of groups left out; a fraction. `ordered` is the
    share of pairs of its and other classes' jobs that were predicted in the right order.
    """

    name: str
    jobs: int
    predicted_s_per_work: float
    measured_s_per_work: float
    off: float
    ordered: float


def served(rows: Sequence[Row], model: str) -> tuple[list[Served], Validation]:
    """Predict every class's time a unit of work. Models of logarithms tell medians: they are raised to means by what was left out.

    Raises: Refused, TooFew.
    """
    bare = [row for row in rows if not isinstance(row.factors.get(WORK), float) or CLASS not in row.factors]
    if bare:
        raise Refused(f"{len(bare)} of {len(rows)} jobs tell no class or no work; predicted times are by class and a unit of work.")
    kept = tables.thinned(rows)
    table = tables.table(kept, "service_s")
    found = validating.validate(table, asking.by_of(table), [model])
    said = found.held_out[-1].predicted
    known = ~np.isnan(said)
    if not known.any():
        raise Refused(f"{model}: {found.scored[-1].why or 'it could predict none of the jobs left out'}.")
    raised = float(table.values[known].sum() / said[known].sum())  # Duan's smearing (1983), as a ratio of sums
    with threadpool_limits(1):
        fitted = asking.learner(table, found.by, model)(table, table.units(found.by))(table.points)
    times = (np.exp(fitted) if table.log else fitted) * raised
    names = np.array([str(row.factors[CLASS]) for row in kept])
    alone = np.array([_work_alone(row) for row in kept])
    made = []
    for name in dict.fromkeys(names.tolist()):
        own = names == name
        told = own & known
        off = float(np.abs(np.log(said[told] / table.values[told])).mean()) if told.any() and table.log else math.nan
        predicted, measured = (float(one[own].sum() / alone[own].sum()) for one in (times, table.values))
        made.append(Served(name, int(own.sum()), predicted, measured, math.expm1(off), _ordered(said, table.values, own, known)))
    return made, found


def _work_alone(row: Row) -> float:
    """The work of a job as its time has it: what one replica does of it, by the serial part its class declares (Amdahl)."""
    work, replicas, serial = (float(row.factors.get(name, other)) for name, other in ((WORK, 1.0), (REPLICAS, 1.0), (SERIAL, 0.0)))
    return work * (serial + (1 - serial) / replicas)


def _ordered(said: Floats, measured: Floats, own: Flags, known: Flags) -> float:
    """The share of pairs with a job of a class that were predicted in the right order; one half is chance."""
    mine = own & known
    above = np.sign(said[mine][:, None] - said[known]) * np.sign(measured[mine][:, None] - measured[known])
    pairs = above[above != 0]
    return float((pairs > 0).mean()) if len(pairs) else math.nan


def classes_of(path: Path) -> dict[str, Any]:
    """Read a file of classes of jobs. Raises: Unreadable, for a file that is none."""
    try:
        document: Any = yaml.safe_load(read_whole(path).decode())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: is no YAML: {one_line(error)}.") from None
    classes = document.get("classes") if isinstance(document, dict) else None
    if not isinstance(classes, list) or not all(isinstance(one, dict) and "name" in one for one in classes):
        raise Unreadable(f"{path}: has no list of classes with names; a file of data/jobs belongs here.")
    return dict(document)


def written(path: Path, document: dict[str, Any], found: Sequence[Served]) -> str:
    """Write a file of classes anew with the predicted times in it; how wrong they are is no longer drawn (`prediction_scv`).

    Raises: Refused, for a class that was not measured.
    """
    told = {one.name: one for one in found}
    for one in document["classes"]:
        if str(one["name"]) not in told:
            raise Refused(f"{path}: class {one_line(one['name'])} was not measured; these runs have {', '.join(map(one_line, told))}.")
        one[PER_WORK] = float(f"{told[str(one['name'])].predicted_s_per_work:.6g}")
        one.pop(SCV, None)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
