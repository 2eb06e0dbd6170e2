"""A model's predictions for settings: utilisation, images/s, watts; and extrapolations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.answer import (
    Answer,
    Column,
    Line,
    Part,
    Section,
    Table,
    command,
    marked,
    of_parts,
    text_table,
)
from analysis.labels import headline
from analysis.plain import one_line
from analysis.terms import Refused, Run
from analysis.wording import counted, digits
from control.power import catalog
from control.power.catalog import platforms
from control.power.greedy import figures_of
from control.power.models.own import Spans, spans_of
from control.power.models.reference import Reference
from control.power.terms import (
    CLOCK,
    NAMED,
    SPOKEN,
    WATTS,
    Clocks,
    Model,
    Partition,
    Settings,
    must_be_settable,
    pace_of,
    tenants_of,
    unit_of,
)

from . import parameters, traces
from .quality import findings

if TYPE_CHECKING:
    from control.power.models.parameters import Readers

    from .traces import PartitionRow

MOST = 1000  # processes; a GPU under MPS allows 48
NOTED = 9  # numbered notes; further ones are counted


@dataclass(frozen=True, slots=True)
class PowerPrediction:
    """The prediction for a setting; `beyond` has a sentence per way it lies outside the fit.

    Utilisations are NVML's, percent of time, at the anchor clock; NaN if the model has none.
    `power_w` is in the model's `cap_unit`, and `setting.sm_mhz` is in terms of its `clock`.
    """

    network: str
    gpu: str
    setting: Clocks
    sm_util_percent: float
    mem_util_percent: float
    throughput_images_per_s: float
    power_w: float
    beyond: tuple[str, ...]
    cap_unit: str = WATTS
    clock: str = CLOCK


def predict(models: Mapping[float, Model], settings: Sequence[Clocks]) -> list[PowerPrediction]:
    """Predict each setting, cheaply for many; `models` are by memory clock, MHz.

    Raises: Refused, for an invalid setting, and for a memory clock without a model.
    """
    for setting in settings:
        shares, batches = setting.partition.shares, setting.partition.batches
        if not 0 < len(shares) == len(batches) <= MOST:
            counts = f"{len(shares)} shares and {len(batches)} batches"
            raise Refused(f"{counts}: every process needs one of each, for 1 to {MOST} processes.")
        must_be_settable(Settings(tenants_of(setting.partition), sm_mhz=setting.sm_mhz))
        if setting.mem_mhz not in models:
            known = ", ".join(f"{mhz:g}" for mhz in models)
            raise Refused(
                f"no model for a memory clock of {setting.mem_mhz:g} MHz; available: {known}."
            )
    predictions: dict[int, PowerPrediction] = {}
    for mem_mhz, model in models.items():
        chosen = [number for number, setting in enumerate(settings) if setting.mem_mhz == mem_mhz]
        rows = figures_of(model, [settings[number] for number in chosen])
        names, units = (model.network, model.gpu), (unit_of(model), pace_of(model))
        for number, (images_per_s, power, sm_util, mem_util) in zip(chosen, rows, strict=True):
            setting = settings[number]
            outside = beyond(model, setting)
            predictions[number] = PowerPrediction(
                *names, setting, sm_util, mem_util, images_per_s, power, outside, *units
            )
    return [predictions[number] for number in range(len(settings))]


def beyond(model: Model, setting: Clocks) -> tuple[str, ...]:
    """Return where a setting lies outside the model's fit, and outside the GPU's capabilities."""
    low, high = model.sm_range_mhz
    clock, partition = setting.sm_mhz, setting.partition
    result = []
    if not low <= clock <= high:
        name = "clock" if pace_of(model) == CLOCK else pace_of(model)
        result.append(f"{name} {clock:g} lies outside {low:g} to {high:g}, the fitted range")
    known = platforms().get(model.gpu)
    if known is not None and clock not in known.sm_mhz:
        near = min(known.sm_mhz, key=lambda mhz: abs(mhz - clock))
        result.append(f"clock {clock:g} is not a state of {model.gpu}; the nearest is {near:g}")
    # The original's files do not record the fitted range: it is the original's grid.
    spans = _of_grid() if isinstance(model, Reference) else getattr(model, "spans", None)
    if spans is not None:
        measured = (
            ("share", " %", partition.shares, spans.shares),
            ("batch", "", partition.batches, spans.batches),
        )
        for name, unit, values, (least, most) in measured:
            for value, limit, word in (
                (max(values), most, "largest"),
                (min(values), least, "smallest"),
            ):
                if (value > limit) if word == "largest" else (value < limit):
                    result.append(
                        f"a {name} of {value:g}{unit}; the {word} measured is {limit:g}{unit}"
                    )
        if len(partition.shares) > spans.processes:
            result.append(
                f"{len(partition.shares)} processes; at most {spans.processes} were measured"
            )
    if _is_mixed(partition) and not any(map(_is_mixed, getattr(model, "partitions", ()))):
        result.append("processes differ; only equal ones were measured")
    return tuple(result)


def _is_mixed(partition: Partition) -> bool:
    return len(set(zip(partition.shares, partition.batches, strict=True))) > 1


@cache
def _of_grid() -> Spans:
    return spans_of(catalog.grid())


# Requested prediction: network and memory clock, None for the only one; partition; clock.
Wanted = tuple[str | None, float | None, Partition, float]


def of_rows(
    rows: Iterable[PartitionRow], network: str | None, mem_mhz: float | None
) -> list[Wanted]:
    """Return the settings of trace rows, at the actual clock or the target; arguments override.

    Raises: Refused.
    """
    wanted: list[Wanted] = []
    for row in rows:
        if row.network != traces.STATIC:
            if row.clock is None:
                raise Refused(f"line {row.line}: no clock, neither sm_freq nor target_freq.")
            memory = row.mem_mhz if mem_mhz is None else mem_mhz
            wanted.append(
                (network or row.network, memory, Partition(row.shares, row.batches), row.clock)
            )
    if not wanted:
        raise Refused("no rows to predict.")
    return wanted


def only(readers: Readers, path: Path, network: str | None, gpu: str | None) -> tuple[str, str]:
    """Return the requested network and GPU; a single one need not be named.

    Raises: Refused, with the available ones.
    """
    known = sorted({key[:2] for key in readers})
    fitting = [key for key in known if network in {None, key[0]} and gpu in {None, key[1]}]
    if len(fitting) != 1:
        names = "; ".join(
            f"{one_line(each)} on {one_line(other)}" for each, other in fitting or known
        )
        request = (
            " on ".join(one_line(name) for name in (network, gpu) if name is not None) or "any GPU"
        )
        count = len(fitting) or "no"
        raise Refused(
            f"{path}: {count} models for {request}; available: {names}. Select one with --network "
            "and --gpu."
        )
    return fitting[0]


def answer(path: Path, gpu: str | None, wanted: Sequence[Wanted]) -> Answer:
    """Predict each setting in order, with the model in `path`. Raises: Refused."""
    readers = parameters.available(path)
    places = {
        network: only(readers, path, network, gpu)
        for network in dict.fromkeys(network for network, *_ in wanted)
    }
    found: dict[int, PowerPrediction] = {}
    for place in dict.fromkeys(places.values()):
        models = {key[2]: read() for key, read in readers.items() if key[:2] == place}
        chosen = {
            number: Clocks(partition, clock, _memory(models, place) if mem_mhz is None else mem_mhz)
            for number, (network, mem_mhz, partition, clock) in enumerate(wanted)
            if places[network] == place
        }
        found |= zip(chosen, predict(models, [*chosen.values()]), strict=True)
    predictions = [found[number] for number in range(len(wanted))]
    records = [in_units(asdict(result), result.cap_unit, result.clock) for result in predictions]
    return of_parts({"parameters": str(path), "predictions": records}, _tables(predictions))


def _memory(models: Mapping[float, Model], place: tuple[str, str]) -> float:
    """Return the only memory clock with a model."""
    if len(models) > 1:
        known = ", ".join(f"{mhz:g}" for mhz in models)
        name = " on ".join(map(one_line, place))
        raise Refused(f"{name}: models of memory clocks {known} MHz; select one with --mem.")
    return next(iter(models))


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


def _tables(predictions: Iterable[PowerPrediction]) -> Iterator[Part]:
    """Return a table per group of settings of one network on one GPU, with numbered notes."""
    for (network, gpu), group in groupby(
        predictions, key=lambda result: (result.network, result.gpu)
    ):
        results = list(group)
        notes = list(dict.fromkeys(note for result in results for note in result.beyond))
        cap_unit = results[0].cap_unit
        drawn = "power" if cap_unit == "none" else SPOKEN.get(cap_unit, one_line(cap_unit, 30))
        yield ""
        yield Line(f"{network} on {gpu}", tone="strong")
        heads = ("processes", pace(results[0].clock), "mem", "SM %", "mem %", "images/s", drawn, "")
        yield text_table(heads, [_row(result, notes) for result in results])
        yield from marked(
            (f"[{number}]", f"{note}.") for number, note in enumerate(notes[:NOTED], 1)
        )
        if len(notes) > NOTED:
            yield f"and {len(notes) - NOTED} more of this kind; --json has all."


def pace(clock: str) -> str:
    """Return the pace-setting knob: `SM`, or a substitute for a clock."""
    return "SM" if clock == CLOCK else one_line(clock, 30)


def processes(partition: Partition) -> str:
    """Write a partition with equal processes merged, `4 × 25 % b16`, in order."""
    groups = [
        (pair, len(list(same)))
        for pair, same in groupby(zip(partition.shares, partition.batches, strict=True))
    ]
    return " + ".join(f"{count} × {share:g} % b{batch}" for (share, batch), count in groups)


def decimals(value: float, digits: int = 1) -> str:
    """Write a figure, or a dash for an unknown one."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def _row(result: PowerPrediction, notes: Sequence[str]) -> list[str]:
    marks = "".join(
        f"[{notes.index(note) + 1}]" for note in result.beyond if notes.index(note) < NOTED
    )
    clocks = [f"{result.setting.sm_mhz:g}", f"{result.setting.mem_mhz:g}"]
    measures = map(
        decimals, (result.sm_util_percent, result.mem_util_percent, result.throughput_images_per_s)
    )
    return [
        processes(result.setting.partition),
        *clocks,
        *measures,
        decimals(result.power_w, 1 if result.cap_unit == WATTS else 3),
        marks,
    ]


