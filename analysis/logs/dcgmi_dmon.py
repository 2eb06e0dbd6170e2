"""Logs of `dcgmi dmon`: a header of field names, perhaps a line of units, then a row per entity and tick, without times.

The header comes again every few rows. Entities are GPUs, MIG instances (`GPU-I 3`, `GPU-CI 5`), switches; their order is theirs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from analysis.plain import one_line

from ._lines import CUT, Ignored, lines_of, none_of_it, number_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

WHAT = "dcgmi dmon"
HEADER = re.compile(r"\s*#\s*Entity\b")
UNITS = re.compile(r"\s*I[Dd](\s|$)")
ROW = re.compile(r"\s*([A-Za-z][A-Za-z-]*)\s+(\d+(?:/\d+)*)(?:\s+(.*))?")
STOPPED = re.compile(r"dmon was stopped ")
ABSENT = {"N/A", "-"}


@dataclass(frozen=True, slots=True)
class DcgmiLog:
    """One log. `entities` gives by entity (`GPU 0`) and field (`SMACT`) the samples in their order; NaN where dcgmi says N/A.

    `units` holds what the header says of them and nothing more: shares (GRACT, SMACT, …) have none, utilisations are percent.
    """

    origin: str
    fields: tuple[str, ...]
    units: Mapping[str, str]
    entities: Mapping[str, Mapping[str, NDArray[np.float64]]]
    ignored: tuple[str, ...]

    def samples(self, entity: str) -> int:
        return max((len(column) for column in self.entities[entity].values()), default=0)


def read(path: Path) -> DcgmiLog:
    """Read a log. A field that a later header drops or adds is NaN where it was not recorded.

    Raises: Unreadable, where there is no row in it.
    """
    ignored = Ignored()
    fields: tuple[str, ...] = ()
    header = ""
    units: dict[str, str] = {}
    rows: dict[str, list[dict[str, float]]] = {}
    for line in lines_of(path):
        if HEADER.match(line.text):
            if line.whole:
                header = line.text
                fields = tuple(HEADER.sub("", header, count=1).split())
                units |= dict.fromkeys((field for field in fields if field not in units), "")
            else:
                ignored(line, CUT)
        elif UNITS.match(line.text) and fields:
            units |= _units(header, line.text)
        elif not STOPPED.match(line.text):
            found = ROW.fullmatch(line.text)
            values = _values(found[3] or "", fields) if found else "no row"
            if found is None or isinstance(values, str):
                ignored(line, str(values) if line.whole else CUT)
            elif not line.whole:
                ignored(line, CUT)
            else:
                rows.setdefault(f"{found[1]} {found[2]}", []).append(values)
    if not rows:
        raise none_of_it(path, WHAT, ignored)
    return DcgmiLog(
        origin=str(path),
        fields=tuple(units),
        units={name: unit for name, unit in units.items() if unit},
        entities={entity: _columns(result, tuple(units)) for entity, result in rows.items()},
        ignored=tuple(ignored.said),
    )


def _values(text: str, fields: Sequence[str]) -> dict[str, float] | str:
    cells = text.split()
    if not fields:
        return "a row before any header"
    if len(cells) != len(fields):
        return f"{len(cells)} values where the header names {len(fields)}"
    values = {}
    for name, cell in zip(fields, cells, strict=True):
        value = np.nan if cell in ABSENT else number_in(cell)
        if value is None:
            return f"{name} is {one_line(cell, 20)}, no number"
        values[name] = value
    return values


def _columns(rows: Sequence[Mapping[str, float]], fields: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in fields}


def _units(header: str, line: str) -> dict[str, str]:
    names = [(one[0], one.start(), one.end()) for one in re.finditer(r"\S+", HEADER.sub(lambda found: " " * len(found[0]), header))]
    if not names:
        return {}
    # A column's name and its unit overlap or nearly do: the border between two columns lies between their names.
    borders = [(before[2] + after[1]) / 2 for before, after in pairwise(names)]
    units = {}
    for one in list(re.finditer(r"\S+", line))[1:]:
        middle = (one.start() + one.end()) / 2
        units[names[sum(border <= middle for border in borders)][0]] = one[0]
    return units
