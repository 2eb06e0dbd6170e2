"""Compare scheduling policies on the same jobs, measured and simulated."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analysis.answer import Answer, Column, Columns, Line, Section, Table, Word, bullets, table_of
from analysis.contrasts import NOT_POSITIVE, SAME
from analysis.labels import identity_of
from analysis.stats.effect import moments
from analysis.terms import Refused, Run, Unreadable
from analysis.wording import bracket, counted, digits, probability
from control.scheduling import policies
from control.scheduling.policies import Job
from control.t_test import t_tail

from .claims import (
    CLAIMS,
    SAME_TIME,
    Contrast,
    apart,
    claimed,
    claims_first,
    column,
    contrasts_of,
    rows_of,
    verdict,
)
from .estimates import Figure, figure, over_runs, share
from .simulation import Coming, JobSource, Played, figures, jobs, play

if TYPE_CHECKING:
    import pandas as pd

    from .records import Condition, JobRun, Stream

FEWEST_JOBS = 20
GROWS = 0.001  # one-sided: a stable policy is called growing once in a thousand
METRICS = {
    "mean_wait_s": "mean wait",
    "p95_wait_s": "p95 wait",
    "mean_response_s": "response",
    "slowdown": "slowdown",
}
HEADS = {name: f"{head} s" if name.endswith("_s") else head for name, head in METRICS.items()}
HEADS |= {"jain": "Jain", "late": "late", "busy": "busy"}
WITHOUT = {SAME: "the same", NOT_POSITIVE: "no wait"}  # in place of a ratio
UNLIKE = (
    "{policy} is not compared with {baseline}: they lost or retried different jobs, and the "
    "remaining ones may be the quick ones."
)
LEGEND = (
    ("by", "the judged figure; `compare --arm=policy` judges the response, or --metric."),
    ("wait", "the mean over jobs, without the first tenth of each stream's jobs."),
    ("slowdown", "response over time in service, of at least a tenth of the mean."),
    ("Jain", "1 if all tenants are slowed down equally, 1/n if one has everything."),
    ("late", "share of jobs that ended after they were due."),
    ("95 %", "interval over streams, paired; no wait: no job waited in a stream."),
    ("p", "after Holm over all policies, each figure separately."),
)


@dataclass(frozen=True, slots=True)
class PlayedStream:
    """One stream under one policy: jobs that finished in their first attempt, by submission.

    `arrivals` identifies equal streams. `whole`: no job and no slot was lost, so that the simulator
    knows all there was.
    """

    policy: str
    condition: Condition
    arrivals: Hashable
    coming: Sequence[Coming]
    played: Played
    lost: int
    whole: bool

    @property
    def at_once(self) -> set[int]:
        return {arrival.job.number for arrival in self.coming}


def played_streams(run: Run, streams: Iterable[Stream], refused: list[str]) -> list[PlayedStream]:
    """Convert a run's streams for the simulator; add a line to `refused` for unusable ones."""
    machine = str(identity_of(run.machine))
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
    done = sorted(
        (job for job in stream.jobs if job.done_at_once), key=lambda job: job.submit_s or 0.0
    )
    if any(None in (job.submit_s, job.taken_s, job.end_s) for job in done):
        raise Unreadable("a job finished without all its times.")
    slots = stream.slots or 0
    if len({job.number for job in done}) < max(len(done), FEWEST_JOBS):
        raise Unreadable(
            f"{len(done)} jobs on {slots} slots finished; a policy needs {FEWEST_JOBS} or more, "
            "each with a unique number."
        )
    submit_s, taken_s, end_s, replicas = (
        np.array([getattr(job, name) for job in done], float)
        for name in ("submit_s", "taken_s", "end_s", "replicas")
    )
    if submit_s[0] < 0:
        raise Unreadable("a job arrived before the stream began.")
    return PlayedStream(
        policy=stream.policy,
        condition=(
            *stream.condition_without("policy"),
            ("engine", stream.engine),
            ("slots", str(slots)),
            ("machine", machine),
        ),
        arrivals=(json.dumps(dict(stream.arrivals), sort_keys=True), stream.same_jobs),
        coming=[
            Coming(_waiting(job), takes_s)
            for job, takes_s in zip(done, (end_s - taken_s).tolist(), strict=True)
        ],
        played=Played(submit_s, taken_s, end_s, replicas, slots),
        lost=len(stream.jobs) - len(done),
        whole=len(stream.jobs) == len(done) and not stream.outages,
    )


