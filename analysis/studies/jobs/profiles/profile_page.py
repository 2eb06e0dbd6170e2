"""Profiles as text of at most 100 columns, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line, printable_json
from analysis.printing import columns, hanging, in_lines, on_page
from analysis.studies.jobs.queues.words import NONE, figure, number
from analysis.wording import probability

from .names import short
from .profile import PARTS, WAITING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from analysis.studies.jobs.queues.terms import Figure

    from .profile import Best, Row

LEGEND = (
    ("time s", "of a job with its slots, from admission to end; means of runs with their 95 % interval, where there are three runs."),
    ("%", "of the response time: waiting for a slot, start-up, computing, held back by the CPU limit, neither."),
    ("CPU", "CPU time over what the limit gives, or the machine has where there is none."),
    ("memory", "the peak of what counts against the limit, files in memory too, over it."),
    ("core s", "a job: its time times the CPUs it was given, used or not."),
)
NOTED = 0.05  # a share of waiting that somebody will ask about


def render(rows: Sequence[Row], best: Sequence[Best], *, color: bool = False) -> str:
    """Write a table a class, and the best system of each."""
    return on_page(_parts(rows, best), color=color)


def as_json(rows: Sequence[Row], best: Sequence[Best], refused: Sequence[str]) -> str:
    """Write it for programs: parts are fractions, effects gains as fractions, `values` by run."""
    made = [
        {**asdict(row), "values": [{"run": run, "block": block, "time_s": s} for (run, block), s in row.values.items()]} for row in rows
    ]
    return printable_json({"profile": made, "best": [asdict(one) for one in best], "refused": list(refused)})


def _parts(rows: Sequence[Row], best: Sequence[Best]) -> Iterator[RenderableType]:
    called = short([row.system for row in rows])
    for one in best:
        mine = [row for row in rows if row.class_ == one.class_]
        yield Text(
            f"{one_line(one.class_) or 'jobs'}: {sum(row.jobs for row in mine)} jobs in {max(row.runs for row in mine)} runs", "bold"
        )
        yield columns(["system", "time s [95 %]", "work/s", "core s", "CPU", "memory"], [_figures(row, called) for row in mine])
        yield columns(["", *(f"{part} %" for part in PARTS), "bottleneck"], [_shares(row, called) for row in mine])
        yield hanging(("•", line) for line in _lines(one, mine, called))
        yield ""
    yield hanging(LEGEND, "dim", "dim")


def _figures(row: Row, called: Mapping[str, str]) -> list[str]:
    shares = [NONE if one is None else f"{one.value:.0%}" for one in (row.cpu, row.memory)]
    return [in_lines(called[row.system], 40), figure(row.time_s), _value(row.work_per_s), _value(row.core_s), *shares]


def _shares(row: Row, called: Mapping[str, str]) -> list[str]:
    return [in_lines(called[row.system], 30), *(_percent(row.parts.get(part)) for part in PARTS), row.bottleneck]


def _lines(one: Best, rows: Sequence[Row], called: Mapping[str, str]) -> Iterator[str]:
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


def _than(one: Best) -> str:
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
