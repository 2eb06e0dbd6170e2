"""A folder of somebody's overhead study: `ex4_model_s.txt`, `ex4_topLog.txt`, … in a folder a kind of monitor, in one a training.

Each `exN`, and `again`, is a condition: one run of a training. Which monitors ran in it is known by the logs they left and by the study.
With one run a condition nothing can be claimed of a difference: it is printed, and the verdict is `not comparable`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.files import read_whole
from analysis.logs.nvidia_smi import UNKNOWN, SmiLog, read_nvidia_smi
from analysis.logs.readers import DcgmiLog, TopLog, TrainingLog, read_dcgmi, read_top, read_training
from analysis.plain import one_line
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = re.compile(r"(ex[1-9]\d?|again)_(.+?)\.(txt|log|csv)", re.IGNORECASE)
NUMBERED = re.compile(r"\d\d-(.+)")  # `03-dcgmi`: a kind of monitor, in the folder of its training
DEEPEST = 4
WATCHING = ("dcgmi", "nvidia-smi", "top")  # those that leave a log
# What the study ran (EuroMLSys'23). Profilers left no text, and of some conditions not all logs were published.
STUDY: Mapping[str, tuple[str, ...]] = {
    "ex1": (),
    "ex2": ("top",),
    "ex3": ("nvidia-smi",),
    "ex4": ("nvidia-smi", "top"),
    "ex5": ("dcgmi", "top"),
    "ex6": WATCHING,
    "ex7": ("nsys", *WATCHING),
    "ex8": ("ncu", *WATCHING),
    "again": ("torch.profiler", "nvidia-smi", "top"),
}
# A condition that has only these may be what others are compared with: nothing, and the tool that watched nearly all of them.
BASELINES: tuple[tuple[str, ...], ...] = ((), ("top",))
# The processes whose CPU time a monitor causes; nv-hostengine is the daemon that samples for dcgmi.
COMMANDS = ("nv-hostengine", "dcgmi", "nvidia-smi", "top", "nsys", "ncu")
CAME_AND_WENT = "its processes came and went"
COUNTERS = ("GPUTL", "GRACT", "SMACT", "SMOCC", "POWER")
QUERIED = ("utilization.gpu", "memory.used", "power.draw")
DCGMI_INTERVAL_S = 1.0  # as dcgmi does unless configured otherwise; its rows have no time
CONSISTENT, ABSURD = 0.02, 0.10  # so far may energy and power differ, and so far do they not where rows are a second apart


@dataclass(frozen=True, slots=True)
class Condition:
    """One run of a training under some monitors. `missing` says by file (`time`, `top`, …) why it is not there."""

    name: str
    monitors: tuple[str, ...]
    training: TrainingLog | None = None
    top: TopLog | None = None
    dcgmi: DcgmiLog | None = None
    smi: SmiLog | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def time_s(self) -> float | None:
        return None if self.training is None else self.training.time_s

    @property
    def monitors_text(self) -> str:
        return ", ".join(self.monitors) or "none"


@dataclass(frozen=True, slots=True)
class Training:
    """One training under several conditions, in their order; `unread` are files of no known kind, `absent` conditions without any."""

    name: str
    conditions: tuple[Condition, ...]
    absent: tuple[str, ...]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogFolder:
    origin: str
    trainings: tuple[Training, ...]
    missing: tuple[str, ...]


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


def is_it(path: Path) -> bool:
    return path.is_dir() and next(_files(path), None) is not None


def read(folder: Path) -> LogFolder:
    """Read all conditions at or under a folder. A log that cannot be read is missing, with the reason.

    Raises: Unreadable, where there is no file of a condition.
    """
    files: dict[Path, list[tuple[Path, re.Match[str]]]] = {}
    for path, match in _files(folder):
        above = path.resolve().parent
        files.setdefault(above.parent if NUMBERED.fullmatch(above.name) else above, []).append((path, match))
    if not files:
        raise Unreadable(f"{folder}: no file of a condition (ex1_model_s.txt, ex1_topLog.txt, …) in it; name the folder that holds them.")
    trainings = tuple(_training(place.name, files[place]) for place in sorted(files))
    is_heavy = any("resnet" in training.name.lower() for training in trainings)
    return LogFolder(str(folder), trainings, () if is_heavy else ("no file of the heavy training (ResNet-50), so nothing is said of it",))


def _files(folder: Path) -> Iterator[tuple[Path, re.Match[str]]]:
    seen: set[Path] = set()
    for depth in range(DEEPEST):
        for path in sorted(folder.glob("/".join(["*"] * (depth + 1)))):
            match = FILE.fullmatch(path.name)
            if match and path.is_file() and (real := path.resolve()) not in seen:
                seen.add(real)
                yield path, match


def _training(name: str, files: Sequence[tuple[Path, re.Match[str]]]) -> Training:
    conditions: dict[str, dict[str, list[Path]]] = {}
    unread = []
    for path, match in files:
        kind = next((kind for kind, (pattern, _) in KINDS.items() if re.fullmatch(pattern, match[2], re.IGNORECASE)), None)
        if kind is None:
            unread.append(path.name)
        else:
            conditions.setdefault(match[1].lower(), {}).setdefault(kind, []).append(path)
    order = sorted(conditions, key=lambda text: (not text.startswith("ex"), len(text), text))
    absent = tuple(text for text in STUDY if text not in conditions)
    return Training(name, tuple(_condition(text, conditions[text]) for text in order), absent, tuple(unread))


def _condition(name: str, files: Mapping[str, Sequence[Path]]) -> Condition:
    missing: dict[str, str] = {}
    logs: dict[str, Any] = {}
    for kind, paths in files.items():
        if len(paths) > 1:
            missing[kind] = f"{len(paths)} files: {', '.join(map(str, paths))}; leave the one that is meant"
            continue
        try:
            logs[kind] = KINDS[kind][1](paths[0])
        except Unreadable as error:
            missing[kind] = one_line(error)
    complaints = logs.pop("errors", "")
    notes = [
        f"{kind}: {len(log.ignored)} line{'' if len(log.ignored) == 1 else 's'} left out; {log.ignored[0]}"
        for kind, log in logs.items()
        if log.ignored
    ]
    training: TrainingLog | None = logs.get("training")
    if "training" not in files:
        missing["training"] = "no output of the training, so no time and no accuracy"
    elif training is not None and training.time_s is None:
        missing["time"] = training.why_no_time
    ran = STUDY.get(name, ())
    missing |= {text: f"the study ran {text} here, and there is no log of it" for text in ran if text in WATCHING and text not in files}
    return Condition(
        name=name,
        monitors=(*(text for text in ran if text not in WATCHING), *(text for text in WATCHING if text in {*files, *ran})),
        training=training,
        top=logs.get("top"),
        smi=logs.get("nvidia-smi"),
        dcgmi=logs.get("dcgmi"),
        missing=missing,
        notes=(*notes, complaints) if complaints else tuple(notes),
    )


def _complaints(path: Path) -> str:
    """What the training printed on stderr: its first line and how many there are; "" for an empty file."""
    lines = [line for line in read_whole(path).decode(errors="replace").splitlines() if line.strip()]
    return f"it complained in {len(lines)} lines, first: {one_line(lines[0], 100)}" if lines else ""


# Kind of file -> how its name goes on after the condition, and its reader.
KINDS: Mapping[str, tuple[str, Callable[[Path], Any]]] = {
    "training": (r"model(_s)?", read_training),
    "errors": (r"model_e", _complaints),
    "top": (r"top_?log", read_top),
    "nvidia-smi": (r"nvsm_?log", read_nvidia_smi),
    "dcgmi": (r"dcgmi_?log", read_dcgmi),
}


def differences(conditions: Sequence[Condition]) -> list[LogDifference]:
    """Compare each condition with the baselines whose monitors it has, and others; those without a time or of other work are left out."""
    timed = _timed(conditions)
    return [
        LogDifference(condition.name, base.name, time_s / base_s - 1)
        for time_s, condition in timed
        for base_s, base in timed
        if base.monitors in BASELINES and {*base.monitors} < {*condition.monitors}
    ]


def spread(conditions: Sequence[Condition]) -> tuple[Condition, Condition, float] | None:
    """The slowest and the fastest baseline and by how much the slow one took longer; None where there are not two."""
    bases = sorted((time_s, base.name, base) for time_s, base in _timed(conditions) if base.monitors in BASELINES)
    return (bases[-1][2], bases[0][2], bases[-1][0] / bases[0][0] - 1) if len(bases) > 1 else None


def _timed(conditions: Sequence[Condition]) -> list[tuple[float, Condition]]:
    return [(each.time_s, each) for each in conditions if each.time_s is not None and not other_work(each, conditions)]


def other_work(condition: Condition, conditions: Sequence[Condition]) -> str:
    """Why a training is not what the first condition's was; "" where its losses and accuracies are the same, digit by digit."""
    training = condition.training
    first = next((other.training for other in conditions if other.training is not None and other.time_s is not None), None)
    if first is None or training is None or condition.time_s is None:
        return ""  # what did not end can be told from nothing
    if training.tests != first.tests:
        return "its accuracies are others, so it is not the same training"
    same = np.array_equal(training.loss, first.loss, equal_nan=True) and np.array_equal(training.seen, first.seen)
    return "" if same else "its losses are others, so it is not the same training"


