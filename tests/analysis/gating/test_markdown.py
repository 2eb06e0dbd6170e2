"""The gate's page for GitHub, rendered with a CommonMark parser that knows GitHub's tables, and read as a visitor would."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from analysis.gating.markdown import FOLDED, LONGEST_BYTES, code, markdown, text
from analysis.load import load
from analysis.plain import one_line
from tests.made_gates import gate, gates, hostile, ruled
from tests.synthetic import saved_file

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.gating.terms import Gate

HIDDEN = "\u200b"  # what breaks mentions and links up


class _Cells(HTMLParser):
    """Texts of a page's table cells and list items, and every tag on it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.items: list[str] = []
        self.tags: list[str] = []
        self._into: list[str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not [name for name, _ in attrs if name != "style"]
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th", "li"}:
            self._into = self.rows[-1] if tag != "li" else self.items
            self._into.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th", "li"}:
            self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into[-1] += data.replace(HIDDEN, "")


def rendered(page: str) -> _Cells:
    return _Cells(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(page))


def rulings_in(page: str) -> list[str]:
    """The ruling column, in order."""
    return [row[6] for row in rendered(page).rows if len(row) == 8 and row[0] != "workload"]


def test_the_first_line_is_the_marker_and_the_first_seen_the_verdict() -> None:
    lines = markdown(gate(ruled("regression"), ruled())).splitlines()
    assert lines[0] == "<!-- deeptweak-gate -->"
    assert lines[2] == "## ❌ Regression: 1 of 2 contrasts slower than allowed."


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (gate(ruled()), "## ✅ Pass: 1 contrast compared, none slower than allowed."),
        (
            gate(ruled("undecided"), ruled()),
            "## ❔ Undecided: 1 of 2 contrasts not shown to be within the limit, none shown to be beyond it.",
        ),
        (gate(), "## ❔ Undecided: nothing was compared, so nothing was shown."),
    ],
)
def test_each_ruling_has_its_sentence(answer: Gate, said: str) -> None:
    assert markdown(answer).splitlines()[2] == said


def test_several_gates_of_one_pull_request_have_markers_of_their_own() -> None:
    assert markdown(gate(), key="node a/gpu").startswith("<!-- deeptweak-gate node_a/gpu -->\n")


def test_a_key_cannot_end_the_marker() -> None:
    assert markdown(gate(), key="x --> y").startswith("<!-- deeptweak-gate x_y -->\n")


def test_regressions_come_first_and_passes_last() -> None:
    page = markdown(gate(ruled("pass"), ruled("undecided"), ruled("regression"), ruled("pass")))
    assert rulings_in(page) == ["regression", "undecided", "pass", "pass"]


def test_a_row_says_what_was_measured() -> None:
    rows = rendered(markdown(gate(ruled("regression"), ruled("undecided")))).rows
    assert rows[0] == ["workload", "tweak set", "metric", "loss", "at most", "limit", "ruling", "n"]
    assert rows[1] == ["ddp_train", "my-tuning", "step_time_p10_s", "+8.1 %", "+10.2 %", "3 %", "regression", "7/8"]
    assert rows[2][3:5] == ["not known", "not known"]


def test_few_passes_are_shown_and_many_folded() -> None:
    few, many = (markdown(gate(ruled("regression"), *[ruled()] * count)) for count in (FOLDED, FOLDED + 1))
    assert "<details>" not in few
    assert f"<details><summary>{FOLDED + 1} passes</summary>" in many
    assert many.index("regression |") < many.index("<details>") < many.index("| pass |") < many.index("</details>")
    assert rulings_in(many).count("pass") == FOLDED + 1


def test_reasons_are_given_for_what_did_not_pass() -> None:
    page = rendered(markdown(gate(ruled("regression", reason="too slow."), ruled("pass", reason="fine."))))
    assert page.items == ["❌ ddp_train, my-tuning, step_time_p10_s: too slow."]


