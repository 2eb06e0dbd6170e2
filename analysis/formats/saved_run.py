"""DeepTweak's own format: pytest-benchmark's JSON with a `deeptweak` part in it.

The metrics are recomputed from each cell's steps, so that a verdict rests on the measured times and
not on another program's summary. `control/saved.py` has the fields and their units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from analysis.plain import moment
from analysis.terms import (
    Cell,
    Design,
    DesignPoint,
    Factor,
    Run,
    SavedStudy,
    SavedTweakSet,
    SavedWorkload,
)
from control.names import cpu_name
from control.record import SCHEMA_VERSION
from control.saved_cell import CellRecord, RunFile

from . import saved_cell
from .checked import Part

if TYPE_CHECKING:
    from .saved_cell import CellKey

OURS = "deeptweak"


def recognises(saved: Mapping[str, object]) -> bool:
    return OURS in saved


def from_json(saved: Mapping[str, Any], origin: str) -> Run:
    """Read a run from parsed JSON; messages call it `origin`.

    Raises: Unreadable.
    """
    file = Part(saved, origin)
    _must_not_be_newer(file.at(OURS))
    file.read(RunFile)
    ours = file.at(OURS)
    _check_times(ours)
    workloads = {name: _workload(name, part) for name, part in ours.at("workloads").entries()}
    tweaksets = {name: _tweakset(name, part) for name, part in ours.at("tweaksets").entries()}
    studies = {name: _study(name, part, tweaksets) for name, part in ours.at("studies").entries()}
    design = _design(ours.at("design"), tweaksets)
    records = _measured_records(file.at("benchmarks"))
    known_names = ({*studies}, {*workloads}, {*tweaksets})
    machine = _machine(saved["machine_info"])
    cells: dict[CellKey, Cell] = {}
    orders: set[int] = set()
    for part in ours.at("cells").each():
        key = saved_cell.key_of(part)
        undescribed = [
            name for name, known in zip(key, known_names, strict=False) if name not in known
        ]
        if undescribed:
            part.refuse(f"names {undescribed[0]!r}, which the file does not describe")
        if key in cells:
            part.refuse(f"is repeated: {saved_cell.described(key)}")
        if not 1 <= key[3] <= studies[key[0]].blocks:
            part.refuse(
                f"is in block {key[3]}, but its study has blocks 1 to {studies[key[0]].blocks}"
            )
        cell = saved_cell.read(part, key, records.get(key))
        if cell.order in orders:
            part.refuse(f"has the order {cell.order} of another cell")
        orders.add(cell.order)
        cells[key] = cell
    for key, record in records.items():
        if key not in cells:
            record.refuse(
                f"measured {saved_cell.described(key)}, which is missing from the list of cells"
            )
    if any(cell.report for cell in cells.values()):
        cells = _with_figures(cells, origin, workloads, capped=design.steps is not None)
    cells = saved_cell.adjusted(cells, records)
    _check_copies(cells, ours)
    run = ours.value
    return Run(
        origin=origin,
        run_id=run["run_id"],
        started_utc=run["started_utc"],
        interrupted=run["interrupted"],
        studies=studies,
        workloads=workloads,
        tweaksets=tweaksets,
        cells=tuple(sorted(cells.values(), key=lambda cell: cell.order)),
        machine=machine,
        design=design,
        warnings=(
            *(f"{cell.id}: {line}" for cell in cells.values() for line in cell.contradictions),
            *_machine_left_changed(run["machine_check"]),
        ),
        baseline="stock",
        replicated=True,
        commit=commit_of(saved.get("commit_info")),
        telemetry_file=run["telemetry_file"] or {},
        place=_place(records),
    )


def _with_figures(
    cells: dict[CellKey, Cell], origin: str, workloads: Mapping[str, SavedWorkload], *, capped: bool
) -> dict[CellKey, Cell]:
    """Add the metrics that studies derive from their cells' reports."""
    from analysis import studies

    result = {}
    for key, cell in cells.items():
        for figures in studies.hooks("with_figures"):
            cell = figures(cell, origin, workloads[key[1]].params, capped=capped)  # noqa: PLW2901
        result[key] = cell
    return result


def commit_of(info: object) -> str | None:
    """Return the source revision that pytest-benchmark recorded."""
    known = info if isinstance(info, dict) else {}
    commit = known.get("id")
    if not isinstance(commit, str) or commit in ("unversioned", "unknown"):
        return None
    return f"{commit}+dirty" if known.get("dirty") else commit


def _place(records: Mapping[CellKey, Part]) -> dict[str, str]:
    result: dict[str, set[str]] = {}
    for record in (record.value for record in records.values()):
        if where := record.get("place"):
            facts = {"target": record["target"], "nodes": record.get("node"), **where}
            for name in ("target", "nodes", "apply", "workload_via", "image"):
                if facts.get(name):
                    result.setdefault(name, set()).add(facts[name])
    return {name: ", ".join(sorted(values)) for name, values in result.items()}


