"""White boxes beside the black ones: laws with parameters that mean something, fitted to the same training rows and asked the same points.

Amdahl's and Gunther's laws take `replicas` (and `work`), the law of work takes `work`, the roofline takes `flop` and `bytes`. Where rows
have classes, each class has its own law. A class, or what else a law needs, that the training rows lack is not predicted (NaN).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls

from analysis.terms import Refused
from control.scaling import Point, fits, time_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from .models import Fitted, Learner
    from .terms import Floats, Points, Table, Texts

    Law = Callable[[Points], Floats]

CLASS, REPLICAS, WORK, FLOP, BYTES = "class", "replicas", "work", "flop", "bytes"


def learners(table: Table) -> dict[str, Learner]:
    """The white boxes whose factors the table has."""
    there = set(table.points.numbers)
    made: dict[str, Learner] = {}
    if not table.log:  # these are laws of times
        return made
    if REPLICAS in there:
        made |= {
            "amdahl": partial(_by_class, law=partial(scaling, name="amdahl")),
            "usl": partial(_by_class, law=partial(scaling, name="usl")),
        }
    if WORK in there:
        made[WORK] = partial(_by_class, law=of_work)
    if {FLOP, BYTES} <= there:
        made["roofline"] = partial(_by_class, law=roofline)
    return made


def _by_class(table: Table, groups: Texts, law: Callable[[Table], Law]) -> Fitted:
    del groups
    classes = table.points.names.get(CLASS)
    if classes is None:
        whole = law(table)
        return lambda points: _logs(whole(points))
    laws: dict[str, Law] = {}
    said = ""
    for one in np.unique(classes):
        try:
            laws[str(one)] = law(table.take(np.flatnonzero(classes == one)))
        except Refused as error:
            said = str(error)
    if not laws:
        raise Refused(said)

    def predict(points: Points) -> Floats:
        made = np.full(points.count, np.nan)
        for one, found in laws.items():
            at = np.flatnonzero(points.names[CLASS] == one)
            made[at] = found(points.take(at))
        return _logs(made)

    return predict


def scaling(table: Table, name: str) -> Law:
    """Fit Amdahl's law or Gunther's, each row a job. Raises: Refused."""
    found = next((one for one in fits(_points(table)) if one.name == name), None)
    if found is None:
        raise Refused("too few numbers of replicas for this law.")
    return lambda points: time_s(found.law, _column(points, WORK, 1.0), _column(points, REPLICAS, 1.0))


def of_work(table: Table) -> Law:
    """Fit time = start + cost·work, both at least 0, by least squares of relative errors. Raises: Refused, where all have one size."""
    work = table.points.numbers[WORK]
    known = ~np.isnan(work)
    if len(np.unique(work[known])) < 2:
        raise Refused("all jobs had one size.")
    columns = np.column_stack([np.ones(int(known.sum())), work[known]]) / table.values[known, None]
    (start, cost), _ = nnls(columns, np.ones(len(columns)))
    return lambda points: np.asarray(start + cost * points.numbers[WORK])


def roofline(table: Table) -> Law:
    """Fit time = max(flop / peak, bytes / bandwidth) on logarithms (Williams, Waterman and Patterson 2009). Raises: Refused.

    In order of their flop a byte, rows up to some place are bound by bandwidth and the others by the peak; every place is tried.
    """
    flop, bytes_ = (table.points.numbers[name] for name in (FLOP, BYTES))
    known = (flop > 0) & (bytes_ > 0)
    if known.sum() < 3:
        raise Refused(f"{int(known.sum())} rows with flop and bytes above 0; a roofline takes 3.")
    log_flop, log_bytes, seen = np.log(flop[known]), np.log(bytes_[known]), np.log(table.values[known])
    order = np.argsort(log_flop - log_bytes, kind="stable")
    log_flop, log_bytes, seen = log_flop[order], log_bytes[order], seen[order]
    best = (np.inf, 0.0, 0.0)
    for place in range(len(seen) + 1):
        bandwidth = np.mean((log_bytes - seen)[:place]) if place else np.inf
        peak = np.mean((log_flop - seen)[place:]) if place < len(seen) else np.inf
        off = float(((np.maximum(log_flop - peak, log_bytes - bandwidth) - seen) ** 2).sum())
        best = min(best, (off, float(peak), float(bandwidth)))
    _, peak, bandwidth = best
    return lambda points: np.maximum(points.numbers[FLOP] / np.exp(peak), points.numbers[BYTES] / np.exp(bandwidth))


def _points(table: Table) -> list[Point]:
    replicas, work = (_column(table.points, name, 1.0).tolist() for name in (REPLICAS, WORK))
    rows = zip(replicas, work, table.values.tolist(), strict=True)
    return [Point(int(n), size, value) for n, size, value in rows if n >= 1 and n == int(n) and size > 0]


def _column(points: Points, name: str, missing: float) -> Floats:
    column = points.numbers.get(name)
    return np.full(points.count, missing) if column is None else np.where(np.isnan(column), missing, column)


def _logs(times: Floats) -> Floats:
    """Laws tell times, models are compared where they see logarithms; a time that is not above 0 is no prediction."""
    return np.log(np.where(times > 0, times, np.nan))
