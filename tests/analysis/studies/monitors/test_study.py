"""Monitors of known cost: figures are recovered, with no claim that the A/A does not carry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.studies.monitors.study import overheads
from analysis.terms import Unreadable
from tests.made_monitoring import (
    MONITORS,
    PERF,
    PLACEBO,
    PROFILE,
    SAMPLER,
    MadeMonitoring,
    Monitor,
    monitored_run,
)

if TYPE_CHECKING:
    from analysis.studies.monitors.study import MonitoredArm, Overhead


def found_in(made: MadeMonitoring) -> Overhead:
    return overheads(from_json(monitored_run(made), "made.json"))[0]


def arm(found: Overhead, label: str) -> MonitoredArm:
    return next(one for one in found.arms if one.label == label)


@pytest.fixture(scope="module")
def found() -> Overhead:
    """Twenty blocks of every monitor, cells that scatter by 0.4 %."""
    return found_in(MadeMonitoring())


def test_each_arms_cost_is_found(found: Overhead) -> None:
    for monitor in MONITORS:
        one = next(one for one in found.arms if one.tweakset == monitor.name)
        assert one.cpu is not None
        assert one.cpu.value == pytest.approx(monitor.cost, abs=0.006)
        assert one.cpu.low < one.cpu.value < one.cpu.high
        assert one.cpu.n == one.n == 20


def test_what_a_monitor_takes_itself(found: Overhead) -> None:
    """15 % of a core; its own 20 MiB, as the workload's peak stayed; 0.1 s and 0.05 s of wait."""
    quick = arm(found, "psutil_process 0.01 s")
    assert quick.core is not None
    assert quick.core.value == pytest.approx(0.15)
    assert quick.own["memory_bytes"] == quick.own["peak_rss_bytes"] == 20 * 2**20
    assert [quick.own[name] for name in ("start_s", "stop_s", "written_bytes")] == [
        0.1,
        0.05,
        100_000,
    ]
    assert quick.own["outside_s"] == pytest.approx(0.15)
    inside = arm(found, "psutil_thread 1 s")
    assert inside.core is None
    assert "peak_rss_bytes" not in inside.own
    assert inside.own["memory_bytes"] == 20 * 2**20  # the workload's peak grew by it


def test_a_dear_start_is_no_rate(found: Overhead) -> None:
    """The start takes 2 CPU seconds, most of all: core share covers work only, total CPU both."""
    slow = replace(SAMPLER, start_cpu_s=2.0, start_s=3.0)
    one = arm(found_in(MadeMonitoring(monitors=(slow,), blocks=6)), "sampler 10 Hz")
    quick = arm(found, "sampler 10 Hz")
    assert one.core is not None
    assert quick.core is not None
    assert one.core.value == pytest.approx(quick.core.value) == pytest.approx(0.003)
    assert one.total is not None
    assert one.total.value == pytest.approx(2 / 5.8, abs=0.02)


NOISY = MadeMonitoring(cell_sd=0.05, seed=3)


@pytest.mark.parametrize(
    ("made", "state", "said"),
    [
        (NOISY, "underpowered", "underpowered"),
        (replace(NOISY, margin=0.30), "underpowered", "underpowered"),
        (MadeMonitoring(none=False), "missing", "no A/A"),
    ],
    ids=["too noisy", "too noisy, inside a wide margin", "no A/A"],
)
def test_no_absence_is_claimed_without_a_quiet_a_a(
    made: MadeMonitoring, state: str, said: str
) -> None:
    """Scatter 5 %: A/A half-width 5 % · √2 · 2.09 / √20 = 3.3 %, above 3; cProfile is called."""
    found = found_in(made)
    assert found.control.state == state
    assert not any(one.verdict == "equivalent" for one in found.arms if one.base)
    assert (arm(found, "placebo").verdict, arm(found, "placebo").said) == ("inconclusive", said)
    assert (arm(found, "cprofile").verdict, arm(found, "cprofile").said) == ("regressed", "costs")