def shares(condition: Condition) -> list[Share]:
    """The CPU of each command of a monitor, and of the busiest other one: the training."""
    if condition.top is None:
        return []
    spent = Counter[str]()
    for snapshot in condition.top.snapshots:
        for process in snapshot.processes:
            spent[process.command] += process.cpu_percent  # type: ignore[assignment]  # a Counter of floats
    training = [command for command, _ in spent.most_common() if command not in COMMANDS][:1]
    return [_share(condition.name, condition.top, command) for command in (*filter(spent.__contains__, COMMANDS), *training)]


def _share(condition: str, log: TopLog, command: str) -> Share:
    tables = [[process for process in shot.processes if process.command == command] for shot in log.snapshots]
    seen = [(shot.time_s, process) for shot, table in zip(log.snapshots, tables, strict=True) for process in table]
    each = [sum(process.cpu_percent for process in table) for table in tables]
    span_s, cpu_s = seen[-1][0] - seen[0][0], seen[-1][1].cpu_s - seen[0][1].cpu_s
    reason = log.why_no_time
    if not reason and len({process.pid for _, process in seen}) > 1:
        reason = CAME_AND_WENT
    elif not reason and not span_s > 0:
        reason = "it was seen at one time only" if span_s == 0 else "the log has no times"
    elif not reason and not cpu_s >= 0:
        reason = "its CPU clock was not recorded, or went back"
    return Share(
        condition=condition,
        command=command,
        shown_percent=float(np.mean(each)),
        steady_percent=float(np.mean(each[1:])) if len(each) > 1 else None,
        shown_in=sum(map(bool, tables)),
        snapshots=len(tables),
        cpu_s=None if reason else cpu_s,
        clock_percent=None if reason else 100 * cpu_s / span_s,
        why_no_clock=reason,
    )


