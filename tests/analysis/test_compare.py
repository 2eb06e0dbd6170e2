"""Every verdict word, when it is given and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analysis.checks import same_value, warnings_of
from analysis.compare import compare
from analysis.load import from_json
from analysis.stats.effect import detectable_gain
from analysis.terms import UnknownName
from analysis.wording import unsigned
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from analysis.terms import Comparison, Run
    from tests.synthetic import JSON

SWAPPINESS = {"vm.swappiness": "1"}


def read(*arms: Arm, change: Callable[[JSON], None] | None = None, **how: object) -> Run:
    saved = saved_run(Made(arms=(STOCK, *arms), **how))  # type: ignore[arg-type]
    if change:
        change(saved)
    return from_json(saved, "made up")


def verdict(*arms: Arm, change: Callable[[JSON], None] | None = None, **how: object) -> Comparison:
    """Of the last arm, under the first workload."""
    comparisons = compare(read(*arms, change=change, **how))
    return next(one for one in comparisons if one.tweakset == arms[-1].name)


def records(saved: JSON, tweakset: str) -> list[JSON]:
    found = [benchmark["extra_info"] for benchmark in saved["benchmarks"]]
    return [record for record in found if record["tweakset"] == tweakset]


# -- the five words


def test_improved_when_the_adjusted_p_is_small_and_the_gain_positive() -> None:
    one = verdict(AGAIN, Arm("faster", gain=0.10, requested=SWAPPINESS))
    assert one.verdict == "improved"
    assert one.primary is not None
    assert one.primary.low < 0.10 < one.primary.high
    assert one.reason.startswith(f"{one.primary.gain * 100:.1f} % faster by throughput_samples_per_s (95 % +")


def test_regressed_when_the_gain_is_negative() -> None:
    assert verdict(AGAIN, Arm("slower", gain=-0.10, requested=SWAPPINESS)).verdict == "regressed"


def test_equivalent_when_the_90_percent_interval_lies_inside_the_margin() -> None:
    one = verdict(Arm("same", requested=SWAPPINESS), run_cv=0.004, step_cv=0.004)
    assert one.verdict == "equivalent"
    assert "lies inside the margin of 3 %" in one.reason


def test_inconclusive_when_neither_is_shown_and_never_no_change() -> None:
    one = verdict(Arm("unclear", requested=SWAPPINESS), run_cv=0.05)
    assert one.verdict == "inconclusive"
    assert one.mde is not None
    assert one.mde > 0.05
    assert one.reason == f"no difference shown; one of {unsigned(one.mde)} would be, 4 times in 5."


def test_a_difference_that_holm_takes_away_is_inconclusive_and_says_so() -> None:
    """One contrast of +4 % among 40 idle ones: p below 0.05 alone, not after the adjustment."""
    arms = [Arm(f"idle-{at}", requested=SWAPPINESS) for at in range(40)]
    one = verdict(*arms, Arm("a-little", gain=0.05, requested=SWAPPINESS), run_cv=0.02, seed=5)
    assert one.primary is not None
    assert one.primary.p < 0.05
    assert one.verdict == "inconclusive"
    assert "before Holm's adjustment for 41 contrasts" in one.reason


@pytest.mark.parametrize(("gain", "word"), [(0.01, "improved"), (-0.01, "regressed")])
def test_a_small_but_certain_effect_is_said_to_be_smaller_than_the_margin(gain: float, word: str) -> None:
    one = verdict(Arm("tiny", gain=gain, requested=SWAPPINESS), run_cv=0.001, step_cv=0.001)
    assert one.verdict == word
    assert one.notes == ("smaller than the margin of 3 %: real, but perhaps not worth having.",)


# -- not comparable


def test_a_tweak_set_that_cannot_be_had_here_gives_its_own_reason() -> None:
    reason = "boot token isolcpus=2-11 is not in /proc/cmdline: reboot with it"
    one = verdict(Arm("isolate", requested={"isolcpus": "2-11"}, kind="boot", broken=dict.fromkeys(range(1, 7), ("skipped", reason))))
    assert (one.verdict, one.reason, one.pairs) == ("not comparable", f"skipped: {reason}.", 0)
    assert one.primary is None


def test_fewer_than_three_complete_pairs_are_no_comparison() -> None:
    broken = dict.fromkeys((1, 2, 4, 5), ("failed", "out of memory"))
    one = verdict(Arm("heavy", gain=0.5, requested=SWAPPINESS, broken=broken))
    assert one.verdict == "not comparable"
    assert one.reason == "2 complete pairs of 6, at least 3 are needed (blocks 1, 2, 4, 5 failed: out of memory)."


def test_one_block_is_no_comparison() -> None:
    assert verdict(AGAIN, blocks=1).reason == "1 complete pair of 1, at least 3 are needed."


def test_three_pairs_are_compared_with_a_warning() -> None:
    broken = dict.fromkeys((1, 2, 4), ("failed", "out of memory"))
    one = verdict(Arm("heavy", gain=0.5, requested=SWAPPINESS, broken=broken))
    assert one.verdict == "improved"
    assert one.notes == ("3 pairs only: with fewer than 5 one odd block can decide.", "blocks 1, 2, 4 left out: failed: out of memory.")


def test_a_failed_baseline_cell_takes_its_block_out() -> None:
    run = from_json(saved_run(Made(arms=(Arm("stock", broken={3: ("failed", "killed")}), AGAIN))), "made up")
    (one,) = compare(run)
    assert one.pairs == 5
    assert one.notes == ("block 3 left out: baseline failed: killed.",)


@pytest.mark.parametrize(
    ("observed", "said"),
    [({"vm.swappiness": "60"}, "vm.swappiness was to be 1 and the kernel answered 60"), ({}, "vm.swappiness was not read back")],
)
def test_a_tweak_that_was_not_in_force_is_no_comparison(observed: dict[str, str], said: str) -> None:
    one = verdict(Arm("ignored", gain=0.2, requested=SWAPPINESS, observed=observed))
    assert (one.verdict, one.primary) == ("not comparable", None)
    assert one.reason == f"ignored was not in force: {said} (blocks 1, 2, 3, 4, 5, 6)."


def test_a_tweak_that_no_cell_speaks_of_was_not_in_force() -> None:
    def forget(saved: JSON) -> None:
        for record in records(saved, "forgotten"):
            record["tweak"]["requested"] = {}

    assert "vm.swappiness was not read back" in verdict(Arm("forgotten", requested=SWAPPINESS), change=forget).reason


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("4096 87380 134217728", "4096\t87380\t134217728", True),
        ("0x10", "16", True),
        ("020", "16", True),
        ("1", "2", False),
        ("cubic", "bbr", False),
        ("-1", "-1", True),
    ],
)
def test_the_kernels_spelling_of_a_value_is_the_same_value(one: str, other: str, same: bool) -> None:  # noqa: FBT001
    assert same_value(one, other) is same


def test_arms_that_were_given_different_data_are_not_paired() -> None:
    """A pair of cells speaks of the machine only where both did the same work."""

    def other_data(saved: JSON) -> None:
        for record in records(saved, "stock-again"):
            record["workload_facts"]["data_crc32"] = "ffffffff"

    def other_tokens(saved: JSON) -> None:
        records(saved, "stock-again")[0]["steps"]["tokens"][5] += 1

    assert verdict(AGAIN, change=other_data).reason == "the arms differ in data_crc32."
    assert verdict(AGAIN, change=other_tokens).pairs == 5


@pytest.mark.parametrize("column", ["device", "samples", "warmup"])
def test_arms_that_did_other_work_are_not_paired(column: str) -> None:
    def other(saved: JSON) -> None:
        for record in records(saved, "stock-again"):
            if column == "device":
                record["workload_facts"]["device"] = "NVIDIA H200"
            elif column == "samples":
                record["steps"]["samples"] = [16] * 14
            else:
                record["steps"]["warmup"] = 3

    assert "the arms differ in" in verdict(AGAIN, change=other).reason


def test_identical_times_in_both_arms_are_no_measurement() -> None:
    def copied(saved: JSON) -> None:
        for one, other in zip(records(saved, "stock"), records(saved, "stock-again"), strict=True):
            other["steps"]["wall_s"] = one["steps"]["wall_s"] = [0.04] * 14
            one["metrics"] = other["metrics"] = {}

    one = verdict(AGAIN, change=copied)
    assert (one.verdict, one.p_adjusted) == ("not comparable", None)
    assert "identical values of throughput_samples_per_s in all 6 blocks" in one.reason


def test_an_unknown_primary_metric_is_named_with_those_there_are() -> None:
    one = verdict(AGAIN, primaries={"cnn_train": ("accuracy", "higher")})
    assert "has no accuracy; it has cpu_s_per_step, " in one.reason


def test_a_primary_metric_of_zero_has_no_ratio() -> None:
    def idle(saved: JSON) -> None:
        for record in records(saved, "stock-again"):
            record["steps"]["cpu_s"] = [0.0] * 14
            record["metrics"]["cpu_s_per_step"] = 0

    one = verdict(AGAIN, change=idle, primaries={"cnn_train": ("cpu_s_per_step", "lower")})
    assert "cpu_s_per_step = 0: no ratio can be taken" in one.reason


# -- arms in which nothing was changed


def test_an_arm_that_changed_nothing_is_an_a_a_comparison() -> None:
    arm = Arm("as-it-is", requested=SWAPPINESS, already_in_force=["vm.swappiness"])
    one = verdict(arm)
    assert one.untouched
    assert one.notes == ("same as stock here: all it asks for was already in force, so this is a second A/A comparison.",)


def test_what_was_partly_in_force_is_noted() -> None:
    one = verdict(Arm("half", requested={**SWAPPINESS, "vm.dirty_ratio": "5"}, already_in_force=["vm.swappiness"]))
    assert not one.untouched
    assert one.notes == ("in force before it was applied, so not part of the effect: vm.swappiness.",)


@pytest.mark.parametrize("arm", [Arm("stock-again", gain=0.2), Arm("as-it-is", 0.2, SWAPPINESS, already_in_force=["vm.swappiness"])])
def test_no_tweak_gets_credit_where_nothing_was_changed(arm: Arm) -> None:
    """However clear the difference: it is the machine's, and neither improved nor regressed."""
    run = read(arm)
    (one,) = compare(run)
    assert one.verdict == "not comparable"
    assert one.reason.startswith("nothing was changed in this arm, yet it differs: 20 % faster")
    (line,) = warnings_of(run, [one])
    assert line.startswith(f"A/A check: {arm.name} changes nothing, yet under cnn_train it differs from stock by +")


