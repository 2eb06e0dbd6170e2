"""Our own saved runs as I/O runs, one per measured cell; an invalid report is named and omitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from analysis.checks import lost_cells, must_be_in_force, must_not_contradict
from analysis.formats.checked import Part
from analysis.terms import Cell, NotComparable, Run, Unreadable
from control.saved import Count, Duration, Ordinal, Positive  # noqa: TC001  # msgspec reads by them

from .figures import Judged, judge
from .terms import Checkpoint, Epoch, IoRun

Share = Annotated[float, Meta(ge=0, le=1)]
FEW = 2  # workloads: each is the other's only comparison


def with_figures(cell: Cell, origin: str, params: Mapping[str, object], *, capped: bool) -> Cell:
    try:
        judged = judge(of_report(cell, origin, params, capped=capped))
    except Unreadable as error:
        return replace(cell, reading=str(error))
    figures = {
        name: figure.value for name, figure in judged.responses.items() if figure.value is not None
    }
    return replace(cell, metrics={**cell.metrics, **figures}, reading=judged)


def judged_of(run: Run, refused: list[str]) -> list[Judged]:
    result = []
    reporting = {cell.workload for cell in run.cells if "io" in cell.report}
    carried = Counter(name for workload in reporting for name in _named_parameters(workload))
    # A name omits defaults, so `io_train:format=raw` beside `io_train` means two formats. A
    # parameter that one of many names has (such as the checkpoint interval) is not a common factor.
    varied = {name for name, times in carried.items() if times > 1 or len(reporting) <= FEW}
    own_cells = [cell for cell in run.cells if cell.workload in reporting]
    refused += lost_cells(run, own_cells)
    for cell in (cell for cell in own_cells if cell.outcome == "measured"):
        try:
            must_be_in_force(run.tweaksets[cell.tweakset], [cell])
            must_not_contradict([cell])
        except NotComparable as error:
            refused.append(f"{run.origin}: {cell.id}: {error}")
            continue
        if not isinstance(cell.reading, Judged):
            refused.append(
                str(cell.reading or f"{run.origin}: {cell.id} reports nothing about its input.")
            )
            continue
        named, params = _named_parameters(cell.workload), run.workloads[cell.workload].params
        every = {**params, **named, **params}
        asked = {name: value for name, value in every.items() if name in {*named, *varied}}
        params = {**params, "seed": run.design.seed}
        own = replace(cell.reading.run, params=params, overrides=asked)
        result.append(replace(cell.reading, run=own))
    return result


def _named_parameters(workload: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in workload.split(":")[1:] if "=" in part)


class IoReport(TypedDict):
    """A cell's report of its job; other fields of the report are ignored."""

    model: str
    engine: str
    processes: Ordinal
    batch_size: Count
    read_threads: Count
    record_length_bytes: Annotated[float, Meta(gt=0, le=2.0**63)]
    excluded_start_steps: Count
    excluded_end_steps: Count
    engine_version: NotRequired[str | None]
    engine_keys: NotRequired[str | None]
    prefetch_factor: NotRequired[Count | None]
    computation_time_s: NotRequired[Duration | None]
    steps_per_epoch: NotRequired[Count | None]
    dataset: NotRequired[dict[str, Any]]
    reported: NotRequired[dict[str, Any]]


class EpochReport(TypedDict):
    epoch: Count
    rank: Count
    start_monotonic_s: Positive
    end_monotonic_s: Positive
    load_s: Annotated[tuple[Duration, ...], Meta(min_length=1)]
    compute_s: tuple[Duration, ...]
    barrier_s: NotRequired[tuple[Duration, ...] | None]
    rchar_bytes: NotRequired[Count | None]
    read_bytes: NotRequired[Count | None]
    device_read_bytes: NotRequired[Count | None]
    resident_before: NotRequired[Share | None]
    resident_after: NotRequired[Share | None]
    locked: NotRequired[bool]
    checkpoint_s: NotRequired[Duration | None]


def of_report(cell: Cell, origin: str, params: Mapping[str, object], *, capped: bool) -> IoRun:
    report = Part(cell.report, origin, f"cell {cell.id}, report")
    if len(cell.report["io"]) != 1:
        report.refuse(
            f"has {len(cell.report['io'])} parts 'io' but needs exactly one", "measure it again"
        )
    part = report.at("io", 0)
    about: dict[str, Any] = {**part.read(IoReport)}
    engine = about["engine"], about.get("engine_version"), about.pop("engine_keys", None)
    epochs = [_epoch(one) for one in report.at("epochs").each()] if "epochs" in cell.report else []
    marks = report.at("checkpoints").each() if "checkpoints" in cell.report else ()
    _complete(part, epochs, about["processes"])
    _whole_epochs(part, epochs, about.pop("steps_per_epoch", None), capped=capped)
    return IoRun(
        **{"prefetch_factor": 0, "computation_time_s": None, **about},
        origin=origin,
        id=cell.id,
        # Versions after 2.0.0 on PyPI have the same version; the key of the record length
        # identifies them.
        dlio_counts_all=engine[:2] == ("dlio", "2.0.0") and engine[2] != "record_length_bytes",
        epochs=tuple(sorted(epochs, key=lambda epoch: (epoch.number, epoch.rank))),
        checkpoints=tuple(mark.read(Checkpoint) for mark in marks),
        params=params,
        started_utc=cell.started_utc,
        tweakset=cell.tweakset,
        block=cell.block,
        order=cell.order,
    )


def _complete(part: Part, epochs: list[Epoch], processes: int) -> None:
    if not epochs:
        part.refuse("has no epochs")
    seen = {(epoch.number, epoch.rank) for epoch in epochs}
    numbers = {number for number, _ in seen}
    # Counted, not listed: a damaged file may claim any number of ranks.
    whole = (
        len(seen) == len(epochs) == len(numbers) * processes
        and max(rank for _, rank in seen) < processes
    )
    if not whole or numbers != set(range(1, len(numbers) + 1)):
        part.refuse(
            f"has {len(epochs)} reports of epochs but each of {processes} ranks must report each "
            f"of {len(numbers)} once"
        )


def _whole_epochs(part: Part, epochs: list[Epoch], steps: int | None, *, capped: bool) -> None:
    last = max(epoch.number for epoch in epochs)
    for epoch in epochs if steps is not None else ():
        is_cut = capped and epoch.number == last and epoch.steps < (steps or 0)
        if epoch.steps != steps and not is_cut:
            part.refuse(
                f"gives {steps} steps per epoch, but epoch {epoch.number} of rank {epoch.rank} has "
                f"{epoch.steps}"
            )


def _epoch(part: Part) -> Epoch:
    about: dict[str, Any] = {**part.read(EpochReport)}
    start_s, end_s, checkpoint_s = (
        about.pop(name, None) for name in ("start_monotonic_s", "end_monotonic_s", "checkpoint_s")
    )
    if end_s <= start_s:
        part.refuse(f"ends at {end_s} s, before it begins ({start_s} s)")
    for name in ("compute_s", "barrier_s"):
        values = about.get(name)
        if values is not None and len(values) != len(about["load_s"]):
            part.refuse(f"has {len(values)} {name} for {len(about['load_s'])} load_s")
    # In DLIO a checkpoint ends a block of steps: its time is in none.
    return Epoch(
        number=about.pop("epoch"), start_s=start_s, end_s=end_s - (checkpoint_s or 0.0), **about
    )
