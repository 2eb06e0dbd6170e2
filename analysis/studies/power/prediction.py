"""A model's predictions for settings, and the settings with the most images/s under a cap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.answer import (
    Answer,
    Column,
    Columns,
    Line,
    Part,
    Section,
    Table,
    command,
    marked,
    of_parts,
    table_of,
    text_table,
)
from analysis.labels import headline
from analysis.plain import one_line
from analysis.terms import Refused, Run
from analysis.wording import counted, digits
from control.power import catalog
from control.power.catalog import ANY, SHIPPED, Task, platform, platforms
from control.power.greedy import PartitionAnswer, figures_of, greedy
from control.power.search import best
from control.power.terms import (
    CLOCK,
    NAMED,
    SPOKEN,
    WATTS,
    Clocks,
    Model,
    Partition,
    Platform,
    Settings,
    must_be_in,
    must_be_settable,
    pace_of,
    tenants_of,
    unit_of,
)

from . import parameters, traces
from .quality import findings, findings_of_models

if TYPE_CHECKING:
    from control.power.models.parameters import Readers

    from .quality import Defect

MOST = 1000  # processes; a GPU under MPS allows 48
FIGURES = ("throughput_images_per_s", "power_w", "sm_util_percent", "mem_util_percent")


def answer(
    path: Path,
    network: str | None,
    gpu: str | None,
    mem_mhz: float | None,
    partition: Partition,
    clocks: Sequence[float],
) -> Answer:
    """Predict a partition at each clock; names are needed only where there are several models.

    Raises: Refused, also for an invalid setting.
    """
    readers = parameters.available(path)
    place = only(readers, path, network, gpu)
    known = [key[2] for key in readers if key[:2] == place]
    chosen = [mhz for mhz in known if mem_mhz in {None, mhz}]
    if len(chosen) != 1:
        listed = ", ".join(f"{mhz:g}" for mhz in known)
        name = " on ".join(map(one_line, place))
        raise Refused(f"{name}: models of memory clocks {listed} MHz; select one with --mem.")
    settings = [checked(Clocks(partition, clock, chosen[0])) for clock in clocks]
    model = readers[*place, chosen[0]]()
    unit, pace = unit_of(model), pace_of(model)
    figures = figures_of(model, settings)
    notes: dict[str, None] = {}
    data = []
    for setting, row in zip(settings, figures, strict=True):
        outside = beyond(model, setting)
        notes |= dict.fromkeys(outside)
        record: dict[str, Any] = {"network": model.network, "gpu": model.gpu}
        record |= {"setting": asdict(setting), **dict(zip(FIGURES, row, strict=True))}
        record["beyond"] = outside
        data.append(in_units(record | {"cap_unit": unit, "clock": pace}, unit, pace))
    parts: list[Part] = [
        Line(" on ".join(map(one_line, place)), tone="strong"),
        _table(settings, figures, unit, pace),
        *(Line(f"{note}.", "•") for note in notes),
    ]
    return of_parts({"parameters": str(path), "predictions": data}, parts)


def checked(setting: Clocks) -> Clocks:
    shares, batches = setting.partition.shares, setting.partition.batches
    if not 0 < len(shares) == len(batches) <= MOST:
        counts = f"{len(shares)} shares and {len(batches)} batches"
        raise Refused(f"{counts}: every process needs one of each, for 1 to {MOST} processes.")
    must_be_settable(Settings(tenants_of(setting.partition), sm_mhz=setting.sm_mhz))
    return setting


def _table(
    settings: Sequence[Clocks],
    figures: Sequence[Sequence[float]],
    unit: str,
    clock: str,
    caps: Sequence[float] = (),
) -> Table:
    drawn = "power" if unit == "none" else SPOKEN.get(unit, one_line(unit, 30))
    heads = ["processes", pace(clock), "mem", "SM %", "mem %", "images/s", drawn]
    rows = [
        [
            processes(setting.partition),
            f"{setting.sm_mhz:g}",
            f"{setting.mem_mhz:g}",
            *map(decimals, (sm, mem, images_per_s)),
            decimals(power, 1 if unit == WATTS else 3),
        ]
        for setting, (images_per_s, power, sm, mem) in zip(settings, figures, strict=True)
    ]
    if caps:
        heads = [f"cap {drawn}", *heads]
        rows = [[f"{cap:g}", *row] for cap, row in zip(caps, rows, strict=True)]
    return text_table(heads, rows, left=2 if caps else 1)


def beyond(model: Model, setting: Clocks) -> tuple[str, ...]:
    low, high = model.sm_range_mhz
    clock = setting.sm_mhz
    result = []
    if not low <= clock <= high:
        name = "clock" if pace_of(model) == CLOCK else pace_of(model)
        result.append(f"{name} {clock:g} lies outside {low:g} to {high:g}, the fitted range")
    known = platforms().get(model.gpu)
    if known is not None and clock not in known.sm_mhz:
        result.append(f"clock {clock:g} is not a state of {model.gpu}")
    # The original's files do not record what was measured: it is the original's grid.
    if setting.partition not in (getattr(model, "partitions", None) or catalog.grid()):
        result.append("this partition was not measured")
    return tuple(result)


def only(readers: Readers, path: Path, network: str | None, gpu: str | None) -> tuple[str, str]:
    """Return the requested network and GPU; a single one need not be named.

    Raises: Refused, with the available ones.
    """
    known = sorted({key[:2] for key in readers})
    fitting = [key for key in known if network in {None, key[0]} and gpu in {None, key[1]}]
    if len(fitting) != 1:
        names = "; ".join(" on ".join(map(one_line, each)) for each in fitting or known)
        asked = [one_line(name) for name in (network, gpu) if name is not None]
        raise Refused(
            f"{path}: {len(fitting) or 'no'} models for {' on '.join(asked) or 'any GPU'}; "
            f"available: {names}. Select one with --network and --gpu."
        )
    return fitting[0]


def in_units(record: Mapping[str, Any], cap_unit: str, clock: str) -> dict[str, Any]:
    """Rename fields not in W (`power_w`, `cap_w`) or MHz (`sm_mhz`): `cpu_s_per_s`, `throttle`."""
    names = {} if clock == CLOCK else {"sm_mhz": clock}
    if cap_unit != WATTS:
        unit = NAMED.get(cap_unit, "unknown")
        names |= {"power_w": unit, "cap_w": f"cap_{unit}"}
    return {
        names.get(key, key): in_units(value, cap_unit, clock) if isinstance(value, dict) else value
        for key, value in record.items()
    }


def pace(clock: str) -> str:
    return "SM" if clock == CLOCK else one_line(clock, 30)


def processes(partition: Partition) -> str:
    """Write a partition with equal processes merged, `4 × 25 % b16`, in order."""
    groups = [
        (pair, len(list(same)))
        for pair, same in groupby(zip(partition.shares, partition.batches, strict=True))
    ]
    return " + ".join(f"{count} × {share:g} % b{batch}" for (share, batch), count in groups)


def decimals(value: float, digits: int = 1) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def task_of(number: int, file: Path | None, gpu: str | None) -> Task:
    known = {task.id: task for task in parameters.read_tasks(file or SHIPPED)}
    if number not in known:
        raise Refused(f"no task {number}; available: {', '.join(map(str, known))}.")
    task = known[number]
    if gpu is not None and task.gpu not in {gpu, ANY}:
        raise Refused(f"task {number} is for {task.gpu}, not {gpu}.")
    return replace(task, gpu=gpu or task.gpu)


def best_setting(
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
    if isinstance(where, Task):
        asked: tuple[str | None, str | None] = where.model, None if where.gpu == ANY else where.gpu
    else:
        asked = where
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
    found: dict[str, Any] = {"network": network, "margin_w": margin_w}
    if greedy_mode is None:
        result = [best(models, place, cap, **found) for cap in caps_w]
    else:
        is_fast = greedy_mode == "fast"
        result = [greedy(models, place, cap, fast=is_fast, **found) for cap in caps_w]
    defects = findings_of_models(
        {(network, place.name, mem_mhz): model for mem_mhz, model in models.items()}
    )
    answers = [
        {"feasible": each.feasible, **in_units(asdict(each), unit, clock)} for each in result
    ]
    data = {"network": network, "gpu": place.name, "cap_unit": unit, "answers": answers}
    title = f"{network} on {place.name}, predicted"
    parts = _best_parts(title, result, defects, unit, clock)
    return of_parts({**data, "findings": defects}, parts)


def _platform(name: str, models: Mapping[float, Model], clocks: Sequence[float] | None) -> Platform:
    if clocks is None:
        return platform(name)
    settable = tuple(sorted(clocks))
    if name in platforms():
        return replace(platform(name), sm_mhz=settable)
    high = max(model.sm_range_mhz[1] for model in models.values())
    return Platform(name, settable, tuple(models), tuple(models), high, math.inf)


def _best_parts(
    title: str,
    result: Sequence[PartitionAnswer],
    defects: Sequence[Defect],
    cap_unit: str,
    clock: str,
) -> Iterator[Part]:
    unit = SPOKEN.get(cap_unit, cap_unit)
    figures = [[getattr(each, name) for name in FIGURES] for each in result]
    yield Line(title, tone="strong")
    yield _table(
        [each.setting for each in result],
        figures,
        cap_unit,
        clock,
        [each.cap_w for each in result],
    )
    asked = sum(each.evaluations for each in result)
    lines = [f"The model predicted {asked} partitions, counted once per memory clock."]
    lines += [
        f"{each.power_w - each.cap_w:.1f} {unit} above the cap of {each.cap_w:g}: the original "
        "stops within 1 W of it, and keeps its clock if no clock meets the cap after it gives out "
        "the remaining share."
        for each in result
        if not each.feasible
    ]
    lines += [
        f"The search kept the predicted {unit} times {guard:.3f} below the cap: the guard band, "
        "from the model's errors on held-out rows."
        for guard in dict.fromkeys(each.guard for each in result if each.guard != 1.0)
    ]
    yield from (Line(line, "•") for line in lines)
    yield from marked(
        ("·", f"quality of the model at {one.where.rpartition(' at ')[2]}: {one.what}")
        for one in defects
    )


OF_POINTS: Columns = (
    (Column("processes", left=True), lambda row: processes(Partition(row.shares, row.batches))),
    (Column("clock MHz\nor duty", "clock", "{:g}".format), attrgetter("clock")),
    (Column("images/s", "images_per_s", digits), attrgetter("throughput_images_per_s")),
    (Column("W", "power_w", digits), attrgetter("watts")),
    (Column("GPU in use\n%", "gpu_percent", digits), attrgetter("sm_util_percent")),
    (Column("CPU s\nper s", "cpu_s_per_s", digits), lambda row: row.extra.get("cpu_s_per_s")),
)


def profile(run: Run) -> Answer:
    """Return the results of a saved profile."""
    refused: list[str] = []
    rows = traces.rows_of(run, refused)
    points = [row for row in rows if row.outcome == "measured" and row.network != traces.STATIC]
    points.sort(key=lambda row: -(row.throughput_images_per_s or 0.0))
    table, wrong = table_of(OF_POINTS, points), findings(rows, "profile")
    most = f"; {table.rows[0][0]} gives the most images/s" if points else ""
    return Answer(
        title=f"{counted(len(points), 'point')} of a profile{most}.",
        findings=[Line(line, tone="quiet") for line in headline([run]).splitlines()],
        sections=[Section("", [table, *marked(("·", finding.what) for finding in wrong)])],
        next=command("power", "traces", run.origin, "-o", "traces/"),
        data={"points": rows, "findings": wrong},
        refused=refused,
    )
