"""Comparisons across saved runs: runs differ in more than the tweak, and the reader is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.arms import Arm as Side
from analysis.arms import Sides, read_arm
from analysis.compare import CompareOptions, compare, compare_arms
from analysis.load import from_json
from analysis.pairing import ONE_RUN_AN_ARM
from analysis.stats.effect import two_sample_effect
from analysis.terms import Refused, Run
from tests.analysis.answers import printed
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


SWAPPINESS = {"vm.swappiness": "1"}
FAST = Arm("fast", 0.10, SWAPPINESS)


MADE = Made()


def arm(
    *seeds: int,
    tweakset: str | None = None,
    made: Made = MADE,
    edit: str = "",
    change: Callable[[JSON], None] | None = None,
) -> Side:
    found = []
    for seed in seeds:
        saved = saved_run(replace(made, seed=seed))
        if edit:
            saved["machine_info"]["deeptweak"]["cpu_model"] = edit
        if change:
            change(saved)
        found.append(from_json(saved, f"run-{seed}.json"))
    return Side(f"runs {seeds}", tuple(found), tweakset)


def of_stock(change: Callable[[JSON], None]) -> Callable[[JSON], None]:
    def edited(saved: JSON) -> None:
        for benchmark in saved["benchmarks"]:
            if benchmark["extra_info"]["tweakset"] == "stock":
                change(benchmark["extra_info"])

    return edited


def first_job_failed(record: JSON) -> None:
    outcomes = ["failed", *["done"] * (len(record["steps"]["wall_s"]) - 1)]
    record["report"] = {
        "job": [{"job": at, "outcome": outcome} for at, outcome in enumerate(outcomes)]
    }


def larger_batch(saved: JSON) -> None:
    saved["deeptweak"]["workloads"]["cnn_train"]["params"]["batch"] = 16


BOTH = Made(arms=(STOCK, FAST))
DEAD = replace(STOCK, broken=dict.fromkeys(range(1, 7), ("failed", "killed")))
TO_STOCK = CompareOptions(relative_to="stock")
IGNORED = {"requested": SWAPPINESS, "observed": {"vm.swappiness": "60"}}
# Arms that cannot be compared under any tweak set, and what of theirs is so.
INCOMPARABLE: dict[str, tuple[Side, CompareOptions]] = {
    "other hardware": (arm(4, 5, 6, edit="Another CPU"), CompareOptions()),
    "other metrics": (
        arm(4, 5, 6, made=Made(primaries={"cnn_train": ("step_time_p10_s", "lower")})),
        CompareOptions(),
    ),
    "other work": (arm(4, 5, 6, made=Made(steps=20)), CompareOptions()),
    "other parameters": (arm(4, 5, 6, change=larger_batch), CompareOptions()),
    "no measured cell": (arm(4, 5, 6, made=Made(arms=(DEAD,))), CompareOptions()),
    "lost jobs": (
        arm(4, 5, 6, made=Made(arms=(STOCK,)), change=of_stock(first_job_failed)),
        CompareOptions(),
    ),
    "control that lost jobs": (arm(4, made=BOTH, change=of_stock(first_job_failed)), TO_STOCK),
    "control that failed": (
        arm(4, made=Made(arms=(replace(STOCK, broken={2: ("failed", "killed")}), FAST))),
        TO_STOCK,
    ),
    "control edited": (
        arm(
            4, made=BOTH, change=of_stock(lambda one: one["metrics"].update(step_time_median_s=9.0))
        ),
        TO_STOCK,
    ),
    "control on another device": (
        arm(4, made=BOTH, change=of_stock(lambda one: one["workload_facts"].update(device="cuda"))),
        TO_STOCK,
    ),
    "control not in force": (
        arm(4, made=BOTH, change=of_stock(lambda one: one["tweak"].update(IGNORED))),
        TO_STOCK,
    ),
}


@pytest.mark.parametrize("name", INCOMPARABLE)
def test_what_differs_in_more_than_the_tweak_is_no_comparison(
    name: str, snapshot: SnapshotAssertion
) -> None:
    """A control is checked like an arm: the divisor must be as sound as the dividend."""
    candidate, options = INCOMPARABLE[name]
    base = arm(1, 2, 3) if options.relative_to is None else arm(1, made=BOTH)
    found = compare_arms(base, [candidate], options)
    assert {one.verdict for one in found} == {"not comparable"}
    assert found[0].reason == snapshot


def test_arms_that_cannot_be_had_are_refused(
    tmp_path: Path, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    saved_file(tmp_path, BOTH, "runs/one.json")
    saved_file(tmp_path, replace(BOTH, seed=2), "runs/two.json")
    renamed = arm(2, change=lambda saved: saved["deeptweak"].update(run_id="another"))
    refused: list[str] = []
    assert [
        read_arm(name, refused).tweakset for name in ("runs/one.json:fast", "runs/one.json")
    ] == ["fast", None]
    assert [len(read_arm(name, refused).runs) for name in ("runs/*.json", "runs")] == [2, 2]
    cases: dict[str, Callable[[], object]] = {
        "unknown tweak set": lambda: read_arm("runs/one.json:slow", refused),
        "no file": lambda: read_arm("runs/new-*.json", refused),
        "a copy of another name": lambda: compare_arms(
            Side("base", (*arm(1, 2).runs, *renamed.runs)), [arm(3)]
        ),
        "nothing in common": lambda: compare_arms(
            arm(1), [arm(2, made=Made(workloads=("lora_finetune",)))]
        ),
    }
    complaints = {}
    for name, ask in cases.items():
        with pytest.raises(Refused) as refusal:
            ask()
        complaints[name] = str(refusal.value)
    assert refused == []
    assert complaints == snapshot


def on_nodes(nodes: Callable[[JSON], str]) -> Run:
    saved = saved_run(Made())
    for part in saved["benchmarks"]:
        part["extra_info"]["node"] = nodes(part["extra_info"])
    return from_json(saved, "run.json")


def test_an_arm_on_a_machine_of_its_own_is_not_compared() -> None:
    (one,) = compare(
        on_nodes(lambda cell: "other" if cell["tweakset"] == "stock-again" else "made-up")
    )
    assert one.verdict == "not comparable"
    assert (
        one.reason
        == "the arms ran on different machines: made-up against other, so the machine is part of "
        "any difference."
    )
    (several,) = compare(on_nodes(lambda cell: f"node-{cell['block'] % 2}"))
    assert several.primary is not None


def test_two_runs_are_one_unit_an_arm_whatever_their_blocks_say() -> None:
    """The difference holds all changes between the runs; one run per arm cannot size them."""
    (one, _) = compare_arms(arm(1), [arm(2, made=Made(base_s=0.044))])
    assert (one.verdict, one.reason, one.primary) == ("not comparable", ONE_RUN_AN_ARM, None)
    assert one.observed == pytest.approx(0.040 / 0.044 - 1, abs=0.02)


def test_one_candidate_run_is_judged_by_the_baselines_spread() -> None:
    """And by the course in time: of 5 runs, level, drift and step leave 2 degrees of freedom."""
    (one, _) = compare_arms(arm(1, 2, 3, 4), [arm(5, made=Made(base_s=0.060))])
    assert one.primary
    assert (one.primary.df, one.primary.n_candidate, one.verdict) == (2, 1, "regressed")


def test_old_runs_against_new_are_no_finding_on_drifting_hosts() -> None:
    """1 % slower from run to run, so 6 % between the arms: drift, as are tweaks of 30 or 10 %."""
    drifting = [
        [arm(seed, made=Made(base_s=0.040 * 1.01**seed / (1 + gain))).runs[0] for seed in range(12)]
        for gain in (0.0, 0.3, 0.1)
    ]
    equal, much, little = drifting
    cases = {
        "equal": (equal[:6], equal[6:]),
        "much faster": (equal[:6], much[6:]),
        "faster, in turns": (equal[::2], little[1::2]),
    }
    found = {
        name: compare_arms(Side("old", tuple(old)), [Side("new", tuple(new))])[0].verdict
        for name, (old, new) in cases.items()
    }
    assert found == {
        "equal": "equivalent",
        "much faster": "improved",
        "faster, in turns": "improved",
    }


def test_arms_far_apart_or_of_unknown_time_are_not_comparable() -> None:
    """Four runs in 40 minutes cannot speak for ten hours; without times, turns are unknown."""

    def untimed(side: Side) -> Side:
        return replace(side, runs=tuple(replace(run, started_utc="") for run in side.runs))

    base, late = arm(1, 2, 3, 4), arm(64, 65, 66, 67)
    assert compare_arms(arm(1, 2, 3), [arm(5, 6, 7)])[0].primary, (
        "a gap just as long as the runs of an arm span"
    )
    assert "1.5 times" in compare_arms(arm(1, 2, 3), [arm(6, 7, 8)])[0].reason
    verdicts = [
        compare_arms(*arms)[0]
        for arms in ((base, [late]), (untimed(base), [untimed(arm(5, 6, 7))]))
    ]
    assert [one.verdict for one in verdicts] == ["not comparable"] * 2
    assert "20 times" in verdicts[0].reason
    assert "are unknown" in verdicts[1].reason


def test_blocks_with_cells_not_run_side_by_side_are_no_pairs() -> None:
    """All cells of one arm, then the other's: with 5 % drift, pairs would call 9 runs of 10."""
    made = Made(
        arms=(STOCK, replace(FAST, gain=0.0)), blocks=10, interleaved=False, drift=0.05, run_cv=0.02
    )
    found = [
        compare(from_json(saved_run(replace(made, seed=seed)), "run.json"))[0] for seed in range(20)
    ]
    assert {one.primary.design for one in found if one.primary} == {"two-sample"}
    # 99 % band of 20 at 5 %.
    assert sum(one.verdict in {"improved", "regressed"} for one in found) <= 4


