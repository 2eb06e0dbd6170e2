"""What was varied between I/O runs, and what each response came to at every combination of it.

A factor is a parameter that somebody asked for by name, or the processes, the model or the engine, and stood at more than one value; what a
model implies (batch, record length) is none. Tweak sets are a factor too. One run is one value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from analysis.reading import is_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .responses import JudgedResponse
    from .terms import IoRun

Scale = Literal["log", "raw"]

STOCK, AGAIN = "stock", "stock-again"
SETS = "tweak set"  # as a factor
ALWAYS = ("model", "engine", "processes")
SPEAKING = frozenset({"format", "cache"})  # whose levels say themselves what they are of
# Words in the order a reader expects them, the plain one first; others follow by the alphabet.
KNOWN = (
    *("raw", "npy", "hdf5", "npz", "png", "tfrecord", "indexed_binary", "mmap_indexed_binary"),
    *("cold", "warm", "as_found"),
    *("off", "on", "seed", "random"),
    *("False", "True"),
)


@dataclass(frozen=True, slots=True)
class IoFactor:
    """A parameter that stood at several levels, in the order in which a reader expects them."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FactorRow:
    """A value of a response: a level a factor, and its block; "" for a run that knows none."""

    levels: tuple[str, ...]
    block: str
    value: float


@dataclass(frozen=True, slots=True)
class LostRow:
    """Cells of a point that have no value, and why."""

    point: str
    reason: str
    blocks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ObservedFactor:
    """One response laid out over factors; `points` are the combinations that were run, by their names."""

    response: str
    unit: str
    scale: Scale
    factors: tuple[IoFactor, ...]
    points: Mapping[str, tuple[str, ...]]
    rows: tuple[FactorRow, ...]
    lost: tuple[LostRow, ...]

    def levels(self) -> dict[str, list[str]]:
        """The levels of each factor that were measured, in order."""
        seen = [{row.levels[at] for row in self.rows} for at in range(len(self.factors))]
        return {factor.name: [level for level in factor.levels if level in there] for factor, there in zip(self.factors, seen, strict=True)}

    def place(self, factor: str) -> int:
        """Where a factor's level stands in a row."""
        return [one.name for one in self.factors].index(factor)


@dataclass(frozen=True, slots=True)
class Varied:
    """The factors of some runs. `same` always went together with one that is named first, and cannot be told from it.

    `alone` are parameters and levels that `without_loners` left out.
    """

    factors: tuple[IoFactor, ...]
    same: tuple[tuple[str, str], ...] = ()
    alone: tuple[tuple[str, str], ...] = ()

    def levels(self, run: IoRun) -> tuple[str, ...]:
        """Where a run stood, a level a factor."""
        return tuple(level_of(run, factor.name) for factor in self.factors)


def level_of(run: IoRun, name: str) -> str:
    """Where a run stood in one parameter, as text."""
    if name == SETS:
        return run.tweakset
    if name in ALWAYS:
        return str(getattr(run, name))
    value = run.overrides.get(name, run.params.get(_leaf(name), "default"))
    return f"{value:g}" if isinstance(value, float) else str(value)


def varied(runs: Sequence[IoRun], *, sets: bool = False) -> Varied:
    """Find the factors of some runs in the order they were named; with `sets` the tweak set is the last."""
    names = list(dict.fromkeys([*ALWAYS, *(name for run in runs for name in run.overrides), *([SETS] if sets else [])]))
    columns: dict[str, tuple[str, ...]] = {}
    same: list[tuple[str, str]] = []
    for name in names:
        column = tuple(level_of(run, name) for run in runs)
        if len(set(column)) < 2:
            continue
        twin = next((other for other, known in columns.items() if _one_to_one(known, column)), None)
        if twin is None:
            columns[name] = column
        else:
            same.append((name, twin))
    return Varied(tuple(IoFactor(name, tuple(sorted(set(column), key=_place))) for name, column in columns.items()), tuple(same))


def without_loners(runs: Sequence[IoRun], *, sets: bool = False) -> tuple[list[IoRun], Varied]:
    """Leave out configurations that alone have some parameter's level, where the others cross at least two factors completely.

    One job that writes checkpoints beside twenty that read says nothing of checkpoints and formats together.
    """
    every = varied(runs, sets=sets)
    points = {every.levels(run) for run in runs}
    loners: dict[tuple[str, ...], tuple[str, str]] = {}
    for at, factor in enumerate(every.factors):
        places = {level: [point for point in points if point[at] == level] for level in factor.levels}
        if len(places) == 2 and factor.name != SETS:
            loners |= {where[0]: (factor.name, level) for level, where in places.items() if len(where) == 1}
    rest = [run for run in runs if every.levels(run) not in loners]
    result = varied(rest, sets=sets)
    combinations = math.prod(len(factor.levels) for factor in result.factors)
    if not loners or len(result.factors) < 2 or len({result.levels(run) for run in rest}) < combinations:
        return list(runs), every
    return rest, replace(result, alone=tuple(dict.fromkeys(loners.values())))


