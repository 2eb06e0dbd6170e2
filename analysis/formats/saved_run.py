"""DeepTweak's own format: pytest-benchmark's JSON with a `deeptweak` part in it.

The metrics are computed anew from each cell's steps, so that a verdict stands on what was timed and not on what another program
made of it. `control/saved.py` has the fields and their units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from analysis import studies as studies_of_runs
from analysis.plain import moment
from analysis.terms import Cell, Design, Factor, Outcome, Point, Run, Study, TweakSet, Workload
from control.saved import SCHEMA_VERSION, Kind

from . import saved_cell
from .fields import Fields

if TYPE_CHECKING:
    from .saved_cell import CellKey

OURS = "deeptweak"
KINDS = (*get_args(Kind), "script")


def recognises(saved: Mapping[str, object]) -> bool:
    return OURS in saved


def from_json(saved: object, origin: str) -> Run:
    """Read a run from parsed JSON; `origin` is what messages call it.

    Raises: Unreadable.
    """
    top = Fields(saved, origin)
    ours = top.fields(OURS)
    _check_version(ours)
    _check_times(ours)
    workloads = {name: part.record(Workload, name=name) for name, part in ours.items("workloads")}
    tweaksets = {name: _tweakset(name, part) for name, part in ours.items("tweaksets")}
    studies = {name: _study(name, part, tweaksets) for name, part in ours.items("studies")}
    records = _measured_records(top)
    design = _design(ours.fields("design"), tweaksets)
    known_names = ({*studies}, {*workloads}, {*tweaksets})
    machine = top.fields("machine_info").optional_mapping(OURS)
    cells: dict[CellKey, Cell] = {}
    orders: set[int] = set()
    for part in ours.each("cells"):
        key = _key(part)
        undescribed = [name for name, known in zip(key, known_names, strict=False) if name not in known]
        if undescribed:
            part.refuse(f"names {undescribed[0]!r}, which the file does not describe")
        if key in cells:
            part.refuse(f"is there twice: {saved_cell.described(key)}")
        if not 1 <= key[3] <= studies[key[0]].blocks:
            part.refuse(f"is of block {key[3]}, but its study has blocks 1 to {studies[key[0]].blocks}")
        cell = saved_cell.read(part, key, records.get(key), machine.get("cpu_count"))
        if cell.order in orders:
            part.refuse(f"has the order {cell.order} of another cell")
        orders.add(cell.order)
        for figures in studies_of_runs.hooks("with_figures"):
            cell = figures(cell, origin, workloads[key[1]].params, capped=design.steps is not None)
        cells[key] = cell
    for key, record in records.items():
        if key not in cells:
            record.refuse(f"measured {saved_cell.described(key)}, which is not in the list of cells")
    cells = saved_cell.adjusted(cells, records)
    _check_copies(cells, ours)
    warnings = [
        *(f"{cell.id}: {line}" for cell in cells.values() for line in cell.contradictions),
        *_machine_left_changed(ours),
    ]
    return Run(
        origin=origin,
        run_id=ours.text("run_id"),
        started_utc=ours.text("started_utc"),
        interrupted=ours.flag("interrupted"),
        studies=studies,
        workloads=workloads,
        tweaksets=tweaksets,
        cells=tuple(sorted(cells.values(), key=lambda cell: cell.order)),
        machine=machine,
        design=design,
        warnings=tuple(warnings),
        baseline="stock",
        replicated=True,
        commit=commit_of(top),
        telemetry_file=ours.optional_mapping("telemetry_file"),
        place=_place(records),
    )


def commit_of(top: Fields) -> str | None:
    info = top.optional_mapping("commit_info")
    commit = info.get("id")
    if not isinstance(commit, str) or commit in ("unversioned", "unknown"):
        return None
    return f"{commit}+dirty" if info.get("dirty") else commit


def _place(records: Mapping[CellKey, Fields]) -> dict[str, str]:
    result: dict[str, set[str]] = {}
    for record in records.values():
        if where := record.optional_mapping("place"):
            facts = {"target": record.text("target"), "nodes": record.text("node"), **where}
            for name in ("target", "nodes", "apply", "workload_via", "image"):
                if isinstance(value := facts.get(name), str):
                    result.setdefault(name, set()).add(value)
    return {name: ", ".join(sorted(values)) for name, values in result.items()}


def _check_version(part: Fields) -> None:
    version = part.whole("schema_version")
    if version > SCHEMA_VERSION:
        part.refuse(f"has schema_version {version}, newer than {SCHEMA_VERSION}, the newest known here", "update DeepTweak")
    if version < 1:
        part.refuse(f"has schema_version {version}, which never existed")


def _check_times(ours: Fields) -> None:
    started, ended = (moment(ours.value.get(name)) for name in ("started_utc", "ended_utc"))
    if started and ended and ended < started:
        ours.refuse(f"ended at {ours.text('ended_utc')}, before it started at {ours.text('started_utc')}")


def _key(part: Fields) -> CellKey:
    return part.text("study"), part.text("workload"), part.text("tweakset"), part.whole("block")


def _measured_records(top: Fields) -> dict[CellKey, Fields]:
    """Return cell records by cell; a benchmark without one was not of a study (somebody's own, in the same session) and is passed over.

    So is one whose cell failed after its steps were timed: the list of cells has the reason.
    """
    records: dict[CellKey, Fields] = {}
    for benchmark in top.each("benchmarks"):
        record = benchmark.fields("extra_info")
        if "schema_version" not in record:
            continue
        _check_version(record)
        if record.one_of("outcome", get_args(Outcome)) != "measured":
            continue
        key = _key(record)
        if key in records:
            record.refuse(f"is there twice: {saved_cell.described(key)}")
        records[key] = record
    return records


def _tweakset(name: str, part: Fields) -> TweakSet:
    return part.record(TweakSet, name=name, scripts=len(part.optional(Fields.each, "scripts", [])))


def _study(name: str, part: Fields, tweaksets: Mapping[str, TweakSet]) -> Study:
    study = part.record(Study, name=name)
    if study.margin >= 1:
        part.refuse(f"has the margin {study.margin}, which is a fraction (0.03 is 3 %)")
    if study.baseline and len(set(study.baseline)) != max(2, len(study.baseline)):
        part.refuse("has a baseline that is not two or more different arms")
    for arm in study.baseline:
        known = tweaksets.get(arm)
        if known is None or known.requested or known.scripts or known.monitor:
            part.refuse(f"has {arm!r} in its baseline, which is no untouched arm of this file")
    return study


def _check_copies(cells: Mapping[CellKey, Cell], ours: Fields) -> None:
    """Refuse two blocks of one arm with the same times, in all steps or in the measured ones: a copy is no second measurement.

    A single step, or steps that all took equally long, can be alike by chance where the clock is coarse; `effect` looks at those.
    """
    seen: dict[tuple[object, ...], Cell] = {}
    for (*arm, _), cell in cells.items():
        if cell.steps is None:
            continue
        for times in {cell.steps.wall_s, cell.steps.wall_s[cell.steps.warmup :]}:
            first = seen.setdefault((*arm, times), cell)
            if first is not cell and len(set(times)) > 1:
                ours.refuse(f"has {first.id} and {cell.id} with identical wall_s: one is a copy of the other and no measurement")


def _machine_left_changed(ours: Fields) -> list[str]:
    check = ours.fields("machine_check")
    changed = check.optional_mapping("changed")
    notes = [f"putting the machine back: {note}" for note in check.optional(Fields.texts, "notes", ())]
    if check.flag("restored") and not changed:
        return notes
    names = ", ".join(sorted(changed)[:5]) or "values that were not named"
    return [f"the machine was not as before when the run ended: {names}.", *notes]


def _design(part: Fields, tweaksets: Mapping[str, TweakSet]) -> Design:
    """Read the design of a run that has these tweak sets. Raises: Unreadable."""
    factors: dict[str, dict[str, Factor]] = {}
    for each in part.each("factors"):
        factor = each.record(Factor, kind=each.one_of("kind", KINDS), levels=_levels(each))
        if factor.tweakset not in tweaksets:
            each.refuse(f"is of {factor.tweakset!r}, which the file does not describe")
        if factors.setdefault(factor.tweakset, {}).setdefault(factor.name, factor) is not factor:
            part.refuse(f"has the factor {factor.name!r} of {factor.tweakset!r} twice")
    points = {name: _point(name, fields, factors, tweaksets) for name, fields in part.items("points")}
    notes = {name: fields.value for name, fields in part.items("notes")}
    for name in notes.keys() - factors.keys():
        part.refuse(f"has notes on {name!r}, of which it has no factor")
    return part.record(
        Design,
        steps=part.optional(Fields.whole, "steps", None),
        factors=tuple(factor for own in factors.values() for factor in own.values()),
        points=points,
        notes=notes,
    )


def _levels(part: Fields) -> tuple[str | None, ...]:
    levels = part.value.get("levels")
    if not isinstance(levels, list | tuple) or not all(level is None or isinstance(level, str) for level in levels):
        part.refuse("has levels that are no list of texts that begins with null")
    if len(levels) < 2 or levels[0] is not None or len(set(levels)) < len(levels):
        part.refuse(f"has the levels {list(levels)}: they are null (as found) and at least one other, each once")
    return tuple(levels)


def _point(name: str, part: Fields, factors: Mapping[str, Mapping[str, Factor]], tweaksets: Mapping[str, TweakSet]) -> Point:
    if name not in tweaksets:
        part.refuse("is of a tweak set that the file does not describe")
    profile = part.one_of("tweakset", tuple(factors))
    varied, levels = factors[profile], part.fields("levels").value
    if varied.keys() != levels.keys():
        part.refuse(f"has levels of {', '.join(levels) or 'nothing'}, where each factor of {profile!r} has one: {', '.join(varied)}")
    for factor, level in levels.items():
        if level not in list(varied[factor].levels):
            part.refuse(f"has {factor} = {level!r}, where one of {list(varied[factor].levels)} belongs")
    return part.record(Point, tweakset=profile, levels=levels)