@pytest.mark.parametrize("again", [0.03, -0.03])
def test_where_none_and_none_again_differ_nothing_is_claimed(again: float) -> None:
    found = found_in(MadeMonitoring(again=again))
    assert found.control.state == "differs"
    assert {one.verdict for one in found.arms} == {"not comparable"}


def test_skipped_and_failed_cells_are_listed_with_their_reasons() -> None:
    absent = Monitor(
        "nsys", "around", broken=dict.fromkeys(range(1, 6), ("skipped", "no nsys in PATH"))
    )
    flooded = replace(PERF, broken={2: ("failed", "it flooded its log")})
    found = found_in(MadeMonitoring(monitors=(absent, flooded), blocks=5))
    nsys, perf = arm(found, "nsys"), arm(found, "perf_record 99 Hz")
    assert (nsys.n, nsys.said, list(nsys.lost.values())) == (0, "skipped", [5])
    assert (perf.n, list(perf.lost.values())) == (4, [1])


def test_energy_is_compared_if_metered_and_else_has_a_reason(found: Overhead) -> None:
    read = arm(
        found_in(MadeMonitoring(monitors=(PROFILE,), blocks=8, energy_w=20.0)), "cprofile"
    ).energy
    assert read is not None
    assert read.value == pytest.approx(0.6, abs=0.05)
    assert arm(found, "cprofile").energy is None
    assert "RAPL" in arm(found, "cprofile").missing["usage.energy_j"]


def test_a_missing_figure_is_missing_and_never_nought() -> None:
    saved = monitored_run(MadeMonitoring(monitors=(SAMPLER,), blocks=4))
    for one in saved["benchmarks"]:
        told = one["extra_info"]["monitor"]
        if told["name"]:
            told["cpu_s"], told["missing"] = None, {"cpu_s": "it was gone"}
    sampler = arm(overheads(from_json(saved, "made.json"))[0], "sampler 10 Hz")
    assert sampler.core is None
    assert sampler.total is None  # all CPU without the monitor's is not all CPU
    assert sampler.cpu is not None
    assert sampler.missing["monitor.cpu_s"] == "it was gone"


def test_a_record_that_is_no_number_is_named() -> None:
    saved = monitored_run(MadeMonitoring(monitors=(PLACEBO,), blocks=3))
    saved["benchmarks"][0]["extra_info"]["usage"]["cpu_s"] = "much"
    with pytest.raises(Unreadable, match=r"usage.*cpu_s"):
        overheads(from_json(saved, "made.json"))


def test_a_workload_with_its_own_primary_metric_pays_in_cpu_too() -> None:
    saved = monitored_run(MadeMonitoring(monitors=(PROFILE,), blocks=5))
    saved["deeptweak"]["workloads"]["python_loop"]["primary"] = {
        "name": "step_time_p10_s",
        "better": "lower",
    }
    (found,) = overheads(from_json(saved, "made.json"))
    dear = arm(found, "cprofile").cpu
    assert found.metric == "cpu_s_per_step"
    assert dear is not None
    assert dear.value == pytest.approx(0.6, abs=0.02)


def test_each_workload_has_its_a_a_and_all_are_one_family() -> None:
    both = overheads(
        from_json(
            monitored_run(
                MadeMonitoring(monitors=(PLACEBO, PROFILE), workloads=("python_loop", "cnn_train"))
            ),
            "made.json",
        )
    )
    assert [one.workload for one in both] == ["python_loop", "cnn_train"]
    # Two workloads, each with none again and two monitors.
    assert {one.family for one in both} == {6}


def test_all_cpu_has_the_monitors_own_seconds_in_it(found: Overhead) -> None:
    """Without: 5 s of steps and 0.8 s besides.

    With: 1 % more steps (0.05 s), and 15 % of a core over 5.2 s (0.78 s): 0.83 of 5.8 s.
    """
    quick = arm(found, "psutil_process 0.01 s")
    assert quick.total is not None
    assert quick.total.value == pytest.approx(0.143, abs=0.01)
    assert quick.cpu is not None
    assert quick.cpu.value < 0.02