def test_warnings_and_what_to_know_are_each_said_once() -> None:
    notes = ("two runs without common blocks.",)
    page = rendered(markdown(gate(ruled(notes=notes), ruled(notes=notes), warnings=("interrupted.", "interrupted."))))
    assert page.items == ["interrupted.", "two runs without common blocks."]


def test_the_runs_are_named_with_commit_and_machine(tmp_path: Path) -> None:
    run = dataclasses.replace(load(saved_file(tmp_path)), commit=f"{'0123456789abcdef' * 2}01234567+dirty")
    rows = rendered(markdown(gate(ruled()), [run])).rows
    assert rows[-1] == ["made-up-1", "0123456789ab+dirty", "2026-01-01T00:00:00+00:00", "Linux 6.18.0, Made-up CPU"]
    assert len(rendered(markdown(gate(ruled()), [run, run])).rows) == len(rendered(markdown(gate(ruled()), [run])).rows)
    unknown = dataclasses.replace(run, commit=None, machine={})
    assert rendered(markdown(gate(ruled()), [unknown])).rows[-1][1::2] == ["not known", "not known"]


def test_a_page_too_long_for_a_comment_says_what_it_leaves_out() -> None:
    """3,000 regressions: their rows come first, and what is missing is counted to the last one."""
    page = markdown(gate(*[ruled("regression", reason="x" * 300)] * 3000, warnings=("noisy",)))
    assert len(page.encode()) <= LONGEST_BYTES
    left_out = re.search(r"Left out, because GitHub takes 65,536 characters and no more: (\d+) rulings, (\d+) reasons", page)
    assert left_out
    assert len(rulings_in(page)) == 3000 - int(left_out[1])
    assert page.count("\n- ❌") == 3000 - int(left_out[2])
    assert "## ❌ Regression: 3000 of 3000" in page


def test_passes_give_way_to_regressions() -> None:
    page = markdown(gate(*[ruled("pass")] * 3000, ruled("regression")))
    assert len(page.encode()) <= LONGEST_BYTES
    rulings = rulings_in(page)
    assert rulings[0] == "regression"
    assert f"{3000 - rulings.count('pass')} passes. The gate's log has them." in page
    assert page.count("<details>") == page.count("</details>") == 1


@pytest.mark.parametrize("words", ["@torvalds", "#123", "https://example.org", "www.example.org", "a@example.org"])
def test_nobody_is_notified_and_nothing_is_linked(words: str) -> None:
    """GitHub finds these in the rendered text: it must not stand there unbroken."""
    shown = MarkdownIt("commonmark", {"html": True}).renderInline(text(words))
    assert words not in shown
    assert shown.replace(HIDDEN, "") == words


@pytest.mark.parametrize(
    "words",
    [
        "1. one",
        "- one",
        "+ one",
        "# one",
        "> one",
        "`one`",
        "<b>one</b>",
        "&lt;",
        "[a](b)",
        "a|b",
        "*a*",
        "_a_",
        "__a__",
        "a_b_c",
        "$x$",
        "~~a~~",
    ],
)
def test_marks_are_shown_not_obeyed(words: str) -> None:
    assert rendered(f"- {text(words)}\n").items == [words]
    assert rendered(f"- {text(words)}\n").tags == ["ul", "li"]


@given(hostile)
def test_any_name_is_shown_as_it_is(name: str) -> None:
    page = rendered(f"| a |\n|---|\n| {code(name)} |\n")
    assert [cell.strip() for cell in page.rows[1]] == [one_line(name)]
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


@given(gates(), st.text(max_size=20))
def test_whatever_a_file_holds_the_page_keeps_its_shape(answer: Gate, key: str) -> None:
    page = markdown(answer, key=key)
    seen = rendered(page)
    assert set(seen.tags) <= {"h2", "h3", "p", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert len(rulings_in(page)) == len(answer.rulings)
    assert re.fullmatch(r"<!-- deeptweak-gate( [\w./]+)? -->", page.splitlines()[0])
    assert len(page.encode("utf-8")) <= LONGEST_BYTES
