"""Fitting the project's own model: surfaces at the anchor clock, one response to the clock each for throughput and power, static power."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import least_squares, minimize
from sklearn.isotonic import isotonic_regression
from threadpoolctl import threadpool_limits

from control.power.models.own import (
    NONE,
    SURFACES,
    Features,
    Own,
    Response,
    Static,
    Surface,
    distance,
    features_of,
    floor_of,
    law_of,
    one_clock,
)

from .material import QUANTITIES, Material, MeasuredPoint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from control.power.terms import Floats


MOST_KNOTS, MOST_STEPS = 16, 60
NOISE = 0.03  # sd of the logarithm of one row; how strictly the priors below are to be taken depends on it


def fit_clock(series: Sequence[tuple[Floats, Floats]], anchor: float) -> Response:
    """Fit to several partitions, each (clocks, values) at two clocks or more; `anchor` is the clock where the ratio is 1.

    The reference value of each partition is fitted with the rest, so that a partition without a row at the anchor clock serves too.
    """
    clocks = np.concatenate([array for array, _ in series])
    logs = np.log(np.concatenate([values for _, values in series]))
    which = np.repeat(np.arange(len(series)), [len(array) for array, _ in series])
    knots = _knots(clocks, anchor)
    unit = float(np.exp(np.median([np.log(values[np.argmax(array)]) for array, values in series])))
    expected = np.diff(knots) / (knots[-1] - knots[0])
    free = len(expected)

    def parts(result: Floats) -> tuple[Floats, float, float, Floats]:
        steps = np.exp(result[:free]) * expected
        risen = np.concatenate([[0.0], np.cumsum(steps)])
        return risen / float(PchipInterpolator(knots, risen)(anchor)), float(result[free]), float(result[free + 1]), result[free + 2 :]

    def fitted(result: Floats) -> Floats:
        risen, level, slope, references = parts(result)
        floor = floor_of(level, slope, references)[which]
        ratio: Floats = np.log(floor + (1.0 - floor) * PchipInterpolator(knots, risen)(clocks)) + np.log(unit) + references[which]
        return ratio

    def off(result: Floats) -> Floats:
        return np.concatenate(
            [
                (fitted(result) - logs) / NOISE,
                result[:free] / 3.0,
                [np.mean(result[:free]), result[free] / 2.0, (result[free + 1] - 0.5) / 0.5],
            ]
        )

    start = np.concatenate([np.zeros(free), [0.0, 0.5], [np.log(values[np.argmax(array)] / unit) for array, values in series]])
    lowest = np.concatenate([np.full(free, -12.0), [-8.0, 0.0], np.full(len(series), -8.0)])
    highest = np.concatenate([np.full(free, 6.0), [8.0, 2.0], np.full(len(series), 8.0)])
    found = least_squares(off, start, bounds=(lowest, highest), loss="soft_l1", max_nfev=MOST_STEPS, ftol=1e-6).x
    risen, level, slope, _ = parts(found)
    spread = fitted(found) - logs
    used = free + 2 + len(series)
    log_sd = float(np.sqrt((spread**2).sum() / max(1, len(logs) - used)))
    return Response(tuple(map(float, knots)), tuple(map(float, risen)), anchor, level, slope, unit, log_sd)


def _knots(clocks: Floats, anchor: float) -> Floats:
    """Clocks that were measured, those within 2 % of the range taken as one, and the anchor; at most 16."""
    every = np.unique(np.append(clocks, anchor))
    kept = [every[0]]
    for one in every[1:]:
        if one - kept[-1] > 0.02 * (every[-1] - every[0]):
            kept.append(one)
    kept[-1] = every[-1]
    if len(kept) > MOST_KNOTS:
        kept = list(np.interp(np.linspace(0, len(kept) - 1, MOST_KNOTS), np.arange(len(kept)), kept))
    return np.array(kept)


def fit_static(clocks: Floats, power_w: Floats) -> Static:
    """Mean power of each clock, made never to fall by pooling neighbours (isotonic regression)."""
    distinct, which = np.unique(clocks, return_inverse=True)
    counts = np.bincount(which).astype(float)
    means = np.bincount(which, power_w) / counts
    level = isotonic_regression(means, sample_weight=counts)
    off = power_w - level[which]
    return Static(tuple(map(float, distinct)), tuple(map(float, level)), float(np.sqrt(np.mean(off**2))))


AMPLITUDE, NOISE = 0.15, 0.03  # expected sds of logarithms
LENGTH_SD, SD_SD = 0.7, 1.0  # how far the logarithms of scales and of sds may be from what is expected
SCALE_BOUNDS, AMPLITUDE_BOUNDS, NOISE_BOUNDS = (0.1, 20.0), (1e-3, 2.0), (2e-3, 0.5)


def most_likely(columns: Floats, values: Floats, scales: Floats, fixed: int = 0, start: Floats | None = None) -> Floats:
    """Logarithms of the scales, of the amplitude and of the noise, most probable after seeing values, shape (rows,), of mean 0.

    `scales` are those expected; the last `fixed` of them stay as they are, and are not among those returned.
    """
    free = len(scales) - fixed
    prior = np.log([*scales[:free], AMPLITUDE, NOISE])
    prior_sd = np.array([LENGTH_SD] * free + [SD_SD, SD_SD])
    bounds = [tuple(np.log(entry)) for entry in [SCALE_BOUNDS] * free + [AMPLITUDE_BOUNDS, NOISE_BOUNDS]]
    gaps = [(columns[:, None, number] - columns[None, :, number]) ** 2 for number in range(free)]
    size = len(values)

    def unlikely(hyper: Floats) -> tuple[float, Floats]:
        """Minus the logarithm of the posterior, and its gradient."""
        result = np.exp(hyper[:free])
        amplitude2, noise2 = np.exp(2.0 * hyper[free:])
        far = distance(columns, columns, np.concatenate([result, scales[free:]]))
        tail = np.exp(-far)
        correlation = (1.0 + far + far**2 / 3.0) * tail
        factor = cho_factor(amplitude2 * correlation + noise2 * np.eye(size), lower=True)
        weights = cho_solve(factor, values)
        pull = np.outer(weights, weights) - cho_solve(factor, np.eye(size))
        slope = pull * (amplitude2 * (5.0 / 3.0) * (1.0 + far) * tail)
        gradient = [-0.5 * np.sum(slope * gap) / scale**2 for gap, scale in zip(gaps, result, strict=True)]
        gradient += [-np.sum(pull * correlation) * amplitude2, -np.trace(pull) * noise2]
        off = (hyper - prior) / prior_sd
        value = 0.5 * values @ weights + np.log(np.diag(factor[0])).sum() + 0.5 * off @ off
        return float(value), np.array(gradient) + off / prior_sd

    best: Floats = minimize(unlikely, prior if start is None else start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return best


# What the law's numbers are before any data, and how far from it they may be (sd): weak, but with a dozen points they decide. UNITS are
# in units of what is fitted.
BEFORE = np.array([0.0, 0.5, -2.5, np.log(2.0), np.log(2.0), 0.0, 0.0, np.log(2.0), np.log(2.0)])
LOOSE = np.array([3.0, 0.5, 1.5, 0.7, 1.5, 0.3, 3.0, 1.5, 0.7])
UNITS = [0, 2, 6]
LAW_NOISE = 0.1
MOST_STEPS = 60
# Length scales expected in ln share, ln tenants and ln batch. The last two, fixed: tenants that differ by a factor of e are as strange as
# alike ones that far from anything measured.
SCALES, MIXED = np.array([1.0, 1.0, 1.5, 1.0, 1.0]), 2


def fit_surface(seen: Features, values: Floats, rows: NDArray[np.intp], before: Surface | None = None) -> Surface:
    """Fit a surface to positive values, shape (partitions,).

    `rows` say which of the model's partitions these are. `before` is a fit to nearly the same values: the search begins there.
    """
    logs = np.log(values)
    law = _law(seen, logs, before)
    left = logs - law_of(law, seen)
    start = None if before is None else np.log([*before.scales[:-MIXED], before.amplitude, before.noise])
    *scales, amplitude, noise = (float(one) for one in np.exp(most_likely(seen.columns, left, SCALES, MIXED, start)))
    widest = float(np.abs(left).max()) + 2.0 * noise
    return Surface(
        law=tuple(map(float, law)),
        scales=(*scales, *map(float, SCALES[-MIXED:])),
        amplitude=amplitude,
        noise=noise,
        inflation=1.0,
        limits=(-widest, widest),
        rows=tuple(map(int, rows)),
        at=seen.columns,
        left=left,
    )


def _law(seen: Features, logs: Floats, before: Surface | None) -> Floats:
    """The law's numbers. They are few and their priors mild, so that few rows do not run away with them."""
    expected = BEFORE.copy()
    expected[UNITS] += logs.max()

    def off(law: Floats) -> Floats:
        return np.concatenate([(law_of(law, seen) - logs) / LAW_NOISE, (law - expected) / LOOSE])

    start = expected if before is None else np.array(before.law)
    result: Floats = least_squares(off, start, loss="soft_l1", max_nfev=MOST_STEPS, ftol=1e-6).x
    return result


