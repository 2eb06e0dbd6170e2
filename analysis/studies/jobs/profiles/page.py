"""Profiles, and times to an accuracy by hyper-parameters, as text of at most 100 columns and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line, printable_json
from analysis.printing import columns, hanging, in_lines, on_page
from analysis.render import text
from analysis.studies.jobs.output import NONE, figure, number
from analysis.studies.keys.answers import answer as effects_answer
from analysis.wording import probability

from .profile import PARTS, WAITING, short

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from analysis.studies.jobs.estimates import Figure

    from .hyper import GridPoint, Hyper
    from .profile import BestSystem, ClassProfile


PROFILE_LEGEND = (
    ("time s", "of a job with its slots, from admission to end; means of runs with their 95 % interval, where there are three runs."),
    ("%", "of the response time: waiting for a slot, start-up, computing, held back by the CPU limit, neither."),
    ("CPU", "CPU time over what the limit gives, or the machine has where there is none."),
    ("memory", "the peak of what counts against the limit, files in memory too, over it."),
    ("core s", "a job: its time times the CPUs it was given, used or not."),
)
NOTED = 0.05  # a share of waiting that somebody will ask about


def profile(rows: Sequence[ClassProfile], best: Sequence[BestSystem], *, color: bool = False) -> str:
    """Write a table a class, and the best system of each."""
    return on_page(_profile_parts(rows, best), color=color)


def profile_json(rows: Sequence[ClassProfile], best: Sequence[BestSystem], refused: Sequence[str]) -> str:
    """Write it for programs: parts are fractions, effects gains as fractions, `values` by run."""
    made = [
        {**asdict(row), "values": [{"run": run, "block": block, "time_s": s} for (run, block), s in row.values.items()]} for row in rows
    ]
    return printable_json({"profile": made, "best": [asdict(one) for one in best], "refused": list(refused)})


def _profile_parts(rows: Sequence[ClassProfile], best: Sequence[BestSystem]) -> Iterator[RenderableType]:
    called = short([row.system for row in rows])
    for one in best:
        mine = [row for row in rows if row.class_ == one.class_]
        yield Text(
            f"{one_line(one.class_) or 'jobs'}: {sum(row.jobs for row in mine)} jobs in {max(row.runs for row in mine)} runs", "bold"
        )
        yield columns(["system", "time s [95 %]", "work/s", "core s", "CPU", "memory"], [_figures(row, called) for row in mine])
        yield columns(["", *(f"{part} %" for part in PARTS), "bottleneck"], [_shares(row, called) for row in mine])
        yield hanging(("•", line) for line in _profile_lines(one, mine, called))
        yield ""
    yield hanging(PROFILE_LEGEND, "dim", "dim")


def _figures(row: ClassProfile, called: Mapping[str, str]) -> list[str]:
    shares = [NONE if one is None else f"{one.value:.0%}" for one in (row.cpu, row.memory)]
    return [in_lines(called[row.system], 40), figure(row.time_s), _value(row.work_per_s), _value(row.core_s), *shares]


def _shares(row: ClassProfile, called: Mapping[str, str]) -> list[str]:
    return [in_lines(called[row.system], 30), *(_percent(row.parts.get(part)) for part in PARTS), row.bottleneck]


def _profile_lines(one: BestSystem, rows: Sequence[ClassProfile], called: Mapping[str, str]) -> Iterator[str]:
    waiting = [row for row in rows if row.closed and WAITING in row.parts and row.parts[WAITING].value >= NOTED]
    if waiting:
        named = ", ".join(called[row.system] for row in waiting)
        yield f"{named}: jobs wait for others of the stream, which are as many as its slots: no part of time s, nor a bottleneck."
    if one.next:
        yield f"Soonest on {called[one.system]}, {_than(one)} {called[one.next]}."
    if one.cheapest and one.next and one.cheapest != one.system:
        yield f"Fewest core seconds a job: {called[one.cheapest]}."
    for row in rows:
        if row.lost:
            yield f"{called[row.system]}: {row.lost} of {row.lost + row.jobs} jobs are not counted: {row.why_lost}."


def _than(one: BestSystem) -> str:
    effect = one.effect
    if effect is None:
        return f"{one.why}, before"
    low, high = (f"{100 * side:+.1f}" for side in (effect.low, effect.high))
    shown = f"{100 * effect.gain:+.1f} % faster [{low}, {high}], p {probability(effect.p)}"
    return f"{shown}, than" if effect.low > 0 else f"not shown to be faster ({shown}) than"


def _runs(count: int) -> str:
    return f"{count} run{'s' if count > 1 else ''}"


def _percent(one: Figure | None) -> str:
    return NONE if one is None else f"{100 * one.value:.0f}"


def _value(one: Figure | None) -> str:
    return number(None if one is None else one.value)


HYPER_LEGEND = (
    (
        "time s",
        "until the first epoch whose accuracy on images left out is what was asked for; means of runs in which all jobs came there.",
    ),
    ("reached", "of how many jobs. A point that not all reach is never the best one."),
)


def hyper(found: Hyper, *, color: bool = False) -> str:
    """Write the points, the best of them, and the effects."""
    said = on_page(_hyper_parts(found), color=color)
    return said if found.effects is None else f"{said}\n{text.render(effects_answer([found.effects]), color=color)}"


def hyper_json(found: Hyper, refused: Sequence[str]) -> str:
    """Write it for programs; effects are gains as fractions of speed."""
    return printable_json({**asdict(found), "refused": list(refused)})


def _hyper_parts(found: Hyper) -> Iterator[RenderableType]:
    yield columns(
        [*found.factors, "runs", "reached", "time s [95 %]", "epochs", "accuracy"],
        [_point_row(one) for one in found.points],
        left=len(found.factors),
    )
    yield hanging(("•", line) for line in _hyper_lines(found))
    yield Text("")
    yield hanging(HYPER_LEGEND, "dim", "dim")


def _point_row(one: GridPoint) -> list[str]:
    accuracy = NONE if one.accuracy is None else f"{one.accuracy.value:.1%}"
    epochs = NONE if one.epochs is None else f"{one.epochs.value:.1f}"
    return [*one.levels, f"{one.runs}", f"{one.reached}/{one.jobs}", figure(one.time_s), epochs, accuracy]


def _hyper_lines(found: Hyper) -> Iterator[str]:
    if found.best is None:
        yield "At no point did all jobs of all runs reach the accuracy: none can be called the best."
    else:
        yield f"Soonest: {_named(found, found.best)}{_than_next(found)}."
    if found.why:
        yield f"No effects: {found.why.rstrip('.')}."


def _than_next(found: Hyper) -> str:
    if found.next is None:
        return ", the only point that all jobs reach"
    then = _named(found, found.next)
    if found.effect is None:
        return f", before {then} {found.why_no_gain}"
    one = found.effect
    shown = f"{100 * one.gain:+.1f} % faster [{100 * one.low:+.1f}, {100 * one.high:+.1f}], p {probability(one.p)}"
    return f", {shown} than {then}" if one.low > 0 else f", not shown to be faster ({shown}) than {then}"


def _named(found: Hyper, one: GridPoint) -> str:
    return ", ".join(f"{name} {level}" for name, level in zip(found.factors, one.levels, strict=True))
