"""Faults against the same jobs without them: each kind of fault an arm, each block a pair, Holm over all arms.

Slowdown is the mean response of the jobs that both streams got done, over that without the fault. A fault that is a neighbour's (a hog, a
flood) has a verdict on isolation: does it touch the others at all? Does a policy spare the stream's own jobs from a fault: the same jobs
under the same fault, under it and under fifo? What do poisoned clients cost a federated run: accuracy without them less accuracy with them?
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from analysis.studies.jobs.estimates import adjusted, average, grouped, mean, ratio
from control.t_test import ALPHA

from .outcomes import after, goodput_per_s, responses, shared, totals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from analysis.studies.jobs.estimates import Figure, Ratio
    from analysis.studies.jobs.records import Stream, Unit

    from .outcomes import After, Totals

    Accuracies = Mapping[Unit, Sequence[float]]

Isolation = Literal["isolated", "not isolated", "open", "not judged"]
RULE = (
    "isolated: the 90 % interval of the slowdown lies within the margin around 1, and no job is lost. not isolated: slower (Holm p < .05), "
    "and not within it. open: neither is shown."
)
MOST = 0.9  # of the faults must have a recovery time for a mean of them
NEIGHBOURS = ("cpu_hog", "memory_hog", "io_hog", "flood")


@dataclass(frozen=True, slots=True)
class FaultArm:
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
    isolation: Isolation | None = None
    notes: tuple[str, ...] = ()

    @property
    def thinned(self) -> bool:
        """Whether its jobs were sooner than the twin's where others of them were lost, which left them the slots: no gain."""
        return self.lost_jobs > 0 and self.slowdown is not None and self.slowdown.value < 1


@dataclass(frozen=True, slots=True)
class _Member:
    stream: Stream
    twin: Stream | None
    totals: Totals
    after: tuple[After, ...]

    @property
    def lost_s_per_hit(self) -> float | None:
        hits = sum(after.hit for after in self.after)
        return None if self.totals.lost_s is None or not hits else self.totals.lost_s / hits


def arms(streams: Sequence[Stream], margin: float) -> list[FaultArm]:
    """Judge every arm, those without a fault first in their condition; `margin` is how much slower is no matter, a fraction."""
    groups: dict[tuple[str, str, int], list[_Member]] = {}
    for stream in sorted(streams, key=_order):
        twin = twin_of(stream, streams) if stream.fault else None
        groups.setdefault((stream.condition, stream.label, stream.retries), []).append(
            _Member(stream, twin, totals(stream), tuple(after(stream, twin)) if stream.fault else ())
        )
    alike = Counter((condition, label) for condition, label, _ in groups)
    unjudged = [
        _arm(condition, label if alike[condition, label] == 1 else f"{label} retries={retries}", group)
        for (condition, label, retries), group in groups.items()
    ]
    return [_judged(arm, p, margin) for arm, p in zip(unjudged, adjusted([arm.slowdown for arm in unjudged]), strict=True)]


def _order(stream: Stream) -> tuple[str, ...]:
    return (stream.condition, stream.fault, *stream.fault_params.values(), f"{stream.checkpoint_s:020.6f}")


def twin_of(stream: Stream, streams: Sequence[Stream]) -> Stream | None:
    """The stream that met the same jobs without faults: with the same checkpoints and retries, or else with the fewest."""
    there = [
        other
        for other in streams
        if not other.fault and other.unit == stream.unit and (other.condition, other.tweakset) == (stream.condition, stream.tweakset)
    ]
    guarded = (stream.checkpoint_s, stream.retries)
    return min(there, key=lambda other: ((other.checkpoint_s, other.retries) != guarded, other.checkpoint_s, other.retries), default=None)


