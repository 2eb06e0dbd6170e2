"""Both untouched arms as the baseline: value per block, family, and the guard between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from analysis.arms import BASELINE
from analysis.arms import Arm as Side
from analysis.compare import CompareOptions, compare, compare_arms, judge
from analysis.ending import ending
from analysis.load import from_json
from analysis.studies.gate.gate import judge as judge_gate
from analysis.studies.gate.limits import Limits
from analysis.studies.gate.session import SessionGate
from analysis.studies.keys.effects import effects_of
from analysis.studies.plan.plan import Goal, plan
from analysis.terms import Comparison, Refused, Run
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, in_turns, saved_run

BOTH = ("stock", "stock-again")
NAME = "stock + stock-again"
MINE = Arm("mine", requested={"vm.swappiness": "1"})
OTHER = Arm("other", requested={"vm.swappiness": "2"})
MADE = Made(arms=(STOCK, AGAIN, MINE), blocks=8, baseline=BOTH)
SIX = replace(MADE, arms=(STOCK, AGAIN, MINE, OTHER), workloads=("cnn_train", "lora_finetune"))


def read(made: Made = MADE, change: Callable[[JSON], None] | None = None) -> Run:
    saved = saved_run(made)
    if change:
        change(saved)
    return from_json(saved, "made up")


def timed(
    times: Mapping[str, Sequence[float]], workload: str = "cnn_train"
) -> Callable[[JSON], None]:
    def change(saved: JSON) -> None:
        for record in (benchmark["extra_info"] for benchmark in saved["benchmarks"]):
            if record["workload"] == workload and record["tweakset"] in times:
                seconds = times[record["tweakset"]][record["block"] - 1]
                record["steps"]["wall_s"], record["metrics"] = (
                    [seconds] * len(record["steps"]["wall_s"]),
                    {},
                )

    return change


def of(comparisons: Sequence[Comparison], tweakset: str, workload: str = "cnn_train") -> Comparison:
    return next(one for one in comparisons if (one.tweakset, one.workload) == (tweakset, workload))


THREE = {"stock": (1.0, 1.0, 2.0), "stock-again": (4.0, 1.0, 8.0), "mine": (1.0, 0.25, 0.5)}


def test_the_baseline_of_a_block_is_the_geometric_mean_of_both() -> None:
    """8 samples a step; √(1·4) = 2, √(1·1) = 1, √(2·8) = 4 s to 1, 0.25, 0.5 s: ratios 2, 4, 8.

    Their logs are 1, 2 and 3 times ln 2: mean ln 4, so + 300 %; standard deviation ln 2; t = 2 √3
    with 2 d.f., of which p = 1 - t / √(t² + 2) = 1 - √(12 / 14). The baseline's own: 8 samples in 2
    s are 4 a second, geometrically.
    """
    mine = of(compare(read(replace(MADE, blocks=3), timed(THREE))), "mine")
    effect = mine.primary
    assert effect is not None
    assert (mine.baseline, mine.baseline_arms, mine.pairs, effect.n_baseline) == (NAME, BOTH, 3, 3)
    assert effect.values_baseline == pytest.approx((4, 8, 2))
    assert (effect.gain, effect.log_sd, effect.baseline) == pytest.approx((3, math.log(2), 4))
    assert (effect.p, mine.p_adjusted) == pytest.approx((1 - math.sqrt(12 / 14),) * 2)


@pytest.mark.parametrize(
    "named", [("stock", None), (None, "stock")], ids=["--baseline", "--relative-to"]
)
def test_who_names_an_arm_means_it_alone(named: tuple[str | None, str | None]) -> None:
    """Stock's 1, 1, 2 s against 1, 0.25, 0.5 s: ratios 1, 4, 4, with cube root 4^(2/3)."""
    baseline, relative_to = named
    run = read(replace(MADE, blocks=3), timed(THREE))
    mine = of(compare(run, baseline, CompareOptions(relative_to=relative_to)), "mine")
    assert mine.primary is not None
    assert (mine.baseline, mine.baseline_arms) == ("stock", ())
    assert mine.primary.gain == pytest.approx(4 ** (2 / 3) - 1)
    undeclared = of(compare(read(replace(MADE, blocks=3, baseline=()), timed(THREE))), "mine")
    assert undeclared.primary is not None
    assert undeclared.primary.values_baseline == mine.primary.values_baseline or relative_to


