"""Streams of jobs on a cluster: queues, schedulers, scaling, faults, and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from analysis.answer import Answer
from analysis.terms import Cell, Run

ORDER = 25
TITLE = "Streams of jobs"


def tells_of(run: Run) -> bool:
    return any("job" in cell.report or "stream" in cell.report for cell in run.cells) or any(
        "loss_percent" in workload.params for workload in run.workloads.values()
    )


def answer(run: Run, *, brief: bool = False) -> Answer:
    """Return the answer of the command for the run's question; `brief` adds the run's warnings."""
    from . import streams

    return streams.answer(run, brief=brief)


def with_figures(
    cell: Cell, _origin: str, _params: Mapping[str, object], **_settings: object
) -> Cell:
    """Return a cell of a stream with its jobs' figures as metrics: `--metric=mean_wait_s`."""
    if "job" not in cell.report:
        return cell
    from .figures import figures

    return replace(cell, metrics={**cell.metrics, **figures(cell.report)})


def for_pictures(runs: Sequence[Run]) -> dict[str, object]:
    from .streams import gather

    return {"streams": [gathered for run in runs if (gathered := gather(run)) is not None]}
