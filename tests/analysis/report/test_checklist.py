"""Twelve rules, each of which a run can keep and break; breaking one flips it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.load import from_json, load
from analysis.report.checklist import RULES, ReportRule, Subject, checklist
from tests.analysis.report.pages import SWAPPINESS, read, subject
from tests.deeptweak_like import SYSCTLS, Like, directory
from tests.stock_files import benchmark, document, times
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


FASTER = Arm("faster", 0.1, SWAPPINESS)
LOST = replace(FASTER, broken={2: ("failed", "killed")})
MADE = Made(arms=(STOCK, AGAIN, FASTER), blocks=8)
MACHINE = {"cpu_count": 2, "mem_total_bytes": 2**33, "cmdline": "quiet", "os": "Debian", "python_packages": {"torch": "2.15.0"}}
COMMIT = {"id": "82bc017", "dirty": False}


def of(made: Made = MADE, *changes: Callable[[JSON], None]) -> Subject:
    """What the rules are asked about: a run that tells everything a run of ours tells, changed on the way."""

    def change(saved: JSON) -> None:
        saved["machine_info"]["deeptweak"] |= MACHINE
        saved["commit_info"] = dict(COMMIT)
        for one in saved["benchmarks"]:
            one["extra_info"]["workload_facts"] |= {"cores_allowed": 2, "cpu_s_covers": "all threads of the process"}
        for one in changes:
            one(saved)

    return subject(read(made, change))


kept = cache(of)  # the run that keeps the rules


def rule(number: int, told: Subject) -> ReportRule:
    return checklist(told)[number - 1]


def last(**changed: object) -> Subject:
    """The run that keeps the rules, but its last comparison changed."""
    told = kept()
    return replace(told, comparisons=(*told.comparisons[:-1], replace(told.comparisons[-1], **changed)))  # type: ignore[arg-type]  # its fields


def cells(**changed: object) -> Subject:
    """The same, its first cell changed."""
    run = kept().run
    return subject(replace(run, cells=(replace(run.cells[0], **changed), *run.cells[1:])))  # type: ignore[arg-type]  # its fields


def workload(**params: object) -> Callable[[JSON], None]:
    return lambda saved: saved["deeptweak"]["workloads"]["cnn_train"]["params"].update(params)


def cut(saved: JSON) -> None:
    """The last three cells never ran."""
    lost = {one["id"] for one in saved["deeptweak"]["cells"][-3:]}
    saved["deeptweak"] |= {"interrupted": True, "cells": saved["deeptweak"]["cells"][:-3]}
    saved["benchmarks"] = [one for one in saved["benchmarks"] if one["extra_info"]["id"] not in lost]


def stall(saved: JSON) -> None:
    """One block of the tweak set took three times as long."""
    one = next(one["extra_info"] for one in saved["benchmarks"] if one["extra_info"]["tweakset"] == "faster")
    one["steps"]["wall_s"] = [3 * value for value in one["steps"]["wall_s"]]
    del one["metrics"]  # or the file would contradict itself


def on_gpu(saved: JSON) -> None:
    for one in saved["benchmarks"]:
        one["extra_info"]["workload_facts"]["device"] = "NVIDIA H200"


def no_base() -> Subject:
    """One run an arm: a difference was seen, and nothing else is known."""
    told = last(primary=None, second=None, observed=0.1)
    return replace(told, comparisons=told.comparisons[-1:])


def gain_of(told: Subject) -> float:
    return told.compared[-1][1].gain


def moved(told: Subject, **changed: float) -> object:
    """The effect of the last comparison with other numbers."""
    return replace(told.compared[-1][1], **changed)  # type: ignore[arg-type]  # its fields


# Case → number of the rule, what becomes of it, and the run.
CASES: dict[str, tuple[int, str, Callable[[], Subject]]] = {
    "the base is not known": (1, "not met", no_base),
    "interrupted": (2, "not met", lambda: of(MADE, cut)),
    "a cell failed and says why": (2, "met", lambda: of(replace(MADE, arms=(STOCK, AGAIN, LOST)))),
    "a throughput is no ratio of sums": (3, "not met", lambda: cells(metrics={"throughput_samples_per_s": 500.0})),
    "a rate without its times": (3, "not met", lambda: cells(steps=None, metrics={"throughput_samples_per_s": 1.0})),
    "a gain is an average of ratios": (4, "not met", lambda: last(primary=moved(kept(), gain=gain_of(kept()) + 0.001))),
    "one block": (5, "not met", lambda: of(replace(MADE, blocks=1))),
    "one stalled block": (6, "not met", lambda: of(MADE, stall)),
    "arms one after the other": (7, "not met", lambda: of(replace(MADE, interleaved=False))),
    "no control": (7, "not met", lambda: of(replace(MADE, arms=(STOCK, FASTER)))),
    "a control that differs": (7, "not met", lambda: of(replace(MADE, arms=(STOCK, Arm("stock-again", 0.2), FASTER)))),
    "a control that the effects doubt": (7, "not met", lambda: replace(kept(), doubted=("cnn_train",))),
    "one summary only": (8, "not met", lambda: last(second=None)),
    "summaries that contradict each other": (8, "met", lambda: last(second=moved(kept(), gain=-0.1, low=-0.12, high=-0.08))),
    "an edited source": (9, "not met", lambda: of(MADE, lambda saved: saved["commit_info"].update(dirty=True))),
    "several processes": (10, "not met", lambda: of(MADE, workload(ranks=2))),
    "several processes and how they meet": (10, "met", lambda: of(MADE, workload(ranks=2, backend="gloo"))),
    "work on a GPU": (11, "not met", lambda: of(MADE, on_gpu)),
    "no picture": (12, "not met", lambda: replace(kept(), pictures={"forest": "nothing to draw"})),
    "half of the pictures": (12, "met", lambda: replace(kept(), pictures={"forest": None, "energy": "no GPU"})),
}  # fmt: skip


def test_there_are_twelve_in_their_own_order_and_a_well_made_run_keeps_all_but_one() -> None:
    """Work in one process has no times to bring together."""
    rules = checklist(kept())
    assert [(one.number, one.says) for one in rules] == [(number, says) for number, (says, _) in enumerate(RULES, 1)]
    assert [one.number for one in rules if one.state != "met"] == [10]
    assert rules[9].state == "not applicable"


def test_nothing_is_ticked_for_a_run_that_compared_nothing() -> None:
    """But what holds of its data all the same: nothing was left out, rates are rates, the set-up is told, a picture was drawn."""
    states = {one.number: one.state for one in checklist(of(Made(arms=(STOCK,))))}
    assert states == {number: "met" if number in {2, 3, 9, 12} else "not applicable" for number in range(1, 13)}


def test_a_broken_rule_says_what_broke_it(snapshot: SnapshotAssertion) -> None:
    found = {case: rule(number, make()) for case, (number, _, make) in CASES.items()}
    assert {case: one.state for case, one in found.items()} == {case: state for case, (_, state, _) in CASES.items()}
    kept_reasons = {f"kept: {one.number}": one.reason for one in checklist(kept())}
    assert kept_reasons | {case: f"{one.number}. {one.state}: {one.reason}" for case, one in found.items()} == snapshot


def test_6_among_many_comparisons_one_in_twenty_may_look_odd() -> None:
    """Of 41 well-behaved ones Shapiro and Francia call two or so not normal at 5 %; Holm's adjustment knows how many were asked."""
    arms = [Arm(f"idle-{at}", requested=SWAPPINESS) for at in range(40)]
    told = rule(6, of(Made(arms=(STOCK, AGAIN, *arms), blocks=8, steps=3)))
    assert told.state == "met"
    assert "41 comparisons" in told.reason


