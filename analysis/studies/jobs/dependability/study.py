"""Faults against the same jobs without them: each kind of fault an arm, each block a pair, Holm over all arms.

Slowdown is the mean response of the jobs that both streams got done, over that without the fault. A fault that is a neighbour's (a hog, a
flood) has a verdict on isolation: does it touch the others at all?
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from control.t_test import ALPHA

from .blocks import adjusted, grouped, mean, ratio
from .figures import goodput_per_s, responses, shared, totals
from .recovery import after

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.studies.jobs.queues.terms import Figure

    from .blocks import Ratio
    from .figures import Totals
    from .recovery import After
    from .terms import Stream, Unit

Word = Literal["isolated", "not isolated", "open", "not judged"]
RULE = (
    "isolated: the 90 % interval of the slowdown lies within the margin around 1, and no job is lost. not isolated: slower (Holm p < .05), "
    "and not within it. open: neither is shown."
)
MOST = 0.9  # of the faults must have a recovery time for a mean of them
NEIGHBOURS = ("cpu_hog", "memory_hog", "io_hog", "flood")


@dataclass(frozen=True, slots=True)
class Arm:
    """All streams of one condition under one fault, or under none.

    `streams` are of so many `blocks`; `paired` of them have a twin. Recovery is of faults: `recovered` of `strikes` that did anything have
    one, `whys` counts why the others have none, and with more than a tenth of these there is no mean, which would be of the quick ones.
    `slowdown` and `goodput` are ratios to the twin's, `p` that of the slowdown after Holm. `lost_jobs` were done in the twin and not here.
    `lost_s_per_hit` is lost time for each attempt that was ended.
    """

    condition: str
    label: str
    fault: str | None
    streams: int
    blocks: int
    paired: int
    outcomes: Mapping[str, int]
    useful: Figure | None
    available: Figure | None
    alone_down_s: float
    strikes: int = 0
    hit: int = 0
    given_up: int = 0
    recovered: int = 0
    whys: Mapping[str, int] = field(default_factory=dict)
    restart_s: Figure | None = None
    recovery_s: Figure | None = None
    lost_s: Figure | None = None
    lost_s_per_hit: Figure | None = None
    lost_jobs: int = 0
    slowdown: Ratio | None = None
    goodput: Ratio | None = None
    p: float | None = None
    isolation: Word | None = None
    notes: tuple[str, ...] = ()

    @property
    def thinned(self) -> bool:
        """Whether its jobs were sooner than the twin's where others of them were lost, which left them the slots: no gain."""
        return self.lost_jobs > 0 and self.slowdown is not None and self.slowdown.value < 1


@dataclass(frozen=True, slots=True)
class _One:
    stream: Stream
    twin: Stream | None
    totals: Totals
    after: tuple[After, ...]


def arms(streams: Sequence[Stream], margin: float) -> list[Arm]:
    """Judge every arm, those without a fault first in their condition; `margin` is how much slower is no matter, a fraction."""
    found: dict[tuple[str, str, int], list[_One]] = {}
    for stream in sorted(streams, key=lambda one: (one.condition, one.fault or "", *one.asked.values(), f"{one.checkpoint_s:020.6f}")):
        twin = twin_of(stream, streams) if stream.fault else None
        found.setdefault((stream.condition, stream.label, stream.retries), []).append(
            _One(stream, twin, totals(stream), tuple(after(stream, twin)) if stream.fault else ())
        )
    alike = Counter((condition, label) for condition, label, _ in found)
    made = [
        _arm(condition, label if alike[condition, label] == 1 else f"{label} retries={retries}", ones)
        for (condition, label, retries), ones in found.items()
    ]
    return [_judged(arm, p, margin) for arm, p in zip(made, adjusted([arm.slowdown for arm in made]), strict=True)]


def twin_of(stream: Stream, streams: Sequence[Stream]) -> Stream | None:
    """The stream that met the same jobs without faults: with the same checkpoints and retries, or else with the fewest."""
    there = [
        one
        for one in streams
        if one.fault is None and one.unit == stream.unit and (one.condition, one.tweakset) == (stream.condition, stream.tweakset)
    ]
    wanted = (stream.checkpoint_s, stream.retries)
    return min(there, key=lambda one: ((one.checkpoint_s, one.retries) != wanted, one.checkpoint_s, one.retries), default=None)


