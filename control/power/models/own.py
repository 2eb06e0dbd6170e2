"""Our own model of a network on a GPU: Gaussian processes over partition and clock."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from control.power.terms import Anchor, Partition

if TYPE_CHECKING:
    from control.power.terms import Floats

COLUMNS = 4
MOST_STEPS = 8  # of the search for the kernel's scales: more fits the noise of small profiles
MOST_TIMES = 2.0  # the largest measured value: nothing is predicted to be more
CLOCKS = 32  # between which a curve over the clock is straight


def columns_of(partitions: Sequence[Partition], part_of_anchor: Floats) -> Floats:
    """Return features of partitions at clocks relative to the anchor's. Shape (partitions, 4).

    Mean ln share, ln of all shares together, batch (saturating: 3 at most between 1 image and
    many), ln clock.
    """
    rows = [
        (
            np.mean(np.log(one.shares)),
            np.log(sum(one.shares)),
            -3.0 * np.mean(np.array(one.batches) ** -0.5),
        )
        for one in partitions
    ]
    return np.column_stack([np.array(rows, dtype=np.float64), np.log(part_of_anchor)])


def kernel() -> Any:
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

    trend = ConstantKernel(10.0, (1.0, 1e3)) * RBF([3.0] * COLUMNS, (1.0, 30.0))
    nearby = ConstantKernel(0.05, (1e-3, 1.0)) * Matern([1.0] * COLUMNS, (0.1, 10.0), nu=1.5)
    return trend + nearby + WhiteKernel(1e-3, (1e-5, 0.1))


@dataclass(frozen=True)
class Surface:
    """The logarithm of a quantity at the model's points, and the kernel's parameters."""

    rows: tuple[int, ...]
    logs: tuple[float, ...]
    theta: tuple[float, ...]


def process_of(kernel: Any, at: Floats, logs: Floats, *, search: bool = False) -> Any:
    """Fit a Gaussian process to logarithms (rows,) at columns (rows, columns).

    `search` optimises the scales.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from threadpoolctl import threadpool_limits

    process = GaussianProcessRegressor(kernel, optimizer=_few_steps if search else None)
    # Matrices of a few hundred rows: further threads only wait for each other. A scale on its bound
    # is meant to be there.
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return process.fit(at, logs)


def fit_surface(
    rows: Sequence[int], at: Floats, values: Floats, theta: Sequence[float] | None = None
) -> Surface:
    """Fit a surface to positive values (rows,) at columns; `theta` fixes the kernel."""
    logs = np.log(values)
    if theta is None:
        theta = process_of(kernel(), at, _normal(logs), search=True).kernel_.theta
    return Surface(tuple(map(int, rows)), tuple(map(float, logs)), tuple(map(float, theta)))


def _normal(logs: Floats) -> Floats:
    normal: Floats = (logs - logs.mean()) / (logs.std() or 1.0)
    return normal


def _few_steps(unlikely: Any, start: Floats, bounds: Floats) -> tuple[Floats, float]:
    from scipy.optimize import minimize

    found = minimize(
        unlikely, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MOST_STEPS}
    )
    return found.x, float(found.fun)


SURFACES = ("throughput_images_per_s", "power_w", "sm_util_percent", "mem_util_percent")


@dataclass(frozen=True, slots=True)
class Curves(Anchor):
    """An anchor with throughput and power at the model's `clocks`. Shape (partitions, clocks)."""

    images: Floats
    power: Floats


