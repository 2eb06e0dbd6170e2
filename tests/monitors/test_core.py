"""Parts of a monitored cell: names, arms, the protocol, the process's usage, and the plan."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import cells
from fixtures.declaration import declare
from fixtures.monitors import attend, inside, monitor, processes
from fixtures.options import Options
from fixtures.targets._report import Broken, Report
from fixtures.terms import BadInput, Metric, Order, Step, Study, TweakSet
from fixtures.tweaks.local import Plan
from fixtures.workloads import load

if TYPE_CHECKING:
    from tests.monitors.made_up import Made

STUDY = Study(
    "watched",
    "?",
    ("idle",),
    (),
    Metric("cpu_s_per_step", "lower"),
    monitors=("placebo", "psutil_thread:interval_s=0.1"),
)
READY = {"event": "ready", "facts": {}}
STEP: dict[str, object] = {
    "event": "step",
    "index": 0,
    "start_monotonic_s": 1.0,
    "wall_s": 0.5,
    "cpu_s": 0.25,
    "samples": 4,
    "tokens": 0,
    "loss": 1,
    "warmup": False,
}
USAGE: dict[str, Any] = {"event": "usage", "value": {"cpu_s": 1.0}}


def options(**given: Any) -> Options:
    return Options(
        **{
            "tweaks": None,
            "workloads": None,
            "blocks": None,
            "steps": None,
            "seed": 1,
            "resume": False,
            "folder": Path(),
            **given,
        }
    )


def test_named_monitors_take_their_place_each_once() -> None:
    """0.10 and 0.1 are one variant, and stock is always there."""
    asked = options(monitors="psutil_thread:interval_s=0.10,stock, psutil_thread , placebo")
    assert [(one.name, one.monitor) for one in cells.chosen_arms(asked, STUDY, "local")] == [
        (n, n) for n in ("psutil_thread", "placebo")
    ]
    assert [one.name for one in cells.chosen_arms(options(monitors="all"), STUDY, "local")] == list(
        monitor.names()
    )


def test_a_profiler_meets_only_suitable_workloads_by_default() -> None:
    """torch.profiler, and a loop without torch; a workload that is named is crossed with all."""
    study = Study(
        "watched",
        "?",
        ("idle", "cnn_train"),
        (),
        Metric("cpu_s_per_step", "lower"),
        monitors=("placebo", "torch_profiler"),
    )

    def met(**given: Any) -> set[tuple[str, str]]:
        return {
            (c.workload, c.tweakset)
            for c in declare(options(**given), study, "local").cells
            if not c.tweakset.startswith("stock")
        }

    assert met() == {("idle", "placebo"), ("cnn_train", "placebo"), ("cnn_train", "torch_profiler")}
    assert met(workloads="idle") == {("idle", "placebo"), ("idle", "torch_profiler")}


@pytest.mark.parametrize(
    ("given", "target", "why"),
    [
        ({"tweaks": "thp-never"}, "local", "either a monitor or a tweak set"),
        (
            {"design": "switch"},
            "local",
            "placebo: in the workload's own process.*; psutil_thread: .* can be switched",
        ),
        (
            {"design": "switch", "monitors": "sampler,perf_stat,nsys"},
            "local",
            "perf_stat: the kernel keeps .*; nsys: it started the wor",
        ),
        ({"design": "factorial"}, "local", "splits a tweak set into its keys"),
        ({"design_file": Path("x.csv")}, "local", "its rows name tweak sets"),
        ({}, "kubernetes", "monitors are not yet supported in pods. Use --target=local"),
        ({"monitors": " , "}, "local", "names no monitor. Available: cprofile"),
        ({"monitors": "psutil_thred"}, "local", "Did you mean 'psutil_thread'"),
        ({"monitors": "psutil_thread:interval_s=0"}, "local", "from 0.001 to 60"),
        ({"monitors": "psutil_thread:hz=1"}, "local", "Available: interval_s"),
    ],
)
def test_options_incompatible_with_monitors_are_refused(
    given: dict[str, Any], target: str, why: str
) -> None:
    with pytest.raises(BadInput, match=why):
        cells.chosen_arms(options(**given), STUDY, target)


def report(*events: object, monitored: bool = True) -> Report:
    """Take lines in the name of a workload that was asked for one step."""
    taken = Report(
        Order(load("idle"), steps=1, warmup_steps=0, seed=0, scratch=Path(), monitored=monitored)
    )
    for event in events:
        taken.take(json.dumps(event).encode())
    return taken


@pytest.mark.parametrize(
    "events",
    [(READY, USAGE), (READY, STEP, USAGE, USAGE), (READY, {"event": "monitor", "value": {}})],
)
def test_what_it_tells_before_its_last_step_or_twice_is_garbage(events: tuple[object, ...]) -> None:
    with pytest.raises(Broken, match="invalid line of the protocol"):
        report(*events)


def step(index: int, wall_s: float, cpu_s: float, *, warmup: bool = False) -> Step:
    return Step(index, 1.0 + index, wall_s, cpu_s, 1, 0, 0.0, warmup)


def test_counted_steps_are_summed_and_unknowns_have_a_reason(tmp_path: Path) -> None:
    """0.5 + 0.25 s of wall; the warm-up step is left out."""
    steps = [step(0, 9, 9, warmup=True), step(1, 0.5, 0.4), step(2, 0.25, 0.2)]
    told = {"cpu_s": 2.0, "peak_rss_bytes": 4096, "written_bytes": None}
    found = inside.whole(told, steps, 10.5, inside.Energy(tmp_path))
    assert (found["steps_wall_s"], found["wall_s"], found["cpu_s"]) == (0.75, 10.5, 2.0)
    assert found["steps_cpu_s"] == pytest.approx(0.6)
    assert found["missing"].keys() == {"energy_j", "written_bytes"}
    assert "RAPL" in found["missing"]["energy_j"]


def test_a_monitor_beside_reports_its_start_and_stop_cost(
    made: Callable[[str], Made],
) -> None:
    """A shell that writes 1000 bytes; of its own parent's memory and time nothing is counted."""
    source = (
        "kind = 'beside'\ndef command(self, pid, folder): return ['sh', '-c', 'head -c 1000 "
        "/dev/zero; exec sleep 1000']\n"
    )
    run = made(
        source + "def watches(self, folder): return (folder / 'stdout').stat().st_size == 1000\n"
    ).run()
    assert run.error is None
    assert run.monitor is not None
    monitor: dict[str, Any] = dict(run.monitor)
    assert monitor["written_bytes"] == 1000
    assert (
        0
        <= monitor["told"]["start_cpu_s"] + monitor["told"]["stop_cpu_s"]
        <= monitor["cpu_s"] + 1e-6
    )
    assert 0 < monitor["peak_rss_bytes"] < (processes.high_water_bytes(os.getpid()) or 0)
    assert monitor["missing"] == {"samples": "the monitor does not report it"}


def test_a_monitor_around_is_charged_only_for_its_own_usage(
    made: Callable[[str], Made],
) -> None:
    """A loop of a shell before the workload begins, which runs as its child."""
    burn = 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; "$@"; exit $?'
    run = made(
        f"kind = 'around'\ndef around(self, folder): return ['sh', '-c', {burn!r}, 'sh']\n"
    ).run()
    assert run.error is None
    assert run.monitor is not None
    assert run.monitor["cpu_s"]
    missing = set(run.monitor["missing"])  # type: ignore[call-overload]
    assert missing == {"start_s", "peak_rss_bytes", "samples"}


def test_the_plan_says_what_would_be_started_and_where() -> None:
    sets = {name: monitor.tweakset(name) for name in ("placebo", "sampler")} | {
        "stock": TweakSet("stock")
    }
    plans = {"placebo": Plan(cannot=("no psutil",)), "sampler": Plan(), "stock": Plan()}
    lines = "\n".join(attend.lines(sorted(sets), sets, plans))
    assert "  stock: none" in lines
    assert "skipped: no psutil" in lines
    assert "a process beside the workload: env " in lines
    assert lines.endswith("stock: none")
    assert " PID" in lines
