"""Scaling that was really done as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import printable_json
from analysis.printing import hanging, on_page

from .page import tables
from .study import PAIRS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .real import Report

LEGEND = (
    ("within", "part of the jobs that ran for the target ±10 %. waits incl.: that were done so soon after they were submitted."),
    ("node s", "replicas times time, a job; what was measured beforehand, to choose by, is not in it."),
    ("95 %", "interval over streams, paired: the same jobs at the same times under every way of scaling."),
)


def render(found: Sequence[Report], *, color: bool = False) -> str:
    """Write what the choice made of each target."""
    return on_page(_parts(found), color=color)


def as_json(found: Sequence[Report], refused: Sequence[str]) -> str:
    """Write it for programs; effects are gains as fractions, of the choice for each job over the way they stand with."""
    return printable_json({"simulated": False, "reports": [asdict(one) for one in found], "refused": list(refused)})


def _parts(found: Sequence[Report]) -> Iterator[RenderableType]:
    for one in found:
        yield Text(f"MEASURED: {one.slots} slots of {one.engine}, every job to run {one.target_s:g} s ±10 %; {one.runs} streams.")
        yield Text("")
        yield from tables(one.arms)
        yield Text("")
        yield hanging(("•", line) for line in _lines(one))
        yield Text("")
    yield hanging(LEGEND, "dim", "dim")


def _lines(one: Report) -> Iterator[str]:
    if one.reachable is not None:
        yield f"By the law that chose, {one.reachable:.1%} of the jobs have a number of replicas that fits."
    if one.off is not None:
        yield f"It was {one.off:.1%} off on average over its jobs; {one.early:.1%} of them took less than the band, {one.late:.1%} more."
    if one.profile_node_s is not None:
        yield f"Measuring beforehand took {one.profile_node_s:.3g} node-seconds a stream."
    if one.runs < PAIRS:
        yield f"Fewer than {PAIRS} streams: nothing has an interval. Run more blocks."
    if len(one.arms) < 2:
        yield "Nothing stands beside the choice: run the same jobs with --vary replicas=1,2,4."
    if one.alone:
        yield f"{one.alone} streams, whose jobs did not meet every way of scaling, are left out."
    if one.unlike:
        yield (
            f"Not held against the choice: {', '.join(one.unlike)}, of which other jobs were done at once. "
            "Whichever lost those off the target would gain by it."
        )
    if one.lost:
        yield f"{one.lost} jobs were not done in their first attempt and have no part in these figures."
