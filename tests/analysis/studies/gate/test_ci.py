"""The gate's answer for CI systems: whoever reads JUnit or annotations learns of everything that is no pass."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from hypothesis import given

from analysis.plain import one_line
from analysis.studies.gate.ci import junit, workflow_commands
from tests.made_gates import gate, gates, ruled

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.gate.gate import Gate


def suite_of(answer: Gate) -> ET.Element:
    root = ET.fromstring(junit(answer).encode("utf-8"))  # noqa: S314  # our own text
    assert root.tag == "testsuites"
    suite = root.find("testsuite")
    assert suite is not None
    return suite


def found(case: ET.Element) -> str:
    """How a CI system would count a test case."""
    return next((tag for tag in ("failure", "error", "skipped") if case.find(tag) is not None), "passed")


def test_a_regression_fails_an_undecided_ruling_errs_a_pass_passes() -> None:
    suite = suite_of(gate(ruled("regression"), ruled("undecided"), ruled("pass")))
    assert [found(case) for case in suite.iter("testcase")] == ["failure", "error", "passed"]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }


def test_the_file(snapshot: SnapshotAssertion) -> None:
    """Names, reasons, numbers in full, and absent where not known; warnings; without a single case it would count as passed."""
    answer = gate(ruled("regression", reason="too slow."), ruled("undecided"), ruled(), warnings=("interrupted.", "another"))
    assert junit(answer) == snapshot(name="of each ruling")
    assert junit(gate()) == snapshot(name="nothing compared")


@given(gates())
def test_any_text_makes_valid_xml_with_a_case_a_ruling(answer: Gate) -> None:
    suite = suite_of(answer)
    cases = [case for case in suite.iter("testcase") if case.get("classname") != "gate" or answer.rulings]
    assert [case.get("name") for case in cases] == [one_line(f"{one.comparison.tweakset}: {one.metric.name}") for one in answer.rulings]
    counted = Counter(found(case) for case in suite.iter("testcase"))
    assert (suite.get("failures"), suite.get("errors")) == (str(counted["failure"]), str(counted["error"]))
    assert (counted["failure"] + counted["error"] == 0) == (answer.ruling == "pass")
    assert "skipped" not in counted


# The runner's grammar (actions/runner, ActionCommand.cs): ::name key=value,key=value::data
COMMAND = re.compile(r"::(error|warning|notice) title=([^:,\r\n]*)::([^\r\n]*)")


def read_back(line: str) -> tuple[str, str, str]:
    """Level, title and message as the runner reads them: %25, %0A, %0D, and in a title %3A and %2C as well."""
    found = COMMAND.fullmatch(line)
    assert found, line
    level, title, message = found.groups()
    for code, character in {"%3A": ":", "%2C": ",", "%25": "%"}.items():
        title = title.replace(code, character)
    return level, title, message.replace("%25", "%")


def test_each_ruling_has_its_level_its_headline_and_its_reason(snapshot: SnapshotAssertion) -> None:
    answers = {
        "regression": gate(ruled("pass"), ruled("regression", reason="too slow.")),
        "undecided": gate(ruled("undecided", reason="too few."), ruled(), warnings=("the run was interrupted.",)),
        "pass": gate(ruled(), ruled(), warnings=("the run was interrupted.",)),
        "empty": gate(),
    }
    assert {name: [read_back(line) for line in workflow_commands(answer)] for name, answer in answers.items()} == snapshot


def test_no_more_than_github_shows() -> None:
    """Of 12 regressions and the headline ten lines are shown, the last of which counts those it stands for: 13 - 9."""
    lines = [read_back(line) for line in workflow_commands(gate(*[ruled("regression")] * 12))]
    assert len(lines) == 10
    assert lines[0][2].startswith("Regression: 12 of 12")
    assert lines[-1][:2] == ("error", "Gate")
    assert lines[-1][2].startswith("4 more")


def test_a_name_cannot_end_its_line_or_its_title() -> None:
    """A tweak set called after a workflow command stays a name."""
    lines = workflow_commands(gate(ruled("regression", tweakset="x::,y\n::error title=forged::100%3A")))
    assert len(lines) == 2
    assert read_back(lines[1])[1].split(", ")[1] == "x::,y ::error title=forged::100%3A"


def test_an_escape_in_a_reason_stays_what_it_was() -> None:
    """`%0A` in a file is three characters and no line break."""
    line = workflow_commands(gate(ruled("regression", reason="50%0Aslower")))[1]
    assert "::50%250Aslower" in line


@given(gates())
def test_whatever_a_file_holds_the_runner_reads_one_command_a_line(answer: Gate) -> None:
    lines = workflow_commands(answer)
    levels = [read_back(line)[0] for line in lines]
    assert levels == sorted(levels, key=["error", "warning", "notice"].index)
    assert levels.count("error") > 0 if answer.ruling == "regression" else "error" not in levels
    assert "\n".join(lines).encode("utf-8")