SMALLEST = 1e-3  # of dynamic power, in its unit: a partition that draws no more than the idle board


def fit(material: Material, start: Mapping[str, Surface] | None = None, *, utilisation: bool = True) -> Own:
    """Fit everything the material has. `start`: surfaces of a fit to nearly the same rows, where the search begins."""
    idle = fit_static(*np.array(material.static).T) if material.static else NONE
    partitions = tuple(point.partition for point in material.anchors)
    surfaces = {}
    for name, quantity in zip(SURFACES, QUANTITIES, strict=True):
        if not utilisation and name in SURFACES[2:]:
            continue
        rows, values = material.values(quantity)
        if len(rows) < 2:
            continue
        if quantity == "power":
            values = np.maximum(values - idle.at(np.array([material.anchor])), SMALLEST)
        before = (start or {}).get(name)
        # Matrices of a few hundred rows: further threads only wait for each other.
        with threadpool_limits(1, user_api="blas"):
            surfaces[name] = fit_surface(features_of([partitions[row] for row in rows]), values, rows, before)
    return fit_responses(
        material,
        Own(
            network=material.network,
            gpu=material.gpu,
            mem_mhz=material.mem_mhz,
            clock=material.clock,
            cap_unit=material.cap_unit,
            sm_range_mhz=(material.anchor, material.anchor),
            partitions=partitions,
            surfaces=surfaces,
            throughput_response=one_clock(material.anchor),
            power_response=one_clock(material.anchor),
            static=idle,
            held_out={},
            sources={},
        ),
    )


