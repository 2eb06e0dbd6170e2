"""The answer of a command, in one shape: findings, then tables, then notes on them.

A study makes an `Answer` from plain text and raw values. `render/` writes it to a terminal, HTML,
Markdown, JSON or CSV and escapes foreign text. Studies never escape, wrap or colour anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Literal, Protocol, runtime_checkable

from control.called import JUDGE

# The meaning of a text, for renderers that use colour: shown to be better, shown to be worse,
# undecided, unimportant, most important; or "text of fixed width".
Tone = Literal["", "good", "bad", "open", "quiet", "strong", "code"]
TONES: Mapping[str, Tone] = {
    "improved": "good",
    "equivalent": "good",
    "regressed": "bad",
    "inconclusive": "open",
    "not comparable": "quiet",
}


@runtime_checkable
class Interval(Protocol):
    """A value with its interval; CSV has a column for each of the three numbers."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Word:
    """A text; `tone` is its meaning, and `href` its target in formats that have links."""

    text: str
    tone: Tone = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence.

    `mark` precedes it (`•`, `warning:`, `(1)`), and wrapped lines are indented below it; `href` is
    a link target, as in `Word`.
    """

    text: str
    mark: str = ""
    tone: Tone = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `head` is its heading, `name` includes the unit, for programs.

    `write` turns a value into text, never None. On a narrow page the columns with the largest
    `spare` are dropped first. `interval`: three columns for programs, even if every value is
    missing.
    """

    head: str
    name: str = ""
    write: Callable[[Any], str] = str
    left: bool = False
    spare: int = 0
    interval: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of raw values, one per column: text, numbers, None if missing, `Word` or `Interval`."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    title: str = ""


Part = Line | Table | str


@dataclass(frozen=True, slots=True)
class Section:
    """A section of an answer, such as one workload: lines and tables in reading order.

    A `folded` section shows only its title until it is opened, in formats that can fold.
    """

    title: str = ""
    parts: Sequence[Line | Table] = ()
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that a command found.

    `findings` answer the question in at most three lines. `legend` is shown on request
    (`--explain`). `next` is the suggested next command. `data` is what `--json` writes, including
    dataclasses. `rows` is what `--csv` writes if the page folds rows; otherwise `--csv` writes the
    sections' tables.
    """

    title: str
    findings: Sequence[Line] = ()
    sections: Sequence[Section] = ()
    warnings: Sequence[str] = ()
    legend: Sequence[tuple[str, str]] = ()
    next: tuple[str, ...] = ()
    data: Mapping[str, object] = field(default_factory=dict)
    rows: Table | None = None
    refused: Sequence[str] = ()
    exit_code: int = 0


def bullets(lines: Iterable[str], mark: str = "•", tone: Tone = "") -> list[Line]:
    return [Line(text, mark, tone) for text in lines]


def grouped(pairs: Sequence[tuple[str, str]], of: int = 0) -> list[str]:
    """Merge equal sentences to `a, b: sentence`; without names if it is true of all `of`."""
    who: dict[str, dict[str, None]] = {}
    for name, sentence in pairs:
        who.setdefault(sentence, {})[name] = None
    return [
        sentence if 1 < len(names) == of else f"{', '.join(names)}: {sentence}"
        for sentence, names in who.items()
    ]


def together(answers: Sequence[Answer]) -> Answer:
    first, *others = answers
    if not others:
        return first
    later = [section for answer in others for section in (_head(answer), *answer.sections)]
    return replace(
        first,
        sections=[*first.sections, *later],
        warnings=[line for answer in answers for line in answer.warnings],
        legend=list(dict.fromkeys(line for answer in answers for line in answer.legend)),
        refused=list(dict.fromkeys(line for answer in answers for line in answer.refused)),
        next=(),
    )


def _head(answer: Answer) -> Section:
    return (
        Section(answer.title, answer.findings)
        if answer.findings
        else Section("", [Line(answer.title, tone="strong")])
    )


def command(*words: str) -> tuple[str, ...]:
    return (*JUDGE.split(), *words)


def then(answer: Answer, name: str, *words: str) -> Answer:
    return replace(answer, next=command(*name.split(), *words))


def text_table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> Table:
    return Table(
        [Column(head, left=at < left) for at, head in enumerate(heads)], [list(row) for row in rows]
    )


Columns = Sequence[tuple[Column, Callable[[Any], object]]]  # with the reader of a row's value


def table_of(columns: Columns, rows: Sequence[Any]) -> Table:
    """Make a table from columns and their readers, without columns that have no value."""
    read_columns = [(column, [read(row) for row in rows]) for column, read in columns]
    filled = [
        (column, values)
        for column, values in read_columns
        if any(value is not None for value in values)
    ]
    return Table(
        [column for column, _ in filled], [*zip(*(values for _, values in filled), strict=True)]
    )


def marked(lines: Iterable[tuple[str, str]], tone: Tone = "") -> Iterator[Line]:
    return (Line(text, mark, tone) for mark, text in lines)


def of_parts(
    data: Mapping[str, object], parts: Iterable[Part], refused: Sequence[str] = ()
) -> Answer:
    """Make an answer from its parts.

    An empty text begins a new section; a strong line at the beginning of a section is its title.
    """
    sections: list[list[Line | Table]] = [[]]
    legend: list[tuple[str, str]] = []
    for part in parts:
        if isinstance(part, str) and not part:
            sections.append([])
        elif isinstance(part, Line) and part.tone == "quiet":
            legend.append((part.mark, part.text))
        else:
            sections[-1].append(Line(part) if isinstance(part, str) else part)
    first, *others = [section for section in sections if section] or [[]]
    findings = list(takewhile(lambda part: isinstance(part, Line), first))
    rest = first[len(findings) :]
    return Answer(
        "",
        findings=findings,  # type: ignore[arg-type] # lines, as was looked at
        sections=[*([Section("", rest)] if rest else []), *map(_of_section, others)],
        legend=legend,
        data=data,
        refused=list(refused),
    )


def _of_section(parts: Sequence[Line | Table]) -> Section:
    first, *others = parts
    if isinstance(first, Line) and first.tone == "strong" and others:
        return Section(first.text, others)
    return Section("", parts)
