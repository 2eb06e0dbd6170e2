"""Scheduling policies compared, in simulation and on real streams with identical arrivals; real streams are also played in simulation.

A stream is the unit: its figure under a policy over that under the baseline, for the streams that every policy had. A policy that lost
other jobs than the baseline is not compared: what is left of its jobs may well be the quick ones. Of the others those jobs count that each
did in the first attempt. The simulator gets the measured submissions and times in service and the policy by name; what it does not know is
what the engine takes to start a job. In the data of answers effects are gains as fractions.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from operator import methodcaller
from statistics import fmean

import numpy as np

from analysis.answer import Answer, Column, Columns, Line, Section, Table, Word, bullets, table_of
from analysis.machine import machine_of
from analysis.stats.effect import moments
from analysis.terms import Refused, Run, Unreadable
from analysis.wording import bracket, digits, probability
from control.scheduling import policies
from control.scheduling.policies import Job as WaitingJob
from control.t_test import t_tail

from .claims import CLAIMS, SAME_TIME, claimed, claims_first, verdict
from .estimates import FEWEST, SAME, Figure, Ratio, adjusted, figure, over_runs, p_of, ratio_of, share
from .records import Job, Stream, condition
from .simulation import Coming, JobSource, Played, StreamFigures, figures, jobs, play

ANY, ALIKE, NO_WAIT = "any", "the same", "no wait"
FEWEST_JOBS = 20
GROWS = 0.001  # one-sided, so that a stable policy is called so once in a thousand
METRIC_HEADS = {"mean_wait_s": "mean wait", "p95_wait_s": "p95 wait", "mean_response_s": "response", "slowdown": "slowdown"}
HEADS = {
    "mean_wait_s": "mean wait s",
    "p95_wait_s": "p95 wait s",
    "mean_response_s": "response s",
    "slowdown": "slowdown",
    "jain": "Jain",
    "late": "late",
    "busy": "busy",
}
LEGEND = (
    ("slowdown", "response over time in service; jobs shorter than a tenth of the mean count as that long."),
    ("Jain", "1 where all tenants are slowed down alike, 1/n where one has it all. late: ended after it was due."),
    (
        "95 %",
        "interval over streams, paired; below 1 is better. no wait: in a stream nobody waited, and there is no ratio.",
    ),
    ("p", "after Holm over all policies, each figure by itself."),
)


@dataclass(frozen=True, slots=True)
class PlayedStream:
    """One stream under one policy; its jobs that were done in their first attempt, in the order of submission. `lost` counts the others.

    `condition` is all that was asked for but the policy, and the machine; `again` is a copy of the untouched machine's stream.
    `playable` is a stream whose slots were all there all the time and none of whose jobs was lost or tried again: the simulator knows of no
    slot that is away, or held by what never got done.

    `arrivals` is what makes two streams the same: kind, rate and seed of the arrivals, and every job's planned submission and size. A slot
    is taken from admission, or from the start where nobody admits.
    """

    engine: str
    policy: str
    slots: int
    arrivals: Hashable
    coming: tuple[Coming, ...]
    played: Played
    lost: int
    condition: str
    again: bool
    playable: bool

    @property
    def at_once(self) -> frozenset[int]:
        return frozenset(arrival.job.number for arrival in self.coming)


def played_streams(run: Run, streams: Iterable[Stream], refused: list[str]) -> list[PlayedStream]:
    """Return streams of a run as the simulator knows streams; each that cannot be used adds a line to `refused`."""
    machine = str(machine_of(run.machine))
    usable = []
    for stream in streams:
        try:
            usable.append(_played(stream, machine))
        except Unreadable as error:
            refused.append(f"{stream.origin}: cell {stream.name}, report: {error}")
    return usable


def _played(stream: Stream, machine: str) -> PlayedStream:
    if not stream.policy:
        raise Unreadable("its stream has no policy.")
    done = [job for job in stream.jobs if job.done_at_once]
    for job in done:
        needed = {"submit_s": job.submit_s, "admit_s or start_s": job.taken_s, "end_s": job.end_s}
        if missing := [name for name, time_s in needed.items() if time_s is None]:
            raise Unreadable(f"job {job.number} was done and has no {missing[0]}.")
    slots = stream.slots or 0
    if len(done) < FEWEST_JOBS:
        raise Unreadable(f"{len(done)} jobs on {slots} slots were done; a policy takes {FEWEST_JOBS} and more.")
    done.sort(key=lambda job: job.submit_s or 0.0)
    if len({job.number for job in done}) < len(done):
        raise Unreadable("two jobs have one number.")
    submit_s, taken_s, end_s = (np.array([getattr(job, name) for job in done], float) for name in ("submit_s", "taken_s", "end_s"))
    if (taken_s < submit_s).any() or (end_s < taken_s).any():
        raise Unreadable("the clock went back: a job started before it came, or ended before it started.")
    if submit_s[0] < 0:
        raise Unreadable("a job came before the stream began.")
    replicas = np.array([float(job.replicas) for job in done])
    return PlayedStream(
        engine=stream.engine,
        policy=stream.policy,
        slots=slots,
        arrivals=(json.dumps(dict(stream.arrivals), sort_keys=True), stream.same_jobs),
        coming=tuple(_coming(job, takes_s) for job, takes_s in zip(done, (end_s - taken_s).tolist(), strict=True)),
        played=Played(submit_s, taken_s, end_s, replicas, (ANY,) * len(done), {ANY: slots}),
        lost=len(stream.jobs) - len(done),
        condition=f"{condition(stream.workload, stream.tweakset, 'policy=')} on {machine}",
        again=stream.again,
        playable=len(done) == len(stream.jobs) and not stream.outages,
    )


def _coming(job: Job, takes_s: float) -> Coming:
    waiting = WaitingJob(
        number=job.number,
        submit_s=job.submit_s or 0.0,
        predicted_s={} if job.predicted_s is None else {ANY: job.predicted_s},
        class_=job.class_,
        priority=job.priority or 0,
        replicas=job.replicas,
        due_s=job.due_s,
        tenant=job.tenant or job.class_,
    )
    return Coming(waiting, {ANY: takes_s})


@dataclass(frozen=True, slots=True)
class Replay:
    """Mean waits of a policy's streams, measured and simulated, in seconds; `longer_s` is measured less simulated."""

    policy: str
    streams: int
    measured_s: float
    simulated_s: float
    longer_s: Figure | None