def test_a_boot_token_changes_nothing_between_cells_of_one_boot() -> None:
    """Where the running kernel has the token stock has it too; only a reboot between the arms makes it a tweak."""

    def rebooted(saved: JSON) -> None:
        for record in records(saved, "isolate"):
            record["environment"]["boot_id"] = "another"

    arm = Arm("isolate", gain=0.2, requested={"isolcpus": "2-3"}, kind="boot")
    assert verdict(arm).untouched
    assert verdict(arm, change=rebooted).verdict == "improved"


def test_a_limit_is_a_tweak_where_the_workload_found_another_one() -> None:
    def raised(saved: JSON) -> None:
        for record in records(saved, "memlock"):
            record["limits"]["memlock"] = [-1, -1]

    arm = Arm("memlock", requested={"memlock": "unlimited"}, kind="ulimit")
    assert verdict(arm).untouched
    assert not verdict(arm, change=raised).untouched


@pytest.mark.parametrize("gain", [0.2, -0.2])
def test_scripts_that_changed_nothing_visible_get_neither_credit_nor_blame(gain: float) -> None:
    """As for values that were in force already: whatever made the difference, nothing shows that it was the script."""
    one = verdict(Arm("script", gain=gain, scripts=1))
    assert (one.verdict, one.untouched) == ("not comparable", True)
    assert one.reason.startswith("nothing was changed in this arm, yet it differs: ")
    assert one.notes[0].startswith("its scripts changed no kernel value here")


