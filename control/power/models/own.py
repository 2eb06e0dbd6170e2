"""The project's own model of a network on a GPU: bounded, never falling with the clock, and it says how sure it is.

What partitions give at the anchor clock is one surface a quantity (`surface`); what the clock makes of it is one monotone curve
for throughput and one for power (`response`), on top of the static power. Where clocks were not measured it errs on the safe side:
below the lowest, throughput falls in proportion and power does not; above the highest, throughput stays and power rises with the cube.

On back-ends without clocks the throttle (duty, 0 to 1) stands where `sm_mhz` is said, and CPU seconds per second where watts are said;
`clock` and `cap_unit` tell.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from control.errors import Refused
from control.power.terms import Anchor, Partition

from .features import see
from .response import NONE, Response, Static
from .surface import Surface

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from control.power.terms import Floats

    from .features import Seen

SURFACES = ("throughput_images_per_s", "dynamic_power_w", "sm_util_percent", "mem_util_percent")


@dataclass(frozen=True, slots=True)
class Spans:
    """Smallest and largest share (percent) and batch (images) of a process, most processes at once: outside, an answer is a guess."""

    shares: tuple[float, float]
    batches: tuple[int, int]
    processes: int


def spans_of(partitions: Sequence[Partition]) -> Spans:
    """Those of partitions, one or more."""
    shares = [share for one in partitions for share in one.shares]
    batches = [batch for one in partitions for batch in one.batches]
    return Spans((min(shares), max(shares)), (min(batches), max(batches)), max(len(one.shares) for one in partitions))


@dataclass(frozen=True, slots=True)
class Estimated(Anchor):
    """An anchor that knows how sure it is: sds of the logarithms of throughput and dynamic power, shape (partitions,)."""

    throughput_log_sd: Floats
    dynamic_power_log_sd: Floats


@dataclass(frozen=True)
class Own:
    """A fitted model; see `terms.Model`. `held_out` and `sources` are what is known of its making, and change no answer.

    Quantities that the traces did not have are missing from `surfaces` and NaN in answers.
    """

    network: str
    gpu: str
    mem_mhz: float
    clock: str
    cap_unit: str
    sm_range_mhz: tuple[float, float]
    partitions: tuple[Partition, ...]
    surfaces: Mapping[str, Surface]
    throughput_response: Response
    power_response: Response
    static: Static
    held_out: Mapping[str, Any]
    sources: Mapping[str, Any]

    @cached_property
    def spans(self) -> Spans:
        """From where to where the partitions go that it was fitted to."""
        return spans_of(self.partitions)

    def anchor(self, partitions: Sequence[Partition]) -> Estimated:
        """What each partition gives at the anchor clock, and how sure that is."""
        if not partitions:
            return Estimated(*(np.empty(0) for _ in fields(Estimated)))
        seen = see(partitions)
        found = {name: self._at_anchor(name, seen) for name in SURFACES}
        (throughput, throughput_sd), (power, power_sd) = found[SURFACES[0]], found[SURFACES[1]]
        sm, mem = (np.minimum(found[name][0], 100.0) for name in SURFACES[2:])
        return Estimated(sm, mem, throughput, power, throughput_sd, power_sd)

    def throughput_images_per_s(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """All processes together; never falls with the clock."""
        clock = np.asarray(sm_mhz, dtype=np.float64)
        below = np.minimum(1.0, clock / self.sm_range_mhz[0])
        return anchor.throughput_images_per_s * self.throughput_response.ratio(anchor.throughput_images_per_s, clock) * below

    def power_w(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """The whole board, in `cap_unit`; never falls with the clock."""
        clock = np.asarray(sm_mhz, dtype=np.float64)
        watts: Floats = self.static.at(clock) + self._dynamic(anchor, clock)
        return watts

    def power_sd_w(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """How far the real power may be from `power_w`, one sd, in `cap_unit`: anchor, clock and static together."""
        clock = np.asarray(sm_mhz, dtype=np.float64)
        unsure = np.hypot(_estimated(anchor).dynamic_power_log_sd, self.power_response.log_sd)
        return np.hypot(self._dynamic(anchor, clock) * unsure, self.static.sd_w)

    def throughput_sd_images_per_s(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """How far the real throughput may be from the predicted, one sd."""
        unsure = np.hypot(_estimated(anchor).throughput_log_sd, self.throughput_response.log_sd)
        return self.throughput_images_per_s(anchor, sm_mhz) * unsure

    def _at_anchor(self, name: str, seen: Seen) -> tuple[Floats, Floats]:
        if name in self.surfaces:
            return self.surfaces[name].predict(seen)
        missing = np.full(len(seen.first), np.nan)
        return missing, missing

    def _dynamic(self, anchor: Anchor, clock: Floats) -> Floats:
        above = np.maximum(1.0, clock / self.sm_range_mhz[1]) ** 3
        watts: Floats = anchor.dynamic_power_w * self.power_response.ratio(anchor.dynamic_power_w, clock) * above
        return watts


def _estimated(anchor: Anchor) -> Estimated:
    if isinstance(anchor, Estimated):
        return anchor
    raise Refused("This model's uncertainty belongs to its own anchors: ask its `anchor` for them, not another model's.")


def as_json(model: Own) -> dict[str, Any]:
    """Write a model without what names it (`parameters.write` adds that)."""
    return {
        "clock": model.clock,
        "cap_unit": model.cap_unit,
        "clock_range": list(model.sm_range_mhz),
        "partitions": [{"shares": list(one.shares), "batches": list(one.batches)} for one in model.partitions],
        "surfaces": {name: _plain(one) for name, one in model.surfaces.items()},
        "throughput_response": _plain(model.throughput_response),
        "power_response": _plain(model.power_response),
        "static": None if model.static == NONE else _plain(model.static),
        "held_out": dict(model.held_out),
        "sources": dict(model.sources),
    }


def from_json(network: str, gpu: str, mem_mhz: float, said: Mapping[str, Any]) -> Own:
    """Read a model. Raises: KeyError, TypeError, ValueError, for what is none."""
    partitions = tuple(_partition(one) for one in said["partitions"])
    low, high = map(float, said["clock_range"])
    if not 0.0 < low <= high:
        raise ValueError(f"clock_range runs from {low:g} to {high:g}")
    columns = see(partitions).columns
    return Own(
        network=network,
        gpu=gpu,
        mem_mhz=mem_mhz,
        clock=str(said["clock"]),
        cap_unit=str(said["cap_unit"]),
        sm_range_mhz=(low, high),
        partitions=partitions,
        surfaces={name: _surface(said["surfaces"][name], columns) for name in SURFACES if name in said["surfaces"]},
        throughput_response=Response(**_tuples(said["throughput_response"])),
        power_response=Response(**_tuples(said["power_response"])),
        static=NONE if said["static"] is None else Static(**_tuples(said["static"])),
        held_out=said["held_out"],
        sources=said["sources"],
    )


def _partition(said: Mapping[str, Any]) -> Partition:
    shares, batches = tuple(map(float, said["shares"])), tuple(map(int, said["batches"]))
    if not shares or len(shares) != len(batches) or min(*shares, *batches) <= 0:
        raise ValueError(f"a partition with shares {shares} and batches {batches}")
    return Partition(shares, batches)


def _surface(said: Mapping[str, Any], columns: Floats) -> Surface:
    rows, left = tuple(map(int, said["rows"])), np.array(said["left"], dtype=np.float64)
    if len(rows) != len(left) or not set(rows) <= set(range(len(columns))) or not np.isfinite(left).all():
        raise ValueError("what the law left over does not fit the partitions")
    rest = {name: value for name, value in said.items() if name not in {"rows", "left"}}
    return Surface(**_tuples(rest), rows=rows, left=left, at=columns[list(rows)])


def _plain(record: Response | Static | Surface) -> dict[str, Any]:
    """A record's fields as JSON knows them."""
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    return {name: list(value) if isinstance(value, tuple | np.ndarray) else value for name, value in values.items() if name != "at"}


def _tuples(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(map(float, value)) if isinstance(value, list) else float(value) for name, value in said.items()}