def _waiting(job: JobRun) -> Job:
    return Job(
        number=job.number,
        submit_s=job.submit_s or 0.0,
        predicted_s=job.predicted_s,
        class_=job.class_,
        priority=job.priority or 0,
        replicas=job.replicas,
        due_s=job.due_s,
        tenant=job.tenant or job.class_,
    )


class Replay(NamedTuple):
    policy: str
    streams: int
    measured_s: float
    simulated_s: float
    longer_s: Figure | None


@dataclass(frozen=True, slots=True)
class Policies:
    """Policies on the same jobs: `figures`, a row per policy, and `contrasts` with the baseline.

    `growing` are the policies whose queue was longer at the end of the submissions than half-way,
    beyond chance: their waits grow with the length of the stream.
    """

    baseline: str
    figures: Sequence[Contrast]
    contrasts: Sequence[Contrast]
    growing: tuple[str, ...]

    @property
    def waits(self) -> list[Contrast]:
        return [contrast for contrast in self.contrasts if contrast.metric == "mean_wait_s"]


@dataclass(frozen=True, slots=True)
class PolicyGroup:
    """All streams under one condition, except for the policy; `name` distinguishes it.

    `replays` have a row per policy: mean waits of its streams, measured and simulated, and
    `longer_s`, measured minus simulated.
    """

    name: str
    engine: str
    slots: int
    streams: int
    policies: Policies
    replays: Sequence[Replay]
    notes: Sequence[str]


def places(streams: Sequence[PlayedStream], baseline: str, refused: list[str]) -> list[PolicyGroup]:
    """Compare condition by condition, never across; add a line to `refused` for incomparable ones.

    Raises: Refused, if no condition has arrivals shared by all policies.
    """
    groups: dict[Condition, list[PlayedStream]] = {}
    for stream in streams:
        groups.setdefault(stream.condition, []).append(stream)
    result: list[PolicyGroup] = []
    reasons: list[str] = []
    for name, group in zip(
        apart([dict(condition) for condition in groups]), groups.values(), strict=True
    ):
        try:
            result.append(_place(name, group, baseline))
        except Refused as error:
            reasons.append(str(error))
    if not result:
        raise Refused([*reasons, *refused][0])
    refused += reasons
    return result


