"""DeepTweak from the command line (`deeptweak --help`), from a notebook, and from a training script (`deeptweak.steps`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from analysis.terms import Run

__all__ = ["load"]


def load(*paths: str | os.PathLike[str]) -> pd.DataFrame:
    """Read saved runs into one frame, a row per cell: metrics, parameters, settings in force, telemetry (`analysis.cells`).

    A path is a file, a folder or a quoted glob. A copy of a run is read once.

    Raises: Refused, where nothing can be read, or a file cannot be used.

    Example:
        >>> import deeptweak
        >>> frame = deeptweak.load(".benchmarks")
        >>> frame.pivot_table("step_time_median_s", "block", ["workload", "tweakset"])

    """
    from analysis.arms import read_arm
    from analysis.cells import cells
    from control.errors import Refused

    runs: dict[str, Run] = {}
    for path in paths:
        refused: list[str] = []
        runs |= {run.run_id: run for run in read_arm(os.fspath(path), refused).runs}
        if refused:
            raise Refused(refused[0])
    return cells(runs.values())