def configuration(run: IoRun, without: Iterable[str] = ()) -> str:
    """Name a run's configuration by what sets it apart: `unet3d_h100 · 4 processes · npz · cold`."""
    left_out = set(without)
    words = [] if "model" in left_out else [run.model]
    if "engine" not in left_out and "engine" in run.overrides:
        words.append(run.engine)
    if "processes" not in left_out:
        words.append(f"{run.processes} process{'' if run.processes == 1 else 'es'}")
    words += [spoken(name, level_of(run, name)) for name in run.overrides if name not in left_out | set(ALWAYS)]
    return " · ".join(words)


def spoken(name: str, level: str) -> str:
    """Say a level as one would in speech: `raw`, `cold`, `read_threads 4`."""
    leaf = _leaf(name)
    return level if leaf in SPEAKING else f"{leaf} {level}"


def _leaf(name: str) -> str:
    """A parameter's own name: DLIO's overrides carry the section it stands in (`reader.read_threads`)."""
    return name.rpartition(".")[2]


def common(runs: Sequence[IoRun]) -> frozenset[str]:
    """What a name need not say: what all runs have in common, and what goes with something said. Nothing, of one configuration."""
    names = dict.fromkeys([*ALWAYS, *(name for run in runs for name in run.overrides)])
    alike = frozenset(name for name in names if len({level_of(run, name) for run in runs}) == 1)
    return alike | {name for name, _ in varied(runs).same} if len(alike) < len(names) else frozenset()


def alike_in_words(runs: Sequence[IoRun]) -> str:
    """What a configuration's name does not say, for it is so of all: `unet3d_h100, torch, processes 1`."""
    if not runs:
        return ""
    first = runs[0]
    names = {name for name in common(runs) if len({level_of(run, name) for run in runs}) == 1}
    words = [
        level_of(first, name) if name in {"model", "engine"} else f"{name} {level_of(first, name)}" for name in ALWAYS if name in names
    ]
    return ", ".join([*words, *(spoken(name, level_of(first, name)) for name in first.overrides if name in names and name not in ALWAYS)])


def scale_of(name: str) -> Scale:
    """Rates are compared by ratios, on a logarithmic scale; percentages by their difference, in points."""
    return "log" if is_rate(name) else "raw"


def observed(cells: Sequence[JudgedResponse], response: str, *, sets: bool) -> tuple[ObservedFactor, Varied]:
    """Lay one response out over the factors of some runs.

    With `sets` the tweak set is a factor, stock its first level. Without, only untouched machines count, and stock and its copy in one
    block are averaged. A run without a value is lost, with the reason.
    """
    kept = [cell for cell in cells if (cell.run.tweakset != AGAIN if sets else cell.run.tweakset in {STOCK, AGAIN})]
    rest, result = without_loners([judged.run for judged in kept], sets=sets)
    ids = {(run.origin, run.id) for run in rest}
    kept = [judged for judged in kept if (judged.run.origin, judged.run.id) in ids]
    together: dict[tuple[tuple[str, ...], str], list[float]] = {}
    points: dict[str, tuple[str, ...]] = {}
    lost: dict[tuple[str, str], list[str]] = {}
    repeats = 0
    for cell in kept:
        run, one = cell.run, cell.responses[response]
        levels = result.levels(run)
        point = ", ".join(f"{factor.name} {level}" for factor, level in zip(result.factors, levels, strict=True))
        points.setdefault(point, levels)
        block = "" if run.block is None else str(run.block)
        if one.value is None or (scale_of(response) == "log" and one.value <= 0):
            reason = (one.why_missing or "not above 0: no ratio can be taken").rstrip(".")
            lost.setdefault((point, reason), []).append(block)
            continue
        if not block:
            repeats += 1  # runs that know no blocks are each a value of their own
        together.setdefault((levels, block or f"\0{repeats}"), []).append(one.value)
    return (
        ObservedFactor(
            response,
            next((judged.responses[response].unit for judged in kept), ""),
            scale_of(response),
            result.factors,
            points,
            tuple(
                FactorRow(levels, "" if block.startswith("\0") else block, _mean(values, response))
                for (levels, block), values in together.items()
            ),
            tuple(LostRow(point, why, tuple(dict.fromkeys(blocks))) for (point, why), blocks in lost.items()),
        ),
        result,
    )


def touched(cells: Sequence[JudgedResponse]) -> list[str]:
    """Name the tweak sets that were measured beside stock and its copy."""
    return list(dict.fromkeys(cell.run.tweakset for cell in cells if cell.run.tweakset not in {STOCK, AGAIN}))


def _mean(values: Sequence[float], response: str) -> float:
    if scale_of(response) == "log":
        return math.exp(math.fsum(map(math.log, values)) / len(values))
    return math.fsum(values) / len(values)


def _one_to_one(group: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two columns divide the runs in the same way."""
    pairs = set(zip(group, other, strict=True))
    return len(pairs) == len({first for first, _ in pairs}) == len({second for _, second in pairs})


def _place(level: str) -> tuple[int, float, str]:
    """Order levels: stock first, numbers by size, words as they are known."""
    if level == STOCK:
        return (0, 0.0, level)
    try:
        return (1, float(level), level)
    except ValueError:
        return (2, float(KNOWN.index(level)) if level in KNOWN else math.inf, level)
