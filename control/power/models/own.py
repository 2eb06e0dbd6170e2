"""The project's own model of a network on a GPU: bounded, never falling with the clock, and it says how sure it is.

What partitions give at the anchor clock is one `Surface` a quantity; what the clock makes of it is one monotone `Response` each for
throughput and power, on top of the static power. Where clocks were not measured it errs on the safe side: below the lowest, throughput
falls in proportion and power does not; above the highest, throughput stays and power rises with the cube.

On back-ends without clocks the throttle (duty, 0 to 1) stands where `sm_mhz` is said, and CPU seconds per second where watts are said;
`clock` and `cap_unit` tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from control.errors import Refused
from control.power.terms import Anchor, Partition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from control.power.terms import Floats

COLUMNS = 5


@dataclass(frozen=True, slots=True)
class Features:
    """Tenants of many partitions, flat: shape (tenants,), the first tenant of each partition in `first` (partitions,).

    `columns` (partitions, 5): means of ln share and ln batch, ln of the number of tenants, and the spreads (sd) of the first two,
    which are 0 wherever all tenants are alike.
    """

    shares: Floats
    batches: Floats
    first: NDArray[np.intp]
    columns: Floats

    def total(self, of_tenants: Floats) -> Floats:
        """Sum over each partition's tenants. Shape: (tenants,) to (partitions,)."""
        return np.add.reduceat(of_tenants, self.first)


def features_of(partitions: Sequence[Partition]) -> Features:
    """Take the partitions apart; there must be at least one, with at least one tenant each."""
    counts = np.array([len(partition.shares) for partition in partitions], dtype=np.intp)
    shares = np.fromiter(chain.from_iterable(partition.shares for partition in partitions), dtype=np.float64)
    batches = np.fromiter(chain.from_iterable(partition.batches for partition in partitions), dtype=np.float64)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp)
    share_mean, share_sd = _moments(np.log(shares), first, counts)
    batch_mean, batch_sd = _moments(np.log(batches), first, counts)
    columns = np.column_stack([share_mean, np.log(counts), batch_mean, share_sd, batch_sd])
    return Features(shares, batches, first, columns)


