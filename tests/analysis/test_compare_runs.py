"""Comparing across saved runs: what differs between two runs is the tweak and everything else, and the reader is told so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.arms import Arm as Side
from analysis.arms import read_arm, side
from analysis.compare import Options, compare, compare_arms
from analysis.load import from_json
from analysis.pairing import ONE_RUN_AN_ARM
from analysis.stats.effect import two_sample_effect
from analysis.terms import Refused, UnknownName
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from analysis.terms import Cell

SWAPPINESS = {"vm.swappiness": "1"}
FAST = Arm("fast", 0.10, SWAPPINESS)


MADE = Made()


def arm(*seeds: int, tweakset: str | None = None, made: Made = MADE, edit: str = "") -> Side:
    """Runs that are alike but for their seeds, as one arm."""
    found = []
    for seed in seeds:
        saved = saved_run(replace(made, seed=seed))
        if edit:
            saved["machine_info"]["deeptweak"]["cpu_model"] = edit
        found.append(from_json(saved, f"run-{seed}.json"))
    return Side(f"runs {seeds}", tuple(found), tweakset)


def test_two_runs_are_one_unit_an_arm_whatever_their_blocks_say() -> None:
    """All that happened between the runs is in the difference, and one run an arm cannot show how much that is."""
    (one, _) = compare_arms(arm(1), [arm(2, made=Made(base_s=0.044))])
    assert (one.verdict, one.reason, one.primary) == ("not comparable", ONE_RUN_AN_ARM, None)
    assert one.observed == pytest.approx(0.040 / 0.044 - 1, abs=0.02)


def test_three_runs_an_arm_are_compared_by_their_means() -> None:
    """Base 40 ms, candidate 36 ms: 11 % faster, on 3 + 3 run means, with the caveat that drift is confounded."""
    (stock, again) = compare_arms(arm(1, 2, 3), [arm(4, 5, 6, made=Made(base_s=0.036))])
    assert stock.primary
    assert (stock.verdict, stock.primary.design, stock.primary.n_baseline, stock.primary.n_candidate) == ("improved", "two-sample", 3, 3)
    assert stock.primary.low < 0.111 < stock.primary.high
    assert "drift between them is part of the difference" in " ".join(stock.notes)
    assert again.family == 2


def test_one_candidate_run_is_judged_by_the_spread_of_the_baselines() -> None:
    """Pooled t with n - 1 degrees of freedom: what a stored series of baselines is good for."""
    (one, _) = compare_arms(arm(1, 2, 3, 4), [arm(5, made=Made(base_s=0.060))])
    assert one.primary
    assert (one.primary.df, one.primary.n_candidate, one.verdict) == (3, 1, "regressed")


def test_relative_to_a_common_control_drift_between_runs_cancels() -> None:
    """The second run is 30 % slower as a whole; its tweak set is 10 % faster than its own stock in both runs: no difference."""
    made = Made(arms=(STOCK, AGAIN, FAST), blocks=10)
    drifted = replace(made, base_s=0.052)
    comparisons = compare_arms(arm(1, made=made), [arm(2, made=drifted)], Options(relative_to="stock"))
    fast = next(one for one in comparisons if one.tweakset == "fast")
    assert fast.primary
    assert fast.verdict != "regressed"
    assert fast.primary.low < 0 < fast.primary.high
    assert any("stock itself moved by -2" in note and "which is not judged" in note for note in fast.notes)
    assert "stock" not in [one.tweakset for one in comparisons]


def test_relative_to_a_control_a_changed_tweak_is_found() -> None:
    made = Made(arms=(STOCK, FAST), blocks=10)
    slower = replace(made, base_s=0.052, arms=(STOCK, replace(FAST, gain=-0.05)))
    (one,) = compare_arms(arm(1, made=made), [arm(2, made=slower)], Options(relative_to="stock"))
    assert one.primary
    assert one.verdict == "regressed"
    assert one.primary.low < 0.95 / 1.10 - 1 < one.primary.high


def test_a_control_that_failed_in_a_block_is_named() -> None:
    made = Made(arms=(replace(STOCK, broken={2: ("failed", "killed")}), FAST))
    (one,) = compare_arms(arm(1, made=made), [arm(2, made=made)], Options(relative_to="stock"))
    assert one.reason.endswith("stock was not measured in its block, so nothing to be relative to.")


def test_other_hardware_is_no_comparison() -> None:
    (one, _) = compare_arms(arm(1, 2, 3), [arm(4, 5, 6, edit="Another CPU")])
    assert (one.verdict, one.reason) == ("not comparable", "other hardware: cpu_model Another CPU against Made-up CPU.")


def test_runs_that_declared_different_metrics_are_no_comparison() -> None:
    other = Made(primaries={"cnn_train": ("step_time_p10_s", "lower")})
    (one, _) = compare_arms(arm(1, 2, 3), [arm(4, 5, 6, made=other)])
    assert one.reason == "the runs declared different primary metrics: throughput_samples_per_s and step_time_p10_s."


def test_runs_without_a_workload_in_common_are_refused() -> None:
    with pytest.raises(Refused, match=r"runs \(1,\) has no workload and tweak set in common with runs \(2,\)\."):
        compare_arms(arm(1), [arm(2, made=Made(workloads=("lora_finetune",)))])


def test_work_of_another_size_is_no_comparison() -> None:
    (one, _) = compare_arms(arm(1, 2, 3), [arm(4, 5, 6, made=Made(steps=20))])
    assert one.reason.startswith("the cells did not do the same work: on cpu 14 steps of 112 samples")


def lossy(of: Side, tweakset: str) -> Side:
    """The same runs; under this tweak set the first job of each stream failed."""

    def told(cell: Cell) -> Cell:
        many = len(cell.steps.wall_s) if cell.steps else 0
        outcomes = ("failed" if cell.tweakset == tweakset and at == 0 else "done" for at in range(many))
        return replace(cell, report={"job": tuple({"job": at, "outcome": outcome} for at, outcome in enumerate(outcomes))})

    return replace(of, runs=tuple(replace(run, cells=tuple(map(told, run.cells))) for run in of.runs))


def test_runs_that_lost_jobs_are_no_comparison() -> None:
    found = compare_arms(lossy(arm(1, 2, 3), "stock"), [arm(4, 5, 6)])
    reasons = {one.tweakset: one.reason for one in found}
    assert "jobs were not done under stock" in reasons["stock"]
    assert "jobs were not done" not in reasons["stock-again"]


def test_what_runs_are_relative_to_may_not_have_lost_jobs_either() -> None:
    """A control that failed early makes whatever stands over it look slow, or the other way round."""
    made = Made(arms=(STOCK, AGAIN, FAST))
    base, candidate = arm(1, made=made), lossy(arm(2, made=made), "stock")
    found = compare_arms(base, [candidate], Options(relative_to="stock"))
    assert found
    assert all("jobs were not done under stock" in one.reason for one in found)


def test_tweak_sets_of_one_run_are_paired_by_block() -> None:
    both = arm(1, made=Made(arms=(STOCK, AGAIN, FAST)))
    (one,) = compare_arms(replace(both, tweakset="stock-again"), [replace(both, tweakset="fast")])
    assert (one.baseline, one.tweakset, one.pairs, one.verdict) == ("stock-again", "fast", 6, "improved")


def test_a_path_and_a_tweak_set_name_an_arm(tmp_path: Path) -> None:
    path = saved_file(tmp_path, Made(arms=(STOCK, FAST)))
    refused: list[str] = []
    assert read_arm(f"{path}:fast", refused).tweakset == "fast"
    assert read_arm(str(path), refused).tweakset is None
    with pytest.raises(UnknownName, match="no tweak set 'slow'; it has fast, stock"):
        read_arm(f"{path}:slow", refused)
    assert refused == []


def test_a_glob_is_one_arm_and_an_empty_one_an_error(tmp_path: Path) -> None:
    for seed in (1, 2):
        saved_file(tmp_path, Made(seed=seed), f"old-{seed}.json")
    assert len(read_arm(f"{tmp_path}/old-*.json", []).runs) == 2
    assert len(read_arm(str(tmp_path), []).runs) == 2
    with pytest.raises(Refused, match="matches no file"):
        read_arm(f"{tmp_path}/new-*.json", [])


def test_a_copy_of_a_run_is_no_second_run(tmp_path: Path) -> None:
    for name in ("one.json", "other.json"):
        saved_file(tmp_path, Made(), name)
    with pytest.raises(Refused, match="a copy is no second measurement"):
        read_arm(str(tmp_path), [])


def test_a_damaged_file_is_named_and_the_rest_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = [saved_file(tmp_path, Made(seed=seed), f"old-{seed}.json") for seed in (1, 2, 3)]
    new = saved_file(tmp_path, Made(seed=9), "new.json")
    base[1].write_text(base[1].read_text()[:-100])
    assert main(["compare", f"{tmp_path}/old-*.json", str(new), "--json"]) == 0
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert err.startswith(f"refused: {base[1]}: not JSON at line 1")
    assert len(said["refused"]) == 1
    assert {one["verdict"] for one in said["comparisons"]} == {"not comparable"}
    assert said["comparisons"][0]["reason"].startswith("2 against 1: at least 3")


def test_hundreds_of_comparisons_are_one_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A count of each verdict, the differences shown, the commonest reasons; `--all` gives the rows."""
    arms = (STOCK, *(Arm(f"set-{at:02}", 0.5 if at < 20 else 0.0, SWAPPINESS) for at in range(60)))
    path = saved_file(tmp_path, Made(arms=arms, steps=3, warmup=0, run_cv=0.001, step_cv=0.001))
    assert main(["compare", str(path)]) == 0
    out = capsys.readouterr().out
    assert "60 comparisons: 20 improved, 40 equivalent." in out
    assert "… and 5 more (--all)." in out
    assert len(out.splitlines()) < 40
    assert max(map(len, out.splitlines())) <= 100
    assert main(["compare", str(path), "--all"]) == 0
    assert "set-59" in capsys.readouterr().out


