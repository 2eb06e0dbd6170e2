"""Tasks: which network on which GPU under which cap. Ours are `data/power/tasks.yaml`; a file of one's own has the same form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from analysis.opening import read_whole
from analysis.plain import one_line
from analysis.terms import Unreadable
from control.power.grid import DATA
from control.power.terms import CPU_TIME, WATTS, Task

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MATRIX = DATA / "tasks.yaml"
ANY = "any"  # runs on whichever GPU there is
CAPS = ("cap_w", "caps_w", "cap_cpu_s_per_s", "caps_cpu_s_per_s")  # without watts: CPU seconds per second
KEYS = ("id", "gpu", "model", "dataset", *CAPS, "iterations", "slo_ms")
TOP = ("tasks", "torchvision")
MOST_BYTES = 256 * 1024  # thousands of tasks
MOST_DEPTH = 5  # tasks, a task, its caps, a pair
LARGEST = 1e9  # a cap above this is a slip of the pen


def read(path: Path = MATRIX) -> list[Task]:
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
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise Unreadable(f"{path}: id {twice[0]} is there {ids.count(twice[0])} times; ids name results.")
    return tasks


def _must_be_plain(raw: bytes, path: Path) -> None:
    """Refuse what would make the reader recurse or multiply, or would be lost in silence. Raises: Unreadable; yaml.YAMLError."""
    depth = 0
    for event in yaml.parse(raw, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        line = event.start_mark.line + 1 if event.start_mark else 1
        if depth > MOST_DEPTH:
            raise Unreadable(f"{path}: line {line}: more than {MOST_DEPTH} levels deep; no task is.")
        if getattr(event, "anchor", None):
            raise Unreadable(f"{path}: line {line}: anchors and aliases (& and *) are not read; write the value out.")


def _task(said: object, at: str) -> Task:
    if not isinstance(said, dict):
        raise Unreadable(f"{at}: is {one_line(said, 60)!r}, no task; it has {', '.join(KEYS)}.")
    unknown = [str(key) for key in said if key not in KEYS]
    if unknown:
        raise Unreadable(f"{at}: {one_line(unknown[0])!r} is not known; there are {', '.join(KEYS)}.")
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
