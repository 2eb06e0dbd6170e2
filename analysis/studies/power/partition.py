"""The partition, batches and clocks that are predicted to give most images/s under a cap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer, Line, Part, marked, of_parts, text_table
from analysis.terms import Refused
from control.power.catalog import ANY, SHIPPED, platform, platforms
from control.power.greedy import PartitionAnswer, greedy
from control.power.search import best
from control.power.terms import NAMED, SPOKEN, Model, Platform, must_be_in, pace_of, unit_of

from . import parameters, quality
from .prediction import decimals, in_units, only, pace, processes

if TYPE_CHECKING:
    from .quality import Finding


@dataclass(frozen=True, slots=True)
class PartitionRequest:
    """A network's models on a platform, by memory clock in MHz."""

    network: str
    platform: Platform
    models: Mapping[float, Model]
    caps_w: tuple[float, ...]

    @property
    def unit(self) -> str:
        """The cap's: W, unless the models were fitted on a machine without a sensor of power."""
        return unit_of(*self.models.values())

    @property
    def clock(self) -> str:
        """What sets the pace: `sm_mhz`, or `throttle` where the models were fitted on a machine without clocks to set."""
        return pace_of(*self.models.values())

    def findings(self) -> list[Finding]:
        """Curves of these models that fall with the clock; answers must be read with them in mind."""
        return quality.findings_of_models({(self.network, self.platform.name, mem_mhz): model for mem_mhz, model in self.models.items()})


def of_names(
    path: Path, network: str | None, gpu: str | None, cap_w: float | None, clocks: Sequence[float] | None = None
) -> PartitionRequest:
    """Read the models of a network on a GPU; where `path` has only one of either it need not be named.

    `clocks` are what can be set, in place of what the GPU supports; a device that no list of GPUs knows must have them. Raises: Refused.
    """
    chosen = only(path, network, gpu)
    models = parameters.models_for(path, *chosen)
    if unit_of(*models.values()) not in NAMED:
        raise Refused(f"the model of {chosen[0]} on {chosen[1]} was fitted without power: it cannot say what keeps a cap.")
    return PartitionRequest(chosen[0], _platform(chosen[1], models, clocks), models, () if cap_w is None else (cap_w,))


def of_task(path: Path, task_id: int, file: Path | None, gpu: str | None, clocks: Sequence[float] | None = None) -> PartitionRequest:
    """Read what a task names; `gpu` only where the task leaves it open, `clocks` as in `of_names`. Raises: Refused."""
    known = {task.id: task for task in parameters.read_tasks(file or SHIPPED)}
    if task_id not in known:
        raise Refused(f"task {task_id}: there are {', '.join(map(str, known))}.")
    task = known[task_id]
    if gpu is not None and task.gpu not in {gpu, ANY}:
        raise Refused(f"task {task_id} is one of {task.gpu}, not of {gpu}.")
    request = of_names(path, task.model, gpu if task.gpu == ANY else task.gpu, None, clocks)
    must_be_in(task.cap_unit, request.models.values(), f"task {task_id}")
    return replace(request, caps_w=tuple(dict.fromkeys(cap for _, cap in task.caps)))


def answers(request: PartitionRequest, *, greedy_mode: str | None, margin_w: float) -> list[PartitionAnswer]:
    """Search under each cap. Raises: Refused, Infeasible."""
    place = request.models, request.platform
    if greedy_mode is not None:
        return [greedy(*place, cap_w, network=request.network, fast=greedy_mode == "fast", margin_w=margin_w) for cap_w in request.caps_w]
    return [best(*place, cap_w, network=request.network, margin_w=margin_w) for cap_w in request.caps_w]


def _platform(name: str, models: Mapping[float, Model], clocks: Sequence[float] | None) -> Platform:
    """Answer the GPU with the clocks that can be set; a device nobody knows is anchored where its models were fitted last."""
    if clocks is None:
        return platform(name)
    settable = tuple(sorted(clocks))
    if name in platforms():
        return replace(platform(name), sm_mhz=settable)
    return Platform(name, settable, tuple(models), tuple(models), max(model.sm_range_mhz[1] for model in models.values()), inf)


def answer(request: PartitionRequest, *, greedy_mode: str | None, margin_w: float) -> Answer:
    """Search, and return the settings; everything is a prediction, and the answer says so. Raises: Refused, Infeasible."""
    result = answers(request, greedy_mode=greedy_mode, margin_w=margin_w)
    data = {
        "network": request.network,
        "gpu": request.platform.name,
        "cap_unit": request.unit,
        "answers": [{"feasible": each.feasible, **in_units(asdict(each), request.unit, request.clock)} for each in result],
        "findings": [asdict(finding) for finding in request.findings()],
    }
    return of_parts(data, parts(request, result))


def parts(request: PartitionRequest, result: Sequence[PartitionAnswer]) -> Iterator[Part]:
    """Return the table of settings, and what must be known of it."""
    unit = SPOKEN.get(request.unit, request.unit)
    rows = [_row(each, f"{each.cap_w:g}", request.unit) for each in result]
    yield Line(f"{request.network} on {request.platform.name}, predicted", tone="strong")
    yield text_table((f"cap {unit}", "partition", pace(request.clock), "mem", "images/s", unit, "SM %", "mem %"), rows, left=2)
    yield from marked(("•", note) for note in _notes(result, unit))
    for finding in request.findings():
        yield from marked([("·", f"quality of the model at {finding.where.rpartition(' at ')[2]}: {finding.what}")])


def _row(result: PartitionAnswer, head: str, unit: str) -> list[str]:
    setting, power = result.setting, decimals(result.power_w, 1 if unit == "W" else 3)
    utilisation = decimals(result.sm_util_percent), decimals(result.mem_util_percent)
    clocks = f"{setting.sm_mhz:.6g}", f"{setting.mem_mhz:g}"
    return [head, processes(setting.partition), *clocks, decimals(result.throughput_images_per_s), power, *utilisation]


def _notes(result: Sequence[PartitionAnswer], unit: str) -> Iterator[str]:
    yield f"The model was asked for {sum(each.evaluations for each in result)} partitions, counted once a memory clock."
    for each in result:
        if not each.feasible:
            yield (
                f"{each.power_w - each.cap_w:.1f} {unit} above the cap of {each.cap_w:g}: the original stops within 1 W of it, and keeps "
                "its clock where handing out the share that is left leaves none under the cap."
            )
    for guard in dict.fromkeys(each.guard for each in result if each.guard != 1.0):
        yield (
            f"The search kept the predicted {unit} times {guard:.3f} below the cap: the guard band, "
            "by what the model was off on held-out rows."
        )
