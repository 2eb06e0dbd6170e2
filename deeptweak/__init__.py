"""DeepTweak from the command line (`deeptweak --help`), from a notebook, and from a training script (`deeptweak.steps`)."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load"]

# Installed, the house lies below this package, so that its rooms' names are nobody's in site-packages; else it is this repository.
INSTALLED = Path(__file__).with_name("_house")
HOUSE = INSTALLED if INSTALLED.is_dir() else Path(__file__).parents[1]
ROOMS = ("analysis", "control")  # of the read side


def load(*paths: str | os.PathLike[str]) -> pd.DataFrame:
    """Read saved runs into one frame, a row per cell: metrics, parameters, settings in force, telemetry (`analysis.cells`).

    A path is a file, a folder or a quoted glob. Of the files of one run, the one with most cells is read. What casts doubt on
    a run, such as that it was interrupted, is a warning.

    Raises: Refused, where nothing can be read, a file cannot be used, or one run is a copy of another under a new name.
    ImportError, where other modules have the names of this program's packages.

    Example:
        >>> import deeptweak
        >>> frame = deeptweak.load(".benchmarks")
        >>> frame.pivot_table("step_time_median_s", "block", ["workload", "tweakset"])

    """
    with _house_first():
        from analysis.arms import distinct, no_copies
        from analysis.cells import cells
        from analysis.checks import warnings_of
        from analysis.load import load_some
        from control.errors import Refused

    refused: list[str] = []
    read = load_some([os.fspath(path) for path in paths], refused)
    if refused:
        raise Refused(refused[0])
    doubts: list[str] = []
    runs = distinct(read, doubts)
    no_copies(runs)
    for line in [*doubts, *(f"{run.origin}: {line}" for run in runs for line in warnings_of(run, ()))]:
        warnings.warn(line, stacklevel=2)
    return cells(runs)


@contextlib.contextmanager
def _house_first() -> Iterator[None]:
    """Let the house's packages be found while they are imported: later only those that are in use stay."""
    for name in ROOMS:
        place = getattr(sys.modules.get(name), "__file__", None)
        if place and not Path(place).is_relative_to(HOUSE):
            raise ImportError(f"{place} is imported as {name!r}, the name of a package of DeepTweak: load runs in a process without it.")
    sys.path.insert(0, str(HOUSE))
    try:
        yield
    finally:
        sys.path.remove(str(HOUSE))
