"""DeepTweak's own format: pytest-benchmark's JSON with a `deeptweak` part in it.

Metrics are recomputed from each cell's steps, so that a verdict rests on the measured times.
`control/saved.py` has the fields and their units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

from analysis.metrics import disagreements, metrics_of
from analysis.plain import moment
from analysis.terms import (
    AppliedKeys,
    Cell,
    Design,
    DesignPoint,
    Factor,
    Run,
    SavedStudy,
    SavedTweakSet,
    SavedWorkload,
    Steps,
)
from control.names import cpu_name
from control.record import SCHEMA_VERSION
from control.saved import SHORTEST_S
from control.saved_cell import CellRecord, RunFile
from control.turns import blocks_adjusted_s

from .checked import Part

CellKey = tuple[str, str, str, int]  # study, workload, tweak set, block
OURS = "deeptweak"
ADJUSTED = "step_time_round_adjusted_s"
SET, STOCK = "set", "stock"
UNTOUCHED = AppliedKeys({}, {}, {}, {})
# Of metrics computed here, by the beginning of their names.
BETTER = {"throughput_": "higher", "rate_": "higher", "step_time_": "lower", "cpu_s_": "lower"}


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
    run = ours.value
    _check_times(ours)
    workloads = {name: _workload(name, part) for name, part in ours.at("workloads").entries()}
    tweaksets = {
        name: part.made(SavedTweakSet, name=name, scripts=len(part.value["scripts"]))
        for name, part in ours.at("tweaksets").entries()
    }
    studies = {name: _study(name, part, tweaksets) for name, part in ours.at("studies").entries()}
    design = _design(ours.at("design"), tweaksets)
    records = _measured_records(file.at("benchmarks"))
    cells: dict[CellKey, Cell] = {}
    orders: set[int] = set()
    for part in ours.at("cells").each():
        key = _key_of(part)
        described: tuple[Mapping[str, object], ...] = (studies, workloads, tweaksets)
        for name, known in zip(key[:3], described, strict=True):
            if name not in known:
                part.refuse(f"names {name!r}, which the file does not describe")
        if key in cells:
            part.refuse(f"is repeated: {_described(key)}")
        blocks = studies[key[0]].blocks
        if not 1 <= key[3] <= blocks:
            part.refuse(f"is in block {key[3]}, but its study has blocks 1 to {blocks}")
        cell = _cell(part, key, records.get(key))
        if cell.order in orders:
            part.refuse(f"has the order {cell.order} of another cell")
        orders.add(cell.order)
        cells[key] = cell
    for key, record in records.items():
        if key not in cells:
            record.refuse(f"measured {_described(key)}, which is missing from the list of cells")
    if any(cell.report for cell in cells.values()):
        cells = _with_figures(cells, origin, workloads, capped=design.steps is not None)
    cells = _adjusted(cells, records)
    _check_copies(cells, ours)
    return Run(
        origin=origin,
        run_id=run["run_id"],
        started_utc=run["started_utc"],
        interrupted=run["interrupted"],
        studies=studies,
        workloads=workloads,
        tweaksets=tweaksets,
        cells=tuple(sorted(cells.values(), key=lambda cell: cell.order)),
        machine=_machine(saved["machine_info"]),
        design=design,
        warnings=(
            *(f"{cell.id}: {line}" for cell in cells.values() for line in cell.contradictions),
            *_machine_left_changed(run["machine_check"]),
        ),
        baseline=STOCK,
        replicated=True,
        commit=commit_of(saved.get("commit_info")),
        telemetry_file=run["telemetry_file"] or {},
        place=_place(records),
    )


def _check_times(ours: Part) -> None:
    started, ended = (moment(ours.value[name]) for name in ("started_utc", "ended_utc"))
    if started and ended and ended < started:
        ours.refuse(
            f"ended at {ours.value['ended_utc']}, before it started at {ours.value['started_utc']}"
        )


def _with_figures(
    cells: dict[CellKey, Cell], origin: str, workloads: Mapping[str, SavedWorkload], *, capped: bool
) -> dict[CellKey, Cell]:
    from analysis import studies

    result = dict(cells)
    for figures in studies.hooks("with_figures"):
        for key, cell in result.items():
            result[key] = figures(cell, origin, workloads[key[1]].params, capped=capped)
    return result


def commit_of(info: object) -> str | None:
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


def _measured_records(benchmarks: Part) -> dict[CellKey, Part]:
    """Return the records of measured cells, without benchmarks outside studies."""
    records: dict[CellKey, Part] = {}
    for benchmark in benchmarks.each():
        record = benchmark.at("extra_info")
        _must_not_be_newer(record)
        lost = record.value.get("outcome") in ("failed", "skipped")
        if lost or "schema_version" not in record.value:
            continue
        record.read(CellRecord)
        key = _key_of(record)
        if key in records:
            record.refuse(f"is repeated: {_described(key)}")
        records[key] = record
    return records


def _must_be_its_direction(part: Part) -> None:
    name, better = part.value["name"], part.value["better"]
    known = next((way for start, way in BETTER.items() if name.startswith(start)), better)
    if better != known:
        part.refuse(f"declares {better} {name} as better, but {known} is better")


def _workload(name: str, part: Part) -> SavedWorkload:
    if part.value.get("primary"):
        _must_be_its_direction(part.at("primary"))
    return part.made(SavedWorkload, name=name)


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
    """Refuse two blocks of an arm with identical times, unless all steps took equally long."""
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
    for name, each in part.at("points").entries():
        _check_point(name, each, factors, tweaksets)
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
    varied = factors.get(point.tweakset, {})
    if not varied or varied.keys() != point.levels.keys():
        part.refuse(
            f"must have a level for each factor of {point.tweakset!r}: "
            f"{', '.join(varied) or 'it has none'}"
        )
    for factor, level in point.levels.items():
        if level not in (known := list(varied[factor].levels)):
            part.refuse(f"has {factor} = {level!r}, but must have one of {known}")


def _key_of(part: Part) -> CellKey:
    known = part.value
    return known["study"], known["workload"], known["tweakset"], known["block"]


def _described(key: CellKey) -> str:
    return "study {}, workload {}, tweak set {}, block {}".format(*key)


def _cell(part: Part, key: CellKey, record: Part | None) -> Cell:
    line = part.value
    outcome, name = line["outcome"], line["id"]
    own_name = "{1}-{2}-b{3}".format(*key)
    if name.removeprefix(f"{key[0]}/") != own_name:
        part.refuse(f"has the id {name!r}, but {own_name!r} is expected")
    if outcome != "measured":
        if record is not None:
            record.refuse(f"was saved as measured, but is listed as {outcome}: {_described(key)}")
        return Cell(name, *key, line["order"], outcome, line["reason"] or "no reason was recorded")
    if record is None:
        part.refuse(f"is listed as measured, but no benchmark contains it: {_described(key)}")
    known = record.value
    if "steps" not in known:
        record.refuse("has no 'steps'")
    whole = steps = _steps(record.at("steps"))
    segments = _segments(record, whole) if "segments" in known else []
    if segments:
        under_set = [slice(one.first + one.settle, one.end) for one in segments if one.arm == SET]
        steps = _part(whole, whole.warmup, slice(whole.warmup), *under_set)
    slices_s = slices_of(record, whole) if "turns" in known else ()
    environment, telemetry = known.get("environment", {}), known.get("telemetry", {})
    starts_s = known["steps"].get("start_monotonic_s", ())
    try:
        computed = metrics_of(steps)
        cell = Cell(
            name,
            *key,
            line["order"],
            "measured",
            steps=steps,
            metrics=computed,
            applied=_applied(known.get("tweak")),
            facts=known["workload_facts"],
            limits=known.get("limits", {}),
            boot_id=environment.get("boot_id"),
            contradictions=tuple(disagreements(_saved_metrics(record), computed)),
            started_utc=known.get("started_utc"),
            duration_s=known.get("duration_s"),
            slices_s=slices_s,
            others_cpu_s=tuple(turn.get("others_cpu_s") for turn in known.get("turns", ())),
            slice_starts_s=_slice_starts_s(starts_s, whole, slices_s) if starts_s else (),
            window_s=_window_s(starts_s, whole) if starts_s else None,
            environment=environment,
            node=known.get("node"),
            telemetry={
                column: float(value)
                for column, value in telemetry.get("summary", {}).items()
                if value is not None
            },
            telemetry_missing=telemetry.get("missing", {}),
            report={table: tuple(rows) for table, rows in known.get("report", {}).items()},
            monitor=known.get("monitor", {}),
            usage=known.get("usage", {}),
        )
        if not segments:
            return cell
        own = (_segment_cell(cell, segment, whole, segments[0].pair) for segment in segments)
        return replace(cell, segments=tuple(own))
    except ArithmeticError:
        record.refuse("has steps that do not give finite metrics")


def _saved_metrics(record: Part) -> dict[str, float]:
    return {name: value for name, value in record.value["metrics"].items() if value is not None}


def _steps(part: Part) -> Steps:
    steps, count = part.read(Steps), len(part.value["wall_s"])
    for name, values in part.value.items():
        if isinstance(values, list) and len(values) != count:
            part.refuse(f"has {len(values)} {name} for {count} wall_s")
    if steps.cpu_s and 0 < min(filter(None, steps.cpu_s), default=0) < SHORTEST_S:
        part.refuse(
            f"has cpu_s above 0 and below {SHORTEST_S:g} s, which is below clock resolution"
        )
    if steps.warmup >= count:
        part.refuse(f"has {count} steps, of which {steps.warmup} are warm-up: none was measured")
    if not any(steps.samples[steps.warmup :]):
        part.refuse("has no samples in its measured steps")
    return steps


def _part(steps: Steps, warmup: int, *parts: slice) -> Steps:
    """Join stretches of steps; the first `warmup` steps of the result do not count."""
    columns = (steps.wall_s, steps.samples, steps.tokens, steps.cpu_s, steps.rate_per_s)
    wall_s, samples, tokens, cpu_s, rate = (
        values and tuple(value for part in parts for value in values[part]) for values in columns
    )
    return Steps(wall_s, samples, tokens, cpu_s, warmup, rate_per_s=rate)  # type: ignore[arg-type]


def _window_s(starts_s: Sequence[float], steps: Steps) -> tuple[float, float]:
    last = len(steps.wall_s) - 1
    places = range(steps.warmup, last + 1) if steps.overlap else (steps.warmup, last)
    return min(starts_s[at] for at in places), max(starts_s[at] + steps.wall_s[at] for at in places)


def _applied(tweak: Mapping[str, Any] | None) -> AppliedKeys:
    if tweak is None:
        return UNTOUCHED
    names = ("requested", "before", "observed", "restored", "side_effects", "left_alone")
    scripts = tweak.get("by_scripts")
    return AppliedKeys(
        **{name: tweak.get(name, {}) for name in names},
        already_in_force=frozenset(tweak["already_in_force"]),
        by_scripts=None if scripts is None else tuple(scripts),
    )


class ArmSegment(NamedTuple):
    """Steps `first` to `end` of a process ran under one arm; the first `settle` do not count."""

    pair: int
    arm: str
    first: int
    settle: int
    end: int


def _segments(record: Part, steps: Steps) -> list[ArmSegment]:
    """Read consecutive pairs of both arms, equally long, that cover all steps after the warm-up."""
    parts, count = [*record.at("segments").each()], len(steps.wall_s)
    result: list[ArmSegment] = []
    at = steps.warmup
    for part in parts:
        first, settle, counted = (part.value[name] for name in ("first", "settle", "steps"))
        if first != at or first + settle + counted > count:
            part.refuse(
                f"has {settle} + {counted} steps from {first} on, but must start at {at} of {count}"
            )
        at = first + settle + counted
        result.append(ArmSegment(part.value["pair"], part.value["arm"], first, settle, at))
    for part, one, other in zip(parts[1::2], result[::2], result[1::2], strict=False):
        alike = (one.settle, one.end - one.first) == (other.settle, other.end - other.first)
        if one.pair != other.pair or one.arm == other.arm or not alike:
            part.refuse(
                "does not pair with the segment before it: a pair has one number, both arms and "
                "equally many steps"
            )
    if at != count or len(result) != 2 * len({segment.pair for segment in result}):
        record.refuse(
            f"has {len(result)} segments, which do not form pairs over all its "
            f"{count - steps.warmup} steps after the warm-up"
        )
    return result


def _segment_cell(process: Cell, segment: ArmSegment, whole: Steps, first_pair: int) -> Cell:
    steps = _part(whole, segment.settle, slice(segment.first, segment.end))
    own = replace(
        process,
        id=f"{process.id}, {segment.arm} of pair {segment.pair}",
        block=segment.pair,
        steps=steps,
        metrics=metrics_of(steps),
        # Report contradictions of the steps once, in the first pair.
        contradictions=process.contradictions if segment.pair == first_pair else (),
        process=process.block,
    )
    if segment.arm == SET:
        return own
    return replace(own, tweakset=STOCK, applied=UNTOUCHED, contradictions=())


def slices_of(record: Part, steps: Steps) -> tuple[tuple[float, ...], ...]:
    at, slices = steps.warmup, list[tuple[float, ...]]()
    for number, turn in enumerate(record.value["turns"], 1):
        first, count = turn["first"], turn["steps"]
        if turn["round"] != number or first != at or at + count > len(steps.wall_s):
            record.refuse(
                f"has {count} steps from {first} on, but must start at {at} of "
                f"{len(steps.wall_s)}, in round {number}"
            )
        if slices and count != len(slices[0]):
            record.refuse(f"has {count} steps in round {number} but {len(slices[0])} in the first")
        slices.append(steps.wall_s[at : at + count])
        at += count
    if at != len(steps.wall_s):
        record.refuse(
            f"took turns with {at - steps.warmup} of its {len(steps.wall_s) - steps.warmup} steps "
            "after the warm-up"
        )
    return tuple(slices)


def _slice_starts_s(
    starts_s: Sequence[float], steps: Steps, slices_s: Sequence[Sequence[float]]
) -> tuple[float, ...]:
    firsts = accumulate((len(slice_s) for slice_s in slices_s[:-1]), initial=steps.warmup)
    return tuple(starts_s[first] for first in firsts) if slices_s else ()


def _adjusted(cells: dict[CellKey, Cell], records: Mapping[CellKey, Part]) -> dict[CellKey, Cell]:
    """Set the round-adjusted step time of each cell that took turns."""
    blocks: dict[tuple[object, ...], list[CellKey]] = {}
    for key, cell in cells.items():
        if cell.slices_s:
            blocks.setdefault((key[0], key[1], key[3]), []).append(key)
    alike: dict[tuple[int, ...], list[list[CellKey]]] = {}  # by number of cells, rounds and steps
    for keys in blocks.values():
        shapes = [(len(cells[key].slices_s), len(cells[key].slices_s[0])) for key in keys]
        for key, shape in zip(keys, shapes, strict=True):
            if shape != shapes[0]:
                words = ["{} rounds of {} steps".format(*one) for one in (shape, shapes[0])]
                records[key].refuse(
                    f"took turns in {words[0]}, but another cell of its block in {words[1]}"
                )
        alike.setdefault((len(keys), *shapes[0]), []).append(keys)
    result = dict(cells)
    for own in alike.values():
        taken = [
            ([cells[key].slices_s for key in keys], [cells[key].others_cpu_s for key in keys])
            for keys in own
        ]
        for keys, times_s in zip(own, blocks_adjusted_s(taken), strict=True):
            for key, time_s in zip(keys, times_s, strict=True):
                cell, computed = cells[key], {ADJUSTED: time_s}
                wrong = disagreements(_saved_metrics(records[key]), computed)
                result[key] = replace(
                    cell,
                    metrics={**cell.metrics, **computed},
                    contradictions=(*cell.contradictions, *wrong),
                )
    return result
