"""Plans from a pilot: the named blocks suffice, and the plan names its own limits."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.stats

from analysis.compare import compare
from analysis.load import from_json
from analysis.stats.power import blocks_needed
from analysis.studies.plan.plan import Goal, plan
from tests.analysis.answers import printed, refusals
from tests.made_designs import Keys, ablation, designed
from tests.made_switched import switched_run
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


SETTING = {"vm.swappiness": "1"}
GOAL = Goal(0.03)
# Ten arms in eight blocks, as a default run has; true spread of a log ratio: √2 · √(2 %² + 2 %²/12)
# = 2.944 %.
PILOT = Made(
    arms=(STOCK, AGAIN, *(Arm(f"idle-{at}", 0.0, SETTING) for at in range(8))),
    blocks=8,
    run_cv=0.02,
    step_cv=0.02,
)
NOISY = replace(PILOT, arms=PILOT.arms[:2], run_cv=0.5)
TRUE_SD = math.sqrt(2) * math.hypot(0.02, 0.02 / math.sqrt(12))


def planned(made: Made, goal: Goal = GOAL) -> Any:
    return plan(from_json(saved_run(made), "pilot"), goal).needs[0]


def test_pilots_name_the_blocks_that_are_needed() -> None:
    """Of 30 pilots the median is within 20 % of the true number; at least 25 intervals hold it."""
    true = blocks_needed(TRUE_SD, 0.03, 0.05 / 9)
    assert true is not None
    needs = [planned(replace(PILOT, seed=seed)) for seed in range(30)]
    assert np.median([need.blocks for need in needs]) == pytest.approx(true, rel=0.2)
    assert sum(need.blocks_low <= true <= need.blocks_high for need in needs) >= 25


def test_the_planned_blocks_find_the_effect_in_four_of_five_runs() -> None:
    """Pipeline: the median pilot's blocks in 60 runs with a true +3 %, Holm over 3 contrasts.

    Within the binomial 99 % band of 80 %; Holm calls a little more often than its first step, for
    which the plan is made.
    """
    pilot = replace(PILOT, arms=PILOT.arms[:4])
    named = sorted(planned(replace(pilot, seed=seed)).blocks for seed in range(9))[4]
    run = replace(
        pilot,
        arms=(STOCK, AGAIN, Arm("faster", 0.03, SETTING), Arm("idle", 0.0, SETTING)),
        blocks=named,
    )
    found = sum(
        one.verdict == "improved"
        for seed in range(60)
        for one in compare(from_json(saved_run(replace(run, seed=1000 + seed)), "trial"))
        if one.tweakset == "faster"
    )
    low, high = scipy.stats.binom.interval(0.99, 60, 0.8)
    assert low <= found <= high + 2


def test_the_spread_is_that_of_a_block_and_the_a_a_pair_is_apart() -> None:
    need = planned(PILOT)
    assert (need.arms, need.df, need.pilot_blocks, need.family) == (10, 63, 8, 9)
    assert need.log_sd == pytest.approx(TRUE_SD, rel=0.25)
    (again,) = (one for one in compare(from_json(saved_run(PILOT), "pilot")) if one.untouched)
    assert again.primary is not None
    assert need.aa_log_sd == again.primary.log_sd
    assert planned(replace(PILOT, arms=(STOCK, Arm("idle", 0.0, SETTING)))).aa_log_sd is None


def test_time_is_that_of_the_pilots_cells() -> None:
    """12 steps of 40 ms and 1 s per cell: with three arms, a block takes 3 · 1.48 s = 4.44 s."""
    assert planned(replace(PILOT, arms=PILOT.arms[:3])).block_s == pytest.approx(4.44, rel=0.02)


def test_what_a_given_number_of_blocks_would_see() -> None:
    """Four times the blocks see about half the effect."""
    few, many = planned(PILOT, replace(GOAL, blocks=20)), planned(PILOT, replace(GOAL, blocks=80))
    assert (few.mde_blocks, many.mde_blocks) == (20, 80)
    assert math.log1p(few.mde) / math.log1p(many.mde) == pytest.approx(2, rel=0.1)
    assert planned(PILOT).mde_blocks == 8


def test_pages(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_file(
        tmp_path,
        replace(PILOT, workloads=("cnn_train", "a_workload_with_a_rather_long_name")),
        "two.json",
    )
    saved_file(tmp_path, NOISY, "noisy.json")
    saved = saved_run(replace(PILOT, workloads=("cnn_train", "ddp_train")))
    lost = [
        cell
        for cell in saved["deeptweak"]["cells"]
        if cell["workload"] == "ddp_train" and cell["block"] > 2
    ]
    for cell in lost:
        cell.update(outcome="failed", reason="out of memory")
    gone = {cell["fullname"] for cell in lost}
    saved["benchmarks"] = [one for one in saved["benchmarks"] if one["fullname"] not in gone]
    Path("lost.json").write_text(json.dumps(saved))
    designed_pilot = designed("ablation", Keys({"a.b": 0.05, "c.d": 0.0}), ablation(2))
    designed_pilot["deeptweak"]["tweaksets"]["profile"]["path"] = "/srv/my sets/profile.yaml"
    designed_pilot["deeptweak"]["design"]["steps"] = 40
    Path("designed.json").write_text(json.dumps(designed_pilot))
    pages = {
        "designed": printed(capsys, "plan", "--effect", "3%", "designed.json").partition("next: ")[
            2
        ],
        "two workloads": printed(capsys, "plan", "--effect", "3%", "two.json"),
        "noisy": printed(capsys, "plan", "--effect", "0.01%", "noisy.json"),
        "one lost": printed(capsys, "plan", "--effect", "3%", "lost.json").split("\n\n")[-2],
    }
    assert (
        max(
            len(line)
            for page in pages.values()
            for line in page.partition("next: ")[0].splitlines()[1:]
        )
        <= 100
    )
    assert pages == snapshot


def test_what_cannot_be_planned_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_file(tmp_path, NOISY)
    saved_file(tmp_path, replace(PILOT, blocks=1), "one.json")
    saved_file(
        tmp_path,
        replace(
            PILOT, arms=(STOCK, Arm("ignored", requested=SETTING, observed={"vm.swappiness": "60"}))
        ),
        "ignored.json",
    )
    switched = switched_run()
    Path("switched.json").write_text(json.dumps(switched))
    cases: dict[str, tuple[str, ...]] = {
        "no percentage": ("--effect", "3", "run.json"),
        "power of 1": ("--effect", "3%", "--power", "1.0", "run.json"),
        "power of nearly 1": ("--effect", "3%", "--power", "0.9999999", "run.json"),
        "power of nan": ("--effect", "3%", "--power", "nan", "run.json"),
        "tiny effect": ("--effect", "0.0001%", "run.json"),
        "two blocks": ("--effect", "3%", "--blocks", "2", "run.json"),
        "one block": ("--effect", "3%", "one.json"),
        "not in force": ("--effect", "3%", "ignored.json"),
        "switched": ("--effect", "3%", "switched.json"),
    }
    assert refusals(capsys, {name: ("plan", *words) for name, words in cases.items()}) == snapshot


def test_a_plan_beyond_a_day_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """30 % scatter: 10 % takes minutes, 0.5 % 400 times as long; a day of blocks sees a middle."""
    made = replace(PILOT, arms=PILOT.arms[:3], run_cv=0.3)
    found = {
        gain: json.loads(
            printed(capsys, "plan", "--effect", gain, saved_file(tmp_path, made), "--json")
        )
        for gain in ("10%", "0.5%")
    }
    assert [one["on_this_machine"] for one in found.values()] == [True, False]
    assert (
        found["10%"]["days"]
        < 1
        < found["0.5%"]["days"]
        == pytest.approx(found["0.5%"]["total_s"] / 86_400)
    )
    in_a_day = found["0.5%"]["seen_in_a_day"]
    assert 0.005 < in_a_day < 0.1
    blocks = int(86_400 / found["0.5%"]["block_s"])
    assert planned(made, replace(GOAL, blocks=blocks)).mde == in_a_day
    text = printed(capsys, "plan", "--effect", "0.5%", saved_file(tmp_path, made))
    assert "Not on this machine" in text
    *_, following = text.splitlines()  # what a day can see, which is then planned
    assert json.loads(printed(capsys, *shlex.split(following)[4:], "--json"))["on_this_machine"]
    assert "--blocks=" not in text
