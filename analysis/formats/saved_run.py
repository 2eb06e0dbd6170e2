"""DeepTweak's own format: pytest-benchmark's JSON with a `deeptweak` part in it.

The metrics are computed anew from each cell's steps, so that a verdict stands on what was timed and not on what another program
made of it. Fields and units are explained in `data/README.md`, their shape in `data/run.schema.json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from analysis.studies.io.saved import with_figures
from analysis.terms import Better, Design, Factor, Metric, Outcome, Point, Run, Setting, Study, TweakSet, Workload

from . import saved_cell, saved_turns
from .fields import Fields

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from analysis.terms import Cell


SCHEMA_VERSION = 12
STOCKS_FIRST = (
    "untouched arms were started first in each block (before schema version 10), and what is started later may be 5 % faster: a gain of "
    "that size may be none."
)
OURS = "deeptweak"

CellKey = tuple[str, str, str, int]


def from_json(saved: object, origin: str) -> Run:
    """Read a run from parsed JSON; `origin` is what messages call it.

    Raises: Unreadable.
    """
    top = Fields(saved, origin)
    ours = top.fields(OURS)
    _known_version(ours)
    workloads = {name: _workload(name, part) for name, part in ours.items("workloads")}
    tweaksets = {name: _tweakset(name, part) for name, part in ours.items("tweaksets")}
    studies = {name: _study(name, part, tweaksets) for name, part in ours.items("studies")}
    records = _measured_records(top)
    place = _place(records)
    cells: dict[CellKey, Cell] = {}
    design = _design(ours.fields("design"), tweaksets)
    imported = ours.has("imported_from")
    source = ours.optional_fields("imported_from")
    warnings = list(source.texts("warnings")) if imported else []
    for part in ours.each("cells"):
        key = _key(part)
        for name, described in ((key[0], studies.keys()), (key[1], workloads.keys()), (key[2], tweaksets.keys())):
            if name not in described:
                part.refuse(f"names {name!r}, which the file does not describe")
        if key in cells:
            part.refuse(f"is there twice: {saved_cell.called(key)}")
        planned = studies[key[0]].blocks
        if not 1 <= key[3] <= planned:
            part.refuse(f"is of block {key[3]}, but its study has blocks 1 to {planned}")
        cell = saved_cell.read(part, key, records.get(key), imported=imported)
        cells[key] = with_figures(cell, origin, workloads[key[1]].params, capped=design.steps is not None)
    cells = saved_turns.adjusted(cells, records)
    warnings += [f"{cell.id}: {line}" for cell in cells.values() for line in cell.contradictions]
    for key in [key for key in records if key not in cells]:
        records[key].refuse(f"measured {saved_cell.called(key)}, which is not in the list of cells")
    _no_copies(cells, ours)
    warnings += _machine_left_changed(ours)
    if design.kind == "turns" and ours.whole("schema_version") < saved_turns.STARTS_IN_RANDOM_ORDER:
        warnings.append(STOCKS_FIRST)
    return Run(
        origin=origin,
        run_id=ours.text("run_id"),
        started_utc=(ours.optional_text("started_utc") or "") if imported else ours.text("started_utc"),
        interrupted=ours.flag("interrupted"),
        studies=studies,
        workloads=workloads,
        tweaksets=tweaksets,
        cells=tuple(sorted(cells.values(), key=lambda cell: cell.order)),
        machine=top.fields("machine_info").optional_mapping(OURS),
        design=design,
        warnings=tuple(warnings),
        baseline=source.one_of("baseline", tuple(tweaksets)) if imported else "stock",
        replicated=not imported or design.blocks > 1,
        commit=commit_of(top),
        telemetry_file=ours.optional_mapping("telemetry_file"),
        place=place,
    )


def _place(records: Mapping[CellKey, Fields]) -> dict[str, str]:
    result: dict[str, list[str]] = {}
    for record in records.values():
        where: Mapping[str, object] = record.optional_mapping("place")
        if where:
            told = {"target": record.text("target"), "nodes": record.text("node"), **where}
            for name in ("target", "nodes", "apply", "workload_via", "image"):
                if isinstance(value := told.get(name), str) and value not in result.setdefault(name, []):
                    result[name].append(value)
    return {name: ", ".join(sorted(values)) for name, values in result.items() if values}


def recognises(saved: Mapping[str, object]) -> bool:
    return OURS in saved


def commit_of(top: Fields) -> str | None:
    info: Mapping[str, object] = top.optional_mapping("commit_info")
    commit = info.get("id")
    if not isinstance(commit, str) or commit in ("unversioned", "unknown"):
        return None
    return f"{commit}+dirty" if info.get("dirty") else commit


def _known_version(part: Fields) -> None:
    version = part.whole("schema_version")
    if version > SCHEMA_VERSION:
        part.refuse(f"has schema_version {version}, newer than {SCHEMA_VERSION}, the newest known here", "update DeepTweak")
    if version < 1:
        part.refuse(f"has schema_version {version}, which never existed")


def _key(part: Fields) -> CellKey:
    return part.text("study"), part.text("workload"), part.text("tweakset"), part.whole("block")


def _measured_records(top: Fields) -> dict[CellKey, Fields]:
    """Cell records by cell; a benchmark without one was not of a study (somebody's own, in the same session) and is passed over.

    So is one whose cell failed after its steps were timed: the list of cells has the reason.
    """
    records: dict[CellKey, Fields] = {}
    for benchmark in top.each("benchmarks"):
        record = benchmark.fields("extra_info")
        if "schema_version" not in record:
            continue
        _known_version(record)
        if record.one_of("outcome", get_args(Outcome)) != "measured":
            continue
        key = _key(record)
        if key in records:
            record.refuse(f"is there twice: {saved_cell.called(key)}")
        records[key] = record
    return records


def _metric(part: Fields) -> Metric:
    better: Better = "lower" if part.one_of("better", get_args(Better)) == "lower" else "higher"
    return Metric(part.text("name"), better)


def _study(name: str, part: Fields, tweaksets: Mapping[str, TweakSet]) -> Study:
    margin = part.positive("margin")
    if margin >= 1:
        part.refuse(f"has the margin {margin}, which is a fraction (0.03 is 3 %)")
    baseline = part.texts("baseline") if part.has("baseline") else ()
    if baseline and len(set(baseline)) != max(2, len(baseline)):
        part.refuse("has a baseline that is not two or more different arms")
    for arm in baseline:
        known = tweaksets.get(arm)
        if known is None or known.requested or known.scripts or known.monitor:
            part.refuse(f"has {arm!r} in its baseline, which is no untouched arm of this file")
    primary = _metric(part.fields("primary"))
    return Study(name, part.text("question"), margin, part.whole("blocks"), primary, baseline)


def _workload(name: str, part: Fields) -> Workload:
    primary = _metric(part.fields("primary")) if part.has("primary") else None
    return Workload(name, primary, part.optional_text("description") or "", part.optional_mapping("params"))


def _tweakset(name: str, part: Fields) -> TweakSet:
    return TweakSet(
        name=name,
        requested=tuple(Setting(fields.text("kind"), fields.text("key"), fields.text("value")) for fields in part.each("requested")),
        scripts=len(part.each("scripts")) if part.has("scripts") else 0,
        description=part.optional_text("description") or "",
        path=part.optional_text("path"),
        sha256=part.optional_text("sha256"),
        warnings=part.texts("warnings") if part.has("warnings") else (),
        monitor=part.optional_text("monitor") or "",
    )


def _no_copies(cells: Mapping[CellKey, Cell], ours: Fields) -> None:
    """Refuse two blocks of one arm with the same times, in all steps or in the measured ones: a copy is no second measurement.

    A single step, or steps that all took equally long, can be alike by chance where the clock is coarse; `effect` looks at those.
    """
    seen: dict[tuple[str, str, str, tuple[float, ...]], Cell] = {}
    for (*arm, _), cell in cells.items():
        if cell.steps is None:
            continue
        for times in {cell.steps.wall_s, cell.steps.wall_s[cell.steps.warmup :]}:
            first = seen.setdefault((arm[0], arm[1], arm[2], times), cell)
            if first is not cell and len(set(times)) > 1:
                ours.refuse(f"has {first.id} and {cell.id} with identical wall_s: one is a copy of the other and no measurement")


def _machine_left_changed(ours: Fields) -> list[str]:
    if not ours.has("machine_check"):
        return []
    check = ours.fields("machine_check")
    changed: Mapping[str, object] = check.optional_mapping("changed")
    notes = [f"putting the machine back: {note}" for note in (check.texts("notes") if check.has("notes") else ())]
    if check.flag("restored") and not changed:
        return notes
    names = ", ".join(sorted(changed)[:5]) or "values that were not named"
    return [f"the machine was not as before when the run ended: {names}.", *notes]


KINDS = ("sysctl", "ulimit", "service", "boot", "environment", "process", "script")


def _design(part: Fields, tweaksets: Container[str]) -> Design:
    """Read the design of a run that has these tweak sets. Raises: Unreadable."""
    factors = tuple(_factor(factor, tweaksets) for factor in part.each("factors")) if part.has("factors") else ()
    taken_apart: dict[str, dict[str, Factor]] = {}
    for factor in factors:
        if factor.name in taken_apart.setdefault(factor.tweakset, {}):
            part.refuse(f"has the factor {factor.name!r} of {factor.tweakset!r} twice")
        taken_apart[factor.tweakset][factor.name] = factor
    points = {name: _point(name, fields, taken_apart, tweaksets) for name, fields in part.items("points")} if part.has("points") else {}
    notes = {name: fields.value for name, fields in part.items("notes")} if part.has("notes") else {}
    for name in notes:
        if name not in taken_apart:
            part.refuse(f"has notes on {name!r}, of which it has no factor")
    return Design(
        seed=part.whole("seed"),
        blocks=part.whole("blocks"),
        steps=part.whole("steps") if part.has("steps") else None,
        order=part.texts("order"),
        kind=part.text("kind") if part.has("kind") else "matrix",
        factors=factors,
        points=points,
        notes=notes,
        conclusion=_conclusion(part),
        sequential=_is_sequential(part),
        budget_s=part.positive("budget_s") if part.has("budget_s") else None,
    )


def _is_sequential(part: Fields) -> bool:
    """Whether an arm was measured until it would see a gain (`mde`) that was named before."""
    if part.has("precision") and part.fields("precision").positive("mde") >= 1:
        part.refuse("has a precision of 100 % or more")
    return part.has("precision")


def _factor(part: Fields, tweaksets: Container[str]) -> Factor:
    tweakset, levels = part.text("tweakset"), _levels(part)
    if tweakset not in tweaksets:
        part.refuse(f"is of {tweakset!r}, which the file does not describe")
    return Factor(tweakset, part.text("name"), part.one_of("kind", KINDS), levels)


def _levels(part: Fields) -> tuple[str | None, ...]:
    levels = part.value.get("levels")
    if not isinstance(levels, list | tuple) or not all(level is None or isinstance(level, str) for level in levels):
        part.refuse("has levels that are no list of texts that begins with null")
    if len(levels) < 2 or levels[0] is not None or len(set(levels)) < len(levels):
        part.refuse(f"has the levels {list(levels)}: they are null (as found) and at least one other, each once")
    return tuple(levels)


def _point(name: str, part: Fields, taken_apart: Mapping[str, Mapping[str, Factor]], tweaksets: Container[str]) -> Point:
    if name not in tweaksets:
        part.refuse("is of a tweak set that the file does not describe")
    profile = part.one_of("tweakset", tuple(taken_apart))
    factors, levels = taken_apart[profile], part.fields("levels").value
    if factors.keys() != levels.keys():
        part.refuse(f"has levels of {', '.join(levels) or 'nothing'}, where each factor of {profile!r} has one: {', '.join(factors)}")
    result: dict[str, str | None] = {}
    for factor, level in levels.items():
        if not (level is None or isinstance(level, str)) or level not in factors[factor].levels:
            part.refuse(f"has {factor} = {level!r}, where one of {list(factors[factor].levels)} belongs")
        result[factor] = level
    return Point(profile, result)


def _conclusion(part: Fields) -> Mapping[str, object]:
    if not part.has("conclusion"):
        return {}
    conclusion = part.fields("conclusion")
    conclusion.text("text")
    conclusion.flag("done")
    return conclusion.value
