"""What monitors cost by the logs of others: one run a condition, the training's own time, CPU as top saw it.

With one run a condition nothing can be claimed of a difference: it is printed, and the verdict is `not comparable`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.logs import dcgmi_dmon, nvidia_smi_csv, top_batch, training_output

# A condition that has only these may be what others are compared with: nothing, and the tool that watched nearly all of them.
BASELINES: tuple[tuple[str, ...], ...] = ((), ("top",))
# The processes whose CPU time a monitor causes; nv-hostengine is the daemon that samples for dcgmi.
COMMANDS = {"dcgmi": ("nv-hostengine", "dcgmi"), "nvidia-smi": ("nvidia-smi",), "top": ("top",), "nsys": ("nsys",), "ncu": ("ncu",)}
CAME_AND_WENT = "its processes came and went"


@dataclass(frozen=True, slots=True)
class Condition:
    """One run of a training under some monitors. `missing` says by file (`time`, `top`, …) why it is not there."""

    name: str
    monitors: tuple[str, ...]
    training: training_output.TrainingLog | None = None
    top: top_batch.TopLog | None = None
    dcgmi: dcgmi_dmon.DcgmiLog | None = None
    smi: nvidia_smi_csv.SmiLog | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def time_s(self) -> float | None:
        """Wall time of the training, as it printed it."""
        return None if self.training is None else self.training.time_s


@dataclass(frozen=True, slots=True)
class LogDifference:
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


def differences(conditions: Sequence[Condition]) -> list[LogDifference]:
    """Compare each condition with the baselines whose monitors it has, and others; those without a time or of other work are left out."""
    timed = [
        (condition, condition.time_s) for condition in conditions if condition.time_s is not None and not other_work(condition, conditions)
    ]
    return [
        LogDifference(condition.name, base.name, time_s / base_s - 1)
        for condition, time_s in timed
        for base, base_s in timed
        if base.monitors in BASELINES and {*base.monitors} < {*condition.monitors}
    ]


def spread(conditions: Sequence[Condition]) -> tuple[Condition, Condition, float] | None:
    """Answer the two baselines and by how much the slower one took longer; None where there are not two."""
    result = [condition for condition in conditions if condition.monitors in BASELINES and not other_work(condition, conditions)]
    bases = sorted([(condition.time_s, condition.name, condition) for condition in result if condition.time_s is not None])
    return (bases[-1][2], bases[0][2], bases[-1][0] / bases[0][0] - 1) if len(bases) > 1 else None


def other_work(condition: Condition, conditions: Sequence[Condition]) -> str:
    """Say why a training is not what the first condition's was; "" where its losses and accuracies are the same, digit by digit."""
    first = next((other.training for other in conditions if other.training is not None and other.time_s is not None), None)
    if first is None or condition.training is None or condition.time_s is None:
        return ""  # what did not end can be told from nothing
    if condition.training.tests != first.tests:
        return "its accuracies are others, so it is not the same training"
    same = np.array_equal(condition.training.loss, first.loss, equal_nan=True) and np.array_equal(condition.training.seen, first.seen)
    return "" if same else "its losses are others, so it is not the same training"


def shares(condition: Condition) -> list[Share]:
    """Give the CPU of each command of a monitor, and of the busiest other one: the training."""
    if condition.top is None:
        return []
    known = [command for commands in COMMANDS.values() for command in commands]
    spent: dict[str, float] = {}
    for snapshot in condition.top.snapshots:
        for process in snapshot.processes:
            spent[process.command] = spent.get(process.command, 0.0) + process.cpu_percent
    others = [command for command in spent if command not in known]
    wanted = [command for command in known if command in spent] + ([max(others, key=spent.__getitem__)] if others else [])
    return [_share(condition, condition.top, command) for command in wanted]


def _share(condition: Condition, log: top_batch.TopLog, command: str) -> Share:
    seen = [(shot.time_s, process) for shot in log.snapshots for process in shot.processes if process.command == command]
    each = [sum(process.cpu_percent for process in shot.processes if process.command == command) for shot in log.snapshots]
    span_s, cpu_s = (seen[-1][0] - seen[0][0], seen[-1][1].cpu_s - seen[0][1].cpu_s)
    if log.why_no_time:
        reason = log.why_no_time
    elif len({process.pid for _, process in seen}) > 1:
        reason = CAME_AND_WENT
    elif not span_s > 0:
        reason = "it was seen at one time only" if span_s == 0 else "the log has no times"
    else:
        reason = "" if cpu_s >= 0 else "its CPU clock was not recorded, or went back"
    alone = not reason
    return Share(
        condition=condition.name,
        command=command,
        shown_percent=float(np.mean(each)),
        steady_percent=float(np.mean(each[1:])) if len(each) > 1 else None,
        shown_in=len({id(shot) for shot in log.snapshots for process in shot.processes if process.command == command}),
        snapshots=len(log.snapshots),
        cpu_s=cpu_s if alone else None,
        clock_percent=100 * cpu_s / span_s if alone else None,
        why_no_clock=reason,
    )
