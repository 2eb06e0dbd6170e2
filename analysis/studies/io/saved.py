"""Our own saved runs as I/O runs: one a measured cell. A report that is not as it should be is named with its cell and left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from analysis.checks import must_be_in_force, must_not_contradict
from analysis.formats.fields import LARGEST_COUNT, LONGEST_S, Fields
from analysis.terms import Cell, NotComparable, Run, Unreadable

from .figures import Judged, judge
from .terms import Checkpoint, Epoch, IoRun

MACHINE = {"name": "hostname", "cpus": "cpu_count", "memory_bytes": "mem_total_bytes"}
FEW = 2  # workloads, of which each is the other's only company


def with_figures(cell: Cell, origin: str, params: Mapping[str, object], *, capped: bool) -> Cell:
    """Return a cell with every figure that may be believed as a metric, and its report as it was judged; or what is wrong with that."""
    try:
        judged = judge(of_report(cell, origin, params, capped=capped))
    except Unreadable as error:
        return replace(cell, reading=str(error))
    figures = {name: figure.value for name, figure in judged.responses.items() if figure.value is not None}
    return replace(cell, metrics={**cell.metrics, **figures}, reading=judged)


def judged_of(run: Run, refused: list[str]) -> list[Judged]:
    """Return the I/O runs of a saved run, in the order its cells ran; cells of workloads that report no I/O are none."""
    result = []
    reporting = {cell.workload for cell in run.cells if "io" in cell.report}
    carried = Counter(name for workload in reporting for name in _named_parameters(workload))
    # A name does not carry the default, so `io_train:format=raw` beside `io_train` means two formats. What one alone of many carries (how
    # often it writes checkpoints) is no question that the others answer too.
    varied = {name for name, times in carried.items() if times > 1 or len(reporting) <= FEW}
    machine = {name: run.machine.get(key) for name, key in MACHINE.items()}
    for cell in (cell for cell in run.cells if cell.workload in reporting):
        if cell.outcome != "measured":
            refused.append(f"{run.origin}: {cell.id} {cell.outcome}: {(cell.reason or 'no reason was recorded').rstrip('.')}.")
            continue
        try:
            must_be_in_force(run.tweaksets[cell.tweakset], [cell])
            must_not_contradict([cell])
        except NotComparable as error:
            refused.append(f"{run.origin}: {cell.id}: {error}")
            continue
        if not isinstance(cell.reading, Judged):
            refused.append(str(cell.reading or f"{run.origin}: {cell.id} reports nothing of its input."))
            continue
        params, named = run.workloads[cell.workload].params, _named_parameters(cell.workload)
        asked = {name: value for name, value in params.items() if name in named or name in varied}
        own = replace(
            cell.reading.run,
            params={**params, "seed": run.design.seed},
            overrides={**asked, **{name: value for name, value in named.items() if name not in asked}},
            host=machine,
            disk=_disk(cell),
            changed_nothing=_changed_nothing(cell, run),
        )
        result.append(replace(cell.reading, run=own))
    return result


def _named_parameters(workload: str) -> dict[str, str]:
    """Return the parameters that a workload's name carries: `io_train:format=npz:cache=cold`."""
    return dict(part.split("=", 1) for part in workload.split(":")[1:] if "=" in part)


def of_report(cell: Cell, origin: str, params: Mapping[str, object], *, capped: bool) -> IoRun:
    """Read what one cell reported. `capped`: fewer steps than its epochs have were asked for. Raises: Unreadable."""
    place = f"cell {cell.id}, report"
    if len(cell.report.get("io", ())) != 1:
        raise Unreadable(f"{origin}: {place}: holds {len(cell.report.get('io', ()))} parts 'io' where one belongs; measure it again.")
    part = Fields(cell.report["io"][0], origin, f"{place}.io")
    processes = part.whole("processes")
    epochs = [_epoch(Fields(epoch, origin, f"{place}.epochs[{at}]")) for at, epoch in enumerate(cell.report.get("epochs", ()))]
    _complete(part, epochs, processes)
    _whole_epochs(part, epochs, capped=capped)
    engine, version = part.text("engine"), part.optional_text("engine_version")
    marks = [Fields(checkpoint, origin, f"{place}.checkpoints[{at}]") for at, checkpoint in enumerate(cell.report.get("checkpoints", ()))]
    return IoRun(
        origin=origin,
        id=cell.id,
        model=part.text("model"),
        engine=engine,
        engine_version=version,
        # Trees after 2.0.0 of PyPI call themselves the same; they are known by the key that they read the record's length from.
        dlio_counts_all=engine == "dlio" and version == "2.0.0" and part.optional_text("engine_keys") != "record_length_bytes",
        processes=processes,
        batch_size=part.whole("batch_size"),
        read_threads=part.whole("read_threads"),
        prefetch_factor=part.whole("prefetch_factor") if part.has("prefetch_factor") else 0,
        computation_time_s=part.up_to("computation_time_s", LONGEST_S),
        record_length_bytes=_length_bytes(part),
        epochs=tuple(sorted(epochs, key=lambda epoch: (epoch.number, epoch.rank))),
        excluded_start_steps=part.whole("excluded_start_steps"),
        excluded_end_steps=part.whole("excluded_end_steps"),
        checkpoints=tuple(Checkpoint(mark.whole("bytes"), mark.time("duration_s")) for mark in marks),
        dataset=part.optional_mapping("dataset"),
        reported=part.optional_mapping("reported"),
        params=params,
        started_utc=cell.started_utc,
        tweakset=cell.tweakset,
        block=cell.block,
        order=cell.order,
    )


