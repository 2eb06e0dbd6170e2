"""`compare RUN --arm=COLUMN`: compare the levels of any column, such as policy or batch size.

Each level becomes a tweak set of the same run, so all checks and notes of `compare` apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from control.names import first_few

from .arms import NODE, TWEAKSET, WORKLOAD, Arm, must_have
from .checks import untouched_apart
from .compare import compare, failed_guards
from .terms import Metric, Refused, Run, SavedTweakSet
from .wording import SHOWN_NAMES, joined_names

if TYPE_CHECKING:
    from .terms import Cell

PREFIX = "param."
TOGETHER = "side by side"  # the workload name under which workloads are compared


class Levels(NamedTuple):
    """The two arms of a comparison of levels.

    notes: sentences on what is left out and on untouched arms that differ
    doubted: why no conclusion is drawn for a level, by workload and level
    """

    baseline: Arm
    candidate: Arm
    notes: list[str]
    doubted: dict[tuple[str, str], str]


def by_column(
    arm: Arm,
    column: str,
    baseline: str | None,
    metric: Metric | None = None,
    only: Sequence[str] = (),
) -> Levels:
    """Relabel an arm's runs so that the levels of a column are their tweak sets.

    Cells are compared if they differ in the column only; a parameter that is unset on one side is
    no difference. `only` restricts the workloads, or the levels of the column `workload`.

    Raises: UnknownName, if the column or baseline does not exist. Refused, if no baseline is named,
    or there is nothing to compare it with.
    """
    runs, notes, doubted = [], dict[str, None](), dict[tuple[str, str], str]()
    only = joined_names(only, {name for run in arm.runs for name in run.workloads})
    for run in arm.runs:
        must_have(run, "workload", only, run.workloads)
        if metric is not None:
            must_have(
                run, "metric", [metric.name], {name for cell in run.cells for name in cell.metrics}
            )
        tweakset = arm.tweakset or run.baseline
        levels = _levels(run, column, tweakset, only)
        _must_be_compared(run, column, [*dict.fromkeys(levels.values())], baseline)
        groups, apart = _groups(run, column, levels, str(baseline))
        if not groups:
            raise Refused(f"{run.origin}: {next(iter(apart))}")
        used = {place[0] for arms in groups.values() for place in arms.values()}
        compared = [one for one in compare(run) if one.workload in used and one.primary]
        notes |= dict.fromkeys([*apart, *untouched_apart(compared)])
        failed = failed_guards(compared)
        doubted |= {
            (group, level): reason
            for group, arms in groups.items()
            for level, (workload, _) in arms.items()
            if (reason := failed.get(workload) or failed.get(arms[str(baseline)][0]))
        }
        runs.append(_relabelled(run, column, tweakset, groups, metric))
    return Levels(
        Arm(arm.label, tuple(runs), baseline), Arm(arm.label, tuple(runs)), list(notes), doubted
    )


Place = tuple[str, str | None]  # a workload, and a node if that is the column


def _levels(run: Run, column: str, tweakset: str, only: Sequence[str]) -> dict[Place, str]:
    cells = [
        cell
        for cell in run.cells
        if cell.tweakset == tweakset and (not only or cell.workload in only)
    ]
    if column == WORKLOAD:
        return {(cell.workload, None): cell.workload for cell in cells}
    if column == NODE:
        return {(cell.workload, cell.node): cell.node for cell in cells if cell.node is not None}
    name = column.removeprefix(PREFIX)
    known = {name: None for cell in cells for name in run.workloads[cell.workload].params}
    if name not in known:
        must_have(run, "column", [name], {WORKLOAD, NODE, TWEAKSET, *known} - {name})
    return {
        (cell.workload, None): str(params[name])
        for cell in cells
        if (params := run.workloads[cell.workload].params).get(name) is not None
    }


def _must_be_compared(run: Run, column: str, levels: Sequence[str], baseline: str | None) -> None:
    if baseline is None:
        there = first_few(sorted(levels), SHOWN_NAMES)
        raise Refused(f"--arm={column} needs --baseline with one of the levels: {there}.")
    must_have(run, column, [baseline], levels)
    if len(levels) == 1:
        raise Refused(
            f"{run.origin}: {column} is {baseline} in every cell, so there is no other level to "
            "compare."
        )


# By the baseline's workload: each arm's name, and the workload and node it consists of.
Groups = dict[str, dict[str, Place]]


def _groups(
    run: Run, column: str, levels: Mapping[Place, str], baseline: str
) -> tuple[Groups, list[str]]:
    if column == WORKLOAD:
        return {
            TOGETHER: {
                level: place
                for place, level in sorted(levels.items(), key=lambda one: one[1] != baseline)
            }
        }, []
    bases = [place for place, level in levels.items() if level == baseline]
    groups: Groups = {}
    measured = {
        cell.workload for cell in run.cells if cell.workload not in {name for name, _ in levels}
    }
    apart = [f"Left out {name}: it has no {column}." for name in sorted(measured)]
    for place, level in levels.items():
        if level == baseline:
            continue
        differ = {base: [*_differences(run, column, base, place)] for base in bases}
        matched = [base for base in bases if not differ[base]]
        if len(matched) == 1:
            arms = groups.setdefault(matched[0][0], {baseline: matched[0]})
            arms[_free_name(run, level, place, arms)] = place
        elif matched:
            both = " and ".join(name for name, _ in matched[:2])
            apart.append(
                f"Left out {place[0]}: both {both} have {column} {baseline}, so the baseline is "
                "ambiguous."
            )
        else:
            least = min(differ.values(), key=len)
            differing = ", ".join(least)
            apart.append(
                f"Left out {place[0]}: its cells also differ from those with {column} {baseline} "
                f"in {differing}."
            )
    return groups, apart


def _differences(run: Run, column: str, base: Place, other: Place) -> Iterator[str]:
    first, second = (run.workloads[place[0]] for place in (base, other))
    if first.name.partition(":")[0] != second.name.partition(":")[0]:
        yield WORKLOAD
    names = (first.params.keys() | second.params.keys()) - {column.removeprefix(PREFIX)}
    for name in sorted(names):
        # A parameter that the run does not record differs from every value.
        before, after = (one.params.get(name, "unknown") for one in (first, second))
        if before is not None and after is not None and before != after:
            yield f"{name} ({after} against {before})"


def _free_name(run: Run, level: str, place: Place, taken: Mapping[str, Place]) -> str:
    if level not in taken:
        return level
    first, second = (run.workloads[name].params for name in (taken[level][0], place[0]))
    others = (f"{name}={value}" for name, value in second.items() if value != first.get(name))
    return f"{level} ({', '.join(others)})"


def _relabelled(run: Run, column: str, tweakset: str, groups: Groups, metric: Metric | None) -> Run:
    own: dict[Place, list[Cell]] = {}
    for cell in run.cells:
        if cell.tweakset == tweakset:
            own.setdefault((cell.workload, cell.node if column == NODE else None), []).append(cell)
    names = dict.fromkeys(name for arms in groups.values() for name in arms)
    first = next(iter(next(iter(groups.values())).values()))[0]
    return replace(
        run,
        studies={
            name: replace(study, baseline=(), primary=metric or study.primary)
            for name, study in run.studies.items()
        },
        workloads={
            group: replace(made_of, name=group, primary=metric or made_of.primary)
            for group in groups
            for made_of in (run.workloads.get(group, run.workloads[first]),)
        },
        tweaksets={name: SavedTweakSet(name, level_of=column) for name in names},
        cells=tuple(
            replace(cell, workload=group, tweakset=name)
            for group, arms in groups.items()
            for name, place in arms.items()
            for cell in own[place]
        ),
        baseline=next(iter(names)),
    )
