"""The gate's answer for CI systems: JUnit XML, one test case a ruling, and workflow commands, which GitHub turns into annotations.

In JUnit a regression is a failure. What is undecided is an error and never skipped, since CI systems count a skipped test as fine.
Workflow commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions and the runner's ActionCommand.cs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from analysis.plain import one_line

from .answer import headline, subject, units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .gate import Gate, Ruled


LONGEST = 2000
# How JUnit calls what is no pass.
ELEMENT = {"regression": "failure", "undecided": "error"}


def junit(gate: Gate) -> str:
    """Write the XML document.

    Where no ruling bears the gate's own word, a test case of its own does, so that the file is green for a pass and for nothing else.
    """
    suite = ET.Element("testsuite", name="deeptweak gate")
    _properties(suite, {"baseline": gate.baseline, "candidate": gate.candidate, "ruling": gate.ruling})
    for ruling in gate.rulings:
        comparison = ruling.comparison
        case = _case(suite, f"{comparison.study}.{comparison.workload}", f"{comparison.tweakset}: {ruling.metric.name}")
        _properties(case, _numbers(ruling))
        _answer(case, ruling.ruling, ruling.reason)
    if gate.ruling not in {ruling.ruling for ruling in gate.rulings}:
        _answer(_case(suite, "gate", "gate"), gate.ruling, headline(gate))
    cases = suite.findall("testcase")
    counts = {"failures": ELEMENT["regression"], "errors": ELEMENT["undecided"]}
    suite.attrib |= {name: str(sum(case.find(element) is not None for case in cases)) for name, element in counts.items()}
    suite.attrib |= {"tests": str(len(cases)), "skipped": "0"}
    if gate.warnings:
        ET.SubElement(suite, "system-err").text = "\n".join(one_line(line, LONGEST) for line in gate.warnings)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(suite: ET.Element, classname: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=one_line(classname), name=one_line(name))


def _answer(case: ET.Element, ruling: str, message: str) -> None:
    if ruling in ELEMENT:
        text = one_line(message, LONGEST)
        ET.SubElement(case, ELEMENT[ruling], type=ruling, message=text).text = text


def _numbers(ruled: Ruled) -> dict[str, str]:
    known = {"loss": ruled.loss, "loss_high": ruled.loss_high, "limit": ruled.limit, "blocks_needed": ruled.blocks_needed}
    return {name: repr(value) for name, value in known.items() if value is not None} | {
        "units": units(ruled),
        "verdict": ruled.comparison.verdict,
        "ruling": ruled.ruling,
    }


def _properties(parent: ET.Element, values: Mapping[str, object]) -> None:
    inside = ET.SubElement(parent, "properties")
    for name, value in values.items():
        ET.SubElement(inside, "property", name=name, value=one_line(value))


LEVELS = {"regression": "error", "undecided": "warning", "pass": "notice"}
# GitHub shows ten annotations of each level for one step and drops the rest in silence.
SHOWN = 10
LONGEST = 2000


def workflow_commands(gate: Gate) -> list[str]:
    """Write one line for the gate as a whole, one for each ruling that is no pass, and one for each warning; errors come first.

    There are at most ten of a level: where there was more to say, the tenth says how much.
    """
    lines = [(LEVELS[gate.ruling], "Gate", headline(gate))]
    lines += [
        (LEVELS[ruling.ruling], f"{ruling.ruling.capitalize()}: {subject(ruling)}", ruling.reason)
        for ruling in gate.rulings
        if ruling.ruling != "pass"
    ]
    lines += [("warning", "Gate", line) for line in gate.warnings]
    return [line for level in LEVELS.values() for line in _commands(level, [words for of, *words in lines if of == level])]


def _commands(level: str, said: Sequence[Sequence[str]]) -> Iterator[str]:
    shown = said if len(said) <= SHOWN else said[: SHOWN - 1]
    for title, message in shown:
        escaped = one_line(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
        yield f"::{level} title={escaped}::{one_line(message, LONGEST).replace('%', '%25')}"
    if len(shown) < len(said):
        yield f"::{level} title=Gate::{len(said) - len(shown)} more are in the step summary."