def test_relative_to_a_common_control_drift_between_runs_cancels() -> None:
    """The second run is 30 % slower; `fast` is 10 % faster than its own stock in both: equal."""
    made = Made(arms=(STOCK, AGAIN, FAST), blocks=10)
    drifted = replace(made, base_s=0.052)
    comparisons = compare_arms(
        arm(1, made=made), [arm(2, made=drifted)], CompareOptions(relative_to="stock")
    )
    fast = next(one for one in comparisons if one.tweakset == "fast")
    assert fast.primary
    assert fast.verdict != "regressed"
    assert fast.primary.low < 0 < fast.primary.high
    assert any("changed by -2" in note for note in fast.notes)
    assert "stock" not in [one.tweakset for one in comparisons]


def test_a_damaged_file_is_named_and_the_rest_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = [saved_file(tmp_path, Made(seed=seed), f"old-{seed}.json") for seed in (1, 2, 3)]
    new = saved_file(tmp_path, Made(seed=9), "new.json")
    base[1].write_text(base[1].read_text()[:-100])
    assert main(["compare", f"{tmp_path}/old-*.json", str(new), "--json"]) == 0
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert err.startswith(f"refused: {base[1]}: ")
    assert len(said["refused"]) == 1
    assert {one["verdict"] for one in said["comparisons"]} == {"not comparable"}


