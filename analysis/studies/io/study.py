"""I/O runs of one source: by configuration, by factor, and tweak sets against stock.

A run is one value: its epochs are dependent, and an interval over them would be too narrow. Stock
and its copy in one block count as one value. Rates have geometric means, AU and shares arithmetic
ones, with intervals clipped to the possible range.

Every difference is taken within blocks, and its error is the scatter of these differences (paired
t, blocks − 1 degrees of freedom): reads from a disk scatter ten times as far as reads from memory.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations, product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analysis.pairing import is_rate
from analysis.stats import estimate
from analysis.stats.effect import holm
from analysis.stats.estimate import Change, Estimate, adjusted, change_of
from analysis.terms import AGAIN, STOCK, NotComparable
from analysis.wording import counted

from .figures import RATE, STEADY, WHOLE, Judged, judged_alike

if TYPE_CHECKING:
    from .terms import IoRun

ALWAYS = ("model", "engine", "processes")
SPEAKING = frozenset({"format", "cache"})  # their levels are self-explanatory
# Words in the expected order, the plain one first; others follow alphabetically.
KNOWN = (
    *("raw", "hdf5", "npz", "png", "tfrecord", "indexed_binary"),
    *("cold", "warm", "as_found", "torch", "dlio", "off", "on", "seed", "random", "False", "True"),
)
BY_DEFAULT = "default"  # for a level beside configurations that differ in another parameter
# Both utilisations, since the first step may hide an effect; and samples/s, which remains useful if
# nothing is computed.
RESPONSES = (WHOLE, STEADY, RATE)
CACHE, DIFFERENCE = "cache", "cold - warm"
FEWEST_PAIRS, FEWEST_BLOCKS, COMFORTABLE_BLOCKS = 2, 3, 5
PROVEN = ("resident_before", "resident_after", "rchar_bytes", "read_bytes", "device_read_bytes")


@dataclass(frozen=True, slots=True)
class Configuration:
    """The runs of one configuration on the untouched machine, and the mean of each figure."""

    name: str
    runs: tuple[IoRun, ...]
    responses: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectStep(Change):
    """The change from one level to another; for two factors, the change in the effect of one.

    `levels` is its destination, a level per factor. `low` and `high` hold with 95 % for all steps
    of the effect together. `p_adjusted` is Holm's over the steps of its effect and the effects of
    the response.
    """

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """The effects of all factors on one response, or the reason why there is none."""

    response: str
    steps: tuple[EffectStep, ...] = ()
    refusal: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IoContrast(Estimate):
    """One tweak set against stock in one configuration: its gain in samples/s, a mean over blocks.

    `cache` is the state of the page cache before each epoch, "" if it was not a parameter, and
    `rest` the configuration without it. `DIFFERENCE` is the gain on a cold cache less that on a
    warm one, block by block: with the data set in memory no disk is read, so any effect of a disk
    setting there is an artefact (a negative control). `p_adjusted` is Holm's over all gains, or all
    differences.
    """

    tweakset: str
    rest: str
    cache: str


@dataclass(frozen=True, slots=True)
class IoStudy:
    """I/O runs of one source and their results; `alike` is common to all, `refused` are unusable.

    `configurations` and `analyses` are of untouched machines.
    """

    origin: str
    cells: tuple[Judged, ...]
    alike: str
    configurations: tuple[Configuration, ...]
    caches: Mapping[str, Mapping[str, float | None]]
    analyses: tuple[Analysis, ...]
    contrasts: tuple[IoContrast, ...]
    refused: tuple[str, ...] = ()


def study(origin: str, judged: Sequence[Judged], refused: Sequence[str] = ()) -> IoStudy:
    cells = in_order(judged_alike(judged))
    return IoStudy(
        origin,
        tuple(cells),
        describe_common([cell.run for cell in cells]),
        tuple(configurations(cells)),
        {name: _cache([one.run for one in members]) for name, members in by_name(cells).items()},
        tuple(analyse(cells, response) for response in RESPONSES) if cells else (),
        tuple(contrasts(cells)),
        tuple(refused),
    )


def untouched(cells: Iterable[Judged]) -> list[Judged]:
    return [cell for cell in cells if cell.run.tweakset in {STOCK, AGAIN}]


# Parameters. A factor is one that was requested by name, or the processes, the model or the engine,
# with more than one value; consequences of a model (batch, record length) are not factors.


def level_of(run: IoRun, name: str) -> str:
    if name in ALWAYS:
        return str(getattr(run, name))
    value = run.overrides.get(name, run.params.get(name.rpartition(".")[2], BY_DEFAULT))
    return f"{value:g}" if isinstance(value, float) else str(value)


def levels_of(runs: Sequence[IoRun]) -> pd.DataFrame:
    names = dict.fromkeys([*ALWAYS, *(name for run in runs for name in run.overrides)])
    return pd.DataFrame({name: [level_of(run, name) for run in runs] for name in names}, dtype=str)


def factors_of(levels: pd.DataFrame) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the factors with their levels in order, and parameters that always vary with one."""
    factors: dict[str, list[str]] = {}
    same: dict[str, str] = {}
    for name in levels.columns:
        count = levels[name].nunique()
        for twin, own in factors.items():
            if len(levels[[name, twin]].drop_duplicates()) == count == len(own):
                same.setdefault(name, twin)
        if count > 1 and name not in same:
            factors[name] = sorted(levels[name].unique(), key=place)
    return factors, same


