"""Faults against the same jobs without them: arms by kind, paired by block, Holm over all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from analysis.answer import Answer, Column, Columns, Line, Section, Word, bullets, grouped, table_of
from analysis.wording import counted, unsigned

from .claims import (
    CANT_TELL,
    SAME_TIME,
    SLOWER,
    Contrast,
    apart,
    claimed,
    claims_first,
    column,
    contrasts_of,
    ratio_columns,
    verdict,
)
from .estimates import Figure, figure, number, over_blocks, value_of
from .poisoning import lost_accuracy, poisonings, section
from .records import AGAINST
from .recovery import After, Totals, after, goodput_per_s, responses, shared, totals

if TYPE_CHECKING:
    from analysis.contrasts import Scale

    from .records import Condition, JobRun, Stream, Unit

Isolation = Literal["isolated", "not isolated", "open", "not judged"]
RULE = (
    "isolated: the 90 % interval of the slowdown lies within the margin around 1, and no job is "
    "lost. not isolated: slower (Holm p < .05), "
    "and not within it. open: neither is shown."
)
LEGEND = (
    ("times as long", "mean response of jobs that finished in both, over that without the fault."),
    ("p", "of that ratio, after Holm over all faults."),
    ("goodput", "work done per second, divided by that without the fault."),
    ("useful", "share of attempts' time left after lost work, checkpoints and unfinished jobs."),
    ("restart", "from the fault to the next attempt."),
    ("recovered", "until the fault is over, and as many jobs are done as without it."),
)
ISOLATION = {
    "isolated": Word("yes", "good"),
    "not isolated": Word("no", "bad"),
    "open": Word("not shown", "open"),
    "not judged": Word("not judged", "quiet"),
}
MOST = 0.9  # share of the faults with a recovery time needed for a mean
NEIGHBOURS = ("cpu_hog", "memory_hog", "io_hog", "flood")
NEVER = frozenset({"never started", "never ended"})


@dataclass(frozen=True, slots=True)
class FaultArm:
    """All streams of one condition under one fault, or under none, with its countermeasures.

    `figures` are means over blocks, `slowdown` and `goodput` contrasts with the twins without the
    fault, which `paired` streams have. `lost_jobs` finished in the twin but not here. `recovered`
    of the effective `strikes` have a recovery time; if more than a tenth have none there is no
    mean, which would cover only the quick ones.
    """

    workload: str
    condition: Condition
    fault: str
    params: Mapping[str, object]
    streams: int
    blocks: int
    paired: int
    outcomes: Mapping[str, int]
    strikes: int
    hit: int
    recovered: int
    lost_jobs: int
    figures: Mapping[str, Figure | None]
    slowdown: Contrast | None = None
    goodput: Contrast | None = None
    isolation: Isolation | None = None
    notes: tuple[str, ...] = ()
    name: str = ""

    @property
    def thinned(self) -> bool:
        """Return whether jobs finished sooner only because lost jobs left them the slots."""
        return self.lost_jobs > 0 and self.slowdown is not None and self.slowdown.value < 1


class _Member(NamedTuple):
    """One stream of an arm, with its results, and the jobs that it shares with its twin."""

    stream: Stream
    twin: Stream | None
    totals: Totals
    after: Sequence[After]
    pairs: Sequence[tuple[JobRun, JobRun]]

    @property
    def unit(self) -> Unit:
        return self.stream.unit

    @property
    def lost_s_per_hit(self) -> float | None:
        hits = sum(after.hit for after in self.after)
        return None if self.totals.lost_s is None or not hits else self.totals.lost_s / hits


def arms(streams: Sequence[Stream], margin: float) -> list[FaultArm]:
    """Judge every arm, fault-free ones first per condition; `margin` is the tolerated slowdown."""
    groups: dict[tuple[object, ...], list[_Member]] = {}
    for stream in sorted(
        streams, key=lambda stream: (stream.condition, *_order(stream.fault, stream.fault_params))
    ):
        key = (stream.condition, stream.fault, *stream.fault_params.items())
        groups.setdefault(key, []).append(_member(stream, streams))
    every = list(groups.values())
    rows = [
        row
        for at, group in enumerate(every)
        for member in group
        if member.pairs
        for row in _with_and_without(at, member)
    ]
    metrics: dict[str, Scale] = {"response_s": "log", "goodput_per_s": "log"}
    ratios = contrasts_of(rows, "fault", "", metrics, by=["place"])
    known = {(row.place, row.metric): row for row in ratios if row.value is not None}
    return [
        _arm(group, known.get((at, "response_s")), known.get((at, "goodput_per_s")), margin)
        for at, group in enumerate(every)
    ]


def _order(fault: str, params: Mapping[str, object]) -> tuple[object, ...]:
    numbers = [
        (name, value if isinstance(value, int | float) else math.inf)
        for name, value in params.items()
    ]
    return (fault, params.get("checkpoint_s", 0.0), numbers)


def twin_of(stream: Stream, streams: Sequence[Stream]) -> Stream | None:
    """Return the fault-free stream with the same jobs, preferably checkpoints and retries too."""
    twins = [
        other
        for other in streams
        if not other.fault and (other.unit, other.condition) == (stream.unit, stream.condition)
    ]
    return min(
        twins, key=lambda other: (_guards(other) != _guards(stream), *_guards(other)), default=None
    )


def _member(stream: Stream, streams: Sequence[Stream]) -> _Member:
    twin = twin_of(stream, streams) if stream.fault else None
    struck = after(stream, twin) if stream.fault else []
    return _Member(
        stream, twin, totals(stream), struck, [] if twin is None else shared(stream, twin)
    )


def _with_and_without(place: int, member: _Member) -> Iterator[dict[str, object]]:
    run, block = member.unit
    known = responses(member.pairs) or (None, None)
    for fault, at, response_s in zip(("", "struck"), (1, 0), known, strict=True):
        yield {
            "place": place,
            "run": run,
            "block": block,
            "fault": fault,
            "response_s": response_s,
            "goodput_per_s": goodput_per_s([pair[at] for pair in member.pairs]),
        }


def _arm(
    group: Sequence[_Member], slowdown: Contrast | None, goodput: Contrast | None, margin: float
) -> FaultArm:
    stream = group[0].stream
    struck = [(member.unit, after) for member in group for after in member.after]
    recovered = [(unit, after.recovery_s) for unit, after in struck if after.recovery_s is not None]
    arm = FaultArm(
        workload=stream.group,
        condition=stream.condition,
        fault=stream.fault,
        params=stream.fault_params,
        streams=len(group),
        blocks=len({member.unit for member in group}),
        paired=sum(member.twin is not None for member in group),
        outcomes=dict(Counter(job.outcome for member in group for job in member.stream.jobs)),
        strikes=len(struck),
        hit=sum(after.hit for _, after in struck),
        recovered=len(recovered),
        lost_jobs=sum(
            other.done and not job.done for member in group for job, other in member.pairs
        ),
        figures={
            **{
                name: over_blocks((member.unit, getattr(member.totals, name)) for member in group)
                for name in Totals._fields
            },
            "lost_s_per_hit": over_blocks((member.unit, member.lost_s_per_hit) for member in group),
            "restart_s": over_blocks((unit, after.restart_s) for unit, after in struck),
            "recovery_s": over_blocks(recovered) if len(recovered) >= MOST * len(struck) else None,
        },
        slowdown=slowdown,
        goodput=goodput,
    )
    return replace(arm, isolation=_isolation(arm, margin), notes=tuple(_notes(arm, group)))


def _isolation(arm: FaultArm, margin: float) -> Isolation | None:
    slow = arm.slowdown
    if arm.fault not in NEIGHBOURS:
        return None
    if slow is None or slow.low90 is None:
        return "not judged"
    if 1 / (1 + margin) <= slow.low90 and slow.high90 <= 1 + margin:
        return "open" if arm.lost_jobs else "isolated"
    return "not isolated" if verdict(slow) is SLOWER else "open"


def _notes(arm: FaultArm, group: Sequence[_Member]) -> Iterator[str]:
    if arm.lost_jobs:
        others = (
            "slowdowns are for the others"
            if arm.slowdown is not None
            else "nothing remains to compare"
        )
        sooner = ", which are sooner only because these left them the slots" if arm.thinned else ""
        yield f"{arm.lost_jobs} jobs finished without the fault but not with it; {others}{sooner}."
    if arm.slowdown is not None and arm.slowdown.missing:
        yield f"{arm.slowdown.missing}."
    if alone := (arm.streams - arm.paired if arm.fault else 0):
        yield (
            f"{alone} of {arm.streams} streams have no fault-free twin in their block, so they "
            "are not compared."
        )
    if any(
        _guards(member.stream) != _guards(member.twin)
        for member in group
        if member.twin is not None
    ):
        yield (
            "twins had different checkpoints or retries: their cost without a fault is part of "
            "the slowdown."
        )
    if arm.fault and not arm.strikes:
        yield "no fault ever struck."
    for outcome in sorted(NEVER & arm.outcomes.keys()):
        yield (
            f"{counted(arm.outcomes[outcome], 'job')} {outcome}: no response, excluded from "
            "slowdown and recovery."
        )


def _guards(stream: Stream) -> tuple[float, int]:
    return stream.checkpoint_s, stream.retries


def reported(streams: Sequence[Stream], margin: float, refused: Sequence[str]) -> Answer:
    """Return each fault's cost by condition, and that of poisoned clients."""
    every, accuracies = arms(streams, margin), poisonings(streams)
    faulty = {arm.condition: None for arm in every if arm.fault}
    sections = [
        _condition([arm for arm in every if arm.condition == condition], margin)
        for condition in faulty
    ]
    if accuracies:
        sections.append(section(accuracies))
    poison = lost_accuracy(accuracies)
    if faulty:
        title = _summary([arm for arm in every if arm.fault])
    elif accuracies:
        title = poison or "There are no poisoned clients, or no clean ones to compare them with."
    else:
        title = (
            "None of these streams had a fault. Set one with a parameter of job_stream, such as "
            "`fault=kill`."
        )
    return Answer(
        title=title,
        findings=[Line(poison)] if faulty and poison else [],
        sections=sections,
        legend=[*LEGEND, *([("isolated", RULE)] if any(arm.isolation for arm in every) else [])]
        if faulty
        else [],
        data={
            "arms": every,
            "poisonings": accuracies,
            "margin": margin,
            "rule": RULE,
        },
        refused=refused,
    )


