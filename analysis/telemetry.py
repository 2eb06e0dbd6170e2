"""Telemetry in full: what the sampler saw beside each cell, sample by sample.

Our runs keep it in a compressed file beside the JSON, which names and hashes it; DeepTweak's CSV has a value a step in the run itself.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .terms import Cell, Run

CLOCK = "t_monotonic_s"
REMEDY = "keep the two files together, or take both from their source again"

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
    name, digest = run.telemetry_file.get("name"), run.telemetry_file.get("sha256")
    if not isinstance(name, str) or not isinstance(digest, str):
        raise Missing("the run was saved without telemetry samples")
    if not name or Path(name).name != name:
        raise Missing(f"the run names {name!r} as its telemetry file, which is not a file beside it")
    path = Path(run.origin).with_name(name)
    try:
        if path.exists() and not path.is_file():
            raise Missing(f"{name} beside the run is no file; {REMEDY}")
        packed = path.read_bytes()
    except (OSError, ValueError) as error:  # a name that no file can have is a ValueError
        raise Missing(f"{name} cannot be read beside the run ({getattr(error, 'strerror', error)}); {REMEDY}") from None
    if hashlib.sha256(packed).hexdigest() != digest:
        raise Missing(f"{name} is not the file this run wrote (other sha256); {REMEDY}")
    cells = {cell.id: cell for cell in run.cells}
    try:
        found = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
        return {one["cell"]: _sampled(one["columns"], cells[one["cell"]]) for one in found if one["cell"] in cells}
    except (OSError, EOFError, LookupError, TypeError, ValueError) as error:
        raise Missing(f"{name} is damaged ({type(error).__name__}: {error}); {REMEDY}") from None


def _sampled(columns: dict[str, list[float | None]], cell: Cell) -> Series:
    clock = [float(at) for at in columns.pop(CLOCK) if at is not None]
    for name, values in columns.items():
        if len(values) != len(clock):
            raise ValueError(f"{cell.id} has {len(values)} {name} for {len(clock)} times")
    window = (None, None) if cell.window_s is None else tuple(at - clock[0] for at in cell.window_s)
    kept = {name: tuple(map(_number, values)) for name, values in columns.items()}
    return Series(tuple(at - clock[0] for at in clock), kept, *window)


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is no sample")
    return float(value)
