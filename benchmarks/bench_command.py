"""Measure whether kernel or process settings change the speed of your own command.

Hypothesis under test, one per tweak set: it makes no difference beyond ±3 %.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study

if TYPE_CHECKING:
    from fixtures.plugin import Measured

STUDY = Study(
    name="command",
    question="Do kernel or process settings change the speed of this command?",
    workloads=("command",),
    tweaks=("stock",),
    primary=Metric("step_time_median_s", "lower"),
    blocks=8,
    margin=0.03,
    crossed=True,
)


def bench_step_time(measured: Callable[[], Measured]) -> None:
    """Run the command; all requested steps must be done with the tweak set in force."""
    run = measured()
    assert run.valid, run.reason
