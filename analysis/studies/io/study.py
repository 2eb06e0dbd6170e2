"""I/O runs of one source: by configuration, by factor, and tweak sets against stock.

A run is one value: its epochs are dependent, and an interval over them would be too narrow. Stock
and its copy in one block count as one value. Rates have geometric means, AU and shares arithmetic
ones, with intervals clipped to the possible range.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from analysis.contrasts import contrast_of
from analysis.stats import estimate
from analysis.stats.estimate import Estimate, adjusted
from analysis.terms import AGAIN, STOCK

from .design import common, configuration, describe_common, factors_of, level_of, place, scale_of
from .effects import Analysis, analyse
from .figures import Judged, judged_alike
from .validity import RATE, STEADY, WHOLE

if TYPE_CHECKING:
    from .terms import IoRun

BY_DEFAULT = "default"  # for a level beside configurations that differ in another parameter
# Default responses: both utilisations, since the first step may hide an effect; and samples/s,
# which is equivalent to AU for equal computation and batch, and remains useful if nothing is
# computed.
RESPONSES = (WHOLE, STEADY, RATE)
CACHE = "cache"
FEWEST_PAIRS = 2


@dataclass(frozen=True, slots=True)
class Configuration:
    """One combination of parameters under one tweak set: its runs, and its responses by name."""

    name: str
    tweakset: str
    runs: tuple[IoRun, ...]
    responses: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class IoContrast(Estimate):
    """One tweak set against stock in one configuration: its gain in samples/s, a mean over blocks.

    `p_adjusted` is Holm's over the table. `cache` is the state of the page cache before each epoch,
    "" if it was not a parameter, and `rest` the configuration without it.
    """

    tweakset: str
    configuration: str
    rest: str
    cache: str


@dataclass(frozen=True, slots=True)
class Contrasts:
    """All contrasts against stock.

    `differences` are cold minus warm (its negative control), block by block.
    """

    again: tuple[IoContrast, ...]
    tweaks: tuple[IoContrast, ...]
    differences: tuple[IoContrast, ...]


@dataclass(frozen=True, slots=True)
class IoStudy:
    """I/O runs of one source and their results; `alike` is common to all, `refused` are unusable.

    `idle` are tweak sets that changed nothing here, each against stock: further copies of stock,
    excluded from analyses. `analyses` are of untouched machines.
    """

    origin: str
    cells: tuple[Judged, ...]
    alike: str
    configurations: tuple[Configuration, ...]
    caches: Mapping[str, Mapping[str, float | None]]
    analyses: tuple[Analysis, ...]
    contrasts: Contrasts
    idle: tuple[IoContrast, ...] = ()
    refused: tuple[str, ...] = ()


def study(origin: str, judged: Sequence[Judged], refused: Sequence[str] = ()) -> IoStudy:
    """Analyse training runs; runs that only generated data are skipped."""
    cells = tuple(judged_alike([one for one in judged if one.run.kind != "generation"]))
    idle = {cell.run.tweakset for cell in cells} - {
        cell.run.tweakset for cell in cells if not cell.run.changed_nothing
    }
    treated = [cell for cell in cells if cell.run.tweakset not in idle]
    copies = [cell for cell in cells if cell.run.tweakset in idle | {STOCK}] if idle else []
    return IoStudy(
        origin,
        cells,
        describe_common([cell.run for cell in cells]),
        tuple(configurations(cells)),
        {
            name: _cache([cell.run for cell in members])
            for name, members in by_name(in_order(cells)).items()
        },
        tuple(analyse(treated, response) for response in RESPONSES) if cells else (),
        contrasts(treated),
        contrasts(copies).tweaks,
        tuple(refused),
    )


def configurations(cells: Sequence[Judged]) -> list[Configuration]:
    """Group runs by configuration and tweak set, including stock's copy, in order of levels."""
    result = []
    for name, members in by_name(in_order(cells)).items():
        groups: dict[str, list[Judged]] = defaultdict(list)
        for cell in members:
            groups[STOCK if cell.run.tweakset == AGAIN else cell.run.tweakset].append(cell)
        for tweakset, group in groups.items():
            responses = {response: mean_of(response, group) for response in group[0].responses}
            result.append(
                Configuration(name, tweakset, tuple(cell.run for cell in group), responses)
            )
    return result


