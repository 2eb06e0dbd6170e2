"""What the pictures of capped runs have in common: which runs, back-ends and tasks they show, and how an algorithm looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.studies.power.reporting.records import ROWS, Names, capped, is_capped
from analysis.studies.power.reporting.study import sides
from analysis.studies.power.reporting.words import drawn_from, source, unit_of
from analysis.terms import Refused

from .scene import NothingToDraw
from .style import AGAIN, COLOURS, DASHES, INK, MARKERS, Look

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analysis.studies.power.reporting.terms import Capped, Group, Side
    from analysis.terms import Run

    from .scene import Scene

CAPPED = frozenset({ROWS})
# Shape says the same as colour, for print and for the colour-blind.
HOLDS: dict[str, dict[str, Any]] = {
    "yes": {"marker": "s", "color": "#009E73", "markerfacecolor": "#009E73"},
    "no": {"marker": "^", "color": "#D55E00", "markerfacecolor": "#D55E00"},
    "not shown": {"marker": "o", "color": INK, "markerfacecolor": "white"},
}
HELD = {"yes": "holds the cap", "no": "does not hold it", "not shown": "neither is shown"}


class Part(NamedTuple):
    """One back-end of one run, with its cells."""

    run: Run
    side: Side
    cells: tuple[Capped, ...]

    def of(self, group: Group, arm: str) -> list[Capped]:
        """The cells of one algorithm on one task, by block; the arm before its copy."""
        mine = [one for one in self.cells if (one.group, one.arm) == (group.name, arm)]
        return sorted(mine, key=lambda one: (one.again, one.block))

    def title(self, group: Group, parts: Iterable[Part]) -> str:
        """A task's head; where several back-ends or runs are shown it says which."""
        several = [part.side.backend for part in parts]
        whose = f" · {self.side.backend}" if len(set(several)) > 1 else ""
        return f"{group.title}{whose}{f' · run {self.run.run_id}' if several.count(self.side.backend) > 1 else ''}"


def parts_of(scene: Scene) -> list[Part]:
    """Take every back-end of every run under a cap. Raises: NothingToDraw, where there is none."""
    found = []
    for run in scene.runs:
        if is_capped(run):
            try:
                every = sides(run, [])
            except Refused:
                continue
            cells = capped(run, Names(run), [])
            found += [Part(run, side, tuple(one for one in cells if one.backend == side.backend)) for side in every]
    if not any(arm.means for part in found for group in part.side.groups for arm in group.arms):
        raise NothingToDraw("no cell under a cap has steady iterations")
    return found


def looks(parts: Iterable[Part]) -> dict[str, Look]:
    """Give every algorithm its look, the same in all pictures: grey for the baseline, then colour and mark."""
    parts = list(parts)
    names = sorted({arm.name for part in parts for group in part.side.groups for arm in group.arms})
    baselines = {part.side.baseline for part in parts}
    found = {name: Look(AGAIN, "s", "-") for name in names if name in baselines}
    for place, name in enumerate(name for name in names if name not in found):
        turn, at = divmod(place, len(COLOURS))
        found[name] = Look(COLOURS[at], MARKERS[(at + turn) % len(MARKERS)], DASHES[turn % len(DASHES)])
    return found


def sources(parts: Iterable[Part]) -> list[str]:
    """Say where the readings of a picture are from: simulated ones must not be taken for measured ones."""
    return list(dict.fromkeys(source(part.side) for part in parts))


def limited(part: Part) -> str:
    """What stands on the axis of what is limited: `power, W`, or `activity, CPU s/s`."""
    return f"{drawn_from(part.side)}, {unit_of(part.side)}"
