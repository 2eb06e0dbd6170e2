"""The gate's answer for a CI service: pull-request comment, JUnit, GitHub workflow commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from xml.etree import ElementTree as ET

from analysis.answer import Column, Line, Section, Table
from analysis.labels import machine_of
from analysis.plain import one_line
from analysis.render import markdown
from analysis.terms import Run
from analysis.wording import spoken
from control.names import undigested

from .gate import Gate, Ruled, answer, headline, units

MARKER = "<!-- deeptweak-gate{} -->"
LONGEST_BYTES = 65_536  # GitHub's limit, in characters
SIGNS = {"regression": "❌", "undecided": "❔", "pass": "✅"}
KEY = re.compile(r"[^\w./]+", re.ASCII)  # characters that could end an HTML comment
LONGEST_MESSAGE = 2000
# JUnit's names of rulings other than pass.
ELEMENT = {"regression": "failure", "undecided": "error"}


def comment(gate: Gate, runs: Sequence[Run] = (), key: str = "") -> str:
    """Write the answer, with its runs, as the body of a comment.

    Its first line is a hidden marker; `key` distinguishes several gates.
    """
    marker = MARKER.format(f" {KEY.sub('_', key)}" if key else "")
    result = answer(gate)
    heads = [Column(name, left=True) for name in ("run", "commit", "started", "machine")]
    rows = dict.fromkeys(
        (run.run_id, run.commit or "unknown", run.started_utc, machine_of(run)) for run in runs
    )
    meanings = [Line(text, f"{word}:") for word, text in result.legend]
    sections = [
        *result.sections,
        *([Section("Runs", [Table(heads, list(rows))])] if runs else []),
        Section("Meaning of words and columns", meanings, folded=True),
    ]
    page = replace(result, title=f"{SIGNS[gate.ruling]} {result.title}", sections=sections)
    return f"{marker}\n{markdown.render(page, LONGEST_BYTES - len(marker) - 1)}"


def junit(gate: Gate) -> str:
    """Write the JUnit XML document.

    A gate whose word no ruling has gets an extra test case: the file is green only for a pass.
    """
    suite = ET.Element("testsuite", name="deeptweak gate")
    _properties(
        suite, {"baseline": gate.baseline, "candidate": gate.candidate, "ruling": gate.ruling}
    )
    for ruling in gate.rulings:
        comparison = ruling.comparison
        case = _case(
            suite,
            f"{comparison.study}.{comparison.workload}",
            f"{comparison.tweakset}: {ruling.metric.name}",
        )
        _properties(case, _numbers(ruling))
        _answer(case, ruling.ruling, ruling.reason)
    if gate.ruling not in {ruling.ruling for ruling in gate.rulings}:
        _answer(_case(suite, "gate", "gate"), gate.ruling, headline(gate))
    cases = suite.findall("testcase")
    counts = {"failures": ELEMENT["regression"], "errors": ELEMENT["undecided"]}
    suite.attrib |= {
        name: str(sum(case.find(element) is not None for case in cases))
        for name, element in counts.items()
    }
    suite.attrib |= {"tests": str(len(cases)), "skipped": "0"}
    if gate.warnings:
        ET.SubElement(suite, "system-err").text = "\n".join(
            one_line(line, LONGEST_MESSAGE) for line in gate.warnings
        )
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(suite: ET.Element, classname: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=one_line(classname), name=one_line(name))


def _answer(case: ET.Element, ruling: str, message: str) -> None:
    if ruling in ELEMENT:
        text = one_line(message, LONGEST_MESSAGE)
        ET.SubElement(case, ELEMENT[ruling], type=ruling, message=text).text = text


def _numbers(ruled: Ruled) -> dict[str, str]:
    numbers = {
        "loss": ruled.loss,
        "loss_high": ruled.loss_high,
        "limit": ruled.limit,
        "blocks_needed": ruled.blocks_needed,
    }
    return {name: repr(value) for name, value in numbers.items() if value is not None} | {
        "units": units(ruled),
        "verdict": ruled.comparison.verdict,
        "ruling": ruled.ruling,
    }


def _properties(parent: ET.Element, values: Mapping[str, object]) -> None:
    inside = ET.SubElement(parent, "properties")
    for name, value in values.items():
        ET.SubElement(inside, "property", name=name, value=one_line(value))


LEVELS = {"regression": "error", "undecided": "warning", "pass": "notice"}
# GitHub shows ten annotations of each level per step and silently drops the rest.
SHOWN = 10


def workflow_commands(gate: Gate) -> list[str]:
    """Write a line for the gate, one per ruling other than pass, and one per warning; errors first.

    There are at most ten per level: if there are more, the tenth gives their number.
    """
    lines = [(LEVELS[gate.ruling], "Gate", headline(gate))]
    for ruled in gate.rulings:
        if ruled.ruling != "pass":
            comparison = ruled.comparison
            names = undigested(comparison.workload), comparison.tweakset, ruled.metric.name
            title = f"{spoken(ruled.ruling).capitalize()}: {', '.join(names)}"
            lines.append((LEVELS[ruled.ruling], title, ruled.reason))
    lines += [("warning", "Gate", line) for line in gate.warnings]
    return [
        line
        for level in LEVELS.values()
        for line in _commands(level, [words for of, *words in lines if of == level])
    ]


def _commands(level: str, notices: Sequence[Sequence[str]]) -> Iterator[str]:
    shown = notices if len(notices) <= SHOWN else notices[: SHOWN - 1]
    for title, message in shown:
        escaped = one_line(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
        yield f"::{level} title={escaped}::{one_line(message, LONGEST_MESSAGE).replace('%', '%25')}"
    if len(shown) < len(notices):
        yield f"::{level} title=Gate::{len(notices) - len(shown)} more are in the step summary."