def test_stock_of_two_real_runs_differs_and_gets_no_verdict() -> None:
    """Committed runs, three days apart: cell-wise each p is below 0.05, stock 11 to 43 % slower."""
    runs = Path(__file__).parents[2] / "data" / "runs"
    old, new = (
        read_arm(str(runs / f"turns_2026-11-{day}_amd-epyc-2cpu.json.xz"), []) for day in (25, 28)
    )
    comparisons = compare_arms(old, [new])
    assert {one.verdict for one in comparisons} == {"not comparable"}
    stocks = [one for one in comparisons if one.tweakset in ("stock", "stock-again")]
    assert len(stocks) == 8
    for one in stocks:
        assert -0.43 < (one.observed or 0) < -0.11
        sides = [Sides(arm, one.study).side(one.workload, one.tweakset) for arm in (old, new)]
        before, after = (
            [cell.metrics[one.primary_metric.name] for cell in found.cells.values()]
            for found in sides
            if found
        )
        assert two_sample_effect(one.primary_metric, before, after, one.margin).p < 0.05


def test_picking_one_contrast_is_no_new_study() -> None:
    """A contrast shown alone keeps its p among all: a filter must not make a finding."""
    made = Made(
        arms=(STOCK, *(Arm(f"set-{at}", 0.02, SWAPPINESS) for at in range(6))),
        workloads=("one", "two"),
        run_cv=0.02,
    )
    run = from_json(saved_run(made), "run.json")
    every = {one.tweakset: one for one in compare(run) if one.workload == "two"}
    (picked,) = compare(run, options=CompareOptions(tweaksets=("set-3",), workloads=("two",)))
    (named,) = compare_arms(
        Side("run.json", (run,), "stock"),
        [Side("run.json", (run,), "set-3")],
        CompareOptions(workloads=("two",)),
    )
    for one in (picked, named):
        assert (one.p_adjusted, one.family, one.verdict) == (
            every["set-3"].p_adjusted,
            12,
            every["set-3"].verdict,
        )


