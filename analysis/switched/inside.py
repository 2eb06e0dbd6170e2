"""What is said of a contrast whose settings, or monitor, were alternated inside processes: what it stands on, and what it cannot see."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.stats.effect import ENOUGH_PROCESSES, log_gains, unequal
from analysis.wording import percent, probability
from control.t_test import ALPHA

from .carry_over import carry_over

if TYPE_CHECKING:
    from analysis.pairing import Pairing
    from analysis.reading import Reader
    from analysis.terms import Comparison


SETTINGS = ("settings alternated", "what a setting does at a program's start")
MONITOR = ("at work and stopped in turns", "what a monitor does at its start and for its report")


def inside(draft: Comparison, pairing: Pairing) -> Comparison:
    """The contrast with how many processes it was made in, and the test for what outlasts a switch; as it is where none was made."""
    if not pairing.processes:
        return draft
    over = carry_over([(cell, other) for (_, cell), (_, other) in pairing.pairs])
    each = max(map(len, pairing.processes))
    by_pair = not pairing.by_run and len(pairing.processes) < ENOUGH_PROCESSES
    return replace(
        draft,
        processes=len(pairing.processes),
        carry_over=None if over is None else (over.early, over.late, over.p),
        blocks=draft.blocks * each if by_pair else draft.blocks,
    )


def inside_notes(draft: Comparison, pairing: Pairing, read: Reader) -> list[str]:
    """Which design it stands on, what that cannot see, whether processes differ, and whether a switch outlasts its settle steps."""
    if not pairing.processes:
        return []
    count, steps = len(pairing.processes), pairing.pairs[0][1][1].steps
    unit = "" if pairing.by_run else " A process is the unit." if count >= ENOUGH_PROCESSES else f" It speaks of {_these(count)} alone."
    settle = steps.warmup if steps else 0
    what, unseen = MONITOR if pairing.pairs[0][1][1].monitor else SETTINGS
    steps_word = "step" if settle == 1 else "steps"
    notes = [f"{what} inside {_processes(count)}, {settle} settle {steps_word} after each switch: {unseen} is not seen.{unit}"]
    gains = [
        log_gains(draft.primary_metric, *([read(*entry[side], draft.primary_metric) for entry in process] for side in (0, 1)))
        for process in pairing.processes
    ]
    differ = unequal(gains)
    if differ is not None and differ < ALPHA:
        notes.append(f"its effect differs from process to process by more than chance (p {probability(differ)}).")
    if draft.carry_over is not None and not outlasts(draft):  # where it does, that is the reason of the verdict
        early, late, p = draft.carry_over
        notes.append(f"carry-over: {percent(early)} in the first half of the segments, {percent(late)} in the second (p {probability(p)}).")
    return notes


def outlasts(comparison: Comparison) -> bool:
    """Whether what stood before a switch acts on steps that count. Where nothing was switched (A/A) nothing can."""
    return comparison.carry_over is not None and comparison.carry_over[2] < ALPHA and not comparison.untouched


def outlasting(comparison: Comparison) -> str:
    early, late, p = comparison.carry_over or (0.0, 0.0, 1.0)
    return (
        f"carry-over: a switch outlasts its settle steps, {percent(early)} in the first half of the segments and {percent(late)} in the "
        f"second (p {probability(p)}), so neither is the effect: measure whole runs (--design=matrix)."
    )


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _these(count: int) -> str:
    return "this process" if count == 1 else f"these {count} processes"
