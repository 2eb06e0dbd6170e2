"""Read and write files of model parameters and of tasks (network, GPU, cap).

Our tasks are `data/power/tasks.yaml`; your own files have the same form.
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
    """Contents of a folder and subfolders by relative path, read on demand. Raises: Unreadable."""

    def __init__(self, place: Path, *names: str) -> None:
        self._place = place
        files = (
            path
            for pattern in ("*", "*/*")
            for path in place.glob(pattern)
            if not names and path.is_file()
        )
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
    """Read the models of a network on a GPU by memory clock, usable ones, highest first.

    Raises: Refused, with the available models, if there is none.
    """
    return parameters.models_for(available(path), path, network, gpu)


def available(path: Path) -> Readers:
    """Return the models in a folder or file, each with its reader. Raises: Refused, if none."""
    place = resolved(path)
    if place.is_dir():
        return parameters.available(Folder(place), place)
    if place.name != published.FILE:
        if place.is_file() and published.is_one(Folder(place.parent)):
            raise Unreadable(
                f"{path}: is one of several files of a PctoDL model; name their folder."
            )
        return parameters.available(Folder(place.parent, place.name), place.parent, named=True)
    return parameters.available(Folder(place.parent), place.parent)


def are_published(path: Path) -> bool:
    """Return whether these are the original's parameters."""
    place = resolved(path)
    return published.is_one(Folder(place)) if place.is_dir() else place.name == published.FILE


def write(model: Model, path: Path) -> None:
    """Write a model's file; the old one stays whole until then. Raises: Refused, on failure."""
    write_whole(path, parameters.text_of(model).encode())


def file_name(model: Model) -> str:
    """Return the file name of a model in a folder; names never differ only by a slash."""
    return f"{model.network}_{model.gpu}_mem{model.mem_mhz:.12g}.json".replace("%", "%25").replace(
        "/", "%2F"
    )


MOST_BYTES = 256 * 1024  # thousands of tasks
MOST_DEPTH = 5  # tasks, a task, its caps, a pair


def read_tasks(path: Path = SHIPPED) -> list[Task]:
    """Read the tasks in a file, in order. Raises: Refused, naming the task and the error."""
    raw = read_whole(path)
    if len(raw) > MOST_BYTES:
        raise Unreadable(
            f"{path}: larger than {MOST_BYTES // 1024} KiB, too large for a list of tasks; check "
            "the file name."
        )
    try:
        must_be_plain(raw, str(path), MOST_DEPTH)
        document = yaml.safe_load(raw)
    except (yaml.YAMLError, ValueError) as error:  # invalid date, huge number
        raise Unreadable(f"{path}: is not YAML: {one_line(error, 300)}.") from None
    return list(tasks_of(document, str(path)).values())
