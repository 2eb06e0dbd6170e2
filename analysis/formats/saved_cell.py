"""One cell of our own format: its line in the list of cells, and the record of its measurement.

Steps may be divided into segments (settings alternated in the process) or slices (cells took
turns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.metrics import disagreements, metrics_of
from analysis.terms import AppliedKeys, Cell, Steps
from control.saved import SHORTEST_S
from control.turns import blocks_adjusted_s

if TYPE_CHECKING:
    from .checked import Part

CellKey = tuple[str, str, str, int]  # study, workload, tweak set, block
ADJUSTED = "step_time_round_adjusted_s"
SET = "set"
STOCK = "stock"  # has the values as found
UNTOUCHED = AppliedKeys({}, {}, {}, {})


def key_of(part: Part) -> CellKey:
    known = part.value
    return known["study"], known["workload"], known["tweakset"], known["block"]


def read(part: Part, key: CellKey, record: Part | None) -> Cell:
    """Read a cell from its line and, if measured, its record. Raises: Unreadable."""
    line = part.value
    outcome, name = line["outcome"], line["id"]
    own_name = "{1}-{2}-b{3}".format(*key)
    if name.removeprefix(f"{key[0]}/") != own_name:
        part.refuse(f"has the id {name!r}, but {own_name!r} is expected")
    if outcome != "measured":
        if record is not None:
            record.refuse(f"was saved as measured, but is listed as {outcome}: {described(key)}")
        return Cell(name, *key, line["order"], outcome, line["reason"] or "no reason was recorded")
    if record is None:
        part.refuse(f"is listed as measured, but no benchmark contains it: {described(key)}")
    known = record.value
    if "steps" not in known:
        record.refuse("has no 'steps'")
    whole = steps = _steps(record.at("steps"))
    segments: list[ArmSegment] = []
    slices_s: tuple[tuple[float, ...], ...] = ()
    if "segments" in known:
        segments = _segments(record, whole)
        under_set = [
            slice(segment.first + segment.settle, segment.end)
            for segment in segments
            if segment.arm == SET
        ]
        steps = _part(whole, whole.warmup, slice(whole.warmup), *under_set)
    if "turns" in known:
        slices_s = slices_of(record, whole)
    try:
        computed = metrics_of(steps)
    except ArithmeticError:
        record.refuse("has steps that do not give finite metrics")
    environment, telemetry = known.get("environment", {}), known.get("telemetry", {})
    starts_s = known["steps"].get("start_monotonic_s", ())
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
        contradictions=tuple(disagreements(_told(record), computed)),
        started_utc=known.get("started_utc"),
        duration_s=known.get("duration_s"),
        slices_s=slices_s,
        others_cpu_s=others_cpu_s(known) if slices_s else (),
        slice_starts_s=_slice_starts_s(starts_s, whole, slices_s) if slices_s and starts_s else (),
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
    return _with_segments(cell, segments, whole, record) if segments else cell


def _with_segments(cell: Cell, segments: Sequence[ArmSegment], whole: Steps, record: Part) -> Cell:
    try:
        return replace(
            cell,
            segments=tuple(
                _segment_cell(cell, segment, whole, segments[0].pair) for segment in segments
            ),
        )
    except ArithmeticError:
        record.refuse("has a segment that does not give finite metrics")


def described(key: CellKey) -> str:
    return "study {}, workload {}, tweak set {}, block {}".format(*key)


def _told(record: Part) -> dict[str, float]:
    return {name: value for name, value in record.value["metrics"].items() if value is not None}


def _steps(part: Part) -> Steps:
    steps, count = part.read(Steps), len(part.value["wall_s"])
    columns = {name: values for name, values in part.value.items() if isinstance(values, list)}
    for name, values in columns.items():
        if len(values) != count:
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
    places = (
        range(steps.warmup, len(steps.wall_s))
        if steps.overlap
        else (steps.warmup, len(steps.wall_s) - 1)
    )
    return min(starts_s[at] for at in places), max(starts_s[at] + steps.wall_s[at] for at in places)


def _applied(tweak: Mapping[str, Any] | None) -> AppliedKeys:
    if tweak is None:
        return UNTOUCHED
    values = {
        name: tweak.get(name, {})
        for name in ("requested", "before", "observed", "restored", "side_effects", "left_alone")
    }
    scripts = tweak.get("by_scripts")
    by_scripts = None if scripts is None else tuple(scripts)
    return AppliedKeys(
        **values, already_in_force=frozenset(tweak["already_in_force"]), by_scripts=by_scripts
    )


class ArmSegment(NamedTuple):
    """Steps `first` to `end` of a process ran under one arm; the first `settle` do not count."""

    pair: int
    arm: str
    first: int
    settle: int
    end: int


def _segments(record: Part, steps: Steps) -> list[ArmSegment]:
    """Read a cell's segments: consecutive pairs of both arms, equally long, that cover all steps.

    Warm-up steps are outside them.
    """
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
        if (
            one.pair != other.pair
            or one.arm == other.arm
            or (one.settle, one.end - one.first) != (other.settle, other.end - other.first)
        ):
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
    """Return a segment as a cell of its own, of stock or the tweak set, with its pair as block."""
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
    return (
        own
        if segment.arm == SET
        else replace(own, tweakset=STOCK, applied=UNTOUCHED, contradictions=())
    )


def slices_of(record: Part, steps: Steps) -> tuple[tuple[float, ...], ...]:
    """Return each round's step times in seconds: equally many, and all of those after the warm-up.

    Raises: Unreadable.
    """
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


def others_cpu_s(record: Mapping[str, Any]) -> tuple[float | None, ...]:
    """Return the CPU time that others used in each turn, seconds; None if unknown.

    A turn may last longer than its steps, so this can exceed what the CPUs have during the steps.
    """
    return tuple(turn.get("others_cpu_s") for turn in record["turns"])


def _slice_starts_s(
    starts_s: Sequence[float], steps: Steps, slices_s: Sequence[Sequence[float]]
) -> tuple[float, ...]:
    firsts = accumulate((len(slice_s) for slice_s in slices_s[:-1]), initial=steps.warmup)
    return tuple(starts_s[first] for first in firsts)


def adjusted(cells: dict[CellKey, Cell], records: Mapping[CellKey, Part]) -> dict[CellKey, Cell]:
    """Set the round-adjusted step time of each cell that took turns. Raises: Unreadable."""
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
                wrong = disagreements(_told(records[key]), computed)
                result[key] = replace(
                    cell,
                    metrics={**cell.metrics, **computed},
                    contradictions=(*cell.contradictions, *wrong),
                )
    return result