def counters(condition: Condition) -> list[Counters]:
    result = []
    if condition.dcgmi is not None:
        gpu = _busiest({entity: columns.get("GRACT", columns.get("GPUTL")) for entity, columns in condition.dcgmi.entities.items()})
        result += [_of_dcgmi(condition.name, gpu, condition.dcgmi)] if gpu else []
    if condition.smi is not None:
        gpu = _busiest({key: gpu.columns.get("utilization.gpu") for key, gpu in condition.smi.gpus.items()})
        result += [_of_smi(condition.name, gpu, condition.smi)] if gpu else []
    return result


def _busiest(activity: Mapping[str, NDArray[np.float64] | None]) -> str | None:
    """The one that did most; the first of equals, None where no value was recorded."""
    means = {key: float(np.nanmean(column)) for key, column in activity.items() if column is not None and not np.isnan(column).all()}
    return max(means, key=means.__getitem__) if means else None


def _means(columns: Mapping[str, NDArray[np.float64]], names: Sequence[str], busy: NDArray[np.bool_]) -> dict[str, Any]:
    rows: dict[str, dict[str, float]] = {"mean": {}, "mean_active": {}}
    for name in (name for name in names if name in columns):
        column = columns[name]
        for row, part in (("mean", column), ("mean_active", column[busy] if busy.size else column[:0])):
            recorded = part[~np.isnan(part)]
            if recorded.size:
                rows[row][name] = float(recorded.mean())
    return {"active": int(busy.sum()), **rows}