def _place(name: str, streams: Sequence[PlayedStream], baseline: str) -> PolicyGroup:
    by_policy: dict[str, dict[Hashable, PlayedStream]] = {}
    for stream in streams:
        by_policy.setdefault(stream.policy, {}).setdefault(stream.arrivals, stream)
    distinct = [stream for own in by_policy.values() for stream in own.values()]
    shared = [
        key
        for key in next(iter(by_policy.values()))
        if all(key in own for own in by_policy.values())
    ]
    about = dict(streams[0].condition)
    where = f"{about['engine']} with {about['slots']} slots"
    if baseline not in by_policy:
        raise Refused(
            f"{where}: no stream under {baseline}; available: {', '.join(sorted(by_policy))}. "
            "Select one with --baseline."
        )
    if not shared:
        raise Refused(
            f"{where}: no two policies had the same arrivals, so nothing can be compared."
        )
    order = sorted(by_policy, key=lambda policy: (policy != baseline, policy))
    met = {policy: [by_policy[policy][key] for key in shared] for policy in order}
    unlike = [
        policy
        for policy in order
        if [one.at_once for one in met[policy]] != [one.at_once for one in met[baseline]]
    ]
    rows = [
        {"policy": policy, "stream": at, **asdict(figures(stream.coming, stream.played))}
        for policy in order
        if policy not in unlike
        for at, stream in enumerate(met[policy])
    ]
    lost = sum(stream.lost for stream in distinct)
    counts = {
        "omitted: copies, with the jobs of another": counted(
            len(streams) - len(distinct), "stream"
        ),
        "omitted from the comparison: not every policy had these arrivals": counted(
            len(distinct) - len(shared) * len(met), "stream"
        ),
        "excluded from these figures: not finished in the first attempt": counted(lost, "job"),
        "not played in simulation: slots or jobs were lost": counted(
            sum(not stream.whole for stream in distinct), "stream"
        ),
    }
    notes = [f"{many} {what}." for what, many in counts.items() if not many.startswith("0 ")]
    notes += [UNLIKE.format(policy=policy, baseline=baseline) for policy in unlike]
    whole = {
        policy: [stream for stream in by_policy[policy].values() if stream.whole]
        for policy in order
        if policy in policies.names()
    }
    replays = [_replay(policy, own) for policy, own in whole.items() if own]
    return PolicyGroup(
        name,
        about["engine"],
        int(about["slots"]),
        len(shared),
        compared(rows, baseline),
        replays,
        notes,
    )


def _replay(policy: str, streams: Sequence[PlayedStream]) -> Replay:
    measured_s = [figures(stream.coming, stream.played).mean_wait_s for stream in streams]
    simulated_s = [
        figures(stream.coming, play(stream.coming, stream.played.slots, policy)).mean_wait_s
        for stream in streams
    ]
    longer_s = over_runs(
        [real - played for real, played in zip(measured_s, simulated_s, strict=True)]
    )
    return Replay(policy, len(streams), fmean(measured_s), fmean(simulated_s), longer_s)


def compared(rows: list[dict[str, object]], baseline: str) -> Policies:
    """Compare each policy with the baseline; each row has one stream's figures under a policy."""
    import pandas as pd

    frame = pd.DataFrame(rows).astype({"jain": float, "late": float})
    own = frame.groupby("policy", sort=False)
    comparison = contrasts_of(
        rows, "policy", baseline, dict.fromkeys(METRICS, "log"), within=["stream"]
    )
    means = own[[*HEADS]].mean(skipna=False).reset_index()
    return Policies(
        baseline,
        rows_of(means),
        comparison,
        tuple(str(policy) for policy, streams in own if _grows(streams)),
    )


def _grows(streams: pd.DataFrame) -> bool:
    more, spread = moments((streams["inside_end"] - streams["inside_half"]).tolist())
    n = len(streams)
    return n > 1 and more > 0 and (spread == 0 or t_tail(more * n**0.5 / spread, n - 1) < GROWS)


def simulate(
    source: JobSource,
    names: Sequence[str],
    baseline: str = "fifo",
    many: int = 5000,
    seeds: int = 20,
) -> Policies:
    source.must_be_stable()
    for name in names:
        policies.load(name)
    if baseline not in names:
        raise Refused(
            f"baseline {baseline!r} is not among the policies that are compared: "
            f"{', '.join(names)}."
        )
    rows = []
    for seed in range(1, seeds + 1):
        coming = jobs(source, many, seed)
        rows += [
            {
                "policy": name,
                "stream": seed,
                **asdict(figures(coming, play(coming, source.slots, name))),
            }
            for name in names
        ]
    return compared(rows, baseline)


def simulated(
    source: JobSource, names: Sequence[str], baseline: str, many: int, seeds: int
) -> Answer:
    comparison = simulate(source, names, baseline, many, seeds)
    about = (
        f"a job every {source.gap_s:.4g} s (CV² {source.arrivals_cv2:g}); {seeds} streams of "
        f"{many} jobs"
    )
    error = (
        f" Predicted times are off by a factor of exp(±{source.error:g}) (sd)."
        if source.error
        else ""
    )
    return Answer(
        title=_claims(comparison),
        findings=[
            Line(
                f"SIMULATED: {source.slots} slots at load {source.load:g}, {about}, the same for "
                f"every policy.{error}"
            )
        ],
        sections=[Section("", _parts(comparison))],
        legend=LEGEND,
        data={
            "simulated": True,
            "seeds": seeds,
            "jobs": many,
            "gap_s": source.gap_s,
            "source": source,
            **asdict(comparison),
        },
    )


