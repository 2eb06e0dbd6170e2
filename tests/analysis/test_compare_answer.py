"""What comparisons say: the answer first, no line wider than the page, every reason once."""

from __future__ import annotations

import csv
import io
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from analysis.answer import Table
from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.labels import amount
from analysis.load import from_json
from analysis.render import csv as as_csv
from analysis.render.text import render
from analysis.terms import Metric
from analysis.wording import listed, percent, probability, size, unsigned
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.terms import Comparison, Run

SWAPPINESS = {"vm.swappiness": "1"}
ESCAPE = "\x1b["
EVERYTHING = Made(
    arms=(
        STOCK,
        AGAIN,
        Arm("thp-always", 0.12, scripts=1, side_effects={"/sys/kernel/mm/transparent_hugepage/enabled": ["madvise", "always"]}),
        Arm("writeback-late", -0.06, {"vm.dirty_ratio": "40"}),
        Arm("a-name-that-is-far-too-long-for-one-line-of-any-table", 0.0, SWAPPINESS, already_in_force=["vm.swappiness"]),
        Arm(
            "isolate",
            requested={"isolcpus": "2-11"},
            kind="boot",
            broken=dict.fromkeys(range(1, 7), ("skipped", "no such boot token. " * 9)),
        ),
        Arm("fragile", requested=SWAPPINESS, broken=dict.fromkeys((1, 4), ("failed", "killed"))),
        Arm("ignored", requested=SWAPPINESS, observed={"vm.swappiness": "60"}, warnings=["a" * 150]),
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

    Square brackets in a name are no markup. Hoefler & Belli's first rule: a speed-up without its base says nothing.
    """
    assert rendered(EVERYTHING) == snapshot
    assert rendered(Made(arms=(STOCK,))) == snapshot(name="stock alone")


def test_plain_text_holds_no_escape_and_a_terminals_says_the_same() -> None:
    plain, colored = rendered(EVERYTHING), rendered(EVERYTHING, color=True)
    assert ESCAPE not in plain
    assert ESCAPE in colored
    stripped = re.sub(r"\x1b\[[\d;]*m", "", colored)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


def test_what_a_file_says_of_its_study_and_machine_commands_no_terminal() -> None:
    saved = saved_run(EVERYTHING)
    for study in saved["deeptweak"]["studies"].values():
        study["question"] = "\x1b[31mwhy"
    saved["machine_info"]["deeptweak"] |= {"cpu_model": "\x1b[2J", "kernel_release": "\x1b[2J"}
    run = from_json(saved, "made up")
    text = render(answer_of(compare(run), [run]), explain=True)
    assert "why" in text
    assert ESCAPE not in text


def test_surroundings_do_not_change_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich looks at COLUMNS, FORCE_COLOR, NO_COLOR and TERM itself; what the caller said counts."""
    plain, colored = rendered(EVERYTHING), rendered(EVERYTHING, color=True)
    for name, value in {"COLUMNS": "40", "FORCE_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    assert rendered(EVERYTHING) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert rendered(EVERYTHING, color=True) == colored


def test_numbers_are_written_for_people() -> None:
    assert (percent(0.0123), percent(-0.0004), percent(12.5)) == ("+1.2 %", "+0.0 %", "+1.2e+03 %")
    assert (unsigned(0.03), unsigned(0.0312), unsigned(99)) == ("3 %", "3.1 %", "over 1000 %")
    assert (size(0.03), size(99)) == ("3.0", ">1000")
    assert [probability(p) for p in (0.0, 0.00099, 0.0012, 0.0494, 0.0999, 0.5)] == ["<0.001", "<0.001", "0.001", "0.049", "0.10", "0.50"]
    assert (listed([3]), listed([2, 1])) == ("block 3", "blocks 1, 2")


def test_claims_come_first_and_the_others_are_listed_by_what_is_known_of_them() -> None:
    shown = answer_of(*judged(EVERYTHING))
    assert shown.title.startswith("Faster: thp-always 13.3 % (a_workload_with_a_long_name_too), ")
    assert [section.title for section in shown.sections] == [
        "",
        "The same within 3 %",
        "Can't tell; in brackets the smallest difference that would have been seen",
        "Not comparable",
    ]
    every = answer_of(*judged(EVERYTHING), every=True)
    table = next(part for section in every.sections for part in section.parts if isinstance(part, Table))
    assert len(table.rows) == len([one for one in compare(judged(EVERYTHING)[1][0]) if not one.guard])


def test_a_reason_that_holds_for_all_rows_is_said_once() -> None:
    few = Made(blocks=1, arms=(STOCK, Arm("one", 0.1, SWAPPINESS), Arm("other", 0.1, SWAPPINESS)))
    assert rendered(few).partition("\n\n")[2].count("at least 3") == 1


def test_csv_has_every_contrast() -> None:
    comparisons, runs = judged(EVERYTHING)
    rows = list(csv.DictReader(io.StringIO(as_csv.render(answer_of(comparisons, runs)))))
    assert [(row["workload"], row["tweakset"], row["verdict"]) for row in rows] == [
        (one.workload, one.tweakset, one.verdict) for one in comparisons
    ]
    assert [float(row["gain"]) for row in rows if row["gain"]] == [one.primary.gain for one in comparisons if one.primary]


def test_the_next_command_can_be_pasted() -> None:
    comparisons, runs = judged(EVERYTHING)
    assert rendered(EVERYTHING, source="a b.json").splitlines()[-1] == "next: python -m analysis report 'a b.json'"
    assert shlex.split(answer_of(comparisons, runs, source="a b.json").next)[-1] == "a b.json"


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
