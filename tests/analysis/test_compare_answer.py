"""Words of comparisons: the answer first, lines no wider than the page, each reason once."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from analysis.__main__ import main
from analysis.again import recipe
from analysis.answer import Line, Table
from analysis.checks import warnings_of
from analysis.compare import Unseen, compare, unseen
from analysis.compare_answer import answer_of
from analysis.labels import amount
from analysis.load import from_json
from analysis.render import csv as as_csv
from analysis.render.text import render
from analysis.studies.plan.plan import DAY_S, Goal, plan
from analysis.terms import Comparison, Metric, Run
from analysis.wording import listed, percent, place_of, probability, size, speed, unsigned
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

TURNS = Path(__file__).parents[2] / "data" / "runs" / "turns_2026-11-25_amd-epyc-2cpu.json.xz"

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


SWAPPINESS = {"vm.swappiness": "1"}
EVERYTHING = Made(
    arms=(
        STOCK,
        AGAIN,
        Arm(
            "thp-always",
            0.12,
            scripts=1,
            side_effects={"/sys/kernel/mm/transparent_hugepage/enabled": ["madvise", "always"]},
        ),
        Arm("writeback-late", -0.06, {"vm.dirty_ratio": "40"}),
        Arm(
            "a-name-that-is-far-too-long-for-one-line-of-any-table",
            0.0,
            SWAPPINESS,
            already_in_force=["vm.swappiness"],
        ),
        Arm(
            "isolate",
            requested={"isolcpus": "2-11"},
            kind="boot",
            broken=dict.fromkeys(range(1, 7), ("skipped", "no such boot token. " * 9)),
        ),
        Arm("fragile", requested=SWAPPINESS, broken=dict.fromkeys((1, 4), ("failed", "killed"))),
        Arm(
            "ignored", requested=SWAPPINESS, observed={"vm.swappiness": "60"}, warnings=["a" * 150]
        ),
        Arm("[red]markup[/red]", -0.9, SWAPPINESS),
    ),
    workloads=("cnn_train", "checkpoint_train", "a_workload_with_a_long_name_too"),
    primaries={"checkpoint_train": ("step_time_p10_s", "lower")},
)


def judged(made: Made) -> tuple[list[Comparison], list[Run]]:
    run = from_json(saved_run(made), "made up")
    return compare(run), [run]


def rendered(made: Made, width: int = 100, *, color: bool = False, source: str = "") -> str:
    return render(answer_of(*judged(made), source=source), width, color=color)


@pytest.mark.parametrize(
    "made",
    [
        EVERYTHING,
        Made(),
        Made(blocks=1),
        Made(arms=(STOCK,)),
        Made(run_cv=3.0, blocks=3),
        Made(arms=(STOCK, Arm("enormous", 1e6, SWAPPINESS)), run_cv=1.0),
        Made(arms=(STOCK, AGAIN, *(Arm(f"set-{at}", 0.3, SWAPPINESS) for at in range(30)))),
    ],
    ids=["everything", "smallest", "one block", "stock alone", "noise", "enormous", "many"],
)
def test_no_line_is_wider_than_100_columns(made: Made) -> None:
    assert max(len(line) for line in rendered(made).splitlines()) <= 100


def test_the_table(snapshot: SnapshotAssertion) -> None:
    """Words beside numbers, the base in its own unit, every reason below, and once.

    Square brackets in a name are no markup. Hoefler & Belli's first rule: a speed-up without its
    base says nothing.
    """
    assert rendered(EVERYTHING) == snapshot
    assert rendered(Made(arms=(STOCK,))) == snapshot(name="stock alone")


def test_numbers_are_written_for_people() -> None:
    assert (percent(0.0123), percent(-0.0004), percent(12.5)) == ("+1.2 %", "+0.0 %", "+1.2e+03 %")
    assert (unsigned(0.03), unsigned(0.0312), unsigned(99)) == ("3 %", "3.1 %", "over 1000 %")
    assert (size(0.03), size(99)) == ("3.0", ">1000")
    assert [probability(p) for p in (0.0, 0.00099, 0.0012, 0.0494, 0.0999, 0.5)] == [
        "<0.001",
        "<0.001",
        "0.001",
        "0.049",
        "0.10",
        "0.50",
    ]
    assert (listed([3]), listed([2, 1])) == ("block 3", "blocks 1, 2")


def test_claims_come_first_and_others_are_grouped_by_evidence() -> None:
    shown = answer_of(*judged(EVERYTHING))
    assert shown.title.startswith("Faster: thp-always 10.6 to 13.3 %. Slower: ")
    marks = [
        part.mark for section in shown.sections for part in section.parts if isinstance(part, Line)
    ]
    assert marks == ["same", "can't tell", "not comparable", "not comparable", "run"]
    every = answer_of(*judged(EVERYTHING), every=True)
    table = next(
        part for section in every.sections for part in section.parts if isinstance(part, Table)
    )
    assert len(table.rows) == len(
        [one for one in compare(judged(EVERYTHING)[1][0]) if not one.guard]
    )


@pytest.mark.parametrize(
    ("low", "high", "explained"),
    [(-0.029, 0.029, False), (-0.0295, 0.01, True), (-0.01, 0.031, True)],
)
def test_the_same_is_explained_if_95_percent_exceed_the_margin(
    low: float, high: float, *, explained: bool
) -> None:
    """Of 3 %, that is from 1/1.03 to 1.03; the 90 % interval, which decided, lies inside."""
    comparisons, runs = judged(Made(arms=(STOCK, Arm("alike", 0.0, SWAPPINESS))))
    (one,) = comparisons
    assert one.primary
    one = replace(
        one,
        verdict="equivalent",
        reason="the 90 % interval lies inside",
        primary=replace(one.primary, low=low, high=high),
    )
    assert (one.reason in render(answer_of([one], runs))) == explained


@pytest.mark.parametrize(("p", "agree"), [(0.2, True), (0.04, False)])
def test_untouched_arms_agree_where_they_cannot_be_told_apart(p: float, *, agree: bool) -> None:
    """If they can be told apart, a finding warns."""
    comparisons, runs = judged(Made(arms=(STOCK, AGAIN, Arm("fast", 0.1, {"vm.swappiness": "1"}))))
    changed = [
        replace(one, primary=replace(one.primary, p=p)) if one.untouched and one.primary else one
        for one in comparisons
    ]
    result = answer_of(changed, runs)
    assert any("Equal arms differ by" in text for _, text in result.legend) == agree
    assert any("trust the verdicts" in line.text for line in result.findings) != agree


def test_csv_has_every_contrast() -> None:
    comparisons, runs = judged(EVERYTHING)
    rows = list(csv.DictReader(io.StringIO(as_csv.render(answer_of(comparisons, runs)))))
    assert [(row["workload"], row["tweakset"], row["verdict"]) for row in rows] == [
        (one.workload, one.tweakset, one.verdict) for one in comparisons
    ]
    assert [float(row["gain"]) for row in rows if row["gain"]] == [
        one.primary.gain for one in comparisons if one.primary
    ]


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("step_time_p10_s", 0.0196, "19.6 ms"),
        ("throughput_samples_per_s", 1337.2, "1337 samples/s"),
        ("cpu_s_per_step", 0.02688, "0.02688 s"),
    ],
)
def test_a_baseline_has_its_unit(metric: str, value: float, text: str) -> None:
    assert amount(Metric(metric, "lower"), value) == text


MINE = Arm("mine", requested={"vm.swappiness": "1"})
NOISY = Made(
    arms=(STOCK, AGAIN, MINE),
    workloads=("cnn_train", "lora_finetune"),
    run_cv=0.1,
    baseline=("stock", "stock-again"),
)


def read(made: Made) -> Run:
    return from_json(saved_run(made), "made up")


def of(made: Made) -> Unseen | None:
    return unseen(compare(read(made)), read(made))


def test_what_it_says_is_what_compare_and_plan_say() -> None:
    found, run = of(NOISY), read(NOISY)
    comparisons = compare(run)
    assert found is not None
    assert (found.contrasts, found.blocks, found.margin) == (2, 6, 0.03)
    assert found.mde == median(one.mde for one in comparisons if one.mde and not one.guard)
    assert found.aa_log_sd == median(
        one.primary.log_sd for one in comparisons if one.guard and one.primary
    )
    planned = plan(run, Goal(0.03))
    assert (found.plan_blocks, found.plan_s, found.on_this_machine) == (
        planned.blocks,
        planned.total_s,
        True,
    )
    assert found.others is None  # made-up telemetry knows no process


@pytest.mark.parametrize(
    "made",
    [
        replace(NOISY, arms=(STOCK, AGAIN, replace(MINE, gain=2.0))),  # improved
        replace(NOISY, run_cv=0.001, step_cv=0.001),  # equivalent
        replace(NOISY, arms=(STOCK, AGAIN)),  # an A/A run is to see nothing
    ],
)
def test_decided_or_unchanged_contrasts_get_no_advice(made: Made) -> None:
    assert of(made) is None


def test_where_equal_arms_differ_no_number_of_blocks_is_named() -> None:
    """Such effects are nothing to plan by, and both sentences on the machine agree."""
    run = read(
        replace(
            NOISY,
            arms=(STOCK, replace(AGAIN, gain=1.3), MINE),
            workloads=("cnn_train",),
            run_cv=0.001,
        )
    )
    comparisons = compare(run)
    refused = unseen(comparisons, run)
    assert refused is not None
    assert refused.mde is None
    assert "Most often: " in refused.sentence
    assert "To see" not in refused.sentence
    (doubt,) = [line for line in warnings_of(run, comparisons) if line.startswith("A/A check")]
    assert "By chance, about one check in 1,000 differs this much" in doubt
    assert doubt.endswith("no conclusion is drawn for this workload.")


def test_what_takes_longer_than_a_day_is_not_for_this_machine() -> None:
    """Blocks of 6 cells, 1.5 s each, that scatter by 300 %."""
    found = of(replace(NOISY, run_cv=3.0))
    assert found is not None
    assert found.plan_s is None or found.plan_s > DAY_S
    assert found.on_this_machine is False


def on_cluster(*nodes: str) -> Run:
    saved: dict[str, Any] = saved_run(Made())
    saved["machine_info"]["deeptweak"]["kubernetes"] = {"version": "v1.34.4"}
    for at, benchmark in enumerate(saved["benchmarks"]):
        ways = {
            "apply": "agent",
            "workload_via": "job",
            "host_network": False,
            "api_requests": 5,
            "image": "registry.example/deeptweak:1",
        }
        benchmark["extra_info"] |= {
            "target": "kubernetes",
            "node": nodes[at % len(nodes)],
            "place": ways,
        }
    return from_json(saved, "here")


def test_where_it_ran_is_one_line(snapshot: SnapshotAssertion) -> None:
    """The rerun command does not target this machine: as root, it would change the kernel here."""
    assert [place_of(on_cluster(*nodes)) for nodes in (("a",), ("b", "a"))] + [
        recipe(on_cluster("a"))
    ] == snapshot
    assert place_of(from_json(saved_run(Made()), "here")) == ""


def test_the_first_sentence_claims_nothing_that_a_note_contests(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["compare", str(TURNS)]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert page.startswith(
        "Faster: malloc-keep-memory 3.4 and 20.2 %, tcp-cubic 7.7 %. Contradicted by throughput: "
        "malloc-hugepages, thp-always. Below the margin: deeptweak-exp3-sysctl. 17 contrasts "
    )


def test_a_great_loss_is_said_as_a_factor_too() -> None:
    assert speed(-0.722) == "72.2 % slower (3.6 × as long)"
    assert speed(-0.31) == "31 % slower (1.4 × as long)"
    assert [speed(gain) for gain in (-0.29, 0.722)] == ["29 % slower", "72.2 % faster"]
