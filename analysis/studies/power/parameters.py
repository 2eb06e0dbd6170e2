"""Files of models' parameters and of tasks (network, GPU, cap), read and written.

Our tasks are `data/power/tasks.yaml`; a file of one's own has the same form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from analysis.marked_yaml import nesting
from analysis.opening import read_whole, resolved
from analysis.plain import one_line
from analysis.saving import write_whole
from analysis.terms import Refused, Unreadable
from control.power.catalog import DATA
from control.power.models import parameters, published
from control.power.terms import CPU_TIME, WATTS, Task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from control.power.models.parameters import Readers
    from control.power.terms import Model


class Folder(Mapping[str, bytes]):
    """What lies in a folder, or in those in it, by relative path; each file is read when it is asked for. Raises: Unreadable."""

    def __init__(self, place: Path, *names: str) -> None:
        self._place = place
        files = (path for pattern in ("*", "*/*") for path in place.glob(pattern) if not names and path.is_file())
        self._names = list(names) or sorted(str(file.relative_to(place)) for file in files)

    def __getitem__(self, name: str) -> bytes:
        return read_whole(self._place / name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load(path: Path, network: str | None = None, gpu: str | None = None, mem_mhz: float | None = None) -> Model:
    """Read the one model that answers to what is given; nothing need be where there is only one.

    Raises: Refused, with what there is, where none or more than one does.
    """
    there = available(path)
    fitting = [key for key in there if network in {None, key[0]} and gpu in {None, key[1]} and mem_mhz in {None, key[2]}]
    if len(fitting) != 1:
        asked = ", ".join(_asked(network, gpu, mem_mhz)) or "no model named"
        raise Refused(f"{path}: {asked}: {len(fitting) or 'none'} of its models; there are {parameters.listed(fitting or list(there))}.")
    return there[fitting[0]]()


def models_for(path: Path, network: str, gpu: str) -> dict[float, Model]:
    """Read the models of a network on a GPU by memory clock, those the search may use, best (highest) first.

    Raises: Refused, with what there is, where there is none.
    """
    return parameters.models_for(available(path), path, network, gpu)


def available(path: Path) -> Readers:
    """Answer which models a folder (or one file) has, each with what reads it. Raises: Refused, for none at all."""
    place = resolved(path)
    if place.is_dir():
        return parameters.available(Folder(place), place)
    if place.name != published.FILE:
        if place.is_file() and published.is_one(Folder(place.parent)):
            raise Unreadable(f"{path}: is one of several files that PctoDL keeps of a model; name the folder they lie in.")
        return parameters.available(Folder(place.parent, place.name), place.parent, named=True)
    return parameters.available(Folder(place.parent), place.parent)


def are_published(path: Path) -> bool:
    """Are these the original's parameters?"""
    place = resolved(path)
    return published.is_one(Folder(place)) if place.is_dir() else place.name == published.FILE


def write(model: Model, path: Path, kind: str) -> None:
    """Write a model's file; what was there stays whole until the new one is. Raises: Refused, where it cannot be written."""
    write_whole(path, parameters.text_of(model, kind).encode())


def file_name(model: Model) -> str:
    """How the file of a model is called in a folder; no two models' names differ in a / alone."""
    return f"{model.network}_{model.gpu}_mem{model.mem_mhz:.12g}.json".replace("%", "%25").replace("/", "%2F")


def _asked(network: str | None, gpu: str | None, mem_mhz: float | None) -> list[str]:
    return [word for word in (network, gpu, None if mem_mhz is None else f"memory at {mem_mhz:g} MHz") if word is not None]


MATRIX = DATA / "tasks.yaml"
ANY = "any"  # runs on whichever GPU there is
CAPS = ("cap_w", "caps_w", "cap_cpu_s_per_s", "caps_cpu_s_per_s")  # without watts: CPU seconds per second
TASK_KEYS = ("id", "gpu", "model", "dataset", *CAPS, "iterations", "slo_ms")
TOP = ("tasks", "torchvision")
MOST_BYTES = 256 * 1024  # thousands of tasks
MOST_DEPTH = 5  # tasks, a task, its caps, a pair
LARGEST = 1e9  # a cap above this is a slip of the pen


