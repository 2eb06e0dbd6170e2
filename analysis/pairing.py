"""Pairing of two arms' cells: by block if they ran side by side, else as two samples.

Cells of one block ran minutes apart, so drift affects both. Cells of two runs did not: any change
in between looks like the tweak, and a note warns the reader.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from control.names import first_few

from .arms import ORDER_HINT, Arm, Place, Side, Sides, both, parts, same_runs
from .checks import (
    different_data,
    hardware,
    must_be_sound,
    other_hardware,
)
from .labels import label_of
from .plain import seconds
from .stats.effect import ENOUGH_PROCESSES, paired_effect, switched_effect, two_sample_effect
from .terms import Cell, Comparison, Effect, Metric, NotComparable, Run
from .wording import counted, listed, percent, speed

if TYPE_CHECKING:
    from .stats.effect import Times

    Entry = tuple[Place, Cell]
    Pair = tuple[Entry, Entry]
    Unit = Sequence[Entry]

STOCK = "stock"
MINIMUM_UNITS = 3
COMFORTABLE_UNITS = 5
NAMED = 3  # reasons for left-out blocks; further reasons are counted
TAKING_TURNS = "a run is the unit: the mean of its blocks, in which both arms ran side by side."
BORROWED = (
    "an arm of {} has too few runs to estimate its own spread, so the other arm's spread is used."
)
BY_TIME = (
    "{}: p and interval remain valid if the machine drifts steadily or runs resemble their "
    "neighbours, as far as these runs show it. Arms that take turns detect smaller effects."
)
MANY_RUNS = BY_TIME.format("means of whole runs at different times")
OUT_OF_TURN = BY_TIME.format(
    "the cells of a block did not run one after the other, so they are not pairs"
)
RELATIVE = (
    "each cell is relative to {0} in its block: a change between the runs cancels only if it "
    "affects both, which two runs cannot show. {0} itself changed by {1} in {2}, which is not "
    "judged."
)
WAY_OUT = "Let both arms take turns, or compare --relative-to a tweak set that both have."
ONE_RUN_AN_ARM = (
    "one run per arm, at different times: how far two runs of one arm would differ is unknown. "
    f"Give several runs per arm. {WAY_OUT}"
)
UNKNOWN_TURNS = (
    "the date of each run and whether the arms took turns are unknown: drift cannot be told from "
    f"a difference. {WAY_OUT} {ORDER_HINT}"
)
ODD_RUN = (
    "{} is {} by {} than the other runs of its arm: an outlier, whose weight is limited to the "
    "scatter of the others."
)
FAR_APART = (
    "the time between base and candidate is {:.3g} times the span of either arm's runs, so they "
    "cannot show how much the machine "
    f"changes in such a time. {WAY_OUT}"
)
RATE = re.compile(r"_per_s(?:_|$)")


def metric_named(name: str) -> Metric:
    return Metric(name, "higher" if is_rate(name) or name.startswith("au_") else "lower")


def is_rate(name: str) -> bool:
    """Return whether a metric is a rate per second: `mb_per_s_read` is, `cpu_s_per_step` is not."""
    return bool(RATE.search(name))


def primary_of(run: Run, study: str, workload: str) -> Metric:
    return (run.workloads[workload].primary if workload in run.workloads else None) or run.studies[
        study
    ].primary


def value_of(cell: Cell, metric: Metric) -> float:
    """Return a metric of a cell. Raises: NotComparable, if no ratio can be computed from it."""
    value = cell.metrics.get(metric.name)
    if value is None:
        raise NotComparable(
            f"{cell.id} has no {metric.name}; available: {', '.join(sorted(cell.metrics))}."
        )
    if value <= 0:
        raise NotComparable(f"{cell.id} has {metric.name} = {value:g}: no ratio can be computed.")
    return value


class Reader:
    """Reads a metric of a cell, divided by the control's in the same run and block, if any."""

    def __init__(self, arms: tuple[Arm, Arm], draft: Comparison) -> None:
        """Find the control's cells in both arms' runs. Raises: NotComparable, if unsound."""
        self.control: Side | None = None
        if draft.relative_to is None:
            return
        self.control = Sides(both(*arms), draft.study).side(draft.workload, draft.relative_to)
        if self.control is None:
            raise NotComparable(
                f"{draft.relative_to} was not run under {draft.workload}, so nothing can be taken "
                "relative to it."
            )
        must_be_sound(self.control.tweakset, [part for _, part in _measured(self.control)])

    def __call__(self, entry: Entry, metric: Metric) -> float:
        place, cell = entry
        value = value_of(cell, metric)
        if self.control is None:
            return value
        other = self.control.cells.get(place)
        if other is None or other.outcome != "measured":
            raise NotComparable(
                f"{cell.id}: {self.control.tweakset.name} was not measured in that block, so the "
                "cell cannot be taken relative to it."
            )
        if reason := different_data(other, cell):
            raise NotComparable(f"{cell.id} cannot be taken relative to {other.id}: {reason}.")
        return value / value_of(other, metric)

    def mean(self, unit: Unit, metric: Metric) -> float:
        """Return the geometric mean over a unit's cells."""
        if len(unit) == 1:
            return self(unit[0], metric)
        return math.exp(math.fsum(math.log(self(entry, metric)) for entry in unit) / len(unit))


