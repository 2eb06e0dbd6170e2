"""The gate's answer as GitHub-flavoured Markdown: the step summary of a workflow, and the body of its one comment on a pull request.

Names and reasons come out of files that a pull request may have brought along: nothing in them is read as Markdown or HTML, nobody is
notified by them, and nothing links from them; links are to the workflow that judged, and to commits by their digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree as ET

from analysis.labels import machine_of
from analysis.plain import one_line
from analysis.terms import Run
from analysis.wording import spoken

from .gate import Gate, Ruled, figures, headline, subject, units

MARKER = "<!-- deeptweak-gate{} -->"
# GitHub refuses a longer comment. It counts characters; bytes are never fewer.
LONGEST_BYTES = 65_536
FOLDED = 10  # more passes than this are folded away
LONGEST_NAME, LONGEST_SENTENCE = 120, 600
SIGNS = {"regression": "❌", "undecided": "❔", "pass": "✅"}
HEAD = "| workload | tweak set | metric | picture | change | at worst | allowed | ruling | n |\n|---|---|---|---|--:|--:|--:|---|--:|"
RUNS = "### Runs\n\n| run | commit | started | machine |\n|---|---|---|---|"
LEGEND = (
    "Change: + is faster, - slower. At worst: its one-sided 95 % bound. "
    "Picture: from two limits slower to two limits faster; │ no change, ┊ what is allowed, ● the change, ━ down to its bound. "
    "n: blocks complete in both arms, of those planned; where the arms share none, how many cells or runs each has (8+6)."
)
PLACES = 17  # of a picture
KEY = re.compile(r"[^\w./]+", re.ASCII)  # what could end an HTML comment
COMMIT = re.compile(r"(?<=[0-9a-f]{12})[0-9a-f]+")  # twelve digits of a commit are enough to find it by
DIGITS = re.compile(r"[0-9a-f]{7,64}")
PLAIN_NAME = re.compile(r"[\w.+/:*-]+", re.ASCII)
# Whatever Markdown or HTML reads as more than text; then what GitHub makes mentions, references and links of.
MARKS = re.compile(r"^[-+]|^\d+(?=[.)]\s)|[&<>\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|[@#]|://|www\.", re.IGNORECASE)
BROKEN_UP = ("@", "#", "://", "www.")
BREAK = "&#8203;"  # a zero-width space


class Site(NamedTuple):
    repository: str
    run: str


def site_of(environment: Mapping[str, str]) -> Site | None:
    server, repository, run = (environment.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    if not (server and repository and run):
        return None
    return Site(f"{server}/{repository}", f"{server}/{repository}/actions/runs/{run}")


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of the page whose lines can be left out one by one; `rank` says who gets room first."""

    rank: int
    before: str
    lines: Sequence[str]
    after: str
    noun: str


def markdown(gate: Gate, runs: Sequence[Run] = (), key: str = "", site: Site | None = None) -> str:
    """Write the page. Its first line is a hidden marker by which the comment is found again; `key` tells several gates apart.

    `site` is where links lead. What does not fit into a comment is left out from the end of the least important part, and the last line
    says how much.
    """
    ordered = [ruling for word in SIGNS for ruling in gate.rulings if ruling.ruling == word]
    passes = sum(ruling.ruling == "pass" for ruling in ordered)
    shown = len(ordered) - (passes if passes > FOLDED else 0)  # passes stand last
    fixed = [
        MARKER.format(f" {KEY.sub('_', key)}" if key else ""),
        f"## {SIGNS[gate.ruling]} {headline(gate)}",
        f"Baseline {code(gate.baseline)}, candidate {code(gate.candidate)}."
        + (f" [The run]({site.run}) · [its report]({site.run}#artifacts)" if site else ""),
    ]
    parts = [
        _Part(0, HEAD, [_row(ruling) for ruling in ordered[:shown]], f"\n{LEGEND}", "rulings"),
        _Part(2, "### Reasons\n", _reasons([ruling for ruling in ordered if ruling.ruling != "pass"]), "", "reasons"),
        _Part(3, "### Warnings\n", [f"- {text(line)}" for line in dict.fromkeys(gate.warnings)], "", "warnings"),
        _Part(4, "### Notes\n", [f"- {text(line)}" for line in _notes(ordered)], "", "notes"),
        _Part(
            5,
            f"<details><summary>{passes} passes</summary>\n\n{HEAD}",
            [_row(ruling) for ruling in ordered[shown:]],
            "\n</details>",
            "passes",
        ),
        _Part(1, RUNS, list(dict.fromkeys(_run(run, site) for run in runs)), "", "runs"),
    ]
    return _fitted(fixed, [part for part in parts if part.lines])


def text(words: object, longest: int = LONGEST_SENTENCE) -> str:
    """Write foreign words so that Markdown shows them as they are, and nothing more."""
    return MARKS.sub(_escaped, one_line(words, longest))


def _escaped(match: re.Match[str]) -> str:
    first, rest = f"&#{ord(match[0][0])};", match[0][1:]
    return f"{first}{BREAK}{rest}" if match[0].lower() in BROKEN_UP else first


def code(name: object) -> str:
    name = one_line(name, LONGEST_NAME)
    return f"`{name}`" if PLAIN_NAME.fullmatch(name) else f"<code>{text(name)}</code>"


