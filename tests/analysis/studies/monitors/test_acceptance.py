"""The demands on a study of monitors: each passes, fails or is left open by its figures, never by their absence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.load import from_json
from analysis.stats.estimate import Mean
from analysis.studies.monitors.acceptance import checks
from analysis.studies.monitors.study import overheads
from tests.made_monitoring import MONITORS, PROCESSES, PROFILE, SAMPLER, THREADS, MadeMonitoring, Monitor, monitored_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.monitors.terms import Check, Overhead

MADE = MadeMonitoring(blocks=10, cell_sd=0.002, seed=7)


def found_in(made: MadeMonitoring) -> Overhead:
    return overheads(from_json(monitored_run(made), "made.json"))[0]


def check(made: MadeMonitoring, words: str) -> Check:
    (one,) = (one for one in found_in(made).checks if words in one.name)
    return one


def of(*monitors: Monitor) -> MadeMonitoring:
    return replace(MADE, monitors=monitors)


def telling(**says: object) -> MadeMonitoring:
    return of(replace(SAMPLER, says=says))


def costing(monitors: tuple[Monitor, ...], *costs: float) -> tuple[Monitor, ...]:
    return tuple(replace(one, cost=cost) for one, cost in zip(monitors, costs, strict=True))


# Ten samples a second for about 5 s are due. A thread beside the process takes its seconds itself: that steps cost as much at any rate is
# how it should be.
CASES = {
    "a cheap profiler": (of(replace(PROFILE, cost=0.10)), "cprofile costs", "FAIL"),
    "a thread dearer than the profiler": (of(replace(PROFILE, cost=0.10), *THREADS), "10 ms", "FAIL"),
    "a thread without the profiler beside it": (of(*THREADS), "10 ms", "NOT SHOWN"),
    "a sampler that takes more of a core": (of(replace(SAMPLER, core=0.02)), "of a core", "FAIL"),
    "a report that grows with the samples": (of(replace(SAMPLER, core=0.0, stop_cpu_s=0.5)), "of a core", "FAIL"),
    "a sampler that costs": (of(replace(SAMPLER, cost=0.05)), "effect on CPU", "FAIL"),
    "1 sample": (telling(samples=1), "of a core", "NOT SHOWN"),
    "24 samples": (telling(samples=24), "of a core", "NOT SHOWN"),
    "40 samples": (telling(samples=40), "of a core", "PASS"),
    "nobody knows how many samples": (telling(samples=None), "of a core", "NOT SHOWN"),
    "steps too short for ten samples": (replace(of(SAMPLER), base_s=0.05), "of a core", "NOT SHOWN"),
    "a start dearer than all of it": (telling(told={"start_cpu_s": 3.0, "stop_cpu_s": 0.0}), "of a core", "NOT SHOWN"),
    "a start longer than all of it": (telling(start_s=30.0), "of a core", "NOT SHOWN"),
    "a wider margin": (replace(of(SAMPLER), margin=0.05), "effect on CPU", "NOT SHOWN"),
    "falling order": (of(*costing(THREADS, 0.13, 0.05, 0.0)), "oftener", "FAIL"),
    "falling order beside the process": (replace(of(*costing(PROCESSES, 0.05, 0.0)), seed=8), "oftener", "NOT SHOWN"),
    "and threads inside": (of(*costing(PROCESSES, 0.05, 0.0), *THREADS), "oftener", "PASS"),
    "an A/A that cannot but contain 0": (MadeMonitoring(monitors=(PROFILE,), cell_sd=0.08, seed=3), "A/A", "NOT SHOWN"),
    "an A/A that differs": (replace(of(PROFILE), again=0.03), "A/A", "FAIL"),
}


def test_demands(snapshot: SnapshotAssertion) -> None:
    messages = {}
    for name, (made, words, passed) in CASES.items():
        one = check(made, words)
        assert one.passed == passed, name
        messages[name] = f"{one.name}: {one.figures}"
    assert messages == snapshot


def test_a_study_as_it_should_be_passes_all() -> None:
    found = found_in(of(*MONITORS)).checks
    assert [one.passed for one in found] == ["PASS"] * 6
    assert all("n 10" in one.figures for one in found)


def test_what_was_not_measured_is_not_shown() -> None:
    assert {one.passed for one in found_in(of(THREADS[0])).checks if "A/A" not in one.name} == {"NOT SHOWN"}


def test_the_share_of_a_core_is_judged_by_its_interval() -> None:
    found = found_in(of(SAMPLER))
    one = next(arm for arm in found.arms if arm.base == "sampler")
    for low, high, passed in ((0.003, 0.0049, "PASS"), (0.003, 0.0051, "NOT SHOWN"), (0.0051, 0.007, "FAIL")):
        arm = replace(one, own=replace(one.own, core=Mean(10, value=0.004, low=low, high=high)))
        (core,) = (each for each in checks("cnn_train", found.control, [arm], (), None, 0.01) if "of a core" in each.name)
        assert core.passed == passed
