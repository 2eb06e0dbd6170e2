"""Fitting Amdahl's and Gunther's laws to measured times, by least squares on their logarithms: errors of times are by a factor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from analysis.terms import Refused
from control.t_test import t_quantile

from .laws import time_s
from .terms import Fit, Law

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .terms import Point

    Floats = NDArray[np.float64]

LAWS = {"amdahl": ("serial",), "usl": ("serial", "crosstalk")}
SHAPE = {"serial", "crosstalk"}
UPPER = {"cost_s": np.inf, "serial": 1.0, "crosstalk": 1.0, "startup_s": np.inf}
_SMALL = 1e-12
_NEAR = 1e-6


def fits(points: Sequence[Point]) -> list[Fit]:
    """Both laws, the better one first by AICc. Raises: Refused, where the points cannot tell of scaling."""
    numbers = {one.replicas for one in points}
    if len(numbers) < 2:
        raise Refused(f"All {len(points)} jobs had {next(iter(numbers), 'no')} replicas: how time falls with them cannot be told.")
    found = []
    for name, shape in LAWS.items():
        names = ("cost_s", *shape, *(("startup_s",) if len({one.work for one in points}) > 1 else ()))
        if _enough(points, names):
            found.append(_fitted(points, name, names))
    if not found:
        raise Refused(
            f"{len(points)} jobs are too few for a law of three parameters; 5 are needed, of two sizes and three numbers of replicas."
        )
    return sorted(found, key=lambda one: one.aicc)


def held_out(points: Sequence[Point], fit: Fit) -> float | None:
    """The error where it counts: of jobs whose number of replicas and size were not in the fit; mean of |predicted/measured - 1|.

    Each such configuration is left out in turn, all its jobs together; those without which the others could not tell are passed over.
    """
    names = tuple(fit.intervals)
    errors: list[float] = []
    for left_out in sorted({(one.replicas, one.work) for one in points}):
        rest = [one for one in points if (one.replicas, one.work) != left_out]
        if _enough(rest, names):
            law = _fitted(rest, fit.name, names).law
            mine = [one for one in points if (one.replicas, one.work) == left_out]
            errors += [abs(float(time_s(law, one.work, one.replicas)) / one.time_s - 1) for one in mine]
    return float(np.mean(errors)) if errors else None


def _enough(points: Sequence[Point], names: tuple[str, ...]) -> bool:
    """Whether points can tell of these parameters: more points than parameters and their spread, replicas and sizes that differ."""
    numbers, sizes = len({one.replicas for one in points}), len({one.work for one in points})
    return len(points) > len(names) + 1 and numbers > len(SHAPE & set(names)) and (sizes > 1 or "startup_s" not in names)


def _fitted(points: Sequence[Point], name: str, names: tuple[str, ...]) -> Fit:
    replicas, work, measured = (np.array([float(getattr(one, field)) for one in points]) for field in ("replicas", "work", "time_s"))

    def residuals(values: Floats) -> Floats:
        away: Floats = np.log(time_s(Law(**dict(zip(names, values.tolist(), strict=True))), work, replicas) / measured)
        return away

    unit = float(np.median(measured * replicas / work))
    first = {"cost_s": unit, "serial": 0.05, "crosstalk": 1e-3, "startup_s": 0.1 * float(measured.min())}
    scale = np.array([unit, 1.0, 0.1, float(measured.min())])[[("cost_s", "serial", "crosstalk", "startup_s").index(one) for one in names]]
    bounds = ([_SMALL * unit if one == "cost_s" else 0.0 for one in names], [UPPER[one] for one in names])
    found = least_squares(residuals, [first[one] for one in names], bounds=bounds, x_scale=scale, xtol=1e-12, ftol=1e-12, gtol=1e-12)
    n, k = len(points), len(names)
    squares = float(2 * found.cost)
    spread = math.sqrt(squares / (n - k))
    law = Law(**dict(zip(names, (float(one) for one in found.x), strict=True)))
    return Fit(
        name,
        law,
        n,
        spread,
        _aicc(squares, n, k),
        _intervals(found.jac, law, names, spread, n - k),
        None,
        _notes(law, dict(zip(names, scale.tolist(), strict=True))),
    )


def _aicc(squares: float, n: int, k: int) -> float:
    """Akaike's criterion, corrected for few points (Hurvich and Tsai, 1989); the spread counts as a parameter."""
    k += 1
    return n * math.log(max(squares, _SMALL) / n) + 2 * k + (2 * k * (k + 1) / (n - k - 1) if n > k + 1 else math.inf)


def _intervals(jacobian: Floats, law: Law, names: tuple[str, ...], spread: float, df: int) -> dict[str, tuple[float, float]]:
    """By the curvature at the best fit, cut at the bounds; for a parameter on its bound only a one-sided guess."""
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * spread**2
    half = t_quantile(0.975, df) * np.sqrt(np.diag(covariance))
    values = {one: getattr(law, one) for one in names}
    return {
        one: (max(0.0, values[one] - away), min(UPPER[one], values[one] + away)) for one, away in zip(names, half.tolist(), strict=True)
    }


def _notes(law: Law, scale: Mapping[str, float]) -> tuple[str, ...]:
    """What is on a bound, to a millionth of its scale (the search stays inside and only comes near), and what was held."""
    said = [
        f"{one} is on its bound, {bound:g}"
        for one, unit in scale.items()
        for bound in (0.0, UPPER[one])
        if abs(getattr(law, one) - bound) <= _NEAR * unit
    ]
    return (*said, *(() if "startup_s" in scale else ("startup_s is held at 0: all jobs had one size",)))