def _of_dcgmi(condition: str, gpu: str, log: DcgmiLog) -> Counters:
    columns = log.entities[gpu]
    means = _means(columns, COUNTERS, columns.get("SMACT", columns.get("GPUTL", np.array([]))) > 0)
    reason, why_no_w = _no_energy(columns.get("TOTEC"), log.units.get("TOTEC")), ""
    energy_j = energy_w = consistent = None
    if not reason:
        total, mean_w = columns["TOTEC"], means["mean"].get("POWER")
        energy_j = float(total[-1] - total[0]) / 1000
        energy_w = energy_j / ((len(total) - 1) * DCGMI_INTERVAL_S)
        consistent = abs(energy_w / mean_w - 1) <= CONSISTENT if mean_w else None
        why_no_w = _no_seconds(gpu, log, energy_w, mean_w)
    return Counters(
        condition=condition,
        monitor="dcgmi",
        gpu=gpu,
        samples=log.samples(gpu),
        **means,
        energy_j=energy_j,
        energy_w=None if why_no_w else energy_w,
        consistent=consistent,
        why_no_energy=reason,
        why_no_w=why_no_w,
        no_sm=int(((columns["GRACT"] > 0.1) & (columns["SMACT"] == 0)).sum()) if {"GRACT", "SMACT"} <= columns.keys() else 0,
    )


def _no_seconds(gpu: str, log: DcgmiLog, energy_w: float, mean_w: float | None) -> str:
    """Why rows cannot be taken to be a second apart, which nothing in the log says; "" where nothing speaks against it."""
    kind, rows = gpu.split(maxsplit=1)[0], log.samples(gpu)
    most = max(log.samples(other) for other in log.entities if other.split()[0] == kind)
    if most - rows > CONSISTENT * rows:
        return f"{most - rows} of its rows are missing, as another {kind} has {most} and it has {rows}"
    if mean_w and abs(energy_w / mean_w - 1) > ABSURD:
        apart = f"at {DCGMI_INTERVAL_S:g} s a sample they would be {energy_w:.1f} W, and the mean power is {mean_w:.1f} W"
        return f"{apart}: the samples were taken at another interval, or some are missing"
    return ""


def _no_energy(total: NDArray[np.float64] | None, unit: str | None) -> str:
    """Why no energy can be taken from the counter; "" where it can."""
    if total is None:
        return "TOTEC was not recorded"
    if unit != "mJ":
        return f"TOTEC is in {unit or 'no unit'}, not in mJ"
    if len(total) < 2 or np.isnan(total).any():
        return "TOTEC has too few values" if len(total) < 2 else "TOTEC lacks values"
    return "" if (np.diff(total) >= 0).all() else "TOTEC goes down: the counter was reset"


def _of_smi(condition: str, key: str, log: SmiLog) -> Counters:
    gpu = log.gpus[key]
    pauses = np.diff(gpu.time_s) if key != UNKNOWN else np.array([])
    return Counters(
        condition=condition,
        monitor="nvidia-smi",
        gpu=key,
        samples=len(gpu.time_s),
        **_means(gpu.columns, QUERIED, gpu.columns["utilization.gpu"] > 0),
        why_no_energy="nvidia-smi has no counter of energy",
        how=log.how,
        interval_s=(float(pauses.mean()), float(pauses.std(ddof=1))) if len(pauses) > 1 and not np.isnan(pauses).any() else None,
    )