def test_the_family_is_the_real_sets_and_the_guard_has_its_own_p() -> None:
    """Two workloads with two tweak sets: 4 contrasts, where stock alone has 6 with its copy."""
    found = compare(read(SIX))
    rows = [("stock-again", 1, True), ("mine", 4, False), ("other", 4, False)]
    assert [(one.tweakset, one.family, one.guard) for one in found] == rows * 2
    assert [one.p_adjusted == one.primary.p for one in found if one.guard and one.primary] == [
        True,
        True,
    ]
    assert {one.baseline for one in found if one.guard} == {"stock"}
    smallest = min(
        (one.primary.p, one.p_adjusted) for one in found if one.primary and not one.guard
    )
    assert smallest[1] == pytest.approx(min(1, 4 * smallest[0]))
    assert {one.family for one in compare(read(replace(SIX, baseline=())))} == {6}


def test_a_block_needs_both_arms_with_equal_samples() -> None:
    """Of 8 blocks, the third and fourth lack one arm, the fifth had other samples: 5 are left."""
    arms = (
        replace(STOCK, broken={4: ("skipped", "no root")}),
        replace(AGAIN, broken={3: ("failed", "killed")}),
        MINE,
    )

    def change(saved: JSON) -> None:
        name = "bench[cnn_train-stock-again-b5]"
        (record,) = (one["extra_info"] for one in saved["benchmarks"] if one["name"] == name)
        record["steps"]["tokens"][-1] += 1

    mine = of(compare(read(replace(MADE, arms=arms), change)), "mine")
    assert mine.primary is not None
    assert (mine.pairs, mine.primary.n_baseline, mine.primary.n_candidate, mine.failed) == (
        5,
        5,
        5,
        1,
    )
    left_out = [note for note in mine.notes if "left out" in note]
    assert [note.partition(" left out: ")[0] for note in left_out] == [
        "block 3",
        "block 4",
        "block 5",
    ]
    for word, note in zip(
        ("stock-again: killed", "stock: no root", "tokens"), left_out, strict=True
    ):
        assert word in note


# -- the guard


def slow_copy(saved: JSON) -> None:
    for record in (benchmark["extra_info"] for benchmark in saved["benchmarks"]):
        if (record["workload"], record["tweakset"]) == ("cnn_train", "stock-again"):
            record["steps"]["wall_s"], record["metrics"] = (
                [1.3 * one for one in record["steps"]["wall_s"]],
                {},
            )


def test_where_the_guard_fails_nothing_is_said_of_its_workload() -> None:
    """Other workloads keep their verdicts: one tweak set is 20 % faster, the other equivalent."""
    made = replace(SIX, arms=(STOCK, AGAIN, replace(MINE, gain=0.2), OTHER), margin=0.1)
    found = compare(read(made, slow_copy))
    words = {(one.workload, one.tweakset): one.verdict for one in found}
    assert {word for (workload, _), word in words.items() if workload == "cnn_train"} == {
        "not comparable"
    }
    assert words["lora_finetune", "mine"] == "improved"
    assert words["lora_finetune", "other"] == "equivalent"
    reasons = {one.reason for one in found if one.workload == "cnn_train"}
    assert len(reasons) == 1
    assert "stock-again changes nothing and differs from stock" in reasons.pop()
    # Picking a row is no way round it.
    (alone,) = compare(
        read(made, slow_copy), options=CompareOptions(tweaksets=("mine",), workloads=("cnn_train",))
    )
    assert alone.verdict == "not comparable"


@pytest.mark.parametrize(
    ("p", "word"), [(0.0099, "not comparable"), (0.0101, "inconclusive"), (0.049, "inconclusive")]
)
def test_the_guard_strikes_below_one_in_a_hundred(p: float, word: str) -> None:
    one = of(compare(read()), "stock-again")
    assert one.primary is not None
    assert judge(one, replace(one.primary, p=p, p_equivalent=1.0), p)[0] == word


def test_the_gate_passes_nothing_where_the_guard_fails() -> None:
    runs = (read(SIX, slow_copy),)
    whole = Side("run.json", runs)
    gate = judge_gate(whole, whole, Limits(0.5))
    assert {
        (one.comparison.workload, one.comparison.tweakset, one.ruling) for one in gate.rulings
    } == {
        *(("cnn_train", name, "undecided") for name in ("mine", "other")),
        *(("lora_finetune", name, "pass") for name in ("mine", "other")),
    }
    assert gate.baseline == f"run.json:{NAME}"
    named = judge_gate(Side("run.json:stock", runs, "stock"), whole, Limits(0.5))
    assert {one.comparison.baseline for one in named.rulings} == {"stock"}
    assert named.baseline == "run.json:stock"


# -- two runs, each relative to its own


