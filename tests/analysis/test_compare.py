"""Every verdict word, with its conditions and reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.checks import same_value, warnings_of
from analysis.compare import compare, judge
from analysis.load import from_json
from analysis.terms import Comparison, Run, UnknownName, Verdict
from control.t_test import detectable_gain
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    Situation = tuple[Verdict, tuple[Arm, ...], Callable[[JSON], None] | None, Mapping[str, object]]


SWAPPINESS = {"vm.swappiness": "1"}


def read(*arms: Arm, change: Callable[[JSON], None] | None = None, **how: object) -> Run:
    saved = saved_run(Made(arms=(STOCK, *arms), **how))  # type: ignore[arg-type]
    if change:
        change(saved)
    return from_json(saved, "made up")


def verdict(*arms: Arm, change: Callable[[JSON], None] | None = None, **how: object) -> Comparison:
    comparisons = compare(read(*arms, change=change, **how))
    return next(one for one in comparisons if one.tweakset == arms[-1].name)


def records(saved: JSON, tweakset: str) -> list[JSON]:
    found = [benchmark["extra_info"] for benchmark in saved["benchmarks"]]
    return [record for record in found if record["tweakset"] == tweakset]


def put(
    tweakset: str, *place: str, value: object, cells: slice = slice(None)
) -> Callable[[JSON], None]:
    def change(saved: JSON) -> None:
        for record in records(saved, tweakset)[cells]:
            part = record
            for name in place[:-1]:
                part = part[name]
            part[place[-1]] = value

    return change


def idle(saved: JSON) -> None:
    for record in records(saved, "stock-again"):
        record["steps"]["cpu_s"] = [0.0] * 14
        record["metrics"]["cpu_s_per_step"] = 0


def copied(saved: JSON) -> None:
    for pair in zip(records(saved, "stock"), records(saved, "stock-again"), strict=True):
        for record in pair:
            record["steps"]["wall_s"], record["metrics"] = [0.04] * 14, {}


def edited(saved: JSON) -> None:
    records(saved, "faster")[2]["metrics"]["step_time_p10_s"] *= 1.01


def rounded(saved: JSON) -> None:
    for record in records(saved, "faster"):
        record["metrics"] = {
            name: float(f"{value:.6g}") for name, value in record["metrics"].items()
        }


def cut(saved: JSON) -> None:
    def ran(cell: JSON) -> bool:
        return bool(cell["block"] <= (4 if cell["tweakset"] == "stock" else 3))

    saved["benchmarks"] = [one for one in saved["benchmarks"] if ran(one["extra_info"])]
    saved["deeptweak"]["cells"] = [one for one in saved["deeptweak"]["cells"] if ran(one)]


STEPS = 14


def jobs(steps: int, **of: Callable[[int], JSON]) -> Callable[[JSON], None]:
    def told(saved: JSON) -> None:
        for record in (one["extra_info"] for one in saved["benchmarks"]):
            change = of.get(record["tweakset"])
            rows = (
                {"job": at, "work": 1.0, "outcome": "done"} | (change(at) if change else {})
                for at in range(steps)
            )
            record["report"] = {"job": list(rows)}

    return told


def loses(at: int) -> JSON:
    return {"outcome": "failed"} if at < 3 else {}


def damaged(job: object) -> Callable[[JSON], None]:
    return jobs(STEPS, slow=lambda at: {"job": job} if at > 1 else {})


TOKEN = {"isolcpus": "2-11"}
SKIPPED = ("skipped", "boot token isolcpus=2-11 is not in /proc/cmdline: reboot with it")
MEMORY = ("failed", "out of memory")
FASTER = Arm("faster", 0.1, SWAPPINESS)
SLOW = Arm("slow")
HELD = ["vm.swappiness"]


def situation(
    word: Verdict, *arms: Arm, change: Callable[[JSON], None] | None = None, **how: object
) -> Situation:
    return word, arms, change, how


SITUATIONS: dict[str, Situation] = {
    "faster": situation("improved", AGAIN, FASTER),
    "slower": situation("regressed", AGAIN, Arm("slower", -0.1, SWAPPINESS)),
    "inside the margin": situation(
        "equivalent", Arm("same", requested=SWAPPINESS), run_cv=0.004, step_cv=0.004
    ),
    "noisy": situation("inconclusive", Arm("unclear", requested=SWAPPINESS), run_cv=0.05),
    "certain but tiny": situation(
        "improved", Arm("tiny", 0.01, SWAPPINESS), run_cv=0.001, step_cv=0.001
    ),
    "certain but tiny loss": situation(
        "regressed", Arm("tiny", -0.01, SWAPPINESS), run_cv=0.001, step_cv=0.001
    ),
    "certain gain below the margin": situation(
        "improved", Arm("tiny", 0.0298, SWAPPINESS), run_cv=1e-5, step_cv=1e-5
    ),
    "certain loss beyond the margin": situation(
        "regressed", Arm("tiny", -0.0298, SWAPPINESS), run_cv=1e-5, step_cv=1e-5
    ),
    "skipped": situation(
        "not comparable",
        Arm("isolate", 0, TOKEN, "boot", broken=dict.fromkeys(range(1, 7), SKIPPED)),
    ),
    "two pairs": situation(
        "not comparable", Arm("heavy", 0.5, SWAPPINESS, broken=dict.fromkeys((1, 2, 4, 5), MEMORY))
    ),
    "three pairs": situation(
        "improved", Arm("heavy", 0.5, SWAPPINESS, broken=dict.fromkeys((1, 2, 4), MEMORY))
    ),
    "one block": situation("not comparable", AGAIN, blocks=1),
    "stopped early": situation("equivalent", AGAIN, change=cut),
    "another value in force": situation(
        "not comparable", Arm("ignored", 0.2, SWAPPINESS, observed={"vm.swappiness": "60"})
    ),
    "not read back": situation("not comparable", Arm("ignored", 0.2, SWAPPINESS, observed={})),
    "no cell speaks of it": situation(
        "not comparable",
        Arm("forgotten", 0.2, SWAPPINESS),
        change=put("forgotten", "tweak", "requested", value={}),
    ),
    "other data": situation(
        "not comparable",
        AGAIN,
        change=put("stock-again", "workload_facts", "data_crc32", value="ffffffff"),
    ),
    "other tokens once": situation(
        "equivalent",
        AGAIN,
        change=put("stock-again", "steps", "tokens", value=[1] * STEPS, cells=slice(1)),
    ),
    "other device": situation(
        "not comparable",
        AGAIN,
        change=put("stock-again", "workload_facts", "device", value="NVIDIA H200"),
    ),
    "other samples": situation(
        "not comparable", AGAIN, change=put("stock-again", "steps", "samples", value=[16] * STEPS)
    ),
    "other warm-up": situation(
        "not comparable", AGAIN, change=put("stock-again", "steps", "warmup", value=3)
    ),
    "copied times": situation("not comparable", AGAIN, change=copied),
    "unknown metric": situation(
        "not comparable", AGAIN, primaries={"cnn_train": ("accuracy", "higher")}
    ),
    "metric of zero": situation(
        "not comparable", AGAIN, change=idle, primaries={"cnn_train": ("cpu_s_per_step", "lower")}
    ),
    "contradicts its steps": situation("not comparable", AGAIN, FASTER, change=edited),
    "rounded metrics": situation("improved", FASTER, change=rounded),
    "in force already": situation(
        "equivalent", Arm("as-it-is", 0, SWAPPINESS, already_in_force=HELD)
    ),
    "partly in force": situation(
        "equivalent", Arm("half", 0, {**SWAPPINESS, "vm.dirty_ratio": "5"}, already_in_force=HELD)
    ),
    "copy of stock differs": situation("not comparable", Arm("stock-again", 0.2)),
    "in force already and faster": situation(
        "not comparable", Arm("as-it-is", 0.2, SWAPPINESS, already_in_force=HELD)
    ),
    "boot token of this boot": situation("not comparable", Arm("isolate", 0.2, TOKEN, "boot")),
    "boot token of another boot": situation(
        "improved",
        Arm("isolate", 0.2, TOKEN, "boot"),
        change=put("isolate", "environment", "boot_id", value="another"),
    ),
    "limit that was there": situation(
        "not comparable", Arm("memlock", 0.2, {"memlock": "unlimited"}, "ulimit")
    ),
    "limit that was raised": situation(
        "improved",
        Arm("memlock", 0.2, {"memlock": "unlimited"}, "ulimit"),
        change=put("memlock", "limits", "memlock", value=[-1, -1]),
    ),
    "script unseen and faster": situation("not comparable", Arm("script", 0.2, scripts=1)),
    "script unseen and slower": situation("not comparable", Arm("script", -0.2, scripts=1)),
    "script unseen": situation("equivalent", Arm("script", scripts=1), run_cv=0.004, step_cv=0.004),
    "script seen once": situation(
        "improved",
        Arm("script", 0.2, scripts=1),
        change=put(
            "script",
            "tweak",
            "side_effects",
            value={"/sys/kernel/mm/x": ["0", "1"]},
            cells=slice(1),
        ),
    ),
    "script and a value": situation("improved", Arm("both", 0.2, SWAPPINESS, scripts=1)),
    # A job that fails early has a short time, which is no job's: not even where the other arm lost
    # as many.
    "lost jobs": situation("not comparable", SLOW, change=jobs(STEPS, slow=loses), blocks=5),
    "both lost jobs": situation(
        "not comparable", SLOW, change=jobs(STEPS, slow=loses, stock=loses), blocks=5
    ),
    "jobs without a number": situation("not comparable", SLOW, change=damaged(None), blocks=5),
    "jobs of one number": situation("not comparable", SLOW, change=damaged(0), blocks=5),
    "jobs with a list for a number": situation(
        "not comparable", SLOW, change=damaged([1]), blocks=5
    ),
    "rows of jobs missing": situation("not comparable", SLOW, change=jobs(2), blocks=5),
    "other jobs": situation(
        "not comparable", SLOW, change=jobs(STEPS, slow=lambda _at: {"work": 0.5}), blocks=5
    ),
    "all jobs done": situation("equivalent", SLOW, change=jobs(STEPS), blocks=5),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_verdict_says_why(name: str, snapshot: SnapshotAssertion) -> None:
    word, arms, change, how = SITUATIONS[name]
    one = verdict(*arms, change=change, **how)
    assert one.verdict == word
    assert {
        "pairs": f"{one.pairs} of {one.blocks}",
        "untouched": one.untouched,
        "why": [one.reason, *one.notes],
    } == snapshot


def test_the_interval_holds_the_truth() -> None:
    """Throughput rises and step time falls; both are shown as a gain of about 10 %."""
    one = verdict(AGAIN, FASTER)
    assert one.primary is not None
    assert one.second is not None
    assert one.primary.low < 0.10 < one.primary.high
    assert one.primary.gain == pytest.approx(0.10, abs=0.03)
    assert one.second.gain == pytest.approx(0.10, abs=0.03)
    noisy = verdict(Arm("unclear", requested=SWAPPINESS), run_cv=0.05)
    assert (noisy.mde or 0) > 0.05


def test_a_difference_that_holm_takes_away_is_inconclusive(snapshot: SnapshotAssertion) -> None:
    """One contrast of +4 % among 40 idle ones: p below 0.05 alone, not after the adjustment."""
    arms = [Arm(f"idle-{at}", requested=SWAPPINESS) for at in range(40)]
    one = verdict(*arms, Arm("a-little", gain=0.05, requested=SWAPPINESS), run_cv=0.02, seed=5)
    assert one.primary is not None
    assert one.primary.p < 0.05
    assert one.verdict == "inconclusive"
    assert one.reason == snapshot
    words = [judge(one, replace(one.primary, p_equivalent=p), 1.0)[0] for p in (0.049, 0.051)]
    assert words == ["equivalent", "inconclusive"]


def test_the_kernels_spelling_of_a_value_is_the_same_value() -> None:
    same = [
        ("4096 87380 134217728", "4096\t87380\t134217728"),
        ("0x10", "16"),
        ("020", "16"),
        ("-1", "-1"),
    ]
    assert all(same_value(*pair) for pair in same)
    assert not any(same_value(*pair) for pair in (("1", "2"), ("cubic", "bbr")))


# -- which metric, which family, which baseline


def test_the_primary_metric_of_a_workload_replaces_the_studys() -> None:
    run = read(
        AGAIN,
        workloads=("cnn_train", "checkpoint_train"),
        primaries={"checkpoint_train": ("step_time_p10_s", "lower")},
    )
    by_workload = {one.workload: one for one in compare(run)}
    for workload, primary, second in (
        ("cnn_train", "throughput_samples_per_s", "step_time_p10_s"),
        ("checkpoint_train", "step_time_p10_s", "throughput_samples_per_s"),
    ):
        one = by_workload[workload]
        assert one.primary is not None
        assert one.second is not None
        assert (one.primary.metric.name, one.second.metric.name) == (primary, second)


def test_the_family_is_all_contrasts_of_the_study_with_an_effect() -> None:
    """Two workloads, two arms each, one arm skipped: Holm adjusts for four, with stock-again."""
    skipped = Arm(
        "cannot", requested=SWAPPINESS, broken=dict.fromkeys(range(1, 7), ("skipped", "no root"))
    )
    comparisons = compare(
        read(
            AGAIN, Arm("faster", 0.1, SWAPPINESS), skipped, workloads=("cnn_train", "lora_finetune")
        )
    )
    assert [one.family for one in comparisons] == [4, 4, 0, 4, 4, 0]
    smallest = min(
        (one for one in comparisons if one.primary),
        key=lambda one: one.primary.p if one.primary else 1,
    )
    assert smallest.primary is not None
    assert smallest.p_adjusted == pytest.approx(4 * smallest.primary.p)
    # What such a run can see is stated for the strictest step of the same adjustment.
    assert smallest.mde == pytest.approx(detectable_gain(smallest.primary.log_sd, 6, 0.05 / 4))


def test_a_baseline_must_be_known_and_in_force() -> None:
    run = read(AGAIN, Arm("ignored", 0.25, SWAPPINESS, observed={"vm.swappiness": "60"}))
    assert {one.verdict for one in compare(run, baseline="ignored")} == {"not comparable"}
    with pytest.raises(UnknownName, match="'stok'"):
        compare(run, baseline="stok")


# -- what casts doubt on the run as a whole


def test_doubts_about_a_run_are_listed(snapshot: SnapshotAssertion) -> None:
    def spoil(saved: JSON) -> None:
        saved["deeptweak"]["interrupted"] = True
        records(saved, "odd")[0]["tweak"]["restored"] = {"vm.swappiness": "1"}
        records(saved, "odd")[1]["tweak"]["left_alone"] = {"/proc/sys/vm/swappiness": ["7", "1"]}
        records(saved, "odd")[2]["metrics"]["step_time_p10_s"] *= 1.01

    run = read(
        Arm("odd", requested=SWAPPINESS, warnings=["isolates 10 of 12 CPUs"]),
        Arm("stock-again", 0.2),
        change=spoil,
    )
    assert warnings_of(run, compare(run)) == snapshot


def test_a_set_that_moves_a_setting_in_some_blocks_is_two_arms() -> None:
    """Huge pages off lower vm.min_free_kbytes until its first write (mm/page_alloc.c)."""

    def first_block(saved: JSON) -> None:
        records(saved, "odd")[0]["tweak"]["side_effects"] = {
            "/proc/sys/vm/min_free_kbytes": ["67584", "19832"]
        }

    def every_block(saved: JSON) -> None:
        for record in records(saved, "odd"):
            record["tweak"]["side_effects"] = {"/proc/sys/vm/min_free_kbytes": ["67584", "19832"]}

    doubts = [
        [line for line in warnings_of(run, compare(run)) if "treatments" in line]
        for run in (
            read(Arm("odd", requested=SWAPPINESS), Arm("stock-again"), change=change)
            for change in (first_block, every_block)
        )
    ]
    said = (
        "odd also changed /proc/sys/vm/min_free_kbytes in 1 of 6 cells (cnn_train-odd-b1) but not "
        "in the others: these are two treatments"
    )
    assert doubts == [[f"{said}."], []]


def test_of_many_reasons_why_blocks_are_left_out_three_are_named() -> None:
    """No figure in a reason passes for another's."""
    broken = {block: ("failed", f"killed after {block} s") for block in range(1, 6)}
    run = from_json(
        saved_run(
            Made(
                arms=(STOCK, Arm("tuned", requested={"vm.swappiness": "1"}, broken=broken)),
                blocks=12,
            )
        ),
        "run.json",
    )
    (found,) = compare(run)
    notes = [note for note in found.notes if "left out" in note]
    assert notes[0] == "block 1 left out: failed: killed after 1 s."
    assert notes[3:] == [
        "blocks 4, 5 left out: 2 other reasons, such as: failed: killed after 4 s."
    ]