def _moments(values: Floats, first: NDArray[np.intp], counts: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Mean and population sd of each partition's tenants."""
    mean = np.add.reduceat(values, first) / counts
    spread = np.add.reduceat((values - np.repeat(mean, counts)) ** 2, first) / counts
    return mean, np.sqrt(spread)


@dataclass(frozen=True)
class Response:
    """Ratio to the value at the anchor clock: floor + (1 - floor) · rise(clock).

    `rise` runs from 0 at the lowest of `clocks` through 1 at `anchor` and never falls, PCHIP between. A partition's floor, its ratio at the
    lowest clock, is logistic(`level` - `slope` · ln(reference value / `unit`)): what does more at the anchor clock loses more below it. One
    clock alone has rise (1,). `log_sd` is the sd of the logarithm between rows and this curve.
    """

    clocks: tuple[float, ...]
    rise: tuple[float, ...]
    anchor: float
    level: float
    slope: float
    unit: float
    log_sd: float

    @cached_property
    def _curve(self) -> PchipInterpolator:
        return PchipInterpolator(self.clocks, self.rise)

    def ratio(self, reference: Floats, clock: Floats) -> Floats:
        """Ratio at `clock`; outside the measured clocks that of the nearest. Shape: that of both, broadcast."""
        if len(self.clocks) == 1:
            return np.ones(np.broadcast_shapes(np.shape(reference), np.shape(clock)))
        floor = floor_of(self.level, self.slope, np.log(np.clip(reference, 1e-9, None) / self.unit))
        risen: Floats = self._curve(np.clip(clock, self.clocks[0], self.clocks[-1]))
        return floor + (1.0 - floor) * risen


def floor_of(level: float, slope: float, log_reference: Floats) -> Floats:
    """Ratio at the lowest clock, between 0 and 1."""
    return 1.0 / (1.0 + np.exp(np.clip(slope * log_reference - level, -30.0, 30.0)))


def one_clock(anchor: float) -> Response:
    """What is known where only one clock was measured: nothing of others."""
    return Response((anchor,), (1.0,), anchor, 0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True)
class Static:
    """Static power at clocks, ascending, PCHIP between; outside them that of the nearest. `sd_w` is the spread of rows about it."""

    clocks: tuple[float, ...]
    power_w: tuple[float, ...]
    sd_w: float

    @cached_property
    def _curve(self) -> PchipInterpolator:
        return PchipInterpolator(self.clocks, self.power_w)

    def at(self, clock: Floats) -> Floats:
        """Watts, shape of `clock`."""
        if len(self.clocks) == 1:
            return np.full(np.shape(clock), self.power_w[0])
        watts: Floats = self._curve(np.clip(clock, self.clocks[0], self.clocks[-1]))
        return watts


NONE = Static((0.0,), (0.0,), 0.0)


@dataclass(frozen=True)
class Surface:
    """A fitted quantity. `law`: see `law_of`. `scales` are one a column of `Features.columns`; `amplitude` and `noise` are sds of logs.

    `at` (points, columns) and `left` (points,) are where it was measured and what the law left over there, as logs; `rows` say which of the
    model's partitions these points are. `inflation` makes the uncertainty that of rows held out. `limits` bound what the process may add.
    """

    law: tuple[float, ...]
    scales: tuple[float, ...]
    amplitude: float
    noise: float
    inflation: float
    limits: tuple[float, float]
    rows: tuple[int, ...]
    at: Floats
    left: Floats

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        covariance = self.amplitude**2 * matern(self.at, self.at, np.array(self.scales))
        covariance[np.diag_indices_from(covariance)] += self.noise**2
        factor: tuple[Floats, bool] = cho_factor(covariance, lower=True)
        return factor

    @cached_property
    def _weights(self) -> Floats:
        weights: Floats = cho_solve(self._factor, self.left)
        return weights

    def beyond_law(self, columns: Floats) -> tuple[Floats, Floats]:
        """What the process adds to the law's logarithm at `columns` (points, columns), and the sd of the sum. Shapes (points,)."""
        cross = self.amplitude**2 * matern(columns, self.at, np.array(self.scales))
        explained = solve_triangular(self._factor[0], cross.T, lower=True)
        variance = self.amplitude**2 - np.einsum("ij,ij->j", explained, explained)
        sd = self.inflation * np.sqrt(np.clip(variance, 0.0, None) + self.noise**2)
        return np.clip(cross @ self._weights, *self.limits), sd

    def predict(self, seen: Features) -> tuple[Floats, Floats]:
        """Value, and the sd of its logarithm. Shapes (partitions,)."""
        added, sd = self.beyond_law(seen.columns)
        return np.exp(law_of(np.array(self.law), seen) + added), sd


def law_of(law: Floats, seen: Features) -> Floats:
    """Logarithm of the law. Shape (partitions,).

    `law`: ln of the unit of D, a itself, ln of what one image of a batch that starts allows, of the sharpness between the two, of h, c, the
    unit of F, g and q.
    """
    unit, share_power, start, corner, half, shrink, full_unit, full_half, sharpness = law
    share = share_power * np.log(seen.shares / 100.0) + np.log(seen.batches / (seen.batches + np.exp(half)))
    alone = least(share, start - unit + np.log(seen.batches), np.exp(corner))
    demand = unit + np.exp(shrink) * np.log(seen.total(np.exp(alone)))
    batch = np.exp(seen.columns[:, 2])
    return least(demand, full_unit + np.log(batch / (batch + np.exp(full_half))), np.exp(sharpness))


def least(a: Floats, b: Floats, sharpness: float) -> Floats:
    """Logarithm of (A^-s + B^-s)^(-1/s), of the logarithms a and b: below the smaller of them, and close to it where they differ."""
    joined: Floats = -np.logaddexp(-sharpness * a, -sharpness * b) / sharpness
    return joined


def matern(a: Floats, b: Floats, scales: Floats) -> Floats:
    """Matérn 5/2 correlation of rows of a with rows of b. Shape (rows of a, rows of b)."""
    far = distance(a, b, scales)
    correlation: Floats = (1.0 + far + far**2 / 3.0) * np.exp(-far)
    return correlation


def distance(a: Floats, b: Floats, scales: Floats) -> Floats:
    """√5 times the distance, each column in its own scale. Shape as above."""
    left, right = a / scales, b / scales
    squared = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2.0 * left @ right.T
    far: Floats = np.sqrt(5.0 * np.clip(squared, 0.0, None))
    return far


SURFACES = ("throughput_images_per_s", "dynamic_power_w", "sm_util_percent", "mem_util_percent")


@dataclass(frozen=True, slots=True)
class Spans:
    """Smallest and largest share (percent) and batch (images) of a process, most processes at once: outside, an answer is a guess."""

    shares: tuple[float, float]
    batches: tuple[int, int]
    processes: int


def spans_of(partitions: Sequence[Partition]) -> Spans:
    shares = [share for partition in partitions for share in partition.shares]
    batches = [batch for partition in partitions for batch in partition.batches]
    return Spans((min(shares), max(shares)), (min(batches), max(batches)), max(len(partition.shares) for partition in partitions))


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
        return spans_of(self.partitions)

    def anchor(self, partitions: Sequence[Partition]) -> Estimated:
        """What each partition gives at the anchor clock, and how sure that is."""
        if not partitions:
            return Estimated(*(np.empty(0) for _ in fields(Estimated)))
        seen = features_of(partitions)
        result = {name: self._at_anchor(name, seen) for name in SURFACES}
        (throughput, throughput_sd), (power, power_sd) = result[SURFACES[0]], result[SURFACES[1]]
        sm, mem = (np.minimum(result[name][0], 100.0) for name in SURFACES[2:])
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

    def _at_anchor(self, name: str, seen: Features) -> tuple[Floats, Floats]:
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
        "partitions": [{"shares": list(partition.shares), "batches": list(partition.batches)} for partition in model.partitions],
        "surfaces": {name: _plain(surface) for name, surface in model.surfaces.items()},
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
    columns = features_of(partitions).columns
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
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: list(value) if isinstance(value, tuple | np.ndarray) else value for name, value in values.items() if name != "at"}


def _tuples(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(map(float, value)) if isinstance(value, list) else float(value) for name, value in said.items()}
