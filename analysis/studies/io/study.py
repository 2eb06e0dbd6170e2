"""I/O runs of one source together: by configuration, by factor, and tweak sets against stock.

A run is one value: its epochs hang together, and an interval over them would be too narrow. Stock and its copy in one block are one value
too. Rates have geometric means, AU and shares arithmetic ones, whose intervals end where what they measure does.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.stats import estimate
from analysis.stats.estimate import Estimate
from analysis.terms import AGAIN, STOCK

from .effects import Analysis, Contrasts, IoContrast, analyse, contrasts
from .factors import common, configuration, describe_common, factors_of, on_scale, place, scale_of
from .formulas import RATE, STEADY, WHOLE
from .responses import JudgedResponse, judged_alike

if TYPE_CHECKING:
    from .terms import IoResponse, IoRun

BY_DEFAULT = "by default"  # beside configurations that each differ from it in something else
# Analysed unless asked otherwise: both utilisations, for the first step may hide what a factor does; and samples/s, which is as good as AU
# where computation and batch are the same, and speaks where nothing is computed.
RESPONSES = (WHOLE, STEADY, RATE)


@dataclass(frozen=True, slots=True)
class Cache:
    """What was really read: fractions of the data set's bytes or pages, means over all epochs of all runs.

    `asked` are bytes of read calls, `fetched` those that came from a device for the processes, `device` what the whole machine read.
    `before` has its extremes: one epoch that began otherwise than it should is a wrong one.
    """

    epochs: int
    bytes: float | None = None
    before_low: float | None = None
    before_high: float | None = None
    after: float | None = None
    asked: float | None = None
    fetched: float | None = None
    device: float | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """One combination of parameters under one tweak set: its runs, and its responses by name."""

    name: str
    tweakset: str
    runs: tuple[IoRun, ...]
    responses: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class IoStudy:
    """I/O runs of one source and what they show. `alike` is what all of them have in common; `refused` what could not be used.

    `idle` are tweak sets that changed nothing here, each against stock: further copies of stock, in no analysis. `analyses` are of
    untouched machines.
    """

    origin: str
    cells: tuple[JudgedResponse, ...]
    alike: str
    configurations: tuple[Configuration, ...]
    caches: Mapping[str, Cache]
    analyses: tuple[Analysis, ...]
    contrasts: Contrasts
    idle: tuple[IoContrast, ...] = ()
    refused: tuple[str, ...] = ()


def study(origin: str, runs: Sequence[IoRun], refused: Sequence[str] = ()) -> IoStudy:
    """Analyse training runs; runs that only generated data are left out."""
    cells = tuple(judged_alike(run for run in runs if run.kind != "generation"))
    treated, copies = apart(cells)
    analyses = [analyse(treated, response) for response in RESPONSES] if cells else []
    return IoStudy(
        origin,
        cells,
        describe_common([cell.run for cell in cells]),
        tuple(configurations(cells)),
        caches(cells),
        tuple(analyses),
        contrasts(treated, RATE),
        contrasts(copies, RATE).tweaks if copies else (),
        tuple(refused),
    )


def apart(cells: Sequence[JudgedResponse]) -> tuple[list[JudgedResponse], list[JudgedResponse]]:
    """Part the cells of tweak sets that changed nothing anywhere from the others; stock stands on both sides."""
    idle = {cell.run.tweakset for cell in cells} - {cell.run.tweakset for cell in cells if not cell.run.changed_nothing}
    treated = [cell for cell in cells if cell.run.tweakset not in idle]
    return treated, [cell for cell in cells if cell.run.tweakset in idle | {STOCK}] if idle else []


def configurations(cells: Sequence[JudgedResponse]) -> list[Configuration]:
    """Put runs of one configuration and tweak set together, stock and its copy too, in the order of levels."""
    result = []
    for name, members in by_name(in_order(cells)).items():
        groups: dict[str, list[JudgedResponse]] = defaultdict(list)
        for cell in members:
            groups[STOCK if cell.run.tweakset == AGAIN else cell.run.tweakset].append(cell)
        for tweakset, group in groups.items():
            blocks = [cell.run.block for cell in group]
            responses = {response: mean_of([cell.responses[response] for cell in group], blocks) for response in group[0].responses}
            result.append(Configuration(name, tweakset, tuple(cell.run for cell in group), responses))
    return result


def by_name(cells: Sequence[JudgedResponse]) -> dict[str, list[JudgedResponse]]:
    """Put cells of one configuration together, by what sets it apart among these."""
    alike = common([cell.run for cell in cells])
    groups: dict[str, list[JudgedResponse]] = defaultdict(list)
    for cell in cells:
        groups[configuration(cell.run, alike) or BY_DEFAULT].append(cell)
    return groups


def in_order(cells: Sequence[JudgedResponse]) -> list[JudgedResponse]:
    """Put cells in the order of levels, the plain one first; those of a run are shuffled."""
    varied = factors_of([cell.run for cell in cells])
    places = [{level: at for at, level in enumerate(factor.levels)} for factor in varied.factors]

    def key(cell: JudgedResponse) -> tuple[list[int], tuple[int, float, str]]:
        levels = [at[level] for at, level in zip(places, varied.levels(cell.run), strict=True)]
        return levels, place(cell.run.tweakset)

    return sorted(cells, key=key)


def mean_of(values: Sequence[IoResponse], blocks: Sequence[int | None] = ()) -> Estimate:
    """Average one response over blocks; what is missing in some runs is named, and no figure is made of none."""
    known = [(at, value.value) for at, value in enumerate(values) if value.value is not None]
    why = list(dict.fromkeys((value.why_missing or "not given").rstrip(".") for value in values if value.value is None))
    missing = None if not why else "; ".join(why) if not known else f"{len(values) - len(known)} of {len(values)} runs: {'; '.join(why)}"
    if not known:
        return Estimate(missing=missing)
    name = values[0].name
    log = scale_of(name) == "log" and all(value > 0 for _, value in known)
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for at, value in known:
        block = blocks[at] if blocks else None
        groups["run" if block is None else "block", at if block is None else block].append(math.log(value) if log else value)
    means = [math.fsum(group) / len(group) for group in groups.values()]
    most = math.inf if scale_of(name) == "log" else 100.0 if name.endswith("_percent") else 1.0 if name.endswith("_share") else None
    mean = estimate.mean_of(means, log=log, within=None if most is None else (0.0, most))
    return replace(mean or Estimate(), missing=missing)


def block_means(cells: Sequence[JudgedResponse], response: str) -> dict[int, float]:
    """Return the mean of some runs in each block, on the scale on which the response is compared; runs without a block are left out."""
    groups: dict[int, list[float]] = defaultdict(list)
    for cell in cells:
        y = on_scale(response, cell.value(response))
        if cell.run.block is not None and y is not None:
            groups[cell.run.block].append(y)
    return {block: math.fsum(groups[block]) / len(groups[block]) for block in sorted(groups)}


def caches(cells: Sequence[JudgedResponse]) -> dict[str, Cache]:
    """Prove the cache state of each configuration, under all tweak sets together: none of them may change it."""
    return {name: _cache([cell.run for cell in members]) for name, members in by_name(in_order(cells)).items()}


def _cache(runs: Sequence[IoRun]) -> Cache:
    size = next((float(value) for run in runs if isinstance(value := run.dataset.get("bytes"), int | float) and value > 0), None)
    ranks = [epoch for run in runs for epoch in run.epochs]
    epochs = sum(len({epoch.number for epoch in run.epochs}) for run in runs)

    def known(name: str) -> list[float]:
        return [value for epoch in ranks if (value := getattr(epoch, name)) is not None]

    def of_data_set(name: str, reports: int) -> float | None:
        """Bytes of an epoch, all ranks together, over those of the data set; None where a rank that should know does not."""
        values = known(name)
        return math.fsum(values) / epochs / size if size is not None and epochs and len(values) >= reports else None

    before, after = known("resident_before"), known("resident_after")
    return Cache(
        epochs,
        size,
        min(before, default=None),
        max(before, default=None),
        math.fsum(after) / len(after) if after else None,
        of_data_set("rchar_bytes", len(ranks)),
        of_data_set("read_bytes", len(ranks)),
        of_data_set("device_read_bytes", epochs),  # the machine's: one rank reports it for all
    )
