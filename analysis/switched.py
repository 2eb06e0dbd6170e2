"""Settings alternated within a process (`--design=switch`): segments as units, and carry-over."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.stats.effect import ENOUGH_PROCESSES, log_gains, unequal
from control.t_test import ALPHA

from .wording import percent, probability

if TYPE_CHECKING:
    from .pairing import Pairing, Reader
    from .terms import Cell, Comparison, Run


def expanded(run: Run) -> Run:
    """Return the run with each segment as a cell; a run without segments is returned unchanged.

    A pair's number encodes process and place, so that pairs of two runs can be matched.
    """
    if not run.is_switched:
        return run
    names = list(run.tweaksets)
    pairs = max(segment.block for cell in run.cells for segment in cell.segments)
    cells: list[Cell] = []
    for cell in sorted(run.cells, key=lambda cell: cell.order):
        before = ((cell.block - 1) * len(names) + names.index(cell.tweakset)) * pairs
        segments = cell.segments or (replace(cell, block=1, process=cell.block),)
        cells += [replace(segment, block=before + segment.block) for segment in segments]
    return replace(
        run, cells=tuple(replace(cell, order=order) for order, cell in enumerate(cells, 1))
    )


SETTINGS = ("settings alternated", "the effect of a setting at program start")
MONITOR = ("at work and stopped in turns", "the cost of a monitor's start and report")


def inside(pairing: Pairing, blocks: int) -> dict[str, Any]:
    each = max(map(len, pairing.processes))
    by_pair = not pairing.by_run and len(pairing.processes) < ENOUGH_PROCESSES
    return {
        "processes": len(pairing.processes),
        "carry_over": carry_over([(cell, other) for (_, cell), (_, other) in pairing.pairs]),
        "blocks": blocks * each if by_pair else blocks,
    }


def inside_notes(draft: Comparison, pairing: Pairing, read: Reader) -> list[str]:
    count, steps = len(pairing.processes), pairing.pairs[0][1][1].steps
    unit = (
        ""
        if pairing.by_run
        else " A process is the unit."
        if count >= ENOUGH_PROCESSES
        else f" It applies to {_these(count)} only."
    )
    settle = steps.warmup if steps else 0
    what, unseen = MONITOR if pairing.pairs[0][1][1].monitor else SETTINGS
    steps_word = "step" if settle == 1 else "steps"
    notes = [
        (
            f"{what} inside {_processes(count)}, {settle} settle {steps_word} after each switch: "
            f"{unseen} is not seen.{unit}"
        )
    ]
    gains = [
        log_gains(
            draft.primary_metric,
            *([read(entry[side], draft.primary_metric) for entry in process] for side in (0, 1)),
        )
        for process in pairing.processes
    ]
    differ = unequal(gains)
    if differ is not None and differ < ALPHA:
        notes.append(
            f"the effect differs between processes by more than chance (p {probability(differ)})."
        )
    # Where it does, that is the reason of the verdict.
    if draft.carry_over is not None and not draft.outlasts:
        early, late, p = draft.carry_over
        notes.append(
            f"carry-over: {percent(early)} in the first half of the segments, {percent(late)} in "
            f"the second (p {probability(p)})."
        )
    return notes


def outlasting(comparison: Comparison) -> str:
    early, late, p = comparison.carry_over or (0.0, 0.0, 1.0)
    return (
        f"carry-over: a switch outlasts its settle steps, {percent(early)} in the first half of "
        f"the segments and {percent(late)} in the "
        f"second (p {probability(p)}), so neither estimates the effect: measure whole runs "
        "(--design=matrix)."
    )


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _these(count: int) -> str:
    return "this process" if count == 1 else f"these {count} processes"


FEWEST_STEPS = 4  # two per half
FEWEST_PAIRS = 6  # with fewer, no signed-rank test can give less than 0.05


def carry_over(pairs: Sequence[tuple[Cell, Cell]]) -> tuple[float, float, float] | None:
    """Test pairs of segments, the baseline's first; None if they are too few or too short.

    Returns: the typical gains in the segments' first and second halves, and p, doubled for two
    signed-rank tests over the pairs: of the difference between the halves' median log gains,
    and of the slope of the log gain over the steps. Simulated with six processes and an effect of 5
    %, carry-over of three times the settle steps is found in 19 of 20 runs, shorter in none.
    """
    gains = [_step_gains(*pair) for pair in pairs]
    gains = [gain for gain in gains if len(gain) >= FEWEST_STEPS]
    if len(gains) < FEWEST_PAIRS or len({len(gain) for gain in gains}) > 1:
        return None
    half, middle = len(gains[0]) // 2, (len(gains[0]) - 1) / 2
    early, late = (
        [statistics.median(gain[part]) for gain in gains]
        for part in (slice(half), slice(-half, None))
    )
    differences = [after - before for before, after in zip(early, late, strict=True)]
    slopes = [math.fsum((at - middle) * gain for at, gain in enumerate(group)) for group in gains]
    return (
        math.expm1(statistics.median(early)),
        math.expm1(statistics.median(late)),
        min(1.0, 2 * min(signed_rank_p(differences), signed_rank_p(slopes))),
    )


def _step_gains(result: Cell, under: Cell) -> list[float]:
    entry, other = (
        cell.steps.wall_s[cell.steps.warmup :] if cell.steps else () for cell in (result, under)
    )
    return [math.log(before / after) for before, after in zip(entry, other, strict=True)]


# Up to this many differences without ties, sign patterns are enumerated; beyond, the normal
# distribution agrees to two digits.
EXACT = 25


def signed_rank_p(differences: Sequence[float]) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test, without zeros; 1 if none are left."""
    from scipy.stats import wilcoxon

    left = [value for value in differences if value != 0]
    if not left:
        return 1.0
    exact = len(left) <= EXACT and len({abs(value) for value in left}) == len(left)
    return float(wilcoxon(left, method="exact" if exact else "asymptotic", correction=True).pvalue)
