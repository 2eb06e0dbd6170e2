"""How soon jobs that learn reach an accuracy, by hyper-parameters: each point of the grid, and effects where it is a factorial."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from analysis.studies.jobs.estimates import gain, mean_value, over_runs, unknown_gain
from analysis.studies.keys.effects import of_table
from analysis.studies.keys.observed import letters
from analysis.studies.keys.terms import Factor, Lost, Observed
from analysis.studies.keys.terms import Row as Cell
from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.studies.jobs.estimates import Figure
    from analysis.studies.keys.terms import Effects
    from analysis.terms import Effect

    from .rows import Told


TIME, ACCURACY, EPOCHS = "time_to_accuracy_s", "accuracy", "epochs"


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One combination of hyper-parameters. `reached` of the `jobs` that ended came to the accuracy; the figures are over `runs`.

    `time_s` is of those runs alone in which every job reached it: a mean over the quick ones only would flatter. `accuracy` and `epochs`
    are where jobs ended.
    """

    levels: tuple[str, ...]
    runs: int
    jobs: int
    reached: int
    time_s: Figure | None
    accuracy: Figure | None
    epochs: Figure | None


@dataclass(frozen=True, slots=True)
class Hyper:
    """What was varied, all points, the one that is soonest with all its jobs, its gain over the next, effects of a factorial.

    `why` says why there are no effects, `why_no_gain` why the gain has no interval.
    """

    factors: tuple[str, ...]
    points: tuple[GridPoint, ...]
    best: GridPoint | None
    next: GridPoint | None
    effect: Effect | None
    effects: Effects | None
    why: str
    why_no_gain: str = ""


def hyper(streams: Sequence[Told]) -> Hyper:
    """Analyse. Raises: Refused, where nothing was varied, or no job tells what it learned."""
    streams = [one for one in streams if any(ACCURACY in job.result for job in one.jobs)]
    if not streams:
        raise Refused("No job tells an accuracy: these runs are of no jobs that learn.")
    factors = _factors(streams)
    by_levels: dict[tuple[str, ...], list[Told]] = {}
    for one in streams:
        by_levels.setdefault(tuple(str(one.params[name.name]) for name in factors), []).append(one)
    order = [levels for levels in product(*(one.levels for one in factors)) if levels in by_levels]
    times = {levels: {one.unit: _times(one) for one in by_levels[levels]} for levels in order}
    points = tuple(_point(levels, by_levels[levels], times[levels]) for levels in order)
    whole = sorted((one for one in points if one.time_s is not None and one.reached == one.jobs), key=_soon)
    best, after = [*whole[:2], None, None][:2]
    pair = (_known(times[after.levels]), _known(times[best.levels])) if best and after else None
    effect = gain(TIME, *pair) if pair else None
    why_no_gain = unknown_gain(*pair) if pair and effect is None else ""
    effects, why = _effects(factors, order, times)
    return Hyper(tuple(one.name for one in factors), points, best, after, effect, effects, why, why_no_gain)


def _factors(streams: Sequence[Told]) -> list[Factor]:
    """Parameters that are known in every stream and not the same in all: numbers by size, words as they first come."""
    shared = [name for name in streams[0].params if all(name in one.params for one in streams)]
    found: list[tuple[str, tuple[str, ...]]] = []
    for name in shared:
        levels = list(dict.fromkeys(str(one.params[name]) for one in streams))
        if len(levels) > 1:
            numbers = [_number(level) for level in levels]
            found.append((name, tuple(sorted(levels, key=float) if None not in numbers else levels)))
    if not found:
        raise Refused("All streams of jobs that learn have the same parameters: vary some, as in --vary lr=0.01,0.1.")
    return [Factor(name, letter, levels) for (name, levels), letter in zip(found, letters(len(found)), strict=True)]


def _point(levels: tuple[str, ...], streams: Sequence[Told], times: dict[tuple[str, int], float | None]) -> GridPoint:
    ended = [[job for job in one.jobs if job.outcome == "done" and ACCURACY in job.result] for one in streams]
    return GridPoint(
        levels=levels,
        runs=len(streams),
        jobs=sum(len(one.jobs) for one in streams),
        reached=sum(TIME in job.result for some in ended for job in some),
        time_s=over_runs([one for one in times.values() if one is not None]),
        accuracy=over_runs([mean_value([job.result[ACCURACY] for job in some]) for some in ended if some]),
        epochs=over_runs(
            [mean_value([job.result[EPOCHS] for job in some]) for some in ended if some and all(EPOCHS in one.result for one in some)]
        ),
    )


def _times(one: Told) -> float | None:
    """The mean time of a run's jobs to the accuracy, seconds; None where one of them did not reach it."""
    reached = [job.result[TIME] for job in one.jobs if job.outcome == "done" and TIME in job.result]
    return mean_value(reached) if reached and len(reached) == len(one.jobs) else None


def _known(times: dict[tuple[str, int], float | None]) -> dict[tuple[str, int], float]:
    return {unit: time for unit, time in times.items() if time is not None}


def _effects(
    factors: Sequence[Factor], order: Sequence[tuple[str, ...]], times: dict[tuple[str, ...], dict[tuple[str, int], float | None]]
) -> tuple[Effects | None, str]:
    """Effects on the time to the accuracy; none where the grid has holes, for what is missing there is what never got so far."""
    named = {levels: ", ".join(f"{one.name} {level}" for one, level in zip(factors, levels, strict=True)) for levels in order}
    missing = [levels for levels in product(*(one.levels for one in factors)) if levels not in times]
    never = [levels for levels in order if not _known(times[levels])]
    if missing:
        return None, f"{len(missing)} of {len(missing) + len(order)} combinations were not run: this is no full factorial."
    if never:
        return (
            None,
            f"in no run did all jobs of {'; '.join(named[one] for one in never[:3])} reach the accuracy: no effect on the time to it.",
        )
    rows = [Cell(named[levels], levels, _block(unit), one) for levels in order for unit, one in _known(times[levels]).items()]
    lost = [
        Lost(named[levels], "not all jobs reached the accuracy", tuple(_block(unit) for unit, one in times[levels].items() if one is None))
        for levels in order
        if None in times[levels].values()
    ]
    (found,) = of_table(
        Observed(
            study="hyper-parameters",
            workload="job_stream",
            profile="",
            design="table",
            metric=TIME,
            better="lower",
            scale="log",
            margin=None,
            factors=tuple(factors),
            points={named[levels]: levels for levels in order},
            rows=tuple(rows),
            lost=tuple(lost),
        )
    )
    return found, ""


def _block(unit: tuple[str, int]) -> str:
    return f"{unit[0]} {unit[1]}"


def _soon(one: GridPoint) -> float:
    return one.time_s.value if one.time_s is not None else float("inf")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
