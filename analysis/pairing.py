"""Which cells of two arms are set against each other: block by block where they ran side by side, as two samples where they did not.

A statement about two arms can be no better than what was held equal between them. Cells of one block ran minutes apart: drift
falls on both. Cells of two runs did not: whatever happened in between looks like the tweak, and the reader is told so.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from .arms import parts
from .checks import different_data
from .plain import moment
from .stats.effect import ENOUGH_PROCESSES, paired_effect, switched_effect, two_sample_effect
from .terms import NotComparable
from .wording import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .arms import Place, Side
    from .stats.effect import Times
    from .terms import Cell, Effect, Metric


STOCK = "stock"
MINIMUM_UNITS = 3
COMFORTABLE_UNITS = 5
TAKING_TURNS = "a run is the unit: the mean of its blocks, in which both arms ran side by side."
SEQUENTIAL = "the number of blocks depended on the results: interval and p are those of 96 %, which keeps false alarms at 5 %."
BORROWED = "an arm of {} has no spread of its own worth the name: it is taken to scatter like the other."
MANY_RUNS = (
    "means of whole runs at different times: p and interval also hold where the machine drifts steadily or runs resemble their neighbours, "
    "as far as these runs show it. Arms that take turns see more."
)
OUT_OF_TURN = (
    "the cells of a block did not run one after the other, so they are no pairs: p and interval also hold where the machine drifts "
    "steadily or cells resemble their neighbours, as far as these cells show it. Arms that take turns see more."
)
RELATIVE = (
    "each cell relative to {} of its own block: what the time between the runs did to both cancels, what it did to one of them does not, "
    "and two runs cannot tell. {} itself moved by {} in {}, which is not judged."
)
ONE_RUN_AN_ARM = (
    "one run an arm, at different times: how far two runs of the same would differ is not known. Interleave both in one run, give several "
    "runs an arm, or compare --relative-to a tweak set that both have."
)


@dataclass(frozen=True, slots=True)
class Pairing:
    """The units of two arms.

    `pairs` are complete blocks; where the arms have none in common, `samples` holds each arm's units, one list of cells a unit, and `times`
    when each was measured (seconds, or places in the order of one run), the earliest first; None where drift cancels in each unit, NaN
    where it is not known. `left_out` says why blocks are missing: reason → blocks.
    `sequential`: what the pairs showed had a say in how many there are.
    """

    pairs: tuple[tuple[tuple[Place, Cell], tuple[Place, Cell]], ...] = ()
    samples: tuple[Sequence[Sequence[tuple[Place, Cell]]], Sequence[Sequence[tuple[Place, Cell]]]] | None = None
    left_out: Mapping[str, list[int]] = field(default_factory=dict)
    caveat: str | None = None
    times: Times | None = None
    sequential: bool = False

    @property
    def units(self) -> int:
        """How many independent pairs there are: blocks of one run, or runs (processes) where there are several (enough)."""
        if self.by_run:
            return len({place[0] for (place, _), _ in self.pairs})
        return len(self.processes) if len(self.processes) >= ENOUGH_PROCESSES else len(self.pairs)

    @property
    def by_run(self) -> bool:
        """Whether the pairs are of several runs in which both arms ran, each of which then counts once."""
        return all(entry[0] == other[0] for (entry, _), (other, _) in self.pairs) and len({place[0] for (place, _), _ in self.pairs}) > 1

    @property
    def processes(self) -> list[list[tuple[tuple[Place, Cell], tuple[Place, Cell]]]]:
        result: dict[tuple[str, int | None], list[tuple[tuple[Place, Cell], tuple[Place, Cell]]]] = {}
        for entry in self.pairs:
            place, cell = entry[1]
            result.setdefault((place[0], cell.process), []).append(entry)
        return [] if any(process is None for _, process in result) else list(result.values())

    @property
    def cells(self) -> tuple[list[Cell], list[Cell]]:
        if self.samples is None:
            base = [part for (_, cell), _ in self.pairs for part in parts(cell)]
            return base, [other for _, (_, other) in self.pairs]
        base, candidate = ([cell for unit in arm for _, cell in unit] for arm in self.samples)
        return base, candidate


def pair(base: Side, candidate: Side, *, controlled: bool = False) -> Pairing:
    """Set two arms against each other.

    Same run: by block; same runs: by block in each, and a run is the unit. Other runs: run against run, since everything between them
    is confounded with the arm; so are the cells of one run whose blocks did not run side by side. Only where each cell is `controlled` by
    another of its block do cells of two runs say something: by block where the blocks had equal samples, else as two samples.
    """
    if base.runs & candidate.runs:
        paired = replace(_by_block(*_beside(base, candidate)), sequential=base.sequential)
        if controlled or side_by_side(paired.pairs):
            return replace(paired, caveat=TAKING_TURNS) if paired.by_run else paired
        return _in_order(base, candidate, OUT_OF_TURN)
    if not controlled:
        return _in_order(base, candidate, MANY_RUNS)
    if len(base.runs) == len(candidate.runs) == 1:
        record, other = ({("", block): cell for (_, block), cell in side.cells.items()} for side in (base, candidate))
        paired = _by_block(record, other)
        if len(paired.pairs) >= MINIMUM_UNITS and not any("differ" in reason for reason in paired.left_out):
            return Pairing(_at_home(paired, base, candidate), None, paired.left_out)
    units = tuple(_units(side) for side in (base, candidate))
    return Pairing((), (units[0], units[1]), _missing(base, candidate))


def _in_order(base: Side, candidate: Side, caveat: str) -> Pairing:
    """Put the units of two arms into the order of time: runs by when they started; cells, where both arms are of one run, as they ran."""
    alone = base.runs == candidate.runs and len(base.runs) == 1
    clock = clock_of([cell for side in (base, candidate) for _, cell in _measured(side)])
    units, times = [], []
    for side in (base, candidate):
        own = [[entry] for entry in _measured(side)] if alone else _run_units(side)
        timed = [(clock(unit[0][1]) if alone else seconds(side.started_utc[unit[0][0][0]]), unit) for unit in own]
        timed.sort(key=lambda entry: entry[0])
        times.append([time for time, _ in timed])
        units.append([unit for _, unit in timed])
    return Pairing((), (units[0], units[1]), _missing(base, candidate), caveat, (times[0], times[1]))


def _at_home(paired: Pairing, base: Side, candidate: Side) -> tuple[tuple[tuple[Place, Cell], tuple[Place, Cell]], ...]:
    """Give the pairs their own places back, by which a control cell of the same run is found."""
    (run,), (other,) = base.runs, candidate.runs
    return tuple(((((run, a[0][1]), a[1])), ((other, b[0][1]), b[1])) for a, b in paired.pairs)


def _by_block(base: Mapping[Place, Cell], candidate: Mapping[Place, Cell]) -> Pairing:
    pairs, left_out = [], dict[str, list[int]]()
    for place in sorted(base.keys() | candidate.keys()):
        cell, other = base.get(place), candidate.get(place)
        switched = other is not None and other.process is not None
        reason = (_unusable(other, "") if switched else None) or _unusable(cell, "baseline ") or _unusable(other, "")
        if not reason and cell and other:
            reason = different_data(cell, other)
            if not reason:
                pairs.append(((place, cell), (place, other)))
        if reason:
            left_out.setdefault(reason, []).append((other and other.process) or place[1])
    return Pairing(tuple(pairs), None, left_out)


def _beside(base: Side, candidate: Side) -> tuple[Mapping[Place, Cell], Mapping[Place, Cell]]:
    """The cells of two sides of one run; where settings were alternated, those of the processes that both have a part in.

    Raises: NotComparable, where there is no such process: each tweak set took turns with stock alone.
    """
    sides = base.cells, candidate.cells
    if candidate.sequential:  # an arm that was decided has no cells after that
        last = {run: max(block for own, block in candidate.cells if own == run) for run in candidate.runs}
        sides = {place: cell for place, cell in base.cells.items() if place[1] <= last.get(place[0], math.inf)}, candidate.cells
    if all(cell.process is None for side in sides for cell in side.values()):
        return sides
    stock = 1 if candidate.tweakset.name == STOCK else 0
    own = sides[1 - stock]
    if not sides[stock].keys() & own.keys() and any(cell.outcome == "measured" for cell in own.values()):
        raise NotComparable(f"{base.tweakset.name} and {candidate.tweakset.name} never took turns in one process: {STOCK} did with each.")
    cut = {place: cell for place, cell in sides[stock].items() if place in own}
    return (cut, own) if stock == 0 else (own, cut)


def _unusable(cell: Cell | None, whose: str) -> str | None:
    if cell is None:
        return f"{whose}not run"
    return None if cell.outcome == "measured" else f"{whose}{cell.outcome}: {cell.reason}"


def _missing(base: Side, candidate: Side) -> dict[str, list[int]]:
    left_out: dict[str, list[int]] = {}
    for side, whose in ((base, "baseline "), (candidate, "")):
        for (_, block), cell in side.cells.items():
            reason = _unusable(cell, whose)
            if reason:
                left_out.setdefault(reason, []).append(block)
    return left_out


def _measured(side: Side) -> list[tuple[Place, Cell]]:
    ordered = sorted(side.cells.items(), key=lambda item: item[0])
    return [(place, part) for place, cell in ordered if cell.outcome == "measured" for part in parts(cell)]


def _units(side: Side) -> list[list[tuple[Place, Cell]]]:
    result: dict[tuple[str, int], list[tuple[Place, Cell]]] = {}
    for place, cell in _measured(side):
        result.setdefault((place[0], place[1] if cell.process is None else -cell.process), []).append((place, cell))
    return list(result.values())


def _run_units(side: Side) -> list[list[tuple[Place, Cell]]]:
    units: dict[str, list[tuple[Place, Cell]]] = {}
    for place, cell in _measured(side):
        units.setdefault(place[0], []).append((place, cell))
    return list(units.values())


def enough(pairing: Pairing, blocks: int) -> None:
    """Check that there are units enough to know how far equal ones differ.

    Raises: NotComparable, with what is missing and why.
    """
    if pairing.samples is not None:
        _enough_units(pairing)
        return
    if pairing.units >= MINIMUM_UNITS:
        return
    if pairing.by_run:
        raise NotComparable(
            f"{pairing.units} runs with both arms: a run is the unit, and at least {MINIMUM_UNITS} are needed{_why(pairing)}."
        )
    if not pairing.pairs and len(pairing.left_out) == 1:
        # One and the same reason everywhere needs no counting: the tweak set cannot be had on this machine.
        (reason,) = pairing.left_out
        raise NotComparable(f"{reason.rstrip('.')}.")
    count = f"{len(pairing.pairs)} complete pair{'s' if len(pairing.pairs) != 1 else ''} of {blocks}, at least {MINIMUM_UNITS} are needed"
    raise NotComparable(f"{count}{_why(pairing)}.")


def _enough_units(pairing: Pairing) -> None:
    n, m = (len(arm) for arm in pairing.samples or ((), ()))
    if min(n, m) == 0:
        raise NotComparable(f"no measured cell in {'the baseline' if n == 0 else 'the candidate'}{_why(pairing)}.")
    if n == m == 1:
        raise NotComparable(ONE_RUN_AN_ARM)
    if max(n, m) < MINIMUM_UNITS:
        raise NotComparable(f"{n} against {m}: at least {MINIMUM_UNITS} in one arm are needed{_why(pairing)}.")
    if pairing.times is not None:
        must_be_near_in_time(pairing.times)


def _why(pairing: Pairing) -> str:
    why = "; ".join(f"{blocks} {reason}" for blocks, reason in _left_out(pairing))
    return f" ({why})" if why else ""


def _left_out(pairing: Pairing) -> list[tuple[str, str]]:
    """Blocks left out and why, those together whose reasons differ in their figures alone."""
    groups: dict[str, tuple[str, list[int]]] = {}
    for reason, blocks in pairing.left_out.items():
        groups.setdefault(re.sub(r"\d+(\.\d+)?", "#", reason), (reason.rstrip("."), []))[1].extend(blocks)
    return [(listed(set(blocks)), reason) for reason, blocks in groups.values()]


def effect_of(metric: Metric, pairing: Pairing, margin: float, value: Callable[[Place, Cell, Metric], float]) -> Effect:
    """Take the effect in one metric; `value` reads a cell.

    Raises: NotComparable.
    """
    if pairing.processes and not pairing.by_run:
        result, under = ([[value(*pair[side], metric) for pair in process] for process in pairing.processes] for side in (0, 1))
        return switched_effect(metric, result, under, margin)
    if pairing.samples is None:
        base, candidate = (_values(metric, pairing, side, value) for side in (0, 1))
        return paired_effect(metric, base, candidate, margin, sequential=pairing.sequential and not pairing.by_run)
    base, candidate = ([unit_value(metric, unit, value) for unit in arm] for arm in pairing.samples)
    return two_sample_effect(metric, base, candidate, margin, pairing.times)


def _values(metric: Metric, pairing: Pairing, side: int, value: Callable[[Place, Cell, Metric], float]) -> list[float]:
    """One arm's values, a block each, or a run each where there are several: the ratio of means is then the mean of its blocks' ratios."""
    if not pairing.by_run:
        return [value(*pair[side], metric) for pair in pairing.pairs]
    units: dict[str, list[tuple[Place, Cell]]] = {}
    for pair in pairing.pairs:
        units.setdefault(pair[side][0][0], []).append(pair[side])
    return [unit_value(metric, unit, value) for unit in units.values()]


def unit_value(metric: Metric, unit: Sequence[tuple[Place, Cell]], value: Callable[[Place, Cell, Metric], float]) -> float:
    return math.exp(math.fsum(math.log(value(place, cell, metric)) for place, cell in unit) / len(unit))


def pair_notes(pairing: Pairing) -> list[str]:
    notes = [pairing.caveat] if pairing.caveat else []
    if pairing.samples is None:
        notes += [SEQUENTIAL] if pairing.sequential else []
        few = pairing.units < COMFORTABLE_UNITS and not pairing.processes
        notes += (
            [f"{pairing.units} {'runs' if pairing.by_run else 'pairs'} only: with fewer than {COMFORTABLE_UNITS} one odd block can decide."]
            if few
            else []
        )
    elif min(map(len, pairing.samples)) < COMFORTABLE_UNITS:
        n, m = map(len, pairing.samples)
        notes.append(f"{n} against {m} only: with fewer than {COMFORTABLE_UNITS} an arm one odd run can decide.")
        notes += [BORROWED.format("one run" if min(n, m) == 1 else "two runs")] if min(n, m) < MINIMUM_UNITS else []
    return notes + [f"{blocks} left out: {reason}." for blocks, reason in _left_out(pairing)]


WAY_OUT = "Let both take turns, or compare --relative-to a tweak set that both have."
UNKNOWN_TURNS = f"when each run was made is not known, nor whether the arms took turns: drift cannot be told from a difference. {WAY_OUT}"
FAR_APART = (
    "the time between base and candidate is {:.3g} times as long as the runs of either arm span: what such a time does to the machine "
    f"they cannot show. {WAY_OUT}"
)


def side_by_side(pairs: Iterable[tuple[tuple[Place, Cell], tuple[Place, Cell]]]) -> bool:
    """Whether each block's cells ran one after the other, as far as these arms go: drift falls on all."""
    every = [(place, part) for pair in pairs for place, cell in pair for part in parts(cell)]
    cells = [entry for entry in every if entry[1].process is None]
    cells.sort(key=lambda cell: (cell[0][0], cell[1].node or "", cell[1].order))
    return len(list(groupby(place for place, _ in cells))) == len({place for place, _ in cells})


def seconds(started_utc: str) -> float:
    """When that was; not a number where it is not known."""
    stamp = moment(started_utc)
    return stamp.timestamp() if stamp else math.nan


def clock_of(cells: Sequence[Cell]) -> Callable[[Cell], float]:
    """Find what tells when cells of one run were measured: their own times, or their place in its order where not each has one."""
    if len({cell.started_utc for cell in cells} - {None}) == len(cells):
        return lambda cell: seconds(cell.started_utc or "")
    return lambda cell: cell.order


def must_be_near_in_time(times: Times) -> None:
    """Check that the order of time is known, and that the arms are no farther apart than one of them reaches.

    Raises: NotComparable.
    """
    every = sorted((time, arm) for arm, own in enumerate(times) for time in own)
    gaps = [(after - before, number != other) for (before, number), (after, other) in pairwise(every)]
    if not all(gap > 0 for gap, _ in gaps):
        raise NotComparable(UNKNOWN_TURNS)
    between = max(gap for gap, across in gaps if across)
    reach = max(own[-1] - own[0] for own in times)
    if between > reach:
        raise NotComparable(FAR_APART.format(between / reach))