def by_name(cells: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Group cells by configuration, named by their differences."""
    alike = common([cell.run for cell in cells])
    groups: dict[str, list[Judged]] = defaultdict(list)
    for cell in cells:
        groups[configuration(cell.run, alike) or BY_DEFAULT].append(cell)
    return groups


def in_order(cells: Sequence[Judged]) -> list[Judged]:
    """Sort cells by level, the plain one first; those of a run are shuffled."""
    names = factors_of([cell.run for cell in cells]).levels
    return sorted(
        cells,
        key=lambda cell: (
            [place(level_of(cell.run, name)) for name in names] + [place(cell.run.tweakset)]
        ),
    )


def mean_of(response: str, cells: Sequence[Judged]) -> Estimate:
    """Average one response over blocks, and name what is missing in some runs."""
    known = [
        (cell.run.block, value) for cell in cells if (value := cell.value(response)) is not None
    ]
    reasons = [
        (cell.responses[response].why_missing or "").rstrip(".")
        for cell in cells
        if cell.value(response) is None
    ]
    missing = "; ".join(dict.fromkeys(reasons)) or None
    if not known:
        return Estimate(missing=missing)
    if missing:
        missing = f"{len(reasons)} of {len(cells)} runs: {missing}"
    log = scale_of(response) == "log" and all(value > 0 for _, value in known)
    groups: dict[object, list[float]] = defaultdict(list)
    for at, (block, value) in enumerate(known):
        groups[("run", at) if block is None else block].append(math.log(value) if log else value)
    most = (
        math.inf if scale_of(response) == "log" else 100.0 if response.endswith("_percent") else 1.0
    )
    mean = estimate.mean_of(
        [math.fsum(group) / len(group) for group in groups.values()], log=log, within=(0.0, most)
    )
    return replace(mean or Estimate(), missing=missing)


# Tweak sets, and configurations, block by block.


def rates(cells: Sequence[Judged]) -> dict[int, float]:
    """Return samples/s per block, the geometric mean of several; skip runs without a block."""
    groups: dict[int, list[float]] = defaultdict(list)
    for cell in cells:
        rate = cell.value(RATE)
        if cell.run.block is not None and rate is not None and rate > 0:
            groups[cell.run.block].append(math.log(rate))
    return {block: math.exp(fmean(groups[block])) for block in sorted(groups)}


def gain_of(before: Mapping[int, float], after: Mapping[int, float]) -> Estimate:
    """Compare two arms by common blocks: how much more the second has, a fraction."""
    both = sorted(before.keys() & after.keys())
    row: Mapping[str, Any] = contrast_of(
        {block: [(before[block], after[block])] for block in both}, "log", FEWEST_PAIRS
    )
    if "p" not in row:
        return Estimate(len(both), missing=row["missing"])
    value, low, high = (row[name] - 1 for name in ("value", "low", "high"))
    return Estimate(len(both), value, low, high, row["p"])


# If the data set is in memory, no disk is read, so a disk setting cannot matter: any effect there
# is an artefact of the machine (a negative control).


def contrasts(cells: Sequence[Judged]) -> Contrasts:
    """Compare tweak sets and the copy of stock with stock: paired by block, Holm over all."""
    alike = common([cell.run for cell in cells])
    arms: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    places: dict[str, tuple[str, str]] = {}
    for cell in cells:
        run, name = cell.run, configuration(cell.run, alike)
        arms[run.tweakset, name].append(cell)
        places[name] = (
            configuration(run, alike | {CACHE}),
            level_of(run, CACHE) if CACHE in {*run.overrides, *run.params} else "",
        )
    of_arm = {arm: rates(members) for arm, members in arms.items()}
    tweaksets = [
        AGAIN,
        *dict.fromkeys(tweakset for tweakset, _ in arms if tweakset not in {STOCK, AGAIN}),
    ]
    changes: dict[tuple[str, str], dict[int, float]] = {}
    made = []
    for tweakset, name in (
        (tweakset, name) for tweakset in tweaksets for name in places if (tweakset, name) in arms
    ):
        stock, own = of_arm.get((STOCK, name), {}), of_arm[tweakset, name]
        changes[tweakset, name] = {
            block: own[block] / stock[block] for block in stock.keys() & own.keys()
        }
        made.append(_contrast(gain_of(stock, own), tweakset, name, *places[name]))
    less_warm = []
    for (tweakset, name), cold in changes.items():
        rest, cache = places[name]
        warm = next(
            (
                changes.get((tweakset, other))
                for other, state in places.items()
                if state == (rest, "warm")
            ),
            None,
        )
        if tweakset != AGAIN and cache == "cold" and warm is not None:
            less_warm.append(_contrast(gain_of(warm, cold), tweakset, rest, rest, ""))
    judged = adjusted(made)  # including the copy of stock, as in `compare`: one question has one p
    again, tweaks = (
        tuple(one for one in judged if (one.tweakset == AGAIN) is copy) for copy in (True, False)
    )
    return Contrasts(again, tweaks, tuple(adjusted(less_warm)))


def _contrast(one: Estimate, tweakset: str, name: str, rest: str, cache: str) -> IoContrast:
    figures = one.n, one.value, one.low, one.high, one.p, None, one.missing
    return IoContrast(*figures, tweakset=tweakset, configuration=name, rest=rest, cache=cache)


def _cache(runs: Sequence[IoRun]) -> dict[str, float | None]:
    """Prove the cache state of a configuration, under all tweak sets, which must not change it.

    Returns: `epochs` of all runs, the data set's `mib`, and fractions of it. `before_low` and
        `before_high` are the extremes in memory before an epoch, since one wrong epoch counts; the
        others are means over all epochs: in memory `after` one, `asked` for by read calls,
        `fetched` of that from a device, read by the whole machine from the `device`.
    """
    size = next(
        (
            float(value)
            for run in runs
            if isinstance(value := run.dataset.get("bytes"), int | float) and value > 0
        ),
        None,
    )
    ranks = [epoch for run in runs for epoch in run.epochs]
    epochs = sum(len({epoch.number for epoch in run.epochs}) for run in runs)

    def known(name: str) -> list[float]:
        return [value for epoch in ranks if (value := getattr(epoch, name)) is not None]

    def of_data_set(name: str, reports: int) -> float | None:
        """Return bytes per epoch of all ranks over those of the data set; None if unrecorded."""
        values = known(name)
        return (
            math.fsum(values) / epochs / size
            if size is not None and epochs and len(values) >= reports
            else None
        )

    before, after = known("resident_before"), known("resident_after")
    return {
        "epochs": epochs,
        "mib": None if size is None else size / 2**20,
        "before_low": min(before, default=None),
        "before_high": max(before, default=None),
        "after": math.fsum(after) / len(after) if after else None,
        "asked": of_data_set("rchar_bytes", len(ranks)),
        "fetched": of_data_set("read_bytes", len(ranks)),
        "device": of_data_set(
            "device_read_bytes", epochs
        ),  # machine-wide: one rank reports it for all
    }
