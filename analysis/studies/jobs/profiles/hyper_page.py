"""Time to an accuracy by hyper-parameters as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import printable_json
from analysis.printing import columns, hanging, on_page
from analysis.render import text
from analysis.studies.jobs.queues.words import NONE, figure
from analysis.studies.keys.answers import answer as effects_answer
from analysis.wording import probability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .hyper import Hyper, Point

LEGEND = (
    (
        "time s",
        "until the first epoch whose accuracy on images left out is what was asked for; means of runs in which all jobs came there.",
    ),
    ("reached", "of how many jobs. A point that not all reach is never the best one."),
)


def render(found: Hyper, *, color: bool = False) -> str:
    """Write the points, the best of them, and the effects."""
    said = on_page(_parts(found), color=color)
    return said if found.effects is None else f"{said}\n{text.render(effects_answer([found.effects]), color=color)}"


def as_json(found: Hyper, refused: Sequence[str]) -> str:
    """Write it for programs; effects are gains as fractions of speed."""
    return printable_json({**asdict(found), "refused": list(refused)})


def _parts(found: Hyper) -> Iterator[RenderableType]:
    yield columns(
        [*found.factors, "runs", "reached", "time s [95 %]", "epochs", "accuracy"],
        [_row(one) for one in found.points],
        left=len(found.factors),
    )
    yield hanging(("•", line) for line in _lines(found))
    yield Text("")
    yield hanging(LEGEND, "dim", "dim")


def _row(one: Point) -> list[str]:
    accuracy = NONE if one.accuracy is None else f"{one.accuracy.value:.1%}"
    epochs = NONE if one.epochs is None else f"{one.epochs.value:.1f}"
    return [*one.levels, f"{one.runs}", f"{one.reached}/{one.jobs}", figure(one.time_s), epochs, accuracy]


def _lines(found: Hyper) -> Iterator[str]:
    if found.best is None:
        yield "At no point did all jobs of all runs reach the accuracy: none can be called the best."
    else:
        yield f"Soonest: {_named(found, found.best)}{_than(found)}."
    if found.why:
        yield f"No effects: {found.why.rstrip('.')}."


def _than(found: Hyper) -> str:
    if found.next is None:
        return ", the only point that all jobs reach"
    then = _named(found, found.next)
    if found.effect is None:
        return f", before {then} {found.why_no_gain}"
    one = found.effect
    shown = f"{100 * one.gain:+.1f} % faster [{100 * one.low:+.1f}, {100 * one.high:+.1f}], p {probability(one.p)}"
    return f", {shown} than {then}" if one.low > 0 else f", not shown to be faster ({shown}) than {then}"


def _named(found: Hyper, one: Point) -> str:
    return ", ".join(f"{name} {level}" for name, level in zip(found.factors, one.levels, strict=True))
