"""Faults against the same jobs without them: each kind of fault an arm, each block a pair, Holm over all arms.

Slowdown is the mean response of the jobs that both streams got done, over that without the fault. A fault that is a neighbour's (a hog, a
flood) has a verdict on isolation: does it touch the others at all? Does a policy spare the stream's own jobs from a fault: the same jobs
under the same fault, under it and under fifo? What do poisoned clients cost a federated run: accuracy without them less accuracy with them?
In the data of the answer losses are fractions.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from analysis.answer import Line, bullets, marked, of_parts
from analysis.wording import unsigned
from control.t_test import ALPHA

from .estimates import NONE, adjusted, average, figure, grouped, mean, number, p_value, ratio, table, value_of
from .recovery import after, goodput_per_s, responses, shared, totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from analysis.answer import Answer, Part, Tone

    from .estimates import Figure, Ratio
    from .records import Stream, Unit
    from .recovery import After, Totals

    Pairs = dict[Unit, list[tuple[float, float]]]
    Accuracies = Mapping[Unit, Sequence[float]]

Isolation = Literal["isolated", "not isolated", "open", "not judged"]
RULE = (
    "isolated: the 90 % interval of the slowdown lies within the margin around 1, and no job is lost. not isolated: slower (Holm p < .05), "
    "and not within it. open: neither is shown."
)
LEGEND = (
    "useful: what is left of the time of all attempts without lost work, checkpoints, and jobs that never got done. lost s: a stream.",
    "slowdown: mean response of the jobs that both got done, over that without the fault. goodput: work done a second, likewise.",
    "intervals of 95 % over blocks, each a pair; p after Holm over all faults. restart: from the fault to the next attempt.",
    "recovered: from the fault until it is over, its jobs are done, and as many jobs are done as by then without it.",
)
TONES: Mapping[str, Tone] = {"isolated": "good", "not isolated": "bad", "open": "open"}
MOST = 0.9  # of the faults must have a recovery time for a mean of them
NEIGHBOURS = ("cpu_hog", "memory_hog", "io_hog", "flood")
FIFO, POLICY = "fifo", "policy="
LOST = "other jobs were lost than under fifo: not compared."
POISONED, ACCURACY, FEDERATED = "poisoned", "accuracy", "federated"


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
    """One stream of an arm, with what it came to."""

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
        member = _Member(stream, twin, totals(stream), tuple(after(stream, twin)) if stream.fault else ())
        groups.setdefault((stream.condition, stream.label, stream.retries), []).append(member)
    alike = Counter((condition, label) for condition, label, _ in groups)
    result = {
        key: _arm(condition, label if alike[condition, label] == 1 else f"{label} retries={retries}", groups[key])
        for key in groups
        for condition, label, retries in [key]
    }
    p = adjusted({key: arm.slowdown for key, arm in result.items()})
    return [replace(arm, p=p.get(key), isolation=_isolation(arm, p.get(key), margin)) for key, arm in result.items()]


def _order(stream: Stream) -> tuple[str, ...]:
    return (stream.condition, stream.fault, *stream.fault_params.values(), f"{stream.checkpoint_s:020.6f}")


def twin_of(stream: Stream, streams: Sequence[Stream]) -> Stream | None:
    """Return the stream that met the same jobs without faults: with the same checkpoints and retries, or else with the fewest."""
    same = (stream.unit, stream.condition, stream.tweakset)
    twins = [other for other in streams if not other.fault and (other.unit, other.condition, other.tweakset) == same]
    guarded = (stream.checkpoint_s, stream.retries)
    return min(twins, key=lambda other: ((other.checkpoint_s, other.retries) != guarded, other.checkpoint_s, other.retries), default=None)


def _arm(condition: str, label: str, group: Sequence[_Member]) -> FaultArm:
    struck = [(member.stream.unit, after) for member in group for after in member.after]
    slower: Pairs = {}
    work: Pairs = {}
    lost = 0
    for member in group:
        if member.twin is None:
            continue
        pairs = shared(member.stream, member.twin)
        lost += sum(other.done and not job.done for job, other in pairs)
        slower.setdefault(member.stream.unit, []).extend([both] if (both := responses(pairs)) else [])
        before, here = (goodput_per_s([pair[at] for pair in pairs]) for at in (1, 0))
        work.setdefault(member.stream.unit, []).extend([] if before is None or here is None else [(before, here)])
    recovered = sum(after.recovery_s is not None for _, after in struck)

    def over(of: Callable[[_Member], float | None]) -> Figure | None:
        return mean(grouped((member.stream.unit, of(member)) for member in group))

    def over_struck(name: str) -> Figure | None:
        return mean(grouped((unit, getattr(after, name)) for unit, after in struck))

    return FaultArm(
        condition=condition,
        label=label,
        fault=group[0].stream.fault or None,
        streams=len(group),
        blocks=len({member.stream.unit for member in group}),
        paired=sum(member.twin is not None for member in group),
        outcomes=dict(Counter(job.outcome for member in group for job in member.stream.jobs)),
        useful=over(lambda member: member.totals.useful),
        available=over(lambda member: member.totals.available),
        alone_down_s=math.fsum(member.totals.alone_down_s for member in group),
        strikes=len(struck),
        hit=sum(after.hit for _, after in struck),
        given_up=sum(after.given_up for _, after in struck),
        recovered=recovered,
        whys=dict(Counter(after.why for _, after in struck if after.why)),
        restart_s=over_struck("restart_s"),
        recovery_s=over_struck("recovery_s") if recovered >= MOST * len(struck) else None,
        lost_s=over(lambda member: member.totals.lost_s),
        lost_s_per_hit=over(lambda member: member.lost_s_per_hit),
        lost_jobs=lost,
        slowdown=ratio(slower),
        goodput=ratio(work),
        notes=tuple(_notes(group)),
    )


def _notes(group: Sequence[_Member]) -> Iterator[str]:
    if group[0].stream.fault:
        alone = sum(member.twin is None for member in group)
        if alone:
            yield f"{alone} of {len(group)} streams have no twin without faults in their block, and nothing to be compared with."
        guards = [[(one.checkpoint_s, one.retries) for one in (member.stream, member.twin)] for member in group if member.twin is not None]
        if any(own != other for own, other in guards):
            yield "twins had other checkpoints or retries: what these cost without a fault is part of the slowdown."
        none = sum("done" not in member.totals.outcomes for member in group)
        if none:
            yield f"in {none} of {len(group)} streams no job was done: they have no part in slowdown and goodput."
        if not any(member.after for member in group):
            yield "no fault ever struck."
    never = Counter(job.outcome for member in group for job in member.stream.jobs if job.outcome in {"never started", "never ended"})
    yield from (f"{count} jobs {outcome}: they have no response, and no part in slowdown and recovery." for outcome, count in never.items())
    for member in group:
        if member.totals.alone_down_s and member.stream.nodes == 1:
            yield f"{member.stream.name}: the only node was lost; nothing could run for {member.totals.alone_down_s:.3g} s."
    if any(outage.back_s is None for member in group for outage in member.stream.outages):
        yield "a node never came back: it counts as lost to the last end of a job."


def _isolation(arm: FaultArm, p: float | None, margin: float) -> Isolation | None:
    slow = arm.slowdown
    if arm.fault not in NEIGHBOURS:
        return None
    if slow is None or slow.low90 is None or slow.high90 is None or p is None:
        return "not judged"
    if 1 / (1 + margin) <= slow.low90 and slow.high90 <= 1 + margin:
        return "open" if arm.lost_jobs else "isolated"
    return "not isolated" if p < ALPHA and slow.value > 1 else "open"


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
            policy, rest = _policy(stream.condition)
            met.setdefault((rest, stream.label, stream.retries, stream.tweakset, stream.unit), {}).setdefault(policy, stream)
    pairs: dict[tuple[object, ...], dict[Unit, tuple[Stream, Stream]]] = {}
    for (*about, _tweakset, _unit), under in met.items():
        for policy, other in under.items():
            if policy != FIFO and (base := under.get(FIFO)) is not None:
                pairs.setdefault((*about, policy), {}).setdefault(base.unit, (base, other))
    result = {key: _spared(of_key, streams) for key, of_key in pairs.items()}
    p = adjusted({key: jobs.response for key, jobs in result.items()})
    return [replace(jobs, p=p.get(key)) for key, jobs in result.items()]


def _spared(pairs: Mapping[Unit, tuple[Stream, Stream]], streams: Sequence[Stream]) -> SparedJobs:
    base, other = next(iter(pairs.values()))
    unknown = SparedJobs(_policy(base.condition)[1], base.label, _policy(other.condition)[0], len(pairs), None)
    times: Pairs = {}
    for unit, (base, other) in pairs.items():
        twin = twin_of(base, streams)
        own = None if twin is None else {job.number for job, _ in shared(base, twin)}
        met = [(job, before) for job, before in shared(other, base) if own is None or job.number in own]
        if any(job.done != before.done for job, before in met):
            return replace(unknown, why=LOST)
        times[unit] = [both] if (both := responses(met)) else []
    return replace(unknown, response=ratio(times))


def _policy(condition: str) -> tuple[str, str]:
    """Return the policy of a condition, and the rest of it."""
    parts = condition.split(":")
    policy = next((part.removeprefix(POLICY) for part in parts if part.startswith(POLICY)), FIFO)
    return policy, ":".join(part for part in parts if not part.startswith(POLICY))


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
    """Return every setting of the jobs whose accuracy and number of poisoned clients are known; the clean ones first in each.

    `result` is what jobs call the accuracy that is meant: the last, by default.
    """
    settings: dict[tuple[str, str], dict[float, dict[Unit, list[float]]]] = {}
    for stream in streams:
        classes = {str(class_.get("name")): _params(class_) for class_ in stream.classes}
        parts = stream.condition.split(":")
        condition = ":".join(part for part in parts if not part.startswith((f"{POISONED}=", "classes=")))
        levels = [part.removeprefix(f"{POISONED}=") for part in parts if part.startswith(f"{POISONED}=")]
        for job in stream.jobs:
            params = classes.get(job.class_, {})
            level = _number(levels[0] if levels else params.get(POISONED))
            if job.done and result in job.result and level is not None:
                setting = ", ".join(f"{name}={value}" for name, value in sorted(params.items()) if name != POISONED)
                units = settings.setdefault((condition, setting), {}).setdefault(level, {})
                units.setdefault(stream.unit, []).append(job.result[result])
    return [
        _poisoning(condition, setting, level, units, _clean(settings, condition, setting))
        for (condition, setting), by_level in settings.items()
        for level, units in sorted(by_level.items())
    ]


def _params(class_: Mapping[str, object]) -> dict[str, object]:
    params = class_.get("params")
    default = {POISONED: 0} if class_.get("kind") == FEDERATED else {}  # its default need not be recorded
    return {**default, **(params if isinstance(params, dict) else {})}


def _clean(settings: Mapping[tuple[str, str], Mapping[float, Accuracies]], condition: str, setting: str) -> tuple[str, Accuracies]:
    """Return what a setting is compared with: its own jobs without poisoned clients, or those of the first setting that has some."""
    clean = {other: levels[0.0] for (where, other), levels in settings.items() if where == condition and 0.0 in levels}
    name = setting if setting in clean else next(iter(clean), "")
    return name, clean.get(name, {})


def _poisoning(condition: str, setting: str, level: float, units: Accuracies, against: tuple[str, Accuracies]) -> Poisoning:
    name, clean = against
    drops = {unit: [average(clean[unit]) - average(values)] for unit, values in units.items() if unit in clean}
    return Poisoning(condition, setting, level, sum(map(len, units.values())), mean(units), mean(drops) if level else None, name)


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def reported(streams: Sequence[Stream], margin: float, refused: Sequence[str]) -> Answer:
    of_faults, policies, accuracies = arms(streams, margin), spared(streams), poisonings(streams)
    data = {"arms": [*map(asdict, of_faults)], "policies": [*map(asdict, policies)], "poisonings": [*map(asdict, accuracies)]}
    return of_parts({**data, "margin": margin, "rule": RULE}, report(of_faults, policies, accuracies, margin), refused)


def report(arms: Sequence[FaultArm], policies: Sequence[SparedJobs], poisonings: Sequence[Poisoning], margin: float) -> Iterator[Part]:
    faulty = {arm.condition for arm in arms if arm.fault}
    for condition in dict.fromkeys(arm.condition for arm in arms if arm.condition in faulty):
        yield Line(condition, tone="strong")
        yield from _condition([arm for arm in arms if arm.condition == condition], margin)
        yield ""
    if policies:
        yield Line("policies under the same fault: response of the stream's own jobs, over that under fifo", tone="strong")
        rows = [(f"{jobs.policy}, {jobs.label}", jobs.blocks, jobs.response, p_value(jobs.p)) for jobs in policies]
        yield table(("", "blocks", "response [95 %]", "p"), rows)
        yield from bullets(f"{jobs.policy}, {jobs.label}: {jobs.why}" for jobs in policies if jobs.why)
        yield ""
    if not faulty and not poisonings:
        yield "No stream of these had a fault: nothing to judge. `fault=kill` and others are parameters of job_stream."
    if poisonings:
        yield from _accuracies(poisonings)
    if faulty:
        yield from bullets(LEGEND, tone="quiet")


def _condition(arms: Sequence[FaultArm], margin: float) -> Iterator[Part]:
    rows = [
        (
            *(arm.label, arm.blocks, f"{arm.outcomes.get('done', 0)}/{sum(arm.outcomes.values())}"),
            *(NONE if arm.useful is None else f"{100 * arm.useful.value:.1f} %", value_of(arm.lost_s)),
            *(arm.slowdown, p_value(arm.p), value_of(arm.goodput)),
        )
        for arm in arms
    ]
    yield table(("", "blocks", "done", "useful", "lost s", "slowdown [95 %]", "p", "goodput"), rows)
    struck = [
        (
            *(arm.label, arm.strikes, arm.hit, value_of(arm.restart_s), value_of(arm.lost_s_per_hit), arm.recovery_s),
            *(f"{arm.recovered}/{arm.strikes}", NONE if arm.available is None else f"{100 * arm.available.value:.2f} %"),
        )
        for arm in arms
        if arm.strikes
    ]
    if struck:
        yield ""
        yield table(("", "faults", "hit", "restart s", "lost s a hit", "recovered s [95 %]", "of", "available"), struck)
    for arm in arms:
        if arm.isolation:
            of = ""
            if arm.slowdown and arm.slowdown.low90 is not None:
                of = f" (margin {unsigned(margin)}; 90 % {number(arm.slowdown.low90)} to {number(arm.slowdown.high90)})"
            yield Line(f"{arm.label}: {arm.isolation}{of}", "•", TONES.get(arm.isolation, ""))
    labels: dict[str, list[str]] = {}
    for arm in arms:
        for note in _findings(arm):
            labels.setdefault(note, []).append(arm.label)
    yield from bullets(f"{', '.join(names)}: {note}" for note, names in labels.items())
    if any(arm.isolation for arm in arms):
        yield from marked([("•", RULE)], "quiet")


def _findings(arm: FaultArm) -> Iterator[str]:
    yield from (f"faults without a recovery time: {why}." for why in sorted(arm.whys))
    if arm.given_up:
        yield f"{arm.given_up} of {arm.hit} jobs that it hit never ran again."
    if arm.lost_jobs:
        others = "slowdowns are of the others" if arm.slowdown is not None else "nothing is left to compare"
        sooner = ", which are sooner only because these left them the slots" if arm.thinned else ""
        yield f"{arm.lost_jobs} jobs were done without the fault, and not with it; {others}{sooner}."
    if arm.fault and arm.slowdown is not None and arm.slowdown.why:
        yield f"{arm.slowdown.why}."
    yield from arm.notes


def _accuracies(poisonings: Sequence[Poisoning]) -> Iterator[Part]:
    yield Line("accuracy of federated runs", tone="strong")
    rows = [
        (
            *(one.setting or one.condition, f"{one.poisoned:g}", one.jobs, figure(one.accuracy, 100)),
            figure(one.drop, 100) if one.poisoned else NONE,
        )
        for one in poisonings
    ]
    yield table(("", "poisoned", "jobs", "accuracy % [95 %]", "lost, points [95 %]"), rows)
    if any(one.poisoned and one.drop is None for one in poisonings):
        yield Line("no loss of accuracy where no block has the same without poisoned clients.", "•")
    for clean in dict.fromkeys(one.clean for one in poisonings if one.clean not in {"", one.setting}):
        yield Line(f"what has no clean run of its own is compared with {clean}.", "•")
    yield ""
