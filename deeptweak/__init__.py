"""Read, compare and report saved runs from Python, as `deeptweak` does on the command line.

    >>> import deeptweak
    >>> runs = deeptweak.load("run.json")
    >>> runs.cells().groupby(["workload", "tweakset"])["step_time_median_s"].median()
    >>> deeptweak.compare(runs).table()
    >>> deeptweak.report(runs, "report.html")
    >>> deeptweak.evidence(deeptweak.load(".benchmarks"))  # several runs

A training script tells its steps with `deeptweak.steps`, which needs none of this. pandas and what
judges are imported by the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .door import Judgement, Runs, compare, evidence, load, report
from .house import house_first

if TYPE_CHECKING:
    from control.errors import Refused

__all__ = ["Judgement", "Refused", "Runs", "compare", "evidence", "load", "report"]


def __getattr__(name: str) -> Any:
    """Import `Refused` on first use."""
    if name != "Refused":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with house_first():
        from control.errors import Refused
    return Refused