def _row(ruled: Ruled) -> str:
    comparison = ruled.comparison
    names = (code(comparison.workload), code(comparison.tweakset), code(ruled.metric.name), _picture(ruled))
    change, worst, limit = (f"{figure} %" if figure else "not known" for figure in figures(ruled))
    numbers = (change, worst, limit.replace(".0 %", " %"), spoken(ruled.ruling), units(ruled))
    return f"| {' | '.join((*names, *numbers))} |"


def _picture(ruled: Ruled) -> str:
    if ruled.loss is None or not ruled.limit:
        return ""

    def place(loss: float) -> int:
        return min(PLACES - 1, max(0, round((1 - loss / (2 * ruled.limit)) / 2 * (PLACES - 1))))

    line = ["·"] * PLACES
    line[place(0)], line[place(ruled.limit)] = "│", "┊"
    high = ruled.loss if ruled.loss_high is None else ruled.loss_high
    line[place(high) : place(ruled.loss) + 1] = "━" * (place(ruled.loss) + 1 - place(high))
    line[place(ruled.loss)] = "●"
    return f"`{''.join(line)}`"


def _reasons(rulings: Iterable[Ruled]) -> list[str]:
    groups: dict[tuple[str, str], list[str]] = {}
    for ruling in rulings:
        comparison = ruling.comparison
        name = f"{code(comparison.workload)}, {code(comparison.tweakset)}, {code(ruling.metric.name)}"
        groups.setdefault((SIGNS[ruling.ruling], text(ruling.reason)), []).append(name)
    return [f"- {sign} {'; '.join(dict.fromkeys(names))}: {reason}" for (sign, reason), names in groups.items()]


def _notes(rulings: Iterable[Ruled]) -> list[str]:
    """What a reader must know before believing a number, each sentence once."""
    return list(dict.fromkeys(note for ruling in rulings for note in ruling.comparison.notes))


def _run(run: Run, site: Site | None) -> str:
    commit = code(COMMIT.sub("", run.commit)) if run.commit else "not known"
    whole = (run.commit or "").removesuffix("+dirty")
    if site and DIGITS.fullmatch(whole):
        commit = f"[{commit}]({site.repository}/commit/{whole})"
    return f"| {code(run.run_id)} | {commit} | {text(run.started_utc, LONGEST_NAME)} | {text(machine_of(run), 3 * LONGEST_NAME)} |"


def _fitted(fixed: Sequence[str], parts: Sequence[_Part]) -> str:
    """Join what fits: parts by rank, each from its start."""
    room = LONGEST_BYTES - _bytes(fixed) - 500  # for the line that says what was left out
    counts: dict[str, int] = {}
    for part in sorted(parts, key=lambda part: part.rank):
        left = room - _bytes([part.before, part.after])
        count = 0
        for line in part.lines:
            left -= _bytes([line])
            if left < 0:
                break
            count, room = count + 1, left
        counts[part.noun] = count
    pages = ["\n".join(filter(None, [part.before, *part.lines[: counts[part.noun]], part.after])) for part in parts if counts[part.noun]]
    missing = [f"{len(part.lines) - counts[part.noun]} {part.noun}" for part in parts if counts[part.noun] < len(part.lines)]
    if missing:
        pages.append(
            f"Left out, because GitHub takes {LONGEST_BYTES:,} characters and no more: {', '.join(missing)}. The gate's log has them."
        )
    return "\n\n".join([*fixed, *pages]) + "\n"


def _bytes(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 2 for line in lines)  # 2 for the line breaks around it


LONGEST_MESSAGE = 2000
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
        ET.SubElement(suite, "system-err").text = "\n".join(one_line(line, LONGEST_MESSAGE) for line in gate.warnings)
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
    numbers = {"loss": ruled.loss, "loss_high": ruled.loss_high, "limit": ruled.limit, "blocks_needed": ruled.blocks_needed}
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
# GitHub shows ten annotations of each level for one step and drops the rest in silence.
SHOWN = 10
LONGEST_MESSAGE = 2000


def workflow_commands(gate: Gate) -> list[str]:
    """Write one line for the gate as a whole, one for each ruling that is no pass, and one for each warning; errors come first.

    There are at most ten of a level: where there was more to say, the tenth says how much.
    """
    lines = [(LEVELS[gate.ruling], "Gate", headline(gate))]
    lines += [
        (LEVELS[ruling.ruling], f"{spoken(ruling.ruling).capitalize()}: {subject(ruling)}", ruling.reason)
        for ruling in gate.rulings
        if ruling.ruling != "pass"
    ]
    lines += [("warning", "Gate", line) for line in gate.warnings]
    return [line for level in LEVELS.values() for line in _commands(level, [words for of, *words in lines if of == level])]


def _commands(level: str, notices: Sequence[Sequence[str]]) -> Iterator[str]:
    shown = notices if len(notices) <= SHOWN else notices[: SHOWN - 1]
    for title, message in shown:
        escaped = one_line(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
        yield f"::{level} title={escaped}::{one_line(message, LONGEST_MESSAGE).replace('%', '%25')}"
    if len(shown) < len(notices):
        yield f"::{level} title=Gate::{len(notices) - len(shown)} more are in the step summary."
