"""Cells of a block that took turns: which steps each made in which round, and a step's time cleared of what a round did to all alike."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from analysis.metrics import disagreements
from control.turns import round_adjusted_s

from .fields import LONGEST_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Cell, Steps

    from .fields import Fields

    CellKey = tuple[str, str, str, int]

ADJUSTED = "step_time_round_adjusted_s"
AS_IT_IS_NOW = 12  # the schema from which on a file says that figure as it is reckoned here; of older ones it is reckoned anew
STARTS_IN_RANDOM_ORDER = 10  # and from which on no arm always starts first


def read(record: Fields, steps: Steps) -> tuple[tuple[float, ...], ...]:
    """The times of the steps of each round, seconds. Together the slices are all steps after the warm-up.

    Raises: Unreadable.
    """
    at, slices = steps.warmup, list[tuple[float, ...]]()
    for number, part in enumerate(record.each("turns"), 1):
        first, count = part.whole("first"), part.whole("steps")
        if part.whole("round") != number or first != at or count < 1 or at + count > len(steps.wall_s):
            part.refuse(f"has {count} steps from {first} on, where {at} is the next of {len(steps.wall_s)}, in round {number}")
        if slices and count != len(slices[0]):
            part.refuse(f"has {count} steps in round {number}, and {len(slices[0])} in the first")
        slices.append(steps.wall_s[at : at + count])
        at += count
    if at != len(steps.wall_s):
        record.refuse(f"took turns with {at - steps.warmup} of its {len(steps.wall_s) - steps.warmup} steps after the warm-up")
    return tuple(slices)


def _values_s(cells: Sequence[Cell]) -> list[float]:
    return round_adjusted_s([cell.slices_s for cell in cells], [cell.others_cpu_s for cell in cells])


def others(record: Fields) -> tuple[float | None, ...]:
    """The CPU time that others used in each round, seconds; None where that was not seen. Raises: Unreadable."""
    return tuple(part.up_to("others_cpu_s", LONGEST_S) if part.has("others_cpu_s") else None for part in record.each("turns"))


def starts_s(part: Fields, steps: Steps, slices_s: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """When each slice began, CLOCK_MONOTONIC; nothing where the file does not say. Raises: Unreadable."""
    if not part.has("start_monotonic_s"):
        return ()
    firsts = accumulate((len(slice_s) for slice_s in slices_s[:-1]), initial=steps.warmup)
    return part.numbers_at("start_monotonic_s", len(steps.wall_s), tuple(firsts))


def adjusted(cells: dict[CellKey, Cell], records: dict[CellKey, Fields]) -> dict[CellKey, Cell]:
    """With each cell's step time, cleared of its rounds. Raises: Unreadable."""
    blocks: dict[tuple[str, str, int], list[CellKey]] = {}
    for (study, workload, tweakset, block), cell in cells.items():
        if cell.slices_s:
            blocks.setdefault((study, workload, block), []).append((study, workload, tweakset, block))
    result = dict(cells)
    for keys in blocks.values():
        for key in keys:
            group, other = ([len(part) for part in cells[name].slices_s] for name in (key, keys[0]))
            if group != other:
                records[key].refuse(
                    f"took turns in {len(group)} rounds of {group[0]} steps, another of its block in {len(other)} of {other[0]}"
                )
        for key, time_s in zip(keys, _values_s([cells[key] for key in keys]), strict=True):
            told = records[key].whole("schema_version") >= AS_IT_IS_NOW
            wrong = disagreements(records[key].known_numbers("metrics", {ADJUSTED: time_s}), {ADJUSTED: time_s}) if told else ()
            cell = result[key]
            result[key] = replace(cell, metrics={**cell.metrics, ADJUSTED: time_s}, contradictions=(*cell.contradictions, *wrong))
    return result
