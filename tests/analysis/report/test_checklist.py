"""Twelve rules, each of which a run can keep and break; breaking one flips it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json, load
from analysis.report.checklist import RULES, checklist
from analysis.report.subject import Subject
from analysis.verdict import ONE_RUN
from tests.analysis.report.pages import SWAPPINESS, read, subject
from tests.deeptweak_like import SYSCTLS, Like, directory
from tests.stock_files import benchmark, document, times
from tests.synthetic import AGAIN, STOCK, Arm, Made

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from analysis.report.checklist import Rule
    from tests.synthetic import JSON

FASTER = Arm("faster", 0.1, SWAPPINESS)
MADE = Made(arms=(STOCK, AGAIN, FASTER), blocks=8)
MACHINE = {"cpu_count": 2, "mem_total_bytes": 2**33, "cmdline": "quiet", "os": "Debian", "python_packages": {"torch": "2.15.0"}}
COMMIT = {"id": "82bc017", "dirty": False}


def documented(saved: JSON) -> None:
    """Tell everything that a run of ours tells."""
    saved["machine_info"]["deeptweak"] |= MACHINE
    saved["commit_info"] = dict(COMMIT)
    for one in saved["benchmarks"]:
        one["extra_info"]["workload_facts"] |= {"cores_allowed": 2, "cpu_s_covers": "all threads of the process"}


def rule(number: int, made: Made = MADE, *changes: Callable[[JSON], None]) -> Rule:
    def change(saved: JSON) -> None:
        documented(saved)
        for one in changes:
            one(saved)

    return checklist(subject(read(made, change)))[number - 1]


def workload(name: str, value: object) -> Callable[[JSON], None]:
    def change(saved: JSON) -> None:
        saved["deeptweak"]["workloads"]["cnn_train"]["params"][name] = value

    return change


def test_there_are_twelve_in_their_own_order() -> None:
    rules = checklist(subject(read(MADE)))
    assert [one.number for one in rules] == list(range(1, 13))
    assert [one.says for one in rules] == [says for says, _ in RULES]


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12])
def test_a_well_made_run_keeps_the_rule(number: int) -> None:
    kept = rule(number)
    assert (kept.state, kept.reason[-1]) == ("met", "."), kept.reason


@pytest.mark.parametrize("number", range(1, 13))
def test_nothing_is_ticked_for_a_run_that_compared_nothing(number: int) -> None:
    """But what holds of its data all the same: nothing was left out, rates are rates, the set-up is told, a picture was drawn."""
    state = rule(number, Made(arms=(STOCK,))).state
    assert state == ("met" if number in {2, 3, 9, 12} else "not applicable")


def test_1_the_base_is_told_in_absolute_numbers() -> None:
    run = read(MADE)
    effect = subject(run).compared[-1][1]
    assert f"cnn_train: stock, {effect.baseline:.4g} samples/s" in rule(1).reason


def test_1_a_base_that_is_not_known_is_missed() -> None:
    told = subject(read(MADE))
    alone = replace(told.comparisons[-1], primary=None, second=None, observed=0.1)
    lost = replace(told, comparisons=(alone,))
    assert (checklist(lost)[0].state, checklist(lost)[0].reason) == (
        "not met",
        "The value of stock is not known for cnn_train × faster.",
    )


def test_2_an_interrupted_run_reports_a_subset() -> None:
    def cut(saved: JSON) -> None:
        saved["deeptweak"]["interrupted"] = True
        lost = {one["id"] for one in saved["deeptweak"]["cells"][-3:]}
        saved["deeptweak"]["cells"] = saved["deeptweak"]["cells"][:-3]
        saved["benchmarks"] = [one for one in saved["benchmarks"] if one["extra_info"]["id"] not in lost]

    broken = rule(2, MADE, cut)
    assert (broken.state, broken.reason) == ("not met", "3 of 24 planned cells were never run (the run was interrupted).")


def test_2_cells_that_failed_are_no_subset_while_their_reason_is_told() -> None:
    arm = replace(FASTER, broken={2: ("failed", "out of memory")})
    assert (
        rule(2, replace(MADE, arms=(STOCK, AGAIN, arm))).reason
        == "1 of 24 planned cells were not measured; each is listed with its reason."
    )


def test_3_a_throughput_that_is_no_ratio_of_sums_is_found() -> None:
    run = read(MADE)
    cells = tuple(replace(one, metrics={**one.metrics, "throughput_samples_per_s": 500.0}) if one.order == 0 else one for one in run.cells)
    broken = checklist(subject(replace(run, cells=cells)))[2]
    assert (broken.state, broken.reason) == ("not met", f"The throughput of {cells[0].id} is not samples / total time.")


def test_3_a_rate_without_its_times_cannot_be_checked() -> None:
    run = read(MADE)
    cells = tuple(replace(one, steps=None, metrics={"throughput_samples_per_s": 1.0 + one.order}) for one in run.cells)
    broken = checklist(subject(replace(run, cells=cells)))[2]
    assert broken.state == "not met"
    assert broken.reason.endswith("cannot be checked: no step times are kept.")


def test_4_a_gain_that_is_an_average_of_ratios_is_found() -> None:
    told = subject(read(MADE))
    (one, effect) = told.compared[-1]
    wrong = replace(one, primary=replace(effect, gain=effect.gain + 0.001))
    broken = checklist(replace(told, comparisons=(*told.comparisons[:-1], wrong)))[3]
    assert (broken.state, broken.reason) == ("not met", "The gain of cnn_train × faster is not the ratio of its arms' geometric means.")


def test_5_one_block_has_no_interval() -> None:
    broken = rule(5, replace(MADE, blocks=1))
    assert broken.state == "not met"
    assert broken.reason == "No comparison has an interval (1 block(s)): how far two runs of the same differ is not known."


def test_6_one_stalled_block_is_not_normal() -> None:
    def stall(saved: JSON) -> None:
        one = next(one["extra_info"] for one in saved["benchmarks"] if one["extra_info"]["tweakset"] == "faster")
        one["steps"]["wall_s"] = [3 * value for value in one["steps"]["wall_s"]]
        del one["metrics"]  # or the file would contradict itself

    broken = rule(6, MADE, stall)
    assert broken.state == "not met"
    assert broken.reason.startswith("The block ratios are not normal for cnn_train × faster (p ")


def test_6_among_many_comparisons_one_in_twenty_may_look_odd() -> None:
    """Of 41 well-behaved ones Shapiro and Wilk call two or so not normal at 5 %; Holm's adjustment knows how many were asked."""
    arms = [Arm(f"idle-{at}", requested=SWAPPINESS) for at in range(40)]
    told = rule(6, Made(arms=(STOCK, AGAIN, *arms), blocks=8, steps=3))
    assert told.state == "met"
    assert "log ratios of 41 comparisons" in told.reason