def must_match(draft: Comparison, arms: tuple[Arm, Arm]) -> None:
    """Check what must agree between runs. Raises: NotComparable."""
    if same_runs(*arms):
        return
    runs = [run for arm in arms for run in arm.runs]
    for run in runs:
        if draft.workload in run.by_place:
            raise NotComparable(
                f"{run.origin} has several benchmarks of this name, which differ only in their "
                "place in the file: they cannot be matched with "
                "another file's. Give each benchmark its own name."
            )
    if other := other_hardware(arms[0].runs, arms[1].runs):
        raise NotComparable(other)
    for run in arms[1].runs:
        if draft.study not in run.studies:
            continue
        declared = primary_of(run, draft.study, draft.workload)
        if declared != draft.primary_metric:
            mixed = len({one.design.kind == "turns" for one in runs}) > 1
            reason = ", one of whole cells and one of cells that took turns" if mixed else ""
            raise NotComparable(
                f"the runs declared different primary metrics: {draft.primary_metric.name} and "
                f"{declared.name}{reason}."
            )
    workloads = [run.workloads[draft.workload] for run in runs if draft.workload in run.workloads]
    first, *others = [workload.params for workload in workloads]
    for params in others:
        differing = [
            f"{key} {first[key]} against {params[key]}"
            for key in sorted(first.keys() & params.keys())
            if first[key] != params[key]
        ]
        if differing:
            raise NotComparable(
                f"the runs gave the workload different parameters: {', '.join(differing)}."
            )


def run_notes(
    draft: Comparison, arms: tuple[Arm, Arm], sides: tuple[Side, Side], read: Reader
) -> list[str]:
    if same_runs(*arms):
        return []
    notes = []
    if read.control is not None:
        metric = draft.primary_metric
        measured = _measured(read.control)
        base, candidate = (
            fmean(
                math.log(value_of(cell, metric)) for place, cell in measured if place[0] in own.runs
            )
            for own in sides
        )
        shift = candidate - base if metric.better == "higher" else base - candidate
        moved = percent(math.expm1(shift))
        notes.append(RELATIVE.format(read.control.tweakset.name, moved, metric.name))
    silent = [run.origin for arm in arms for run in arm.runs if not hardware(run)]
    if silent and draft.study != "deeptweak":
        notes.append(f"{first_few(silent, 1)}: records no hardware, so it may differ.")
    base_settings, settings = (
        {(setting.kind, setting.key, setting.value) for setting in own.tweakset.requested}
        for own in sides
    )
    if draft.baseline == draft.tweakset and base_settings != settings:
        keys = sorted({key for _, key, _ in base_settings ^ settings})
        notes.append(
            f"{draft.tweakset} requests different values in the two runs: {', '.join(keys)}."
        )
    return notes


