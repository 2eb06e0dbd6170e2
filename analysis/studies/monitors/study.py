"""A monitored run as a whole: every workload's arms, doses, place in the block, and what such a study must show to be believed.

Arms run in random order, so that the place in a block falls on all of them alike; where it matters it is noise that could be had out, and
a reason to look at what the machine does as a block goes on (warmth, a cache, a neighbour).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.terms import NotComparable, Refused
from analysis.wording import probability
from control.t_test import ALPHA, t_quantile, t_tail

from . import acceptance
from .arms import AGAIN, PLACEBO, amount, ends, in_order, labels, load, lost, missing, own
from .control import WALL, against, contrasts, control, figure, judged, other, paid_inside
from .doses import doses
from .records import ALL_CPU, ENERGY, INSIDE, held, is_monitored, watched, with_metrics
from .terms import MonitoredArm, Overhead, OverheadFigure, Position

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from analysis.terms import Cell, Comparison, Run

    from .terms import Control, Watched


def overheads(run: Run) -> list[Overhead]:
    """Say of every workload of a run what watching it costs.

    Raises: Refused, for a run without monitors. Unreadable, for one whose records are damaged.
    """
    if not is_monitored(run):
        raise Refused(
            f"{run.origin}: no cell of it tells of a monitor; "
            "`pytest benchmarks/bench_monitoring_overhead.py --benchmark-save=NAME` saves such."
        )
    run = held(run)
    cells = watched(run)
    run = with_metrics(run, cells)
    drafts = contrasts(run)
    placebos = _against_placebo(run, cells)
    met = {(cell.study, cell.workload) for cell in run.cells}
    places = [(study, workload) for study in run.studies for workload in run.workloads if (study, workload) in met]
    return [_workload(run, place, cells, drafts, placebos) for place in places]


def _workload(
    run: Run,
    place: tuple[str, str],
    every: Sequence[Watched],
    drafts: Sequence[Comparison],
    placebos: Mapping[tuple[str, str, str], OverheadFigure],
) -> Overhead:
    study, workload = place
    here = [cell for cell in run.cells if (cell.study, cell.workload) == place]
    rows = {draft.tweakset: draft for draft in drafts if (draft.study, draft.workload) == place}
    by_arm: dict[str, list[Watched]] = {}
    for one in every:
        if (one.study, one.workload) == place:
            by_arm.setdefault(one.tweakset, []).append(one)
    state = control(rows.get(AGAIN))
    names = in_order(rows, by_arm, run)
    called = labels(run, by_arm, names)
    none = by_arm.get(run.baseline, ())
    arms = tuple(
        replace(_arm(run, here, by_arm.get(name, ()), none, rows[name], state, called[name]), placebo=placebos.get((*place, name)))
        for name in names
    )
    arms = (_none(run, here, none), *arms)
    metric = run.studies[study].primary
    values: dict[str, dict[int, float]] = {}
    for cell in here:
        if cell.outcome == "measured" and all(one.metrics.get(metric.name, 0.0) > 0 for one in (cell, *cell.segments)):
            values.setdefault(cell.tweakset, {})[cell.block] = paid_inside(cell, metric) if cell.segments else cell.metrics[metric.name]
    ordered = {arm.tweakset: arm.cpu.value for arm in arms if arm.cpu is not None and arm.cpu.n > 0 and state.state != "differs"}
    told = [one for arm in by_arm.values() for one in arm]
    trends = tuple(doses(told, values, ordered))
    spots = [
        (one.block, one.tweakset, one.place, values[one.tweakset][one.block]) for one in told if one.block in values.get(one.tweakset, {})
    ]
    base = next((row.primary.baseline for row in rows.values() if row.primary is not None), None)
    family = max((row.family for row in rows.values()), default=0)
    margin = run.studies[study].margin
    units = _units(rows.values())
    below = None if units else _thread_below(run, place, arms)
    checks = acceptance.checks(workload, state, arms, trends, below, margin, turns=bool(units))
    where = None if units else position(spots, run.baseline)
    return Overhead(study, workload, margin, metric.name, base, family, state, arms, trends, where, checks, units or "blocks")


def _units(rows: Collection[Comparison]) -> str:
    """What was compared with what where monitors took turns inside processes; "" where they did not."""
    turns = [row for row in rows if row.processes]
    if not turns:
        return ""
    return "processes" if all(row.pairs == row.processes for row in turns) else "pairs of segments"


def _none(run: Run, here: Sequence[Cell], cells: Sequence[Watched]) -> MonitoredArm:
    """The arm that all others are held against: it has no overhead, but a load of its own."""
    own_cells = [cell for cell in here if cell.tweakset == run.baseline]
    measured = sum(cell.outcome == "measured" for cell in own_cells)
    return MonitoredArm(
        tweakset=run.baseline,
        label="none",
        n=measured,
        blocks=len(own_cells),
        verdict="not comparable",
        said="what others are held against",
        load=load(cells),
        missing=missing(cells),
        lost=lost(own_cells),
    )


def _arm(  # noqa: PLR0913, PLR0917  # one row of a table, and what it is made of
    run: Run, here: Sequence[Cell], cells: Sequence[Watched], none: Sequence[Watched], row: Comparison, state: Control, label: str
) -> MonitoredArm:
    first = next(iter(cells), None)
    verdict, text, reason = judged(row, state)
    of_arm = [cell for cell in here if cell.tweakset == row.tweakset]
    if of_arm and all(cell.outcome == "skipped" for cell in of_arm):
        text = "skipped"
    elif of_arm and not any(cell.outcome == "measured" for cell in of_arm):
        text = "failed"
    return MonitoredArm(
        tweakset=row.tweakset,
        label=label,
        base=first.base if first else run.tweaksets[row.tweakset].monitor.partition(":")[0],
        kind=first.kind if first else "",
        params=dict(first.params) if first else {},
        version=first.version if first else None,
        rate_per_s=first.rate_per_s if first else None,
        n=row.pairs,
        blocks=row.blocks,
        verdict=verdict,
        said=text,
        reason=reason,
        cpu=figure(row.primary, row.p_adjusted),
        wall=other(row, WALL),
        total=other(row, ALL_CPU),
        energy=other(row, ENERGY),
        mde=row.mde,
        own=own(cells, {one.block: one for one in none}),
        load=load(cells),
        missing=missing(cells),
        lost=lost(of_arm),
        notes=tuple(note for note in row.notes if " left out: " not in note),
    )


def _against_placebo(run: Run, cells: Sequence[Watched]) -> dict[tuple[str, str, str], OverheadFigure]:
    """Every inside monitor against the placebo, which is as much of a thread and an import, and watches nothing."""
    inside = {cell.tweakset for cell in cells if cell.kind == INSIDE}
    placebo = next((cell.tweakset for cell in cells if cell.base == PLACEBO), None)
    if placebo is None or inside <= {placebo}:
        return {}
    result = {}
    for comparison in against(run, placebo, inside):
        shown = figure(comparison.primary, comparison.p_adjusted)
        if shown is not None:
            result[comparison.study, comparison.workload, comparison.tweakset] = shown
    return result


def _thread_below(run: Run, place: tuple[str, str], arms: Sequence[MonitoredArm]) -> OverheadFigure | None:
    """What cProfile costs more than the quickest sampling thread, block by block; None where one of them was not measured."""
    thread, profile = acceptance.quick_thread(arms), acceptance.named(arms, acceptance.PROFILE)
    if thread is None or profile is None:
        return None
    try:
        rows = against(run, thread.tweakset, [profile.tweakset])
    except NotComparable:
        return None
    return next((figure(row.primary) for row in rows if (row.study, row.workload) == place), None)


def position(cells: Sequence[tuple[int, str, int, float]], none: str) -> Position | None:
    """Fit block + arm + place to cells (block, arm, place, value); None where these are too few, or place cannot be told from these."""
    blocks, arms = sorted({cell[0] for cell in cells}), sorted({cell[1] for cell in cells})
    if none not in arms or len(arms) < 2:
        return None
    others = [arm for arm in arms if arm != none]
    last = max(cell[2] for cell in cells) or 1
    levels = np.array([[block == number for number in blocks] + [arm == text for text in others] for block, arm, _, _ in cells], float)
    place = np.array([[at / last] for _, _, at, _ in cells], float)
    values = np.array([math.log(value) for *_, value in cells])
    model = np.hstack([levels, place])
    df = len(cells) - model.shape[1]
    if df < 1 or np.linalg.matrix_rank(model) < model.shape[1]:
        return None
    fitted, *_ = np.linalg.lstsq(model, values)
    without, *_ = np.linalg.lstsq(levels, values)
    rest = values - model @ fitted
    error = math.sqrt(float(rest @ rest) / df * float(np.linalg.inv(model.T @ model)[-1, -1]))
    if not error > 0:
        return None
    slope, half = float(fitted[-1]), t_quantile(1 - ALPHA / 2, df) * error
    p = 2 * t_tail(abs(slope) / error, df)
    at = slice(len(blocks), len(blocks) + len(others))
    moved = float(np.abs(np.expm1(fitted[at]) - np.expm1(without[at])).max())
    low, value, high = (math.expm1(end) for end in (slope - half, slope, slope + half))
    figure = OverheadFigure(value, low, high, len(cells), p)
    shown = f"{amount(figure)} {ends(figure)} from first place to last, p {probability(p)}, {len(cells)} cells"
    tells = f"with place in the model no overhead moves by more than {100 * moved:.2f} %"
    verb = "matters" if p < ALPHA else "is not shown to matter"
    return Position(figure, moved, f"Place in the block {verb}: {shown}; {tells}.")
