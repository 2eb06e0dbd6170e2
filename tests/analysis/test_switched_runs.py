"""Runs whose settings were alternated inside processes, from the saved file to the verdict."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Any

import pytest
import scipy.stats

from analysis.arms import Arm
from analysis.compare import CompareOptions, compare, compare_arms
from analysis.compare_answer import answer_of
from analysis.load import from_json
from analysis.render.text import render
from analysis.studies.gate.gate import judge
from analysis.studies.gate.limits import Limits
from analysis.switched import expanded
from analysis.terms import Comparison, Run, Unreadable
from tests.made_switched import Switched, switched_run
from tests.synthetic import AGAIN
from tests.synthetic import Arm as Made

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


TUNED = Made("tuned", gain=0.05, requested={"vm.swappiness": "10"})
OTHER = Made("other", requested={"vm.dirty_ratio": "10"})
MEDIAN = CompareOptions(metrics=("step_time_median_s",))


PLAIN = Switched()


def loaded(made: Switched = PLAIN) -> Run:
    return from_json(switched_run(made), "made-up")


def one(run: Run, tweakset: str) -> Comparison:
    return next(found for found in compare(run) if found.tweakset == tweakset)


def test_a_process_stands_for_its_set_and_a_segment_for_its_arm() -> None:
    """Two processes of 16 pairs: 128 counted steps per cell; 64 split cells, each pair alike."""
    run = loaded(Switched(arms=(TUNED,)))
    apart = expanded(run)
    assert [len(cell.steps.wall_s) - cell.steps.warmup for cell in run.cells if cell.steps] == [
        128,
        128,
    ]
    assert (
        sum(cell.tweakset == "stock" for cell in apart.cells)
        == sum(cell.tweakset == "tuned" for cell in apart.cells)
        == 32
    )
    by_pair: dict[int, list[Any]] = {}
    for cell in apart.cells:
        by_pair.setdefault(cell.block, []).append(cell)
    assert len(by_pair) == 32
    for first, second in by_pair.values():
        assert {first.tweakset, second.tweakset} == {"stock", "tuned"}
        assert (first.steps.tokens, first.steps.warmup, first.process) == (
            second.steps.tokens,
            2,
            second.process,
        )
    assert [cell.order for cell in apart.cells] == list(range(1, 65))


def broken(change: dict[str, Any], at: int = 1) -> dict[str, Any]:
    saved = switched_run(Switched(pairs=4))
    segments = saved["benchmarks"][0]["extra_info"]["segments"]
    segments[at] |= change
    return saved


def test_segments_that_are_no_pairs_of_all_steps_are_refused() -> None:
    same = broken({})["benchmarks"][0]["extra_info"]["segments"][0]["arm"]
    wrong: dict[str, list[Any]] = {
        "first": [11, -1],
        "steps": [7, 0],
        "settle": [3],
        "pair": [9, 2],
        "arm": ["both", same],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(Unreadable):
                from_json(broken({name: value}), "made-up")


def test_the_verdict_says_what_it_stands_on(snapshot: SnapshotAssertion) -> None:
    run = loaded(Switched(arms=(AGAIN, TUNED, OTHER), processes=2, stalled=0))
    found = one(run, "tuned")
    assert found.verdict == "improved"
    assert (found.primary and found.primary.design, found.pairs, found.blocks, found.processes) == (
        "switched",
        32,
        32,
        2,
    )
    assert found.notes == snapshot
    table = render(answer_of(compare(run), [run]))
    assert all(len(line) <= 100 for line in table.splitlines())
    assert "32/32" in table


def test_a_set_that_differs_from_process_to_process_is_said_to(snapshot: SnapshotAssertion) -> None:
    assert (
        one(loaded(Switched(arms=(TUNED,), processes=4, gain_sd=0.1, stalled=0)), "tuned").notes
        == snapshot
    )


def test_two_tweak_sets_never_stood_beside_each_other() -> None:
    run = loaded(Switched(arms=(AGAIN, TUNED, OTHER)))
    found = {contrast.tweakset: contrast for contrast in compare(run, "tuned")}
    assert found["other"].verdict == "not comparable"
    assert "never took turns" in found["other"].reason
    stock, tuned = found["stock"].primary, one(run, "tuned").primary
    assert stock
    assert tuned
    assert (1 + stock.gain) * (1 + tuned.gain) == pytest.approx(1)
    assert not any("left out" in note for note in found["stock"].notes)


def test_what_was_not_measured_says_why() -> None:
    """A set that cannot be switched is skipped in each process; a failed process harms no other."""
    limited = Made(
        "limited",
        broken=dict.fromkeys(
            (1, 2, 3), ("skipped", "memlock: a process limit is set before a process starts")
        ),
    )
    torn = Made(
        "torn", requested={"vm.swappiness": "10"}, broken={2: ("failed", "swappiness was 77")}
    )
    run = loaded(Switched(arms=(AGAIN, limited, torn), processes=3))
    assert one(run, "limited").reason.startswith("skipped: memlock")
    assert (one(run, "torn").pairs, one(run, "torn").failed, one(run, "torn").processes) == (
        32,
        1,
        2,
    )
    assert any("swappiness was 77" in note for note in one(run, "torn").notes)


def test_carry_over_takes_the_verdict_away() -> None:
    """63 % act after six steps, with two to settle: first halves show less; no gate passes."""
    run = loaded(Switched(arms=(AGAIN, TUNED), processes=6, memory=6, stalled=0))
    found = one(run, "tuned")
    assert found.carry_over
    early, late, p = found.carry_over
    assert early < late
    assert p < 0.05
    assert (found.verdict, found.reason.partition(":")[0]) == ("inconclusive", "carry-over")
    assert "carry-over:" in render(answer_of(compare(run), [run]))
    own = Arm("made-up", (run,))
    assert judge(own, own, Limits(0.03)).ruling == "undecided"


def test_equal_arms_are_called_different_as_often_as_promised() -> None:
    """150 runs, correlated steps, drift, stalls, three summaries of a segment; carry-over too."""
    runs = 150
    low, high = scipy.stats.binom.ppf([0.005, 0.995], runs, 0.05)
    wrong = {"throughput_samples_per_s": 0, "step_time_p10_s": 0, "step_time_median_s": 0}
    carried = 0
    for seed in range(runs):
        (found,) = compare(loaded(Switched(arms=(OTHER,), seed=seed)), options=MEDIAN)
        for effect in (found.primary, found.second, *found.others):
            assert effect
            wrong[effect.metric.name] += effect.p < 0.05
        carried += found.carry_over is not None and found.carry_over[2] < 0.05
    # A mean of eight steps of which one stalled has tails that make the t-test cautious, never
    # bold.
    assert all(count <= high for count in wrong.values()), wrong
    assert min(wrong["step_time_p10_s"], wrong["step_time_median_s"]) >= low
    assert carried <= high


def test_two_runs_are_compared_by_effects_against_their_stock() -> None:
    base, candidate = (
        loaded(Switched(arms=(AGAIN, TUNED), processes=3, seed=seed, stalled=0)) for seed in (1, 1)
    )
    again = from_json(
        json.loads(
            json.dumps(switched_run(Switched(arms=(AGAIN, TUNED), processes=3, seed=2, stalled=0)))
        ),
        "again",
    )
    arms = Arm("a", (base,), "tuned"), Arm("b", (again,), "tuned")
    (found,) = compare_arms(
        arms[0], [arms[1]], CompareOptions(relative_to="stock", tweaksets=("tuned",))
    )
    assert found.primary
    assert found.primary.low < 0.02
    assert candidate.run_id == base.run_id


def test_what_a_low_quantile_of_eight_steps_is_worth() -> None:
    """The A/A error beside throughput's and the median's: medians of 30 one-process runs."""
    errors: dict[float, list[tuple[float, float, float]]] = {0.0: [], 0.01: []}
    for stalled, found in errors.items():
        for seed in range(30):
            (one_,) = compare(
                loaded(Switched(arms=(OTHER,), processes=1, stalled=stalled, seed=seed)),
                options=MEDIAN,
            )
            assert one_.primary
            assert one_.second
            found.append((one_.primary.log_se, one_.second.log_se, one_.others[0].log_se))
    quiet, struck = (
        [statistics.median(values) for values in zip(*found, strict=True)]
        for found in errors.values()
    )
    assert quiet[1] / quiet[0] == pytest.approx(1.4, abs=0.15)
    assert struck[0] / struck[1] == pytest.approx(8, abs=1.5)
    assert struck[2] / struck[1] == pytest.approx(1, abs=0.1)
    assert quiet[2] / quiet[1] == pytest.approx(1, abs=0.1)
