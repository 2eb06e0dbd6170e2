"""The gate's answer as GitHub-flavoured Markdown: the step summary of a workflow, and the body of its one comment on a pull request.

Names and reasons come out of files that a pull request may have brought along: nothing in them is read as Markdown or HTML, nobody is
notified by them, and nothing links from them; links are to the workflow that judged, and to commits by their digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from analysis.plain import one_line

from .answer import figures, headline, units

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analysis.terms import Run

    from .gate import Gate, Ruled

MARKER = "<!-- deeptweak-gate{} -->"
# GitHub refuses a longer comment. It counts characters; bytes are never fewer.
LONGEST_BYTES = 65_536
FOLDED = 10  # more passes than this are folded away
LONGEST_NAME, LONGEST_SENTENCE = 120, 600
SIGNS = {"regression": "❌", "undecided": "❔", "pass": "✅"}
HEAD = "| workload | tweak set | metric | picture | loss | at most | limit | ruling | n |\n|---|---|---|---|--:|--:|--:|---|--:|"
RUNS = "### Runs\n\n| run | commit | started | machine |\n|---|---|---|---|"
LEGEND = (
    "Loss: how much slower the candidate is; below 0 it is faster. At most: its one-sided 95 % upper bound. "
    "Picture: from two limits faster to two limits slower; │ no loss, ┊ the limit, ● the loss, ━ up to its bound. "
    "n: blocks complete in both arms, of those planned; where the arms share none, how many cells or runs each has (8+6)."
)
PLACES = 17  # of a picture
KEY = re.compile(r"[^\w./]+", re.ASCII)  # what could end an HTML comment
COMMIT = re.compile(r"(?<=[0-9a-f]{12})[0-9a-f]+")  # twelve digits of a commit are enough to find it by
DIGITS = re.compile(r"[0-9a-f]{7,64}")
MACHINE = {"kernel_release": "Linux {}", "cpu_model": "{}", "cpu_count": "{} CPUs"}
PLAIN_NAME = re.compile(r"[\w.+/:*-]+", re.ASCII)
# Whatever Markdown or HTML reads as more than text; then what GitHub makes mentions, references and links of.
MARKS = re.compile(r"^[-+]|^\d+(?=[.)]\s)|[&<>\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|[@#]|://|www\.", re.IGNORECASE)
BROKEN_UP = ("@", "#", "://", "www.")
BREAK = "&#8203;"  # a zero-width space


class Site(NamedTuple):
    """Where a gate runs: the address of its repository, and of the workflow's run, which keeps the report."""

    repository: str
    run: str


def site_of(environment: Mapping[str, str]) -> Site | None:
    """Find the workflow that the gate runs in; None outside GitHub's."""
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


def _escaped(found: re.Match[str]) -> str:
    first, rest = f"&#{ord(found[0][0])};", found[0][1:]
    return f"{first}{BREAK}{rest}" if found[0].lower() in BROKEN_UP else first


def code(name: object) -> str:
    name = one_line(name, LONGEST_NAME)
    return f"`{name}`" if PLAIN_NAME.fullmatch(name) else f"<code>{text(name)}</code>"


def _row(ruled: Ruled) -> str:
    comparison = ruled.comparison
    names = (code(comparison.workload), code(comparison.tweakset), code(ruled.metric.name), _picture(ruled))
    loss, high, limit = (f"{figure} %" if figure else "not known" for figure in figures(ruled))
    numbers = (loss, high, limit.replace(".0 %", " %"), ruled.ruling, units(ruled))
    return f"| {' | '.join((*names, *numbers))} |"


def _picture(ruled: Ruled) -> str:
    """Draw loss, bound and limit in a line of letters."""
    if ruled.loss is None or not ruled.limit:
        return ""

    def place(share: float) -> int:
        return min(PLACES - 1, max(0, round((share / (2 * ruled.limit) + 1) / 2 * (PLACES - 1))))

    line = ["·"] * PLACES
    line[place(0)], line[place(ruled.limit)] = "│", "┊"
    high = ruled.loss if ruled.loss_high is None else ruled.loss_high
    line[place(ruled.loss) : place(high) + 1] = "━" * (place(high) + 1 - place(ruled.loss))
    line[place(ruled.loss)] = "●"
    return f"`{''.join(line)}`"


def _reasons(rulings: Iterable[Ruled]) -> list[str]:
    """Say each reason once, with all that it holds for."""
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
    machine = (
        ", ".join(text(form.format(run.machine[fact]), LONGEST_NAME) for fact, form in MACHINE.items() if run.machine.get(fact))
        or "not known"
    )
    commit = code(COMMIT.sub("", run.commit)) if run.commit else "not known"
    whole = (run.commit or "").removesuffix("+dirty")
    if site and DIGITS.fullmatch(whole):
        commit = f"[{commit}]({site.repository}/commit/{whole})"
    return f"| {code(run.run_id)} | {commit} | {text(run.started_utc, LONGEST_NAME)} | {machine} |"


def _fitted(fixed: Sequence[str], parts: Sequence[_Part]) -> str:
    """Join what fits: parts by rank, each from its start."""
    room = LONGEST_BYTES - _bytes(fixed) - 500  # for the line that says what was left out
    kept: dict[str, int] = {}
    for part in sorted(parts, key=lambda part: part.rank):
        left = room - _bytes([part.before, part.after])
        count = 0
        for line in part.lines:
            left -= _bytes([line])
            if left < 0:
                break
            count, room = count + 1, left
        kept[part.noun] = count
    pages = ["\n".join(filter(None, [part.before, *part.lines[: kept[part.noun]], part.after])) for part in parts if kept[part.noun]]
    missing = [f"{len(part.lines) - kept[part.noun]} {part.noun}" for part in parts if kept[part.noun] < len(part.lines)]
    if missing:
        pages.append(
            f"Left out, because GitHub takes {LONGEST_BYTES:,} characters and no more: {', '.join(missing)}. The gate's log has them."
        )
    return "\n\n".join([*fixed, *pages]) + "\n"


def _bytes(texts: Iterable[str]) -> int:
    return sum(len(one.encode()) + 2 for one in texts)  # 2 for the line breaks around it
