"""The gate's JUnit file, read back with an XML parser as a CI system would."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from hypothesis import given

from analysis.plain import one_line
from analysis.studies.gate.ci import junit
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
