"""Tweak sets against stock, block by block, in each configuration; cold and warm cache side by side; stock against its copy.

Where the data set is in memory no disk is read, so that a setting of the disk cannot matter: what it seems to do there is what this
machine makes out of nothing (a negative control).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.stats.adjust import holm
from analysis.studies.keys.observed import AGAIN
from analysis.terms import NotComparable
from control.t_test import ALPHA

from .factors import STOCK, common, configuration, level_of, scale_of, touched
from .steps import paired

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .responses import Judged

CACHE = "cache"
FEWEST_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class Contrast:
    """One tweak set against stock in one configuration: a mean over blocks, as a gain (rates) or in the response's own unit.

    `p_adjusted` is Holm's over all contrasts of the table. `missing` says why there is no figure. `cache` is the state of the page cache
    before each epoch, "" where it was not a parameter, and `rest` the configuration without it.
    """

    tweakset: str
    configuration: str
    rest: str
    cache: str
    blocks: int = 0
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    missing: str | None = None

    @property
    def shown(self) -> bool:
        """Whether it differs from stock, as far as the adjusted p says."""
        return self.p_adjusted is not None and self.p_adjusted < ALPHA


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Everything that was set against stock in one response. `differences` are cold minus warm (its negative control), block by block."""

    response: str
    unit: str
    again: tuple[Contrast, ...]
    tweaks: tuple[Contrast, ...]
    differences: tuple[Contrast, ...]


def contrasts(cells: Sequence[Judged], response: str) -> Contrasts:
    """Set every tweak set, and the copy of stock, against stock."""
    table: dict[tuple[str, str], dict[int, float]] = {}
    about: dict[str, tuple[str, str]] = {}
    met: set[tuple[str, str]] = set()
    alike = common([one.run for one in cells])
    for cell in cells:
        run = cell.run
        name = configuration(run, alike)
        met.add((run.tweakset, name))
        about[name] = configuration(run, alike | {CACHE}), level_of(run, CACHE) if CACHE in {*run.overrides, *run.params} else ""
        value = cell.responses[response].value
        if run.block is not None and value is not None and (scale_of(response) == "raw" or value > 0):
            table.setdefault((name, run.tweakset), {})[run.block] = value
    unit = next((one.responses[response].unit for one in cells), "")
    sets = [AGAIN, *touched(cells)]
    changes = {(one, name): _changes(table, name, one, response) for one in sets for name in about if (one, name) in met}
    made = {key: _contrast(key[0], key[1], about[key[1]], list(blocks.values()), response) for key, blocks in changes.items()}
    again = _adjusted([one for (name, _), one in made.items() if name == AGAIN])
    tweaks = _adjusted([one for (name, _), one in made.items() if name != AGAIN])
    return Contrasts(response, unit, tuple(again), tuple(tweaks), tuple(_adjusted(_differences(changes, about, response))))


def _changes(table: Mapping[tuple[str, str], Mapping[int, float]], name: str, tweakset: str, response: str) -> dict[int, float]:
    """What the tweak set changed in each block that has both: a log ratio, or a difference."""
    stock, other = table.get((name, STOCK), {}), table.get((name, tweakset), {})
    both = sorted(stock.keys() & other.keys())
    if scale_of(response) == "log":
        return {block: math.log(other[block] / stock[block]) for block in both}
    return {block: other[block] - stock[block] for block in both}


def _contrast(tweakset: str, name: str, about: tuple[str, str], values: Sequence[float], response: str) -> Contrast:
    """One-sample t on the changes of the blocks."""
    rest, cache = about
    empty = Contrast(tweakset, name, rest, cache, len(values))
    if len(values) < FEWEST_BLOCKS:
        return replace(empty, missing=f"{len(values)} block{'' if len(values) == 1 else 's'} with both")
    try:
        one = paired(values, log=scale_of(response) == "log")
    except NotComparable as reason:
        return replace(empty, missing=str(reason))
    return replace(empty, effect=one.effect, low=one.low, high=one.high, p=one.p)


def _differences(
    changes: Mapping[tuple[str, str], Mapping[int, float]], about: Mapping[str, tuple[str, str]], response: str
) -> list[Contrast]:
    """How much more a tweak set does on a cold cache than on a warm one."""
    found = []
    for (tweakset, name), cold in changes.items():
        rest, cache = about[name]
        twin = next((other for other, (its, state) in about.items() if (its, state) == (rest, "warm")), None)
        if tweakset == AGAIN or cache != "cold" or twin is None or (tweakset, twin) not in changes:
            continue
        warm = changes[tweakset, twin]
        values = [cold[block] - warm[block] for block in sorted(cold.keys() & warm.keys())]
        found.append(_contrast(tweakset, rest, (rest, ""), values, response))
    return found


def _adjusted(found: Sequence[Contrast]) -> list[Contrast]:
    ps = iter(holm([one.p for one in found if one.p is not None]))
    return [one if one.p is None else replace(one, p_adjusted=next(ps)) for one in found]