@dataclass(frozen=True, slots=True)
class PolicyArm:
    """One policy: the figures of each seed, their mean, and against the baseline's by name of the metric (empty for the baseline).

    A ratio is None where in some stream nobody waited.
    """

    policy: str
    seeds: tuple[StreamFigures, ...]
    against: Mapping[str, Ratio | None] = field(default_factory=dict)

    @property
    def grows(self) -> bool:
        """Whether more jobs were left at the end of the submissions than half-way, beyond chance: its waits grow with the stream then."""
        more, spread = moments([float(seed.inside_end - seed.inside_half) for seed in self.seeds])
        n = len(self.seeds)
        return n > 1 and more > 0 and (spread == 0 or t_tail(more * n**0.5 / spread, n - 1) < GROWS)

    def mean(self, name: str) -> float | None:
        values = [getattr(seed, name) for seed in self.seeds]
        return None if None in values else fmean(values)


@dataclass(frozen=True, slots=True)
class Place:
    """All under one condition on one engine with so many slots. `streams` are paired; `alone` those that not every policy had.

    `lost` jobs were not done in their first attempt; `copies` are streams that had the jobs of another under the same policy, left out.
    `left_out` are the policies under which other jobs were done in their first attempt: how many of the baseline's were not, and of theirs
    under it. `unplayed` streams lost slots or jobs, and were not played in simulation.
    """

    engine: str
    slots: int
    streams: int
    alone: int
    lost: int
    baseline: str
    arms: tuple[PolicyArm, ...]
    replays: tuple[Replay, ...]
    condition: str = ""
    copies: int = 0
    left_out: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    unplayed: int = 0


