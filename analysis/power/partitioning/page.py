"""Answers as text of at most 100 columns: a row for each, and what must be known of them below."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.power.terms import Partition

    from .asked import Asked
    from .terms import Answer

HEADS = ("cap W", "partition", "SM MHz", "mem MHz", "images/s", "W", "SM %", "mem %")


def render(asked: Asked, found: Sequence[Answer]) -> str:
    """Write the page. Everything on it is a prediction, and it says so."""
    rows: list[list[str]] = []
    for one in found:
        rows.append(_row(one, f"{one.cap_w:g}" if asked.caps_w else "–"))
        if one.best_profiled is not None and asked.caps_w:
            rows.append(_row(one.best_profiled, "as profiled"))
    title = f"{one_line(asked.network)} on {asked.platform.name}, predicted"
    notes = hanging(("•", line) for line in _notes(found))
    return on_page([title, "", columns(HEADS, rows, left=2), "", notes])


def words(partition: Partition) -> str:
    """Write a partition: `3 × 30 % b160 + 1 × 10 % b32`, in the order of its processes."""
    processes = zip(partition.shares, partition.batches, strict=True)
    return " + ".join(f"{len(list(some))} × {share:g} % b{batch}" for (share, batch), some in groupby(processes))


def _row(one: Answer, head: str) -> list[str]:
    setting = one.setting
    return [
        head,
        words(setting.partition),
        f"{setting.sm_mhz:.6g}",
        f"{setting.mem_mhz:g}",
        f"{one.throughput_images_per_s:.1f}",
        f"{one.power_w:.1f}",
        f"{one.sm_util_percent:.1f}",
        f"{one.mem_util_percent:.1f}",
    ]


def _notes(found: Sequence[Answer]) -> list[str]:
    notes = [f"The model was asked for {sum(one.evaluations for one in found)} partitions, counted once a memory clock."]
    notes += [
        f"{one.power_w - one.cap_w:.1f} W above the cap of {one.cap_w:g} W: the original stops within 1 W of it, and keeps its clock "
        "where handing out the share that is left leaves none under the cap."
        for one in found
        if not one.feasible
    ]
    if any(one.best_profiled is not None for one in found):
        notes.append(
            "Where a row says `as profiled` below it, the partition above was never profiled: there the model extrapolates. "
            "Measure it before you rely on the difference."
        )
    return notes