def place(level: str) -> tuple[int, float, str]:
    """Return a sort key for levels: numbers by size, words in the known order."""
    try:
        return (0, float(level), level)
    except ValueError:
        return (1, float(KNOWN.index(level)) if level in KNOWN else math.inf, level)


def in_order(cells: Sequence[Judged]) -> list[Judged]:
    factors, _ = factors_of(levels_of([cell.run for cell in cells]))
    return sorted(cells, key=lambda cell: [place(level_of(cell.run, name)) for name in factors])


def _alike(runs: Sequence[IoRun]) -> dict[str, str]:
    levels = levels_of(runs)
    alike = {str(name): own.iloc[0] for name, own in levels.items() if len(own.unique()) == 1}
    return alike if len(alike) < len(levels.columns) else {}


def common(runs: Sequence[IoRun]) -> frozenset[str]:
    return frozenset({*_alike(runs), *factors_of(levels_of(runs))[1]})


def describe_common(runs: Sequence[IoRun]) -> str:
    """Describe the common parameters that names omit: `unet3d_h100, torch, processes 1`."""
    return ", ".join(
        level if name in {"model", "engine"} else level_name(name, level)
        for name, level in _alike(runs).items()
    )


def level_name(name: str, level: str) -> str:
    """Name a level for people: `raw`, `cold`, `read_threads 4`."""
    leaf = name.rpartition(".")[2]
    return level if leaf in SPEAKING else f"{leaf} {level}"


def configuration(run: IoRun, without: Iterable[str] = ()) -> str:
    """Name a run's configuration by its parameters: `unet3d_h100 · 4 processes · npz · cold`."""
    words = {"model": run.model, **({"engine": run.engine} if "engine" in run.overrides else {})}
    words["processes"] = f"{run.processes} process{'' if run.processes == 1 else 'es'}"
    words |= {
        name: level_name(name, level_of(run, name)) for name in run.overrides if name not in ALWAYS
    }
    return " · ".join(word for name, word in words.items() if name not in {*without})


def by_name(cells: Sequence[Judged]) -> dict[str, list[Judged]]:
    alike = common([cell.run for cell in cells])
    groups: dict[str, list[Judged]] = defaultdict(list)
    for cell in cells:
        groups[configuration(cell.run, alike) or BY_DEFAULT].append(cell)
    return groups


# Means and differences


def configurations(cells: Sequence[Judged]) -> Iterator[Configuration]:
    for name, members in by_name(cells).items():
        if group := untouched(members):
            responses = {response: mean_of(response, group) for response in group[0].responses}
            yield Configuration(name, tuple(cell.run for cell in group), responses)


def mean_of(response: str, cells: Sequence[Judged]) -> Estimate:
    figures = [(cell.run.block, cell.responses[response]) for cell in cells]
    known = [(block, figure.value) for block, figure in figures if figure.value is not None]
    reasons = [
        (figure.why_missing or "").rstrip(".") for _, figure in figures if figure.value is None
    ]
    missing = "; ".join(dict.fromkeys(reasons)) or None
    if not known:
        return Estimate(missing=missing)
    if missing:
        missing = f"{len(reasons)} of {len(cells)} runs: {missing}"
    ratio = is_rate(response)
    log = ratio and all(value > 0 for _, value in known)
    groups: dict[object, list[float]] = defaultdict(list)
    for at, (block, value) in enumerate(known):
        groups[("run", at) if block is None else block].append(math.log(value) if log else value)
    most = math.inf if ratio else 100.0 if response.endswith("_percent") else 1.0
    mean = estimate.mean_of([*map(fmean, groups.values())], log=log, within=(0.0, most))
    return replace(mean or Estimate(), missing=missing)