def places(streams: Sequence[PlayedStream], baseline: str, refused: list[str]) -> list[Place]:
    """Compare, condition by condition: what differs in more than the policy is never paired. What cannot be adds a line to `refused`.

    Raises: Refused, where in none were any arrivals those of all policies.
    """
    groups: dict[tuple[str, str, int], list[PlayedStream]] = {}
    for stream in streams:
        groups.setdefault((stream.condition, stream.engine, stream.slots), []).append(stream)
    result: list[Place] = []
    reasons: list[Refused] = []
    for group in groups.values():
        try:
            result.append(_place(group, baseline))
        except Refused as error:
            reasons.append(error)
    if not result:
        raise reasons[0] if reasons else Refused(refused[0])
    refused += map(str, reasons)
    return result


def lost_unequally(place: Place) -> str:
    if not place.left_out:
        return ""
    counts = [
        f"{count} that {done} did were lost or tried again under {lost}"
        for policy, (less, more) in place.left_out.items()
        for count, done, lost in ((less, place.baseline, policy), (more, policy, place.baseline))
        if count
    ]
    return (
        f"Not compared with {place.baseline}: of the jobs {'; '.join(counts)}. "
        "Those that are left may well be the quick ones, and had the slots of the others. `analysis depend report` has all that were done."
    )


def _place(streams: Sequence[PlayedStream], baseline: str) -> Place:
    by_policy: dict[str, dict[Hashable, PlayedStream]] = {}
    for stream in sorted(streams, key=lambda stream: stream.again):
        by_policy.setdefault(stream.policy, {}).setdefault(stream.arrivals, stream)
    kept = [stream for own in by_policy.values() for stream in own.values()]
    shared = [key for key in next(iter(by_policy.values())) if all(key in own for own in by_policy.values())]
    first = streams[0]
    where = f"{first.engine} with {first.slots} slots"
    if baseline not in by_policy:
        raise Refused(f"{where}: no stream under {baseline}; there are {', '.join(sorted(by_policy))}. Say --baseline.")
    if not shared:
        raise Refused(f"{where}: no two policies met the same arrivals; nothing can be compared.")
    order = sorted(by_policy, key=lambda policy: (policy != baseline, policy))
    met = {policy: [by_policy[policy][key] for key in shared] for policy in order}
    pairs = {policy: [(own.at_once, base.at_once) for own, base in zip(met[policy], met[baseline], strict=True)] for policy in order}
    unlike = {policy: of for policy, of in pairs.items() if any(own != base for own, base in of)}
    counted = {policy: tuple(figures(stream.coming, stream.played) for stream in met[policy]) for policy in order if policy not in unlike}
    playable = {policy: [stream for stream in by_policy[policy].values() if stream.playable] for policy in order}
    return Place(
        engine=first.engine,
        slots=first.slots,
        streams=len(shared),
        alone=len(kept) - len(shared) * len(met),
        lost=sum(stream.lost for stream in kept),
        baseline=baseline,
        arms=tuple(compared(counted, baseline)),
        replays=tuple(_replay(policy, own) for policy, own in playable.items() if own and policy in policies.names()),
        condition=first.condition,
        copies=len(streams) - len(kept),
        left_out={
            policy: (sum(len(base - own) for own, base in of), sum(len(own - base) for own, base in of)) for policy, of in unlike.items()
        },
        unplayed=sum(not stream.playable for stream in kept),
    )


