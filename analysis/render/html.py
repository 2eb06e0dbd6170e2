"""An answer as a part of an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from analysis.answer import Answer, Line, Table, Word
from analysis.plain import SENTENCE, one_line
from analysis.wording import spoken


def render(answer: Answer, level: int = 3) -> Markup:
    """Write findings and sections; headings are of `level`."""
    return Markup("\n").join(_parts(answer, level))


def _parts(answer: Answer, level: int) -> Iterator[Markup]:
    yield from _list(answer.findings, "findings")
    for section in answer.sections:
        if section.title:
            yield Markup("<h{0}>{1}</h{0}>").format(level, _clean(section.title))
        together: list[Line] = []
        for part in section.parts:
            if isinstance(part, Line):
                together.append(part)
                continue
            yield from _list(together)
            together = []
            yield table(part)
        yield from _list(together)
    yield from _list([Line(text, "warning:", "open") for text in dict.fromkeys(answer.warnings)])
    if answer.legend:
        rows = Markup("").join(Markup("<dt>{}</dt><dd>{}</dd>").format(_clean(word), _clean(text)) for word, text in answer.legend)
        yield Markup('<details class="legend"><summary>What words and columns mean</summary><dl>{}</dl></details>').format(rows)


def _list(lines: Sequence[Line], name: str = "lines") -> Iterator[Markup]:
    if lines:
        items = Markup("").join(
            Markup("<li{}>{}{}</li>").format(_tone(line.tone), "" if line.mark in {"", "•"} else f"{_clean(line.mark)} ", _clean(line.text))
            for line in lines
        )
        yield Markup('<ul class="{}">{}</ul>').format(name, items)


def table(result: Table) -> Markup:
    """A table that scrolls by itself where the page is narrow."""
    caption = Markup("<caption>{}</caption>").format(_clean(result.title)) if result.title else Markup("")
    sides = ["" if column.left else Markup(' class="number"') for column in result.columns]
    head = Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(side, Markup("<br>").join(map(escape, column.head.strip().splitlines())))
        for side, column in zip(sides, result.columns, strict=True)
    )
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(_cell(value, column.write, side) for value, column, side in zip(row, result.columns, sides, strict=True))
        )
        for row in result.rows
    )
    label = _clean(result.title or result.columns[0].head) or "table"
    box = Markup('<div class="scroll" tabindex="0" role="region" aria-label="{}">').format(label)
    return box + Markup("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>").format(caption, head, body)


def _cell(value: object, write: object, side: str) -> Markup:
    if value is None:
        return Markup("<td{}></td>").format(side)
    if isinstance(value, Word):
        return Markup("<td{}><span{}>{}</span></td>").format(side, _tone(value.tone), spoken(_clean(value.text)))
    return Markup("<td{}>{}</td>").format(side, _clean(write(value) if callable(write) else value))


def _tone(tone: str) -> Markup | str:
    return Markup(' class="{}"').format(tone) if tone else ""


def _clean(text: object) -> str:
    return one_line(text, SENTENCE)