def _length_bytes(part: Fields) -> float:
    length = part.positive("record_length_bytes")
    if length > LARGEST_COUNT:
        part.refuse(f"has samples of {length:g} bytes, which no disk holds")
    return length


def _complete(part: Fields, epochs: list[Epoch], processes: int) -> None:
    """Refuse a report in which an epoch of a rank is missing or there twice: sums over ranks would be wrong."""
    if not epochs or processes < 1:
        part.refuse("has no epochs" if processes else "has no processes")
    seen = {(epoch.number, epoch.rank) for epoch in epochs}
    numbers = {number for number, _ in seen}
    # Counted, not listed: a damaged file may speak of as many ranks as it likes.
    whole = len(seen) == len(epochs) == len(numbers) * processes and max(rank for _, rank in seen) < processes
    if not whole or numbers != set(range(1, len(numbers) + 1)):
        part.refuse(f"has {len(epochs)} reports of epochs where each of {processes} ranks reports each of {len(numbers)} once")


def _whole_epochs(part: Fields, epochs: list[Epoch], *, capped: bool) -> None:
    """Refuse epochs of another number of steps than the report says; a cap on the steps cuts the last one short."""
    if not part.has("steps_per_epoch"):
        return
    steps, last = part.whole("steps_per_epoch"), max(epoch.number for epoch in epochs)
    for epoch in epochs:
        if epoch.steps != steps and not (capped and epoch.number == last and epoch.steps < steps):
            part.refuse(f"says that an epoch has {steps} steps, and epoch {epoch.number} of rank {epoch.rank} has {epoch.steps}")


def _epoch(part: Fields) -> Epoch:
    start_s, end_s = part.positive("start_monotonic_s"), part.positive("end_monotonic_s")
    if end_s <= start_s:
        part.refuse(f"ends at {end_s} s, before it begins ({start_s} s)")
    load_s, compute_s = part.times("load_s", zero=True), part.times("compute_s", zero=True)
    barrier_s = part.times("barrier_s", zero=True) if part.has("barrier_s") else None
    if not load_s:
        part.refuse("has no step")
    for name, values in (("compute_s", compute_s), ("barrier_s", barrier_s)):
        if values is not None and len(values) != len(load_s):
            part.refuse(f"has {len(values)} {name} for {len(load_s)} load_s")
    asked, fetched, device = (part.whole(name) if part.has(name) else None for name in ("rchar_bytes", "read_bytes", "device_read_bytes"))
    # To DLIO a checkpoint ends a block of steps: what it took is in none.
    return Epoch(
        number=part.whole("epoch"),
        rank=part.whole("rank"),
        start_s=start_s,
        end_s=end_s - (part.up_to("checkpoint_s", LONGEST_S) or 0.0),
        load_s=load_s,
        compute_s=compute_s,
        barrier_s=barrier_s,
        rchar_bytes=asked,
        read_bytes=fetched,
        device_read_bytes=device,
        resident_before=part.up_to("resident_before", 1.0),
        resident_after=part.up_to("resident_after", 1.0),
        locked=part.has("locked") and part.flag("locked"),
    )


def _disk(cell: Cell) -> dict[str, object]:
    """The queue of its disk as the workload found it; of a scheduler's list `[none] mq-deadline` it is `none`."""
    result = {name.removeprefix("device_"): value for name, value in cell.facts.items() if name.startswith("device_")}
    if result and "device" in cell.facts:
        result["device"] = cell.facts["device"]
    scheduler = result.get("scheduler")
    if isinstance(scheduler, str) and "[" in scheduler:
        result["scheduler"] = scheduler.partition("[")[2].partition("]")[0]
    return result


def _changed_nothing(cell: Cell, run: Run) -> bool:
    """Whether a tweak set left every setting as it found it. On a cluster nobody looks at what scripts change: there only keys count."""
    applied, tweakset = cell.applied, run.tweaksets[cell.tweakset]
    if applied is None or not (tweakset.requested or tweakset.scripts) or (tweakset.scripts and run.place):
        return False
    return {setting.key for setting in tweakset.requested} <= applied.already_in_force and not applied.side_effects
