"""One cell of our own format: its line in the list of cells, and the record of what was measured in it, segment by segment if it has some.

A cell that was imported from another tool's file has what that tool kept: perhaps no steps, and never a record of what was applied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from analysis.metrics import disagreements, metrics_of
from analysis.terms import Applied, Cell, Outcome, Steps

from . import saved_turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .fields import Fields


MONITORED = 5  # the schema_version that brought monitors


def read(part: Fields, key: tuple[str, str, str, int], record: Fields | None, *, imported: bool) -> Cell:
    """Read a cell by its line and, where it was measured, its record; `key` is study, workload, tweak set and block.

    Raises: Unreadable.
    """
    outcome = part.one_of("outcome", get_args(Outcome))
    name, reason, order = part.text("id"), part.optional_text("reason"), part.whole("order")
    if outcome != "measured":
        if record is not None:
            record.refuse(f"was saved as measured, but the list of cells says {outcome}: {called(key)}")
        return Cell(name, *key, order, "failed" if outcome == "failed" else "skipped", reason or "no reason was recorded")
    if record is None:
        part.refuse(f"is said to be measured, but no benchmark holds it: {called(key)}")
    timed = record.fields("steps") if record.has("steps") or not imported else None
    segments: list[Segment] = []
    whole = steps = _steps(timed) if timed else None
    if whole and record.has("segments"):
        segments = segments_of(record, whole)
        steps = under_the_set(whole, segments)
    slices_s = saved_turns.read(record, whole) if whole and record.has("turns") else ()
    computed = _metrics(record, steps)
    environment: Mapping[str, object] = record.optional_mapping("environment")
    telemetry = record.optional_fields("telemetry")
    cell = Cell(
        name,
        *key,
        order,
        "measured",
        steps=steps,
        metrics=record.numbers("metrics") | computed if imported else computed,
        applied=None if imported else _applied(record),
        facts=record.optional_mapping("workload_facts"),
        limits=record.optional_mapping("limits"),
        boot_id=boot if isinstance(boot := environment.get("boot_id"), str) else None,
        contradictions=tuple(disagreements(record.known_numbers("metrics", computed), computed)),
        started_utc=record.optional_text("started_utc"),
        duration_s=record.positive("duration_s") if record.has("duration_s") else None,
        slices_s=slices_s,
        others_cpu_s=saved_turns.others(record) if slices_s else (),
        slice_starts_s=saved_turns.starts_s(timed, whole, slices_s) if timed and whole and slices_s else (),
        window_s=_window_s(timed, whole) if timed and whole else None,
        environment=environment,
        node=record.optional_text("node"),
        telemetry=telemetry.numbers("summary"),
        telemetry_missing={key: str(reason) for key, reason in telemetry.optional_mapping("missing").items()},
        report=_report(record) if record.has("report") else {},
        monitor=_monitor(record),
        usage=record.optional_mapping("usage"),
    )
    try:
        return replace(cell, segments=cells_of(cell, segments))
    except ArithmeticError:
        record.refuse("has a segment of which no finite metrics can be made")


def _monitor(record: Fields) -> Mapping[str, object]:
    result = record.optional_mapping("monitor")
    if result and not (record.has("schema_version") and record.whole("schema_version") >= MONITORED):
        record.refuse(f"tells of a monitor, which files do from schema_version {MONITORED} on, and says that it is older")
    return result


def called(key: tuple[str, str, str, int]) -> str:
    study, workload, tweakset, block = key
    return f"study {study}, workload {workload}, tweak set {tweakset}, block {block}"


def _report(record: Fields) -> dict[str, tuple[Mapping[str, object], ...]]:
    fields = record.fields("report")
    return {name: tuple(one.value for one in fields.each(name)) for name in fields.value}


def _metrics(record: Fields, steps: Steps | None) -> dict[str, float]:
    try:
        return metrics_of(steps) if steps else {}
    except ArithmeticError:
        record.refuse("has steps of which no finite metrics can be made")


def _steps(part: Fields) -> Steps:
    wall_s = part.times("wall_s")
    warmup = part.whole("warmup")
    steps = Steps(
        wall_s=wall_s,
        samples=part.counts("samples"),
        tokens=part.counts("tokens") if part.has("tokens") else None,
        cpu_s=part.times("cpu_s", zero=True) if part.has("cpu_s") else None,
        warmup=warmup,
        overlap=part.has("overlap") and part.flag("overlap"),
    )
    for column, values in (("samples", steps.samples), ("tokens", steps.tokens), ("cpu_s", steps.cpu_s)):
        if values is not None and len(values) != len(wall_s):
            part.refuse(f"has {len(values)} {column} for {len(wall_s)} wall_s")
    if warmup >= len(wall_s):
        part.refuse(f"has {len(wall_s)} steps of which {warmup} are warm-up: none was measured")
    if not sum(steps.samples[warmup:]):
        part.refuse("has no samples in its measured steps")
    return steps


def _window_s(part: Fields, steps: Steps) -> tuple[float, float] | None:
    if not part.has("start_monotonic_s"):
        return None
    if steps.overlap:
        every = range(steps.warmup, len(steps.wall_s))
        began = part.numbers_at("start_monotonic_s", len(steps.wall_s), tuple(every))
        return min(began), max(at + steps.wall_s[index] for at, index in zip(began, every, strict=True))
    first, last = part.numbers_at("start_monotonic_s", len(steps.wall_s), (steps.warmup, -1))
    return first, last + steps.wall_s[-1]


def _applied(record: Fields) -> Applied:
    if not record.has("tweak"):
        return Applied({}, {}, {}, {})
    part = record.fields("tweak")
    requested, before, observed, restored = map(part.optional_mapping, ("requested", "before", "observed", "restored"))
    already = part.texts("already_in_force") if part.has("already_in_force") else ()
    side_effects, left_alone = part.optional_mapping("side_effects"), part.optional_mapping("left_alone")
    return Applied(requested, before, observed, restored, frozenset(already), side_effects, left_alone)


FOUND, SET = "found", "set"
STOCK = "stock"  # whose values are those found


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps that ran under one arm; the first `steps.warmup` of them let the switch settle and do not count."""

    pair: int
    arm: str
    steps: Steps


