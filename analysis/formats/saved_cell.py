"""One cell of our own format: its line in the list of cells, and the record of what was measured in it.

Its steps may be divided into segments (settings alternated inside the process) or slices (cells of a block took turns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, get_args

from analysis.metrics import disagreements, metrics_of
from analysis.terms import Applied, Cell, Outcome, Steps
from control.turns import round_adjusted_s

from .fields import LONGEST_S, Fields

CellKey = tuple[str, str, str, int]  # study, workload, tweak set, block
ADJUSTED = "step_time_round_adjusted_s"
FOUND, SET = "found", "set"
# The CPU time of others is read a little before and after a slice: so many times the slice, and so many seconds, may lie between.
AROUND, AROUND_S = 2.0, 0.5
STOCK = "stock"  # whose values are those found
UNTOUCHED = Applied({}, {}, {}, {})


def read(part: Fields, key: CellKey, record: Fields | None, cpu_count: object = None) -> Cell:
    """Read a cell by its line and, where it was measured, its record. `cpu_count` is that of the machine, as far as it is known.

    Raises: Unreadable.
    """
    outcome = part.one_of("outcome", get_args(Outcome))
    name, reason, order = part.text("id"), part.optional_text("reason"), part.whole("order")
    own_name = "{1}-{2}-b{3}".format(*key)
    if name.removeprefix(f"{key[0]}/") != own_name:
        part.refuse(f"has the id {name!r}, where that of {own_name!r} belongs")
    if outcome != "measured":
        if record is not None:
            record.refuse(f"was saved as measured, but the list of cells says {outcome}: {described(key)}")
        return Cell(name, *key, order, "failed" if outcome == "failed" else "skipped", reason or "no reason was recorded")
    if record is None:
        part.refuse(f"is said to be measured, but no benchmark holds it: {described(key)}")
    timed = record.fields("steps")
    whole = steps = _steps(timed)
    segments: list[Segment] = []
    slices_s: tuple[tuple[float, ...], ...] = ()
    if record.has("segments"):
        segments = _segments(record, whole)
        under_set = [slice(segment.first + segment.settle, segment.end) for segment in segments if segment.arm == SET]
        steps = _part(whole, whole.warmup, slice(whole.warmup), *under_set)
    if record.has("turns"):
        slices_s = slices_of(record, whole)
        _must_fit(record, slices_s, cpu_count)
    try:
        computed = metrics_of(steps)
    except ArithmeticError:
        record.refuse("has steps of which no finite metrics can be made")
    environment = record.optional_mapping("environment")
    telemetry, report = record.optional_fields("telemetry"), record.optional_fields("report")
    cell = Cell(
        name,
        *key,
        order,
        "measured",
        steps=steps,
        metrics=computed,
        applied=_applied(record),
        facts=record.optional_mapping("workload_facts"),
        limits=record.optional_mapping("limits"),
        boot_id=boot if isinstance(boot := environment.get("boot_id"), str) else None,
        contradictions=tuple(disagreements(record.known_numbers("metrics", computed), computed)),
        started_utc=record.optional_text("started_utc"),
        duration_s=record.optional(Fields.positive, "duration_s", None),
        slices_s=slices_s,
        others_cpu_s=others_cpu_s(record) if slices_s else (),
        slice_starts_s=_slice_starts_s(timed, whole, slices_s) if slices_s else (),
        window_s=_window_s(timed, whole),
        environment=environment,
        node=record.optional_text("node"),
        telemetry=telemetry.known_numbers("summary"),
        telemetry_missing={column: str(why) for column, why in telemetry.optional_mapping("missing").items()},
        report={name: tuple(row.value for row in report.each(name)) for name in report.value},
        monitor=record.optional_mapping("monitor"),
        usage=record.optional_mapping("usage"),
    )
    try:
        return replace(cell, segments=tuple(_segment_cell(cell, segment, whole, segments[0].pair) for segment in segments))
    except ArithmeticError:
        record.refuse("has a segment of which no finite metrics can be made")


def described(key: CellKey) -> str:
    return "study {}, workload {}, tweak set {}, block {}".format(*key)


def _steps(part: Fields) -> Steps:
    steps = Steps(
        wall_s=part.times("wall_s"),
        samples=part.counts("samples"),
        tokens=part.optional(Fields.counts, "tokens", None),
        cpu_s=part.times("cpu_s", zero=True) if part.has("cpu_s") else None,
        warmup=part.whole("warmup"),
        overlap=part.optional(Fields.flag, "overlap", default=False),
        rate_per_s=part.optional(Fields.rates, "rate_per_s", None),
    )
    count = len(steps.wall_s)
    for column, values in (("samples", steps.samples), ("tokens", steps.tokens), ("cpu_s", steps.cpu_s), ("rate_per_s", steps.rate_per_s)):
        if values is not None and len(values) != count:
            part.refuse(f"has {len(values)} {column} for {count} wall_s")
    if steps.warmup >= count:
        part.refuse(f"has {count} steps of which {steps.warmup} are warm-up: none was measured")
    if not sum(steps.samples[steps.warmup :]):
        part.refuse("has no samples in its measured steps")
    return steps


def _part(steps: Steps, warmup: int, *parts: slice) -> Steps:
    """Return some stretches of the steps one after the other, the first `warmup` of them not to be counted."""
    columns = (steps.wall_s, steps.samples, steps.tokens, steps.cpu_s, steps.rate_per_s)
    wall_s, samples, tokens, cpu_s, rates = (values and tuple(value for part in parts for value in values[part]) for values in columns)
    return Steps(wall_s or (), samples or (), tokens, cpu_s, warmup, rate_per_s=rates)  # type: ignore[arg-type]  # each keeps its kind


def _window_s(part: Fields, steps: Steps) -> tuple[float, float] | None:
    if not part.has("start_monotonic_s"):
        return None
    places = range(steps.warmup, len(steps.wall_s)) if steps.overlap else (steps.warmup, len(steps.wall_s) - 1)
    starts = part.numbers_at("start_monotonic_s", len(steps.wall_s), places)
    return min(starts) if steps.overlap else starts[0], max(at + steps.wall_s[index] for at, index in zip(starts, places, strict=True))


def _applied(record: Fields) -> Applied:
    if not record.has("tweak"):
        return UNTOUCHED
    part = record.fields("tweak")
    values = {name: part.optional_mapping(name) for name in ("requested", "before", "observed", "restored", "side_effects", "left_alone")}
    return Applied(**values, already_in_force=frozenset(part.optional(Fields.texts, "already_in_force", ())))


class Segment(NamedTuple):
    """Steps `first` to `end` of a process ran under one arm; the first `settle` of them let the switch settle and do not count."""

    pair: int
    arm: str
    first: int
    settle: int
    end: int


def _segments(record: Fields, steps: Steps) -> list[Segment]:
    """Read a cell's segments. Together they are all its steps after the warm-up; two by two they are pairs: both arms, equally long."""
    parts, count = record.each("segments"), len(steps.wall_s)
    result: list[Segment] = []
    at = steps.warmup
    for part in parts:
        first, settle, counted = (part.whole(name) for name in ("first", "settle", "steps"))
        if first != at or counted < 1 or first + settle + counted > count:
            part.refuse(f"has {settle} + {counted} steps from {first} on, where {at} is the next of {count}")
        at = first + settle + counted
        result.append(Segment(part.whole("pair"), part.one_of("arm", (FOUND, SET)), first, settle, at))
    for part, one, other in zip(parts[1::2], result[::2], result[1::2], strict=False):
        if one.pair != other.pair or one.arm == other.arm or (one.settle, one.end - one.first) != (other.settle, other.end - other.first):
            part.refuse("is no pair with the one before it: the same number, both arms, equally many steps")
    if at != count or len(result) != 2 * len({segment.pair for segment in result}):
        record.refuse(f"has {len(result)} segments that are no pairs of all its {count - steps.warmup} steps after the warm-up")
    return result