# Results of a saved profile.
FIGURES: Sequence[tuple[Column, Callable[[PartitionRow], object]]] = (
    (Column("images/s", "images_per_s", digits), lambda row: row.throughput_images_per_s),
    (Column("W", "power_w", digits), lambda row: row.watts),
    (Column("GPU in use\n%", "gpu_percent", digits), lambda row: row.sm_util_percent),
    (Column("CPU s\nper s", "cpu_s_per_s", digits), lambda row: row.extra.get("cpu_s_per_s")),
)


def profile(run: Run) -> Answer:
    """Return the results of a profile's points, fastest first, with defects. Raises: Refused."""
    refused: list[str] = []
    rows = traces.rows_of(run, refused)
    points = [row for row in rows if row.outcome == "measured" and row.network != traces.STATIC]
    points.sort(key=lambda row: -(row.throughput_images_per_s or 0.0))
    figures = [
        (column, value)
        for column, value in FIGURES
        if any(value(row) is not None for row in points)
    ]
    table = Table(
        [
            Column("processes", left=True),
            Column("clock MHz\nor duty", "clock", "{:g}".format),
            *(column for column, _ in figures),
        ],
        [
            [
                processes(Partition(row.shares, row.batches)),
                row.clock,
                *(value(row) for _, value in figures),
            ]
            for row in points
        ],
    )
    wrong = findings(rows, "profile")
    return Answer(
        title=f"{counted(len(points), 'point')} of a profile"
        + (f"; {table.rows[0][0]} gives the most images/s." if points else "."),
        findings=[Line(line, tone="quiet") for line in headline([run]).splitlines()],
        sections=[Section("", [table, *marked(("·", finding.what) for finding in wrong)])],
        next=command("power", "traces", run.origin, "-o", "traces/"),
        data={"points": rows, "findings": wrong},
        refused=refused,
    )
