"""What traces and parameters show that no GPU does: rows stored as zeros, curves that fall with the clock.

A finding is a note: a row was left out, or an answer must be read with it in mind.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.answer import Answer, Line, Part, marked, of_parts
from analysis.terms import Refused
from control.power import catalog

from . import parameters, traces

if TYPE_CHECKING:
    from control.power.terms import Model

    from .traces import PartitionRow


FALL = 0.03  # of the value before: less is noise between two measurements


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong. `kind` is one word of zeros, failed, falls; `what` a sentence."""

    kind: str
    where: str
    what: str


def findings(rows: Sequence[PartitionRow], where: str = "traces") -> list[Finding]:
    """Return what is wrong with traces; `where` names them."""
    measured = [row for row in rows if row.outcome == "measured"]
    falls = [*_falls(measured, where, "throughput", _throughput), *_falls(measured, where, "power", _power)]
    return [*_left_out(rows, where), *falls]


def clock_of(row: PartitionRow) -> float | None:
    """The throttle, 0 to 1, where there is one, as a fit has it; else the SM clock as it was, MHz, or as it was asked for."""
    throttle = row.extra.get("throttle")
    if isinstance(throttle, float):
        return throttle
    return row.sm_mhz if row.sm_mhz is not None else row.target_mhz


def _left_out(rows: Sequence[PartitionRow], where: str) -> Iterator[Finding]:
    for kind, chosen, text in (
        ("zeros", [row for row in rows if row.reason == traces.ZEROS], "stored as zeros; they failed, and were left out"),
        ("failed", [row for row in rows if row.outcome != "measured" and row.reason != traces.ZEROS], "failed; they were left out"),
    ):
        if chosen:
            yield Finding(kind, where, f"{len(chosen)} of {len(rows)} rows {text}: {_lines(chosen)}.")


def _falls(rows: Sequence[PartitionRow], where: str, name: str, value: Callable[[PartitionRow], float | None]) -> list[Finding]:
    """Find configurations whose value falls while the clock rises."""
    curves: dict[object, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        clock, measured = clock_of(row), value(row)
        if clock is not None and measured is not None and measured > 0:
            curves[row.network, row.shares, row.batches, row.mem_mhz].append((clock, measured))
    of_clock = {key: sorted(_means(points).items()) for key, points in curves.items()}
    swept = {key: points for key, points in of_clock.items() if len(points) > 1}
    falling = [
        (low, high, after / before - 1)
        for points in swept.values()
        for (low, before), (high, after) in itertools.pairwise(points)
        if after < before * (1 - FALL)
    ]
    if not falling:
        return []
    low, high, worst = min(falling, key=lambda fall: fall[2])
    what = f"{name} falls by more than {FALL:.0%} with the clock in {len(falling)} steps of {len(swept)} configurations"
    return [Finding("falls", where, f"{what}, at worst by {-worst:.1%} from {low:g} to {high:g}.")]


def _means(points: Sequence[tuple[float, float]]) -> dict[float, float]:
    """Repetitions of one clock are one point."""
    at: dict[float, list[float]] = defaultdict(list)
    for clock, value in points:
        at[clock].append(value)
    return {clock: sum(values) / len(values) for clock, values in at.items()}


def _throughput(row: PartitionRow) -> float | None:
    return row.throughput_images_per_s


def _power(row: PartitionRow) -> float | None:
    """Watts; without a sensor the CPU's activity, CPU seconds per second."""
    activity = row.extra.get("cpu_s_per_s")
    return row.watts if row.watts is not None else activity if isinstance(activity, float) else None


def _lines(rows: Sequence[PartitionRow]) -> str:
    text = ", ".join(str(row.line) for row in rows[:5])
    return f"line{'s' * (len(rows) > 1)} {text}{' …' * (len(rows) > 5)}"


Key = tuple[str, str, float]  # network, GPU, memory clock in MHz
CLOCKS = 30
ROUNDING = 1e-9


def findings_of_models(models: Mapping[Key, Model]) -> list[Finding]:
    """Return what is wrong with models, by network, GPU and memory clock."""
    return [finding for key, model in models.items() for finding in _curves(model, model_name(key))]


def model_name(key: Key) -> str:
    """A model's name in a sentence."""
    return f"{key[0]} on {key[1]} at {key[2]:g} MHz"


def _curves(model: Model, where: str) -> Iterator[Finding]:
    """Ask the model for its own grid at clocks between the ends of its range."""
    partitions = catalog.grid()
    anchor = model.anchor(partitions).column()
    clocks = np.linspace(*model.sm_range_mhz, CLOCKS)
    throughput = model.throughput_images_per_s(anchor, clocks)
    power = model.power_w(anchor, clocks)
    for name, values in (("throughput", throughput), ("power", power)):
        falling = (np.diff(values, axis=1) < -ROUNDING * np.abs(values[:, 1:])).any(axis=1).sum()
        if falling:
            yield Finding(
                "falls",
                where,
                f"{name} falls somewhere while the clock rises, for {falling} of the {len(partitions)} partitions of the grid.",
            )


def answer(paths: Iterable[Path]) -> Answer:
    """Return what is wrong with files of traces (.csv) and with parameters, by what it is of. Raises: Refused."""
    of_file: dict[Path, list[PartitionRow]] = {}
    models: dict[Key, Model] = {}
    for path in dict.fromkeys(paths):
        if path.suffix.lower() == ".csv":
            of_file[path] = traces.read(path)
        else:
            models |= {key: read() for key, read in parameters.available(path).items()}
    if not models and not any(of_file.values()):
        raise Refused(f"{', '.join(map(str, of_file))}: no rows; there is nothing to look at.")
    result = [finding for path, rows in of_file.items() for finding in findings(rows, str(path))]
    result = list(dict.fromkeys([*result, *findings_of_models(models)]))
    rows_read = sum(map(len, of_file.values()))
    counts = " and ".join(_count(number, noun) for number, noun in ((rows_read, "row"), (len(models), "model")) if number)
    parts: list[Part] = [f"{counts}: {_count(len(result), 'finding')}."]
    for where in dict.fromkeys(finding.where for finding in result):
        parts += ["", Line(where, tone="strong")]
        parts += marked(("·", finding.what) for finding in result if finding.where == where)
    return of_parts({"rows": rows_read, "models": len(models), "findings": result}, parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
