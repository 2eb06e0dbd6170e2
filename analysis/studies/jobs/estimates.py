"""Values with intervals: means over blocks or runs, each counted once; and their formats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.answer import Table, text_table
from analysis.contrasts import FEWEST, SAME
from analysis.stats.effect import ROUNDING, interval, moments
from analysis.wording import digits, probability, unit_of

if TYPE_CHECKING:
    from .records import Unit

    Document = dict[str, Any]

FEW = f"fewer than {FEWEST} blocks: no interval"
FEW_RUNS = f"fewer than {FEWEST} runs: no interval"
NONE = "–"


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % interval and standard error; if both are None, `why` has the reason."""

    value: float
    low: float | None = None
    high: float | None = None
    se: float | None = None
    why: str = ""


def as_number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def average(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def average_of_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return average(known) if known else None


def over_blocks(values: Iterable[tuple[Unit, float | None]]) -> Figure | None:
    """Return the mean over blocks of the means inside each; skip blocks without a value."""
    blocks: dict[Unit, list[float]] = {}
    for unit, value in values:
        if value is not None:
            blocks.setdefault(unit, []).append(value)
    return over_runs([average(inside) for inside in blocks.values()], FEW)


def over_runs(values: Sequence[float], few: str = FEW_RUNS) -> Figure | None:
    """Return the mean of one value per run; no interval below three runs or for equal values."""
    if not values:
        return None
    value, spread = moments(values)
    if len(values) < FEWEST or spread <= ROUNDING * abs(value):
        return Figure(value, why=few if len(values) < FEWEST else SAME)
    return Figure(*interval(values), spread / math.sqrt(len(values)))


def number(value: float | None, most: int = 3) -> str:
    return NONE if value is None else digits(value, most)


def figure(value: Any, scale: float = 1.0, most: int = 3) -> str:
    if value is None:
        return NONE
    if value.low is None or value.high is None:
        return number(value.value * scale, most)
    return (
        f"{number(value.value * scale, most)} [{number(value.low * scale, most)}, "
        f"{number(value.high * scale, most)}]"
    )


def middle(value: Any, scale: float = 1.0) -> str:
    return number(value.value * scale)


def value_of(figure: Any, scale: float = 1.0) -> float | None:
    return None if figure is None else figure.value * scale


def share(value: float | Figure | None, decimals: int = 0) -> str:
    value = value.value if isinstance(value, Figure) else value
    return NONE if value is None else f"{value:.{decimals}%}"


def p_value(p: float | None) -> str:
    return NONE if p is None else probability(p)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Make a table of texts, numbers (three digits), values with intervals, and None if missing."""
    return text_table(heads, [[_cell(value) for value in row] for row in rows])


def _cell(value: object) -> str:
    if isinstance(value, Figure):
        return figure(value)
    return number(value) if value is None or isinstance(value, float) else str(value)


def unit(times_s: Iterable[float | None]) -> tuple[float, str]:
    """Return the factor and unit for times in seconds in which the longest reads well."""
    known = [time for time in times_s if time is not None and time > 0]
    return unit_of(known) if known else (1.0, "s")
