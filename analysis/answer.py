"""What a command has found, in one shape: findings first, then tables, then what to know about them.

A study makes an `Answer` of plain text and raw values; `render/` writes it to a terminal, HTML, Markdown, JSON or CSV, and makes foreign
text harmless there. No study escapes, wraps or colours anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Literal, Protocol, runtime_checkable

from control.called import JUDGE

# What a text means, for whoever colours it: shown to be better, shown to be worse, not decided, of no weight, the heart of the matter; or
# that its characters are of one width.
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
    """A value with its interval; a CSV file has a column for each of the three."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Word:
    """A text with what it means; `href` is where it leads, in formats that have links."""

    text: str
    tone: Tone = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence; `mark` stands before it (`•`, `warning:`, `(1)`), and it wraps under itself; `href` as of a `Word`."""

    text: str
    mark: str = ""
    tone: Tone = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `head` for people (a line end breaks it), `name` with its unit for programs.

    `write` turns a value into text; None is an empty cell and never reaches it. Of a narrow page columns with the largest `spare` go first.
    `interval`: three columns for programs, even where every value is missing.
    """

    head: str
    name: str = ""
    write: Callable[[Any], str] = str
    left: bool = False
    spare: int = 0
    interval: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of raw values, one a column: text, numbers, None for what is missing, a `Word`, or an `Interval`."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    title: str = ""


Part = Line | Table | str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an answer, such as one workload: lines and tables in the order in which they are read.

    A `folded` one shows its title alone until it is opened, in formats that can do so.
    """

    title: str = ""
    parts: Sequence[Line | Table] = ()
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """All that a command has to say.

    `findings` answer the question in three lines at most. `legend` explains words and columns, shown if
    asked for (`--explain`). `next` has the words of the command that goes on. `data` is what `--json`
    writes, dataclasses and all. `refused` are files that could not be used. `rows` is what `--csv` writes
    if the page folds rows; otherwise the tables of the sections are written.
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
    """Sentences that hold for several: `(who, sentence)` becomes `a, b: sentence`, each sentence once, in order of first use.

    One that holds for all, where there are `of` of them, names nobody.
    """
    who: dict[str, dict[str, None]] = {}
    for name, sentence in pairs:
        who.setdefault(sentence, {})[name] = None
    return [sentence if 1 < len(names) == of else f"{', '.join(names)}: {sentence}" for sentence, names in who.items()]


def together(answers: Sequence[Answer]) -> Answer:
    """Several answers as one, each under its title; one alone is itself."""
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
    """Put an answer's title above its findings; without any it is a line, for nothing would stand below a heading."""
    return Section(answer.title, answer.findings) if answer.findings else Section("", [Line(answer.title, tone="strong")])


def command(*words: str) -> tuple[str, ...]:
    """Return the words of one of our commands: `command("report", "run.json")`."""
    return (*JUDGE.split(), *words)


def then(answer: Answer, name: str, *words: str) -> Answer:
    """Name the command that goes on from an answer."""
    return replace(answer, next=command(*name.split(), *words))


def text_table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> Table:
    return Table([Column(head, left=at < left) for at, head in enumerate(heads)], [list(row) for row in rows])


Columns = Sequence[tuple[Column, Callable[[Any], object]]]  # each with what it reads from a row


def table_of(columns: Columns, rows: Sequence[Any]) -> Table:
    """Make a table of columns and of what each reads from a row; a column in which nothing stands is left out."""
    read_columns = [(column, [read(row) for row in rows]) for column, read in columns]
    filled = [(column, values) for column, values in read_columns if any(value is not None for value in values)]
    return Table([column for column, _ in filled], [*zip(*(values for _, values in filled), strict=True)])


def marked(lines: Iterable[tuple[str, str]], tone: Tone = "") -> Iterator[Line]:
    """Sentences with a mark or word before each; quiet ones explain words, and are shown where that is asked for."""
    return (Line(text, mark, tone) for mark, text in lines)


def of_parts(data: Mapping[str, object], parts: Iterable[Part], refused: Sequence[str] = ()) -> Answer:
    """Make an answer of its parts: an empty text begins a new section, and a strong line with which one begins is its title."""
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
