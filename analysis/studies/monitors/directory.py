"""A folder of somebody's overhead study: `ex4_model_s.txt`, `ex4_topLog.txt`, … in a folder a kind of monitor, in one a training.

Each `exN`, and `again`, is a condition: which monitors ran in it is told by the logs they left and by the study. What is not there is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.files import read_whole
from analysis.logs import dcgmi_dmon, nvidia_smi_csv, top_batch, training_output
from analysis.plain import one_line
from analysis.terms import Unreadable

from .of_logs import Condition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

FILE = re.compile(r"(ex[1-9]\d?|again)_(.+?)\.(txt|log|csv)", re.IGNORECASE)
NUMBERED = re.compile(r"\d\d-(.+)")  # `03-dcgmi`: a kind of monitor, in the folder of its training
DEEPEST = 4
KINDS = {
    "training": re.compile(r"model(_s)?", re.IGNORECASE),
    "errors": re.compile(r"model_e", re.IGNORECASE),
    "top": re.compile(r"top_?log", re.IGNORECASE),
    "nvidia-smi": re.compile(r"nvsm_?log", re.IGNORECASE),
    "dcgmi": re.compile(r"dcgmi_?log", re.IGNORECASE),
}
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
HEAVY = re.compile(r"resnet", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Training:
    """One training under several conditions, in their order; `unread` are files of no known kind, `absent` conditions without any."""

    name: str
    conditions: tuple[Condition, ...]
    absent: tuple[str, ...]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogFolder:
    """What a folder holds."""

    origin: str
    trainings: tuple[Training, ...]
    missing: tuple[str, ...]


def is_it(path: Path) -> bool:
    """Whether a path is such a folder."""
    return path.is_dir() and next(_files(path), None) is not None


def read(folder: Path) -> LogFolder:
    """Read all conditions at or under a folder. A log that cannot be read is missing, with the reason.

    Raises: Unreadable, where there is no file of a condition.
    """
    files: dict[Path, list[tuple[Path, re.Match[str]]]] = {}
    for path, found in _files(folder):
        above = path.resolve().parent
        files.setdefault(above.parent if NUMBERED.fullmatch(above.name) else above, []).append((path, found))
    if not files:
        raise Unreadable(f"{folder}: no file of a condition (ex1_model_s.txt, ex1_topLog.txt, …) in it; name the folder that holds them.")
    trainings = tuple(_training(place.name, files[place]) for place in sorted(files))
    heavy = any(HEAVY.search(training.name) for training in trainings)
    missing = () if heavy else ("no file of the heavy training (ResNet-50), so nothing is said of it",)
    return LogFolder(str(folder), trainings, missing)


def _files(folder: Path) -> Iterator[tuple[Path, re.Match[str]]]:
    """Find files of conditions, each once however many links lead to it."""
    seen: set[Path] = set()
    for depth in range(DEEPEST):
        for path in sorted(folder.glob("/".join(["*"] * (depth + 1)))):
            found = FILE.fullmatch(path.name)
            if found and path.is_file() and (itself := path.resolve()) not in seen:
                seen.add(itself)
                yield path, found


def _training(name: str, files: Sequence[tuple[Path, re.Match[str]]]) -> Training:
    by_condition: dict[str, dict[str, list[Path]]] = {}
    unread = []
    for path, found in files:
        kind = next((kind for kind, pattern in KINDS.items() if pattern.fullmatch(found[2])), None)
        if kind is None:
            unread.append(path.name)
        else:
            by_condition.setdefault(found[1].lower(), {}).setdefault(kind, []).append(path)
    order = sorted(by_condition, key=lambda text: (not text.startswith("ex"), len(text), text))
    conditions = tuple(_condition(text, by_condition[text]) for text in order)
    return Training(name, conditions, tuple(text for text in STUDY if text not in by_condition), tuple(unread))


def _condition(name: str, files: dict[str, list[Path]]) -> Condition:
    missing: dict[str, str] = {}
    notes: list[str] = []
    read_of = {
        "training": training_output.read,
        "top": top_batch.read,
        "nvidia-smi": nvidia_smi_csv.read,
        "dcgmi": dcgmi_dmon.read,
        "errors": _errors,
    }
    logs: dict[str, object] = {}
    for kind, paths in files.items():
        if len(paths) > 1:
            missing[kind] = f"{len(paths)} files: {', '.join(map(str, paths))}; leave the one that is meant"
            continue
        try:
            logs[kind] = read_of[kind](paths[0])
        except Unreadable as error:
            missing[kind] = one_line(error)
    for kind, log in logs.items():
        left_out = getattr(log, "ignored", ())
        if left_out:
            notes.append(f"{kind}: {len(left_out)} line{'' if len(left_out) == 1 else 's'} left out; {left_out[0]}")
    if "training" not in files:
        missing["training"] = "no output of the training, so no time and no accuracy"
    training = logs.get("training")
    if isinstance(training, training_output.TrainingLog) and training.time_s is None:
        missing["time"] = training.why_no_time
    if logs.get("errors"):
        notes.append(str(logs["errors"]))
    there = [text for text in WATCHING if text in files]
    ran = STUDY.get(name, ())
    missing |= {text: f"the study ran {text} here, and there is no log of it" for text in ran if text in WATCHING and text not in there}
    top, smi, dcgmi = logs.get("top"), logs.get("nvidia-smi"), logs.get("dcgmi")
    return Condition(
        name=name,
        monitors=tuple(
            dict.fromkeys((*(text for text in ran if text not in WATCHING), *(text for text in WATCHING if text in {*there, *ran})))
        ),
        training=training if isinstance(training, training_output.TrainingLog) else None,
        top=top if isinstance(top, top_batch.TopLog) else None,
        smi=smi if isinstance(smi, nvidia_smi_csv.SmiLog) else None,
        dcgmi=dcgmi if isinstance(dcgmi, dcgmi_dmon.DcgmiLog) else None,
        missing=missing,
        notes=tuple(notes),
    )


def _errors(path: Path) -> str:
    """What the training complained of: its first line and how many there are; "" for an empty file."""
    lines = [line for line in read_whole(path).decode(errors="replace").splitlines() if line.strip()]
    return f"it complained in {len(lines)} lines, first: {one_line(lines[0], 100)}" if lines else ""
