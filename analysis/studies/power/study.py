"""A capped run as a whole: back-end by back-end, task by task, every algorithm; back-ends are never mixed."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.plain import one_line
from analysis.stats.estimate import adjusted
from analysis.terms import Comparison, Refused, Run, UnknownName

from . import contrasts
from .cells import (
    ABOVE,
    ABOVE_102,
    LONGEST,
    OVER_SLO,
    P95,
    PER_IMAGE,
    POWER,
    RESPONSES,
    THROUGHPUT,
    WORST,
    PowerNames,
    capped,
    is_capped,
    most_of,
    steady,
)
from .contrasts import Table, copies, lost_of, nowhere, tabled
from .report_terms import NO_SENSOR, WATT, AllTasks, Capped, Foretold, Group, Holds, Iteration, MeasuredAlgorithm, PowerSide

if TYPE_CHECKING:
    from analysis.stats.estimate import Estimate, Mean


# The share of steady time above 1.02 times the cap, up to which a cap counts as held.
LIMIT = 0.05
# What is foretold: the prediction and the measurement.
PREDICTED: dict[str, Callable[[Iteration], tuple[float | None, float | None]]] = {
    "images/s": lambda iteration: (iteration.predicted_images_per_s, iteration.throughput_images_per_s),
    "largest reading": lambda iteration: (iteration.predicted_power, iteration.power_max),
}
COMPARED = (THROUGHPUT, ABOVE_102, ABOVE, POWER, PER_IMAGE, P95, OVER_SLO)


def is_held(above: Mean | None, *, sensed: bool = False, whole: bool = True) -> Holds:
    """Whether the cap is held, as far as the interval over blocks can say; one block has none and shows nothing.

    `sensed`: there was a sensor, so that without a mean its readings are missing. `whole`: no block lacks the share. What is missing may
    have been above, so that the blocks that are left cannot show that the cap is held; that it is not, they can.
    """
    if above is None:
        return "not shown" if sensed else "no sensor"
    if above.low is None or above.high is None:
        return "not shown"
    return "yes" if whole and above.high <= LIMIT else "no" if above.low > LIMIT else "not shown"


def arm_of_task(
    table: Table, task: str, name: str, cells: Sequence[Capped], row: Comparison | None, compared: Mapping[str, Estimate]
) -> MeasuredAlgorithm:
    """Return what the blocks of one algorithm come to."""
    blocks = [value for (its, arm, _), value in table.items() if (its, arm) == (task, name)]
    means = {
        response: made
        for response in RESPONSES
        if (made := contrasts.mean(response, contrasts.by_block(table, task, name, response).values())) is not None
    }
    counted = [iteration for cell in cells for iteration in steady(cell.iterations)]
    every = [iteration for cell in cells for iteration in cell.iterations]
    sensed = any(cell.power_source != NO_SENSOR or cell.unit != WATT for cell in cells)
    unread = unread_of([block for block in blocks if isinstance(block, dict)], cells, sensed=sensed)
    return MeasuredAlgorithm(
        name=name,
        n=sum(isinstance(block, dict) for block in blocks),
        blocks=len(blocks),
        verdict="not comparable" if row is None else row.verdict,
        reason="" if row is None else row.reason,
        holds=is_held(means.get(ABOVE_102), sensed=sensed, whole=ABOVE_102 not in unread),
        means=means,
        most=most_of(cells),
        against=compared,
        mde=None if row is None else row.mde,
        foretold=tuple(foretold(counted)),
        lost=dict(Counter(f"{block[0]}: {block[1].rstrip('.')}." for block in blocks if isinstance(block, tuple))),
        refused=dict(Counter(sentence for iteration in every for sentence in iteration.refused)),
        crashed=dict(Counter(sentence for iteration in every for sentence in iteration.lost)),
        infeasible=dict(Counter(sentence for cell in cells for sentence in dict.fromkeys(cell.infeasible))),
        astray=sum(iteration.astray for iteration in every),
        unread=unread,
        notes=() if row is None else tuple(note for note in row.notes if " left out: " not in note),
    )


def unread_of(blocks: Sequence[Mapping[str, float]], cells: Sequence[Capped], *, sensed: bool) -> dict[str, int]:
    """Count the measured blocks that lack a figure: response → blocks.

    A figure that no block has is none that is lost, but for time above 1.02 times the cap where there was a sensor. A rate of 0 has no
    logarithm and is in no mean either. Of the largest of all iterations those blocks count in which one is not known.
    """
    result = {}
    for name, response in RESPONSES.items():
        known = [block for block in blocks if name in block and (response.scale == "raw" or block[name] > 0)]
        if len(known) < len(blocks) and (any(name in block for block in blocks) or (sensed and name == ABOVE_102)):
            result[name] = len(blocks) - len(known)
    for name in (LONGEST, WORST):
        missing = {cell.block for cell in cells if any(getattr(iteration, name) is None for iteration in steady(cell.iterations))}
        if missing and name in most_of(cells):
            result[name] = len(missing)
    return result


def as_asked(rows: Iterable[Iteration]) -> list[Iteration]:
    """Return iterations that a prediction can be held against: all was as it was asked for, and all processes ran."""
    return [row for row in rows if not (row.refused or row.lost or row.astray)]


def foretold(rows: Iterable[Iteration]) -> list[Foretold]:
    """Hold predictions against measurements."""
    kept = as_asked(rows)
    result = []
    for what, of in PREDICTED.items():
        errors = [said / was - 1 for said, was in map(of, kept) if said is not None and was]
        if errors:
            result.append(Foretold(what, len(errors), statistics.median(errors), statistics.median(map(abs, errors))))
    return result


def front(arms: Sequence[MeasuredAlgorithm]) -> set[str]:
    """The arms that no other beats: none has as much throughput from as little power, and more of one of the two."""
    places = {arm.name: (arm.means[THROUGHPUT].value, -arm.means[POWER].value) for arm in arms if {THROUGHPUT, POWER} <= arm.means.keys()}
    return {
        name
        for name, own in places.items()
        if not any(other != own and all(theirs >= mine for theirs, mine in zip(other, own, strict=True)) for other in places.values())
    }


def in_order_of(names: Iterable[str]) -> list[str]:
    """Order by name, numbers by size: task 6 before task 13."""
    return sorted(names, key=lambda name: [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name)])


def labels_of(names: Iterable[str]) -> dict[str, str]:
    """What sentences call tasks: `task 6`, and what else sets them apart, where two would be called alike."""
    names = list(names)
    short = {name: next((part.replace("=", " ") for part in name.split() if part.startswith("task=")), name) for name in names}
    return {name: one_line(text if list(short.values()).count(text) == 1 else name, 120) for name, text in short.items()}


def title_of(label: str, cells: Sequence[Capped]) -> str:
    """What a table's head says of a task: its number, and what runs on which GPU, where that was told."""
    task: Mapping[str, object] = next((cell.task for cell in cells if cell.task), {})
    model, gpu, dataset = (task.get(key) for key in ("model", "gpu_of_parameters", "dataset"))
    if not isinstance(model, str):
        return label
    what = f"{model}{f' ({dataset})' if isinstance(dataset, str) and dataset else ''}{f' on {gpu}' if isinstance(gpu, str) else ''}"
    return one_line(f"{label}: {what}", 200)


