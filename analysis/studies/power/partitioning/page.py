"""Answers as text of at most 100 columns: a row for each, and what must be known of them below."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page
from analysis.studies.power.predict_page import pace, processes
from control.power.terms import SPOKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from control.power.partitioning.terms import Answer

    from .asked import Asked


def render(asked: Asked, found: Sequence[Answer]) -> str:
    """Write the page. Everything on it is a prediction, and it says so."""
    rows: list[list[str]] = []
    decimals = 1 if asked.unit == "W" else 3
    for one in found:
        rows.append(_row(one, f"{one.cap_w:g}" if asked.caps_w else "–", decimals))
        if one.best_profiled is not None and asked.caps_w:
            rows.append(_row(one.best_profiled, "as profiled", decimals))
    title = f"{one_line(asked.network)} on {one_line(asked.platform.name)}, predicted"
    unit = SPOKEN.get(asked.unit, asked.unit)
    heads = (f"cap {unit}", "partition", pace(asked.clock), "mem", "images/s", unit, "SM %", "mem %")
    said = [
        (one.mark, f"quality of {one.where if one.kind == 'copy' else 'the model at ' + one.where.rpartition(' at ')[2]}: {one.what}")
        for one in asked.findings()
    ]
    notes = hanging([*(("•", line) for line in _notes(asked, found)), *said])
    return on_page([title, "", columns(heads, rows, left=2), "", notes])


def _row(one: Answer, head: str, decimals: int) -> list[str]:
    setting = one.setting
    clocks = [f"{setting.sm_mhz:.6g}", f"{setting.mem_mhz:g}"]
    numbers = [(one.throughput_images_per_s, 1), (one.power_w, decimals), (one.sm_util_percent, 1), (one.mem_util_percent, 1)]
    return [head, processes(setting.partition), *clocks, *("–" if isnan(value) else f"{value:.{digits}f}" for value, digits in numbers)]


def _notes(asked: Asked, found: Sequence[Answer]) -> list[str]:
    unit = SPOKEN.get(asked.unit, asked.unit)
    notes = [f"The model was asked for {sum(one.evaluations for one in found)} partitions, counted once a memory clock."]
    notes += [
        f"{one.power_w - one.cap_w:.1f} {unit} above the cap of {one.cap_w:g}: the original stops within 1 W of it, and keeps its "
        "clock where handing out the share that is left leaves none under the cap."
        for one in found
        if not one.feasible
    ]
    if asked.caps_w and any(one.best_profiled is not None for one in found):
        notes.append(
            "Where a row says `as profiled` below it, the partition above was never profiled: there the model extrapolates. "
            "Measure it before you rely on the difference."
        )
    if not asked.caps_w and not all(one.profiled for one in found):
        notes.append("Partitions of unlike processes were never profiled: there the model extrapolates. --profiled-only leaves them out.")
    return notes
