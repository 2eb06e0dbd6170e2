"""A run with monitors: raw costs are kept, and no monitored arm passes as the untouched machine."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.compare import compare
from analysis.formats.saved_run import from_json
from control import saved_cell
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

MONITOR: dict[str, Any] = {
    **dict.fromkeys(saved_cell.MonitorRecord.__required_keys__),
    "name": "placebo",
    "params": {},
    "told": {},
    "missing": {"cpu_s": "inside"},
}
USAGE: dict[str, Any] = {
    **dict.fromkeys(saved_cell.Usage.__required_keys__),
    "wall_s": 3.0,
    "cpu_s": 2.0,
    "steps_wall_s": 2.0,
    "load_average_1min": 0.5,
    "missing": {},
}


@pytest.fixture
def saved() -> dict[str, Any]:
    found = saved_run(Made(arms=(STOCK, AGAIN, Arm("placebo"))))
    found["deeptweak"]["tweaksets"]["placebo"]["monitor"] = "placebo"
    for one in found["benchmarks"]:
        one["extra_info"] |= {"usage": USAGE}
        if one["extra_info"]["tweakset"] == "placebo":
            one["extra_info"]["monitor"] = MONITOR
    return found


def test_monitor_cost_and_process_use_are_there_as_saved(saved: dict[str, Any]) -> None:
    run = from_json(saved, "here")
    assert {name: one.monitor for name, one in run.tweaksets.items()} == {
        "stock": "",
        "stock-again": "",
        "placebo": "placebo",
    }
    assert all(cell.usage == USAGE for cell in run.cells)
    assert {cell.tweakset for cell in run.cells if cell.monitor == MONITOR} == {"placebo"}


def test_an_arm_with_a_monitor_is_no_second_copy_of_stock(saved: dict[str, Any]) -> None:
    found = {one.tweakset: one for one in compare(from_json(saved, "here"))}
    assert found["stock-again"].untouched
    assert not found["placebo"].untouched
    assert found["placebo"].primary is not None
