"""Profiles, and times to an accuracy by hyper-parameters: parts of an answer, and documents for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analysis.answer import Line, bullets, marked, text_table
from analysis.plain import one_line
from analysis.studies.jobs.output import NONE, faster, figure, value_of
from analysis.studies.keys.answers import answer as effects_answer

from .profile import PARTS, WAITING, short

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analysis.answer import Answer, Part
    from analysis.studies.jobs.output import Document
    from analysis.studies.keys.terms import Effects

    from .hyper import GridPoint, Hyper
    from .profile import BestSystem, ClassProfile

PROFILE_LEGEND = (
    ("time s", "of a job with its slots, from admission to end; means of runs with their 95 % interval, where there are three runs."),
    ("%", "of the response time: waiting for a slot, start-up, computing, held back by the CPU limit, neither."),
    ("CPU", "CPU time over what the limit gives, or the machine has where there is none."),
    ("memory", "the peak of what counts against the limit, files in memory too, over it."),
    ("core s", "a job: its time times the CPUs it was given, used or not."),
)
HYPER_LEGEND = (
    (
        "time s",
        "until the first epoch whose accuracy on images left out is what was asked for; means of runs in which all jobs came there.",
    ),
    ("reached", "of how many jobs. A point that not all reach is never the best one."),
)
NOTED = 0.05  # a share of waiting that somebody will ask about


def profile_document(rows: Sequence[ClassProfile], best: Sequence[BestSystem]) -> Document:
    profiles = [
        {**asdict(row), "values": [{"run": run, "block": block, "time_s": time_s} for (run, block), time_s in row.values.items()]}
        for row in rows
    ]
    return {"profile": profiles, "best": [*map(asdict, best)]}


def profile_page(rows: Sequence[ClassProfile], best: Sequence[BestSystem]) -> Iterator[Part]:
    called = short([row.system for row in rows])
    for system in best:
        own = [row for row in rows if row.class_ == system.class_]
        jobs, runs = sum(row.jobs for row in own), max(row.runs for row in own)
        yield Line(f"{one_line(system.class_) or 'jobs'}: {jobs} jobs in {runs} runs", tone="strong")
        yield text_table(["system", "time s [95 %]", "work/s", "core s", "CPU", "memory"], [_figures(row, called) for row in own])
        yield text_table(["", *(f"{part} %" for part in PARTS), "bottleneck"], [_shares(row, called) for row in own])
        yield from bullets(_profile_lines(system, own, called))
        yield ""
    yield from marked(PROFILE_LEGEND, "quiet")


def _figures(row: ClassProfile, called: Mapping[str, str]) -> list[str]:
    shares = [NONE if share is None else f"{share.value:.0%}" for share in (row.cpu, row.memory)]
    return [called[row.system], figure(row.time_s), value_of(row.work_per_s), value_of(row.core_s), *shares]


def _shares(row: ClassProfile, called: Mapping[str, str]) -> list[str]:
    shares = [NONE if part not in row.parts else f"{100 * row.parts[part].value:.0f}" for part in PARTS]
    return [called[row.system], *shares, row.bottleneck]


def _profile_lines(best: BestSystem, rows: Sequence[ClassProfile], called: Mapping[str, str]) -> Iterator[str]:
    waiting = [called[row.system] for row in rows if row.closed and WAITING in row.parts and row.parts[WAITING].value >= NOTED]
    if waiting:
        others = "jobs wait for others of the stream, which are as many as its slots"
        yield f"{', '.join(waiting)}: {others}: no part of time s, nor a bottleneck."
    if best.next:
        yield f"Soonest on {called[best.system]}, {faster(best.effect, best.why)} {called[best.next]}."
    if best.cheapest and best.next and best.cheapest != best.system:
        yield f"Fewest core seconds a job: {called[best.cheapest]}."
    for row in rows:
        if row.lost:
            yield f"{called[row.system]}: {row.lost} of {row.lost + row.jobs} jobs are not counted: {row.why_lost}."


def hyper_document(hyper: Hyper) -> Document:
    return asdict(hyper)


def hyper_page(hyper: Hyper) -> Iterator[Part]:
    yield from _hyper_lines(hyper)
    yield ""
    yield text_table(
        [*hyper.factors, "runs", "reached", "time s [95 %]", "epochs", "accuracy"], map(_point, hyper.points), left=len(hyper.factors)
    )
    yield from marked(HYPER_LEGEND, "quiet")


def hyper_effects(effects: Effects) -> Answer:
    return effects_answer([effects])


def _point(point: GridPoint) -> list[str]:
    accuracy = NONE if point.accuracy is None else f"{point.accuracy.value:.1%}"
    epochs = NONE if point.epochs is None else f"{point.epochs.value:.1f}"
    return [*point.levels, f"{point.runs}", f"{point.reached}/{point.jobs}", figure(point.time_s), epochs, accuracy]


def _hyper_lines(hyper: Hyper) -> Iterator[str]:
    def named(point: GridPoint) -> str:
        return ", ".join(f"{name} {level}" for name, level in zip(hyper.factors, point.levels, strict=True))

    if hyper.best is None:
        yield "At no point did all jobs of all runs reach the accuracy: none can be called the best."
    elif hyper.next is None:
        yield f"Soonest: {named(hyper.best)}, the only point that all jobs reach."
    elif hyper.effect is None:
        yield f"Soonest: {named(hyper.best)}, before {named(hyper.next)} {hyper.why_no_gain}."
    else:
        yield f"Soonest: {named(hyper.best)}, {faster(hyper.effect, '').replace(', than', ' than')} {named(hyper.next)}."
    if hyper.why:
        yield f"No effects: {hyper.why.rstrip('.')}."
