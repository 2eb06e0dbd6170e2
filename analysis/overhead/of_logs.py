"""What monitors cost by the logs of others: one run a condition, the training's own time, CPU as top saw it, counters of the GPU.

With one run a condition nothing can be claimed of a difference: it is printed, and the verdict is `not comparable`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from analysis.logs import nvidia_smi_csv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from analysis.logs import dcgmi_dmon, top_batch, training_output

# A condition that has only these may be what others are compared with: nothing, and the tool that watched nearly all of them.
BASELINES: tuple[tuple[str, ...], ...] = ((), ("top",))
# The processes whose CPU time a monitor causes; nv-hostengine is the daemon that samples for dcgmi.
COMMANDS = {"dcgmi": ("nv-hostengine", "dcgmi"), "nvidia-smi": ("nvidia-smi",), "top": ("top",), "nsys": ("nsys",), "ncu": ("ncu",)}
COUNTERS = ("GPUTL", "GRACT", "SMACT", "SMOCC")
DCGMI_INTERVAL_S = 1.0  # as dcgmi does unless told otherwise; its rows have no time
CAME_AND_WENT = "its processes came and went"
CONSISTENT = 0.02  # so far may energy and power differ


@dataclass(frozen=True, slots=True)
class Condition:
    """One run of a training under some monitors. `missing` says by file (`time`, `top`, …) why it is not there."""

    name: str
    monitors: tuple[str, ...]
    training: training_output.Log | None = None
    top: top_batch.Log | None = None
    dcgmi: dcgmi_dmon.Log | None = None
    smi: nvidia_smi_csv.Log | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def time_s(self) -> float | None:
        """Wall time of the training, as it printed it."""
        return None if self.training is None else self.training.time_s


@dataclass(frozen=True, slots=True)
class Difference:
    """How much longer a condition took than another: +0.01 is 1 % longer."""

    condition: str
    against: str
    fraction: float


@dataclass(frozen=True, slots=True)
class Share:
    """CPU of one command, in percent of one core.

    `shown_percent` is the mean over all snapshots of what top shows, those without the process counted as 0 (the study's way);
    `steady_percent` the same without the first, which covers an instant. `clock_percent` is by the process's own CPU clock: exact,
    None where it cannot be, which `why_no_clock` says. `cpu_s` is its seconds.
    """

    condition: str
    command: str
    shown_percent: float
    steady_percent: float | None
    shown_in: int
    snapshots: int
    cpu_s: float | None
    clock_percent: float | None
    why_no_clock: str = ""


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


def differences(conditions: Sequence[Condition]) -> list[Difference]:
    """Compare each condition with the baselines whose monitors it has, and others; those without a time or of other work are left out."""
    timed = [(one, one.time_s) for one in conditions if one.time_s is not None and not other_work(one, conditions)]
    return [
        Difference(one.name, base.name, time_s / base_s - 1)
        for one, time_s in timed
        for base, base_s in timed
        if base.monitors in BASELINES and {*base.monitors} < {*one.monitors}
    ]


def spread(conditions: Sequence[Condition]) -> tuple[Condition, Condition, float] | None:
    """Answer the two baselines and by how much the slower one took longer; None where there are not two."""
    found = [one for one in conditions if one.monitors in BASELINES and not other_work(one, conditions)]
    bases = sorted([(one.time_s, one.name, one) for one in found if one.time_s is not None])
    return (bases[-1][2], bases[0][2], bases[-1][0] / bases[0][0] - 1) if len(bases) > 1 else None


def other_work(one: Condition, conditions: Sequence[Condition]) -> str:
    """Say why a training is not what the first condition's was; "" where its losses and accuracies are the same, digit by digit."""
    first = next((other.training for other in conditions if other.training is not None and other.time_s is not None), None)
    if first is None or one.training is None or one.time_s is None:
        return ""  # what did not end can be told from nothing
    if one.training.tests != first.tests:
        return "its accuracies are others, so it is not the same training"
    same = np.array_equal(one.training.loss, first.loss, equal_nan=True) and np.array_equal(one.training.seen, first.seen)
    return "" if same else "its losses are others, so it is not the same training"


def shares(one: Condition) -> list[Share]:
    """Give the CPU of each command of a monitor, and of the busiest other one: the training."""
    if one.top is None:
        return []
    known = [command for commands in COMMANDS.values() for command in commands]
    spent: dict[str, float] = {}
    for snapshot in one.top.snapshots:
        for process in snapshot.processes:
            spent[process.command] = spent.get(process.command, 0.0) + process.cpu_percent
    others = [command for command in spent if command not in known]
    wanted = [command for command in known if command in spent] + ([max(others, key=spent.__getitem__)] if others else [])
    return [_share(one, one.top, command) for command in wanted]


def _share(one: Condition, log: top_batch.Log, command: str) -> Share:
    seen = [(shot.time_s, process) for shot in log.snapshots for process in shot.processes if process.command == command]
    each = [sum(process.cpu_percent for process in shot.processes if process.command == command) for shot in log.snapshots]
    span_s, cpu_s = (seen[-1][0] - seen[0][0], seen[-1][1].cpu_s - seen[0][1].cpu_s)
    if log.why_no_time:
        why = log.why_no_time
    elif len({process.pid for _, process in seen}) > 1:
        why = CAME_AND_WENT
    elif not span_s > 0:
        why = "it was seen at one time only" if span_s == 0 else "the log has no times"
    else:
        why = "" if cpu_s >= 0 else "its CPU clock was not recorded, or went back"
    alone = not why
    return Share(
        condition=one.name,
        command=command,
        shown_percent=float(np.mean(each)),
        steady_percent=float(np.mean(each[1:])) if len(each) > 1 else None,
        shown_in=len({id(shot) for shot in log.snapshots for process in shot.processes if process.command == command}),
        snapshots=len(log.snapshots),
        cpu_s=cpu_s if alone else None,
        clock_percent=100 * cpu_s / span_s if alone else None,
        why_no_clock=why,
    )


def counters(one: Condition) -> list[Counters]:
    """Give what dcgmi and nvidia-smi saw."""
    found = []
    if one.dcgmi is not None:
        gpu = _busiest({entity: columns.get("GRACT", columns.get("GPUTL")) for entity, columns in one.dcgmi.entities.items()})
        found += [_of_dcgmi(one.name, gpu, one.dcgmi)] if gpu else []
    if one.smi is not None:
        gpu = _busiest({key: gpu.columns.get("utilization.gpu") for key, gpu in one.smi.gpus.items()})
        found += [_of_smi(one.name, gpu, one.smi)] if gpu else []
    return found


def _busiest(activity: Mapping[str, NDArray[np.float64] | None]) -> str | None:
    """Answer who did most; the first of equals, None where no value was recorded."""
    means = {key: float(np.nanmean(column)) for key, column in activity.items() if column is not None and not np.isnan(column).all()}
    return max(means, key=means.__getitem__) if means else None


def _of_dcgmi(condition: str, gpu: str, log: dcgmi_dmon.Log) -> Counters:
    columns = log.entities[gpu]
    busy = columns.get("SMACT", columns.get("GPUTL", np.array([]))) > 0
    names = [*COUNTERS, "POWER"]
    energy_j = energy_w = None
    why = _no_energy(columns.get("TOTEC"), log.units.get("TOTEC"))
    if not why:
        total = columns["TOTEC"]
        energy_j = float(total[-1] - total[0]) / 1000
        energy_w = energy_j / ((len(total) - 1) * DCGMI_INTERVAL_S)
    mean_w = _mean(columns.get("POWER", np.array([])))
    return Counters(
        condition=condition,
        monitor="dcgmi",
        gpu=gpu,
        samples=log.samples(gpu),
        active=int(busy.sum()),
        mean=_means(columns, names),
        mean_active=_means({name: column[busy] for name, column in columns.items() if busy.size}, names),
        energy_j=energy_j,
        energy_w=energy_w,
        consistent=abs(energy_w / mean_w - 1) <= CONSISTENT if energy_w is not None and mean_w else None,
        why_no_energy=why,
        no_sm=int(((columns["GRACT"] > 0.1) & (columns["SMACT"] == 0)).sum()) if {"GRACT", "SMACT"} <= columns.keys() else 0,
    )


def _no_energy(total: NDArray[np.float64] | None, unit: str | None) -> str:
    """Say why no energy can be taken from the counter; "" where it can."""
    if total is None:
        return "TOTEC was not recorded"
    if unit != "mJ":
        return f"TOTEC is in {unit or 'no unit'}, not in mJ"
    if len(total) < 2 or np.isnan(total).any():
        return "TOTEC has too few values" if len(total) < 2 else "TOTEC lacks values"
    return "" if (np.diff(total) >= 0).all() else "TOTEC goes down: the counter was reset"


def _of_smi(condition: str, key: str, log: nvidia_smi_csv.Log) -> Counters:
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
    found = {name: _mean(columns[name]) for name in names if name in columns}
    return {name: mean for name, mean in found.items() if mean is not None}


def _mean(column: NDArray[np.float64]) -> float | None:
    """The mean of what was recorded, None where nothing was."""
    return None if np.isnan(column).all() else float(np.nanmean(column))
