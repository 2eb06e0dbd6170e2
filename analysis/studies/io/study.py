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

import pandas as pd

from analysis.contrasts import contrasts as compared
from analysis.stats import estimate
from analysis.stats.estimate import Estimate
from analysis.terms import AGAIN, STOCK

from .design import common, configuration, describe_common, factors_of, level_of, place, scale_of
from .effects import Analysis, analyse
from .figures import RATE, STEADY, WHOLE, Judged, judged_alike

if TYPE_CHECKING:
    from .terms import IoRun

BY_DEFAULT = "default"  # for a level beside configurations that differ in another parameter
# Both utilisations, since the first step may hide an effect; and samples/s, which remains useful if
# nothing is computed.
RESPONSES = (WHOLE, STEADY, RATE)
CACHE = "cache"
FEWEST_PAIRS = 2


@dataclass(frozen=True, slots=True)
class Configuration:
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
    """All contrasts against stock: of its copy `again`, and of tweak sets.

    `differences` are cold minus warm, block by block: if the data set is in memory, no disk is
    read, so any effect of a disk setting there is an artefact (a negative control).
    """

    again: tuple[IoContrast, ...] = ()
    tweaks: tuple[IoContrast, ...] = ()
    differences: tuple[IoContrast, ...] = ()


@dataclass(frozen=True, slots=True)
class IoStudy:
    """I/O runs of one source and their results; `alike` is common to all, `refused` are unusable.

    `analyses` are of untouched machines.
    """

    origin: str
    cells: tuple[Judged, ...]
    alike: str
    configurations: tuple[Configuration, ...]
    caches: Mapping[str, Mapping[str, float | None]]
    analyses: tuple[Analysis, ...]
    contrasts: Contrasts
    refused: tuple[str, ...] = ()


def study(origin: str, judged: Sequence[Judged], refused: Sequence[str] = ()) -> IoStudy:
    cells = tuple(judged_alike([one for one in judged if one.run.epochs]))
    return IoStudy(
        origin,
        cells,
        describe_common([cell.run for cell in cells]),
        tuple(configurations(cells)),
        {
            name: _cache([cell.run for cell in members])
            for name, members in by_name(in_order(cells)).items()
        },
        tuple(analyse(cells, response) for response in RESPONSES) if cells else (),
        contrasts(cells),
        tuple(refused),
    )


def configurations(cells: Sequence[Judged]) -> list[Configuration]:
    result = []
    for name, members in by_name(in_order(cells)).items():
        groups: dict[str, list[Judged]] = defaultdict(list)
        for cell in members:
            groups[STOCK if cell.run.tweakset == AGAIN else cell.run.tweakset].append(cell)
        for tweakset, group in groups.items():
            responses = {response: mean_of(response, group) for response in group[0].responses}
            runs = tuple(cell.run for cell in group)
            result.append(Configuration(name, tweakset, runs, responses))
    return result


def by_name(cells: Sequence[Judged]) -> dict[str, list[Judged]]:
    alike = common([cell.run for cell in cells])
    groups: dict[str, list[Judged]] = defaultdict(list)
    for cell in cells:
        groups[configuration(cell.run, alike) or BY_DEFAULT].append(cell)
    return groups


def in_order(cells: Sequence[Judged]) -> list[Judged]:
    varied = factors_of([cell.run for cell in cells])
    return sorted(
        cells, key=lambda cell: [*map(place, varied.point(cell.run)), place(cell.run.tweakset)]
    )


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
    ratio = scale_of(response) == "log"
    log = ratio and all(value > 0 for _, value in known)
    groups: dict[object, list[float]] = defaultdict(list)
    for at, (block, value) in enumerate(known):
        groups[("run", at) if block is None else block].append(math.log(value) if log else value)
    most = math.inf if ratio else 100.0 if response.endswith("_percent") else 1.0
    mean = estimate.mean_of([*map(fmean, groups.values())], log=log, within=(0.0, most))
    return replace(mean or Estimate(), missing=missing)


def gains(frame: pd.DataFrame, arm: str, baseline: object, by: Sequence[str]) -> pd.DataFrame:
    """Compare samples/s of each level of an arm with the baseline's, paired by block.

    The gain is a fraction, in `value`, `low` and `high`; Holm adjusts over all rows.
    """
    rows = compared(
        frame, arm, baseline, {RATE: "log"}, by=by, within=["block"], fewest=FEWEST_PAIRS
    )
    rows[["value", "low", "high"]] -= 1
    rows.loc[rows["p"].isna(), ["value", "low", "high"]] = None
    return rows


