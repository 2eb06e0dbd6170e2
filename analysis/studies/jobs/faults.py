"""Faults against the same jobs without them: each kind of fault an arm, each block a pair, Holm over all arms.

Slowdown is the mean response of the jobs that both streams got done, over that without the fault. A fault that is a neighbour's (a hog, a
flood) has a verdict on isolation: does it touch the others at all? Does a policy spare the stream's own jobs from a fault: the same jobs
under the same fault, under it and under fifo? What do poisoned clients cost a federated run: accuracy without them less accuracy with them?
In the data of the answer losses are fractions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from analysis.answer import Answer, Column, Columns, Line, Section, Word, bullets, grouped, table_of
from analysis.labels import shorten
from analysis.wording import unsigned

from .claims import CANT_TELL, SAME_TIME, SLOWER, claimed, claims_first, verdict
from .estimates import (
    Figure,
    Ratio,
    adjusted,
    by_fault,
    by_unit,
    constants,
    figure,
    mean,
    names,
    number,
    p_of,
    p_value,
    plural,
    ratio,
    value_of,
)
from .poisoning import lost_accuracy, poisonings, section
from .recovery import After, Totals, after, goodput_per_s, responses, shared, totals

if TYPE_CHECKING:
    from .records import Stream, Unit

    Pairs = dict[Unit, list[tuple[float, float]]]

Isolation = Literal["isolated", "not isolated", "open", "not judged"]
RULE = (
    "isolated: the 90 % interval of the slowdown lies within the margin around 1, and no job is lost. not isolated: slower (Holm p < .05), "
    "and not within it. open: neither is shown."
)
LEGEND = (
    ("times as long", "mean response of the jobs that both got done, over that without the fault; 95 % over blocks, each a pair."),
    ("p", "of that, after Holm over all faults."),
    ("goodput", "work done a second, over that without the fault."),
    ("useful", "what is left of the time of all attempts without lost work, checkpoints, and jobs that never got done. lost: a stream."),
    ("restart", "from the fault to the next attempt."),
    ("recovered", "from the fault until it is over, its jobs are done, and as many jobs are done as by then without it."),
)
ISOLATION = {
    "isolated": Word("yes", "good"),
    "not isolated": Word("no", "bad"),
    "open": Word("not shown", "open"),
    "not judged": Word("not judged", "quiet"),
}
MOST = 0.9  # of the faults must have a recovery time for a mean of them
NEIGHBOURS = ("cpu_hog", "memory_hog", "io_hog", "flood")
FIFO, POLICY = "fifo", "policy="
LOST = "other jobs were lost than under fifo: not compared."


@dataclass(frozen=True, slots=True)
class FaultArm:
    """All streams of one condition under one fault, or under none.

    `streams` are of so many `blocks`; `paired` of them have a twin. Recovery is of faults: `recovered` of `strikes` that did anything have
    one, `whys` counts why the others have none, and with more than a tenth of these there is no mean, which would be of the quick ones.
    `slowdown` and `goodput` are ratios to the twin's. `lost_jobs` were done in the twin and not here.
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
    slowdowns = adjusted({key: arm.slowdown for key, arm in result.items()})
    judged = [replace(arm, slowdown=slowdowns[key]) for key, arm in result.items()]
    return [replace(arm, isolation=_isolation(arm, margin)) for arm in judged]


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
        return mean(by_unit((member.stream.unit, of(member)) for member in group))

    def over_struck(name: str) -> Figure | None:
        return mean(by_unit((unit, getattr(after, name)) for unit, after in struck))

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
    down_s = [member.totals.alone_down_s for member in group if member.totals.alone_down_s and member.stream.nodes == 1]
    if down_s:
        spell = " to ".join(dict.fromkeys(f"{end:.3g}" for end in (min(down_s), max(down_s))))
        yield f"the only node was lost in {len(down_s)} of {len(group)} streams: nothing could run for {spell} s."
    if any(outage.back_s is None for member in group for outage in member.stream.outages):
        yield "a node never came back: it counts as lost to the last end of a job."


def _isolation(arm: FaultArm, margin: float) -> Isolation | None:
    slow = arm.slowdown
    if arm.fault not in NEIGHBOURS:
        return None
    if slow is None or slow.low90 is None or slow.high90 is None:
        return "not judged"
    if 1 / (1 + margin) <= slow.low90 and slow.high90 <= 1 + margin:
        return "open" if arm.lost_jobs else "isolated"
    return "not isolated" if verdict(slow) is SLOWER else "open"


@dataclass(frozen=True, slots=True)
class SparedJobs:
    """Mean response of the own jobs under a policy over that under fifo, the fault being the same.

    `response` is None where the two lost different jobs, which `why` says.
    """

    condition: str
    label: str
    policy: str
    blocks: int
    response: Ratio | None
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
    responses = adjusted({key: jobs.response for key, jobs in result.items()})
    return [replace(jobs, response=responses[key]) for key, jobs in result.items()]


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


