"""One answer in five formats: a study's words come through, and foreign text does no harm."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from html import unescape
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from analysis import render as pages
from analysis.__main__ import main
from analysis.answer import Answer, Column, Line, Section, Table, Word, bullets
from analysis.render import csv as as_csv
from analysis.render import data, html, markdown, text
from analysis.render.text import wrap


@dataclass(frozen=True)
class Gain:
    value: float
    low: float
    high: float


def percent(gain: Gain) -> str:
    return f"{100 * gain.value:+.1f} [{100 * gain.low:.1f}, {100 * gain.high:.1f}]"


COLUMNS = (
    Column("tweak set", "tweakset", left=True),
    Column("CPU\n+% [95 %]", "cpu", percent),
    Column("n", "blocks", spare=2),
    Column("verdict", left=True),
)
HOSTILE = "x\x1b[31m<script>|`a`\n::error::b"


def answer(name: str = "thp-always", **changes: object) -> Answer:
    rows = [
        (name, Gain(0.021, 0.01, 0.032), 20, Word("regressed", "bad")),
        ("stock-again", None, None, None),
    ]
    facts: dict[str, object] = {
        "title": "Run r1",
        "findings": [Line("thp-always costs 2.1 %", tone="strong")],
        "sections": [
            Section("cnn_train", (Table(COLUMNS, rows), *bullets(["one block is missing"])))
        ],
        "legend": [("n", "pairs of cells")],
        "data": {"rows": [Gain(0.021, float("nan"), 0.032)]},
        "next": ("python", "-m", "analysis", "show", "r1.json"),
    }
    return Answer(**(facts | changes))  # type: ignore[arg-type]


def test_a_terminal_has_the_finding_first_and_a_command_last() -> None:
    lines = text.render(answer()).splitlines()
    assert lines[:2] == ["Run r1", "thp-always costs 2.1 %"]
    assert lines[3:] == [
        "cnn_train",
        "                         CPU",
        "tweak set          +% [95 %]   n  verdict",
        "thp-always   +2.1 [1.0, 3.2]  20  slower",
        "stock-again",
        "",
        "• one block is missing",
        "next: python -m analysis show r1.json",
    ]


def test_words_are_explained_where_it_is_asked_for() -> None:
    assert "pairs of cells" not in text.render(answer())
    assert text.render(answer(), explain=True).endswith("n pairs of cells\n")


def test_a_narrow_page_goes_without_what_can_be_spared() -> None:
    assert "20" not in text.render(answer(), 38).partition("next")[0].replace("-again", "")
    assert max(map(len, text.render(answer(next=()), 42).splitlines())) <= 42


def test_colour_is_for_what_it_means() -> None:
    assert "\x1b[1;31mslower" in text.render(answer(), color=True)
    assert "\x1b" not in text.render(answer())


@pytest.mark.parametrize(
    ("environ", "color", "width"),
    [
        ({"FORCE_COLOR": "1", "COLUMNS": "80"}, True, 80),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, 100),
        ({"COLUMNS": "9999"}, False, 160),
    ],
)
def test_the_environment_s_word_on_colour_and_width_is_kept(
    environ: dict[str, str],
    color: bool,  # noqa: FBT001
    width: int,
) -> None:
    assert (text.wants_color(StringIO(), environ), text.width_of(StringIO(), environ)) == (
        color,
        width,
    )


def test_csv_has_raw_values_three_interval_columns_and_blanks() -> None:
    rows = list(csv.DictReader(StringIO(as_csv.render(answer()))))
    assert rows[0] == {
        "section": "cnn_train",
        "tweakset": "thp-always",
        "cpu": "0.021",
        "cpu_low": "0.01",
        "cpu_high": "0.032",
        "blocks": "20",
        "verdict": "regressed",
    }
    assert rows[1]["cpu"] == rows[1]["cpu_low"] == rows[1]["verdict"] == ""


def test_json_has_null_for_what_is_no_number() -> None:
    assert json.loads(data.render(answer(refused=["b.json: damaged"]))) == {
        "rows": [{"value": 0.021, "low": None, "high": 0.032}],
        "refused": ["b.json: damaged"],
    }


def test_foreign_text_does_no_harm_in_any_format() -> None:
    heads = Answer("", sections=[Section("", [Table([Column(HOSTILE)], [["x"]])])])
    assert "\x1b" not in as_csv.render(heads)
    hostile = answer(HOSTILE, title=HOSTILE, warnings=[HOSTILE], data={"name": HOSTILE})
    for written in (
        text.render(hostile),
        markdown.render(hostile),
        as_csv.render(hostile),
        data.render(hostile),
        str(html.render(hostile)),
    ):
        assert "\x1b" not in written
        assert "\n::error" not in written
    assert "<script>" not in html.render(hostile)
    assert "&#60;script&#62;&#124;&#96;a&#96;" in markdown.render(hostile)
    assert as_csv.render(answer("=1+1")).splitlines()[1].split(",")[1] == "'=1+1"


def test_a_page_shows_what_is_folded_and_where_a_word_leads() -> None:
    linked = Table([Column("run")], [[Word("r1", href="https://example.org/r1")]])
    page = answer(
        sections=[Section("Runs", [linked, Line("all of them", href="#all")], folded=True)]
    )
    assert "Runs\nrun\n r1\n\nall of them" in text.render(page)
    assert '<a href="https://example.org/r1"><span>r1</span></a>' in html.render(page)
    assert "<details><summary>Runs</summary>" in html.render(page)
    assert "<details><summary>Runs</summary>\n" in markdown.render(page)
    assert "[r1](https://example.org/r1)" in markdown.render(page)
    assert "- [all of them](#all)" in markdown.render(page)


HIDDEN = "\u200b"  # what breaks mentions and links up


def shown(words: str, inside: str) -> str:
    """The visible text of a Markdown line."""
    page = markdown.render(Answer("", findings=[Line(words)]))
    seen = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(page)
    (found,) = re.findall(f"<{inside}>(.*?)</{inside}>", seen, re.DOTALL)
    return unescape(str(found))


@pytest.mark.parametrize(
    "words", ["@torvalds", "#123", "https://example.org", "www.example.org", "a@example.org"]
)
def test_nobody_is_notified_and_nothing_is_linked(words: str) -> None:
    """GitHub finds these in the rendered text: it must not stand there unbroken."""
    assert words not in shown(words, "li")
    assert shown(words, "li").replace(HIDDEN, "") == words


MARKS = [
    "1. a",
    "- a",
    "+ a",
    "> a",
    "`a`",
    "<b>a</b>",
    "&lt;",
    "[a](b)",
    "a|b",
    "*a*",
    "_a_",
    "__a__",
    "a_b_c",
    "$x$",
    "~~a~~",
]


@pytest.mark.parametrize("words", MARKS)
def test_marks_are_shown_not_obeyed(words: str) -> None:
    assert shown(words, "li") == words


PARTS = st.lists(st.text("abcdefgh.0123", min_size=1, max_size=20), min_size=1, max_size=12)


@given(PARTS, st.integers(21, 100))
def test_a_long_name_is_broken_only_between_its_parameters(parts: list[str], width: int) -> None:
    lines = wrap(":".join(parts), width)
    assert "".join(lines) == ":".join(parts)
    assert all(len(line) <= width for line in lines)
    assert all(line.endswith(":") for line in lines[:-1])


def test_a_long_answer_ends_after_40_lines_and_names_the_rest() -> None:
    page = answer(
        sections=[
            Section(f"part {number}: more", [Table(COLUMNS, [("a", None, 1, None)] * 12)])
            for number in range(5)
        ]
    )
    short = text.render(page, whole=False).splitlines()
    assert len(short) <= 45
    assert short[-3:] == [
        "",
        "… 45 more lines with --all: part 2, part 3, part 4",
        "next: python -m analysis show r1.json",
    ]
    assert len(text.render(page).splitlines()) > 70


RUNS = sorted((Path(__file__).parents[2] / "data/runs").glob("*.json"))


@pytest.mark.parametrize("command", ["show", "effects"])
@pytest.mark.parametrize("run", RUNS, ids=lambda path: path.stem)
def test_no_word_is_broken(run: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Answer] = []
    monkeypatch.setattr(
        pages,
        "write",
        lambda answer, _: str(answers.append(answer)),  # type: ignore[func-returns-value]
    )
    main([command, str(run)])
    for page in answers:
        words = set(text.render(page, 10_000, explain=True).split())
        for width in (60, 80, 100, 120):
            lines = [
                line
                for line in text.render(page, width, explain=True).splitlines()
                if not line.startswith("next: ")
            ]
            assert max(map(len, lines)) <= width
            # A name that may be broken between its parts.
            long = " ".join(word for word in words if len(word) > width // 2)
            assert [
                word
                for line in lines
                for word in line.split()
                if word not in words and word not in long
            ] == []