def _segment_cell(process: Cell, segment: Segment, whole: Steps, first_pair: int) -> Cell:
    """Return a segment as a cell of its own, of stock or of the tweak set; the pair is its block."""
    steps = _part(whole, segment.settle, slice(segment.first, segment.end))
    own = replace(
        process,
        id=f"{process.id}, {segment.arm} of pair {segment.pair}",
        block=segment.pair,
        steps=steps,
        metrics=metrics_of(steps),
        # What contradicts the steps is told once, in the first pair.
        contradictions=process.contradictions if segment.pair == first_pair else (),
        process=process.block,
    )
    return own if segment.arm == SET else replace(own, tweakset=STOCK, applied=UNTOUCHED, contradictions=())


def slices_of(record: Fields, steps: Steps) -> tuple[tuple[float, ...], ...]:
    """Return the times of the steps of each round, seconds. Together the slices are all steps after the warm-up, equally many each.

    Raises: Unreadable.
    """
    at, slices = steps.warmup, list[tuple[float, ...]]()
    for number, part in enumerate(record.each("turns"), 1):
        first, count = part.whole("first"), part.whole("steps")
        if part.whole("round") != number or first != at or count < 1 or at + count > len(steps.wall_s):
            part.refuse(f"has {count} steps from {first} on, where {at} is the next of {len(steps.wall_s)}, in round {number}")
        if slices and count != len(slices[0]):
            part.refuse(f"has {count} steps in round {number}, and {len(slices[0])} in the first")
        slices.append(steps.wall_s[at : at + count])
        at += count
    if at != len(steps.wall_s):
        record.refuse(f"took turns with {at - steps.warmup} of its {len(steps.wall_s) - steps.warmup} steps after the warm-up")
    return tuple(slices)


