"""A capped run as a whole: back-end by back-end, task by task, every algorithm; back-ends are never mixed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.terms import Refused, UnknownName

from . import contrasts, titles
from .arms import COMPARED, against, arm_of_task, front, holds
from .figures import ABOVE_102, POWER, THROUGHPUT
from .naming import Names
from .records import capped, is_capped
from .steady import steady
from .table import copies, lost_of, nowhere, tabled
from .terms import Group, Side, Together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Comparison, Run

    from .contrasts import Table
    from .terms import Against, Capped

BASELINE = "powercap"


def sides(run: Run, refused: list[str], baseline: str | None = None) -> list[Side]:
    """Say of every back-end of a run what its algorithms made of their caps; what cannot be used is said in `refused`, a line each.

    `baseline` is the algorithm that the others are held against: powercap unless another is asked for, or the first where that has no
    figures.

    Raises: Refused, for a run that tells of no iterations under a cap. UnknownName, where no cell is of that baseline.
    """
    if not is_capped(run):
        raise Refused(
            f"{run.origin}: no cell of it tells of iterations under a cap; "
            "`pytest benchmarks/bench_power_cap.py --benchmark-save=NAME` saves such."
        )
    wrong: list[str] = []
    names = Names(run)
    cells = capped(run, names, wrong)
    refused += [*wrong, *nowhere(run, names, cells)]
    if not cells:
        raise Refused(wrong[0] if wrong else f"{run.origin}: no cell of the machine as it was found tells of iterations under a cap.")
    known = {names.arm(cell) for cell in run.cells if names.known(cell)}
    if baseline is not None and baseline not in known:
        raise UnknownName(f"{run.origin}: no algorithm {baseline!r} to compare with; it has {', '.join(sorted(known))}.")
    places = dict.fromkeys((one.study, one.backend) for one in cells)
    found = []
    for place in places:
        mine = [one for one in cells if (one.study, one.backend) == place]
        found.append(_side(run, mine, tabled(mine, lost_of(run, names, place, cells)), baseline))
    return found


def _side(run: Run, cells: Sequence[Capped], table: Table, wanted: str | None) -> Side:
    first = cells[0]
    measured = sorted({arm for (_, arm, _), value in table.items() if isinstance(value, dict)})
    baseline = wanted or (BASELINE if BASELINE in measured or not measured else measured[0])
    margin = run.studies[first.study].margin
    rows = contrasts.judged(table, baseline, run, margin) if any(arm == baseline for _, arm, _ in table) else {}
    compared = _compared(table, baseline, rows)
    tasks = titles.in_order({task for task, _, _ in table})
    labels = titles.labels(tasks)
    groups = tuple(
        _group((task, labels[task]), [one for one in cells if one.group == task], table, baseline, (rows, compared)) for task in tasks
    )
    return Side(
        backend=first.backend,
        unit=first.unit,
        power_source=first.power_source,
        baseline=baseline,
        margin=margin,
        family=max((one.family for one in rows.values()), default=0),
        groups=groups,
        together=_together(groups, table, baseline) if len(groups) > 1 else (),
    )


Compared = dict[tuple[str, str], dict[str, "Against"]]


def _compared(table: Table, baseline: str, rows: Mapping[tuple[str, str], Comparison]) -> Compared:
    """Every arm of every task against the baseline, each response a family of its own for Holm."""
    found = {place: against(table, *place, baseline, row) for place, row in rows.items()}
    for name in COMPARED:
        if name != THROUGHPUT:  # which has its own already
            places = [place for place in found if name in found[place]]
            for place, one in zip(places, contrasts.adjusted([found[place][name] for place in places]), strict=True):
                found[place][name] = one
    return found


def _group(
    called: tuple[str, str],
    cells: Sequence[Capped],
    table: Table,
    baseline: str,
    judged: tuple[Mapping[tuple[str, str], Comparison], Compared],
) -> Group:
    (task, label), (rows, compared) = called, judged
    names = sorted({arm for its, arm, _ in table if its == task}, key=lambda name: (name != baseline, name))
    arms = [
        arm_of_task(table, task, name, [one for one in cells if one.arm == name], rows.get((task, name)), compared.get((task, name), {}))
        for name in names
    ]
    # Whose mean is not of all blocks is not put on it; as far as it is known it may still beat others.
    best = front(arms) - {one.name for one in arms if {THROUGHPUT, POWER} & one.unread.keys()}
    longest = max(cells, key=lambda one: len(one.iterations), default=None)
    return Group(
        name=task,
        label=label,
        title=titles.title(label, cells),
        caps=titles.caps(cells),
        slo_ms=titles.slo_ms(cells),
        steady=(len(steady(longest.iterations)), len(longest.iterations)) if longest else (0, 0),
        arms=tuple(replace(one, front=one.name in best) for one in arms),
        again=copies(cells),
    )


def _together(groups: Sequence[Group], table: Table, baseline: str) -> tuple[Together, ...]:
    """Every arm on all tasks: tasks are the same in every block and count alike; blocks are the replicates."""
    names = sorted({one.name for group in groups for one in group.arms if one.n}, key=lambda name: (name != baseline, name))
    made = [_all_tasks(name, groups, table, baseline) for name in names]
    rates, above = (contrasts.adjusted([getattr(one, field) for one in made]) for field in ("throughput", "above_against"))
    return tuple(replace(one, throughput=rate, above_against=share) for one, rate, share in zip(made, rates, above, strict=True))


def _all_tasks(name: str, groups: Sequence[Group], table: Table, baseline: str) -> Together:
    own, base = (_means(groups, table, arm, (name, baseline), THROUGHPUT, log=True) for arm in (name, baseline))
    own_above, base_above = (_means(groups, table, arm, (name, baseline), ABOVE_102, log=False) for arm in (name, baseline))
    tasks = _common(groups, table, (name, baseline), THROUGHPUT)
    mine = {group.name: one.holds for group in groups for one in group.arms if one.name == name and one.n}
    held = list(mine.values())
    # Of all its tasks, the baseline's or not: what an arm does where the baseline has nothing is done under a cap too.
    every = _blocks_of_all([contrasts.by_block(table, task, name, ABOVE_102) for task in mine], log=False)
    above = contrasts.mean(ABOVE_102, every.values())
    measured = {block for (task, arm, block), value in table.items() if arm == name and task in mine and isinstance(value, dict)}
    lacking = len(measured) - len(every)
    return Together(
        name=name,
        tasks=len(tasks),
        throughput=contrasts.difference(base, own, log=True),
        above=above,
        # A block that lacks a task is in no mean of all; the means of each task have it.
        holds=holds(above, sensed=set(held) != {"no sensor"}, whole=not lacking or set(held) == {"yes"}),
        held=(held.count("yes"), len(held)),
        lacking=lacking,
        above_against=contrasts.difference(base_above, own_above),
    )


def _common(groups: Sequence[Group], table: Table, arms: tuple[str, str], name: str) -> list[str]:
    """Tasks on which both arms have a figure."""
    return [group.name for group in groups if all(contrasts.by_block(table, group.name, arm, name) for arm in arms)]


def _means(groups: Sequence[Group], table: Table, arm: str, both: tuple[str, str], name: str, *, log: bool) -> dict[int, float]:  # noqa: PLR0913  # what is averaged, over what
    """Mean of one figure over the tasks that both arms have, in each block that has all of them."""
    return _blocks_of_all([contrasts.by_block(table, task, arm, name) for task in _common(groups, table, both, name)], log=log)


def _blocks_of_all(columns: Sequence[Mapping[int, float]], *, log: bool) -> dict[int, float]:
    """Mean over tasks, whose figures by block these are, in each block that has all of them."""
    blocks = set.intersection(*(set(column) for column in columns)) if columns else set()
    values = {block: [column[block] for column in columns] for block in sorted(blocks)}
    return {
        block: math.fsum(map(math.log, ones) if log else ones) / len(ones) for block, ones in values.items() if not log or min(ones) > 0
    }
