"""Read and write files of model parameters and of tasks (network, GPU, cap)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from analysis.files import read_whole, resolved, write_whole
from analysis.marked_yaml import must_be_plain
from analysis.plain import one_line
from analysis.terms import Unreadable
from control.power.catalog import SHIPPED, Task, tasks_of
from control.power.models import parameters

if TYPE_CHECKING:
    from control.power.models.parameters import Readers
    from control.power.terms import Model


def models_for(path: Path, network: str, gpu: str) -> dict[float, Model]:
    """Read the models of a network on a GPU by memory clock, usable ones, highest first.

    Raises: Refused, with the available models, if there is none.
    """
    return parameters.models_for(available(path), path, network, gpu)


def available(path: Path) -> Readers:
    return parameters.available(resolved(path), read_whole)


def write(model: Model, path: Path) -> None:
    write_whole(path, parameters.text_of(model).encode())


def file_name(model: Model) -> str:
    """Return the file name of a model in a folder; names never differ only by a slash."""
    name = f"{model.network}_{model.gpu}_mem{model.mem_mhz:.12g}.json"
    return name.replace("%", "%25").replace("/", "%2F")


MOST_BYTES = 256 * 1024  # thousands of tasks
MOST_DEPTH = 5  # tasks, a task, its caps, a pair


def read_tasks(path: Path = SHIPPED) -> list[Task]:
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
