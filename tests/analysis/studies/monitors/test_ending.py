"""A session of monitors ends with costs, and its gate passes nothing from a noisy machine."""

from __future__ import annotations

import pytest

from analysis.arms import Arm
from analysis.ending import ending
from analysis.load import from_json
from analysis.studies.gate.gate import judge
from analysis.studies.gate.limits import Limits
from tests.made_monitoring import MadeMonitoring, monitored_run


def test_the_end_is_the_cost_of_watching_and_not_the_fastest() -> None:
    text, code = ending(monitored_run(MadeMonitoring(blocks=6)), None)
    assert code == 0
    assert "Costs CPU: cprofile" in text
    assert "faster" not in text
    assert "tweak set" not in text


@pytest.mark.parametrize(("scatter", "ruling"), [(0.004, "pass"), (0.08, "undecided")])
def test_nothing_passes_if_unmonitored_arms_agree_too_loosely(scatter: float, ruling: str) -> None:
    """Only cProfile costs nearly half; whether the gate may rule this out depends on the A/A."""
    run = from_json(monitored_run(MadeMonitoring(blocks=20, cell_sd=scatter)), "made.json")
    arm = Arm("made.json", (run,))
    found = judge(arm, arm, Limits(0.5, tweaksets=("sampler",)))
    assert [one.ruling for one in found.rulings] == [ruling]
    assert ("too wide" in found.rulings[-1].reason) == (ruling == "undecided")
