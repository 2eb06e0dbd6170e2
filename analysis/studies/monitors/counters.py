"""What dcgmi and nvidia-smi saw of the GPU in a condition: means, and energy by its counter, which its rows may give no power for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.logs import nvidia_smi_csv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from analysis.logs import dcgmi_dmon

    from .of_logs import Condition

COUNTERS = ("GPUTL", "GRACT", "SMACT", "SMOCC")
DCGMI_INTERVAL_S = 1.0  # as dcgmi does unless told otherwise; its rows have no time
CONSISTENT, ABSURD = 0.02, 0.10  # so far may energy and power differ, and so far do they not where rows are a second apart


@dataclass(frozen=True, slots=True)
class Counters:
    """What a monitor saw of the busiest GPU: means over all samples and over those in which it was busy; energy where there is a counter.

    `no_sm` counts the samples that say the GPU was busy (GRACT above 0.1) and no SM was. `how` says how rows without an index were told
    apart: by times, by counting, or not at all (GPU `?`, whose samples are those of all).
    """

    condition: str
    monitor: str
    gpu: str
    samples: int
    active: int
    mean: Mapping[str, float]
    mean_active: Mapping[str, float]
    interval_s: tuple[float, float] | None = None
    energy_j: float | None = None
    energy_w: float | None = None
    consistent: bool | None = None
    why_no_energy: str = ""
    no_sm: int = 0
    how: str = ""
    why_no_w: str = ""


def counters(condition: Condition) -> list[Counters]:
    """Give what dcgmi and nvidia-smi saw."""
    result = []
    if condition.dcgmi is not None:
        gpu = _busiest({entity: columns.get("GRACT", columns.get("GPUTL")) for entity, columns in condition.dcgmi.entities.items()})
        result += [_of_dcgmi(condition.name, gpu, condition.dcgmi)] if gpu else []
    if condition.smi is not None:
        gpu = _busiest({key: gpu.columns.get("utilization.gpu") for key, gpu in condition.smi.gpus.items()})
        result += [_of_smi(condition.name, gpu, condition.smi)] if gpu else []
    return result


def _busiest(activity: Mapping[str, NDArray[np.float64] | None]) -> str | None:
    """Answer who did most; the first of equals, None where no value was recorded."""
    means = {key: float(np.nanmean(column)) for key, column in activity.items() if column is not None and not np.isnan(column).all()}
    return max(means, key=means.__getitem__) if means else None


def _of_dcgmi(condition: str, gpu: str, log: dcgmi_dmon.DcgmiLog) -> Counters:
    columns = log.entities[gpu]
    busy = columns.get("SMACT", columns.get("GPUTL", np.array([]))) > 0
    names = [*COUNTERS, "POWER"]
    energy_j = off = None
    reason = _no_energy(columns.get("TOTEC"), log.units.get("TOTEC"))
    mean_w = _mean(columns.get("POWER", np.array([])))
    why_no_w = ""
    if not reason:
        total = columns["TOTEC"]
        energy_j = float(total[-1] - total[0]) / 1000
        energy_w = energy_j / ((len(total) - 1) * DCGMI_INTERVAL_S)
        off = abs(energy_w / mean_w - 1) if mean_w else None
        why_no_w = _no_seconds(gpu, log, energy_w, mean_w)
    return Counters(
        condition=condition,
        monitor="dcgmi",
        gpu=gpu,
        samples=log.samples(gpu),
        active=int(busy.sum()),
        mean=_means(columns, names),
        mean_active=_means({name: column[busy] for name, column in columns.items() if busy.size}, names),
        energy_j=energy_j,
        energy_w=energy_w if not reason and not why_no_w else None,
        consistent=None if off is None else off <= CONSISTENT,
        why_no_energy=reason,
        why_no_w=why_no_w,
        no_sm=int(((columns["GRACT"] > 0.1) & (columns["SMACT"] == 0)).sum()) if {"GRACT", "SMACT"} <= columns.keys() else 0,
    )


def _no_seconds(gpu: str, log: dcgmi_dmon.DcgmiLog, energy_w: float, mean_w: float | None) -> str:
    """Say why rows cannot be taken to be a second apart, which nothing in the log says; "" where nothing speaks against it."""
    kind, rows = gpu.split(maxsplit=1)[0], log.samples(gpu)
    most = max(log.samples(other) for other in log.entities if other.split()[0] == kind)
    if most - rows > CONSISTENT * rows:
        return f"{most - rows} of its rows are missing, as another {kind} has {most} and it has {rows}"
    if mean_w and abs(energy_w / mean_w - 1) > ABSURD:
        apart = f"at {DCGMI_INTERVAL_S:g} s a sample they would be {energy_w:.1f} W, and the mean power is {mean_w:.1f} W"
        return f"{apart}: the samples were taken at another interval, or some are missing"
    return ""


def _no_energy(total: NDArray[np.float64] | None, unit: str | None) -> str:
    """Say why no energy can be taken from the counter; "" where it can."""
    if total is None:
        return "TOTEC was not recorded"
    if unit != "mJ":
        return f"TOTEC is in {unit or 'no unit'}, not in mJ"
    if len(total) < 2 or np.isnan(total).any():
        return "TOTEC has too few values" if len(total) < 2 else "TOTEC lacks values"
    return "" if (np.diff(total) >= 0).all() else "TOTEC goes down: the counter was reset"


def _of_smi(condition: str, key: str, log: nvidia_smi_csv.SmiLog) -> Counters:
    gpu = log.gpus[key]
    busy = gpu.columns["utilization.gpu"] > 0
    names = ["utilization.gpu", "memory.used", "power.draw"]
    pauses = np.diff(gpu.time_s) if key != nvidia_smi_csv.UNKNOWN else np.array([])
    return Counters(
        condition=condition,
        monitor="nvidia-smi",
        gpu=key,
        samples=len(gpu.time_s),
        active=int(busy.sum()),
        mean=_means(gpu.columns, names),
        mean_active=_means({name: column[busy] for name, column in gpu.columns.items()}, names),
        why_no_energy="nvidia-smi has no counter of energy",
        how=log.how,
        interval_s=(float(pauses.mean()), float(pauses.std(ddof=1))) if len(pauses) > 1 and not np.isnan(pauses).any() else None,
    )


def _means(columns: Mapping[str, NDArray[np.float64]], names: Sequence[str]) -> dict[str, float]:
    result = {name: _mean(columns[name]) for name in names if name in columns}
    return {name: mean for name, mean in result.items() if mean is not None}


def _mean(column: NDArray[np.float64]) -> float | None:
    """The mean of what was recorded, None where nothing was."""
    return None if np.isnan(column).all() else float(np.nanmean(column))