@dataclass(frozen=True)
class Pairing:
    """The units of two arms.

    `pairs` are complete blocks. If the arms share none, `samples` holds each arm's units, each a
    list of cells, and `times` when each was measured, earliest first; None if drift cancels within
    each unit, NaN if unknown. `left_out`: reason → missing blocks.
    """

    pairs: Sequence[Pair] = ()
    samples: tuple[Sequence[Unit], Sequence[Unit]] | None = None
    left_out: Mapping[str, list[int]] = field(default_factory=dict)
    caveat: str | None = None
    times: Times | None = None

    @cached_property
    def units(self) -> int:
        """Return the number of independent pairs: blocks, or runs (processes) if enough."""
        if self.by_run:
            return len({place[0] for (place, _), _ in self.pairs})
        return len(self.processes) if len(self.processes) >= ENOUGH_PROCESSES else len(self.pairs)

    @cached_property
    def by_run(self) -> bool:
        """Return whether the pairs come from several runs with both arms, each counted once."""
        return (
            all(entry[0] == other[0] for (entry, _), (other, _) in self.pairs)
            and len({place[0] for (place, _), _ in self.pairs}) > 1
        )

    @cached_property
    def processes(self) -> list[list[Pair]]:
        result: dict[tuple[str, int | None], list[Pair]] = {}
        for entry in self.pairs:
            place, cell = entry[1]
            result.setdefault((place[0], cell.process), []).append(entry)
        return [] if any(process is None for _, process in result) else list(result.values())

    @cached_property
    def cells(self) -> tuple[list[Cell], list[Cell]]:
        if self.samples is None:
            return [part for (_, cell), _ in self.pairs for part in parts(cell)], [
                cell for _, (_, cell) in self.pairs
            ]
        base, candidate = ([cell for unit in arm for _, cell in unit] for arm in self.samples)
        return base, candidate


def pair(base: Side, candidate: Side, *, controlled: bool = False) -> Pairing:
    """Pair two arms.

    Same run: by block. Same runs: by block in each, and a run is the unit. Different runs, and
    blocks whose cells did not run side by side: in time. Only if each cell is `controlled` by
    another in its block are cells of two runs informative: by block if the blocks had equal
    samples, else as two samples.
    """
    if base.runs & candidate.runs:
        paired = _by_block(*_beside(base, candidate))
        if controlled or side_by_side(paired.pairs):
            return replace(paired, caveat=TAKING_TURNS) if paired.by_run else paired
        return _in_order(base, candidate, OUT_OF_TURN)
    if not controlled:
        return _in_order(base, candidate, MANY_RUNS)
    if len(base.runs) == len(candidate.runs) == 1:
        (run,), (other_run,) = base.runs, candidate.runs
        sides = (
            {("", place[1]): cell for place, cell in own.cells.items()} for own in (base, candidate)
        )
        paired = _by_block(*sides)
        alike = not any("differ" in reason for reason in paired.left_out)
        if len(paired.pairs) >= MINIMUM_UNITS and alike:
            # Each keeps its own place, which finds the control cell of the same run.
            pairs = [
                (((run, place[1]), cell), ((other_run, place[1]), other))
                for (place, cell), (_, other) in paired.pairs
            ]
            return Pairing(pairs, None, paired.left_out)
    by_block = [_grouped(own) for own in (base, candidate)]
    return Pairing((), (by_block[0], by_block[1]), _missing(base, candidate))


def _in_order(base: Side, candidate: Side, caveat: str) -> Pairing:
    alone = base.runs == candidate.runs and len(base.runs) == 1
    cells = [cell for own in (base, candidate) for _, cell in _measured(own)]
    # Cells are timed by their places in the order of their run unless all have times.
    clocked = len({cell.started_utc for cell in cells} - {None}) == len(cells)

    def time_of(unit: Unit) -> float:
        (run, _), cell = unit[0]
        if not alone:
            return seconds(base.started_utc.get(run) or candidate.started_utc.get(run) or "")
        return seconds(cell.started_utc or "") if clocked else cell.order

    units, times = [], []
    for own in (base, candidate):
        timed = sorted(
            ((time_of(unit), unit) for unit in _grouped(own, alone=alone)),
            key=lambda entry: entry[0],
        )
        times.append([time for time, _ in timed])
        units.append([unit for _, unit in timed])
    missing = _missing(base, candidate)
    return Pairing((), (units[0], units[1]), missing, caveat, (times[0], times[1]))