def fit_responses(material: Material, model: Own) -> Own:
    """The model with what the clock makes of it fitted to the material."""
    measured = [point.clock for point in (*material.anchors, *material.others)]
    return replace(
        model,
        sm_range_mhz=(min(*measured, material.anchor), max(*measured, material.anchor)),
        throughput_response=_response(material, "throughput_images_per_s", NONE),
        power_response=_response(material, "power", model.static),
    )


def _response(material: Material, quantity: str, idle: Static) -> Response:
    """The curve over the clock, from all partitions that were measured at two clocks or more."""
    series: dict[object, list[MeasuredPoint]] = defaultdict(list)
    for point in (*material.others, *material.anchors):
        if getattr(point, quantity) is not None:
            series[point.partition].append(point)
    usable = [_over_clock(points, quantity, idle) for points in series.values() if len({round(point.clock, 3) for point in points}) > 1]
    reaches_below = any(clock.min() < material.anchor for clock, _ in usable)
    return fit_clock(usable, material.anchor) if reaches_below else one_clock(material.anchor)


def _over_clock(points: list[MeasuredPoint], quantity: str, idle: Static) -> tuple[Floats, Floats]:
    clock = np.array([point.clock for point in points])
    values = np.array([getattr(point, quantity) for point in points], dtype=np.float64)
    return clock, np.maximum(values - idle.at(clock), SMALLEST)
