"""Fit laws of speed-up, and choose replicas so that jobs of any size take the same time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta
from scipy.optimize import least_squares

from .errors import Refused
from .t_test import t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

TOLERANCE = 0.1  # of the target, either way
LAWS = {"amdahl": ("serial",), "usl": ("serial", "crosstalk")}
SHAPE = {"serial", "crosstalk"}
UPPER = {"cost_s": np.inf, "serial": 1.0, "crosstalk": 1.0, "startup_s": np.inf}
_SMALL = 1e-12
_NEAR = 1e-6


@dataclass(frozen=True, slots=True)
class Law:
    """A job's time: startup + cost · work · (1 + serial·(n - 1) + crosstalk·n·(n - 1)) / n.

    In seconds, with n replicas: Gunther's universal scalability law (2007), as a time; without
    crosstalk it is Amdahl's (1967) with that serial part.
    """

    cost_s: Annotated[float, Meta(gt=0, le=1e12)]
    serial: Annotated[float, Meta(ge=0, le=1)] = 0.0
    crosstalk: Annotated[float, Meta(ge=0, le=1)] = 0.0
    startup_s: Annotated[float, Meta(ge=0, le=1e12)] = 0.0


@dataclass(frozen=True, slots=True)
class TimedJob:
    """A measured job: replicas, size in the unit of its work, and duration."""

    replicas: int
    work: float
    time_s: float


@dataclass(frozen=True, slots=True)
class LawFit:
    """A law fitted to points.

    `intervals`: 95 %, by fitted parameter; None without points to estimate them. `aicc` is Akaike's
    criterion for few points, on log times. `held_out` is the mean error, a fraction, of
    configurations (replicas and size) left out of the fit.
    """

    name: str
    law: Law
    points: int
    spread: float
    aicc: float
    intervals: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    held_out: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaChoice:
    work: float
    replicas: int
    predicted_s: float
    within: bool


def fits(points: Sequence[TimedJob]) -> list[LawFit]:
    numbers = {point.replicas for point in points}
    if len(numbers) < 2:
        raise Refused(
            f"All {len(points)} jobs had {next(iter(numbers), 'no')} replicas, so the effect of "
            "replicas cannot be determined."
        )
    result = []
    for name, shape in LAWS.items():
        names = (
            "cost_s",
            *shape,
            *(("startup_s",) if len({point.work for point in points}) > 1 else ()),
        )
        if _enough(points, names):
            result.append(_fitted(points, name, names))
    if not result:
        needed = 4 + (len({point.work for point in points}) > 1)
        raise Refused(f"{len(points)} jobs are too few to fit a law; {needed} are needed.")
    return sorted(result, key=lambda fit: fit.aicc)


def best_law(name: str, points: Sequence[TimedJob]) -> LawFit:
    """Return the better law for a class of jobs, with its held-out error. Raises: Refused."""
    try:
        best = fits(points)[0]
    except Refused as reason:
        raise Refused(f"Class {name}: {reason}") from None
    return replace(best, held_out=held_out(points, best))


def held_out(points: Sequence[TimedJob], fit: LawFit) -> float | None:
    """Return the mean error |predicted/measured - 1| for configurations left out of the fit.

    Each such configuration is left out in turn, all its jobs together; those without which the
    others could not tell are passed over.
    """
    names = tuple(fit.intervals)
    errors: list[float] = []
    for left_out in sorted({(point.replicas, point.work) for point in points}):
        rest = [point for point in points if (point.replicas, point.work) != left_out]
        if _enough(rest, names):
            law = _fitted(rest, fit.name, names).law
            mine = [point for point in points if (point.replicas, point.work) == left_out]
            errors += [
                abs(float(time_s(law, point.work, point.replicas)) / point.time_s - 1)
                for point in mine
            ]
    return float(np.mean(errors)) if errors else None


def _enough(points: Sequence[TimedJob], names: tuple[str, ...]) -> bool:
    numbers, sizes = (
        len({point.replicas for point in points}),
        len({point.work for point in points}),
    )
    return (
        len(points) > len(names) + 1
        and numbers > len(SHAPE & set(names))
        and (sizes > 1 or "startup_s" not in names)
    )


def _fitted(points: Sequence[TimedJob], name: str, names: tuple[str, ...]) -> LawFit:
    replicas, work, measured = np.array([astuple(point) for point in points], float).T
    unit, quickest = float(np.median(measured * replicas / work)), float(measured.min())
    first = {"cost_s": unit, "serial": 0.05, "crosstalk": 1e-3, "startup_s": 0.1 * quickest}
    scale = {"cost_s": unit, "serial": 1.0, "crosstalk": 0.1, "startup_s": quickest}
    least = dict.fromkeys(names, 0.0) | {"cost_s": _SMALL * unit}

    def law_of(values: Floats) -> Law:
        return Law(**dict(zip(names, values.tolist(), strict=True)))

    def residuals(values: Floats) -> Floats:
        return np.asarray(np.log(time_s(law_of(values), work, replicas) / measured))

    result = least_squares(
        residuals,
        [first[one] for one in names],
        bounds=([least[one] for one in names], [UPPER[one] for one in names]),
        x_scale=[scale[one] for one in names],
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    )
    n, k = len(points), len(names)
    squares, law = float(2 * result.cost), law_of(result.x)
    spread = math.sqrt(squares / (n - k))
    none = _no_interval(len({(point.replicas, point.work) for point in points}), k, spread)
    intervals = dict.fromkeys(names) if none else _intervals(result.jac, law, names, spread, n - k)
    held = () if "startup_s" in names else ("startup_s is held at 0: all jobs had the same size",)
    aicc = _aicc(squares, n, k)
    return LawFit(name, law, n, spread, aicc, intervals, notes=(*none, *held))


def _no_interval(configurations: int, parameters: int, spread: float) -> tuple[str, ...]:
    if configurations <= parameters:
        determine = f"{configurations} configurations determine {parameters} parameters"
        return (f"no interval: {determine}, and no points are left to estimate the error",)
    return ("no interval: all points lie on the law",) if spread < _NEAR else ()


def _aicc(squares: float, n: int, k: int) -> float:
    k += 1
    return (
        n * math.log(max(squares, _SMALL) / n)
        + 2 * k
        + (2 * k * (k + 1) / (n - k - 1) if n > k + 1 else math.inf)
    )


def _intervals(
    jacobian: Floats, law: Law, names: tuple[str, ...], spread: float, df: int
) -> dict[str, tuple[float, float] | None]:
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * spread**2
    half = t_quantile(0.975, df) * np.sqrt(np.diag(covariance))
    values = {name: getattr(law, name) for name in names}
    return {
        name: (max(0.0, values[name] - away), min(UPPER[name], values[name] + away))
        for name, away in zip(names, half.tolist(), strict=True)
    }


def time_s(law: Law, work: ArrayLike, replicas: ArrayLike) -> Floats:
    """Return the seconds that jobs take, with sizes and replicas broadcast."""
    n = np.asarray(replicas, dtype=float)
    share = (1 + law.serial * (n - 1) + law.crosstalk * n * (n - 1)) / n
    result: Floats = law.startup_s + law.cost_s * np.asarray(work, dtype=float) * share
    return result


def most_useful(law: Law, most: int) -> int:
    """Return the replicas beyond which a job slows down: √((1 - serial)/crosstalk)."""
    if law.crosstalk <= 0:
        return most if law.serial < 1 else 1
    best = math.sqrt(max(0.0, 1 - law.serial) / law.crosstalk)
    if best >= most:
        return most
    near = [max(1, math.floor(best)), min(most, math.floor(best) + 1)]
    return min(near, key=lambda n: float(time_s(law, 1.0, n)))


def choose(law: Law, work: float, target_s: float, most: int) -> ReplicaChoice:
    """Return the fewest replicas, up to `most`, that bring a job closest to the target.

    From few replicas to one more the time falls by more than the band is wide (from 1 to 2 by
    half): a job that is done by few may have no number that fits.
    """
    numbers = np.arange(1, most_useful(law, most) + 1)
    times_s = time_s(law, work, numbers)
    at = int(np.argmin(np.abs(np.log(times_s / target_s))))
    predicted_s = float(times_s[at])
    within = abs(predicted_s / target_s - 1) <= TOLERANCE
    return ReplicaChoice(work, int(numbers[at]), predicted_s, within)
