"""The demands on a study of monitors: each passes, fails or is left open by its figures, never by their absence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.load import from_json
from analysis.overhead.study import overheads
from tests.made_monitoring import MONITORS, PROCESSES, PROFILE, SAMPLER, THREADS, MadeMonitoring, Monitor, monitored_run

if TYPE_CHECKING:
    from analysis.overhead.terms import Check


def checks(*monitors: Monitor, workload: str = "python_loop", margin: float = 0.01) -> dict[str, Check]:
    made = MadeMonitoring(monitors=monitors, blocks=10, workloads=(workload,), margin=margin, cell_sd=0.002, seed=7)
    return {one.name: one for one in overheads(from_json(monitored_run(made), "made.json"))[0].checks}


def passed(found: dict[str, Check], words: str) -> str:
    (one,) = (one for name, one in found.items() if words in name)
    return one.passed


def test_a_study_as_it_should_be_passes_all() -> None:
    found = checks(*MONITORS)
    assert {one.passed for one in found.values()} == {"PASS"}
    assert len(found) == 6
    assert all(" n 10" in one.figures for one in found.values())


def test_a_profiler_that_costs_too_little_fails() -> None:
    assert passed(checks(replace(PROFILE, cost=0.10)), "cprofile costs over 30 %") == "FAIL"


def test_a_thread_dearer_than_the_profiler_fails() -> None:
    assert passed(checks(replace(PROFILE, cost=0.10), *THREADS), "each 10 ms") == "FAIL"


def test_a_thread_without_the_profiler_beside_it_is_left_open() -> None:
    assert passed(checks(*THREADS), "each 10 ms") == "NOT SHOWN"


def test_a_sampler_that_takes_more_of_a_core_fails() -> None:
    found = checks(replace(SAMPLER, core=0.02, cost=0.05))
    assert passed(found, "of a core") == "FAIL"
    assert passed(found, "no effect on CPU") == "FAIL"


def core_of(says: dict[str, object]) -> Check:
    (one,) = (one for name, one in checks(replace(SAMPLER, says=says)).items() if "of a core" in name)
    return one


def test_a_sampler_that_hardly_sampled_proves_nothing_of_its_share_of_a_core() -> None:
    """Ten a second for about 5 s: 24 samples are fewer than half of those due. Nor is one known whose samples are not."""
    for samples, why in ((1, "it took 1 samples where"), (24, "it took 24 samples where"), (None, "how many samples it took is not known")):
        found = core_of({"samples": samples})
        assert (found.passed, why in found.figures) == ("NOT SHOWN", True)
        assert "in 10 of 10 cells" in found.figures
    assert core_of({"samples": 40}).passed == "PASS"


def test_steps_too_short_for_ten_samples_prove_nothing_of_a_share_of_a_core() -> None:
    made = MadeMonitoring(monitors=(SAMPLER,), blocks=10, base_s=0.05, cell_sd=0.002, seed=7)
    (found,) = overheads(from_json(monitored_run(made), "made.json"))
    (one,) = (one for one in found.checks if "of a core" in one.name)
    assert one.passed == "NOT SHOWN"
    assert "samples were due, fewer than 10" in one.figures


def test_a_start_that_took_more_than_all_of_it_is_no_share_of_nought() -> None:
    found = core_of({"told": {"start_cpu_s": 3.0, "stop_cpu_s": 0.0}})
    assert found.passed == "NOT SHOWN"
    assert "its start alone is said to have taken 3 CPU seconds" in found.figures


def test_a_start_longer_than_all_of_it_is_no_share_either() -> None:
    found = core_of({"start_s": 30.0})
    assert found.passed == "NOT SHOWN"
    assert "its start and its end are said to have taken 30.05 s" in found.figures


def test_a_wider_margin_proves_no_narrower_one() -> None:
    assert passed(checks(SAMPLER, margin=0.05), "no effect on CPU") == "NOT SHOWN"


def test_what_was_not_measured_is_not_shown() -> None:
    found = checks(THREADS[0])
    assert {one.passed for name, one in found.items() if "A/A" not in name} == {"NOT SHOWN"}


def test_falling_order_fails() -> None:
    falling = [replace(one, cost=cost) for one, cost in zip(THREADS, (0.13, 0.05, 0.0), strict=True)]
    assert passed(checks(*falling), "dearer the oftener") == "FAIL"


def test_the_order_of_rates_is_asked_of_monitors_inside_the_process_alone() -> None:
    """One beside it takes its seconds itself: that the steps cost as much at any rate is how it should be."""
    falling = [replace(one, cost=cost) for one, cost in zip(PROCESSES, (0.05, 0.0), strict=True)]
    assert [name for name in checks(*falling, *THREADS) if "oftener" in name] == ["psutil_thread: dearer the oftener"]
    assert passed(checks(*falling), "oftener") == "NOT SHOWN"


def test_an_a_a_so_wide_that_it_cannot_but_contain_0_is_not_shown() -> None:
    made = MadeMonitoring(monitors=(PROFILE,), cell_sd=0.08, seed=3)
    (found,) = overheads(from_json(monitored_run(made), "made.json"))
    assert found.control.state == "underpowered"
    assert found.checks[0].passed == "NOT SHOWN"
    assert "underpowered" in found.checks[0].figures


def test_what_slows_an_interpreter_is_not_asked_of_a_training() -> None:
    assert not [name for name in checks(*MONITORS, workload="cnn_train") if "cprofile" in name]