def _arm(condition: str, label: str, ones: Sequence[_One]) -> Arm:
    struck = [(one.stream.unit, found) for one in ones for found in one.after]
    slower: dict[Unit, list[tuple[float, float]]] = {}
    work: dict[Unit, list[tuple[float, float]]] = {}
    lost = 0
    for one in ones:
        if one.twin is None:
            continue
        pairs = shared(one.stream, one.twin)
        lost += sum(other.outcome == "done" != mine.outcome for mine, other in pairs)
        _add(slower, one.stream.unit, responses(pairs))
        rates = [goodput_per_s([pair[at] for pair in pairs]) for at in (1, 0)]
        _add(work, one.stream.unit, None if rates[0] is None or rates[1] is None else (rates[0], rates[1]))
    recovered = sum(found.recovery_s is not None for _, found in struck)
    hits = {id(one): sum(found.hit for found in one.after) for one in ones}
    first = ones[0].stream
    return Arm(
        condition=condition,
        label=label,
        fault=first.fault,
        streams=len(ones),
        blocks=len({one.stream.unit for one in ones}),
        paired=sum(one.twin is not None for one in ones),
        outcomes=dict(sum((Counter(one.totals.outcomes) for one in ones), Counter[str]())),
        useful=mean(grouped([(one.stream.unit, one.totals.useful) for one in ones])),
        available=mean(grouped([(one.stream.unit, one.totals.available) for one in ones])),
        alone_down_s=math.fsum(one.totals.alone_down_s for one in ones),
        strikes=len(struck),
        hit=sum(found.hit for _, found in struck),
        given_up=sum(found.given_up for _, found in struck),
        recovered=recovered,
        whys=dict(Counter(found.why for _, found in struck if found.why)),
        restart_s=mean(grouped([(unit, found.restart_s) for unit, found in struck])),
        recovery_s=mean(grouped([(unit, found.recovery_s) for unit, found in struck])) if recovered >= MOST * len(struck) else None,
        lost_s=mean(grouped([(one.stream.unit, one.totals.lost_s) for one in ones])),
        lost_s_per_hit=mean(grouped([(one.stream.unit, _each(one.totals.lost_s, hits[id(one)])) for one in ones])),
        lost_jobs=lost,
        slowdown=ratio(slower),
        goodput=ratio(work),
        notes=tuple(_notes(ones)),
    )


def _add(pairs: dict[Unit, list[tuple[float, float]]], unit: Unit, pair: tuple[float, float] | None) -> None:
    if pair is not None:
        pairs.setdefault(unit, []).append(pair)


def _each(total: float | None, count: int) -> float | None:
    return None if total is None or count == 0 else total / count


def _notes(ones: Sequence[_One]) -> list[str]:
    notes = []
    if ones[0].stream.fault:
        alone = sum(one.twin is None for one in ones)
        if alone:
            notes.append(f"{alone} of {len(ones)} streams have no twin without faults in their block, and nothing to be held against.")
        if any(one.twin and (one.twin.checkpoint_s, one.twin.retries) != (one.stream.checkpoint_s, one.stream.retries) for one in ones):
            notes.append("twins had other checkpoints or retries: what these cost without a fault is part of the slowdown.")
        none = sum("done" not in one.totals.outcomes for one in ones)
        if none:
            notes.append(f"in {none} of {len(ones)} streams no job was done: they have no part in slowdown and goodput.")
        if not any(found.fault for one in ones for found in one.after):
            notes.append("no fault ever struck.")
    never = Counter(job.outcome for one in ones for job in one.stream.jobs if job.outcome in {"never started", "never ended"})
    notes += [f"{count} jobs {outcome}: they have no response, and no part in slowdown and recovery." for outcome, count in never.items()]
    for one in ones:
        if one.totals.alone_down_s and one.stream.nodes == 1:
            notes.append(f"{one.stream.cell}: the only node was lost; nothing could run for {one.totals.alone_down_s:.3g} s.")
    if any(outage.back_s is None for one in ones for outage in one.stream.outages):
        notes.append("a node never came back: it counts as lost to the last end of a job.")
    return notes


def _judged(arm: Arm, p: float | None, margin: float) -> Arm:
    if arm.fault not in NEIGHBOURS:
        return replace(arm, p=p)
    slow = arm.slowdown
    word: Word = "open"
    if slow is None or slow.low90 is None or slow.high90 is None or p is None:
        word = "not judged"
    elif 1 / (1 + margin) <= slow.low90 and slow.high90 <= 1 + margin:
        word = "open" if arm.lost_jobs else "isolated"
    elif p < ALPHA and slow.value > 1:
        word = "not isolated"
    return replace(arm, p=p, isolation=word)