def test_7_arms_one_after_the_other_confound_the_tweak_with_drift() -> None:
    broken = rule(7, replace(MADE, interleaved=False))
    assert (broken.state, broken.reason) == (
        "not met",
        "The blocks of made_up were not run one after the other: drift is part of every difference.",
    )


def test_7_without_a_control_nobody_knows_what_the_machine_does_by_itself() -> None:
    broken = rule(7, replace(MADE, arms=(STOCK, FASTER)))
    assert broken.state == "not met"
    assert broken.reason.endswith("but no untouched control (stock-again) was run beside it.")


def test_7_a_control_that_differs_breaks_it() -> None:
    broken = rule(7, replace(MADE, arms=(STOCK, Arm("stock-again", 0.2), FASTER)))
    assert (broken.state, broken.reason) == ("not met", "The control differs from stock under cnn_train, though nothing was changed.")


def test_8_a_second_summary_that_is_missing_is_missed() -> None:
    told = subject(read(MADE))
    alone = tuple(replace(one, second=None) for one in told.comparisons)
    broken = checklist(replace(told, comparisons=alone))[7]
    assert (broken.state, broken.reason) == ("not met", "One summary only for cnn_train × stock-again, cnn_train × faster.")


def test_8_summaries_that_contradict_each_other_are_named() -> None:
    told = subject(read(MADE))
    one, effect = told.compared[-1]
    contrary = replace(one, second=replace(effect, gain=-0.1, low=-0.12, high=-0.08))
    assert "They contradict each other for cnn_train × faster: stalls decide there." in (
        checklist(replace(told, comparisons=(*told.comparisons[:-1], contrary)))[7].reason
    )


