"""Each algorithm against the baseline, by the machinery that compares tweak sets: paired by block, on log ratios, Holm over a back-end.

To it a task is a workload and an algorithm a tweak set; a cell has its figures and no steps, for algorithms that set other batches
cannot do equal work in a step. Shares of time may be 0, where a ratio says nothing: they are compared by differences, block by block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.compare import Options, compare
from analysis.stats.estimate import FEWEST_CHANGES, Estimate, Mean, change_in, cost_of, differences, mean_of
from analysis.terms import AGAIN, STOCK, Cell, Comparison, Metric, Outcome, Run, Study, TweakSet, Workload
from control.t_test import LARGEST_LOG

from .cells import FIRST, RESPONSES, THROUGHPUT, PowerNames, figures_of

if TYPE_CHECKING:
    from .report_terms import Capped

RATES = tuple(name for name, response in RESPONSES.items() if response.scale == "log")
SHARES = tuple(name for name, response in RESPONSES.items() if response.scale == "raw")
# One block of one arm on one task: its figures, or the outcome and the reason why it has none.
Figures = dict[str, float]
Lost = tuple["Outcome", str]
Table = dict[tuple[str, str, int], "Figures | Lost"]


def judged(table: Table, baseline: str, run: Run, margin: float) -> dict[tuple[str, str], Comparison]:
    """Compare every arm with the baseline in throughput, and in all other rates beside it; the verdict stands on throughput.

    Returns: by task and arm. The family of Holm's adjustment is all of them.
    """
    arms, tasks = dict.fromkeys(arm for _, arm, _ in table), dict.fromkeys(task for task, _, _ in table)
    cells = [_cell(at, key, value) for at, (key, value) in enumerate(table.items())]
    study = Study("power", "", margin, run.design.blocks, Metric(THROUGHPUT, "higher"))
    made = replace(
        run,
        studies={study.name: study},
        workloads={task: Workload(task) for task in tasks},
        tweaksets={arm: TweakSet(arm) for arm in arms},
        cells=tuple(cells),
        baseline=baseline,
        design=replace(run.design, order=tuple(cell.id for cell in cells)),
    )
    others = tuple(name for name in RATES if name != THROUGHPUT)
    return {(comparison.workload, comparison.tweakset): comparison for comparison in compare(made, baseline, Options(metrics=others))}


def _cell(at: int, key: tuple[str, str, int], value: Figures | Lost) -> Cell:
    task, arm, block = key
    name = f"{task} {arm} b{block}"
    if isinstance(value, tuple):
        return Cell(name, "power", task, arm, block, at, *value)
    rates = {name: figure for name, figure in value.items() if name in RATES}
    return Cell(name, "power", task, arm, block, at, "measured", metrics=rates)


def ratio(comparison: Comparison, name: str) -> Estimate:
    """What a comparison says of one rate: the candidate is so much of the baseline more, whichever way is better."""
    effect = (
        comparison.primary if name == THROUGHPUT else next((effect for effect in comparison.others if effect.metric.name == name), None)
    )
    if effect is None:
        return Estimate(comparison.pairs, missing=comparison.reason or f"no {name} in the blocks of both")
    p_adjusted = comparison.p_adjusted if name == THROUGHPUT else None
    if effect.metric.better == "lower":
        return replace(cost_of(effect), p_adjusted=p_adjusted)
    return Estimate(effect.n_baseline, effect.gain, effect.low, effect.high, effect.p, p_adjusted)


def difference(base: Mapping[int, float], other: Mapping[int, float], *, log: bool = False) -> Estimate:
    """An arm less the baseline, block by block; with `log` values are logarithms already, and the answer is a ratio less 1."""
    changes = [*differences(base, other).values()]
    result = change_in(changes, log=log)
    if result.value is not None or len(changes) < FEWEST_CHANGES:
        return result
    value = math.expm1(min(changes[0], LARGEST_LOG)) if log else changes[0]
    return replace(result, value=value, missing=result.missing if any(changes) else "the same in every block")


def by_block(table: Table, task: str, arm: str, name: str) -> dict[int, float]:
    """Answer one figure of an arm on a task, block by block."""
    return {
        block: value[name]
        for (its, of, block), value in table.items()
        if (its, of) == (task, arm) and isinstance(value, dict) and name in value
    }


def mean(name: str, values: Iterable[float]) -> Mean | None:
    """Mean over blocks with its interval: geometric for rates, arithmetic for shares, whose interval ends at 0 and 1."""
    if RESPONSES[name].scale == "log":
        return mean_of([math.log(value) for value in values if value > 0], log=True)
    return mean_of([*values], within=(0.0, 1.0 if "_share" in name else math.inf))


def together(group: Sequence[Figures], name: str) -> float:
    """Put the cells of one arm in one block together, the arm and its copy: two looks at one thing are one value."""
    values = [figures[name] for figures in group]
    if RESPONSES[name].scale == "log" and min(values) > 0:
        return math.exp(math.fsum(map(math.log, values)) / len(values))
    return math.fsum(values) / len(values)


Key = tuple[str, str, int]  # task, arm, block


def tabled(cells: Sequence[Capped], lost: Mapping[Key, Lost]) -> Table:
    """Lay figures out; of a block in which a copy was lost the other stands."""
    figures: dict[Key, list[Figures]] = {}
    reasons: dict[Key, Lost] = dict(lost)
    for cell in cells:
        key = cell.group, cell.arm, cell.block
        result = figures_of(cell)
        if result:
            figures.setdefault(key, []).append(result)
        else:
            reason = f"{len(cell.iterations)} iterations: none is steady, which takes more than {FIRST} under one cap"
            reasons.setdefault(key, ("skipped", reason))
    table: Table = {}
    for key in sorted({*figures, *reasons}, key=lambda entry: (entry[2], entry[0], entry[1])):
        both = figures.get(key)
        table[key] = {name: together(both, name) for name in both[0] if all(name in record for record in both)} if both else reasons[key]
    return table


def lost_of(run: Run, names: PowerNames, place: tuple[str, str], read: Sequence[Capped]) -> dict[Key, Lost]:
    """Cells of a study and back-end that were not measured, or could not be read, with the reason.

    One that left the choice of the back-end to the run is of that which ran its task.
    """
    used = {capped.id for capped in read}
    ran = {capped.group: capped.backend for capped in read}
    result: dict[Key, Lost] = {}
    for cell in run.cells:
        if cell.tweakset in {STOCK, AGAIN} and cell.id not in used and names.known(cell):
            backend = names.backend(cell) or ran.get(names.group(cell))
            if (cell.study, backend) == place:
                measured = cell.outcome == "measured"
                reason = "what it told cannot be read" if measured else cell.reason or "no reason was recorded"
                result.setdefault((names.group(cell), names.arm(cell), cell.block), ("failed" if measured else cell.outcome, reason))
    return result


def nowhere(run: Run, names: PowerNames, read: Sequence[Capped]) -> list[str]:
    """Say of back-ends that were asked for and measured nothing why that is, a line each reason."""
    told = {capped.backend for capped in read}
    counts: dict[tuple[str, str], int] = {}
    for cell in run.cells:
        if names.known(cell) and cell.outcome != "measured" and names.backend(cell) not in {"", *told}:
            key = names.backend(cell), (cell.reason or "no reason was recorded").rstrip(".")
            counts[key] = counts.get(key, 0) + 1
    return [f"back-end {named}: {count} cells: {reason}." for (named, reason), count in counts.items()]


def copies(cells: Sequence[Capped]) -> Estimate:
    """Hold arms against their own copies in throughput: in each block the mean of the log-ratios of all arms, then over blocks."""
    values: dict[tuple[int, str], dict[bool, float]] = {}
    for cell in cells:
        rate = figures_of(cell).get(THROUGHPUT)
        if rate:
            values.setdefault((cell.block, cell.arm), {})[cell.again] = math.log(rate)
    changes: dict[int, list[float]] = {}
    for (block, _), both in values.items():
        if len(both) == 2:
            changes.setdefault(block, []).append(both[True] - both[False])
    means = {block: math.fsum(ones) / len(ones) for block, ones in changes.items()}
    return difference(dict.fromkeys(means, 0.0), means, log=True)