def segments_of(record: Fields, steps: Steps) -> list[Segment]:
    """Read a cell's segments. Together they are all its steps after the warm-up; two by two they are pairs: both arms, equally long.

    Raises: Unreadable.
    """
    parts = record.each("segments")
    result: list[Segment] = []
    at = steps.warmup
    for part in parts:
        first, settle, counted = (part.whole(name) for name in ("first", "settle", "steps"))
        end = first + settle + counted
        if first != at or counted < 1 or end > len(steps.wall_s):
            part.refuse(f"has {settle} + {counted} steps from {first} on, where {at} is the next of {len(steps.wall_s)}")
        result.append(Segment(part.whole("pair"), part.one_of("arm", (FOUND, SET)), _cut(steps, first, end, settle)))
        at = end
    pairs = list(zip(result[::2], result[1::2], strict=False))
    for part, (segment, other) in zip(parts[1::2], pairs, strict=False):
        alike = segment.steps.warmup == other.steps.warmup and len(segment.steps.wall_s) == len(other.steps.wall_s)
        if segment.pair != other.pair or segment.arm == other.arm or not alike:
            part.refuse("is no pair with the one before it: the same number, both arms, equally many steps")
    if at != len(steps.wall_s) or len(result) % 2 or len({segment.pair for segment in result}) != len(pairs):
        record.refuse(f"has {len(result)} segments that are no pairs of all its {len(steps.wall_s) - steps.warmup} steps after the warm-up")
    return result


def under_the_set(steps: Steps, segments: Sequence[Segment]) -> Steps:
    """The steps that the process as a cell stands for: the warm-up, then those that count under its tweak set."""
    kept = [_cut(steps, 0, steps.warmup, 0)]
    kept += [_cut(segment.steps, segment.steps.warmup, len(segment.steps.wall_s), 0) for segment in segments if segment.arm == SET]
    return Steps(
        wall_s=tuple(value for one in kept for value in one.wall_s),
        samples=tuple(value for one in kept for value in one.samples),
        tokens=None if steps.tokens is None else tuple(value for one in kept for value in one.tokens or ()),
        cpu_s=None if steps.cpu_s is None else tuple(value for one in kept for value in one.cpu_s or ()),
        warmup=steps.warmup,
    )


def cells_of(process: Cell, segments: Sequence[Segment]) -> tuple[Cell, ...]:
    """Each segment as a cell of its own, of stock or of the tweak set; the pair is its block."""
    made: list[Cell] = []
    for segment in segments:
        mine = segment.arm == SET
        own = replace(
            process,
            id=f"{process.id}, {segment.arm} of pair {segment.pair}",
            tweakset=process.tweakset if mine else STOCK,
            block=segment.pair,
            steps=segment.steps,
            metrics=metrics_of(segment.steps),
            applied=process.applied if mine else Applied({}, {}, {}, {}),
            contradictions=process.contradictions if mine and segment.pair == segments[0].pair else (),
            process=process.block,
        )
        made.append(own)
    return tuple(made)


def _cut(steps: Steps, first: int, end: int, warmup: int) -> Steps:
    return Steps(
        wall_s=steps.wall_s[first:end],
        samples=steps.samples[first:end],
        tokens=steps.tokens and steps.tokens[first:end],
        cpu_s=steps.cpu_s and steps.cpu_s[first:end],
        warmup=warmup,
    )
