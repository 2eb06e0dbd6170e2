"""Factors as models see them: numbers standardised, names one column a level; and in what way a point lies beyond the coded ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

from analysis.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .terms import Floats, Points

WIDE = 4.0  # largest over smallest, from which a number above 0 is seen by its logarithm
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Number:
    """How one number is coded: its logarithm or itself, less `centre`, over `scale`; and the range in which it was seen."""

    log: bool
    centre: float
    scale: float
    low: float
    high: float
    missing: bool


@dataclass(frozen=True, slots=True)
class Coding:
    """Learnt from training points alone. A number that is missing stands at the centre, and a column of its own says that it is."""

    numbers: Mapping[str, Number]
    names: Mapping[str, tuple[str, ...]]

    def coded(self, points: Points) -> Floats:
        """Code points, shape (points, columns); a level that was never seen has 0 in every column of its factor."""
        made: list[Floats] = []
        for name, one in self.numbers.items():
            value = points.numbers[name]
            away = np.isnan(value)
            if one.log:  # what is not above 0 has no logarithm: it is taken for the smallest that was seen, and `beyond` says so
                value = np.log(np.where(value > 0, value, one.low))
            made.append(np.where(away, 0.0, (value - one.centre) / one.scale))
            if one.missing:
                made.append(away.astype(float))
        for name, levels in self.names.items():
            made += [(points.names[name] == level).astype(float) for level in levels]
        return np.column_stack(made) if made else np.zeros((points.count, 0))

    def columns(self) -> list[str]:
        """Name the columns of `coded`."""
        made = []
        for name, one in self.numbers.items():
            made += [f"log {name}" if one.log else name, *([f"{name} missing"] if one.missing else [])]
        return made + [f"{name}={level}" for name, levels in self.names.items() for level in levels]


def learn(points: Points) -> Coding:
    """Learn how training points are coded."""
    return Coding(
        {name: _number(column) for name, column in points.numbers.items()},
        {name: tuple(str(one) for one in np.unique(column)) for name, column in points.names.items()},
    )


def _number(column: Floats) -> Number:
    known = column[~np.isnan(column)]
    missing = len(known) < len(column)
    if not len(known):
        return Number(log=False, centre=0.0, scale=1.0, low=np.nan, high=np.nan, missing=missing)
    low, high = float(known.min()), float(known.max())
    log = low > 0 and high >= WIDE * low
    seen = np.log(known) if log else known
    spread = float(seen.std())
    return Number(log, float(seen.mean()), spread if spread > _ROUNDING * abs(float(seen.mean())) else 1.0, low, high, missing)


def beyond(training: Points, points: Points) -> list[tuple[str, ...]]:
    """Say of each point how it lies outside what was measured; nothing where it is interpolated.

    Outside a number's range, a name that was never met, a factor missing that never was; or within all of these, but by its numbers further
    from every training point than the loneliest of those is from its next.
    """
    coding = learn(training)
    said: list[list[str]] = [[] for _ in range(points.count)]
    for name, one in coding.numbers.items():
        for at, value in enumerate(points.numbers[name].tolist()):
            if np.isnan(value) and not one.missing:
                said[at].append(f"{name} is not said")
            elif not np.isnan(value) and not one.low * (1 - _ROUNDING) <= value <= one.high * (1 + _ROUNDING):
                seen = "never given" if np.isnan(one.low) else f"measured from {one.low:g} to {one.high:g}"
                said[at].append(f"{name}={value:g} was {seen}")
    for name, levels in coding.names.items():
        for at, level in enumerate(points.names[name].tolist()):
            if level not in levels:
                met = ", ".join(one_line(one or "none", 30) for one in levels[:8]) + (" …" if len(levels) > 8 else "")
                said[at].append(f"{name}={one_line(level, 40)} was never measured ({met} were)" if level else f"{name} is not said")
    numbers = Coding(coding.numbers, {})  # of names each was met, and which go together nobody can be near or far from
    lonely = _lonely(numbers.coded(training), numbers.coded(points))
    return [
        tuple(one) or (("these numbers together are far from all that were measured",) if far else ())
        for one, far in zip(said, lonely, strict=True)
    ]


def _lonely(training: Floats, points: Floats) -> list[bool]:
    seen = np.unique(training, axis=0)
    if len(seen) < 3:
        return [False] * len(points)
    tree = cKDTree(seen)
    apart = tree.query(seen, k=2)[0][:, 1].max()
    return [bool(one) for one in tree.query(points)[0] > apart * (1 + _ROUNDING)]
