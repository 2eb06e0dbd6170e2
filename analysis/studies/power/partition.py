"""The partition, batches and clocks with the most predicted images/s under a cap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.answer import Answer, Line, Part, marked, of_parts, text_table
from analysis.terms import Refused
from control.power.catalog import ANY, SHIPPED, Task, platform, platforms
from control.power.greedy import PartitionAnswer, greedy
from control.power.search import best
from control.power.terms import NAMED, SPOKEN, WATTS, Model, Platform, must_be_in, pace_of, unit_of

from . import parameters, quality
from .prediction import decimals, in_units, only, pace, processes

if TYPE_CHECKING:
    from .quality import Defect


def task_of(number: int, file: Path | None, gpu: str | None) -> Task:
    """Read a task; give `gpu` only if the task leaves it open. Raises: Refused."""
    known = {task.id: task for task in parameters.read_tasks(file or SHIPPED)}
    if number not in known:
        raise Refused(f"no task {number}; available: {', '.join(map(str, known))}.")
    task = known[number]
    if gpu is not None and task.gpu not in {gpu, ANY}:
        raise Refused(f"task {number} is for {task.gpu}, not {gpu}.")
    return replace(task, gpu=gpu or task.gpu)


def answer(
    path: Path,
    where: tuple[str | None, str | None] | Task,
    cap_w: float | None = None,
    *,
    clocks: Sequence[float] | None,
    greedy_mode: str | None,
    margin_w: float,
) -> Answer:
    """Search under a cap, or under each cap of a task; all results are labelled as predictions.

    `where` is a network and a GPU, which need no name if `path` has only one, or a task. `clocks`
    are the settable ones, in place of the GPU's; a device that no list of GPUs has must give them.

    Raises: Refused, Infeasible.
    """
    asked = (
        (where.model, None if where.gpu == ANY else where.gpu) if isinstance(where, Task) else where
    )
    network, gpu = only(parameters.available(path), path, *asked)
    models = parameters.models_for(path, network, gpu)
    unit, clock = unit_of(*models.values()), pace_of(*models.values())
    if unit not in NAMED:
        raise Refused(
            f"the model of {network} on {gpu} was fitted without power, so it cannot find "
            "settings that keep a cap."
        )
    caps_w: tuple[float, ...] = () if cap_w is None else (cap_w,)
    if isinstance(where, Task):
        must_be_in(where.cap_unit, models.values(), f"task {where.id}")
        caps_w = tuple(dict.fromkeys(cap for _, cap in where.caps))
    place = _platform(gpu, models, clocks)
    if greedy_mode is None:
        result = [best(models, place, cap, network=network, margin_w=margin_w) for cap in caps_w]
    else:
        fast = greedy_mode == "fast"
        result = [
            greedy(models, place, cap, network=network, fast=fast, margin_w=margin_w)
            for cap in caps_w
        ]
    # Curves that fall with the clock affect the interpretation of the answer.
    findings = quality.findings_of_models(
        {(network, place.name, mem_mhz): model for mem_mhz, model in models.items()}
    )
    data = {
        "network": network,
        "gpu": place.name,
        "cap_unit": unit,
        "answers": [
            {"feasible": each.feasible, **in_units(asdict(each), unit, clock)} for each in result
        ],
        "findings": [asdict(finding) for finding in findings],
    }
    return of_parts(
        data, _parts(f"{network} on {place.name}, predicted", result, findings, unit, clock)
    )


def _platform(name: str, models: Mapping[float, Model], clocks: Sequence[float] | None) -> Platform:
    if clocks is None:
        return platform(name)
    settable = tuple(sorted(clocks))
    if name in platforms():
        return replace(platform(name), sm_mhz=settable)
    high = max(model.sm_range_mhz[1] for model in models.values())
    return Platform(name, settable, tuple(models), tuple(models), high, inf)


def _parts(
    title: str,
    result: Sequence[PartitionAnswer],
    findings: Sequence[Defect],
    cap_unit: str,
    clock: str,
) -> Iterator[Part]:
    unit = SPOKEN.get(cap_unit, cap_unit)
    yield Line(title, tone="strong")
    heads = (f"cap {unit}", "partition", pace(clock), "mem", "images/s", unit, "SM %", "mem %")
    rows = []
    for each in result:
        setting, power = each.setting, decimals(each.power_w, 1 if cap_unit == WATTS else 3)
        clocks = f"{setting.sm_mhz:.6g}", f"{setting.mem_mhz:g}"
        utilisation = decimals(each.sm_util_percent), decimals(each.mem_util_percent)
        images = decimals(each.throughput_images_per_s)
        rows.append(
            [f"{each.cap_w:g}", processes(setting.partition), *clocks, images, power, *utilisation]
        )
    yield text_table(heads, rows, left=2)
    asked = sum(each.evaluations for each in result)
    yield Line(f"The model predicted {asked} partitions, counted once per memory clock.", "•")
    for each in result:
        if not each.feasible:
            above = f"{each.power_w - each.cap_w:.1f} {unit} above the cap of {each.cap_w:g}"
            yield Line(
                f"{above}: the original stops within 1 W of it, and keeps its clock if no clock "
                "meets the cap after it gives out the remaining share.",
                "•",
            )
    for guard in dict.fromkeys(each.guard for each in result if each.guard != 1.0):
        band = "the guard band, from the model's errors on held-out rows"
        yield Line(
            f"The search kept the predicted {unit} times {guard:.3f} below the cap: {band}.", "•"
        )
    for finding in findings:
        yield from marked(
            [
                (
                    "·",
                    (
                        f"quality of the model at {finding.where.rpartition(' at ')[2]}: "
                        f"{finding.what}"
                    ),
                )
            ]
        )