def named(arms: Sequence[FaultArm]) -> list[FaultArm]:
    """Name arms by fault and by their differences within it, ordered by fault."""
    ordered = sorted(arms, key=lambda arm: _order(arm.fault, arm.params))
    faults = apart([arm.params for arm in ordered], [arm.fault for arm in ordered])
    names = apart([dict(arm.condition) for arm in ordered], faults)
    return [replace(arm, name=name) for name, arm in zip(names, ordered, strict=True)]


def _summary(arms: Sequence[FaultArm]) -> str:
    verdicts = [
        (word_of(arm), f"{arm.name} (× {number(arm.slowdown.value)})" if arm.slowdown else arm.name)
        for arm in named(arms)
    ]
    losing = sum(arm.lost_jobs > 0 for arm in arms)
    lost = f" Jobs are lost under {losing} of {counted(len(arms), 'setting')}." if losing else ""
    return f"{claimed(verdicts, 'without the fault')}{lost}"


def word_of(arm: FaultArm) -> Word:
    """Return whether jobs that finished in both streams take longer, in `compare`'s words."""
    if arm.thinned and arm.slowdown is not None and arm.slowdown.p is not None:
        return Word("fewer jobs", "open")
    word = verdict(arm.slowdown)
    return SAME_TIME if word is CANT_TELL and arm.isolation == "isolated" else word