def blocks_of(cells: Sequence[Judged], response: str, **columns: Sequence[str]) -> pd.DataFrame:
    """Lay out a response: a row per block, a column per combination of `columns`.

    Rates are logarithms, so that their differences are ratios. Cells of one place are averaged.
    """
    frame = pd.DataFrame({"response": response, **columns})
    frame["block"] = [cell.run.block for cell in cells]
    frame["y"] = np.array([cell.value(response) for cell in cells], dtype=float)
    if is_rate(response):
        frame["y"] = np.log(frame["y"].where(frame["y"] > 0))
    frame = frame.dropna(subset=["block", "y"])
    if frame.empty:
        return pd.DataFrame()
    return frame.pivot_table("y", "block", ["response", *columns], sort=False)


def change(table: pd.DataFrame, column: str, first: str, last: str) -> pd.DataFrame:
    """Return the change from one level of a column to another, by block and the other columns."""
    levels = table.columns.get_level_values(column)
    before, after = (
        table.loc[:, levels == level].droplevel(column, axis="columns") for level in (first, last)
    )
    both = before.columns.intersection(after.columns, sort=False)
    return after.reindex(columns=both) - before.reindex(columns=both)


def paired(changes: pd.Series, response: str, fewest: int, among: int = 1) -> Change:
    """Test the change per block. Raises: NotComparable, for too few blocks, or equal changes."""
    known = [*changes.dropna()]
    if len(known) < fewest:
        raise NotComparable(
            f"{len(known)} blocks have all its cells; at least {fewest} are required"
        )
    return change_of(known, log=is_rate(response), among=among)


# Effects of factors: each step of a factor, or of two together. An effect of several steps has its
# smallest p, adjusted over its steps, and all effects of a response are one family (Holm both
# times).


def analyse(cells: Sequence[Judged], response: str) -> Analysis:
    """Estimate the effects of all factors, and of every two together, on the untouched machine."""
    used = untouched(cells)
    levels = levels_of([cell.run for cell in used])
    factors, same = factors_of(levels)
    if not factors:
        nothing = "nothing was varied: `--vary NAME=A,B` varies a parameter."
        return Analysis(response, refusal=nothing)
    if not any(cell.value(response) for cell in used):
        reasons = {(cell.responses[response].why_missing or "0").partition(":")[0] for cell in used}
        return Analysis(response, refusal=f"no run has a value: {', '.join(sorted(reasons))}.")
    table = blocks_of(used, response, **{name: [*levels[name]] for name in factors})
    if len(table) < FEWEST_BLOCKS:
        return Analysis(
            response,
            refusal=f"measured in {counted(len(table), 'block')}: at least {FEWEST_BLOCKS} are "
            "required to estimate how far differences vary.",
        )
    there = {name: {*table.columns.unique(name)} for name in factors}
    measured = {
        name: [level for level in own if level in there[name]] for name, own in factors.items()
    }
    table = table.loc[:, table.count() >= FEWEST_BLOCKS]
    steps: list[EffectStep] = []
    notes: list[str] = []
    varied = [name for name, own in measured.items() if len(own) > 1]
    for names in (*((name,) for name in varied), *combinations(varied, 2)):
        own, lost = _steps(table, response, {name: measured[name] for name in names})
        steps += own
        if lost:
            part = f", {'; '.join(lost)}," if own else ""
            reason = next(iter(lost.values()))
            notes.append(f"{' × '.join(names)}{part} cannot be estimated: {reason}.")
    if not steps:
        refusal = next(iter(notes), "the levels of no factor can be distinguished.")
        return Analysis(response, refusal=refusal)
    notes += [
        f"{name} always varied with {twin}: the two cannot be distinguished, and {twin} represents "
        "both."
        for name, twin in same.items()
    ]
    if len(table) < COMFORTABLE_BLOCKS:
        notes.append(
            f"only {len(table)} blocks: with fewer than {COMFORTABLE_BLOCKS}, one outlying cell "
            "can decide, and small effects are missed."
        )
    return Analysis(response, tuple(_adjusted(steps)), notes=tuple(notes))


def _steps(
    table: pd.DataFrame, response: str, levels: Mapping[str, Sequence[str]]
) -> tuple[list[EffectStep], dict[str, str]]:
    """Return the steps of an effect, averaged over all other factors, and those that are lost."""
    steps: list[EffectStep] = []
    lost: dict[str, str] = {}
    among = math.prod(len(own) - 1 for own in levels.values())
    for ends in product(*(own[1:] for own in levels.values())):
        changes = table
        for (factor, own), last in zip(levels.items(), ends, strict=True):
            changes = change(changes, factor, own[0], last)
        firsts = [own[0] for own in levels.values()]
        name = ", ".join(f"{first} → {last}" for first, last in zip(firsts, ends, strict=True))
        if changes.empty:
            lost[name] = (
                "no combination of the other factors was measured at all its levels in "
                f"{FEWEST_BLOCKS} blocks"
            )
            continue
        try:
            one = paired(changes.mean(axis=1, skipna=False), response, FEWEST_BLOCKS, among)
        except NotComparable as error:
            lost[name] = str(error)
            continue
        steps.append(EffectStep(**_known(one), factors=tuple(levels), levels=ends, name=name))
    return steps, lost