def _word(contrast: Contrast) -> Word:
    return SAME_TIME if contrast.missing == SAME else verdict(contrast)


def lacking(contrast: Contrast) -> str:
    """Return why there is no ratio with an interval; nothing if there is one."""
    few = "one stream" if contrast.n == 1 else "fewer than 3 streams"
    return contrast.missing and WITHOUT.get(contrast.missing, few)


def _claims(comparison: Policies) -> str:
    verdicts = [
        (
            word,
            f"{of.arm} (× {digits(of.value, 3)})" if not of.missing and word in CLAIMS else of.arm,
        )
        for of in comparison.waits
        for word in [_word(of)]
    ]
    return (
        f"By mean wait. {claimed(verdicts, comparison.baseline)}"
        if verdicts
        else f"Nothing could be compared with {comparison.baseline}."
    )


def _parts(comparison: Policies) -> list[Line | Table]:
    order = [contrast.arm for contrast in claims_first(comparison.waits, _word)]
    columns: Columns = [
        column("policy", of="arm", left=True),
        (Column("jobs are", "verdict", left=True), _word),
        (Column("by", "metric", left=True), lambda row: METRICS[row.metric]),
        (
            Column(
                f"times {comparison.baseline}'s [95 %]",
                "ratio",
                lambda of: of if isinstance(of, str) else figure(of),
            ),
            lambda row: lacking(row) or row,
        ),
        column("p (Holm)", "p_adjusted", probability),
    ]
    own = [
        column("policy", left=True),
        *(column(head, name, partial(_figure, name)) for name, head in HEADS.items()),
    ]
    rows = sorted(comparison.contrasts, key=lambda row: order.index(row.arm))
    parts: list[Line | Table] = [table_of(columns, rows)] if rows else []
    parts.append(table_of(own, comparison.figures))
    if comparison.growing:
        grow = ", ".join(comparison.growing)
        parts.append(
            Line(
                f"UNSTABLE under {grow}: the queue grows for as long as jobs arrive; these "
                "waits hold for this length of stream."
            )
        )
    return parts


def measured(places: Sequence[PolicyGroup], refused: Sequence[str]) -> Answer:
    first, *others = [_claims(place.policies) for place in places]
    return Answer(
        title=first,
        findings=[
            Line(f"{place.name}: {phrase}")
            for place, phrase in zip(places[1:3], others, strict=False)
        ],
        sections=[Section(place.name, [*_measured(place)]) for place in places],
        legend=LEGEND,
        data={"simulated": False, "places": places},
        refused=refused,
    )


def _measured(place: PolicyGroup) -> Iterator[Line | Table]:
    streams = (
        f"{counted(place.streams, 'stream')} with equal arrivals, each without its first tenth"
    )
    yield Line(f"MEASURED: {place.slots} slots of {place.engine}, {streams}.")
    yield from bullets(place.notes)
    yield from _parts(place.policies)
    replays: Columns = [
        column("played in simulation", "policy", left=True),
        column("streams"),
        column("mean wait s", "mean_wait_s", digits, of="measured_s"),
        column("simulated s", "simulated_s", digits),
        column("longer by s [95 %]", "longer_s", _longer),
    ]
    if place.replays:
        yield table_of(replays, place.replays)


def _figure(name: str, value: float) -> str:
    return share(value, 1) if name in {"late", "busy"} else digits(value)


def _longer(longer: Figure) -> str:
    return f"{longer.value:+.3g}{bracket(longer.low, longer.high, '{:+.3g}'.format)}"