@pytest.mark.parametrize("fact", ["cmdline", "os", "mem_total_bytes"])
def test_9_a_fact_that_is_missing_is_named(fact: str) -> None:
    def forget(saved: JSON) -> None:
        del saved["machine_info"]["deeptweak"][fact]

    broken = rule(9, MADE, forget)
    named = {"cmdline": "boot command line", "os": "distribution", "mem_total_bytes": "memory"}[fact]
    assert (broken.state, broken.reason) == ("not met", f"Not recorded: {named}.")


def test_9_an_edited_source_cannot_be_had_again() -> None:
    def edited(saved: JSON) -> None:
        saved["commit_info"]["dirty"] = True

    assert rule(9, MADE, edited).reason == "Not recorded: source revision (82bc017+dirt was edited)."


def test_10_applies_to_several_processes_alone() -> None:
    assert rule(10).state == "not applicable"
    assert rule(10, MADE, workload("ranks", 2)).state == "not met"
    told = rule(10, MADE, workload("ranks", 2), workload("backend", "gloo"))
    assert (told.state, told.reason.startswith("Work in several processes: cnn_train: 2 ranks")) == ("met", True)


def test_11_processor_time_bounds_what_can_be_gained() -> None:
    """Synthetic steps take 1.9 s of processor time a second of 2 processors: 1 / 0.95 - 1 = 5.3 % to gain."""
    assert "if no processor ever waited: cnn_train 5.3 %" in rule(11).reason


def test_11_work_on_a_gpu_has_no_such_bound() -> None:
    def on_gpu(saved: JSON) -> None:
        for one in saved["benchmarks"]:
            one["extra_info"]["workload_facts"]["device"] = "NVIDIA H200"

    assert rule(11, MADE, on_gpu).reason == "No ideal time (roofline) is known for cnn_train."


def test_12_a_report_without_a_picture_breaks_it() -> None:
    run = read(MADE)
    told = subject(run)
    assert checklist(Subject(run, told.comparisons, {"forest": "nothing to draw"}))[11].state == "not met"
    half = checklist(Subject(run, told.comparisons, {"forest": None, "energy": "no GPU"}))[11]
    assert (half.state, half.reason) == ("met", "1 picture: forest; 1 could not be drawn, each says why.")


def test_a_foreign_file_keeps_few(tmp_path: Path) -> None:
    """One run a configuration: no interval, no replicates, nothing known of what was planned."""
    run = load(directory(tmp_path / "one_node", Like("base"), Like("exp1", manifest=SYSCTLS)))
    states = {one.number: one.state for one in checklist(subject(run))}
    assert [number for number, state in states.items() if state == "met"] == [1, 3, 12]
    reasons = {one.number: one.reason for one in checklist(subject(run))}
    assert ONE_RUN in reasons[5]
    assert ONE_RUN in reasons[7]
    assert states[2] == states[9] == "not met"


def test_a_stock_pytest_benchmark_file_too() -> None:
    run = from_json(document([benchmark("test_sort", times(1))]), "0001_x.json")
    assert {one.number for one in checklist(subject(run)) if one.state == "met"} == {3, 12}
