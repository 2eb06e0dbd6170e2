"""What was varied between I/O runs, and what each response came to at every combination of it.

A factor is a parameter that somebody asked for by name, or the processes, the model or the engine, and stood at more than one value; what a
model implies (batch, record length) is none. One run is one value.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from analysis.pairing import is_rate
from analysis.terms import AGAIN, STOCK

if TYPE_CHECKING:
    from .responses import JudgedResponse
    from .terms import IoRun

Scale = Literal["log", "raw"]

ALWAYS = ("model", "engine", "processes")
BLOCK, Y = "cell.block", "cell.y"  # columns beside the factors: no parameter is called so
SPEAKING = frozenset({"format", "cache"})  # their levels need no name beside them
# Words in the order a reader expects them, the plain one first; others follow by the alphabet.
KNOWN = (
    *("raw", "hdf5", "npz", "png", "tfrecord", "indexed_binary"),
    *("cold", "warm", "as_found"),
    *("torch", "dlio"),
    *("off", "on", "seed", "random"),
    *("False", "True"),
)


@dataclass(frozen=True, slots=True)
class IoFactor:
    """A parameter that stood at several levels, in the order in which a reader expects them."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Factors:
    """The factors of some runs. `same` always went together with one that is named first, and cannot be told from it.

    `alone` are parameters and levels that `without_loners` left out.
    """

    factors: tuple[IoFactor, ...]
    same: tuple[tuple[str, str], ...] = ()
    alone: tuple[tuple[str, str], ...] = ()

    def levels(self, run: IoRun) -> tuple[str, ...]:
        return tuple(level_of(run, factor.name) for factor in self.factors)


@dataclass(frozen=True, slots=True)
class Layout:
    """One response laid out over factors.

    `points` are the combinations that were run, `lost` those without a value: point, reason, blocks. `rows` has a row a point and block:
    a column of levels a factor, `BLOCK` ("" where a run knows none), and `Y`, the value or its logarithm (`scale`).
    """

    response: str
    unit: str
    scale: Scale
    varied: Factors
    points: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, Sequence[Any]]
    lost: tuple[tuple[str, str, tuple[str, ...]], ...]

    @property
    def factors(self) -> tuple[IoFactor, ...]:
        return self.varied.factors

    def levels(self) -> dict[str, list[str]]:
        return {one.name: [level for level in one.levels if level in set(self.rows[one.name])] for one in self.factors}

    def keys(self) -> list[tuple[str, ...]]:
        return list(zip(*(self.rows[one.name] for one in self.factors), strict=True))


def level_of(run: IoRun, name: str) -> str:
    if name in ALWAYS:
        return str(getattr(run, name))
    value = run.overrides.get(name, run.params.get(_leaf(name), "default"))
    return f"{value:g}" if isinstance(value, float) else str(value)


def factors_of(runs: Sequence[IoRun]) -> Factors:
    """Find the factors of some runs in the order they were named."""
    columns: dict[str, tuple[str, ...]] = {}
    same: list[tuple[str, str]] = []
    for name in _names(runs):
        column = tuple(level_of(run, name) for run in runs)
        if len(set(column)) < 2:
            continue
        twin = next((other for other, known in columns.items() if _one_to_one(known, column)), None)
        if twin is None:
            columns[name] = column
        else:
            same.append((name, twin))
    return Factors(tuple(IoFactor(name, tuple(sorted(set(column), key=place))) for name, column in columns.items()), tuple(same))


def without_loners(runs: Sequence[IoRun]) -> tuple[list[IoRun], Factors]:
    """Leave out configurations that alone have some parameter's level, where the others cross at least two factors completely.

    One job that writes checkpoints beside twenty that read says nothing of checkpoints and formats together.
    """
    every = factors_of(runs)
    points = {every.levels(run) for run in runs}
    loners: dict[tuple[str, ...], tuple[str, str]] = {}
    for at, factor in enumerate(every.factors):
        if len(factor.levels) == 2:
            for level in factor.levels:
                at_level = [point for point in points if point[at] == level]
                if len(at_level) == 1:
                    loners[at_level[0]] = (factor.name, level)
    rest = [run for run in runs if every.levels(run) not in loners]
    result = factors_of(rest)
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
    words += [level_name(name, level_of(run, name)) for name in run.overrides if name not in left_out | set(ALWAYS)]
    return " · ".join(words)