def test_a_second_opinion_says_where_one_odd_block_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eleven blocks 2 % faster and one 60 % slower: ranks see the eleven, the t-test sees the spread."""

    def odd(saved: JSON) -> JSON:
        for benchmark in saved["benchmarks"]:
            record = benchmark["extra_info"]
            if (record["tweakset"], record["block"]) == ("fast", 1):
                record["steps"]["wall_s"] = [value * 1.6 for value in record["steps"]["wall_s"]]
                record["metrics"] = {}
        return saved

    made = Made(arms=(STOCK, Arm("fast", 0.02, SWAPPINESS)), blocks=12, run_cv=0.001, step_cv=0.001)
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(odd(saved_run(made))))
    assert main(["compare", str(path), "--robust"]) == 0
    out = capsys.readouterr().out
    assert "cnn_train, fast: +2.0 %" in out
    assert "the two part ways, look at the blocks" in " ".join(out.split())


def test_a_screen_is_adjusted_by_false_discovery(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Benjamini-Hochberg's p is never above Holm's, and the table says which of the two it is."""
    arms = (STOCK, *(Arm(f"set-{at}", 0.02 * at, SWAPPINESS) for at in range(5)))
    path = saved_file(tmp_path, Made(arms=arms, run_cv=0.02))
    found = {}
    for rule in ("holm", "bh"):
        assert main(["compare", str(path), "--adjust", rule, "--json"]) == 0
        found[rule] = [one["p_adjusted"] for one in json.loads(capsys.readouterr().out)["comparisons"]]
    assert all(bh <= holm for bh, holm in zip(found["bh"], found["holm"], strict=True))
    assert found["bh"] != found["holm"]
    assert main(["compare", str(path), "--adjust", "bh"]) == 0
    assert "BH p is adjusted" in capsys.readouterr().out


