"""What a user asked to be partitioned: models, a platform and caps, by name or by task; and the answers as one document."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from analysis.power import parameters, tasks
from analysis.power.platforms import platform
from analysis.terms import Refused

from .front import front
from .greedy import greedy
from .search import best

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from analysis.power.terms import Model, Platform

    from .terms import Answer


@dataclass(frozen=True, slots=True)
class Asked:
    """A network's models on a platform, by memory clock in MHz. Without `caps_w` it is all of them that are asked for."""

    network: str
    platform: Platform
    models: Mapping[float, Model]
    caps_w: tuple[float, ...]


def of_names(path: Path, network: str | None, gpu: str | None, cap_w: float | None) -> Asked:
    """Read the models of a network on a GPU; where `path` has only one of either it need not be named. Raises: Refused."""
    there = sorted({key[:2] for key in parameters.available(path)})
    fitting = [key for key in there if network in {None, key[0]} and gpu in {None, key[1]}]
    if len(fitting) > 1:
        raise Refused(f"{path}: there are {'; '.join(f'{one} on {other}' for one, other in fitting)}. Say which with --network and --gpu.")
    if not fitting and (network is None or gpu is None):
        raise Refused(f"{path}: no such model; there are {'; '.join(f'{one} on {other}' for one, other in there)}.")
    chosen = fitting[0] if fitting else (str(network), str(gpu))
    return Asked(chosen[0], platform(chosen[1]), parameters.models_for(path, *chosen), () if cap_w is None else (cap_w,))


def of_task(path: Path, task_id: int, file: Path | None, *, gpu: str | None) -> Asked:
    """Read what a task names; `gpu` only where the task leaves it open. Raises: Refused."""
    known = {task.id: task for task in tasks.read(tasks.MATRIX if file is None else file)}
    if task_id not in known:
        raise Refused(f"task {task_id}: there are {', '.join(map(str, known))}.")
    task = known[task_id]
    if gpu is not None and task.gpu not in {gpu, tasks.ANY}:
        raise Refused(f"task {task_id} is one of {task.gpu}, not of {gpu}.")
    found = of_names(path, task.model, gpu if task.gpu == tasks.ANY else task.gpu, None)
    return Asked(found.network, found.platform, found.models, tuple(dict.fromkeys(cap for _, cap in task.schedule)))


def answers(asked: Asked, *, greedy_mode: str | None, limits: Mapping[str, Any]) -> list[Answer]:
    """Search under each cap, or along the front where there is none. `limits` are those of `search.best`. Raises: Refused, Infeasible."""
    place = asked.models, asked.platform
    if not asked.caps_w:
        return front(*place, network=asked.network, **limits)
    if greedy_mode is not None:
        return [
            greedy(*place, cap_w, network=asked.network, fast=greedy_mode == "fast", margin_w=limits["margin_w"]) for cap_w in asked.caps_w
        ]
    return [best(*place, cap_w, network=asked.network, **limits) for cap_w in asked.caps_w]


def document(asked: Asked, found: Sequence[Answer]) -> dict[str, Any]:
    """Write answers for programs; names and units are those of the terms."""
    return {
        "network": asked.network,
        "gpu": asked.platform.name,
        "answers": [{"feasible": one.feasible, **asdict(one)} for one in found],
    }
