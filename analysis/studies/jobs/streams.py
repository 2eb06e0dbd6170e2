"""A saved run's streams of jobs: the command that answers its question, and data for pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.answer import Answer, then, together
from analysis.checks import warnings_of
from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.labels import short_names
from analysis.terms import AGAIN, STOCK, Refused, Run
from analysis.wording import counted, digits

from .claims import names_of
from .csv_file import grouped_alike
from .faults import FaultArm, arms
from .hyper import hyper
from .network import LossyLine, cells_of_run, lines
from .poisoning import poisonings
from .policies import PolicyGroup, places, played_streams
from .queue_fits import fit, fits_of
from .queue_formulas import Inputs
from .queues import WaitValidation, validate, validated
from .records import Stream, distinct, in_order, loses_packets, streams, tells_of_jobs

MARGIN = 0.10  # how far off a model of waits may be
BASELINE = "fifo"
FIRST_COME = frozenset({"", "fifo"})  # as the models assume
ARRIVALS = {
    "poisson": "Poisson arrivals",
    "deterministic": "equal gaps",
    "mmpp": "arrivals in bursts (MMPP)",
    "trace": "arrivals of a trace",
    "fltk": "arrivals like FLTK's",
}


@dataclass(frozen=True, slots=True)
class GroupWaits:
    """Streams of equal conditions, and their waits against the models; `title` is distinctive."""

    title: str
    streams: tuple[Stream, ...]
    validation: WaitValidation

    @property
    def arrivals(self) -> str:
        return self.streams[0].arrival_kind


@dataclass(frozen=True, slots=True)
class JobsRun:
    """A run's streams and their comparisons.

    `arms` are streams with faults and their twins without, `lines` those that lost packets.
    """

    run: Run
    streams: tuple[Stream, ...] = ()
    waits: tuple[GroupWaits, ...] = ()
    places: tuple[PolicyGroup, ...] = ()
    arms: tuple[FaultArm, ...] = ()
    lines: tuple[LossyLine, ...] = ()


def answer(run: Run, *, brief: bool = False) -> Answer:
    """Answer the run's own question; `brief`, for its session's end, with warnings and effects.

    Raises: Refused, where nothing of it can be used.
    """
    refused: list[str] = []
    questions = [*_questions(run, refused, brief=brief)]
    if not questions:
        raise Refused(refused[0])
    result = questions[0][1]()
    if brief:
        compared = compare(run)
        result = replace(
            result, next=(), warnings=list(dict.fromkeys([*warnings_of(run, compared), *refused]))
        )
        return (
            result
            if all(comparison.untouched for comparison in compared)
            else together([result, answer_of(compared, [run])])
        )
    return then(result, questions[1][0] if len(questions) > 1 else "report", run.origin)


def _questions(
    run: Run, refused: list[str], *, brief: bool
) -> Iterator[tuple[str, Callable[[], Answer]]]:
    from . import faults, hyper, network, policies, profile, scaling

    if loses_packets(run):
        yield (
            "depend network",
            lambda: network.lossy(network.lines(network.cells_of_run(run, refused)), refused),
        )
    if not tells_of_jobs(run):
        return
    every = in_order(streams(run, refused), refused)
    if any("scale" in cell.report for cell in run.cells):
        yield "scale report", lambda: scaling.reported(scaling.of_run(run, every), refused)
    if any(stream.fault for stream in every) or any(
        setting.poisoned for setting in poisonings(every)
    ):
        yield "depend report", lambda: faults.reported(every, MARGIN, refused)
    if _learns(every):
        yield "jobs hyper", lambda: hyper.answer(every, refused)
    if len({stream.policy for stream in every}) > 1:
        played = policies.played_streams(run, every, refused)
        yield (
            "schedule report",
            lambda: policies.measured(policies.places(played, BASELINE, refused), refused),
        )
    if any(stream.closed for stream in every):
        yield "jobs profile", lambda: profile.answer(every, refused)
    if not all(stream.closed for stream in every):
        yield (
            "queue validate",
            lambda: validate_groups(grouped_alike(every, refused), refused, MARGIN, brief=brief),
        )


def _learns(every: Sequence[Stream]) -> bool:
    try:
        return hyper(every).best is not None
    except Refused:
        return False


def validate_groups(
    groups: Sequence[Sequence[Stream]],
    refused: list[str],
    margin: float,
    servers: int | None = None,
    planned: tuple[float, float] | None = None,
    *,
    brief: bool = False,
) -> Answer:
    """Compare the waits of streams with models by group; `planned`: rate, mean service time.

    Raises: Refused, where none can be used.
    """
    validations = []
    for fitted, group in fits_of(groups, servers, refused):
        inputs = (
            Inputs(*planned, fitted.servers) if planned and fitted.servers is not None else None
        )
        validations.append(validate(fitted, group, margin, inputs))
    names = names_of(stream for group in groups for stream in group)
    return validated(validations, names, refused, brief=brief)


def gather(run: Run) -> JobsRun | None:
    """Put a run's streams together; None for a run without jobs and lossy lines."""
    refused: list[str] = []
    lossy = tuple(lines(cells_of_run(run, refused)))
    if not tells_of_jobs(run):
        return JobsRun(run, lines=lossy) if lossy else None
    every = in_order(streams(run, refused), refused)
    order = list(run.workloads)
    by_workload = tuple(
        sorted(every, key=lambda stream: (order.index(stream.workload), stream.unit[1]))
    )
    of_faults = arms(every, MARGIN)
    return JobsRun(
        run,
        by_workload,
        tuple(_waits_of(run, by_workload, refused)),
        tuple(_places_of(run, every, refused)),
        arms=tuple(of_faults) if any(arm.fault for arm in of_faults) else (),
        lines=lossy,
    )


