"""Measure how much longer data-parallel training steps take over a link that drops packets.

Hypothesis: 1 % of loss makes a step longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fixtures.terms import Metric, Study
from fixtures.workloads import case

if TYPE_CHECKING:
    from fixtures.plugin import Measured

LOSS_PERCENT = (0, 0.1, 0.3, 1, 3)
# A round trip has two delays. Over such a line a step takes up to seconds: less is sent, less
# often.
LINES: tuple[dict[str, int], ...] = ({}, {"delay_ms": 5, "hidden": 384, "steps": 20})

STUDY = Study(
    name="cluster_network",
    question="How much longer do data-parallel training steps take over a lossy, slow link, and "
    "by which law?",
    workloads=tuple(
        case("ddp_network", loss_percent=loss, **line) for line in LINES for loss in LOSS_PERCENT
    ),
    tweaks=("stock",),
    primary=Metric("step_time_mean_s", "lower"),
    blocks=5,
    margin=0.05,
    compares_workloads=True,
    copies=False,  # a line without a loss and a delay is among them
)


def bench_ddp_network(measured: Callable[[], Measured]) -> None:
    """Train over a link; all steps must be done, over the requested link."""
    run = measured()
    assert run.valid, run.reason