def _replay(policy: str, streams: Sequence[PlayedStream]) -> Replay:
    measured_s = [figures(stream.coming, stream.played).mean_wait_s for stream in streams]
    simulated_s = [figures(stream.coming, play(stream.coming, stream.played.slots, policy)).mean_wait_s for stream in streams]
    longer_s = [real - played for real, played in zip(measured_s, simulated_s, strict=True)]
    n = len(streams)
    return Replay(policy, n, sum(measured_s) / n, sum(simulated_s) / n, over_runs(longer_s))


@dataclass(frozen=True, slots=True)
class PolicyStudy:
    source: JobSource
    policies: tuple[str, ...]
    baseline: str = "fifo"
    jobs: int = 5000
    seeds: int = 20


def arms(study: PolicyStudy) -> list[PolicyArm]:
    study.source.must_be_stable()
    for name in study.policies:
        policies.load(name)
    if study.baseline not in study.policies:
        raise Refused(f"baseline {study.baseline!r} is not among the policies that are compared: {', '.join(study.policies)}.")
    played: dict[str, list[StreamFigures]] = {name: [] for name in study.policies}
    for seed in range(1, study.seeds + 1):
        coming = jobs(study.source, study.jobs, seed)
        for name, of_policy in played.items():
            of_policy.append(figures(coming, play(coming, study.source.slots, name)))
    return compared({name: tuple(of_policy) for name, of_policy in played.items()}, study.baseline)


def compared(played: Mapping[str, tuple[StreamFigures, ...]], baseline: str) -> list[PolicyArm]:
    values = {
        (name, metric): {("", at): float(getattr(stream, metric)) for at, stream in enumerate(streams)}
        for name, streams in played.items()
        for metric in METRIC_HEADS
    }
    others = [name for name in played if name != baseline]
    against: dict[str, dict[str, Ratio | None]] = {name: {} for name in played}
    for metric in METRIC_HEADS:
        ratios = adjusted({name: ratio_of(values[baseline, metric], values[name, metric]) for name in others})
        for name, ratio in ratios.items():
            against[name][metric] = ratio
    return [PolicyArm(name, streams, against[name]) for name, streams in played.items()]


def simulated(study: PolicyStudy) -> Answer:
    of_policies, source = arms(study), study.source
    about = {"simulated": True, "seeds": study.seeds, "jobs": study.jobs, "baseline": study.baseline, "gap_s": source.gap_s}
    slots = ", ".join(f"{many} {kind}" if kind != ANY else f"{many}" for kind, many in source.slots.items())
    about_jobs = f"a job every {source.gap_s:.4g} s (CV² {source.arrivals_cv2:g}); {study.seeds} streams of {study.jobs} jobs"
    error = f" Predicted times are off by a factor of exp(±{source.error:g}) (sd)." if source.error else ""
    return Answer(
        title=_found(of_policies, study.baseline),
        findings=[Line(f"SIMULATED: {slots} slots at load {source.load:g}, {about_jobs}, the same for every policy.{error}")],
        sections=[Section("", _parts(of_policies, study.baseline))],
        legend=LEGEND,
        data={**about, "source": source, "policies": [{**asdict(arm), "grows": arm.grows} for arm in of_policies]},
    )


def _word(ratio: Ratio | None) -> Word:
    return SAME_TIME if ratio and ratio.why == SAME else verdict(ratio)


def lacking(ratio: Ratio | None) -> str:
    """Return why there is no ratio with an interval; nothing where there is one."""
    if ratio is None:
        return NO_WAIT
    few = "one stream" if ratio.blocks == 1 else f"fewer than {FEWEST} streams"
    return ratio.why and (ALIKE if ratio.why == SAME else few)


def _found(arms: Sequence[PolicyArm], baseline: str) -> str:
    """Under which policies jobs wait less or longer than under the baseline, on average."""
    ratios = [(arm.policy, arm.against["mean_wait_s"]) for arm in arms if arm.against]
    verdicts = [
        (_word(of), f"{policy} (× {digits(of.value, 3)})" if of and not of.why and _word(of) in CLAIMS else policy) for policy, of in ratios
    ]
    return f"By mean wait. {claimed(verdicts, baseline)}" if verdicts else f"Nothing could be compared with {baseline}."