def test_several_runs_with_both_arms_count_once_each() -> None:
    """A tweak with +5 % one day and -5 % the next has many blocks, few days: days are the unit."""
    runs = [
        arm(seed, made=Made(arms=(STOCK, replace(FAST, gain=gain)), blocks=8)).runs[0]
        for seed, gain in enumerate((0.05, -0.04, 0.06), 1)
    ]
    (one,) = compare_arms(Side("runs", tuple(runs), "stock"), [Side("runs", tuple(runs), "fast")])
    assert one.primary
    assert (one.pairs, one.blocks, one.primary.n_baseline, one.verdict) == (3, 3, 3, "inconclusive")
    assert one.primary.low < 0 < one.primary.high
    (two,) = compare_arms(
        Side("runs", tuple(runs[:2]), "stock"), [Side("runs", tuple(runs[:2]), "fast")]
    )
    assert (two.verdict, two.primary) == ("not comparable", None)


def odd_block(saved: JSON) -> JSON:
    for benchmark in saved["benchmarks"]:
        record = benchmark["extra_info"]
        if (record["tweakset"], record["block"]) == ("fast", 1):
            record["steps"]["wall_s"] = [value * 1.6 for value in record["steps"]["wall_s"]]
            record["metrics"] = {}
    return saved


def test_tables(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """One table, whatever is compared.

    Workloads of one row share one; hundreds of comparisons are one screen, a count of each verdict,
    the differences shown and the commonest reasons; a screen says by what it is adjusted.
    """
    monkeypatch.chdir(tmp_path)
    suite = Made(arms=(STOCK,), workloads=tuple(f"suite.py::test_{at}" for at in range(4)))
    for seed in range(1, 7):
        saved_file(
            tmp_path, replace(suite, seed=seed), f"{'old' if seed < 4 else 'new'}-{seed}.json"
        )
    quiet = Made(steps=3, warmup=0, run_cv=0.001, step_cv=0.001)
    saved_file(
        tmp_path,
        replace(
            quiet,
            arms=(STOCK, *(Arm(f"s{at:02}", 0.5 * (at < 20), SWAPPINESS) for at in range(60))),
        ),
        "many.json",
    )
    odd = Made(arms=(STOCK, Arm("fast", 0.02, SWAPPINESS)), blocks=12, run_cv=0.001, step_cv=0.001)
    Path("odd.json").write_text(json.dumps(odd_block(saved_run(odd))))
    pages = {
        "two runs": printed(capsys, "compare", "old-*.json", "new-*.json"),
        "many": printed(capsys, "compare", "many.json"),
        "odd": printed(capsys, "compare", "odd.json", "--adjust", "bh"),
    }
    assert max(len(line) for page in pages.values() for line in page.splitlines()) <= 100
    assert len(pages["many"].splitlines()) < 40
    assert "s59" in printed(capsys, "compare", "many.json", "--all")
    assert pages == snapshot