def slo_ms_of(cells: Sequence[Capped]) -> float | None:
    """The latency that was to be kept, where one was told."""
    values = [float(value) for cell in cells if isinstance(value := cell.task.get("slo_ms"), int | float) and not isinstance(value, bool)]
    return values[0] if values else None


def caps_of(cells: Sequence[Capped]) -> tuple[float, ...]:
    """The caps of the longest run, in the order they came."""
    longest = max((cell.iterations for cell in cells), key=len, default=())
    return tuple(dict.fromkeys(iteration.cap for iteration in longest))


BASELINE = "powercap"


def sides(run: Run, refused: list[str], baseline: str | None = None) -> list[PowerSide]:
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
    names = PowerNames(run)
    cells = capped(run, names, wrong)
    refused += [*wrong, *nowhere(run, names, cells)]
    if not cells:
        raise Refused(wrong[0] if wrong else f"{run.origin}: no cell of the machine as it was found tells of iterations under a cap.")
    known = {names.arm(cell) for cell in run.cells if names.known(cell)}
    if baseline is not None and baseline not in known:
        raise UnknownName(f"{run.origin}: no algorithm {baseline!r} to compare with; it has {', '.join(sorted(known))}.")
    places = dict.fromkeys((cell.study, cell.backend) for cell in cells)
    result = []
    for place in places:
        mine = [cell for cell in cells if (cell.study, cell.backend) == place]
        result.append(_side(run, mine, tabled(mine, lost_of(run, names, place, cells)), baseline))
    return result


def _side(run: Run, cells: Sequence[Capped], table: Table, chosen: str | None) -> PowerSide:
    first = cells[0]
    measured = sorted({arm for (_, arm, _), value in table.items() if isinstance(value, dict)})
    baseline = chosen or (BASELINE if BASELINE in measured or not measured else measured[0])
    margin = run.studies[first.study].margin
    rows = contrasts.judged(table, baseline, run, margin) if any(arm == baseline for _, arm, _ in table) else {}
    compared = _compared(table, baseline, rows)
    tasks = in_order_of({task for task, _, _ in table})
    labels = labels_of(tasks)
    groups = tuple(
        _group(task, labels[task], [cell for cell in cells if cell.group == task], table, baseline, rows, compared) for task in tasks
    )
    return PowerSide(
        backend=first.backend,
        unit=first.unit,
        power_source=first.power_source,
        baseline=baseline,
        margin=margin,
        family=max((row.family for row in rows.values()), default=0),
        groups=groups,
        together=_together(groups, table, baseline) if len(groups) > 1 else (),
    )