def before_and_after(
    change: Callable[[JSON], None] | None = None, after: Made = MADE
) -> list[Side]:
    return [Side("old", (read(MADE),)), Side("new", (read(replace(after, seed=2), change),))]


def test_each_run_is_relative_to_both_of_its_own_arms() -> None:
    """A cell's throughput over the geometric mean of the two untouched cells in its block."""
    old, new = before_and_after()
    (one,) = compare_arms(old, [new], CompareOptions(relative_to=BASELINE))
    cells = {
        (cell.tweakset, cell.block): cell.metrics["throughput_samples_per_s"]
        for cell in new.runs[0].cells
    }
    ratios = [
        cells["mine", block] / math.sqrt(cells["stock", block] * cells["stock-again", block])
        for block in range(1, 9)
    ]
    assert one.primary is not None
    assert (one.tweakset, one.relative_to) == ("mine", NAME)
    assert one.primary.values_candidate == pytest.approx(ratios)


def test_a_guard_that_fails_in_either_run_holds_both_up() -> None:
    old, new = before_and_after(slow_copy)
    (one,) = compare_arms(old, [new], CompareOptions(relative_to=BASELINE))
    assert one.verdict == "not comparable"
    assert "made-up-2: stock-again changes nothing and differs" in one.reason
    (named,) = (
        one
        for one in compare_arms(old, [new], CompareOptions(relative_to="stock"))
        if one.tweakset == "mine"
    )
    assert named.verdict != "not comparable"


@pytest.mark.parametrize(("gain", "code"), [(0.0, 0), (-0.3, 1)])
def test_a_session_gated_by_a_saved_run_is_relative_to_both(gain: float, code: int) -> None:
    made = replace(MADE, arms=(STOCK, AGAIN, replace(MINE, gain=gain)), seed=2, margin=0.1)
    text, found = ending(saved_run(made), SessionGate(Limits(0.1), before_and_after()[0]))
    assert found == code
    assert f"relative to {NAME}" in " ".join(text.split())


@pytest.mark.parametrize("whole", [True, False])
def test_a_gate_by_whole_cells_cannot_judge_cells_in_turns(*, whole: bool) -> None:
    """Their metrics differ, so nothing is compared and nothing passes; two turn runs are judged."""
    made = replace(MADE, steps=12)
    old = from_json(saved_run(made) if whole else in_turns(saved_run(made)), "made up")
    text, code = ending(
        in_turns(saved_run(replace(made, seed=2))), SessionGate(Limits(0.3), Side("old", (old,)))
    )
    assert code == (3 if whole else 0)
    assert (
        "one of whole cells and one of cells that took turns" in " ".join(text.split())
    ) == whole


# -- which key did it


@pytest.mark.parametrize(
    ("shift", "baseline", "fails"), [(1.024, (), True), (1.024, BOTH, False), (1.3, BOTH, True)]
)
def test_no_key_is_called_where_the_guard_fails(
    shift: float, baseline: Sequence[str], *, fails: bool
) -> None:
    """Copy 2.4 % off in 8 blocks: t = 2.8, p = .025, below the check's .05, not the guard's .01."""
    stock = [0.04 * math.exp(one) for one in (0.01, -0.01, 0.02, -0.02, 0.0, 0.0, 0.015, -0.015)]
    again = [
        shift * one * math.exp(noise)
        for one, noise in zip(
            stock, (0.03, -0.03, 0.02, -0.02, 0.02, -0.02, 0.01, -0.01), strict=True
        )
    ]
    (one,) = effects_of(
        read(replace(MADE, baseline=baseline), timed({"stock": stock, "stock-again": again}))
    )
    assert one.again_fails == fails


# -- those who read comparisons


def test_a_plan_counts_on_three_quarters_of_the_variance() -> None:
    """An arm against the mean of two: 1 + 1/2 of a cell's variance instead of 1 + 1.

    The guard is in no family.
    """
    both, alone = (
        plan(read(replace(SIX, baseline=arms)), Goal(0.03)).needs[0] for arms in (BOTH, ())
    )
    assert both.log_sd == pytest.approx(math.sqrt(0.75) * alone.log_sd)
    assert (both.family, alone.family, both.baseline, alone.baseline) == (4, 6, NAME, "stock")
    assert (both.arms, both.aa_log_sd, both.df) == (alone.arms, alone.aa_log_sd, alone.df)


@pytest.mark.parametrize(
    "arms", [("stock",), ("stock", "stock"), ("stock", "mine"), ("stock", "nobody")]
)
def test_only_different_untouched_arms_can_be_declared(arms: Sequence[str]) -> None:
    with pytest.raises(Refused, match="baseline"):
        read(replace(MADE, baseline=arms))
