"""Telemetry in full: what the sampler saw beside each cell, sample by sample.

Our runs keep it in a compressed file beside the JSON, which names and hashes it; DeepTweak's CSV has a value a step in the run itself.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .formats import record_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .terms import Cell, Run

CLOCK = "t_monotonic_s"

Column = tuple["float | None", ...]


class Missing(Exception):
    """There is no telemetry to read; the message is the reason, as it is printed where a picture would stand."""


@dataclass(frozen=True, slots=True)
class Series:
    """The samples of one cell: seconds since the first of them, and equally long columns by name, None where a value is missing.

    The measured steps (warm-up and start left out) ran from `measured_from_s` to `measured_to_s`; None where the file does not say.
    """

    time_s: tuple[float, ...]
    columns: Mapping[str, Column]
    measured_from_s: float | None = None
    measured_to_s: float | None = None


def series_of(run: Run) -> dict[str, Series]:
    """Answer the samples of each cell by its id; a cell that nothing was sampled beside is absent.

    Raises: Missing, where the run has no telemetry, its file is not there, or it is not the file that the run wrote.
    """
    inside = {cell.id: _by_step(cell) for cell in run.cells if cell.series and cell.steps is not None}
    return inside or _from_file(run)


def _by_step(cell: Cell) -> Series:
    """A row a step, written when the step ended: time is the sum of the steps, so that the first sample closes the first step."""
    if cell.steps is None:
        raise ValueError("a cell without steps has no time")
    wall_s, warmup = cell.steps.wall_s, cell.steps.warmup
    time_s = tuple(end - wall_s[0] for end in accumulate(wall_s))
    measured_from_s = time_s[warmup - 1] if warmup else -wall_s[0]
    return Series(time_s, cell.series, measured_from_s, time_s[-1])


def _from_file(run: Run) -> dict[str, Series]:
    named = run.telemetry_file
    if not isinstance(named.get("name"), str) or not isinstance(named.get("sha256"), str):
        raise Missing("the run was saved without telemetry samples")
    cells = {cell.id: cell for cell in run.cells}
    try:
        result = map(json.loads, record_file.lines_of(Path(run.origin), named))
        return {one["cell"]: _sampled(one["columns"], cells[one["cell"]]) for one in result if one["cell"] in cells}
    except record_file.Damaged as error:
        raise Missing(str(error)) from None
    except (LookupError, TypeError, ValueError) as error:
        raise Missing(f"{named['name']} is damaged ({type(error).__name__}: {error}); {record_file.REMEDY}") from None


def _sampled(columns: dict[str, list[float | None]], cell: Cell) -> Series:
    clock = [float(at) for at in columns.pop(CLOCK) if at is not None]
    for name, values in columns.items():
        if len(values) != len(clock):
            raise ValueError(f"{cell.id} has {len(values)} {name} for {len(clock)} times")
    window = (None, None) if cell.window_s is None else tuple(at - clock[0] for at in cell.window_s)
    kept = {name: _numbers(values) for name, values in columns.items()}
    return Series(tuple(at - clock[0] for at in clock), kept, *window)


def _numbers(values: Sequence[Any]) -> tuple[float | None, ...]:
    kinds = {*map(type, values)}
    if kinds <= {float, int} and all(map(math.isfinite, values)):  # as most are, and there are hundreds of thousands
        return tuple(map(float, values))
    return tuple(map(_number, values))


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is no sample")
    return float(value)
