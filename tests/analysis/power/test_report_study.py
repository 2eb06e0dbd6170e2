"""Algorithms on tasks against a baseline: what is made to be so is found, and what must not be said is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json
from analysis.overhead.terms import Mean
from analysis.power.reporting.arms import holds
from analysis.power.reporting.figures import ABOVE_102, P95, THROUGHPUT
from analysis.power.reporting.page import render
from analysis.power.reporting.records import SENSED
from analysis.power.reporting.said import answer, of_group
from analysis.power.reporting.study import sides
from analysis.terms import Refused, TweakSet, UnknownName
from tests.analysis.power.made_capped import ALGORITHMS, MORAK, PCTODL, POWERCAP, STEADY, Algorithm, MadeCapped, capped_run
from tests.synthetic import Made, saved_run

if TYPE_CHECKING:
    from analysis.power.reporting.terms import Arm, Group, Side
    from tests.synthetic import JSON

SMALL = MadeCapped(tasks={6: ((0, 130.0),)}, blocks=5, iterations=12)


def said(made: MadeCapped, baseline: str | None = None) -> tuple[list[Side], list[str]]:
    refused: list[str] = []
    return sides(from_json(capped_run(made), "made.json"), refused, baseline), refused


def only(made: MadeCapped, baseline: str | None = None) -> Side:
    (side,), _ = said(made, baseline)
    return side


def arm(group: Group, name: str) -> Arm:
    return next(one for one in group.arms if one.name == name)


def test_throughput_against_the_baseline_as_it_was_made() -> None:
    """1050 · .96 against 900 · .98 is 14.3 % more; the interval of 8 blocks holds it and is a percent wide at most."""
    side = only(MadeCapped())
    (group, _) = side.groups
    found = arm(group, "steady").against[THROUGHPUT]
    assert found.value == pytest.approx(1050 * 0.96 / (900 * 0.98) - 1, abs=0.004)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.1429 < found.high
    assert arm(group, "steady").verdict == "improved"
    assert [one.name for one in group.arms] == ["powercap", "morak", "pctodl", "steady"]
    both = next(one for one in side.together if one.name == "steady")
    assert both.throughput.value == pytest.approx(0.143, abs=0.004)


def test_who_holds_the_cap_is_said_by_the_interval() -> None:
    """Morak draws 1.01 times the cap and scatters by 3 W of 130: about a third of its time is above 1.02 times it."""
    (group,) = only(SMALL).groups
    assert arm(group, "steady").holds == "yes"
    assert arm(group, "morak").holds == "no"
    above = arm(group, "morak").means[ABOVE_102]
    assert above.low is not None
    assert 0.05 < above.low < above.value < 0.5


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.0, 0.05, "yes"), (0.01, 0.051, "not shown"), (0.049, 0.2, "not shown"), (0.051, 0.2, "no"), (None, None, "not shown")],
)
def test_a_mean_below_the_limit_is_not_enough(low: float | None, high: float | None, word: str) -> None:
    """At most 5 % must hold for the upper end of the interval: 4 % [1, 5.1] may be more."""
    assert holds(Mean(0.04, low, high, 5)) == word
    assert holds(None) == "no sensor"


def test_one_block_shows_nothing() -> None:
    (group,) = only(replace(SMALL, blocks=1)).groups
    found = arm(group, "steady")
    assert found.holds == "not shown"
    assert found.verdict == "not comparable"
    assert "at least 3 are needed" in found.reason


def test_shares_are_compared_by_differences_and_holm_is_over_a_back_end() -> None:
    side = only(MadeCapped(blocks=5, iterations=12))
    assert side.family == 6  # two tasks, three arms against powercap
    (group, other) = side.groups
    found = arm(group, "morak").against[ABOVE_102]
    assert found.value == pytest.approx(arm(group, "morak").means[ABOVE_102].value - arm(group, "powercap").means[ABOVE_102].value)
    ps = [one.against[ABOVE_102] for each in (group, other) for one in each.arms if one.name != "powercap"]
    known = sorted((one.p, one.p_adjusted) for one in ps if one.p is not None and one.p_adjusted is not None)
    assert known[0][1] == pytest.approx(len(known) * known[0][0])


def test_a_smaller_latency_is_a_negative_difference() -> None:
    (group,) = only(SMALL).groups
    found = arm(group, "steady").against[P95]
    assert found.value is not None
    assert found.value < -0.1


def test_steady_never_beside_the_copy_of_another_back_end() -> None:
    """The same algorithms on a plant and on hardware: two sides, each with its own baseline, no figure of both."""
    made = replace(SMALL, backends=("replay", "gpu-readonly"))
    saved = capped_run(made)
    for benchmark in saved["benchmarks"]:
        for row in benchmark["extra_info"]["report"]["iteration"]:
            if row["backend"] == "gpu-readonly":
                row["power_source"] = "nvml"
    found = sides(from_json(saved, "made.json"), [])
    assert {(one.backend, one.power_source) for one in found} == {("replay", "simulated"), ("gpu-readonly", "nvml")}
    assert all(len(one.groups) == 1 and one.family == 3 for one in found)
    assert any("SIMULATED" in line for side in found if side.backend == "replay" for line in answer(side))
    assert not any("SIMULATED" in line for side in found if side.backend != "replay" for line in answer(side))


def test_a_cell_that_tells_of_another_back_end_than_was_asked_for_is_left_out() -> None:
    saved = capped_run(SMALL)
    record = saved["benchmarks"][0]["extra_info"]
    for row in record["report"]["iteration"]:
        row["backend"] = "cpu"
    refused: list[str] = []
    (side,) = sides(from_json(saved, "made.json"), refused)
    assert side.backend == "replay"
    assert "tells of back-end 'cpu' where 'replay' was asked for" in refused[0]


def test_rows_of_two_kinds_in_one_cell_are_no_cell() -> None:
    saved = capped_run(SMALL)
    saved["benchmarks"][0]["extra_info"]["report"]["iteration"][3]["power_source"] = "nvml"
    refused: list[str] = []
    sides(from_json(saved, "made.json"), refused)
    assert "never mixed" in refused[0]


def test_without_a_sensor_nothing_is_said_of_the_cap() -> None:
    side = only(replace(SMALL, backends=("cpu",), power_source="none"))
    (group,) = side.groups
    assert {one.holds for one in group.arms} == {"no sensor"}
    assert not any({ABOVE_102, "power_mean"} & one.means.keys() for one in group.arms)
    lines = answer(side)
    assert lines[0].startswith("NO SENSOR")
    assert not any("olds the cap" in line for line in lines)
    assert any("steady: +14." in line for line in lines)


def test_a_reading_that_nothing_read_is_none() -> None:
    saved = capped_run(SMALL)
    for benchmark in saved["benchmarks"]:
        for row in benchmark["extra_info"]["report"]["iteration"]:
            row["power_source"] = "none"
    (side,) = sides(from_json(saved, "made.json"), [])
    assert {one.holds for one in side.groups[0].arms} == {"no sensor"}


def test_cells_under_a_tweak_set_are_no_arms_here() -> None:
    """They are compared with stock by `compare`: as copies of an arm they would make its A/A."""
    run = from_json(capped_run(SMALL), "made.json")
    cells = tuple(replace(one, tweakset="thp-always") if one.tweakset == "stock-again" else one for one in run.cells)
    tweaksets = {**run.tweaksets, "thp-always": TweakSet("thp-always", scripts=1)}
    (side,) = sides(replace(run, cells=cells, tweaksets=tweaksets), [])
    assert side.groups[0].again.value is None
    assert [one.n for one in side.groups[0].arms] == [5] * 4


def test_activity_is_never_called_power() -> None:
    side = only(replace(SMALL, backends=("cpu",), unit="cpu_s_per_s", power_source="none", tasks={1: ((0, 1.2),)}))
    assert answer(side)[0].startswith("ACTIVITY, not power")
    assert arm(side.groups[0], "steady").holds == "yes"


def test_the_baseline_is_powercap_or_the_first_that_has_figures_or_what_was_asked_for() -> None:
    assert only(SMALL).baseline == "powercap"
    lost = replace(POWERCAP, broken=dict.fromkeys(range(1, 6), ("skipped", "powercap needs a limit of power, which cpu lacks")))
    made = replace(SMALL, algorithms=(STEADY, MORAK, lost))
    side = only(made)
    assert side.baseline == "morak"
    assert arm(side.groups[0], "powercap").lost == {"skipped: powercap needs a limit of power, which cpu lacks.": 5}
    assert only(SMALL, "steady").baseline == "steady"
    with pytest.raises(UnknownName, match="no algorithm 'nobody' to compare with; it has morak, pctodl, powercap, steady"):
        said(SMALL, "nobody")


def test_the_shadow_optimiser_is_an_arm_of_its_own() -> None:
    (group,) = only(replace(SMALL, algorithms=(*ALGORITHMS, replace(PCTODL, shadow=True, rate=1000.0)))).groups
    assert arm(group, "pctodl + shadow").means[THROUGHPUT].value < arm(group, "pctodl").means[THROUGHPUT].value


def test_the_a_a_is_of_all_arms_and_their_copies() -> None:
    again = only(MadeCapped(blocks=5, iterations=12)).groups[0].again
    assert again.low is not None
    assert again.high is not None
    assert again.low < 0 < again.high


def test_a_a_that_differs_is_said_first() -> None:
    saved = capped_run(SMALL)
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        if record["tweakset"] == "stock-again":
            for row in record["report"]["iteration"]:
                row["throughput_images_per_s"] *= 1.1
    (side,) = sides(from_json(saved, "made.json"), [])
    assert any(line.startswith("A/A DIFFERS in task 6") and "+10." in line for line in answer(side))


def test_a_simulation_that_repeats_itself_to_the_last_digit_is_no_evidence_of_quiet() -> None:
    side = only(replace(SMALL, alike=True))
    assert any("the same to the last digit" in line for line in answer(side))
    assert only(replace(SMALL, again=False)).groups[0].again.value is None


def test_predictions_are_held_against_what_ran_as_asked() -> None:
    made = replace(SMALL, algorithms=(POWERCAP, STEADY, replace(PCTODL, refused=("sm_mhz: the driver refused 1400 MHz",))))
    (group,) = only(made).groups
    (rate, reading) = arm(group, "steady").foretold
    assert rate.bias == pytest.approx(0.03)
    assert rate.error == pytest.approx(0.03)
    assert rate.n == 2 * 5 * 6
    assert reading.bias == pytest.approx(0)
    assert arm(group, "pctodl").foretold == ()
    assert arm(group, "pctodl").refused == {"sm_mhz: the driver refused 1400 MHz": 120}


def test_a_clock_that_was_another_than_asked_for_is_counted_and_no_prediction_is_held_against_it() -> None:
    """A GPU at its limit runs at 1200 MHz where 1400 were set, and no call failed."""
    saved = capped_run(replace(SMALL, algorithms=(POWERCAP, STEADY)))
    for benchmark in saved["benchmarks"]:
        if "steady" in benchmark["extra_info"]["workload"]:
            for row in benchmark["extra_info"]["report"]["iteration"][:8]:
                row["actual"] = row["asked"] | {"sm_mhz": row["asked"]["sm_mhz"] * 0.9}
    (side,) = sides(from_json(saved, "made.json"), [])
    found = arm(side.groups[0], "steady")
    assert found.astray == 2 * 5 * 8
    assert found.foretold[0].n == 2 * 5 * 4
    assert ("clocks:", "steady: other than asked for in 80 iterations, and not refused.") in of_group(side.groups[0])


def test_processes_that_ended_and_caps_that_nothing_keeps_are_told() -> None:
    odd = replace(STEADY, lost=("oom: a batch of 64 does not fit",), infeasible="Task 6, a cap of 60 W cannot be kept to.")
    (group,) = only(replace(SMALL, algorithms=(POWERCAP, odd))).groups
    assert arm(group, "steady").crashed == {"oom: a batch of 64 does not fit": 120}
    assert arm(group, "steady").infeasible == {"Task 6, a cap of 60 W cannot be kept to.": 10}
    assert ("infeasible:", "steady: 10 cells: Task 6, a cap of 60 W cannot be kept to.") in of_group(group)
    assert ("process:", "steady: 120 iterations: oom: a batch of 64 does not fit.") in of_group(group)


def test_the_front_has_who_is_not_beaten() -> None:
    """Steady has most from least but for pctodl, which draws more and has more; morak draws most and has less."""
    (group,) = only(SMALL).groups
    assert {one.name for one in group.arms if one.front} == {"steady", "pctodl"}


def test_all_tasks_together_count_alike() -> None:
    """Better by a half on one task and worse by a third on the other is no difference: log 1.5 = -log(1/1.5)."""
    fast, slow = (Algorithm("steady", rate, 0.98, 1.0) for rate in (1350.0, 600.0))
    made = MadeCapped(blocks=6, iterations=12, algorithms=(POWERCAP,))
    saved = capped_run(replace(made, algorithms=(POWERCAP, fast)))
    other = capped_run(replace(made, algorithms=(POWERCAP, slow)))
    told = {one["extra_info"]["id"]: one["extra_info"]["report"] for one in other["benchmarks"]}
    for one in saved["benchmarks"]:
        if "task=13" in one["extra_info"]["workload"]:
            one["extra_info"]["report"] = told[one["extra_info"]["id"]]
    (side,) = sides(from_json(saved, "made.json"), [])
    steady = next(one for one in side.together if one.name == "steady")
    assert steady.tasks == 2
    assert steady.throughput.value == pytest.approx(0, abs=0.01)
    assert steady.held == (2, 2)


def test_back_ends_that_measured_nothing_are_named() -> None:
    """A cell says `gpu-full` and none of them ran: no figure of it, and a line."""
    saved = capped_run(replace(SMALL, backends=("replay", "gpu-full")))
    ours = saved["deeptweak"]
    saved["benchmarks"] = [one for one in saved["benchmarks"] if "gpu-full" not in one["extra_info"]["workload"]]
    for cell in ours["cells"]:
        if "gpu-full" in cell["workload"]:
            cell |= {"outcome": "skipped", "reason": "gpu-full only with --allow-gpu-changes"}
    refused: list[str] = []
    (side,) = sides(from_json(saved, "made.json"), refused)
    assert side.backend == "replay"
    assert refused == ["back-end gpu-full: 40 cells: gpu-full only with --allow-gpu-changes."]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("cap", 0.0, "above 0"),
        ("measured_s", None, "measured_s"),
        ("above_cap_s", 4.0, "of 3 s measured"),
        ("above_102_s", 2.9, "above 1.02 times"),
        ("power_mean", -5.0, "below 0"),
        ("power_mean", "hot", "finite number"),
        ("tenants", [{"images": "many"}], "images"),
        ("tenants", [{"images": 10.0, "over_slo_share": 1.5}], "over_slo_share"),
        ("iteration", 0, "do not rise"),
        ("cap_unit", 3, "a text"),
    ],
)
def test_a_row_that_cannot_be_is_refused_with_its_place(field: str, value: object, words: str) -> None:
    saved = capped_run(SMALL)
    record = saved["benchmarks"][0]["extra_info"]
    record["report"]["iteration"][4] |= {"above_cap_s": 1.0, "above_102_s": 0.0, field: value}
    refused: list[str] = []
    (side,) = sides(from_json(saved, "made.json"), refused)
    assert words in refused[0]
    assert record["id"] in refused[0]
    assert sum(one.n for one in side.groups[0].arms) == 20  # its copy stands for the block


def test_a_cell_without_rows_is_left_out_and_named() -> None:
    saved = capped_run(SMALL)
    record = saved["benchmarks"][0]["extra_info"]
    record["report"]["iteration"] = []
    refused: list[str] = []
    sides(from_json(saved, "made.json"), refused)
    assert "has no row" in refused[0]


def test_what_cannot_be_compared_says_why() -> None:
    """Two blocks are too few; a task that the baseline did not run has nothing to be held against."""
    (group,) = only(replace(SMALL, blocks=2)).groups
    assert dict(of_group(group))["no verdict:"].startswith("morak, pctodl, steady: 2 complete pairs of 2, at least 3 are needed")
    odd = replace(POWERCAP, broken=dict.fromkeys(range(1, 6), ("skipped", "it is not there")))
    side = only(replace(SMALL, algorithms=(STEADY, odd)), "powercap")
    assert any(line.startswith("Not compared with powercap: steady: ") and "it is not there" in line for line in answer(side))
    assert not any("No difference" in line for line in answer(side))


def without(saved: JSON, algorithm: str, blocks: set[int], names: tuple[str, ...], task: str = "task=") -> None:
    """Take readings out of one steady iteration of an algorithm in some blocks."""
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        if f"algorithm={algorithm}" in record["workload"] and task in record["workload"] and record["block"] in blocks:
            record["report"]["iteration"][-1] |= dict.fromkeys(names)


def violates(saved: JSON, algorithm: str, blocks: set[int], task: str = "task=") -> None:
    """Put all of an algorithm's time above 1.02 times the cap in some blocks."""
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        if f"algorithm={algorithm}" in record["workload"] and task in record["workload"] and record["block"] in blocks:
            for row in record["report"]["iteration"]:
                row |= {"above_cap_s": row["measured_s"], "above_102_s": row["measured_s"]}


