"""Each response of each configuration: the mean over blocks with a t interval, or the reason why there is no figure.

A run is one value: its epochs hang together, and an interval over them would be too narrow. Stock and its copy in one block are one value
too. Rates have geometric means, AU and shares arithmetic ones, whose intervals end where what they measure does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.stats.effect import interval

from .factors import AGAIN, STOCK, common, configuration, scale_of, varied

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .responses import JudgedResponse
    from .terms import IoResponse, IoRun


BY_DEFAULT = "by default"  # beside configurations that each differ from it in something else


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over `runs` values, one a block; a single one has no interval. `missing` says why runs, or all, have no value."""

    runs: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    missing: str | None = None


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
    responses: Mapping[str, Mean]


def configurations(cells: Sequence[JudgedResponse]) -> list[Configuration]:
    """Put runs of one configuration and tweak set together, stock and its copy too, in the order of levels."""
    groups: dict[tuple[str, str], list[JudgedResponse]] = {}
    for name, members in by_name(in_order(cells)).items():
        for cell in members:
            groups.setdefault((name, STOCK if cell.run.tweakset == AGAIN else cell.run.tweakset), []).append(cell)
    return [
        Configuration(
            name,
            tweakset,
            tuple(member.run for member in members),
            {
                response: mean_of([member.responses[response] for member in members], [member.run.block for member in members])
                for response in members[0].responses
            },
        )
        for (name, tweakset), members in groups.items()
    ]


def caches(cells: Sequence[JudgedResponse]) -> dict[str, Cache]:
    """Prove the cache state of each configuration, under all tweak sets together: none of them may change it."""
    return {name: _cache([cell.run for cell in members]) for name, members in by_name(in_order(cells)).items()}


def by_name(cells: Sequence[JudgedResponse]) -> dict[str, list[JudgedResponse]]:
    """Put cells of one configuration together, by what sets it apart among these."""
    alike = common([cell.run for cell in cells])
    groups: dict[str, list[JudgedResponse]] = {}
    for cell in cells:
        groups.setdefault(configuration(cell.run, alike) or BY_DEFAULT, []).append(cell)
    return groups


def in_order(cells: Sequence[JudgedResponse]) -> list[JudgedResponse]:
    """Put cells in the order of levels, the plain one first; those of a run are shuffled."""
    result = varied([cell.run for cell in cells], sets=True)
    places = [{level: at for at, level in enumerate(factor.levels)} for factor in result.factors]
    return sorted(cells, key=lambda cell: [place[level] for place, level in zip(places, result.levels(cell.run), strict=True)])


def mean_of(values: Sequence[IoResponse], blocks: Sequence[int | None] = ()) -> Mean:
    """Average one response over blocks; what is missing in some runs is said, and no figure is made of none."""
    known = [(at, value.value) for at, value in enumerate(values) if value.value is not None]
    why = list(dict.fromkeys((value.why_missing or "not given").rstrip(".") for value in values if value.value is None))
    missing = None if not why else "; ".join(why) if not known else f"{len(values) - len(known)} of {len(values)} runs: {'; '.join(why)}"
    if not known:
        return Mean(0, missing=missing)
    name = values[0].name
    log = scale_of(name) == "log" and all(value > 0 for _, value in known)
    together: dict[tuple[str, int], list[float]] = {}
    for at, value in known:
        block = blocks[at] if blocks else None
        together.setdefault(("run", at) if block is None else ("block", block), []).append(math.log(value) if log else value)
    means = [math.fsum(group) / len(group) for group in together.values()]
    ends = interval(means) if len(means) > 1 else tuple(means)
    value, *limits = map(math.exp, ends) if log else _within(name, ends)
    low, high = limits or (None, None)
    return Mean(len(together), value, low, high, missing)


def by_block(cells: Sequence[JudgedResponse], response: str) -> dict[int, float]:
    """One response of some runs block by block, as `mean_of` averages them; runs without a block are left out."""
    blocks = sorted({cell.run.block for cell in cells if cell.run.block is not None})
    means = {block: mean_of([cell.responses[response] for cell in cells if cell.run.block == block]) for block in blocks}
    return {block: mean.value for block, mean in means.items() if mean.value is not None}


def _within(name: str, ends: Sequence[float]) -> list[float]:
    """Keep an interval where its response can be; the mean itself stays as it was measured."""
    mean, *limits = ends
    highest = math.inf if scale_of(name) == "log" else 100.0 if name.endswith("_percent") else 1.0 if name.endswith("_share") else None
    return list(ends) if highest is None else [mean, *(min(max(limit, min(0.0, mean)), max(highest, mean)) for limit in limits)]


def _cache(runs: Sequence[IoRun]) -> Cache:
    size = next((float(value) for run in runs if isinstance(value := run.dataset.get("bytes"), int | float) and value > 0), None)
    epochs = [(run, number) for run in runs for number in sorted({epoch.number for epoch in run.epochs})]
    ranks = sum(len(run.epochs) for run in runs)

    def known(name: str) -> list[float]:
        return [value for run in runs for epoch in run.epochs if (value := getattr(epoch, name)) is not None]

    def of_data_set(name: str, reports: int) -> float | None:
        """Bytes of an epoch, all ranks together, over those of the data set; None where a rank that should know does not."""
        values = known(name)
        return math.fsum(values) / len(epochs) / size if size is not None and epochs and len(values) >= reports else None

    before, after = known("resident_before"), known("resident_after")
    return Cache(
        len(epochs),
        size,
        min(before, default=None),
        max(before, default=None),
        math.fsum(after) / len(after) if after else None,
        of_data_set("rchar_bytes", ranks),
        of_data_set("read_bytes", ranks),
        of_data_set("device_read_bytes", len(epochs)),  # the machine's: one rank tells it for all
    )