def rates(cells: Sequence[Judged]) -> pd.DataFrame:
    alike = common([cell.run for cell in cells])
    return pd.DataFrame(
        [
            {
                "tweakset": cell.run.tweakset,
                "configuration": configuration(cell.run, alike),
                "rest": configuration(cell.run, alike | {CACHE}),
                CACHE: level_of(cell.run, CACHE)
                if CACHE in {*cell.run.overrides, *cell.run.params}
                else "",
                "block": cell.run.block,
                RATE: cell.value(RATE),
            }
            for cell in cells
            if cell.run.block is not None and (cell.value(RATE) or 0) > 0
        ]
    )


def contrasts(cells: Sequence[Judged]) -> Contrasts:
    frame = rates(cells)
    if frame.empty or {*frame["tweakset"]} <= {STOCK} or STOCK not in {*frame["tweakset"]}:
        return Contrasts()
    places = ["configuration", "rest", CACHE]
    rows = gains(frame, "tweakset", STOCK, places).rename(columns={"arm": "tweakset"})
    again = rows["tweakset"] == AGAIN
    differences = pd.DataFrame()
    logs = frame.assign(log=frame[RATE].map(math.log))
    means = logs.groupby([*places, "block", "tweakset"], sort=False)["log"].mean().reset_index()
    stock = means[means["tweakset"] == STOCK].drop(columns="tweakset")
    both = means[~means["tweakset"].isin([STOCK, AGAIN])].merge(stock, on=[*places, "block"])
    both[RATE] = (both["log_x"] - both["log_y"]).map(math.exp)
    if {"cold", "warm"} <= {*both[CACHE]}:
        both = both[both[CACHE].isin(["cold", "warm"])]
        differences = gains(both, CACHE, "warm", ["tweakset", "rest"])
        differences = differences.assign(configuration=differences["rest"], cache="")
    return Contrasts(_records(rows[again]), _records(rows[~again]), _records(differences))


def _records(rows: pd.DataFrame) -> tuple[IoContrast, ...]:
    names = ("n", "value", "low", "high", "p", "p_adjusted")
    words = ("tweakset", "configuration", "rest", CACHE)
    result = []
    for row in rows.to_dict("records"):
        figures: dict[str, Any] = {
            name: None if pd.isna(row[name]) else row[name] for name in names
        }
        figures |= {str(name): row[name] for name in words}
        result.append(IoContrast(**figures, missing=row["missing"] or None))
    return tuple(result)


def _cache(runs: Sequence[IoRun]) -> dict[str, float | None]:
    """Prove the cache state of a configuration, under all tweak sets, which must not change it.

    Returns: `epochs` of all runs, the data set's `mib`, and fractions of it. `before_low` and
        `before_high` are the extremes in memory before an epoch, since one wrong epoch counts; the
        others are means over all epochs: in memory `after` one, `asked` for by read calls,
        `fetched` of that from a device, read by the whole machine from the `device`.
    """
    sizes = [run.dataset.get("bytes") for run in runs]
    size = next((float(one) for one in sizes if isinstance(one, int | float) and one > 0), None)
    ranks = [epoch for run in runs for epoch in run.epochs]
    epochs = sum(len({epoch.number for epoch in run.epochs}) for run in runs)

    def known(name: str) -> list[float]:
        return [value for epoch in ranks if (value := getattr(epoch, name)) is not None]

    def of_data_set(name: str, reports: int) -> float | None:
        values = known(name)
        complete = size is not None and epochs and len(values) >= reports
        return math.fsum(values) / epochs / size if complete and size else None

    before, after = known("resident_before"), known("resident_after")
    return {
        "epochs": epochs,
        "mib": None if size is None else size / 2**20,
        "before_low": min(before, default=None),
        "before_high": max(before, default=None),
        "after": math.fsum(after) / len(after) if after else None,
        "asked": of_data_set("rchar_bytes", len(ranks)),
        "fetched": of_data_set("read_bytes", len(ranks)),
        "device": of_data_set("device_read_bytes", epochs),
    }