def read_tasks(path: Path = MATRIX) -> list[Task]:
    """Read a file of tasks, in its order. Raises: Unreadable, with the task that is wrong and what is."""
    raw = read_whole(path)
    if len(raw) > MOST_BYTES:
        raise Unreadable(f"{path}: larger than {MOST_BYTES // 1024} KiB, where a list of tasks belongs; is this the right file?")
    try:
        _must_be_plain(raw, path)
        said = yaml.safe_load(raw)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none, a number of thousands of digits
        raise Unreadable(f"{path}: is no YAML: {one_line(error, 300)}.") from None
    if not isinstance(said, dict) or not isinstance(said.get("tasks"), list):
        raise Unreadable(f"{path}: has no list `tasks`; {MATRIX.name} in data/power shows the form.")
    unknown = [str(key) for key in said if key not in TOP]
    if unknown:
        raise Unreadable(f"{path}: {one_line(unknown[0])!r} is not known there; there are {', '.join(TOP)}.")
    tasks = [_task(one, f"{path}: task {number}") for number, one in enumerate(said["tasks"], 1)]
    ids = [task.id for task in tasks]
    twice = sorted({number for number in ids if ids.count(number) > 1})
    if twice:
        raise Unreadable(f"{path}: id {twice[0]} is there {ids.count(twice[0])} times; ids name results.")
    return tasks


def _must_be_plain(raw: bytes, path: Path) -> None:
    """Refuse what would make the reader recurse or multiply, or would be lost in silence. Raises: Unreadable; yaml.YAMLError."""
    for line, depth, anchored in nesting(raw):
        if depth > MOST_DEPTH:
            raise Unreadable(f"{path}: line {line}: more than {MOST_DEPTH} levels deep; no task is.")
        if anchored:
            raise Unreadable(f"{path}: line {line}: anchors and aliases (& and *) are not read; write the value out.")


def _task(said: object, at: str) -> Task:
    if not isinstance(said, dict):
        raise Unreadable(f"{at}: is {one_line(said, 60)!r}, no task; it has {', '.join(TASK_KEYS)}.")
    unknown = [str(key) for key in said if key not in TASK_KEYS]
    if unknown:
        raise Unreadable(f"{at}: {one_line(unknown[0])!r} is not known; there are {', '.join(TASK_KEYS)}.")
    number = said.get("id")
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise Unreadable(f"{at}: id is {one_line(number, 60)!r}; it is a whole number.")
    at = f"{at} (id {number})"
    words: dict[str, str] = {}
    for key in ("gpu", "model", "dataset"):
        word = said.get(key)
        if not isinstance(word, str) or not word:
            raise Unreadable(f"{at}: {key} is {one_line(word, 60)!r}; it is a name.")
        words[key] = word
    schedule = _schedule(said, at)
    return Task(id=number, **words, schedule=schedule, cap_unit=CPU_TIME if any(key.endswith(CPU_TIME) for key in said) else WATTS)


def _schedule(said: Mapping[str, Any], at: str) -> tuple[tuple[int, float], ...]:
    given = [key for key in CAPS if key in said]
    if len(given) != 1:
        raise Unreadable(
            f"{at}: has {', '.join(given) or 'no cap'}; give one of {', '.join(CAPS)}, caps_… with pairs of iteration and cap."
        )
    (key,) = given
    pairs = said[key] if key.startswith("caps") else [[0, said[key]]]
    if not isinstance(pairs, list) or not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise Unreadable(f"{at}: {key} is {one_line(pairs, 60)!r}; it is a list as in [[0, 200], [50, 160]].")
    for start, cap in pairs:
        if isinstance(start, bool) or not isinstance(start, int) or not _is_cap(cap):
            raise Unreadable(f"{at}: [{one_line(start, 30)}, {one_line(cap, 30)}] is no iteration and a cap above 0, up to {LARGEST:g}.")
    starts = [start for start, _ in pairs]
    if starts[0] != 0 or starts != sorted(set(starts)):
        raise Unreadable(f"{at}: the caps begin at iterations {', '.join(map(str, starts))}; they begin at 0 and ascend.")
    return tuple((start, float(cap)) for start, cap in pairs)


def _is_cap(cap: object) -> bool:
    return isinstance(cap, int | float) and not isinstance(cap, bool) and 0 < cap <= LARGEST