def _condition(arms: Sequence[FaultArm], margin: float) -> Section:
    faulty = named([arm for arm in arms if arm.fault])

    def mean(
        head: str, name: str, scale: float = 1.0, **look: Any
    ) -> tuple[Column, Callable[[FaultArm], object]]:
        own_name = name if scale == 1.0 else f"{name}_percent"
        return Column(head, own_name, number, **look), lambda arm: value_of(
            arm.figures[name], scale
        )

    columns: Columns = [
        column("fault", of="name", left=True),
        *ratio_columns("jobs are", _word, "slowdown"),
        (
            Column(f"isolated\nwithin {unsigned(margin)}", "isolation", left=True),
            lambda arm: arm.isolation and ISOLATION[arm.isolation],
        ),
        (Column("done"), lambda arm: f"{arm.outcomes.get('done', 0)}/{sum(arm.outcomes.values())}"),
        mean("useful\n%", "useful", 100, spare=2),
        mean("lost\ns", "lost_s", spare=2),
        (Column("goodput", write=number, spare=3), lambda arm: value_of(arm.goodput)),
        column("blocks", spare=1),
    ]
    struck: Columns = [
        columns[0],
        column("faults", of="strikes"),
        column("attempts\nended", "hit"),
        mean("restart\ns", "restart_s"),
        mean("lost s\neach", "lost_s_per_hit"),
        (
            Column("recovered s\n[95 %]", "recovery_s", figure),
            lambda arm: arm.figures["recovery_s"],
        ),
        (Column("of", "recovered"), lambda arm: f"{arm.recovered}/{arm.strikes}"),
        mean("available\n%", "available", 100, spare=1),
    ]
    rows = [*faulty, *(replace(arm, name="no fault") for arm in arms if not arm.fault)]
    return Section(
        arms[0].workload,
        [
            *map(Line, _constants(faulty)),
            table_of(columns, claims_first(rows, _word)),
            table_of(struck, claims_first((arm for arm in faulty if arm.strikes), _word)),
            *bullets(
                grouped([(arm.name, note) for arm in faulty for note in arm.notes], len(faulty))
            ),
        ],
    )


def _word(arm: FaultArm) -> Word | None:
    return word_of(arm) if arm.fault else None


def _constants(arms: Sequence[FaultArm]) -> Iterator[str]:
    for fault in dict.fromkeys(arm.fault for arm in arms):
        params = [arm.params for arm in arms if arm.fault == fault]
        if shared := [
            f"{name} {value}"
            for name, value in params[0].items()
            if name not in AGAINST and all(other.get(name) == value for other in params)
        ]:
            yield f"{fault}: {', '.join(shared)}"
