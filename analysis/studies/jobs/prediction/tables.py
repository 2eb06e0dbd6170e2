"""Rows → a table: which factors vary, which are numbers and which are names, which say the same as another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.plain import one_line
from analysis.terms import Refused

from .terms import Points, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .terms import Floats, Row, Texts

MOST_ROWS = 2000
MOST_LEVELS = 64  # a name with more is a label of rows rather than a factor
SEED = 1


def table(rows: Sequence[Row], response: str, notes: Sequence[str] = ()) -> Table:
    """Make the table that models learn from.

    More than 2,000 rows are thinned, evenly by configuration and run. Raises: Refused, where nothing varies.
    """
    kept = thinned(rows)
    said = list(notes)
    if len(kept) < len(rows):
        said.append(f"{len(kept)} of {len(rows)} rows are used, drawn evenly by configuration and run (seed {SEED}).")
    names = list(dict.fromkeys(name for row in kept for name in row.factors))
    columns = {name: tuple(row.factors.get(name) for row in kept) for name in names}
    varying, copies = _told_apart({name: column for name, column in columns.items() if len(set(column)) > 1}, said)
    if not varying:
        raise Refused(f"{response}: all {len(rows)} rows have the same factors; what a model is to tell apart must have been varied.")
    values = np.array([row.value for row in kept])
    return Table(
        response,
        _typed(varying, len(kept)),
        values,
        np.array([row.configuration for row in kept]),
        np.array([row.run for row in kept]),
        log=bool((values > 0).all()),
        notes=tuple(said),
        copies=copies,
    )


def thinned(rows: Sequence[Row], most: int = MOST_ROWS) -> list[Row]:
    """Draw so many rows at most: of every configuration and run equally many, as far as it has them."""
    if len(rows) <= most:
        return list(rows)
    groups: dict[tuple[str, str], list[int]] = {}
    for at, row in enumerate(rows):
        groups.setdefault((row.configuration, row.run), []).append(at)
    rng = np.random.default_rng(SEED)
    shuffled = [list(rng.permutation(group)) for group in groups.values()]
    turns = [(turn, number, at) for number, group in enumerate(shuffled) for turn, at in enumerate(group)]
    return [rows[at] for at in sorted(int(at) for _, _, at in sorted(turns)[:most])]


def points(factors: Sequence[Mapping[str, float | str]], like: Table) -> Points:
    """Write points that were asked for as a table's columns. Raises: Refused, for a number that is none."""
    numbers: dict[str, Floats] = {}
    for name in like.points.numbers:
        for one in factors:
            if isinstance(one.get(name, 0.0), str):
                raise Refused(f"{name}: {one_line(one[name], 60)!r} is no number; it was one wherever it was measured.")
        numbers[name] = np.array([float(one.get(name, np.nan)) for one in factors])
    names = {name: np.array([_text(one.get(name)) for one in factors]) for name in like.points.names}
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
