"""Files of models' parameters and of tasks (network, GPU, cap), read and written.

Our tasks are `data/power/tasks.yaml`; a file of one's own has the same form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from analysis.files import read_whole, resolved, write_whole
from analysis.marked_yaml import must_be_plain
from analysis.plain import one_line
from analysis.terms import Unreadable
from control.power.catalog import SHIPPED, Task, tasks_of
from control.power.models import parameters, published

if TYPE_CHECKING:
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


def write(model: Model, path: Path) -> None:
    """Write a model's file; what was there stays whole until the new one is. Raises: Refused, where it cannot be written."""
    write_whole(path, parameters.text_of(model).encode())


def file_name(model: Model) -> str:
    """How the file of a model is called in a folder; no two models' names differ in a / alone."""
    return f"{model.network}_{model.gpu}_mem{model.mem_mhz:.12g}.json".replace("%", "%25").replace("/", "%2F")


MOST_BYTES = 256 * 1024  # thousands of tasks
MOST_DEPTH = 5  # tasks, a task, its caps, a pair


def read_tasks(path: Path = SHIPPED) -> list[Task]:
    """Read a file of tasks, in its order. Raises: Refused, with the task that is wrong and what is."""
    raw = read_whole(path)
    if len(raw) > MOST_BYTES:
        raise Unreadable(f"{path}: larger than {MOST_BYTES // 1024} KiB, where a list of tasks belongs; is this the right file?")
    try:
        must_be_plain(raw, str(path), MOST_DEPTH)
        document = yaml.safe_load(raw)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none, a number of thousands of digits
        raise Unreadable(f"{path}: is no YAML: {one_line(error, 300)}.") from None
    return list(tasks_of(document, str(path)).values())
