"""An answer as a part of an HTML page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator

from markupsafe import Markup, escape

from analysis.answer import Answer, Line, Section, Table, Word
from analysis.plain import SENTENCE, one_line
from analysis.wording import spoken


def render(answer: Answer, level: int = 3) -> Markup:
    """Write title, findings, sections, warnings and legend; headings are of `level`."""
    return Markup("\n").join(_parts(answer, level))


def _parts(answer: Answer, level: int) -> Iterator[Markup]:
    if answer.title:
        yield Markup('<p class="lead">{}</p>').format(clean(answer.title))
    yield from _list(answer.findings, "findings")
    for section in answer.sections:
        yield section_of(section, level)
    yield from _list([Line(text, "warning:", "open") for text in dict.fromkeys(answer.warnings)], "warnings")
    if answer.next:
        yield Markup("<p>Next: <code>{}</code></p>").format(clean(shlex.join(answer.next)))
    if answer.legend:
        words = Markup("").join(Markup("<dt>{}</dt><dd>{}</dd>").format(clean(word), clean(text)) for word, text in answer.legend)
        yield Markup('<details class="legend"><summary>What words and columns mean</summary><dl>{}</dl></details>').format(words)


def section_of(section: Section, level: int) -> Markup:
    """Write one section; one that is folded opens on a click."""
    parts: list[Markup] = []
    together: list[Line] = []
    for part in section.parts:
        if isinstance(part, Line):
            together.append(part)
        else:
            parts += [*_list(together, "lines"), table(part)]
            together = []
    parts += _list(together, "lines")
    body = Markup("\n").join(parts)
    if section.folded:
        return Markup("<details><summary>{}</summary>\n{}\n</details>").format(clean(section.title), body)
    return Markup("<h{0}>{1}</h{0}>\n{2}").format(level, clean(section.title), body) if section.title else body


def _list(lines: Iterable[Line], name: str) -> Iterator[Markup]:
    items = [
        Markup("<li{}>{}{}</li>").format(
            _tone(line.tone), "" if line.mark in {"", "•"} else f"{clean(line.mark)} ", _linked(clean(line.text), line.href)
        )
        for line in lines
    ]
    if items:
        yield Markup('<ul class="{}">{}</ul>').format(name, Markup("").join(items))


def table(shown: Table) -> Markup:
    """Write a table that scrolls by itself where the page is narrow."""
    caption = Markup("<caption>{}</caption>").format(clean(shown.title)) if shown.title else Markup("")
    sides = ["" if column.left else Markup(' class="number"') for column in shown.columns]
    head = Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(side, Markup("<br>").join(map(escape, column.head.strip().splitlines())))
        for side, column in zip(sides, shown.columns, strict=True)
    )
    writers = [column.write for column in shown.columns]
    body = Markup("\n").join(Markup("<tr>{}</tr>").format(Markup("").join(map(_cell, row, writers, sides))) for row in shown.rows)
    label = clean(shown.title or " ".join(shown.columns[0].head.split())) or "table"
    box = Markup('<div class="scroll" tabindex="0" role="region" aria-label="{}">').format(label)
    return box + Markup("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>").format(caption, head, body)


def _cell(value: object, write: Callable[[object], str], side: str) -> Markup:
    if value is None:
        return Markup("<td{}></td>").format(side)
    if not isinstance(value, Word):
        return Markup("<td{}>{}</td>").format(side, clean(write(value)))
    text = Markup("<span{}>{}</span>").format(_tone(value.tone), spoken(clean(value.text)))
    return Markup("<td{}>{}</td>").format(side, _linked(text, value.href))


def _linked(text: str, href: str) -> str:
    return Markup('<a href="{}">{}</a>').format(href, text) if href else text


def _tone(tone: str) -> Markup | str:
    return Markup(' class="{}"').format(tone) if tone else ""


def clean(text: object) -> str:
    return one_line(text, SENTENCE)