def test_a_lost_reading_makes_nobody_hold_the_cap() -> None:
    """All the time above it in three blocks of five, and a reading of each of these is lost: the other two show nothing."""
    saved = capped_run(SMALL)
    violates(saved, "steady", {1, 2, 3})
    without(saved, "steady", {1, 2, 3}, SENSED)
    (side,) = sides(from_json(saved, "made.json"), [])
    found = arm(side.groups[0], "steady")
    assert found.holds == "not shown"
    assert found.unread[ABOVE_102] == 3
    lines = answer(side)
    assert any(line.startswith("Not shown to hold") and "of 2 blocks; 3 of 5 lack readings" in line for line in lines)
    assert not any(line.startswith("Holds the cap") and "steady (" in line for line in lines)
    (told,) = [line for head, line in of_group(side.groups[0]) if head == "missing:"]
    assert told.startswith("steady: 3 of 5 blocks without >1.02 cap, >cap, above a minute, whole >1.02, longest, worst, power, energy")
    page = render(from_json(saved, "made.json"), [side])
    assert "n=2" in page
    assert "≥" in page
    assert not found.front


def test_blocks_that_lack_readings_can_still_show_that_the_cap_is_not_held() -> None:
    saved = capped_run(SMALL)
    violates(saved, "steady", {1, 2, 3, 4, 5})
    without(saved, "steady", {1, 2}, SENSED)
    (side,) = sides(from_json(saved, "made.json"), [])
    assert arm(side.groups[0], "steady").holds == "no"