def others_cpu_s(record: Fields) -> tuple[float | None, ...]:
    """Return the CPU time that others used in each round, seconds; None where that was not seen. Raises: Unreadable."""
    return tuple(part.up_to("others_cpu_s", LONGEST_S) for part in record.each("turns"))


def _must_fit(record: Fields, slices_s: Sequence[Sequence[float]], cpu_count: object) -> None:
    """Refuse more CPU time of others than the machine's CPUs have in a slice. Of another machine, a node, their number is not known."""
    if not isinstance(cpu_count, int) or cpu_count < 1 or record.has("place"):
        return
    for part, slice_s, used_s in zip(record.each("turns"), slices_s, others_cpu_s(record), strict=True):
        most_s = cpu_count * (AROUND * sum(slice_s) + AROUND_S)
        if used_s is not None and used_s > most_s:
            part.refuse(f"has others_cpu_s = {used_s:g}, where {cpu_count} CPUs have {cpu_count * sum(slice_s):.3g} s in the slice")


def _slice_starts_s(part: Fields, steps: Steps, slices_s: Sequence[Sequence[float]]) -> tuple[float, ...]:
    if not part.has("start_monotonic_s"):
        return ()
    firsts = accumulate((len(slice_s) for slice_s in slices_s[:-1]), initial=steps.warmup)
    return part.numbers_at("start_monotonic_s", len(steps.wall_s), tuple(firsts))


def adjusted(cells: dict[CellKey, Cell], records: dict[CellKey, Fields]) -> dict[CellKey, Cell]:
    """Give each cell that took turns its step time cleared of what a round did to all cells alike. Raises: Unreadable."""
    blocks: dict[tuple[object, ...], list[CellKey]] = {}
    for key, cell in cells.items():
        if cell.slices_s:
            blocks.setdefault((key[0], key[1], key[3]), []).append(key)
    result = dict(cells)
    for keys in blocks.values():
        own = [cells[key] for key in keys]
        rounds = [f"{len(cell.slices_s)} rounds of {len(cell.slices_s[0])} steps" for cell in own]
        for key, text in zip(keys, rounds, strict=True):
            if text != rounds[0]:
                records[key].refuse(f"took turns in {text}, another of its block in {rounds[0]}")
        times_s = round_adjusted_s([cell.slices_s for cell in own], [cell.others_cpu_s for cell in own])
        for key, cell, time_s in zip(keys, own, times_s, strict=True):
            computed = {ADJUSTED: time_s}
            wrong = disagreements(records[key].known_numbers("metrics", computed), computed)
            result[key] = replace(cell, metrics={**cell.metrics, **computed}, contradictions=(*cell.contradictions, *wrong))
    return result
