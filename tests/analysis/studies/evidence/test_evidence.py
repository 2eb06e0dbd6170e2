"""One effect over many runs: the runs that count, their joint estimate and verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.__main__ import main
from analysis.load import from_json, load_each
from analysis.studies.evidence.answer import answer
from analysis.studies.evidence.evidence import Evidence, gather
from analysis.studies.evidence.next_hour import outlook
from analysis.terms import Refused, Run
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_run

SWAPPINESS = {"vm.swappiness": "1"}
DAYS = [str(path) for path in sorted((Path(__file__).parents[4] / "data/runs").glob("turns_*"))]
FIRST_THREE = DAYS[:3]


def run(
    seed: int, gain: float, edit: Callable[[JSON], None] = lambda _: None, day: int = 0, **made: Any
) -> Run:
    """The run of a day (that of its seed); `fast` does that much more in the same time."""
    arms = made.pop("arms", (STOCK, AGAIN, Arm("fast", gain, SWAPPINESS)))
    saved = saved_run(
        Made(
            arms=arms,
            baseline=("stock", "stock-again"),
            seed=seed,
            **{"blocks": 8, "run_cv": 0.004, **made},
        )
    )
    for end, hour in (("started_utc", 1), ("ended_utc", 2)):
        saved["deeptweak"][end] = f"2026-01-{day or seed:02d}T{hour:02d}:{seed:02d}:00+00:00"
    edit(saved)
    return from_json(saved, f"day-{seed}.json")


def over(gains: list[float], **made: Any) -> Evidence:
    return gather([run(seed, gain, **made) for seed, gain in enumerate(gains, 1)]).evidence[0]


@pytest.mark.parametrize(
    ("gains", "word"),
    [
        ([0.10, 0.101, 0.10, 0.099, 0.10], "helps everywhere measured"),
        ([0.10, 0.02, 0.06, 0.09, 0.05, 0.07], "helps on average"),
        ([-0.10, -0.101, -0.10, -0.099, -0.10], "harms everywhere measured"),
        ([-0.10, -0.02, -0.06, -0.09, -0.05, -0.07], "harms on average"),
        ([0.001, 0.0, -0.001, 0.0, 0.001, 0.0], "no difference"),
        ([0.07, 0.0, 0.10], "can't tell yet"),
        ([0.10, 0.10], "too few runs"),
        ([0.10], "too few runs"),
    ],
)
def test_the_word_is_what_another_day_would_show(gains: list[float], word: str) -> None:
    found = over(gains)
    assert found.word == word
    assert (found.over is None) == (len(gains) < 3)
    assert found.helped == sum(gain > 0.03 for gain in gains)


def test_an_undecided_effect_says_how_many_more_runs_would_do() -> None:
    found = over([0.07, 0.0, 0.10])
    assert found.more_runs
    assert 1 < found.more_runs < 30
    assert over([0.10] * 5).more_runs is None


def test_the_same_run_in_two_files_counts_once_by_its_longest() -> None:
    whole = [run(seed, 0.05) for seed in (1, 2, 3)]
    cut = replace(run(2, 0.05), origin="begun.json", cells=run(2, 0.05).cells[:9])
    gathered = gather([cut, *whole])
    assert len(gathered.runs) == 3
    assert len(gathered.evidence[0].contributions) == 3
    assert [note.partition(":")[0] for note in gathered.notes] == ["begun.json"]


def test_equal_settings_parameters_and_metric_pool_runs() -> None:
    def other_value(saved: JSON) -> None:
        saved["deeptweak"]["tweaksets"]["fast"]["requested"][0]["value"] = "10"

    def other_batch(saved: JSON) -> None:
        saved["deeptweak"]["workloads"]["cnn_train"]["params"]["batch"] = 16

    def more_steps(saved: JSON) -> None:
        saved["deeptweak"]["workloads"]["cnn_train"]["params"]["steps"] = 99

    def turned(saved: JSON) -> None:
        saved["deeptweak"]["workloads"]["cnn_train"]["primary"] = {
            "name": "throughput_samples_per_s",
            "better": "lower",
        }

    for edit, kinds in ((other_batch, 2), (more_steps, 1)):
        gathered = gather([*(run(seed, 0.05) for seed in (1, 2, 3)), run(4, 0.05, edit)])
        assert len(gathered.evidence) == kinds
    for edit in (other_value, turned):
        try:
            gathered = gather([*(run(seed, 0.05) for seed in (1, 2, 3)), run(4, 0.05, edit)])
        except Refused:  # a metric whose direction was turned round is refused where it is read
            continue
        assert sorted(len(one.contributions) for one in gathered.evidence) in ([1, 3], [3])
    assert gather([run(seed, 0.05) for seed in (1, 2, 3)]).notes == ()


def on(device: str) -> Callable[[JSON], None]:
    def edit(saved: JSON) -> None:
        for one in saved["benchmarks"]:
            one["extra_info"]["workload_facts"]["device"] = device

    return edit


def test_other_devices_are_pooled_apart_unless_grouped_by_it() -> None:
    runs = [*(run(seed, 0.05) for seed in (1, 2, 3)), run(4, 0.2, on("NVIDIA H200"))]
    gathered = gather(runs)
    assert {one.kind: len(one.contributions) for one in gathered.evidence} == {
        "cpu": 3,
        "NVIDIA H200": 1,
    }
    assert [note for note in gathered.notes if "device" in note and "fast under cnn_train" in note]
    (pooled,) = gather(runs, by="device").evidence
    assert [one.columns["device"] for one in pooled.contributions] == [
        "cpu",
        "cpu",
        "cpu",
        "NVIDIA H200",
    ]


def test_a_run_whose_untouched_arms_differ_is_left_out_by_name() -> None:
    odd = run(4, 0.05, arms=(STOCK, Arm("stock-again", 0.2), Arm("fast", 0.05, SWAPPINESS)))
    gathered = gather([*(run(seed, 0.05) for seed in (1, 2, 3)), odd])
    assert [one.run.origin for one in gathered.evidence[0].contributions] == [
        "day-1.json",
        "day-2.json",
        "day-3.json",
    ]
    assert any("day-4" in note and "stock-again" in note for note in gathered.notes)


def stands_there(saved: JSON) -> None:
    for one in saved["benchmarks"]:
        if one["extra_info"]["tweakset"] == "fast":
            one["extra_info"]["tweak"]["already_in_force"] = ["vm.swappiness"]
            one["extra_info"]["tweak"]["before"] = dict(SWAPPINESS)


def test_a_run_whose_setting_is_in_force_anyway_is_no_evidence() -> None:
    gathered = gather([*(run(seed, 0.05) for seed in (1, 2, 3)), run(4, 0.0, stands_there)])
    assert len(gathered.evidence[0].contributions) == 3
    assert any("day-4" in note for note in gathered.notes)


def test_runs_without_an_effect_are_refused() -> None:
    with pytest.raises(Refused, match="None of the 2 runs"):
        gather([run(seed, 0.0, arms=(STOCK, AGAIN)) for seed in (1, 2)])


def named(name: str) -> Callable[[JSON], None]:
    def edit(saved: JSON) -> None:
        saved["machine_info"]["deeptweak"] |= {"hostname": name, "cpu_model": name}

    return edit


@pytest.mark.parametrize(("each", "offered"), [(4, ""), (6, "cpu")])
def test_a_column_that_splits_effects_is_offered_from_ten_days(each: int, offered: str) -> None:
    """On one CPU it helps by 10 %, on the other by nothing."""
    runs = [run(seed, 0.10, named("old")) for seed in range(1, each + 1)]
    runs += [run(seed, 0.0, named("new")) for seed in range(11, each + 11)]
    gathered = gather(runs)
    assert gathered.evidence[0].differs_by == offered
    assert (gathered.evidence[0].word == "depends on the machine") == bool(offered)
    assert ("--by=cpu" in str(answer(gathered).sections)) == bool(offered)


def test_no_column_is_offered_where_effects_differ_by_the_day() -> None:
    gains = [0.1, 0.0] * 6
    runs = [run(at, gain, named("old" if at > 6 else "new")) for at, gain in enumerate(gains, 1)]
    assert gather(runs).evidence[0].differs_by == ""


def test_grouped_runs_say_less_of_another_machine() -> None:
    gains: Mapping[str, float] = {"a": 0.10, "b": 0.02, "c": 0.07}
    runs = [
        run(10 * at + day, gain, named(name))
        for at, (name, gain) in enumerate(gains.items())
        for day in range(3)
    ]
    flat, grouped = gather(runs).evidence[0].over, gather(runs, by="machine").evidence[0].over
    assert flat
    assert grouped
    assert (flat.df, grouped.df) == (8, 2)
    assert grouped.high - grouped.low > 2 * (flat.high - flat.low)


def test_days_pay_more_where_days_differ_and_blocks_elsewhere() -> None:
    differ = outlook(over([0.10, 0.02, 0.06, 0.09]))
    assert differ.another_day < differ.today <= differ.now
    assert differ.blocks
    alike = outlook(over([0.05, 0.05, 0.05, 0.05], run_cv=0.05))
    assert alike.today < alike.now
    with pytest.raises(Refused, match="2 days"):
        outlook(over([0.05, 0.05]))


def test_runs_of_one_day_on_one_machine_count_as_one_day() -> None:
    """Three days of two runs each say what three runs say, not what six days would."""
    gains = [0.10, 0.02, 0.06]
    twice = [run(2 * day + at, gains[day], day=day + 1) for day in range(3) for at in (1, 2)]
    gathered = gather(twice)
    (found,) = gathered.evidence
    assert len(found.contributions) == 6
    assert [len(day.runs) for day in found.days] == [2, 2, 2]
    assert found.over
    assert found.over.df == 2
    assert [note.partition(":")[0] for note in gathered.notes] == [
        "counted as one, of one day and machine"
    ] * 3
    same_day = [run(seed, 0.05, day=1) for seed in (1, 2, 3)]
    assert gather(same_day).evidence[0].word == "too few runs"
    hosts = [run(seed, 0.05, named(name), day=1) for seed, name in enumerate("abc", 1)]
    assert gather(hosts).evidence[0].over


@pytest.mark.parametrize("by", ["torch", "kernel", "machine", "day"])
def test_no_grouping_makes_days_of_one_day(by: str) -> None:
    def other(name: str) -> Callable[[JSON], None]:
        def edit(saved: JSON) -> None:
            saved["machine_info"]["deeptweak"] |= {"kernel_release": name, "boot_id": name}
            for one in saved["benchmarks"]:
                one["extra_info"]["workload_facts"]["torch"] = name

        return edit

    runs = [run(seed, 0.1, other(name), day=1) for seed, name in enumerate("aabbcc", 1)]
    (found,) = gather(runs, by=by).evidence
    assert (len(found.days), found.word) == (1, "too few runs")


def test_runs_of_a_day_that_differ_are_as_wide_as_they_differ() -> None:
    """Two runs: a mean of 0.05 ± 0.05, whatever their own errors are."""
    pair = [run(seed, gain, day=1) for seed, gain in ((1, 0.0), (2, 0.10))]
    (day,) = gather(pair).evidence[0].days
    assert day.gain == pytest.approx(math.log1p(0.10) / 2, abs=0.01)
    assert day.error == pytest.approx(math.log1p(0.10) / 2, rel=0.2)


def test_a_run_without_a_tweak_set_is_not_counted() -> None:
    gathered = gather([*(run(seed, 0.05) for seed in (1, 2, 3)), run(4, 0.0, arms=(STOCK, AGAIN))])
    assert len(gathered.runs) == 3
    assert any("day-4" in note and "tweak set" in note for note in gathered.notes)


@pytest.mark.parametrize(
    ("workload", "tweakset", "mean", "low", "high", "tau"),
    [
        ("ddp_train", "tcp-cubic", 5.8, -2.8, 14.3, 3.0),
        ("cnn_train", "malloc-keep-memory", 18.2, 16.4, 20.0, 0.0),
    ],
)
def test_three_days_of_this_project_give_known_figures(
    workload: str, tweakset: str, mean: float, low: float, high: float, tau: float
) -> None:
    """In log percent, computed elsewhere."""
    found = gather(load_each(FIRST_THREE, []), [tweakset], [workload]).evidence
    assert len(found) == 1
    assert found[0].over
    figures = [100 * getattr(found[0].over, name) for name in ("mean", "low", "high", "tau")]
    assert figures == pytest.approx([mean, low, high, tau], abs=0.1)


@pytest.mark.parametrize(
    ("tweaksets", "workloads"), [(["malloc-hugepages"], []), ([], ["cnn_train"])]
)
def test_what_is_shown_changes_no_verdict(tweaksets: list[str], workloads: list[str]) -> None:
    runs = [*load_each(DAYS[:4], [])]
    every = {(one.workload, one.name): one for one in gather(runs).evidence}
    gathered = gather(runs, tweaksets, workloads)
    assert 0 < len(gathered.evidence) < len(every) == gathered.family
    for one in gathered.evidence:
        assert one == every[one.workload, one.name]
    assert every["cnn_train", "malloc-hugepages"].word == "can't tell yet"
    assert gather(runs, workloads=["ddp_train"]).notes == ()


@pytest.mark.parametrize(
    ("machines", "count"),
    [
        ([{"hostname": "a"}] * 3, 1),
        ([{"hostname": "a"}, {"hostname": "a"}, {"hostname": "b"}], 2),
        ([{"hostname": name, "container": "docker"} for name in ("5f1c", "9ae0", "77d2")], 1),
        (
            [
                {"mem_total_bytes": size}
                for size in (25_200_000_000, 25_210_000_000, 25_150_000_000)
            ],
            1,
        ),
    ],
    ids=["one host", "two hosts", "containers", "kernels that reserve more"],
)
def test_a_verdict_over_one_machine_or_day_says_so(machines: list[JSON], count: int) -> None:
    def at(facts: JSON) -> Callable[[JSON], None]:
        return lambda saved: saved["machine_info"]["deeptweak"].update(facts)

    gathered = gather([run(seed, 0.10, at(facts)) for seed, facts in enumerate(machines, 1)])
    (one,) = gathered.evidence
    assert (one.word, one.machines) == ("helps everywhere measured", count)
    pooled = answer(gathered)
    for text in (pooled.sections[0].title, pooled.findings[1].text):
        assert ("one machine" in text) == (count == 1)
        assert "one day" not in text


def test_a_verdict_over_machines_of_one_day_says_so() -> None:
    runs = [run(seed, 0.10, named(name), day=1) for seed, name in enumerate("abc", 1)]
    assert "(one day)" in answer(gather(runs)).sections[0].title


def test_a_claim_that_throughput_contradicts_says_so() -> None:
    said = str(answer(gather(load_each(DAYS, []), [], ["cnn_train"])).data["notes"])
    for name, contested in (("thp-always", True), ("malloc-keep-memory", False)):
        assert (f"{name} in cnn_train: throughput contradicts" in said) == contested


def test_what_was_left_out_is_a_warning_without_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", *DAYS, "--by=machine"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for part in (
        "omitted from turns_2026-11-29",
        "5.4 % slower",
        "grouping by machine was not applied",
    ):
        assert part in text.partition("warning:")[2]
    assert main(["evidence", *DAYS, "--by=machine", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == 2


def test_the_command_answers_in_text_json_and_csv(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["evidence", *FIRST_THREE, "--tweaks=tcp-cubic,malloc-keep-memory"]) == 0
    assert "can't tell yet" in capsys.readouterr().out
    assert main(["evidence", *FIRST_THREE, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    row = next(one for one in data["evidence"] if one["tweakset"] == "tcp-cubic")
    assert row["verdict"] == "can't tell yet"
    assert len(row["runs"]) == 3
    assert row["estimate"]["low"] < 0 < row["estimate"]["gain"]
    picture = tmp_path / "forest.svg"
    assert main(["evidence", *FIRST_THREE, "--tweaks=tcp-cubic", f"--plot={picture}"]) == 0
    capsys.readouterr()
    assert "2026-11-27" in picture.read_text(encoding="utf-8")
    assert main(["plan", "--evidence", *FIRST_THREE]) == 0
    assert "another day" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("evidence", FIRST_THREE[0], "--tweaks=tcp-cubik"), "tcp-cubic"),
        (("evidence", FIRST_THREE[0], "--workloads=cnn"), "cnn_train"),
        (("evidence", "/nowhere/run.json"), "/nowhere/run.json"),
        (("plan", "--evidence", FIRST_THREE[0]), "No effect has runs of three days"),
        (("plan",), "--evidence"),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(
    words: tuple[str, ...], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(list(words)) == 2
    assert named in capsys.readouterr().err
