"""CI output: the comment (CommonMark with GitHub's tables), JUnit, and commands to a runner."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from analysis.__main__ import main
from analysis.load import load
from analysis.plain import one_line
from analysis.studies.gate.ci import LONGEST_BYTES, comment, junit, workflow_commands
from analysis.studies.gate.gate import MOST_PASSES, Gate, Ruled, figures
from tests.made_gates import gate, gates, ruled
from tests.synthetic import STOCK, Arm, Made, saved_file

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


HIDDEN = "\u200b"  # what breaks mentions and links up


class _Cells(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.items: list[str] = []
        self.tags: list[str] = []
        self._into: list[str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not [name for name, _ in attrs if name != "style"]
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th", "li"}:
            self._into = self.rows[-1] if tag != "li" else self.items
            self._into.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th", "li"}:
            self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into[-1] += data.replace(HIDDEN, "")


def rendered(page: str) -> _Cells:
    return _Cells(
        MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(page)
    )


def rulings_in(page: str) -> list[str]:
    return [row[3] for row in rendered(page).rows if len(row) == 9 and row[0] != "workload"]


def test_the_comment(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """Runs, reasons and warnings appear once; rulings other than a pass come first."""
    run = dataclasses.replace(
        load(saved_file(tmp_path)), commit=f"{'0123456789abcdef' * 2}01234567+dirty"
    )
    unknown = dataclasses.replace(run, run_id="another", commit=None, machine={})
    rulings = (
        ruled(notes=("no common blocks.",)),
        ruled("undecided"),
        ruled("regression", reason="too slow."),
        ruled(),
    )
    answer = gate(
        *rulings, ruled("regression", reason="too slow."), warnings=("interrupted.", "interrupted.")
    )
    assert comment(answer, [run, run, unknown]) == snapshot
    heads = [
        comment(one).splitlines()[1]
        for one in (gate(ruled()), gate(ruled("undecided"), ruled()), gate())
    ]
    assert heads == snapshot(name="heads")


def test_few_passes_are_shown_and_many_folded() -> None:
    few, many = (
        comment(gate(ruled("regression"), *[ruled()] * count))
        for count in (MOST_PASSES, MOST_PASSES + 1)
    )
    folded = f"<details><summary>{MOST_PASSES + 1} passes</summary>"
    assert folded not in few
    assert (
        many.index("| regression |")
        < many.index(folded)
        < many.index("| pass |")
        < many.index("</details>")
    )
    assert rulings_in(many).count("pass") == MOST_PASSES + 1


@pytest.mark.parametrize(
    "rulings",
    [
        [ruled("regression", reason=f"{at} {'x' * 300}") for at in range(3000)],
        [*[ruled()] * 3000, ruled("regression")],
    ],
)
def test_a_page_too_long_for_a_comment_says_what_it_leaves_out(rulings: list[Ruled]) -> None:
    """Regressions come first, and omitted rulings are counted to the last."""
    page = comment(gate(*rulings, warnings=("noisy",)))
    assert len(page.encode()) <= LONGEST_BYTES
    left_out = re.search(r"Omitted.*?(\d+) rows", page)
    assert left_out
    assert len(rulings_in(page)) == len(rulings) - int(left_out[1])
    assert rulings_in(page)[0] == "regression"
    assert page.count("<details>") == page.count("</details>")


@given(gates(), st.text(max_size=20))
def test_whatever_a_file_holds_the_page_keeps_its_shape(answer: Gate, key: str) -> None:
    page = comment(answer, key=key)
    seen = rendered(page)
    tags = {
        "h2",
        "h3",
        "p",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "details",
        "summary",
        "code",
    }
    assert set(seen.tags) <= tags
    assert len(rulings_in(page)) == len(answer.rulings)
    assert re.fullmatch(r"<!-- deeptweak-gate( [\w./]+)? -->", page.splitlines()[0])
    assert len(page.encode("utf-8")) <= LONGEST_BYTES


def suite_of(answer: Gate) -> ET.Element:
    root = ET.fromstring(junit(answer).encode("utf-8"))  # noqa: S314  # our own text
    assert root.tag == "testsuites"
    suite = root.find("testsuite")
    assert suite is not None
    return suite


def found(case: ET.Element) -> str:
    return next(
        (tag for tag in ("failure", "error", "skipped") if case.find(tag) is not None), "passed"
    )


def test_the_file(snapshot: SnapshotAssertion) -> None:
    answer = gate(
        ruled("regression", reason="too slow."),
        ruled("undecided"),
        ruled(),
        warnings=("interrupted.", "another"),
    )
    assert junit(answer) == snapshot(name="of each ruling")
    assert junit(gate()) == snapshot(name="nothing compared")


@given(gates())
def test_any_text_makes_valid_xml_with_a_case_a_ruling(answer: Gate) -> None:
    suite = suite_of(answer)
    cases = [
        case for case in suite.iter("testcase") if case.get("classname") != "gate" or answer.rulings
    ]
    assert [case.get("name") for case in cases] == [
        one_line(f"{one.comparison.tweakset}: {one.metric.name}") for one in answer.rulings
    ]
    counted = Counter(found(case) for case in suite.iter("testcase"))
    assert (suite.get("failures"), suite.get("errors")) == (
        str(counted["failure"]),
        str(counted["error"]),
    )
    assert (counted["failure"] + counted["error"] == 0) == (answer.ruling == "pass")
    assert "skipped" not in counted


# The runner's grammar (actions/runner, ActionCommand.cs): ::name key=value,key=value::data
COMMAND = re.compile(r"::(error|warning|notice) title=([^:,\r\n]*)::([^\r\n]*)")


def read_back(line: str) -> tuple[str, str, str]:
    """Level, title and message as the runner unescapes them; %3A and %2C only in a title."""
    found = COMMAND.fullmatch(line)
    assert found, line
    level, title, message = found.groups()
    for escaped, character in {"%3A": ":", "%2C": ",", "%25": "%"}.items():
        title = title.replace(escaped, character)
    return level, title, message.replace("%25", "%")


def test_each_ruling_has_its_level_its_headline_and_its_reason(snapshot: SnapshotAssertion) -> None:
    answers = {
        "regression": gate(ruled("pass"), ruled("regression", reason="too slow.")),
        "undecided": gate(
            ruled("undecided", reason="too few."), ruled(), warnings=("the run was interrupted.",)
        ),
        "pass": gate(ruled(), ruled(), warnings=("the run was interrupted.",)),
        "empty": gate(),
    }
    assert {
        name: [read_back(line) for line in workflow_commands(answer)]
        for name, answer in answers.items()
    } == snapshot


def test_no_more_than_github_shows() -> None:
    """12 regressions and the headline give ten lines, the last of which counts 13 - 9."""
    lines = [read_back(line) for line in workflow_commands(gate(*[ruled("regression")] * 12))]
    assert len(lines) == 10
    assert lines[0][2].startswith("Regression: 12 of 12")
    assert lines[-1][:2] == ("error", "Gate")
    assert lines[-1][2].startswith("4 more")


def test_a_name_cannot_end_its_line_or_its_title() -> None:
    lines = workflow_commands(
        gate(ruled("regression", tweakset="x::,y\n::error title=forged::100%3A"))
    )
    assert len(lines) == 2
    assert read_back(lines[1])[1].split(", ")[1] == "x::,y ::error title=forged::100%3A"


@given(gates())
def test_any_file_content_gives_the_runner_one_command_per_line(answer: Gate) -> None:
    lines = workflow_commands(answer)
    levels = [read_back(line)[0] for line in lines]
    assert levels == sorted(levels, key=["error", "warning", "notice"].index)
    assert levels.count("error") > 0 if answer.ruling == "regression" else "error" not in levels
    assert "\n".join(lines).encode("utf-8")


MADE = Made(arms=(STOCK, Arm("tuned", 0.0, {"vm.swappiness": "1"})), blocks=8)
# What a runner obeys: GitHub's `::` at the start of a line, blanks aside, and `##[` or `##vso[`
# anywhere.
OBEYED = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    [
        "::stop-commands::tok",
        "##[error]x",
        "##vso[task.complete]x",
        "a\n::error::x",
        "x" * 40 + "::error::" * 9,
        "a \u2028::error::x",
    ],
)
def test_a_name_is_no_command_to_a_runner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = saved_file(tmp_path, replace(MADE, workloads=(name,)))
    command = ["gate", f"{path}:stock", f"{path}:tuned", "--max-regression", "5%"]
    assert main(command) == 0
    assert not OBEYED.search(capsys.readouterr().out)
    assert main([*command, "--json"]) == 0
    out = capsys.readouterr().out
    assert not OBEYED.search(out)
    assert json.loads(out)["rulings"][0]["comparison"]["workload"] == one_line(name)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(command) == 0
    obeyed = [line for line in capsys.readouterr().out.splitlines() if OBEYED.search(line)]
    assert obeyed
    assert all(line.startswith("::notice title=Gate::") for line in obeyed)


@pytest.mark.parametrize(
    ("limit", "loss", "high", "shown"),
    [
        (0.02, 0.018, 0.0204, ("-1.80", "-2.04", "-2.00")),
        (0.0205, 0.01, 0.0204, ("-1.00", "-2.04", "-2.05")),
        (0.02, 0.0200004, 0.031, ("-2.0000", "-3.1000", "-2.0000")),
        (0.05, -0.004, 0.021, ("+0.4", "-2.1", "-5.0")),
        (0.03, None, None, ("", "", "-3.0")),
    ],
)
def test_a_loss_beyond_its_limit_never_looks_like_the_limit(
    limit: float, loss: float | None, high: float | None, shown: tuple[str, str, str]
) -> None:
    """Up to four decimals, beyond any measurement."""
    assert figures(replace(ruled(), limit=limit, loss=loss, loss_high=high)) == shown
