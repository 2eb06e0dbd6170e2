"""The figures of every task, algorithm and block, or why there are none; an arm and its copy in one block are one value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .contrasts import Figures, Lost, Table, difference, together
from .figures import THROUGHPUT, figures_of
from .records import AGAIN, STOCK
from .steady import FIRST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Run

    from .naming import Names
    from .terms import Against, Capped

Key = tuple[str, str, int]  # task, arm, block


def tabled(cells: Sequence[Capped], lost: Mapping[Key, Lost]) -> Table:
    """Lay figures out; of a block in which a copy was lost the other stands."""
    figures: dict[Key, list[Figures]] = {}
    reasons: dict[Key, Lost] = dict(lost)
    for one in cells:
        key = one.group, one.arm, one.block
        found = figures_of(one)
        if found:
            figures.setdefault(key, []).append(found)
        else:
            why = f"{len(one.iterations)} iterations: none is steady, which takes more than {FIRST} under one cap"
            reasons.setdefault(key, ("skipped", why))
    table: Table = {}
    for key in sorted({*figures, *reasons}, key=lambda one: (one[2], one[0], one[1])):
        both = figures.get(key)
        table[key] = {name: together(both, name) for name in both[0] if all(name in one for one in both)} if both else reasons[key]
    return table


def lost_of(run: Run, names: Names, place: tuple[str, str], read: Sequence[Capped]) -> dict[Key, Lost]:
    """Cells of a study and back-end that were not measured, or could not be read, with the reason.

    One that left the choice of the back-end to the run is of that which ran its task.
    """
    used = {one.id for one in read}
    ran = {one.group: one.backend for one in read}
    found: dict[Key, Lost] = {}
    for cell in run.cells:
        if cell.tweakset in {STOCK, AGAIN} and cell.id not in used and names.known(cell):
            backend = names.backend(cell) or ran.get(names.group(cell))
            if (cell.study, backend) == place:
                measured = cell.outcome == "measured"
                why = "what it told cannot be read" if measured else cell.reason or "no reason was recorded"
                found.setdefault((names.group(cell), names.arm(cell), cell.block), ("failed" if measured else cell.outcome, why))
    return found


def nowhere(run: Run, names: Names, read: Sequence[Capped]) -> list[str]:
    """Say of back-ends that were asked for and measured nothing why that is, a line each reason."""
    told = {one.backend for one in read}
    counts: dict[tuple[str, str], int] = {}
    for cell in run.cells:
        if names.known(cell) and cell.outcome != "measured" and names.backend(cell) not in {"", *told}:
            key = names.backend(cell), (cell.reason or "no reason was recorded").rstrip(".")
            counts[key] = counts.get(key, 0) + 1
    return [f"back-end {named}: {count} cells: {why}." for (named, why), count in counts.items()]


def copies(cells: Sequence[Capped]) -> Against:
    """Hold arms against their own copies in throughput: in each block the mean of the log-ratios of all arms, then over blocks."""
    values: dict[tuple[int, str], dict[bool, float]] = {}
    for one in cells:
        rate = figures_of(one).get(THROUGHPUT)
        if rate:
            values.setdefault((one.block, one.arm), {})[one.again] = math.log(rate)
    changes: dict[int, list[float]] = {}
    for (block, _), both in values.items():
        if len(both) == 2:
            changes.setdefault(block, []).append(both[True] - both[False])
    means = {block: math.fsum(ones) / len(ones) for block, ones in changes.items()}
    return difference(dict.fromkeys(means, 0.0), means, log=True)
