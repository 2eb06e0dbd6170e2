"""Monitors that took turns, none inside processes: costs recovered, figures refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.render.text import render
from analysis.studies.monitors.answers import answer
from analysis.studies.monitors.study import overheads
from analysis.terms import Run
from tests.made_turns import turned_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.monitors.study import MonitoredArm, Overhead

COSTS = {"sampler": 0.0, "top": 0.05}


@pytest.fixture(scope="module")
def run() -> Run:
    return from_json(turned_run(COSTS), "turned.json")


@pytest.fixture(scope="module")
def found(run: Run) -> Overhead:
    (one,) = overheads(run)
    return one


def arm(found: Overhead, name: str) -> MonitoredArm:
    return next(one for one in found.arms if one.tweakset == name)


def test_a_cost_is_found_again_and_its_absence_too(found: Overhead) -> None:
    """Six processes, 32 pairs of four steps, 3 % noise a step: 5 % is found, none is within 1 %."""
    top, sampler = arm(found, "top"), arm(found, "sampler")
    assert found.units == "processes"
    assert found.control.state == "quiet"
    assert top.cpu is not None
    assert sampler.cpu is not None
    assert top.cpu.n == sampler.cpu.n == 6
    assert top.cpu.low < 0.05 < top.cpu.high
    assert (top.verdict, sampler.verdict) == ("regressed", "equivalent")
    assert sampler.cpu.p_equivalent is not None
    assert sampler.cpu.p_equivalent < 0.05


def test_the_monitors_share_of_a_core_is_of_its_time_at_work(found: Overhead) -> None:
    """0.3 % while at work, which was half of the time; the start's CPU does not count."""
    core = arm(found, "sampler").core
    assert core is not None
    assert core.value == pytest.approx(0.003)


def test_the_page_and_the_ending(run: Run, found: Overhead, snapshot: SnapshotAssertion) -> None:
    assert render(answer(run, [found]), explain=True) == snapshot(name="page")
    assert render(answer(run, [found], brief=True)) == snapshot(name="ending")
    assert found.units == "processes"


def test_a_process_with_another_monitor_is_left_out_entirely() -> None:
    saved = turned_run(COSTS)
    first = next(
        one["extra_info"]
        for one in saved["benchmarks"]
        if one["extra_info"]["tweakset"] == "sampler"
    )
    first["monitor"]["name"] = "top"
    (found,) = overheads(from_json(saved, "turned.json"))
    assert arm(found, "sampler").n == 5
    assert any("reports top" in reason for reason in arm(found, "sampler").lost)


def test_a_slow_switch_is_the_reason_for_no_finding() -> None:
    (found,) = overheads(from_json(turned_run({"top": 0.3}, memory=4.0, steps=8), "turned.json"))
    assert arm(found, "top").verdict == "inconclusive"
    assert arm(found, "top").said == "not shown"


@pytest.mark.parametrize("told", [1e6, 0.0, None])
def test_an_impossible_time_at_work_reduces_no_share_of_a_core(told: float | None) -> None:
    """Longer than the monitor's life, or none: 0.6 % of a core at work never becomes 0.3 %."""
    saved = turned_run(COSTS, core=0.006)
    for one in saved["benchmarks"]:
        if one["extra_info"]["monitor"]["name"]:
            one["extra_info"]["monitor"]["told"]["at_work_s"] = told
    (found,) = overheads(from_json(saved, "turned.json"))
    core = arm(found, "sampler").core
    assert core is None or core.value > 0.005
