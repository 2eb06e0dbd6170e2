"""A description as text. The first line under each run says what it is not: a verdict on a tweak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from analysis.printing import hanging, on_page
from analysis.verdict import ONE_RUN

from . import blocks, once
from .once import stalled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from analysis.terms import Run

    from .words import Described

ONCE = f"This describes runs and is no verdict on any tweak: {ONE_RUN}."
BLOCKS = "This describes the cells of a run and is no verdict on any tweak: `compare` pairs them by block and judges."


def render_description(run: Run, workloads: Sequence[Described], *, color: bool = False) -> str:
    """Write what `describe` found in one run, no line longer than 100 columns."""
    return on_page(_parts(run, workloads), color=color)


def _parts(run: Run, workloads: Sequence[Described]) -> Iterator[RenderableType]:
    measured = sum(cell.outcome == "measured" for cell in run.cells)
    sets = f"{len(run.tweaksets)} tweak set{'s' if len(run.tweaksets) != 1 else ''}"
    yield Text(f"Run {run.run_id}: {measured} of {len(run.cells)} cells measured, {sets} ({run.origin})", "bold")
    repeated = any(one.repeated for one in workloads)
    yield Text(BLOCKS if repeated else ONCE)
    for one in workloads:
        if one.cells:
            yield Text("")
            yield from (blocks.parts(one) if one.repeated else once.parts(one))
    notes = [("stall:", line) for one in workloads for cell in one.cells for line in stalled(cell)]
    notes += [("not described:", line) for one in workloads for line in one.undescribed] + [("warning:", line) for line in run.warnings]
    legend = (
        *(blocks.LEGEND if repeated else ()),
        *(once.LEGEND if any(one.cells and not one.repeated for one in workloads) else ()),
    )
    yield Text("")
    yield hanging([*notes, *dict.fromkeys(legend)])
