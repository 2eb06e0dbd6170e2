"""Cells of a block that took turns: which steps each made in which round, and a step's time cleared of what a round did to all alike."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING

from analysis.metrics import disagreements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Cell, Steps

    from .fields import Fields

    CellKey = tuple[str, str, str, int]

ADJUSTED = "step_time_round_adjusted_s"


def read(record: Fields, steps: Steps) -> tuple[float, ...]:
    """The mean time of a step in each round, seconds. Together the slices are all steps after the warm-up.

    Raises: Unreadable.
    """
    at, means = steps.warmup, []
    for number, part in enumerate(record.each("turns"), 1):
        first, count = part.whole("first"), part.whole("steps")
        if part.whole("round") != number or first != at or count < 1 or at + count > len(steps.wall_s):
            part.refuse(f"has {count} steps from {first} on, where {at} is the next of {len(steps.wall_s)}, in round {number}")
        means.append(fmean(steps.wall_s[at : at + count]))
        at += count
    if at != len(steps.wall_s):
        record.refuse(f"took turns with {at - steps.warmup} of its {len(steps.wall_s) - steps.warmup} steps after the warm-up")
    return tuple(means)


def cleared(rounds_s: Sequence[Sequence[float]]) -> list[float]:
    """One time an arm, of mean step times a round and arm (arms × rounds, seconds): what a round did to all arms alike is taken out.

    A round's level is the mean over arms of the log; an arm's value is the median over rounds of its log less that level, put back on the
    mean level: one sweep of a median polish (Tukey, Exploratory Data Analysis, 1977). The same is in `fixtures/record.py`.
    """
    logs = [[math.log(slice_s) for slice_s in arm] for arm in rounds_s]
    level = [fmean(of_round) for of_round in zip(*logs, strict=True)]
    return [math.exp(median(log - common for log, common in zip(arm, level, strict=True)) + fmean(level)) for arm in logs]


def adjusted(cells: dict[CellKey, Cell], records: dict[CellKey, Fields]) -> dict[CellKey, Cell]:
    """With each cell's step time, cleared of its rounds. Raises: Unreadable."""
    blocks: dict[tuple[str, str, int], list[CellKey]] = {}
    for (study, workload, tweakset, block), cell in cells.items():
        if cell.slices_s:
            blocks.setdefault((study, workload, block), []).append((study, workload, tweakset, block))
    found = dict(cells)
    for keys in blocks.values():
        for key in keys:
            if len(cells[key].slices_s) != len(cells[keys[0]].slices_s):
                records[key].refuse(
                    f"took turns in {len(cells[key].slices_s)} rounds, another of its block in {len(cells[keys[0]].slices_s)}"
                )
        for key, time_s in zip(keys, cleared([cells[key].slices_s for key in keys]), strict=True):
            wrong = disagreements(records[key].known_numbers("metrics", {ADJUSTED: time_s}), {ADJUSTED: time_s})
            cell = found[key]
            found[key] = replace(cell, metrics={**cell.metrics, ADJUSTED: time_s}, contradictions=(*cell.contradictions, *wrong))
    return found
