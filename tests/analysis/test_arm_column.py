"""`compare RUN --arm=COLUMN`: levels of any column, judged like tweak sets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.__main__ import main
from analysis.arm_column import by_column
from analysis.arms import Arm
from analysis.cells import cells
from analysis.checks import warnings_of
from analysis.compare import CompareOptions, compare, compare_arms
from analysis.contrasts import contrasts
from analysis.load import load
from analysis.pairing import metric_named
from analysis.terms import Comparison, Refused, Run, SavedWorkload, UnknownName

RUNS = Path("data/runs")
MEAN = metric_named("step_time_mean_s")


@pytest.fixture(scope="module")
def jobs() -> Run:
    return load(str(RUNS / "cluster-scheduling_2026-11-22_amd-epyc-2cpu.json"))


def compared(run: Run, column: str, baseline: str) -> dict[str, Comparison]:
    base, levels, *_ = by_column(Arm("a run", (run,)), column, baseline, MEAN)
    return {one.tweakset: one for one in compare_arms(base, [levels])}


def with_params(run: Run, of: str, **params: object) -> Run:
    """The run, in which the workload of one policy has other parameters."""

    def changed(workload: SavedWorkload) -> SavedWorkload:
        return (
            replace(workload, params={**workload.params, **params})
            if workload.params["policy"] == of
            else workload
        )

    return replace(run, workloads={name: changed(one) for name, one in run.workloads.items()})


def test_policies_are_judged_like_tweak_sets(jobs: Run) -> None:
    found = compared(jobs, "policy", "fifo")
    assert {name: one.verdict for name, one in found.items()} == {
        "sjf": "improved",
        "least_slack": "improved",
        "priority": "inconclusive",
        "fair_share": "inconclusive",
    }
    stock = cells([jobs]).query("tweakset == 'stock'")
    frame = contrasts(stock, "param.policy", "fifo", {MEAN.name: "log"}).set_index("arm")
    for name, one in found.items():
        assert one.primary is not None
        assert (1 / (1 + one.primary.gain), one.primary.p, one.p_adjusted) == pytest.approx(
            tuple(frame.loc[name, ["value", "p", "p_adjusted"]])
        )
        assert (one.level_of, one.untouched, one.guard) == ("policy", False, False)


def test_a_level_that_differs_beyond_the_column_is_named_as_out(jobs: Run) -> None:
    sjf = next(name for name, one in jobs.workloads.items() if one.params["policy"] == "sjf")
    base, levels, told, _ = by_column(
        Arm("a run", (with_params(jobs, "sjf", slots=4),)), "policy", "fifo", MEAN
    )
    assert told == [
        f"Left out {sjf}: its cells also differ from those with policy fifo in slots (4 against 2)."
    ]
    assert {one.tweakset for one in compare_arms(base, [levels])} == {
        "least_slack",
        "priority",
        "fair_share",
    }


def test_a_workload_without_the_column_is_named(jobs: Run) -> None:
    told = by_column(
        Arm("a run", (with_params(jobs, "sjf", policy=None),)), "policy", "fifo", MEAN
    ).notes
    assert [line.rpartition(": ")[2] for line in told] == ["it has no policy."]


def test_two_baselines_for_one_level_are_not_both_used(jobs: Run) -> None:
    with pytest.raises(Refused, match="so the baseline is ambiguous"):
        compared(with_params(jobs, "sjf", policy="fifo"), "policy", "fifo")


def with_a_slower_copy(run: Run, declared: tuple[str, ...]) -> Run:
    """The run, in which stock-again does 0.7 of the work; `declared` is the studies' baseline."""
    slower = {"throughput_samples_per_s": 0.7}
    cells = [
        replace(
            cell,
            metrics={name: value * slower.get(name, 1.0) for name, value in cell.metrics.items()},
        )
        if cell.tweakset == "stock-again"
        else cell
        for cell in run.cells
    ]
    studies = {name: replace(study, baseline=declared) for name, study in run.studies.items()}
    return replace(run, cells=tuple(cells), studies=studies)


@pytest.fixture(scope="module")
def caches() -> Run:
    return load(str(RUNS / "io_readahead_2026-11-22_amd-epyc-2cpu.json"))


def test_levels_with_different_untouched_arms_give_no_conclusion(caches: Run) -> None:
    """Where the study declared both to be its baseline, as among tweak sets."""
    loud = with_a_slower_copy(caches, ("stock", "stock-again"))
    base, levels, notes, doubted = by_column(Arm("", (loud,)), "cache", "cold")
    (one,) = compare_arms(base, [levels], CompareOptions(doubted=doubted))
    assert (one.verdict, one.tweakset) == ("not comparable", "warm")
    assert "stock-again changes nothing and differs from stock" in one.reason
    assert [line.partition(":")[0] for line in notes] == ["A/A check"] * 2, "of both workloads"
    whole = compare(loud)
    assert notes == [line for line in warnings_of(loud, whole) if line.startswith("A/A")], (
        "one function writes them"
    )
    assert {one.verdict for one in whole} == {"not comparable"}


def test_workloads_are_a_column(jobs: Run) -> None:
    names = {one.params["policy"]: name for name, one in jobs.workloads.items()}
    found = compared(jobs, "workload", names["fifo"])
    assert found[names["sjf"]].primary == compared(jobs, "policy", "fifo")["sjf"].primary


@pytest.mark.parametrize(
    ("column", "baseline", "error", "said"),
    [
        ("polcy", "fifo", UnknownName, "Did you mean 'policy'"),
        ("policy", "fif", UnknownName, "Did you mean 'fifo'"),
        ("policy", None, Refused, "needs --baseline with one of the levels: fair_share, fifo"),
        ("jobs", "200", Refused, "jobs is 200 in every cell"),
        ("fault_at_s", "3", UnknownName, "fault_at_s"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    jobs: Run, column: str, baseline: str | None, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        by_column(Arm("a run", (jobs,)), column, baseline)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"metric": metric_named("step_time_men_s")}, "Did you mean 'step_time_mean_s'"),
        ({"only": ["job_strem"]}, "no workload 'job_strem'"),
    ],
)
def test_an_unknown_metric_or_workload_gets_the_nearest_name(
    jobs: Run, how: dict[str, Any], said: str
) -> None:
    with pytest.raises(UnknownName, match=said):
        by_column(Arm("a run", (jobs,)), "policy", "fifo", **how)


def test_monitors_are_arms_too(capsys: pytest.CaptureFixture[str]) -> None:
    monitored = str(RUNS / "monitoring-sampler_2026-11-22_amd-epyc-2cpu.json")
    answers = []
    for words in (
        [],
        ["--arm=monitor", "--baseline=stock"],
        ["--arm=tweakset", "--baseline=stock"],
    ):
        assert main(["compare", monitored, "--json", *words]) == 0
        answers.append(json.loads(capsys.readouterr().out)["comparisons"])
    assert answers[1] == answers[2]
    assert {one["tweakset"] for one in answers[1]} == {one["tweakset"] for one in answers[0]}