def test_scripts_that_changed_nothing_visible_may_be_called_equivalent() -> None:
    one = verdict(Arm("script", scripts=1), run_cv=0.004, step_cv=0.004)
    assert one.verdict == "equivalent"
    assert one.notes[0].startswith("its scripts changed no kernel value here")


def test_a_script_seen_to_act_in_one_cell_is_a_tweak() -> None:
    def acted_once(saved: JSON) -> None:
        records(saved, "script")[0]["tweak"]["side_effects"] = {"/sys/kernel/mm/x": ["0", "1"]}

    one = verdict(Arm("script", gain=0.2, scripts=1), change=acted_once)
    assert (one.verdict, one.untouched, one.notes) == ("improved", False, ())


def test_scripts_beside_a_value_that_was_written_are_judged() -> None:
    one = verdict(Arm("both", gain=0.2, requested=SWAPPINESS, scripts=1))
    assert (one.verdict, one.untouched) == ("improved", False)


def test_a_cell_that_contradicts_its_own_steps_is_compared_with_nothing() -> None:
    """Times or metrics were edited, and nobody can tell which: every contrast that needs the cell says so."""

    def edited(saved: JSON) -> None:
        records(saved, "faster")[2]["metrics"]["step_time_p10_s"] *= 1.01

    run = read(AGAIN, Arm("faster", 0.2, SWAPPINESS), change=edited)
    again, faster = compare(run)
    assert again.primary is not None
    assert (faster.verdict, faster.primary) == ("not comparable", None)
    assert faster.reason == "cnn_train-faster-b3 contradicts its own steps (see the warnings): the file was damaged or edited."
    assert any(line.startswith("cnn_train-faster-b3: the file says step_time_p10_s") for line in warnings_of(run, [again, faster]))
    assert {one.verdict for one in compare(run, baseline="faster")} == {"not comparable"}


