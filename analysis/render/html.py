"""An answer as a part of an HTML page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator

from markupsafe import Markup, escape

from analysis.answer import Answer, Line, Section, Table, Word
from analysis.plain import SENTENCE, one_line
from analysis.wording import spoken

CODE = re.compile(r"`([^`]+)`")


def render(answer: Answer, level: int = 3) -> Markup:
    """Write title, findings, sections, warnings and legend, with headings of `level`."""
    return Markup("\n").join(_parts(answer, level))


def _parts(answer: Answer, level: int) -> Iterator[Markup]:
    if answer.title:
        yield Markup('<p class="lead">{}</p>').format(prose(answer.title))
    yield from _list(answer.findings, "findings")
    for section in answer.sections:
        yield section_of(section, level)
    yield from _list(
        [Line(text, "warning:", "open") for text in dict.fromkeys(answer.warnings)], "warnings"
    )
    if answer.next:
        yield Markup("<p>Next: <code>{}</code></p>").format(clean(shlex.join(answer.next)))
    if answer.legend:
        words = Markup("").join(
            Markup("<dt>{}</dt><dd>{}</dd>").format(clean(word), prose(text))
            for word, text in answer.legend
        )
        yield Markup(
            '<details class="legend"><summary>Meaning of words and '
            "columns</summary><dl>{}</dl></details>"
        ).format(words)


def section_of(section: Section, level: int) -> Markup:
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
        return Markup("<details><summary>{}</summary>\n{}\n</details>").format(
            clean(section.title), body
        )
    return (
        Markup("<h{0}>{1}</h{0}>\n{2}").format(level, clean(section.title), body)
        if section.title
        else body
    )


def _list(lines: Iterable[Line], name: str) -> Iterator[Markup]:
    items = []
    for line in lines:
        mark = "" if line.mark in {"", "•"} else f"{escape(clean(line.mark))} "
        items.append(f"<li{_tone(line.tone)}>{mark}{_linked(prose(line.text), line.href)}</li>")
    if items:
        yield Markup(f'<ul class="{name}">{"".join(items)}</ul>')  # noqa: S704  # escaped above


def table(shown: Table) -> Markup:
    """Write a table that scrolls on a narrow page; HTML closes its cells implicitly."""
    sides = ["" if column.left else " class=number" for column in shown.columns]
    heads = ["<br>".join(map(escape, column.head.strip().splitlines())) for column in shown.columns]
    head = "".join(
        f'<th scope="col"{side}>{text}</th>' for side, text in zip(sides, heads, strict=True)
    )
    writers = [column.write for column in shown.columns]
    rows = "\n".join(f"<tr>{''.join(map(_cell, row, writers, sides))}</tr>" for row in shown.rows)
    caption = f"<caption>{escape(clean(shown.title))}</caption>" if shown.title else ""
    label = escape(clean(shown.title or shown.columns[0].head) or "table")
    box = f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
    whole = (
        f"{box}<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
    return Markup(whole)  # noqa: S704  # every text in it was escaped


def _cell(value: object, write: Callable[[object], str], side: str) -> str:
    if value is None:
        return f"<td{side}>"
    if isinstance(value, Word):
        text = f"<span{_tone(value.tone)}>{escape(spoken(clean(value.text)))}</span>"
        return f"<td{side}>{_linked(text, value.href)}"
    return f"<td{side}>{prose(write(value))}"


def _linked(markup: str, href: str) -> str:
    return f'<a href="{escape(href)}">{markup}</a>' if href else markup


def _tone(tone: str) -> str:
    return f' class="{tone}"' if tone else ""


def prose(text: object) -> Markup:
    """Escape a sentence; words between backticks become code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(clean(text)))))  # noqa: S704


def clean(text: object) -> str:
    return one_line(text, SENTENCE)