def _known(one: Estimate) -> dict[str, Any]:
    return {field.name: getattr(one, field.name) for field in fields(one)}


def _adjusted(steps: Iterable[EffectStep]) -> Iterator[EffectStep]:
    effects: dict[tuple[str, ...], list[EffectStep]] = defaultdict(list)
    for step in steps:
        effects[step.factors].append(step)
    smallest = [min(1.0, len(own) * min(step.p for step in own)) for own in effects.values()]
    for own, p, p_effect in zip(effects.values(), smallest, holm(smallest), strict=True):
        times = p_effect / p if p else 1.0  # the steps share their effect's adjustment
        ps = holm([step.p for step in own])
        yield from (
            replace(step, p_adjusted=min(1.0, times * one))
            for step, one in zip(own, ps, strict=True)
        )


# Tweak sets


def contrasts(cells: Sequence[Judged]) -> list[IoContrast]:
    """Compare samples/s of each tweak set with stock, by configuration, and cold with warm."""
    alike = common([cell.run for cell in cells])
    columns = {
        "rest": [configuration(cell.run, alike | {CACHE}) for cell in cells],
        CACHE: [
            level_of(cell.run, CACHE) if CACHE in {*cell.run.overrides, *cell.run.params} else ""
            for cell in cells
        ],
        "tweakset": [cell.run.tweakset for cell in cells],
    }
    table = blocks_of(cells, RATE, **columns)
    gains: list[IoContrast] = []
    differences: list[IoContrast] = []
    sets = [] if table.empty else [*table.columns.unique("tweakset").drop(STOCK, errors="ignore")]
    for name in sets:
        changes = change(table, "tweakset", STOCK, name)
        gains += [
            _contrast(changes[RATE, rest, cache], name, rest, cache)
            for _, rest, cache in changes.columns.to_frame().to_numpy()
        ]
        if name != AGAIN:
            apart = change(changes, CACHE, "warm", "cold")
            differences += [
                _contrast(apart[RATE, rest], name, rest, DIFFERENCE)
                for _, rest in apart.columns.to_frame().to_numpy()
            ]
    return [*adjusted(gains), *adjusted(differences)]


def _contrast(changes: pd.Series, tweakset: str, rest: str, cache: str) -> IoContrast:
    place: dict[str, Any] = {"tweakset": tweakset, "rest": rest, "cache": cache}
    try:
        return IoContrast(**_known(paired(changes, RATE, FEWEST_PAIRS)), **place)
    except NotComparable as error:
        return IoContrast(int(changes.count()), missing=str(error), **place)


def _cache(runs: Sequence[IoRun]) -> dict[str, float | None]:
    """Prove the cache state of a configuration, under all tweak sets, which must not change it.

    Returns: `epochs` of all runs, the data set's `mib`, and fractions of it: the extremes in memory
        `before_…` an epoch, since one wrong epoch counts; and means over all epochs: in memory
        `after` one, `asked` for by read calls, `fetched` of that from a device, read by the whole
        machine from the `device`.
    """
    sizes = [run.dataset.get("bytes") for run in runs]
    size = next((float(one) for one in sizes if isinstance(one, int | float) and one > 0), None)
    rows = [[getattr(epoch, name) for name in PROVEN] for run in runs for epoch in run.epochs]
    ranks = pd.DataFrame(rows, columns=[*PROVEN], dtype=float)
    epochs = sum(len({epoch.number for epoch in run.epochs}) for run in runs)

    def of_data_set(name: str, reports: int) -> float:
        is_complete = size and ranks[name].count() >= reports
        return ranks[name].sum() / epochs / size if is_complete and size else math.nan

    before = ranks["resident_before"]
    known = {
        "epochs": epochs,
        "mib": math.nan if size is None else size / 2**20,
        "before_low": before.min(),
        "before_high": before.max(),
        "after": ranks["resident_after"].mean(),
        "asked": of_data_set("rchar_bytes", len(ranks)),
        "fetched": of_data_set("read_bytes", len(ranks)),
        "device": of_data_set("device_read_bytes", epochs),
    }
    return {name: None if math.isnan(value) else value for name, value in known.items()}