@dataclass(frozen=True)
class Own:
    """A fitted model; see `terms.Model`.

    `held_out` and `sources` are what is known of its making, and change no answer.

    `points` are the partitions that were measured, each with its clock. `guard` is the guard band
    on power, `promised` the part of rows that it is to hold for (see
    `control.power.algorithms.steady`); None where no row was held out. Quantities that the traces
    did not have are missing from `surfaces` and NaN in answers.
    """

    network: str
    gpu: str
    mem_mhz: float
    clock: str
    cap_unit: str
    anchor_clock: float
    points: tuple[tuple[Partition, float], ...]
    surfaces: Mapping[str, Surface]
    guard: float | None
    held_out: Mapping[str, Any]
    sources: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Check that the model can be the result of a fit. Raises: ValueError."""
        clocks = [self.anchor_clock, *(clock for _, clock in self.points)]
        if not self.points or not all(0.0 < clock < np.inf for clock in clocks):
            raise ValueError("it has no points, or an invalid clock")
        if self.guard is not None and self.guard < 1.0:
            raise ValueError(f"its guard band is {self.guard:g}, but must be at least 1")
        for partition, _ in self.points:
            shares, batches = partition.shares, partition.batches
            if not 0 < len(shares) == len(batches) or min(shares) <= 0 or min(batches) < 1:
                raise ValueError(f"a partition with shares {shares} and batches {batches}")
        for surface in self.surfaces.values():
            if not 0 < len(surface.rows) == len(surface.logs) or not set(surface.rows) <= set(
                range(len(self.points))
            ):
                raise ValueError("a surface that does not match the points")
            if len(surface.theta) != len(kernel().theta):
                raise ValueError("a surface with too few numbers")

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        return tuple(dict.fromkeys(partition for partition, _ in self.points))

    @cached_property
    def sm_range_mhz(self) -> tuple[float, float]:
        clocks = [clock for _, clock in self.points]
        return min(clocks), max(clocks)

    @cached_property
    def clocks(self) -> Floats:
        low, high = self.sm_range_mhz
        return np.linspace(low, high, CLOCKS) if low < high else np.array([low])

    @cached_property
    def _processes(self) -> dict[str, Any]:
        partitions, clocks = zip(*self.points, strict=True)
        at = columns_of(partitions, np.array(clocks) / self.anchor_clock)
        return {
            name: process_of(
                kernel().clone_with_theta(np.array(its.theta)),
                at[list(its.rows)],
                _normal(np.array(its.logs)),
            )
            for name, its in self.surfaces.items()
        }

    def anchor(self, partitions: Sequence[Partition]) -> Curves:
        """Return each partition's figures at the anchor clock and over all clocks."""
        if not partitions:
            none, curves = np.empty(0), np.empty((0, len(self.clocks)))
            return Curves(none, none, none, none, curves, curves)
        top = np.array([self.anchor_clock])
        images, power = (self._over(name, partitions, self.clocks) for name in SURFACES[:2])
        sm, mem = (
            np.minimum(self._over(name, partitions, top)[:, 0], 100.0) for name in SURFACES[2:]
        )
        images_at_top, power_at_top = (
            _between(curves, self.clocks, top) for curves in (images, power)
        )
        return Curves(sm, mem, images_at_top, power_at_top, images, power)

    def throughput_images_per_s(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """Return the throughput of all processes together, which never falls with the clock."""
        below = np.minimum(1.0, np.asarray(sm_mhz) / self.sm_range_mhz[0])
        assert isinstance(anchor, Curves)  # noqa: S101  # of this model
        images: Floats = _between(anchor.images, self.clocks, sm_mhz) * below
        return images

    def power_w(self, anchor: Anchor, sm_mhz: Floats) -> Floats:
        """Return the whole board's power in `cap_unit`, which never falls with the clock."""
        above = np.maximum(1.0, np.asarray(sm_mhz) / self.sm_range_mhz[1])
        assert isinstance(anchor, Curves)  # noqa: S101  # of this model
        power: Floats = _between(anchor.power, self.clocks, sm_mhz) * above**3
        return power

    def _over(self, name: str, partitions: Sequence[Partition], clocks: Floats) -> Floats:
        if name not in self.surfaces:
            return np.full((len(partitions), len(clocks)), np.nan)
        columns = columns_of(partitions, np.ones(len(partitions)))
        at = np.repeat(columns, len(clocks), axis=0)
        at[:, -1] = np.tile(np.log(clocks / self.anchor_clock), len(partitions))
        known = np.array(self.surfaces[name].logs)
        logs = known.mean() + (known.std() or 1.0) * self._processes[name].predict(at).reshape(
            len(partitions), len(clocks)
        )
        curves: Floats = np.maximum.accumulate(
            np.exp(np.minimum(logs, known.max() + np.log(MOST_TIMES))), axis=1
        )
        return curves


def _between(curves: Floats, clocks: Floats, at: Floats) -> Floats:
    shape = np.broadcast_shapes(curves.shape[:-1], np.shape(at))
    if len(clocks) == 1:
        return np.broadcast_to(curves[..., 0], shape).copy()
    above = np.clip(np.searchsorted(clocks, at), 1, len(clocks) - 1)
    weight = np.clip((at - clocks[above - 1]) / (clocks[above] - clocks[above - 1]), 0.0, 1.0)
    every = np.broadcast_to(curves, (*shape, len(clocks)))
    low, high = (
        np.take_along_axis(every, np.broadcast_to(one, shape)[..., None], -1)[..., 0]
        for one in (above - 1, above)
    )
    between: Floats = low + weight * (high - low)
    return between
