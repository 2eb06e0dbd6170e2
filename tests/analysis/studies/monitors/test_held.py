"""A cell must report its arm's monitor: a report of another monitor, or none, disqualifies it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.render.text import render
from analysis.studies.monitors.answers import answer
from analysis.studies.monitors.study import overheads
from tests.made_monitoring import PLACEBO, PROFILE, SAMPLER, MadeMonitoring, monitored_run

if TYPE_CHECKING:
    from analysis.studies.monitors.study import MonitoredArm


def told_else(arm: str, said: Mapping[str, object] | None, blocks: int = 6) -> MonitoredArm:
    """Let an arm's cells in the first `blocks` of 6 blocks report another monitor, or none."""
    saved = monitored_run(MadeMonitoring(monitors=(PLACEBO, PROFILE, SAMPLER), blocks=6))
    for one in saved["benchmarks"]:
        record = one["extra_info"]
        if record["tweakset"] == arm and record["block"] <= blocks:
            monitor = record.pop("monitor")
            record |= {} if said is None else {"monitor": monitor | said}
    run = from_json(saved, "made.json")
    found = overheads(run)
    assert render(answer(run, found))
    return next(one for one in found[0].arms if one.tweakset == arm)


@pytest.mark.parametrize(
    ("arm", "said", "why", "blocks"),
    [
        ("placebo", {"name": "cprofile"}, "reports cprofile,", 2),
        ("placebo", None, "not record", 2),
        ("stock-again", {"name": "cprofile"}, "reports cprofile,", 6),
        ("stock", {"name": "cprofile"}, "reports cprofile,", 2),
    ],
)
def test_a_cell_that_does_not_fit_its_arm_is_left_out_and_named(
    arm: str, said: dict[str, object] | None, why: str, blocks: int
) -> None:
    found = told_else(arm, said, blocks)
    ((reason, count),) = found.lost.items()
    assert (why in reason, count) == (True, blocks)
    assert found.n == 6 - blocks
    assert found.blocks == 6
    assert (found.cpu is None) == (blocks == 6 or arm == "stock")