def _by_block(base: Mapping[Place, Cell], candidate: Mapping[Place, Cell]) -> Pairing:
    pairs, left_out = [], dict[str, list[int]]()
    for place in sorted(base.keys() | candidate.keys()):
        cell, other = base.get(place), candidate.get(place)
        switched = other is not None and other.process is not None
        reason = (
            (_unusable(other, "") if switched else None)
            or _unusable(cell, "baseline ")
            or _unusable(other, "")
        )
        if not reason and cell and other:
            reason = different_data(cell, other)
            if not reason:
                pairs.append(((place, cell), (place, other)))
        if reason:
            left_out.setdefault(reason, []).append((other and other.process) or place[1])
    return Pairing(pairs, None, left_out)


def _beside(base: Side, candidate: Side) -> tuple[Mapping[Place, Cell], Mapping[Place, Cell]]:
    """Return the cells of two sides; for alternated settings, those of shared processes."""
    sides = base.cells, candidate.cells
    if all(cell.process is None for own in sides for cell in own.values()):
        return sides
    stock = 1 if candidate.tweakset.name == STOCK else 0
    own = sides[1 - stock]
    measured = any(cell.outcome == "measured" for cell in own.values())
    if measured and not sides[stock].keys() & own.keys():
        raise NotComparable(
            f"{base.tweakset.name} and {candidate.tweakset.name} never took turns in one process, "
            f"only with {STOCK}."
        )
    cut = {place: cell for place, cell in sides[stock].items() if place in own}
    return (cut, own) if stock == 0 else (own, cut)


def _unusable(cell: Cell | None, whose: str) -> str | None:
    if cell is None:
        return f"{whose}not run"
    return None if cell.outcome == "measured" else f"{whose}{cell.outcome}: {cell.reason}"


def _missing(base: Side, candidate: Side) -> dict[str, list[int]]:
    left_out: dict[str, list[int]] = {}
    for own, whose in ((base, "baseline "), (candidate, "")):
        for (_, block), cell in own.cells.items():
            if reason := _unusable(cell, whose):
                left_out.setdefault(reason, []).append(block)
    return left_out


def _measured(own: Side) -> list[Entry]:
    ordered = sorted(own.cells.items(), key=lambda item: item[0])
    return [
        (place, part)
        for place, cell in ordered
        if cell.outcome == "measured"
        for part in parts(cell)
    ]


def _grouped(own: Side, *, alone: bool | None = None) -> list[Unit]:
    """Group cells: each `alone`, or those of a run, or by default of a block or process."""
    units: dict[object, list[Entry]] = {}
    for entry in _measured(own):
        (run, block), cell = entry
        key: tuple[object, ...] = (run, block) if cell.process is None else (run, "", cell.process)
        if alone is not None:
            key = (run, block, cell.id) if alone else (run,)
        units.setdefault(key, []).append(entry)
    return list(units.values())


def side_by_side(pairs: Iterable[Pair]) -> bool:
    every = [(place, part) for pair in pairs for place, cell in pair for part in parts(cell)]
    cells = [entry for entry in every if entry[1].process is None]
    cells.sort(key=lambda cell: (cell[0][0], cell[1].node or "", cell[1].order))
    return len(list(groupby(place for place, _ in cells))) == len({place for place, _ in cells})


def enough(pairing: Pairing, blocks: int) -> None:
    """Check that equal units can be told apart. Raises: NotComparable, with what is missing."""
    missing = "; ".join(f"{numbers} {reason}" for numbers, reason in _left_out(pairing))
    why = f" ({missing})." if missing else "."
    required = f"at least {MINIMUM_UNITS}"
    if pairing.samples is not None:
        n, m = map(len, pairing.samples)
        if min(n, m) == 0:
            arm = "the baseline" if n == 0 else "the candidate"
            raise NotComparable(f"no measured cell in {arm}{why}")
        if n == m == 1:
            raise NotComparable(ONE_RUN_AN_ARM)
        if max(n, m) < MINIMUM_UNITS:
            raise NotComparable(f"{n} against {m}: {required} in one arm are required{why}")
        if pairing.times is not None:
            _must_be_near_in_time(pairing.times)
    elif pairing.units < MINIMUM_UNITS:
        if pairing.by_run:
            raise NotComparable(
                f"{pairing.units} runs with both arms: a run is the unit, and {required} are "
                f"required{why}"
            )
        if not pairing.pairs and len(pairing.left_out) == 1:
            # A single shared reason needs no count: the tweak set is unavailable on this machine.
            raise NotComparable(f"{next(iter(pairing.left_out)).rstrip('.')}.")
        pairs = counted(len(pairing.pairs), "complete pair")
        raise NotComparable(f"{pairs} of {blocks}; {required} are required{why}")


