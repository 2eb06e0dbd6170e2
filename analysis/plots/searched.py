"""What a search saved of itself, read for its picture: every cell against stock, and its candidates."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.terms import Run


@dataclass(frozen=True, slots=True)
class Tried:
    """One cell: its point, stage, and log of its cost over that of stock; None where it failed."""

    name: str
    levels: Mapping[str, str | None]
    confirms: bool
    log: float | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A combination that was run again: what its luckiest cell and the model promised and what the confirming cells say, parts of cost."""

    name: str
    levels: Mapping[str, str | None]
    seen: float | None
    promised: float | None
    confirmed: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class Story:
    """One search, in the order it ran."""

    run: Run
    cells: tuple[Tried, ...]
    candidates: tuple[Candidate, ...]


def story_of(run: Run) -> Story | None:
    """Read a search's conclusion; None where it is not as this version of DeepTweak writes it."""
    found = run.design.conclusion
    try:
        asked: list[dict[str, Any]] = list(found["cells"])  # type: ignore[call-overload]  # tried
        told: list[dict[str, Any]] = list(found["candidates"])  # type: ignore[call-overload]  # tried
        logs = [None if one["cost"] is None else math.log(float(one["cost"])) for one in asked]
        stock = [log for one, log in zip(asked, logs, strict=True) if log is not None and not any(one["levels"].values())]
        base = statistics.fmean(stock) if stock else 0.0
        cells = tuple(
            Tried(str(one["name"]), dict(one["levels"]), one["stage"] == "confirmation", None if log is None else log - base)
            for one, log in zip(asked, logs, strict=True)
        )
        candidates = tuple(_candidate(one, cells) for one in told)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return Story(run, cells, candidates) if stock and len(cells) > 1 else None


def _candidate(told: Mapping[str, Any], cells: Sequence[Tried]) -> Candidate:
    seen = [cell.log for cell in cells if cell.log is not None and not cell.confirms and cell.levels == told["levels"]]
    fresh = told["confirmed"]
    return Candidate(
        name=str(told["name"]),
        levels=dict(told["levels"]),
        seen=math.expm1(min(seen)) if seen else None,
        promised=None if told["predicted"] is None else float(told["predicted"]),
        confirmed=None if fresh is None else (float(fresh["change"]), float(fresh["low"]), float(fresh["high"])),
    )
