"""Measurements → a table that models learn from: which factors vary, how they are coded, and how groups are dealt into folds.

Numbers are standardised, names have one column a level; a factor that says the same as another is left away. What belongs together is never
on both sides of a fold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from analysis.plain import one_line
from analysis.terms import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


MOST_ROWS = 2000
MOST_LEVELS = 64  # a name with more is a label of rows rather than a factor


def table(rows: Sequence[Measurement], response: str, notes: Sequence[str] = ()) -> FactorTable:
    """Make the table that models learn from.

    More than 2,000 rows are thinned, evenly by configuration and run. Raises: Refused, where nothing varies.
    """
    kept = thinned(rows)
    remarks = list(notes)
    if len(kept) < len(rows):
        remarks.append(f"{len(kept)} of {len(rows)} rows are used, drawn evenly by configuration and run (seed {SEED}).")
    names = list(dict.fromkeys(name for row in kept for name in row.factors))
    columns = {name: tuple(row.factors.get(name) for row in kept) for name in names}
    varying, copies = _told_apart({name: column for name, column in columns.items() if len(set(column)) > 1}, remarks)
    if not varying:
        raise Refused(f"{response}: all {len(rows)} rows have the same factors; what a model is to tell apart must have been varied.")
    values = np.array([row.value for row in kept])
    return FactorTable(
        response,
        _typed(varying, len(kept)),
        values,
        np.array([row.configuration for row in kept]),
        np.array([row.run for row in kept]),
        log=bool((values > 0).all()),
        notes=tuple(remarks),
        copies=copies,
    )


def thinned(rows: Sequence[Measurement], most: int = MOST_ROWS) -> list[Measurement]:
    if len(rows) <= most:
        return list(rows)
    groups: dict[tuple[str, str], list[int]] = {}
    for at, row in enumerate(rows):
        groups.setdefault((row.configuration, row.run), []).append(at)
    rng = np.random.default_rng(SEED)
    shuffled = [list(rng.permutation(group)) for group in groups.values()]
    turns = [(turn, number, at) for number, group in enumerate(shuffled) for turn, at in enumerate(group)]
    return [rows[at] for at in sorted(int(at) for _, _, at in sorted(turns)[:most])]


def points(factors: Sequence[Mapping[str, float | str]], like: FactorTable) -> Points:
    numbers: dict[str, Floats] = {}
    for name in like.points.numbers:
        for point in factors:
            if isinstance(point.get(name, 0.0), str):
                raise Refused(f"{name}: {one_line(point[name], 60)!r} is no number; it was one wherever it was measured.")
        numbers[name] = np.array([float(factor.get(name, np.nan)) for factor in factors])
    names = {name: np.array([_text(factor.get(name)) for factor in factors]) for name in like.points.names}
    return Points(len(factors), numbers, names)


def _told_apart(
    columns: Mapping[str, tuple[float | str | None, ...]], notes: list[str]
) -> tuple[dict[str, tuple[float | str | None, ...]], dict[str, tuple[str, ...]]]:
    """Keep one of the factors that part the rows alike: which of them is at work, these rows cannot tell."""
    kept: dict[str, tuple[float | str | None, ...]] = {}
    parted: dict[tuple[int, ...], str] = {}
    copies: dict[str, list[str]] = {}
    for name, column in columns.items():
        if _is_name(column) and len(set(column)) > MOST_LEVELS:
            notes.append(f"{name} has {len(set(column))} names and is no factor; with {MOST_LEVELS} or fewer it would be.")
            continue
        numbers: dict[float | str | None, int] = {}
        parts = tuple(numbers.setdefault(value, len(numbers)) for value in column)
        first = parted.setdefault(parts, name)
        if first == name:
            kept[name] = column
        else:
            copies.setdefault(first, []).append(name)
    return kept, {name: tuple(others) for name, others in copies.items()}


def _typed(columns: Mapping[str, tuple[float | str | None, ...]], count: int) -> Points:
    numbers = {
        name: np.array([np.nan if value is None else float(value) for value in column])
        for name, column in columns.items()
        if not _is_name(column)
    }
    names: dict[str, Texts] = {
        name: np.array([_text(value) for value in column]) for name, column in columns.items() if name not in numbers
    }
    return Points(count, numbers, names)


def _is_name(column: Sequence[float | str | None]) -> bool:
    return any(isinstance(value, str) for value in column)


def _text(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:g}"


FOLDS, INNER = 10, 5
LEAST = 5  # groups: with fewer, an error of groups left out is an anecdote
SEED = 1


def folds(groups: Texts, most: int = FOLDS, seed: int = SEED) -> Whole:
    """Deal groups into folds, in an order drawn by the seed; answers the fold of each row, shape (rows,).

    Raises: TooFew.
    """
    names, group = np.unique(groups, return_inverse=True)
    if len(names) < LEAST:
        raise TooFew(f"{len(names)} group{'s' if len(names) != 1 else ''}; leaving groups out takes {LEAST} at least")
    dealt = np.empty(len(names), dtype=np.int64)
    dealt[np.random.default_rng(seed).permutation(len(names))] = np.arange(len(names)) % min(most, len(names))
    return np.asarray(dealt[group])


def each(fold: Whole) -> list[tuple[Whole, Whole]]:
    return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in np.unique(fold)]


def weights(groups: Texts) -> np.ndarray:
    """Let each group count once, however many rows it has: 1/rows of its group, shape (rows,)."""
    _, group, count = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / count[group])


WIDE = 4.0  # largest over smallest, from which a number above 0 is seen by its logarithm
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class CodedNumber:
    log: bool
    centre: float
    scale: float
    low: float
    high: float
    missing: bool


@dataclass(frozen=True, slots=True)
class Coding:
    """Learnt from training points alone. A number that is missing stands at the centre, and a column of its own says that it is."""

    numbers: Mapping[str, CodedNumber]
    names: Mapping[str, tuple[str, ...]]

    def coded(self, points: Points) -> Floats:
        """Code points, shape (points, columns); a level that was never seen has 0 in every column of its factor."""
        coded: list[Floats] = []
        for name, number in self.numbers.items():
            value = points.numbers[name]
            away = np.isnan(value)
            if number.log:  # what is not above 0 has no logarithm: it is taken for the smallest that was seen, and `beyond` says so
                value = np.log(np.where(value > 0, value, number.low))
            coded.append(np.where(away, 0.0, (value - number.centre) / number.scale))
            if number.missing:
                coded.append(away.astype(float))
        for name, levels in self.names.items():
            coded += [(points.names[name] == level).astype(float) for level in levels]
        return np.column_stack(coded) if coded else np.zeros((points.count, 0))

    def columns(self) -> list[str]:
        titles = []
        for name, number in self.numbers.items():
            titles += [f"log {name}" if number.log else name, *([f"{name} missing"] if number.missing else [])]
        return titles + [f"{name}={level}" for name, levels in self.names.items() for level in levels]


def learn(points: Points) -> Coding:
    return Coding(
        {name: _number(column) for name, column in points.numbers.items()},
        {name: tuple(str(level) for level in np.unique(column)) for name, column in points.names.items()},
    )


def _number(column: Floats) -> CodedNumber:
    known = column[~np.isnan(column)]
    missing = len(known) < len(column)
    if not len(known):
        return CodedNumber(log=False, centre=0.0, scale=1.0, low=np.nan, high=np.nan, missing=missing)
    low, high = float(known.min()), float(known.max())
    log = low > 0 and high >= WIDE * low
    seen = np.log(known) if log else known
    spread = float(seen.std())
    return CodedNumber(log, float(seen.mean()), spread if spread > _ROUNDING * abs(float(seen.mean())) else 1.0, low, high, missing)


def beyond(training: Points, points: Points) -> list[tuple[str, ...]]:
    """Say of each point how it lies outside what was measured; nothing where it is interpolated.

    Outside a number's range, a name that was never met, a factor missing that never was; or within all of these, but by its numbers further
    from every training point than the loneliest of those is from its next.
    """
    coding = learn(training)
    reasons: list[list[str]] = [[] for _ in range(points.count)]
    for name, coded in coding.numbers.items():
        for at, value in enumerate(points.numbers[name].tolist()):
            if np.isnan(value) and not coded.missing:
                reasons[at].append(f"{name} is not said")
            elif not np.isnan(value) and not coded.low * (1 - _ROUNDING) <= value <= coded.high * (1 + _ROUNDING):
                seen = "never given" if np.isnan(coded.low) else f"measured from {coded.low:g} to {coded.high:g}"
                reasons[at].append(f"{name}={value:g} was {seen}")
    for name, levels in coding.names.items():
        for at, level in enumerate(points.names[name].tolist()):
            if level not in levels:
                met = ", ".join(one_line(level or "none", 30) for level in levels[:8]) + (" …" if len(levels) > 8 else "")
                reasons[at].append(f"{name}={one_line(level, 40)} was never measured ({met} were)" if level else f"{name} is not said")
    numbers = Coding(coding.numbers, {})  # of names each was met, and which go together nobody can be near or far from
    lonely = _lonely(numbers.coded(training), numbers.coded(points))
    return [
        tuple(outside) or (("these numbers together are far from all that were measured",) if far else ())
        for outside, far in zip(reasons, lonely, strict=True)
    ]


def _lonely(training: Floats, points: Floats) -> list[bool]:
    seen = np.unique(training, axis=0)
    if len(seen) < 3:
        return [False] * len(points)
    tree = cKDTree(seen)
    apart = tree.query(seen, k=2)[0][:, 1].max()
    return [bool(distance) for distance in tree.query(points)[0] > apart * (1 + _ROUNDING)]


Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Texts = NDArray[np.str_]
By = Literal["configuration", "run"]


class TooFew(Refused):
    """There are too few groups to leave any out; the message says how many, and how many it takes."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement: of a cell, or of a job. Factors are numbers or names; one that is missing is not there.

    `configuration` names what was asked for, `run` when it was measured: rows that share it share what happened then.
    """

    configuration: str
    run: str
    factors: Mapping[str, float | str]
    value: float


@dataclass(frozen=True, slots=True)
class Points:
    """Rows as columns. `numbers` have NaN, `names` an empty text where a factor is missing; each of shape (rows,)."""

    count: int
    numbers: Mapping[str, Floats]
    names: Mapping[str, Texts]

    def take(self, at: Whole) -> Points:
        return Points(
            len(at), {name: column[at] for name, column in self.numbers.items()}, {name: column[at] for name, column in self.names.items()}
        )


@dataclass(frozen=True, slots=True)
class FactorTable:
    """What models learn from. `log`: all values are above 0, and errors are by a factor; models then see logarithms.

    `copies`: factor → those that say the same in every row and were left away.
    """

    response: str
    points: Points
    values: Floats
    configurations: Texts
    runs: Texts
    log: bool
    notes: tuple[str, ...] = ()
    copies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def seen(self) -> Floats:
        return np.log(self.values) if self.log else self.values

    def units(self, by: By) -> Texts:
        return self.configurations if by == "configuration" else self.runs

    def take(self, at: Whole) -> FactorTable:
        return FactorTable(
            self.response, self.points.take(at), self.values[at], self.configurations[at], self.runs[at], self.log, self.notes, self.copies
        )
