"""The varied parameters of I/O runs, and the names of configurations.

A factor is a parameter that was requested by name, or the processes, the model or the engine, with
more than one value; consequences of a model (batch, record length) are not factors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from analysis.pairing import is_rate
from analysis.terms import STOCK

if TYPE_CHECKING:
    from analysis.contrasts import Scale

    from .terms import IoRun

ALWAYS = ("model", "engine", "processes")
SPEAKING = frozenset({"format", "cache"})  # their levels are self-explanatory
# Words in the expected order, the plain one first; others follow alphabetically.
KNOWN = (
    *("raw", "hdf5", "npz", "png", "tfrecord", "indexed_binary"),
    *("cold", "warm", "as_found", "torch", "dlio", "off", "on", "seed", "random", "False", "True"),
)


class Varied(NamedTuple):
    """The factors of several runs, each with its levels in the expected order.

    `same` always varied together with an earlier one, so they cannot be distinguished. `alone` are
    the parameters and levels that `without_loners` removed.
    """

    levels: Mapping[str, Sequence[str]]
    same: Sequence[tuple[str, str]] = ()
    alone: Sequence[tuple[str, str]] = ()

    def point(self, run: IoRun) -> tuple[str, ...]:
        return tuple(level_of(run, name) for name in self.levels)


def level_of(run: IoRun, name: str) -> str:
    if name in ALWAYS:
        return str(getattr(run, name))
    value = run.overrides.get(name, run.params.get(_leaf(name), "default"))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _columns(runs: Sequence[IoRun]) -> dict[str, list[str]]:
    names = dict.fromkeys([*ALWAYS, *(name for run in runs for name in run.overrides)])
    return {name: [level_of(run, name) for run in runs] for name in names}


def factors_of(runs: Sequence[IoRun]) -> Varied:
    varied: dict[str, list[str]] = {}
    same: list[tuple[str, str]] = []
    for name, column in _columns(runs).items():
        count = len({*column})
        twins = (
            other
            for other, levels in varied.items()
            if len({*zip(levels, column, strict=True)}) == count == len({*levels})
        )
        if count > 1 and (twin := next(twins, None)):
            same.append((name, twin))
        elif count > 1:
            varied[name] = column
    return Varied({name: sorted({*column}, key=place) for name, column in varied.items()}, same)


def without_loners(runs: Sequence[IoRun]) -> tuple[list[IoRun], Varied]:
    """Remove configurations with a unique level if the others fully cross at least two factors.

    One job that writes checkpoints beside twenty that read shows nothing about checkpoints ×
    formats.
    """
    every = factors_of(runs)
    points = {every.point(run) for run in runs}
    loners: dict[tuple[str, ...], tuple[str, str]] = {}
    for at, (name, levels) in enumerate(every.levels.items()):
        for level in levels if len(levels) == 2 else ():
            members = [point for point in points if point[at] == level]
            if len(members) == 1:
                loners[members[0]] = (name, level)
    rest = [run for run in runs if every.point(run) not in loners]
    varied = factors_of(rest)
    crossed = math.prod(map(len, varied.levels.values()))
    if not loners or len(varied.levels) < 2 or len({varied.point(run) for run in rest}) < crossed:
        return list(runs), every
    return rest, varied._replace(alone=list(dict.fromkeys(loners.values())))


def configuration(run: IoRun, without: Iterable[str] = ()) -> str:
    """Name a run's configuration by its parameters: `unet3d_h100 · 4 processes · npz · cold`."""
    words = {"model": run.model, **({"engine": run.engine} if "engine" in run.overrides else {})}
    words["processes"] = f"{run.processes} process{'' if run.processes == 1 else 'es'}"
    words |= {
        name: level_name(name, level_of(run, name)) for name in run.overrides if name not in ALWAYS
    }
    return " · ".join(word for name, word in words.items() if name not in {*without})


def level_name(name: str, level: str) -> str:
    """Name a level for people: `raw`, `cold`, `read_threads 4`."""
    leaf = _leaf(name)
    return level if leaf in SPEAKING else f"{leaf} {level}"


def _leaf(name: str) -> str:
    return name.rpartition(".")[2]


def _alike(runs: Sequence[IoRun]) -> dict[str, str]:
    columns = _columns(runs)
    alike = {name: column[0] for name, column in columns.items() if len({*column}) == 1}
    return alike if len(alike) < len(columns) else {}


def common(runs: Sequence[IoRun]) -> frozenset[str]:
    alike = _alike(runs)
    implied = (name for name, _ in factors_of(runs).same)
    return frozenset({*alike, *implied}) if alike else frozenset()


def describe_common(runs: Sequence[IoRun]) -> str:
    """Describe the common parameters that names omit: `unet3d_h100, torch, processes 1`."""
    return ", ".join(
        level if name in {"model", "engine"} else level_name(name, level)
        for name, level in _alike(runs).items()
    )


def scale_of(name: str) -> Scale:
    return "log" if is_rate(name) else "raw"


def place(level: str) -> tuple[int, float, str]:
    """Return a sort key for levels: stock first, numbers by size, words in the known order."""
    if level == STOCK:
        return (0, 0.0, level)
    try:
        return (1, float(level), level)
    except ValueError:
        return (2, float(KNOWN.index(level)) if level in KNOWN else math.inf, level)