def _waits_of(run: Run, every: Iterable[Stream], refused: list[str]) -> Iterator[GroupWaits]:
    names = short_names(run.workloads)
    groups: dict[str, list[Stream]] = {}
    for stream in every:
        if not stream.closed and not stream.fault:
            groups.setdefault(stream.group, []).append(stream)
    for group in groups.values():
        first, replicates = group[0], distinct(group, refused)
        title = names[first.workload] + (
            "" if first.tweakset in {STOCK, AGAIN} else f" · {first.tweakset}"
        )
        try:
            yield GroupWaits(title, tuple(group), validate(fit(replicates), replicates, MARGIN))
        except Refused as error:
            refused.append(str(error))


def _places_of(run: Run, every: Sequence[Stream], refused: list[str]) -> Iterator[PolicyGroup]:
    usable = [
        one
        for one in every
        if one.tweakset in {STOCK, AGAIN} and one.policy and not one.fault and not one.closed
    ]
    played = played_streams(run, usable, refused)
    for condition in dict.fromkeys(stream.condition for stream in played):
        here = [stream for stream in played if stream.condition == condition]
        names = sorted({stream.policy for stream in here})
        if len(names) < 2:
            continue
        try:
            yield from places(here, BASELINE if BASELINE in names else names[0], refused)
        except Refused as error:
            refused.append(str(error))


def called(kind: str) -> str:
    return ARRIVALS.get(kind, f"{kind} arrivals" if kind else "arrivals unknown")


def settings(groups: Iterable[GroupWaits]) -> list[str]:
    """Name groups by their settings, and equal ones also by the run's name for them."""
    groups = list(groups)
    short = []
    for waits in groups:
        of = waits.validation.fit
        slots = [] if of.servers is None else [counted(of.servers, "slot")]
        load = [] if of.load is None else [f"load {digits(of.load.value, 2)}"]
        short.append(", ".join([*slots, *load, called(waits.arrivals)]))
    return [
        name if short.count(name) == 1 else f"{name} ({waits.title})"
        for name, waits in zip(short, groups, strict=True)
    ]
