"""What a user asked to be partitioned: models, a platform and caps, by name or by task; and the answers as one document."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from analysis.studies.power import parameters, quality_of_models, tasks
from analysis.studies.power.predict_asked import in_units, only
from analysis.terms import Refused
from control.power.partitioning.greedy import greedy
from control.power.partitioning.search import best
from control.power.platforms import platform, platforms
from control.power.terms import NAMED, Platform, must_be_in, pace_of, unit_of

from .front import front

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from analysis.studies.power.quality import Finding
    from control.power.partitioning.terms import Answer
    from control.power.terms import Model


@dataclass(frozen=True, slots=True)
class Asked:
    """A network's models on a platform, by memory clock in MHz. Without `caps_w` it is all of them that are asked for.

    `copies` are models that share parameters with one of these, or with another that lies beside them.
    """

    network: str
    platform: Platform
    models: Mapping[float, Model]
    caps_w: tuple[float, ...]
    copies: tuple[Finding, ...] = ()

    @property
    def unit(self) -> str:
        """The cap's: W, unless the models were fitted on a machine without a sensor of power."""
        return unit_of(*self.models.values())

    @property
    def clock(self) -> str:
        """What sets the pace: `sm_mhz`, or `throttle` where the models were fitted on a machine without clocks to set."""
        return pace_of(*self.models.values())

    def findings(self) -> list[Finding]:
        """What the quality gate finds in these models; answers must be read with it in mind."""
        found = quality_of_models.findings({(self.network, self.platform.name, mem_mhz): model for mem_mhz, model in self.models.items()})
        return list(dict.fromkeys([*self.copies, *found]))


def of_names(path: Path, network: str | None, gpu: str | None, cap_w: float | None, clocks: Sequence[float] | None = None) -> Asked:
    """Read the models of a network on a GPU; where `path` has only one of either it need not be named.

    `clocks` are what can be set, in place of what the GPU supports; a device that no list of GPUs knows must have them. Raises: Refused.
    """
    chosen = only(path, network, gpu)
    models = parameters.models_for(path, *chosen)
    if unit_of(*models.values()) not in NAMED:
        raise Refused(f"the model of {chosen[0]} on {chosen[1]} was fitted without power: it cannot say what keeps a cap.")
    copies = tuple(quality_of_models.copies_of([(*chosen, mem_mhz) for mem_mhz in models], path))
    return Asked(chosen[0], _platform(chosen[1], models, clocks), models, () if cap_w is None else (cap_w,), copies)


def of_task(path: Path, task_id: int, file: Path | None, gpu: str | None, clocks: Sequence[float] | None = None) -> Asked:
    """Read what a task names; `gpu` only where the task leaves it open, `clocks` as in `of_names`. Raises: Refused."""
    known = {task.id: task for task in tasks.read(tasks.MATRIX if file is None else file)}
    if task_id not in known:
        raise Refused(f"task {task_id}: there are {', '.join(map(str, known))}.")
    task = known[task_id]
    if gpu is not None and task.gpu not in {gpu, tasks.ANY}:
        raise Refused(f"task {task_id} is one of {task.gpu}, not of {gpu}.")
    found = of_names(path, task.model, gpu if task.gpu == tasks.ANY else task.gpu, None, clocks)
    must_be_in(task.cap_unit, found.models.values(), f"task {task_id}")
    return replace(found, caps_w=tuple(dict.fromkeys(cap for _, cap in task.schedule)))


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


def _platform(name: str, models: Mapping[float, Model], clocks: Sequence[float] | None) -> Platform:
    """Answer the GPU with the clocks that can be set; a device nobody knows is anchored where its models were fitted last."""
    if clocks is None:
        return platform(name)
    settable = tuple(sorted(clocks))
    if name in platforms():
        return replace(platform(name), sm_mhz=settable)
    return Platform(name, settable, tuple(models), tuple(models), max(model.sm_range_mhz[1] for model in models.values()), inf)


def document(asked: Asked, found: Sequence[Answer]) -> dict[str, Any]:
    """Write answers for programs; names and units are those of the terms, or of the models where these know no watts or no clock."""
    return {
        "network": asked.network,
        "gpu": asked.platform.name,
        "cap_unit": asked.unit,
        "answers": [{"feasible": one.feasible, **in_units(asdict(one), asked.unit, asked.clock)} for one in found],
        "findings": [asdict(one) for one in asked.findings()],
    }