Compared = dict[tuple[str, str], dict[str, "Estimate"]]


def _compared(table: Table, baseline: str, rows: Mapping[tuple[str, str], Comparison]) -> Compared:
    """Compare every arm of every task with the baseline: rates by the comparison that was made, shares by differences.

    Each response is a family of its own for Holm; throughput is adjusted in its comparison.
    """
    result: Compared = {place: {} for place in rows}
    for name in COMPARED:
        if RESPONSES[name].scale == "log":
            changes = [contrasts.ratio(row, name) for row in rows.values()]
        else:
            columns = [[contrasts.by_block(table, task, each, name) for each in (baseline, arm)] for task, arm in rows]
            changes = [contrasts.difference(*pair) for pair in columns]
        for place, change in zip(rows, changes if name == THROUGHPUT else adjusted(changes), strict=True):
            result[place][name] = change
    return result


def _group(
    task: str,
    label: str,
    cells: Sequence[Capped],
    table: Table,
    baseline: str,
    rows: Mapping[tuple[str, str], Comparison],
    compared: Compared,
) -> Group:
    names = sorted({arm for its, arm, _ in table if its == task}, key=lambda name: (name != baseline, name))
    arms = [
        arm_of_task(table, task, name, [cell for cell in cells if cell.arm == name], rows.get((task, name)), compared.get((task, name), {}))
        for name in names
    ]
    # Whose mean is not of all blocks is not put on it; as far as it is known it may still beat others.
    best = front(arms) - {arm.name for arm in arms if {THROUGHPUT, POWER} & arm.unread.keys()}
    longest = max(cells, key=lambda cell: len(cell.iterations), default=None)
    return Group(
        name=task,
        label=label,
        title=title_of(label, cells),
        caps=caps_of(cells),
        slo_ms=slo_ms_of(cells),
        steady=(len(steady(longest.iterations)), len(longest.iterations)) if longest else (0, 0),
        arms=tuple(replace(arm, front=arm.name in best) for arm in arms),
        again=copies(cells),
    )


def _together(groups: Sequence[Group], table: Table, baseline: str) -> tuple[AllTasks, ...]:
    """Every arm on all tasks: tasks are the same in every block and count alike; blocks are the replicates."""
    names = sorted({arm.name for group in groups for arm in group.arms if arm.n}, key=lambda name: (name != baseline, name))
    made = [_all_tasks(name, groups, table, baseline) for name in names]
    rates, above = (adjusted([getattr(together, field) for together in made]) for field in ("throughput", "above_against"))
    return tuple(replace(together, throughput=rate, above_against=share) for together, rate, share in zip(made, rates, above, strict=True))


def _all_tasks(name: str, groups: Sequence[Group], table: Table, baseline: str) -> AllTasks:
    common = {
        figure: [group.name for group in groups if all(contrasts.by_block(table, group.name, arm, figure) for arm in (baseline, name))]
        for figure in (THROUGHPUT, ABOVE_102)
    }
    holds = {group.name: arm.holds for group in groups for arm in group.arms if arm.name == name and arm.n}
    words = list(holds.values())
    # Of all its tasks, the baseline's or not: what an arm does where the baseline has nothing is done under a cap too.
    every = _means(table, name, ABOVE_102, holds)
    above = contrasts.mean(ABOVE_102, every.values())
    measured = {block for (task, arm, block), value in table.items() if arm == name and task in holds and isinstance(value, dict)}
    lacking = len(measured) - len(every)
    rates = [_means(table, arm, THROUGHPUT, common[THROUGHPUT], log=True) for arm in (baseline, name)]
    shares = [_means(table, arm, ABOVE_102, common[ABOVE_102]) for arm in (baseline, name)]
    return AllTasks(
        name=name,
        tasks=len(common[THROUGHPUT]),
        throughput=contrasts.difference(*rates, log=True),
        above=above,
        # A block that lacks a task is in no mean of all; the means of each task have it.
        holds=is_held(above, sensed=set(words) != {"no sensor"}, whole=not lacking or set(words) == {"yes"}),
        held=(words.count("yes"), len(words)),
        lacking=lacking,
        above_against=contrasts.difference(*shares),
    )


def _means(table: Table, arm: str, name: str, tasks: Iterable[str], *, log: bool = False) -> dict[int, float]:
    """Mean of a figure (or of its logarithm) over tasks, in each block that has all of them."""
    columns = [contrasts.by_block(table, task, arm, name) for task in tasks]
    blocks = sorted(set.intersection(*map(set, columns))) if columns else []
    values = {block: [column[block] for column in columns] for block in blocks}
    return {
        block: math.fsum(map(math.log, each) if log else each) / len(each) for block, each in values.items() if not log or min(each) > 0
    }