def _arm(condition: str, label: str, group: Sequence[_Member]) -> FaultArm:
    struck = [(member.stream.unit, after) for member in group for after in member.after]
    slower: dict[Unit, list[tuple[float, float]]] = {}
    work: dict[Unit, list[tuple[float, float]]] = {}
    lost = 0
    for member in group:
        if member.twin is None:
            continue
        pairs = shared(member.stream, member.twin)
        lost += sum(other.outcome == "done" != job.outcome for job, other in pairs)
        _add(slower, member.stream.unit, responses(pairs))
        rates = [goodput_per_s([pair[at] for pair in pairs]) for at in (1, 0)]
        _add(work, member.stream.unit, None if rates[0] is None or rates[1] is None else (rates[0], rates[1]))
    recovered = sum(after.recovery_s is not None for _, after in struck)
    first = group[0].stream

    def over(of: Callable[[_Member], float | None]) -> Figure | None:
        return mean(grouped((member.stream.unit, of(member)) for member in group))

    def over_struck(of: Callable[[After], float | None]) -> Figure | None:
        return mean(grouped((unit, of(after)) for unit, after in struck))

    return FaultArm(
        condition=condition,
        label=label,
        fault=first.fault or None,
        streams=len(group),
        blocks=len({member.stream.unit for member in group}),
        paired=sum(member.twin is not None for member in group),
        outcomes=dict(sum((Counter(member.totals.outcomes) for member in group), Counter[str]())),
        useful=over(lambda member: member.totals.useful),
        available=over(lambda member: member.totals.available),
        alone_down_s=math.fsum(member.totals.alone_down_s for member in group),
        strikes=len(struck),
        hit=sum(after.hit for _, after in struck),
        given_up=sum(after.given_up for _, after in struck),
        recovered=recovered,
        whys=dict(Counter(after.why for _, after in struck if after.why)),
        restart_s=over_struck(lambda after: after.restart_s),
        recovery_s=over_struck(lambda after: after.recovery_s) if recovered >= MOST * len(struck) else None,
        lost_s=over(lambda member: member.totals.lost_s),
        lost_s_per_hit=over(lambda member: member.lost_s_per_hit),
        lost_jobs=lost,
        slowdown=ratio(slower),
        goodput=ratio(work),
        notes=tuple(_notes(group)),
    )


def _add(pairs: dict[Unit, list[tuple[float, float]]], unit: Unit, pair: tuple[float, float] | None) -> None:
    if pair is not None:
        pairs.setdefault(unit, []).append(pair)


def _notes(group: Sequence[_Member]) -> list[str]:
    notes = []
    if group[0].stream.fault:
        alone = sum(member.twin is None for member in group)
        if alone:
            notes.append(f"{alone} of {len(group)} streams have no twin without faults in their block, and nothing to be held against.")
        if any(
            member.twin and (member.twin.checkpoint_s, member.twin.retries) != (member.stream.checkpoint_s, member.stream.retries)
            for member in group
        ):
            notes.append("twins had other checkpoints or retries: what these cost without a fault is part of the slowdown.")
        none = sum("done" not in member.totals.outcomes for member in group)
        if none:
            notes.append(f"in {none} of {len(group)} streams no job was done: they have no part in slowdown and goodput.")
        if not any(after.fault for member in group for after in member.after):
            notes.append("no fault ever struck.")
    never = Counter(job.outcome for member in group for job in member.stream.jobs if job.outcome in {"never started", "never ended"})
    notes += [f"{count} jobs {outcome}: they have no response, and no part in slowdown and recovery." for outcome, count in never.items()]
    for member in group:
        if member.totals.alone_down_s and member.stream.nodes == 1:
            notes.append(f"{member.stream.name}: the only node was lost; nothing could run for {member.totals.alone_down_s:.3g} s.")
    if any(outage.back_s is None for member in group for outage in member.stream.outages):
        notes.append("a node never came back: it counts as lost to the last end of a job.")
    return notes


def _judged(arm: FaultArm, p: float | None, margin: float) -> FaultArm:
    if arm.fault not in NEIGHBOURS:
        return replace(arm, p=p)
    slow = arm.slowdown
    word: Isolation = "open"
    if slow is None or slow.low90 is None or slow.high90 is None or p is None:
        word = "not judged"
    elif 1 / (1 + margin) <= slow.low90 and slow.high90 <= 1 + margin:
        word = "open" if arm.lost_jobs else "isolated"
    elif p < ALPHA and slow.value > 1:
        word = "not isolated"
    return replace(arm, p=p, isolation=word)


FIFO, POLICY = "fifo", "policy="
LOST = "other jobs were lost than under fifo: not compared."


@dataclass(frozen=True, slots=True)
class SparedJobs:
    """Mean response of the own jobs under a policy over that under fifo, the fault being the same; `p` after Holm over all such.

    `response` is None where the two lost different jobs, which `why` says.
    """

    condition: str
    label: str
    policy: str
    blocks: int
    response: Ratio | None
    p: float | None = None
    why: str = ""


def spared(streams: Sequence[Stream]) -> list[SparedJobs]:
    met: dict[tuple[object, ...], dict[str, Stream]] = {}
    for stream in streams:
        if stream.fault:
            met.setdefault((_rest(stream), stream.fault, stream.label, stream.retries, stream.tweakset, stream.unit), {}).setdefault(
                _policy(stream), stream
            )
    compared: dict[tuple[object, ...], dict[Unit, tuple[Stream, Stream]]] = {}
    for (condition, _, label, retries, _, _), under in met.items():
        base = under.get(FIFO)
        for policy, other in under.items():
            if base is not None and other is not base:
                compared.setdefault((condition, label, retries, policy), {}).setdefault(base.unit, (base, other))
    unadjusted = [_compared(pairs, streams) for pairs in compared.values()]
    return [replace(stream, p=p) for stream, p in zip(unadjusted, adjusted([stream.response for stream in unadjusted]), strict=True)]


