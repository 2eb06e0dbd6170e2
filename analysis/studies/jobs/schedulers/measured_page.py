"""Policies on real streams, and these played again in simulation, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line, printable_json
from analysis.printing import columns, hanging, on_page
from analysis.studies.jobs.simulation.study_page import LEGEND, tables
from analysis.wording import digits

from .measured import lost_unequally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .measured import Place, Replay


def render(found: Sequence[Place], *, color: bool = False) -> str:
    """Write what each engine measured, and what the simulator says of the same jobs."""
    return on_page(_parts(found), color=color)


def as_json(found: Sequence[Place], refused: Sequence[str]) -> str:
    """Write all of it for programs; effects are gains as fractions."""
    return printable_json({"simulated": False, "places": [asdict(one) for one in found], "refused": list(refused)})


def _parts(found: Sequence[Place]) -> Iterator[RenderableType]:
    for one in found:
        yield Text(f"MEASURED: {one.slots} slots of {one.engine}, {one.streams} streams, the same arrivals for every policy.")
        if len(found) > 1:
            yield Text(one_line(one.condition, 300), "bold")
        if one.copies:
            yield Text(f"{one.copies} streams that had the jobs of another under the same policy: copies, left out.")
        if one.alone:
            yield Text(f"{one.alone} streams, whose arrivals not every policy had, are left out of the comparison.")
        if one.lost:
            yield Text(f"{one.lost} jobs were not done in their first attempt and have no part in these figures.")
        if one.left_out:
            yield Text(lost_unequally(one))
        yield Text("")
        yield from tables(one.arms, one.baseline)
        if one.replays:
            yield Text("\nthe same submissions and times in service, played in simulation")
            heads = ["policy", "streams", "mean wait s", "simulated s", "longer by s [95 %]"]
            yield columns(heads, [_row(replay) for replay in one.replays])
        if one.unplayed:
            yield Text(f"Not played in simulation: {one.unplayed} streams that lost slots or jobs, which it knows nothing of.")
        yield Text("")
    yield hanging(LEGEND, "dim", "dim")


def _row(one: Replay) -> list[str]:
    interval = "" if one.interval_s is None else f" [{one.interval_s[0]:+.3g}, {one.interval_s[1]:+.3g}]"
    return [one.policy, f"{one.streams}", digits(one.measured_s), digits(one.simulated_s), f"{one.longer_s:+.3g}{interval}"]