def _must_be_near_in_time(times: Times) -> None:
    every = sorted((time, arm) for arm, own in enumerate(times) for time in own)
    gaps = [
        (after - before, number != other) for (before, number), (after, other) in pairwise(every)
    ]
    if not all(gap > 0 for gap, _ in gaps):
        raise NotComparable(UNKNOWN_TURNS)
    between = max(gap for gap, across in gaps if across)
    reach = max(own[-1] - own[0] for own in times)
    if between > reach:
        raise NotComparable(FAR_APART.format(between / reach))


def _left_out(pairing: Pairing) -> list[tuple[str, str]]:
    reasons = [(reason.rstrip("."), set(blocks)) for reason, blocks in pairing.left_out.items()]
    named, others = reasons[:NAMED], reasons[NAMED:]
    if len(others) > 1:
        blocks = set().union(*(blocks for _, blocks in others))
        others = [(f"{len(others)} other reasons, such as: {others[0][0]}", blocks)]
    return [(listed(blocks), reason) for reason, blocks in [*named, *others]]


def effect_of(metric: Metric, pairing: Pairing, margin: float, read: Reader) -> Effect:
    """Return the effect on one metric. Raises: NotComparable."""
    if pairing.samples is not None:
        base, candidate = ([read.mean(unit, metric) for unit in arm] for arm in pairing.samples)
        return two_sample_effect(metric, base, candidate, margin, pairing.times)
    if pairing.processes and not pairing.by_run:
        before, after = (
            [[read(pair[arm], metric) for pair in process] for process in pairing.processes]
            for arm in (0, 1)
        )
        return switched_effect(metric, before, after, margin)
    # The unit is a block, or a run if there are several: the ratio of means is then the mean ratio.
    units: dict[object, list[Pair]] = {}
    for entry in pairing.pairs:
        place = entry[0][0]
        units.setdefault(place[0] if pairing.by_run else place, []).append(entry)
    base, candidate = (
        [read.mean([pair[arm] for pair in unit], metric) for unit in units.values()]
        for arm in (0, 1)
    )
    return paired_effect(metric, base, candidate, margin)


def odd_notes(metric: Metric, pairing: Pairing, arms: Iterable[Arm], read: Reader) -> list[str]:
    if pairing.samples is None or pairing.times is None:
        return []
    import numpy as np

    from .stats.in_time import odd_runs

    sign = 1.0 if metric.better == "higher" else -1.0
    timed = [
        (time, arm, unit)
        for arm, own in enumerate(pairing.samples)
        for time, unit in zip(pairing.times[arm], own, strict=True)
    ]
    timed.sort(key=lambda entry: entry[:2])
    logs = sign * np.log([read.mean(unit, metric) for _, _, unit in timed])
    origins = {run.run_id: run.origin for arm in arms for run in arm.runs}
    lines = []
    for place, off in odd_runs(logs, [arm for _, arm, _ in timed]):
        (run_id, _), cell = timed[place][2][0]
        name = origins[run_id] if len(origins) > 1 else cell.id
        lines.append(ODD_RUN.format(name, speed(math.expm1(off)), label_of(metric)))
    return lines


def pair_notes(pairing: Pairing) -> list[str]:
    notes = [pairing.caveat] if pairing.caveat else []
    few = f"only: with fewer than {COMFORTABLE_UNITS}"
    if pairing.samples is None:
        if pairing.units < COMFORTABLE_UNITS and not pairing.processes:
            what = "runs" if pairing.by_run else "pairs"
            notes.append(f"{pairing.units} {what} {few}, one outlying block can decide the result.")
    elif (least := min(map(len, pairing.samples))) < COMFORTABLE_UNITS:
        n, m = map(len, pairing.samples)
        notes.append(f"{n} against {m} {few} per arm, one outlying run can decide the result.")
        if least < MINIMUM_UNITS:
            notes.append(BORROWED.format("one run" if least == 1 else "two runs"))
    return notes + [f"{blocks} left out: {reason}." for blocks, reason in _left_out(pairing)]
