"""The segments of a process in which settings were alternated: which of its steps ran under which arm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.metrics import metrics_of
from analysis.terms import Applied, Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.terms import Cell

    from .fields import Fields

FOUND, SET = "found", "set"
STOCK = "stock"  # whose values are those found


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps that ran under one arm; the first `steps.warmup` of them let the switch settle and do not count."""

    pair: int
    arm: str
    steps: Steps


def read(record: Fields, steps: Steps) -> list[Segment]:
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


def cells(process: Cell, segments: Sequence[Segment]) -> tuple[Cell, ...]:
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
