"""The table a run ends with: no wider than asked, signs that cannot be misread, every reason below it."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest

from analysis.compare import compare
from analysis.load import from_json
from analysis.table import render_table, wants_color
from analysis.wording import listed, percent, probability, size, unsigned
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

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


def rendered(made: Made, width: int = 100, *, color: bool = False) -> str:
    run = from_json(saved_run(made), "made up")
    return render_table(compare(run), [run], width, color=color)


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
    """Signs in both columns, the primary metric of each workload marked, the base in its own unit, every reason below, and once.

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
    text = render_table(compare(run), [run])
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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "color"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, True),  # no-color.org: not when empty
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(stream: io.StringIO, environ: dict[str, str], *, color: bool) -> None:
    assert wants_color(stream, environ) is color


def test_numbers_are_written_for_people() -> None:
    assert (percent(0.0123), percent(-0.0004), percent(12.5)) == ("+1.2 %", "+0.0 %", "+1.2e+03 %")
    assert (unsigned(0.03), unsigned(0.0312), unsigned(99)) == ("3 %", "3.1 %", "over 1000 %")
    assert (size(0.03), size(99)) == ("3.0", ">1000")
    assert [probability(p) for p in (0.0, 0.00099, 0.0012, 0.0494, 0.0999, 0.5)] == ["<0.001", "<0.001", "0.001", "0.049", "0.10", "0.50"]
    assert (listed([3]), listed([2, 1])) == ("block 3", "blocks 1, 2")


def test_what_explains_a_row_is_named_in_full_however_little_room_there_is() -> None:
    """Twelve names and intervals as wide as they come: names fold, the numbers of the sentences below stay whole."""
    long = [Arm(f"a-tweak-set-with-a-long-name-{at}", 0.9, SWAPPINESS, already_in_force=[f"key.{at}"]) for at in range(12)]
    run = from_json(saved_run(Made(arms=(STOCK, *long), blocks=4, run_cv=0.4)), "run.json")
    text = render_table(compare(run), [run])
    assert max(map(len, text.splitlines())) <= 100
    marks = [int(mark) for line in re.findall(r"inconclusive +([\d,]+)$", text, re.MULTILINE) for mark in line.split(",")]
    assert set(marks) | {int(mark) for mark in re.findall(r"^ {60,}(\d+)$", text, re.MULTILINE)} == set(range(1, 14))
