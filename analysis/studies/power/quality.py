"""Defects of traces and parameters that no GPU has: zero rows, curves that fall with the clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.answer import Answer, Line, Part, marked, of_parts
from analysis.terms import Refused
from analysis.wording import counted
from control.power import catalog

from . import parameters, traces

if TYPE_CHECKING:
    import pandas as pd

    from control.power.terms import Model

    from .traces import PartitionRow


FALL = 0.03  # of the previous value: less is measurement noise
CONFIGURATION = ["network", "shares", "batches", "mem_mhz"]


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect; `kind` is zeros, failed or falls, and `what` a sentence."""

    kind: str
    where: str
    what: str


def findings(rows: Sequence[PartitionRow], where: str = "traces") -> list[Defect]:
    import pandas as pd

    failed = [row for row in rows if row.outcome != "measured"]
    kinds = {
        "zeros": "stored as zeros; they failed, and were omitted",
        "failed": "failed; they were omitted",
    }
    result = []
    for kind, text in kinds.items():
        lines = [
            str(row.line) for row in failed if (row.reason == traces.ZEROS) == (kind == "zeros")
        ]
        if lines:
            several, more = "s" * (len(lines) > 1), " …" * (len(lines) > 5)
            place = f"line{several} {', '.join(lines[:5])}{more}"
            what = f"{len(lines)} of {len(rows)} rows {text}: {place}."
            result.append(Defect(kind, where, what))
    columns = ["clock", "throughput_images_per_s", "power"]
    points = pd.DataFrame(
        [
            [getattr(row, name) for name in (*CONFIGURATION, *columns)]
            for row in rows
            if row.outcome == "measured"
        ],
        columns=[*CONFIGURATION, *columns],
    )
    falls = (_fall(points.dropna(subset=["clock", name]), name) for name in columns[1:])
    return [*result, *(Defect("falls", where, what) for what in falls if what)]


def _fall(points: pd.DataFrame, name: str) -> str:
    known = points[points[name].astype(float) > 0]
    curves = (
        known.groupby([*CONFIGURATION, "clock"], dropna=False)[name]
        .mean()
        .reset_index(level="clock")
    )
    steps = curves.groupby(level=CONFIGURATION, dropna=False)
    change = steps[name].pct_change()
    falling = (change < -FALL).to_numpy()
    if not falling.any():
        return ""
    worst = int(np.nanargmin(change))
    swept = int((steps.size() > 1).sum())
    figure = name.partition("_")[0]
    steps_of = f"in {falling.sum()} steps of {counted(swept, 'configuration')}"
    what = f"{figure} falls by more than {FALL:.0%} as the clock rises, {steps_of}"
    low, high = curves["clock"].iloc[worst - 1], curves["clock"].iloc[worst]
    return f"{what}, at worst by {-change.iloc[worst]:.1%} from {low:g} to {high:g}."


Key = tuple[str, str, float]  # network, GPU, memory clock in MHz
CLOCKS = 30
ROUNDING = 1e-9


def findings_of_models(models: Mapping[Key, Model]) -> list[Defect]:
    return [finding for key, model in models.items() for finding in _curves(model, model_name(key))]


def model_name(key: Key) -> str:
    return f"{key[0]} on {key[1]} at {key[2]:g} MHz"


def _curves(model: Model, where: str) -> Iterator[Defect]:
    partitions = catalog.grid()
    anchor = model.anchor(partitions).column()
    clocks = np.linspace(*model.sm_range_mhz, CLOCKS)
    throughput = model.throughput_images_per_s(anchor, clocks)
    power = model.power_w(anchor, clocks)
    for name, values in (("throughput", throughput), ("power", power)):
        falling = (np.diff(values, axis=1) < -ROUNDING * np.abs(values[:, 1:])).any(axis=1).sum()
        if falling:
            yield Defect(
                "falls",
                where,
                f"{name} falls somewhere as the clock rises, for {falling} of the "
                f"{len(partitions)} partitions of the grid.",
            )


def answer(paths: Iterable[Path]) -> Answer:
    of_file: dict[Path, list[PartitionRow]] = {}
    models: dict[Key, Model] = {}
    for path in dict.fromkeys(paths):
        if path.suffix.lower() == ".csv":
            of_file[path] = traces.read(path)
        else:
            models |= {key: read() for key, read in parameters.available(path).items()}
    if not models and not any(of_file.values()):
        raise Refused(f"{', '.join(map(str, of_file))}: no rows, so there is nothing to check.")
    result = [finding for path, rows in of_file.items() for finding in findings(rows, str(path))]
    result = list(dict.fromkeys([*result, *findings_of_models(models)]))
    rows_read = sum(map(len, of_file.values()))
    read = {"row": rows_read, "model": len(models)}
    counts = " and ".join(counted(number, noun) for noun, number in read.items() if number)
    parts: list[Part] = [f"{counts}: {counted(len(result), 'finding')}."]
    for where in dict.fromkeys(finding.where for finding in result):
        parts += ["", Line(where, tone="strong")]
        parts += marked(("·", finding.what) for finding in result if finding.where == where)
    return of_parts({"rows": rows_read, "models": len(models), "findings": result}, parts)