def _compared(pairs: dict[Unit, tuple[Stream, Stream]], streams: Sequence[Stream]) -> SparedJobs:
    base, other = next(iter(pairs.values()))
    unknown = SparedJobs(_rest(base), base.label, _policy(other), len(pairs), None)
    times: dict[Unit, list[tuple[float, float]]] = {}
    for unit, (base, other) in pairs.items():
        twin = twin_of(base, streams)
        own = None if twin is None else {job.number for job, _ in shared(base, twin)}
        met = [(job, before) for job, before in shared(other, base) if own is None or job.number in own]
        if any((job.outcome == "done") != (before.outcome == "done") for job, before in met):
            return replace(unknown, why=LOST)
        if (both := responses(met)) is not None:
            times[unit] = [both]
    return replace(unknown, response=ratio(times))


def _policy(stream: Stream) -> str:
    return next((part.removeprefix(POLICY) for part in stream.condition.split(":") if part.startswith(POLICY)), FIFO)


def _rest(stream: Stream) -> str:
    return ":".join(part for part in stream.condition.split(":") if not part.startswith(POLICY))


POISONED, ACCURACY, FEDERATED = "poisoned", "accuracy", "federated"


@dataclass(frozen=True, slots=True)
class Poisoning:
    """One setting with so many poisoned clients.

    `drop` is the accuracy that was lost against the same setting without poisoned clients, or where there is none, against `clean`, another
    setting without; a fraction, None where no block has either.
    """

    condition: str
    setting: str
    poisoned: float
    jobs: int
    accuracy: Figure | None
    drop: Figure | None
    clean: str = ""


def poisonings(streams: Sequence[Stream], result: str = ACCURACY) -> list[Poisoning]:
    """Every setting of the jobs that tell an accuracy and how many of their clients were poisoned; the clean ones first in each.

    `result` is what jobs call the accuracy that is meant: the last, unless told otherwise.
    """
    settings: dict[tuple[str, str], dict[float, dict[Unit, list[float]]]] = {}
    for stream in streams:
        kinds = {str(class_.get("name")): class_ for class_ in stream.classes}
        condition, given = _apart(stream.condition)
        for job in stream.jobs:
            params = _params(kinds.get(job.class_, {}), given)
            level = _number(params.pop(POISONED, None))
            if job.outcome != "done" or result not in job.result or level is None:
                continue
            setting = ", ".join(f"{name}={value}" for name, value in sorted(params.items()))
            units = settings.setdefault((condition, setting), {}).setdefault(level, {})
            units.setdefault(stream.unit, []).append(job.result[result])
    return [
        _poisoning(condition, setting, level, units, _clean(settings, condition, setting))
        for (condition, setting), levels in settings.items()
        for level, units in sorted(levels.items())
    ]


def _clean(settings: Mapping[tuple[str, str], Mapping[float, Accuracies]], condition: str, setting: str) -> tuple[str, Accuracies]:
    """What a setting is held against: its own jobs without poisoned clients, or those of the first setting that has some."""
    there = {other: levels[0.0] for (where, other), levels in settings.items() if where == condition and 0.0 in levels}
    if not there:
        return "", {}
    name = setting if setting in there else next(iter(there))
    return name, there[name]


def _poisoning(condition: str, setting: str, level: float, units: Accuracies, against: tuple[str, Accuracies]) -> Poisoning:
    name, clean = against
    drops = {unit: [average(clean[unit]) - average(values)] for unit, values in units.items() if unit in clean}
    drop = mean(drops) if level else None
    return Poisoning(condition, setting, level, sum(map(len, units.values())), mean(units), drop, name)


def _apart(condition: str) -> tuple[str, str | None]:
    parts = condition.split(":")
    levels = [part.removeprefix(f"{POISONED}=") for part in parts if part.startswith(f"{POISONED}=")]
    return ":".join(part for part in parts if not part.startswith((f"{POISONED}=", "classes="))), levels[0] if levels else None


def _params(kind: Mapping[str, object], given: str | None) -> dict[str, object]:
    params = kind.get("params")
    own: dict[str, object] = {POISONED: 0} if kind.get("kind") == FEDERATED else {}  # its default need not be told
    own |= params if isinstance(params, dict) else {}
    return own if given is None else {**own, POISONED: given}


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
