"""What a setting gives by a model: SM and memory utilisation, images/s, watts; and where the model was never fitted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from analysis.terms import Refused
from control.power import grid
from control.power.models.own import Spans, spans_of
from control.power.models.reference import Reference
from control.power.platforms import platforms
from control.power.terms import CLOCK, WATTS, pace_of, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from control.power.terms import Anchor, Floats, Model, Partition, Setting

LARGE = 1e15  # from here on numbers are said by their size
MOST = 1000  # processes; a GPU under MPS takes 48


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a setting gives. `beyond` says, a sentence each, where it lies outside what the model was fitted on.

    Utilisations are NVML's, percent of time, at the anchor clock; NaN where the model knows none. `power_w` is in `cap_unit`, and
    `setting.sm_mhz` is what `clock` names: those of the model.
    """

    setting: Setting
    sm_util_percent: float
    mem_util_percent: float
    throughput_images_per_s: float
    power_w: float
    beyond: tuple[str, ...]
    cap_unit: str = WATTS
    clock: str = CLOCK


def predict(models: Mapping[float, Model], settings: Sequence[Setting]) -> list[Predicted]:
    """Answer what each setting gives; `models` are by memory clock, MHz. Many settings cost little more than one.

    Raises: Refused, for a setting that is none, and for a memory clock no model is of.
    """
    for setting in settings:
        _must_be_setting(setting, models)
    said: dict[int, Predicted] = {}
    for mem_mhz, model in models.items():
        chosen = [number for number, setting in enumerate(settings) if setting.mem_mhz == mem_mhz]
        if chosen:
            anchor = model.anchor([settings[number].partition for number in chosen])
            clocks = np.array([settings[number].sm_mhz for number in chosen], dtype=np.float64)
            throughput, power = model.throughput_images_per_s(anchor, clocks), model.power_w(anchor, clocks)
            rows = np.stack([anchor.sm_util_percent, anchor.mem_util_percent, throughput, power], axis=1).tolist()
            for number, (sm_util, mem_util, images_per_s, watts) in zip(chosen, rows, strict=True):
                setting = settings[number]
                outside, words = beyond(model, setting), (unit_of(model), pace_of(model))
                said[number] = Predicted(setting, sm_util, mem_util, images_per_s, watts, outside, *words)
    return [said[number] for number in range(len(settings))]


def over_clocks(anchor: Anchor) -> Anchor:
    """An anchor whose fields have shape (partitions, 1), to be broadcast with clocks."""
    columns: dict[str, Floats] = {one.name: np.asarray(getattr(anchor, one.name))[:, None] for one in fields(anchor)}
    return type(anchor)(**columns)


def beyond(model: Model, setting: Setting) -> tuple[str, ...]:
    """Say where a setting lies outside what the model was fitted on, and outside what its GPU can do."""
    low, high = model.sm_range_mhz
    clock, partition = setting.sm_mhz, setting.partition
    found = []
    if not low <= clock <= high:
        name = "clock" if pace_of(model) == CLOCK else pace_of(model)
        found.append(f"{name} {clock:g} lies outside {low:g} to {high:g}, where the model was fitted")
    known = platforms().get(model.gpu)
    if known is not None and clock not in known.sm_mhz:
        near = min(known.sm_mhz, key=lambda mhz: abs(mhz - clock))
        found.append(f"clock {clock:g} is no state of {model.gpu}; the nearest is {near:g}")
    spans = _of_grid() if isinstance(model, Reference) else getattr(model, "spans", None)
    if spans is not None:
        found += _outside(partition, spans)
    if isinstance(model, Reference) and len(set(zip(partition.shares, partition.batches, strict=True))) > 1:
        found.append("processes differ; only equal ones were measured")
    return tuple(found)


@cache
def _of_grid() -> Spans:
    """Of the original's grid: what its models were fitted to, its files do not say."""
    return spans_of([point.partition for point in grid.anchor()])


def _outside(partition: Partition, spans: Spans) -> Iterator[str]:
    for name, unit, values, (low, high) in (
        ("share", " %", partition.shares, spans.shares),
        ("batch", "", partition.batches, spans.batches),
    ):
        if max(values) > high:
            yield f"a {name} of {_short(max(values))}{unit}; the largest that was measured is {high:g}{unit}"
        if min(values) < low:
            yield f"a {name} of {_short(min(values))}{unit}; the smallest that was measured is {low:g}{unit}"
    if len(partition.shares) > spans.processes:
        yield f"{len(partition.shares)} processes; the most that were measured are {spans.processes}"


def _short(value: float) -> str:
    return f"{value:g}" if abs(value) < LARGE else "10^" + str(len(str(int(value))) - 1) + " or more"


def _must_be_setting(setting: Setting, models: Mapping[float, Model]) -> None:
    partition: Partition = setting.partition
    if not 0 < len(partition.shares) == len(partition.batches) <= MOST:
        counts = f"{len(partition.shares)} shares and {len(partition.batches)} batches"
        raise Refused(f"{counts}: every process has one of each, and there are 1 to {MOST} processes.")
    wrong = [share for share in partition.shares if not 0 < share <= 100]
    if wrong:
        raise Refused(f"a share of {wrong[0]:g} %: it is above 0 and at most 100, percent of the SMs.")
    small = [batch for batch in partition.batches if batch < 1]
    if small:
        raise Refused(f"a batch of {small[0]}: it is 1 image or more.")
    if not 0 < setting.sm_mhz < np.inf:
        raise Refused(f"an SM clock of {setting.sm_mhz:g} MHz: it is above 0.")
    if setting.mem_mhz not in models:
        there = ", ".join(f"{mhz:g}" for mhz in models)
        raise Refused(f"no model of a memory clock of {setting.mem_mhz:g} MHz; there are {there}.")