def level_name(name: str, level: str) -> str:
    """Name a level for people: `raw`, `cold`, `read_threads 4`."""
    leaf = _leaf(name)
    return level if leaf in SPEAKING else f"{leaf} {level}"


def _leaf(name: str) -> str:
    """A parameter's own name: DLIO's overrides carry the section it stands in (`reader.read_threads`)."""
    return name.rpartition(".")[2]


def _names(runs: Iterable[IoRun]) -> list[str]:
    return list(dict.fromkeys([*ALWAYS, *(name for run in runs for name in run.overrides)]))


def common(runs: Sequence[IoRun]) -> frozenset[str]:
    """Return what a name need not say: what all runs have in common, and what goes with something said. Nothing, of one configuration."""
    names = _names(runs)
    alike = frozenset(name for name in names if len({level_of(run, name) for run in runs}) == 1)
    return alike | {name for name, _ in factors_of(runs).same} if len(alike) < len(names) else frozenset()


def describe_common(runs: Sequence[IoRun]) -> str:
    """Describe what a configuration's name leaves out, for it is so of all: `unet3d_h100, torch, processes 1`."""
    if not runs:
        return ""
    levels = {name: level_of(runs[0], name) for name in _names(runs) if len({level_of(run, name) for run in runs}) == 1}
    if len(levels) == len(_names(runs)):
        return ""
    words = [level if name in {"model", "engine"} else level_name(name, level) for name, level in levels.items()]
    return ", ".join(words)


def scale_of(name: str) -> Scale:
    """Rates are compared by ratios, on a logarithmic scale; percentages by their difference, in points."""
    return "log" if is_rate(name) else "raw"


def on_scale(name: str, value: float | None) -> float | None:
    """Return a value as it is averaged and compared: the logarithm of a rate; None where there is none."""
    if scale_of(name) == "raw" or value is None:
        return value
    return math.log(value) if value > 0 else None


def layout_of(cells: Sequence[JudgedResponse], response: str) -> Layout:
    """Lay one response out over the factors of untouched machines; stock and its copy in one block are averaged.

    A run without a value is lost, with the reason.
    """
    used = [cell for cell in cells if cell.run.tweakset in {STOCK, AGAIN}]
    rest, varied = without_loners([judged.run for judged in used])
    ids = {(run.origin, run.id) for run in rest}
    points: dict[str, tuple[str, ...]] = {}
    lost: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    values: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for cell in (cell for cell in used if (cell.run.origin, cell.run.id) in ids):
        levels, figure = varied.levels(cell.run), cell.responses[response]
        point = ", ".join(f"{factor.name} {level}" for factor, level in zip(varied.factors, levels, strict=True))
        points.setdefault(point, levels)
        block, y = "" if cell.run.block is None else str(cell.run.block), on_scale(response, figure.value)
        if y is None:
            lost[point, (figure.why_missing or "not above 0: no ratio can be taken").rstrip(".")][block] = None
        else:
            values[*levels, block].append(y)
    names = [*(factor.name for factor in varied.factors), BLOCK]
    rows: dict[str, list[Any]] = {name: [place[at] for place in values] for at, name in enumerate(names)}
    rows[Y] = [math.fsum(several) / len(several) for several in values.values()]
    unit = used[0].responses[response].unit if used else ""
    missing = tuple((point, reason, tuple(blocks)) for (point, reason), blocks in lost.items())
    return Layout(response, unit, scale_of(response), varied, points, rows, missing)


def treated_sets(cells: Sequence[JudgedResponse]) -> list[str]:
    return list(dict.fromkeys(cell.run.tweakset for cell in cells if cell.run.tweakset not in {STOCK, AGAIN}))


def _one_to_one(first: Sequence[str], second: Sequence[str]) -> bool:
    return len({*zip(first, second, strict=True)}) == len({*first}) == len({*second})


def place(level: str) -> tuple[int, float, str]:
    """Order levels: stock first, numbers by size, words as they are known."""
    if level == STOCK:
        return (0, 0.0, level)
    try:
        return (1, float(level), level)
    except ValueError:
        return (2, float(KNOWN.index(level)) if level in KNOWN else math.inf, level)
