"""Predictions as a page: a table for each network and GPU, and below it what lies outside what was fitted."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from analysis.plain import one_line
from analysis.printing import columns, hanging, on_page
from control.power.terms import CLOCK, SPOKEN, WATTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from control.power.terms import Partition

    from .predict_asked import Asked
    from .predicting import Predicted
    from .quality import Finding

NOTED = 9  # notes with a number each; more are counted


def render(asked: Sequence[Asked], found: Sequence[Predicted], copied: Sequence[Finding] = (), *, color: bool = False) -> str:
    """Write predictions, those of one network on one GPU together, in order; below them which models are `copied`."""
    parts: list[RenderableType] = []
    pairs = zip(asked, found, strict=True)
    for (network, gpu), group in groupby(pairs, key=lambda pair: (pair[0].network, pair[0].gpu)):
        said = [one for _, one in group]
        notes = list(dict.fromkeys(note for one in said for note in one.beyond))
        parts += [*([Text("")] if parts else []), Text(f"{one_line(network)} on {one_line(gpu)}", "bold" if color else "")]
        parts.append(columns(heads(said[0].clock, said[0].cap_unit), [_row(one, notes) for one in said]))
        parts.append(hanging((f"[{number}]", f"{note}.") for number, note in enumerate(notes[:NOTED], 1)))
        if len(notes) > NOTED:
            parts.append(Text(f"and {len(notes) - NOTED} more of the kind; --json has all."))
    parts += [hanging((one.mark, f"quality of {one.where}: {one.what}") for one in copied)] if copied else []
    return on_page(parts, color=color)


def heads(clock: str, cap_unit: str) -> tuple[str, ...]:
    """Name a prediction's columns: what sets the pace is the SM clock or the throttle, what a cap bounds is W or CPU s/s."""
    drawn = "power" if cap_unit == "none" else SPOKEN.get(cap_unit, one_line(cap_unit, 30))
    return ("processes", pace(clock), "mem", "SM %", "mem %", "images/s", drawn, "")


def pace(clock: str) -> str:
    """Write what sets the pace: `SM`, or what there is in place of a clock."""
    return "SM" if clock == CLOCK else one_line(clock, 30)


def processes(partition: Partition) -> str:
    """Write a partition: equal processes once, `4 × 25 % b16`; in order."""
    groups = [(pair, len(list(same))) for pair, same in groupby(zip(partition.shares, partition.batches, strict=True))]
    return " + ".join(f"{count} × {share:g} % b{batch}" for (share, batch), count in groups)


def _row(one: Predicted, notes: Sequence[str]) -> list[str]:
    marks = "".join(f"[{notes.index(note) + 1}]" for note in one.beyond if notes.index(note) < NOTED)
    clocks = [f"{one.setting.sm_mhz:g}", f"{one.setting.mem_mhz:g}"]
    measures = _decimals((one.sm_util_percent, one.mem_util_percent, one.throughput_images_per_s))
    drawn = _decimals((one.power_w,), 1 if one.cap_unit == WATTS else 3)
    return [processes(one.setting.partition), *clocks, *measures, *drawn, marks]


def _decimals(values: Iterable[float], digits: int = 1) -> list[str]:
    return ["–" if math.isnan(value) else f"{value:.{digits}f}" for value in values]