def test_metrics_that_are_only_rounded_contradict_nothing() -> None:
    def rounded(saved: JSON) -> None:
        for record in records(saved, "faster"):
            record["metrics"] = {name: float(f"{value:.6g}") for name, value in record["metrics"].items()}

    assert verdict(Arm("faster", 0.2, SWAPPINESS), change=rounded).verdict == "improved"


# -- which metric, which family, which baseline


def test_the_workloads_primary_metric_takes_the_place_of_the_studys() -> None:
    run = read(AGAIN, workloads=("cnn_train", "checkpoint_train"), primaries={"checkpoint_train": ("step_time_p10_s", "lower")})
    by_workload = {one.workload: one for one in compare(run)}
    for workload, primary, second in (
        ("cnn_train", "throughput_samples_per_s", "step_time_p10_s"),
        ("checkpoint_train", "step_time_p10_s", "throughput_samples_per_s"),
    ):
        one = by_workload[workload]
        assert one.primary is not None
        assert one.second is not None
        assert (one.primary.metric.name, one.second.metric.name) == (primary, second)


def test_a_faster_arm_gains_in_both_metrics() -> None:
    """Throughput rises and step time falls; both are shown as a gain of about 10 %."""
    one = verdict(Arm("faster", gain=0.10, requested=SWAPPINESS))
    assert one.primary is not None
    assert one.second is not None
    assert one.primary.gain == pytest.approx(0.10, abs=0.03)
    assert one.second.gain == pytest.approx(0.10, abs=0.03)


def test_the_family_is_all_contrasts_of_the_study_with_an_effect() -> None:
    """Two workloads with two arms each and one arm that cannot be had: Holm adjusts for four, stock-again among them."""
    skipped = Arm("cannot", requested=SWAPPINESS, broken=dict.fromkeys(range(1, 7), ("skipped", "no root")))
    comparisons = compare(read(AGAIN, Arm("faster", 0.1, SWAPPINESS), skipped, workloads=("cnn_train", "lora_finetune")))
    assert [one.family for one in comparisons] == [4, 4, 0, 4, 4, 0]
    smallest = min((one for one in comparisons if one.primary), key=lambda one: one.primary.p if one.primary else 1)
    assert smallest.primary is not None
    assert smallest.p_adjusted == pytest.approx(4 * smallest.primary.p)
    # What such a run can see is stated for the strictest step of the same adjustment.
    assert smallest.mde == detectable_gain(smallest.primary.log_sd, 6, 0.05 / 4)


def test_stock_again_comes_first() -> None:
    comparisons = compare(read(Arm("zeta", requested=SWAPPINESS), Arm("alpha", requested=SWAPPINESS), AGAIN))
    assert [one.tweakset for one in comparisons] == ["stock-again", "zeta", "alpha"]


def test_any_tweak_set_can_be_the_baseline() -> None:
    run = read(AGAIN, Arm("faster", 0.25, SWAPPINESS))
    found = {one.tweakset: one.verdict for one in compare(run, baseline="faster")}
    assert found == {"stock": "regressed", "stock-again": "regressed"}


def test_an_unknown_baseline_is_answered_with_the_names_there_are() -> None:
    with pytest.raises(UnknownName, match="no tweak set 'stok' to compare with; it has stock, stock-again"):
        compare(read(AGAIN), baseline="stok")