def _must_not_be_newer(part: Part) -> None:
    version = part.value.get("schema_version") if isinstance(part.value, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        part.refuse(
            f"has schema_version {version}, newer than {SCHEMA_VERSION}, the newest supported "
            "version",
            "update DeepTweak",
        )


def _check_times(ours: Part) -> None:
    started, ended = (moment(ours.value[name]) for name in ("started_utc", "ended_utc"))
    if started and ended and ended < started:
        ours.refuse(
            f"ended at {ours.value['ended_utc']}, before it started at {ours.value['started_utc']}"
        )


def _measured_records(benchmarks: Part) -> dict[CellKey, Part]:
    """Return cell records by cell; skip benchmarks outside studies, such as a user's own.

    Also skip cells that failed after their steps were timed: the list of cells has the reason.
    """
    records: dict[CellKey, Part] = {}
    for benchmark in benchmarks.each():
        record = benchmark.at("extra_info")
        _must_not_be_newer(record)
        if "schema_version" not in record.value or record.value.get("outcome") in (
            "failed",
            "skipped",
        ):
            continue
        record.read(CellRecord)
        key = saved_cell.key_of(record)
        if key in records:
            record.refuse(f"is repeated: {saved_cell.described(key)}")
        records[key] = record
    return records


def _must_be_its_direction(part: Part) -> None:
    """Refuse a direction that contradicts the known one of a metric computed here."""
    name, better = part.value["name"], part.value["better"]
    known = (
        "higher"
        if name.startswith(("throughput_", "rate_"))
        else "lower"
        if name.startswith(("step_time_", "cpu_s_"))
        else better
    )
    if better != known:
        part.refuse(f"declares {better} {name} as better, but {known} is better")


def _workload(name: str, part: Part) -> SavedWorkload:
    if part.value.get("primary"):
        _must_be_its_direction(part.at("primary"))
    return part.made(SavedWorkload, name=name)


def _tweakset(name: str, part: Part) -> SavedTweakSet:
    return part.made(SavedTweakSet, name=name, scripts=len(part.value["scripts"]))


def _study(name: str, part: Part, tweaksets: Mapping[str, SavedTweakSet]) -> SavedStudy:
    _must_be_its_direction(part.at("primary"))
    study = part.made(SavedStudy, name=name)
    if len(set(study.baseline)) < len(study.baseline):
        part.refuse("has a baseline without two or more different arms")
    for arm in study.baseline:
        known = tweaksets.get(arm)
        if known is None or known.requested or known.scripts or known.monitor:
            part.refuse(f"has {arm!r} in its baseline, which is not an untouched arm of this file")
    return study


def _check_copies(cells: Mapping[CellKey, Cell], ours: Part) -> None:
    """Refuse two blocks of an arm with identical times in all or all measured steps: a copy.

    A single step, or steps that all took equally long, can agree by chance on a coarse clock;
    `effect` checks those.
    """
    seen: dict[tuple[object, ...], Cell] = {}
    for (*arm, _), cell in cells.items():
        if cell.steps is None:
            continue
        for times in {cell.steps.wall_s, cell.steps.wall_s[cell.steps.warmup :]}:
            first = seen.setdefault((*arm, times), cell)
            if first is not cell and len(set(times)) > 1:
                ours.refuse(
                    f"has {first.id} and {cell.id} with identical wall_s: one is a copy of the "
                    "other, not a measurement"
                )


def _machine(info: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the facts of a machine; the CPU's generation in `info` is the client's."""
    facts: Mapping[str, object] = info[OURS]
    cpu = info.get("cpu")
    if "kubernetes" in facts or not isinstance(cpu, dict):
        return facts
    name = cpu_name(str(facts.get("cpu_model") or ""), cpu.get("family"), cpu.get("model"))
    return {**facts, "cpu_model": name} if name else facts


def _machine_left_changed(check: Mapping[str, Any]) -> list[str]:
    notes = [f"putting the machine back: {note}" for note in check.get("notes", ())]
    if check["restored"] and not check["changed"]:
        return notes
    names = ", ".join(sorted(check["changed"])[:5]) or "unnamed values"
    return [f"at the end of the run, the machine differed from before: {names}.", *notes]


def _design(part: Part, tweaksets: Mapping[str, SavedTweakSet]) -> Design:
    """Read the design of a run that has these tweak sets. Raises: Unreadable."""
    factors: dict[str, dict[str, Factor]] = {}
    for each in part.at("factors").each():
        factor = each.read(Factor)
        if factor.levels[0] is not None or len(set(factor.levels)) < len(factor.levels):
            each.refuse(
                f"has the levels {list(factor.levels)}, but needs null (as found) and at least "
                "one other, without repeats"
            )
        if factor.tweakset not in tweaksets:
            each.refuse(f"belongs to {factor.tweakset!r}, which the file does not describe")
        if factors.setdefault(factor.tweakset, {}).setdefault(factor.name, factor) is not factor:
            part.refuse(f"has the factor {factor.name!r} of {factor.tweakset!r} twice")
    for name, point in part.at("points").entries():
        _check_point(name, point, factors, tweaksets)
    for name in part.value["notes"].keys() - factors.keys():
        part.refuse(f"has notes on {name!r}, but no factor of that tweak set")
    return part.read(Design)


def _check_point(
    name: str,
    part: Part,
    factors: Mapping[str, Mapping[str, Factor]],
    tweaksets: Mapping[str, SavedTweakSet],
) -> None:
    point = part.read(DesignPoint)
    if name not in tweaksets:
        part.refuse("belongs to a tweak set that the file does not describe")
    varied = factors.get(point.tweakset)
    if varied is None:
        part.refuse(
            f"belongs to {point.tweakset!r}, but must belong to one of {', '.join(factors)}"
        )
    if varied.keys() != point.levels.keys():
        levels = ", ".join(point.levels) or "nothing"
        part.refuse(
            f"has levels for {levels}, but needs one for each factor of {point.tweakset!r}: "
            f"{', '.join(varied)}"
        )
    for factor, level in point.levels.items():
        if level not in varied[factor].levels:
            part.refuse(
                f"has {factor} = {level!r}, but must have one of {list(varied[factor].levels)}"
            )
