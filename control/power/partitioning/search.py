"""Our own partitioner: everything that was profiled, then mixes of its processes by local search, at every supported clock.

Nothing is assumed of the model's curves: each partition is looked at on every supported clock, so a power that falls with the clock or a
jump in the throughput cannot lead to an answer above the cap. Deterministic: no time and no random number decides.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import nlargest
from operator import attrgetter
from typing import TYPE_CHECKING

from control.errors import Refused
from control.power import grid
from control.power.terms import SPOKEN, Setting, unit_of

from .batches import fits
from .looking import Cap, Looking, supported
from .neighbours import Space, partition_of, tiles_of
from .predicted import answer
from .terms import Infeasible, rounded_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from control.power.terms import Model, Platform

    from .looking import Found
    from .neighbours import Tiles
    from .terms import Answer

WORTH = 1.01  # a gain below what the original's own fits are off by in sample (0.96 %, by its stored scores) is none
BEAM = 6  # partitions whose surroundings are looked at together
ROUNDS = 12
GIVEN: Callable[[Found], float] = attrgetter("throughput_images_per_s")
SURE: Callable[[Found], float] = attrgetter("sure_images_per_s")


def best(  # noqa: PLR0913  # each is a bound of its own
    models: Mapping[float, Model],
    platform: Platform,
    cap_w: float,
    *,
    network: str,
    margin_w: float = 0.0,
    sds: float = 0.0,
    max_processes: int | None = None,
    mixes: bool = True,
) -> Answer:
    """Answer the setting of the highest predicted throughput whose predicted power is at most `cap_w`.

    `margin_w` and `sds` standard deviations of the model's own are kept free below the cap. `models` are by memory clock, MHz. Clocks are
    the supported ones up to the anchor's. Partitions are those that the models were fitted on, or the profiling grid; their processes are
    what mixes are made of, never more of them nor a larger share together. There the model extrapolates: a mix is answered only where its
    throughput, less one standard deviation if the model knows it, is `WORTH` more than all that was profiled; without `mixes`, never.
    Raises: Infeasible; Refused, where there is no model, clock or partition to search.
    """
    known = _profiled(models, network, max_processes)
    searched = [models[mem_mhz] for mem_mhz in platform.searched_mem_mhz if mem_mhz in models]
    if not searched:
        has, have = (", ".join(f"{one:g}" for one in some) or "none" for some in (platform.searched_mem_mhz, models))
        raise Refused(f"No model of {network} at a memory clock that is searched on {platform.name} ({has} MHz); there is {have}.")
    cap = Cap(cap_w, margin_w, sds)
    lookings = {one.mem_mhz: Looking(one, supported(one, platform), cap) for one in searched}
    found = {mem_mhz: looking.at(known) for mem_mhz, looking in lookings.items()}
    if not any(found.values()):
        raise _infeasible(lookings.values(), platform, network)
    winners = [_best(found, GIVEN)]
    if mixes:
        space = _space(known, max_processes)
        mixed = _best({mem_mhz: _climbed(looking, space, found[mem_mhz]) for mem_mhz, looking in lookings.items()}, SURE)
        if mixed[1].sure_images_per_s > WORTH * winners[0][1].throughput_images_per_s:
            winners.insert(0, mixed)
    evaluations = sum(len(looking.seen) for looking in lookings.values())
    told = [
        answer(models, Setting(partition_of(one.tiles), one.sm_mhz, mem_mhz), cap_w - margin_w, evaluations, profiled=one.tiles in known)
        for mem_mhz, one in winners
    ]
    return told[0] if told[0].profiled else replace(told[0], best_profiled=told[-1])


def _profiled(models: Mapping[float, Model], network: str, max_processes: int | None) -> list[Tiles]:
    """Answer the partitions that the models know, sorted. Raises: Refused, where none of them may be used."""
    said = [one for model in models.values() for one in getattr(model, "partitions", ())]
    usable = [
        one
        for one in said or [point.partition for point in grid.anchor()]
        if all(fits(network, batch) for batch in one.batches) and (max_processes is None or len(one.shares) <= max_processes)
    ]
    if not usable:
        raise Refused(f"No profiled partition of {network} has at most {max_processes} processes with batches that fit into memory.")
    return sorted({tiles_of(one) for one in usable})


def _space(known: Iterable[Tiles], max_processes: int | None) -> Space:
    profiled = list(known)
    tiles = tuple(sorted({tile for one in profiled for tile in one}))
    most = max(len(one) for one in profiled) if max_processes is None else max_processes
    return Space(tiles, max(sum(share for share, _ in one) for one in profiled), most)


def _climbed(looking: Looking, space: Space, start: Sequence[Found]) -> list[Found]:
    """Look around the best found so far, again and again, until nothing better turns up.

    Of partitions that are predicted to give the same, as trees do, only one is looked around, or a plateau would be all that is seen.
    """
    found = [*start, *looking.at(space.alike())]
    expanded: set[Tiles] = set()
    for _ in range(ROUNDS):
        first = {SURE(one): one.tiles for one in sorted(found, key=lambda one: one.rank(SURE(one)), reverse=True)}
        beam = [first[images_per_s] for images_per_s in nlargest(BEAM, first) if first[images_per_s] not in expanded]
        if not beam:
            break
        expanded.update(beam)
        found += looking.at(tiles for one in beam for tiles in space.around(one))
    return found


def _best(found: Mapping[float, Sequence[Found]], images_per_s: Callable[[Found], float]) -> tuple[float, Found]:
    """Answer the best of all memory clocks by what `images_per_s` says; of equals, that of the clock searched first."""
    every = ((mem_mhz, one) for mem_mhz, some in found.items() for one in some)
    return min(every, key=lambda pair: pair[1].rank(images_per_s(pair[1])))


def _infeasible(lookings: Iterable[Looking], platform: Platform, network: str) -> Infeasible:
    some = list(lookings)
    smallest_w, cap = min(one.smallest_cap_w for one in some), some[0].cap
    unit = unit_of(some[0].model)
    unit = SPOKEN.get(unit, unit)
    free = [f"{cap.margin_w:g} {unit}"] * bool(cap.margin_w) + [f"{cap.sds:g} standard deviations"] * bool(cap.sds)
    less = f" less {' and '.join(free)}" if free else ""
    return Infeasible(
        f"No partition of {network} on {platform.name} stays within {cap.cap_w:g} {unit}{less}; "
        f"the smallest cap that one would keep is {rounded_up(smallest_w)} {unit}.",
        smallest_w,
    )