def reported(streams: Sequence[Stream], margin: float, refused: Sequence[str]) -> Answer:
    """Return what each fault cost, condition by condition, the policies under it, and what poisoned clients cost."""
    of_faults, policies, accuracies = arms(streams, margin), spared(streams), poisonings(streams)
    faulty = {arm.condition for arm in of_faults if arm.fault}
    titles, common = shorten(dict.fromkeys(arm.condition for arm in of_faults if arm.condition in faulty))
    sections = [
        _condition(f"{title}, {common}" if common else title, [arm for arm in of_faults if arm.condition == condition], margin)
        for condition, title in titles.items()
    ]
    sections += [_spared_jobs(policies)] if policies else []
    sections += [section(accuracies)] if accuracies else []
    none = "No stream of these had a fault: nothing to judge. `fault=kill` and others are parameters of job_stream."
    poison = lost_accuracy(accuracies)
    title = (
        _summary(of_faults)
        if faulty
        else (poison or "Nothing was poisoned, or nothing is there to compare it with.")
        if accuracies
        else none
    )
    return Answer(
        title=title,
        findings=[Line(poison)] if faulty and poison else [],
        sections=sections,
        legend=[*LEGEND, *([("isolated", RULE)] if any(arm.isolation for arm in of_faults) else [])] if faulty else [],
        data={"arms": of_faults, "policies": policies, "poisonings": accuracies, "margin": margin, "rule": RULE},
        refused=refused,
    )


def _summary(arms: Sequence[FaultArm]) -> str:
    of_faults = by_fault([arm for arm in arms if arm.fault])
    rows = claims_first(zip(of_faults, names(of_faults), strict=True), lambda row: _word(row[0]))
    verdicts = [(_word(arm), f"{name} (× {number(arm.slowdown.value)})" if arm.slowdown else name) for arm, name in rows]
    losing = sum(arm.lost_jobs > 0 for arm in of_faults)
    lost = f" Jobs are lost under {losing} of {plural(len(of_faults), 'setting')}." if losing else ""
    return f"{claimed(verdicts, 'without the fault')}{lost}"


def _word(arm: FaultArm) -> Word:
    """Whether the jobs that both streams got done take longer, in the words of `compare`."""
    if arm.thinned and arm.slowdown and arm.slowdown.p is not None:
        return Word("fewer jobs", "open")
    word = verdict(arm.slowdown)
    return SAME_TIME if word is CANT_TELL and arm.isolation == "isolated" else word


def _condition(title: str, arms: Sequence[FaultArm], margin: float) -> Section:
    of_faults = by_fault([arm for arm in arms if arm.fault])
    called = dict(zip((arm.label for arm in of_faults), names(of_faults), strict=True))
    columns: Columns = [
        (Column("fault", left=True), lambda arm: called.get(arm.label, arm.label)),
        (Column("jobs are", "verdict", left=True), lambda arm: _word(arm) if arm.fault else None),
        (Column("times as long\n[95 %]", "slowdown", figure), lambda arm: arm.slowdown),
        (Column("p\nHolm", "p_adjusted", p_value), lambda arm: p_of(arm.slowdown)),
        (Column(f"isolated\nwithin {unsigned(margin)}", "isolation", left=True), lambda arm: arm.isolation and ISOLATION[arm.isolation]),
        (Column("done"), lambda arm: f"{arm.outcomes.get('done', 0)}/{sum(arm.outcomes.values())}"),
        (Column("useful\n%", "useful_percent", number, spare=2), lambda arm: value_of(arm.useful, 100)),
        (Column("lost\ns", "lost_s", number, spare=2), lambda arm: value_of(arm.lost_s)),
        (Column("goodput", "goodput", number, spare=3), lambda arm: value_of(arm.goodput)),
        (Column("blocks", spare=1), lambda arm: arm.blocks),
    ]
    struck: Columns = [
        columns[0],
        (Column("faults"), lambda arm: arm.strikes),
        (Column("attempts\nended", "hit"), lambda arm: arm.hit),
        (Column("restart\ns", "restart_s", number), lambda arm: value_of(arm.restart_s)),
        (Column("lost s\neach", "lost_s_per_hit", number), lambda arm: value_of(arm.lost_s_per_hit)),
        (Column("recovered s\n[95 %]", "recovery_s", figure), lambda arm: arm.recovery_s),
        (Column("of", "recovered"), lambda arm: f"{arm.recovered}/{arm.strikes}"),
        (Column("available\n%", "available_percent", number, spare=1), lambda arm: value_of(arm.available, 100)),
    ]
    notes = grouped([(called.get(arm.label, arm.label), note) for arm in arms for note in _findings(arm)], len(of_faults))
    return Section(
        title,
        [
            *map(Line, constants(of_faults)),
            table_of(columns, claims_first(arms, lambda arm: _word(arm) if arm.fault else None)),
            table_of(struck, claims_first((arm for arm in of_faults if arm.strikes), _word)),
            *bullets(notes),
        ],
    )


def _spared_jobs(policies: Sequence[SparedJobs]) -> Section:
    columns: Columns = [
        (Column("policy", left=True), lambda jobs: jobs.policy),
        (Column("fault", left=True), lambda jobs: jobs.label.split(" ")[0]),
        (Column("jobs are", "verdict", left=True), lambda jobs: verdict(jobs.response)),
        (Column("times as long\n[95 %]", "response", figure), lambda jobs: jobs.response),
        (Column("p\nHolm", "p_adjusted", p_value), lambda jobs: p_of(jobs.response)),
        (Column("blocks"), lambda jobs: jobs.blocks),
    ]
    lost = grouped([(f"{jobs.policy}, {jobs.label}", jobs.why) for jobs in policies if jobs.why])
    return Section(
        "Response of the stream's own jobs under the same fault, over that under fifo",
        [table_of(columns, claims_first(policies, lambda jobs: verdict(jobs.response))), *bullets(lost)],
    )


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