def test_a_sensor_whose_readings_are_all_lost_is_no_missing_sensor() -> None:
    saved = capped_run(SMALL)
    without(saved, "steady", {1, 2, 3, 4, 5}, SENSED)
    (side,) = sides(from_json(saved, "made.json"), [])
    assert arm(side.groups[0], "steady").holds == "not shown"
    assert any("steady (no figure, of 0 blocks; 5 of 5 lack readings)" in line for line in answer(side))


def test_a_block_in_which_nothing_was_done_is_in_no_mean_of_a_rate_and_is_counted() -> None:
    saved = capped_run(SMALL)
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        if "algorithm=steady" in record["workload"] and record["block"] == 2:
            for row in record["report"]["iteration"]:
                row["throughput_images_per_s"] = 0.0
    (side,) = sides(from_json(saved, "made.json"), [])
    found = arm(side.groups[0], "steady")
    assert (found.unread[THROUGHPUT], found.means[THROUGHPUT].n) == (1, 4)


def test_the_cap_is_held_over_all_tasks_of_an_arm_and_not_over_those_of_the_baseline() -> None:
    """Powercap was skipped in task 13, and there steady is above the cap all the time: half of all its time."""
    saved = capped_run(replace(SMALL, tasks={6: ((0, 130.0),), 13: ((0, 170.0),)}))
    violates(saved, "steady", {1, 2, 3, 4, 5}, "task=13")
    skipped = {
        one["extra_info"]["id"]
        for one in saved["benchmarks"]
        if "task=13" in one["extra_info"]["workload"] and "algorithm=powercap" in one["extra_info"]["workload"]
    }
    saved["benchmarks"] = [one for one in saved["benchmarks"] if one["extra_info"]["id"] not in skipped]
    for cell in saved["deeptweak"]["cells"]:
        if cell["id"] in skipped:
            cell |= {"outcome": "skipped", "reason": "it needs a limit of power"}
    (side,) = sides(from_json(saved, "made.json"), [])
    found = next(one for one in side.together if one.name == "steady")
    assert found.holds == "no"
    assert found.above is not None
    assert found.above.value == pytest.approx(0.5, abs=0.02)
    assert (found.tasks, found.held) == (1, (1, 2))
    assert any(line.startswith("Does not hold the cap") and "held in 1 of 2 tasks" in line for line in answer(side))


def test_a_lost_reading_in_one_task_keeps_the_whole_from_being_held() -> None:
    saved = capped_run(replace(SMALL, tasks={6: ((0, 130.0),), 13: ((0, 170.0),)}))
    violates(saved, "steady", {1, 2}, "task=13")
    without(saved, "steady", {1, 2}, SENSED, "task=13")
    (side,) = sides(from_json(saved, "made.json"), [])
    found = next(one for one in side.together if one.name == "steady")
    assert (found.holds, found.lacking) == ("not shown", 2)
    assert any("of 3 blocks; 2 of 5 lack readings in a task; held in 1 of 2 tasks" in line for line in answer(side))


def test_another_run_is_refused_with_what_to_do() -> None:
    with pytest.raises(Refused, match="bench_power_cap"):
        sides(from_json(saved_run(Made()), "made.json"), [])
