"""Write cells as a table with a row per cell, or figures for another tool.

There is one figure per workload and tweak set: the mean over blocks of the study's primary metric.
From three blocks on it has a 95 % interval (Student's t over blocks), if the format can hold one.
Verdicts are not exported: they rest on pairs of blocks, which these formats do not have.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from analysis.answer import Answer, Column, Table
from analysis.cells import cells
from analysis.load import find, load
from analysis.render.csv import render
from analysis.stats.effect import interval
from analysis.subcommands import option, signature
from analysis.terms import Metric, Refused, Run
from control.called import JUDGE

GROUP = "tool"
HELP = "cells as CSV; figures for Bencher, github-action-benchmark, Otava"
EXAMPLE = f"""\
examples:
  {JUDGE} export .benchmarks/*/*.json --to=csv > cells.csv         a row per cell, for pandas
  {JUDGE} export exp1.json --to=bmf > bmf.json                     bencher run --adapter json
  {JUDGE} export exp1.json --to=github-action > figures.json       tool: customSmallerIsBetter
  {JUDGE} export .benchmarks/*/*.json --to=otava > history.csv     a row per run

For a readable report use `report`; for Markdown add `--markdown` to any command.
Exit code 0: written. 2: bad usage, or a run cannot be used.
"""
FORMATS = ("csv", "bmf", "github-action", "otava")
FEWEST = 3  # blocks needed for an interval
NS = 1e9


class ExportedFigure(NamedTuple):
    """A workload under a tweak set: mean over blocks of its primary metric, and its interval.

    The interval is None for fewer than three blocks, or for equal values.
    """

    name: str
    metric: Metric
    value: float
    interval: tuple[float, float] | None
    blocks: int


@signature
def run(
    runs: list[str] = option("RUN", "saved runs; more than one for csv and otava only", nargs="+"),
    *,
    to: str = option(
        "",
        "cells as CSV, Bencher's metrics, github-action-benchmark's JSON, Otava's CSV",
        required=True,
        choices=FORMATS,
    ),
) -> int:
    loaded = [load(path) for path in find(runs)]
    if to in ("csv", "otava"):
        print(
            otava(loaded) if to == "otava" else render(Answer("cells", rows=table(loaded))), end=""
        )
        return 0
    if len(loaded) != 1:
        raise Refused(f"--to={to} needs a single run, not {len(loaded)}.")
    result = list(figures(loaded[0]))
    if not result:
        raise Refused(f"{loaded[0].origin}: no cell was measured.")
    print(
        json.dumps(bmf(result) if to == "bmf" else github_action(result), indent=1, allow_nan=False)
    )
    return 0


arguments = run.arguments


def table(runs: Sequence[Run]) -> Table:
    """Lay out the cells as in `analysis.cells`, with the same columns."""
    frame = cells(runs)
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return Table([Column(name, name) for name in frame.columns], rows)


def figures(run: Run) -> Iterator[ExportedFigure]:
    values: dict[tuple[str, str, str], list[float]] = {}
    for cell in run.cells:
        metric = _metric(run, cell.study, cell.workload)
        if cell.outcome == "measured" and metric.name in cell.metrics:
            values.setdefault((cell.study, cell.workload, cell.tweakset), []).append(
                cell.metrics[metric.name]
            )
    for (study, workload, tweakset), own in values.items():
        # Equal values have no scatter: an interval of zero width would claim that the next run is
        # equal too.
        ends = interval(own)[1:] if len(own) >= FEWEST and max(own) > min(own) else None
        alike = sum(key[1:] == (workload, tweakset) for key in values) > 1
        place = f"{study} {workload}" if alike else workload
        name = place if tweakset == "as-run" else f"{place} {tweakset}"
        yield ExportedFigure(name, _metric(run, study, workload), fmean(own), ends, len(own))


def _metric(run: Run, study: str, workload: str) -> Metric:
    return run.workloads[workload].primary or run.studies[study].primary


def bmf(result: Sequence[ExportedFigure]) -> dict[str, Any]:
    """Convert to Bencher's metric format: latency in ns, other figures under their own names.

    Source: bencher.dev/docs/reference/bencher-metric-format.
    """
    result_by_name: dict[str, Any] = {}
    for figure in result:
        is_time = figure.metric.name.endswith("_s") and "_per_" not in figure.metric.name
        scale = NS if is_time else 1.0
        measure: dict[str, float] = {"value": figure.value * scale}
        if figure.interval:
            measure |= {
                "lower_value": figure.interval[0] * scale,
                "upper_value": figure.interval[1] * scale,
            }
        result_by_name[figure.name] = {"latency" if is_time else figure.metric.name: measure}
    return result_by_name


def github_action(result: Sequence[ExportedFigure]) -> list[dict[str, Any]]:
    """Convert to the JSON of benchmark-action/github-action-benchmark.

    It is read as customSmallerIsBetter or customBiggerIsBetter. Raises: Refused, for a mix of both.
    """
    ways = {figure.metric.better for figure in result}
    if len(ways) > 1:
        raise Refused(
            "--to=github-action: smaller is better for some of these figures and larger for "
            "others, but that tool needs one kind per file."
        )
    return [
        {
            "name": figure.name,
            "unit": figure.metric.name,
            "value": figure.value,
            **(
                {"range": f"± {(figure.interval[1] - figure.interval[0]) / 2:.3g}"}
                if figure.interval
                else {}
            ),
            "extra": f"{figure.blocks} blocks",
        }
        for figure in result
    ]


def otava(runs: Sequence[Run]) -> str:
    """Write a row per run, oldest first: time, commit, and a column per figure, empty if missing.

    Raises: Refused, if a run has no date.
    """
    rows = [
        (run.started_utc, run.commit or "", {figure.name: figure.value for figure in figures(run)})
        for run in runs
    ]
    if undated := [run.origin for run in runs if not run.started_utc]:
        raise Refused(f"{undated[0]}: has no date, so it has no place in a history.")
    names = list(dict.fromkeys(name for *_, own in rows for name in own))
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(["time", "commit", *names])
    for at, commit, own in sorted(rows, key=lambda row: row[0]):
        writer.writerow([at, commit, *(own.get(name, "") for name in names)])
    return sink.getvalue()
