"""Power and energy of a cell's GPUs over its measured steps.

Energy is Σ P·Δt: the driver's own counter where there is one (`_energy_j_total`), else mean power times the measured time. What the
host draws is in neither.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from .averages import measured_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Cell

POWER, ENERGY = re.compile(r"(gpu\d+)_power_w_mean"), re.compile(r"(gpu\d+)_energy_j_total")


def power_w(cell: Cell) -> float | None:
    """Answer the mean power of all GPUs together, in watts; None where it was not measured."""
    found = [value for name, value in cell.telemetry.items() if POWER.fullmatch(name)]
    return math.fsum(found) if found else None


def energy_j(cell: Cell) -> float | None:
    """Answer the energy that all GPUs took in the measured steps, in joules; None where it was not measured."""
    counted = {match[1]: value for name, value in cell.telemetry.items() if (match := ENERGY.fullmatch(name))}
    watts = {match[1]: value for name, value in cell.telemetry.items() if (match := POWER.fullmatch(name))}
    seconds = measured_s(cell)
    if not counted and (not watts or seconds is None):
        return None
    return math.fsum(counted[gpu] if gpu in counted else watts[gpu] * (seconds or 0.0) for gpu in counted | watts)


def energy_j_per_sample(cells: Sequence[Cell]) -> float | None:
    """Answer all energy of some cells over all their samples, in joules; None where any of them lacks it."""
    if not cells:
        return None
    energy = [energy_j(cell) for cell in cells]
    samples = [sum(cell.steps.samples[cell.steps.warmup :]) if cell.steps is not None else None for cell in cells]
    if any(one is None for one in (*energy, *samples)):
        return None
    return math.fsum(one for one in energy if one is not None) / sum(one for one in samples if one is not None)


def why_missing(cells: Sequence[Cell]) -> str:
    """Say why there is no power: what the sampler wrote, or that nothing was written."""
    reasons = dict.fromkeys(
        reason for cell in cells for name, reason in cell.telemetry_missing.items() if re.fullmatch(r"nvml|sampler|gpu\d+(_power_w)?", name)
    )
    return "; ".join(reasons) or "the runs have no power in their telemetry"