def test_a_baseline_that_was_not_in_force_is_no_baseline() -> None:
    run = read(AGAIN, Arm("ignored", 0.25, SWAPPINESS, observed={"vm.swappiness": "60"}))
    assert {one.reason.partition(":")[0] for one in compare(run, baseline="ignored")} == {"ignored was not in force"}


# -- what casts doubt on the run as a whole


def test_doubts_about_a_run_are_listed() -> None:
    def spoil(saved: JSON) -> None:
        saved["deeptweak"]["interrupted"] = True
        records(saved, "odd")[0]["tweak"]["restored"] = {"vm.swappiness": "1"}
        records(saved, "odd")[1]["tweak"]["left_alone"] = {"/proc/sys/vm/swappiness": ["7", "1"]}

    run = read(Arm("odd", requested=SWAPPINESS, warnings=["isolates 10 of 12 CPUs"]), change=spoil)
    lines = warnings_of(run, compare(run))
    assert lines[0].startswith("the run was interrupted")
    assert "did not put back vm.swappiness" in lines[1]
    assert "somebody else changed /proc/sys/vm/swappiness meanwhile" in lines[2]
    assert lines[-1] == "odd: isolates 10 of 12 CPUs"


def test_an_interrupted_run_is_compared_as_far_as_it_got() -> None:
    def cut(saved: JSON) -> None:
        saved["benchmarks"] = [one for one in saved["benchmarks"] if one["extra_info"]["block"] <= 4]
        saved["deeptweak"]["cells"] = [one for one in saved["deeptweak"]["cells"] if one["block"] <= 4]
        saved["deeptweak"]["cells"] = [one for one in saved["deeptweak"]["cells"] if one["tweakset"] == "stock" or one["block"] <= 3]
        saved["benchmarks"] = [
            one for one in saved["benchmarks"] if one["extra_info"]["tweakset"] == "stock" or one["extra_info"]["block"] <= 3
        ]

    one = verdict(AGAIN, change=cut)
    assert (one.pairs, one.blocks) == (3, 6)
    assert "block 4 left out: not run." in one.notes


def jobs_told(steps: int, **of: Callable[[int], JSON]) -> Callable[[JSON], None]:
    """Every cell tells of a job for each of its steps; of a tweak set what `of` makes of it."""

    def told(saved: JSON) -> None:
        for record in (one["extra_info"] for one in saved["benchmarks"]):
            change = of.get(record["tweakset"])
            rows = ({"job": at, "work": 1.0, "outcome": "done"} | (change(at) if change else {}) for at in range(steps))
            record["report"] = {"job": list(rows)}

    return told


STEPS = 14


@pytest.mark.parametrize("also", [False, True])
def test_an_arm_gains_nothing_by_losing_jobs(*, also: bool) -> None:
    """A job that fails early has a short time, which is no job's: not even where the other arm lost as many."""

    def loses(at: int) -> JSON:
        return {"outcome": "failed"} if at < 3 else {}

    one = verdict(Arm("slow"), change=jobs_told(STEPS, slow=loses, **({"stock": loses} if also else {})), blocks=5)
    assert (one.verdict, one.primary) == ("not comparable", None)
    assert one.reason.startswith(f"15 of 70 jobs were not done under {'stock' if also else 'slow'}, and the time until a job fails")


@pytest.mark.parametrize("damage", [{"job": None}, {"job": 0}, {"job": [1]}])
def test_jobs_that_cannot_be_told_apart_are_no_proof_that_all_were_done(damage: JSON) -> None:
    one = verdict(Arm("slow"), change=jobs_told(STEPS, slow=lambda at: damage if at > 1 else {}), blocks=5)
    assert one.verdict == "not comparable"


def test_rows_of_jobs_that_are_missing_are_no_jobs_that_were_done() -> None:
    """Two rows for fourteen steps in every cell: what became of the other twelve nobody knows."""
    one = verdict(Arm("slow"), change=jobs_told(2), blocks=5)
    assert one.verdict == "not comparable"
    assert "does not tell what became of each of its jobs" in one.reason


def test_arms_that_met_different_jobs_are_no_pair() -> None:
    one = verdict(Arm("slow"), change=jobs_told(STEPS, slow=lambda _at: {"work": 0.5}), blocks=5)
    assert one.verdict == "not comparable"
    assert "the arms met different jobs" in one.reason


def test_streams_whose_jobs_were_all_done_are_compared() -> None:
    assert verdict(Arm("slow"), change=jobs_told(STEPS), blocks=5).primary is not None
