"""The gate's page for GitHub, rendered with a CommonMark parser that knows GitHub's tables, and read as a visitor would."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from analysis.load import load
from analysis.plain import one_line
from analysis.studies.gate.markdown import FOLDED, LONGEST_BYTES, LONGEST_NAME, code, markdown, site_of, text
from tests.made_gates import gate, gates, hostile, ruled
from tests.synthetic import saved_file

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from analysis.studies.gate.gate import Gate

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
    return [row[7] for row in rendered(page).rows if len(row) == 9 and row[0] != "workload"]


def test_the_page(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """Marker, verdict, rulings with the worst first, reasons of what did not pass, what to know (each once), and the runs."""
    run = dataclasses.replace(load(saved_file(tmp_path)), commit=f"{'0123456789abcdef' * 2}01234567+dirty")
    unknown = dataclasses.replace(run, run_id="another", commit=None, machine={})
    rulings = (ruled(notes=("no common blocks.",)), ruled("undecided"), ruled("regression", reason="too slow."), ruled())
    answer = gate(*rulings, warnings=("interrupted.", "interrupted.", "no common blocks."))
    assert markdown(answer, [run, run, unknown]) == snapshot
    heads = [markdown(one).splitlines()[2] for one in (gate(ruled()), gate(ruled("undecided"), ruled()), gate())]
    assert heads == snapshot(name="heads")


def test_a_reason_is_said_once_for_all_that_it_holds_for() -> None:
    page = rendered(markdown(gate(ruled("regression", reason="too slow."), ruled("regression", reason="too slow."), ruled("undecided"))))
    assert len(page.items) == 2


def test_the_comment_leads_to_the_run_its_report_and_the_commit(tmp_path: Path) -> None:
    """No commit that is not one: it comes out of a file."""
    run = load(saved_file(tmp_path))
    hub = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "who/what", "GITHUB_RUN_ID": "7"}
    site = site_of(hub)
    commits = [dataclasses.replace(run, run_id=str(at), commit=one) for at, one in enumerate((40 * "a", f"{40 * 'b'}+dirty", "x](evil)"))]
    page = markdown(gate(ruled()), commits, site=site)
    links = re.findall(r"\]\(([^)]*)\)", page)
    base = "https://github.com/who/what"
    assert links == [f"{base}/actions/runs/7", f"{base}/actions/runs/7#artifacts", f"{base}/commit/{40 * 'a'}", f"{base}/commit/{40 * 'b'}"]
    assert site_of({**hub, "GITHUB_RUN_ID": ""}) is None


def test_several_gates_of_one_pull_request_have_markers_of_their_own() -> None:
    """A key cannot end its marker."""
    assert [markdown(gate(), key=key).splitlines()[0] for key in ("node a/gpu", "x --> y")] == [
        "<!-- deeptweak-gate node_a/gpu -->",
        "<!-- deeptweak-gate x_y -->",
    ]


def test_few_passes_are_shown_and_many_folded() -> None:
    few, many = (markdown(gate(ruled("regression"), *[ruled()] * count)) for count in (FOLDED, FOLDED + 1))
    assert "<details>" not in few
    assert f"<details><summary>{FOLDED + 1} passes</summary>" in many
    assert many.index("regression |") < many.index("<details>") < many.index("| pass |") < many.index("</details>")
    assert rulings_in(many).count("pass") == FOLDED + 1


def test_a_page_too_long_for_a_comment_says_what_it_leaves_out() -> None:
    """3,000 regressions: their rows come first, and what is missing is counted to the last one."""
    page = markdown(gate(*(ruled("regression", reason=f"{at} {'x' * 300}") for at in range(3000)), warnings=("noisy",)))
    assert len(page.encode()) <= LONGEST_BYTES
    left_out = re.search(r"(\d+) rulings, (\d+) reasons", page)
    assert left_out
    assert len(rulings_in(page)) == 3000 - int(left_out[1])
    assert page.count("\n- ❌") == 3000 - int(left_out[2])
    assert "3000 of 3000" in page


def test_passes_give_way_to_regressions() -> None:
    page = markdown(gate(*[ruled("pass")] * 3000, ruled("regression")))
    assert len(page.encode()) <= LONGEST_BYTES
    rulings = rulings_in(page)
    assert rulings[0] == "regression"
    assert f"{3000 - rulings.count('pass')} passes." in page
    assert page.count("<details>") == page.count("</details>") == 1


def test_nobody_is_notified_and_nothing_is_linked() -> None:
    """GitHub finds these in the rendered text: it must not stand there unbroken."""
    for words in ("@torvalds", "#123", "https://example.org", "www.example.org", "a@example.org"):
        shown = MarkdownIt("commonmark", {"html": True}).renderInline(text(words))
        assert words not in shown
        assert shown.replace(HIDDEN, "") == words


MARKS = ["1. a", "- a", "+ a", "# a", "> a", "`a`", "<b>a</b>", "&lt;", "[a](b)", "a|b", "*a*", "_a_", "__a__", "a_b_c", "$x$", "~~a~~"]


def test_marks_are_shown_not_obeyed() -> None:
    page = rendered("".join(f"- {text(words)}\n" for words in MARKS))
    assert page.items == MARKS
    assert page.tags == ["ul", *["li"] * len(MARKS)]


@given(hostile)
def test_any_name_is_shown_as_it_is(name: str) -> None:
    page = rendered(f"| a |\n|---|\n| {code(name)} |\n")
    assert [cell.strip() for cell in page.rows[1]] == [one_line(name, LONGEST_NAME)]
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


@given(gates(), st.text(max_size=20))
def test_whatever_a_file_holds_the_page_keeps_its_shape(answer: Gate, key: str) -> None:
    page = markdown(answer, key=key)
    seen = rendered(page)
    assert set(seen.tags) <= {"h2", "h3", "p", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert len(rulings_in(page)) == len(answer.rulings)
    assert re.fullmatch(r"<!-- deeptweak-gate( [\w./]+)? -->", page.splitlines()[0])
    assert len(page.encode("utf-8")) <= LONGEST_BYTES