def test_stock_of_two_real_runs_differs_and_no_verdict_is_made_of_it() -> None:
    """The committed runs, hours apart: with cells as replicates each p is below 0.05, and stock 10 to 22 % slower than itself."""
    runs = Path(__file__).parents[2] / "data" / "runs"
    old, new = (read_arm(str(runs / f"{name}_amd-epyc-2cpu.json"), []) for name in ("2026-11-21", "2026-11-21_aa"))
    comparisons = compare_arms(old, [new])
    assert {one.verdict for one in comparisons} == {"not comparable"}
    for one in comparisons:
        assert -0.23 < (one.observed or 0) < -0.09
        sides = [side(arm, one.study, one.workload, one.tweakset) for arm in (old, new)]
        before, after = ([cell.metrics[one.primary_metric.name] for cell in found.cells.values()] for found in sides if found)
        assert two_sample_effect(one.primary_metric, before, after, one.margin).p < 0.05


def test_many_workloads_with_one_row_each_share_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise twenty benchmarks would be twenty tables of one line."""
    made = Made(arms=(STOCK,), workloads=tuple(f"suite.py::test_{at}" for at in range(4)))
    for seed in range(1, 7):
        saved_file(tmp_path, replace(made, seed=seed), f"{'old' if seed < 4 else 'new'}-{seed}.json")
    assert main(["compare", f"{tmp_path}/old-*.json", f"{tmp_path}/new-*.json"]) == 0
    out = capsys.readouterr().out
    assert out.count("verdict") == 2  # the head of the one table, and the legend
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("test_")] == [[f"test_{at}", "3+3"] for at in range(4)]


def test_picking_one_contrast_is_no_new_study() -> None:
    """What is shown alone keeps the p it has among all contrasts of its run: a filter must not make a finding."""
    made = Made(arms=(STOCK, *(Arm(f"set-{at}", 0.02, SWAPPINESS) for at in range(12))), run_cv=0.02)
    run = from_json(saved_run(made), "run.json")
    every = {one.tweakset: one for one in compare(run)}
    (picked,) = compare(run, options=Options(tweaksets=("set-3",)))
    (named,) = compare_arms(Side("run.json", (run,), "stock"), [Side("run.json", (run,), "set-3")])
    for one in (picked, named):
        assert (one.p_adjusted, one.family, one.verdict) == (every["set-3"].p_adjusted, 12, every["set-3"].verdict)


def test_several_runs_with_both_arms_count_once_each() -> None:
    """A tweak that gains 5 % one day and loses 5 % the next has many blocks and few days: the day is the unit."""
    runs = [
        arm(seed, made=Made(arms=(STOCK, replace(FAST, gain=gain)), blocks=8)).runs[0] for seed, gain in enumerate((0.05, -0.04, 0.06), 1)
    ]
    (one,) = compare_arms(Side("runs", tuple(runs), "stock"), [Side("runs", tuple(runs), "fast")])
    assert one.primary
    assert (one.pairs, one.blocks, one.primary.n_baseline, one.verdict) == (3, 3, 3, "inconclusive")
    assert one.primary.low < 0 < one.primary.high
    (two,) = compare_arms(Side("runs", tuple(runs[:2]), "stock"), [Side("runs", tuple(runs[:2]), "fast")])
    assert two.reason == "2 runs with both arms: a run is the unit, and at least 3 are needed."


def test_a_copy_under_another_run_id_is_found() -> None:
    saved = saved_run(Made(seed=2))
    saved["deeptweak"]["run_id"] = "another"
    copy = from_json(saved, "copy.json")
    with pytest.raises(Refused, match=r"copy\.json: .* has the very times of .* in run-2\.json: a copy is no measurement"):
        compare_arms(Side("base", (*arm(1, 2).runs, copy)), [arm(3)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda record: record["metrics"].update(step_time_median_s=9.0), "contradict their own steps"),
        (lambda record: record["workload_facts"].update(device="cuda"), "the arms differ in device"),
        (lambda record: record["tweak"].update(requested={"vm.swappiness": "1"}, observed={"vm.swappiness": "60"}), "was not in force"),
    ],
    ids=["edited", "another device", "not in force"],
)
def test_a_control_is_checked_as_an_arm_is(change: Callable[[JSON], None], said: str) -> None:
    """What everything is divided by must be as sound as what is divided."""
    saved = saved_run(Made(arms=(STOCK, FAST), seed=2))
    for benchmark in saved["benchmarks"]:
        if benchmark["extra_info"]["tweakset"] == "stock":
            change(benchmark["extra_info"])
    edited = Side("edited", (from_json(saved, "edited.json"),))
    (one,) = compare_arms(arm(1, made=Made(arms=(STOCK, FAST))), [edited], Options(relative_to="stock"))
    assert one.verdict == "not comparable"
    assert said in one.reason


def test_other_parameters_of_the_workload_are_no_comparison_and_other_settings_a_note() -> None:
    saved = saved_run(Made(seed=4))
    saved["deeptweak"]["workloads"]["cnn_train"]["params"]["batch"] = 16
    (one, _) = compare_arms(arm(1, 2, 3), [Side("other", (from_json(saved, "other.json"),))])
    assert one.reason == "the runs gave the workload different parameters: batch 8 against 16."
    made = Made(arms=(STOCK, FAST))
    changed = Made(arms=(STOCK, replace(FAST, requested={"vm.swappiness": "5"})))
    (fast,) = compare_arms(arm(1, made=made), [arm(2, made=changed)], Options(relative_to="stock"))
    assert "fast does not ask for the same in both runs: vm.swappiness." in fast.notes


def test_a_run_compared_with_itself_asks_for_tweak_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(saved_file(tmp_path, Made()))
    assert main(["compare", path, path]) == 2
    assert "is compared with itself: name two of its tweak sets" in capsys.readouterr().err