@pytest.mark.parametrize(("fact", "named"), [("cmdline", "command line"), ("os", "distribution"), ("mem_total_bytes", "memory")])
def test_9_a_fact_that_is_missing_is_named(fact: str, named: str) -> None:
    broken = rule(9, of(MADE, lambda saved: saved["machine_info"]["deeptweak"].pop(fact)))
    assert broken.state == "not met"
    assert named in broken.reason


def test_11_processor_time_bounds_what_can_be_gained() -> None:
    """Synthetic steps take 1.9 s of processor time a second of 2 processors: 1 / 0.95 - 1 = 5.3 % to gain."""
    assert "5.3 %" in rule(11, kept()).reason


def test_files_of_others_keep_few(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """One run a configuration: no interval, no replicates, nothing known of what was planned."""
    run = load(directory(tmp_path / "one_node", Like("base"), Like("exp1", manifest=SYSCTLS)))
    rules = {one.number: one for one in checklist(subject(run))}
    assert [number for number, one in rules.items() if one.state == "met"] == [1, 3, 12]
    assert {number: one.reason for number, one in rules.items() if one.state == "not met"} == snapshot
    stock = from_json(document([benchmark("test_sort", times(1))]), "0001_x.json")
    assert {one.number for one in checklist(subject(stock)) if one.state == "met"} == {3, 12}