def _parts(arms: Sequence[PolicyArm], baseline: str) -> list[Line | Table]:
    """The contrasts, of policies that claim something first, then each policy's own figures."""

    def ratio(row: tuple[PolicyArm, str]) -> Ratio | None:
        return row[0].against[row[1]]

    contrasts: Columns = [
        (Column("policy", left=True), lambda row: row[0].policy),
        (Column("jobs are", "verdict", left=True), lambda row: _word(ratio(row))),
        (Column("by", "metric", left=True), lambda row: METRIC_HEADS[row[1]]),
        (
            Column(f"times {baseline}'s [95 %]", "ratio", lambda of: of if isinstance(of, str) else figure(of)),
            lambda row: lacking(ratio(row)) or ratio(row),
        ),
        (Column("p (Holm)", "p_adjusted", probability), lambda row: p_of(ratio(row))),
    ]
    own: Columns = [
        (Column("policy", left=True), lambda arm: arm.policy),
        *((Column(head, name, partial(_figure, name)), methodcaller("mean", name)) for name, head in HEADS.items()),
    ]
    against = claims_first((arm for arm in arms if arm.against), lambda arm: _word(arm.against["mean_wait_s"]))
    parts: list[Line | Table] = [table_of(contrasts, [(arm, name) for arm in against for name in METRIC_HEADS])] if against else []
    parts.append(table_of(own, arms))
    if grow := ", ".join(arm.policy for arm in arms if arm.grows):
        parts.append(Line(f"UNSTABLE under {grow}: the queue grows for as long as jobs come; these waits are of this length of stream."))
    return parts


def _figure(name: str, value: float) -> str:
    return share(value, 1) if name in {"late", "busy"} else digits(value)


def measured(places: Sequence[Place], refused: Sequence[str]) -> Answer:
    first, *others = [_found(place.arms, place.baseline) for place in places]
    return Answer(
        title=first,
        findings=[Line(f"{place.condition}: {phrase}") for place, phrase in zip(places[1:3], others, strict=False)],
        sections=[Section(place.condition if others else "", [*_measured(place)]) for place in places],
        legend=LEGEND,
        data={"simulated": False, "places": places},
        refused=refused,
    )


def _measured(place: Place) -> Iterator[Line | Table]:
    yield Line(f"MEASURED: {place.slots} slots of {place.engine}, {place.streams} streams, the same arrivals for every policy.")
    counts = {
        "streams that had the jobs of another under the same policy: copies, left out.": place.copies,
        "streams, whose arrivals not every policy had, are left out of the comparison.": place.alone,
        "jobs were not done in their first attempt and have no part in these figures.": place.lost,
    }
    yield from bullets(f"{count} {what}" for what, count in counts.items() if count)
    yield from bullets([lost_unequally(place)] if place.left_out else [])
    yield from _parts(place.arms, place.baseline)
    replays: Columns = [
        (Column("played in simulation", "policy", left=True), lambda replay: replay.policy),
        (Column("streams"), lambda replay: replay.streams),
        (Column("mean wait s", "mean_wait_s", digits), lambda replay: replay.measured_s),
        (Column("simulated s", "simulated_s", digits), lambda replay: replay.simulated_s),
        (Column("longer by s [95 %]", "longer_s", _longer), lambda replay: replay.longer_s),
    ]
    if place.replays:
        yield table_of(replays, place.replays)
    if place.unplayed:
        yield Line(f"Not played in simulation: {place.unplayed} streams that lost slots or jobs, which it knows nothing of.", "•")


def _longer(longer: Figure) -> str:
    return f"{longer.value:+.3g}{bracket(longer.low, longer.high, '{:+.3g}'.format)}"
