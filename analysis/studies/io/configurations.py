"""Each response of each configuration: the mean over blocks with a t interval, or the reason why there is no figure.

A run is one value, whatever its steps and epochs: epochs of one run hang together, and an interval over them would be too narrow. Stock
and its copy in one block are one value, too: two looks at one thing. Rates have geometric means, for they are compared by ratios; AU and
shares arithmetic ones, whose intervals end where what they measure does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.stats.effect import interval

from .factors import AGAIN, STOCK, common, configuration, scale_of, varied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .responses import JudgedResponse
    from .terms import IoResponse, IoRun


BY_DEFAULT = "by default"  # beside configurations that each differ from it in something else


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over `runs` values, one a block; the interval is None where one value alone has none.

    `missing` says why runs, or all, have no value.
    """

    runs: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Cache:
    """What was really read, against the data set: fractions of its bytes or pages, means over all epochs of all runs.

    `asked` are bytes of read calls, `fetched` those the processes had fetched from a device, `device` what the whole machine read; each
    over an epoch and all ranks. The extremes of residency are told, for one epoch that began otherwise than it should is a wrong one.
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
    """Put runs of one configuration and tweak set together, stock and its copy too, in the order of the levels of what was varied."""
    groups: dict[tuple[str, str], list[JudgedResponse]] = {}
    cells = in_order(cells)
    alike = common([cell.run for cell in cells])
    for cell in cells:
        tweakset = STOCK if cell.run.tweakset == AGAIN else cell.run.tweakset
        groups.setdefault((configuration(cell.run, alike) or BY_DEFAULT, tweakset), []).append(cell)
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
    """Prove the cache state of each configuration, under all tweak sets together: none of them may change what is to be read."""
    groups: dict[str, list[IoRun]] = {}
    cells = in_order(cells)
    alike = common([cell.run for cell in cells])
    for cell in cells:
        groups.setdefault(configuration(cell.run, alike) or BY_DEFAULT, []).append(cell.run)
    return {name: _cache(runs) for name, runs in groups.items()}


def in_order(cells: Sequence[JudgedResponse]) -> list[JudgedResponse]:
    """Put cells in the order of levels: cells of a run are shuffled, and a reader looks for the plain one first."""
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
    """Answer a response of some runs of one configuration block by block, as `mean_of` averages them; runs without a block are left out."""
    blocks = sorted({cell.run.block for cell in cells if cell.run.block is not None})
    means = {block: mean_of([cell.responses[response] for cell in cells if cell.run.block == block], ()) for block in blocks}
    return {block: mean.value for block, mean in means.items() if mean.value is not None}


def _within(name: str, ends: Sequence[float]) -> list[float]:
    """Keep an interval where its response can be; the mean itself stays as it was measured."""
    mean, *limits = ends
    if scale_of(name) == "log":
        lowest, highest = 0.0, math.inf
    elif name.endswith("_percent"):
        lowest, highest = 0.0, 100.0
    elif name.endswith("_share"):
        lowest, highest = 0.0, 1.0
    else:
        return list(ends)
    return [mean, *(min(max(limit, min(lowest, mean)), max(highest, mean)) for limit in limits)]


def _cache(runs: Sequence[IoRun]) -> Cache:
    size = next((float(value) for run in runs if isinstance(value := run.dataset.get("bytes"), int | float) and value > 0), None)
    epochs = [(run, number) for run in runs for number in sorted({epoch.number for epoch in run.epochs})]
    before = _each(runs, lambda epoch: epoch.resident_before)
    after = _each(runs, lambda epoch: epoch.resident_after)
    asked, fetched, device = (_of_data_set(runs, size, name, len(epochs)) for name in ("rchar_bytes", "read_bytes", "device_read_bytes"))
    return Cache(
        len(epochs),
        size,
        min(before, default=None),
        max(before, default=None),
        math.fsum(after) / len(after) if after else None,
        asked,
        fetched,
        device,
    )


def _each(runs: Iterable[IoRun], take: Callable[..., float | None]) -> list[float]:
    return [value for run in runs for epoch in run.epochs if (value := take(epoch)) is not None]


def _of_data_set(runs: Sequence[IoRun], size: float | None, name: str, epochs: int) -> float | None:
    """Bytes of an epoch, all ranks together, as a fraction of the data set; None where any rank that should know does not."""
    ranks = {"device_read_bytes": 1}  # the machine's: one rank tells it for all
    values = [getattr(epoch, name) for run in runs for epoch in run.epochs]
    known = [float(value) for value in values if value is not None]
    wanted = epochs * ranks[name] if name in ranks else len(values)
    if size is None or not epochs or len(known) < wanted:
        return None
    return math.fsum(known) / epochs / size
