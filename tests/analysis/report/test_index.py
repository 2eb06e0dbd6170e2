"""The index of a folder of runs."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.__main__ import main
from analysis.compare import compare
from analysis.terms import Comparison, Run
from tests.made_history import nights, noisy, stepped
from tests.synthetic import Made, saved_file

if TYPE_CHECKING:
    import pytest


class Rows(HTMLParser):
    """The rows of the table of runs: its link and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[tuple[str, str]] = []
        self.feed(page[page.index('<h2 id="runs">') : page.index('<h2 id="history">')])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append(("", ""))
        href = dict(attrs).get("href") or ""
        if tag == "a" and href.endswith(".html"):
            self.rows[-1] = (href, self.rows[-1][1])

    def handle_data(self, data: str) -> None:
        if self.rows:
            self.rows[-1] = (self.rows[-1][0], self.rows[-1][1] + data)


def test_runs_are_newest_first_with_their_reports_and_changes(tmp_path: Path) -> None:
    folder = nights(tmp_path / "nights", {"bench": noisy(stepped((8, 0.1), (8, 0.12)))})
    index = tmp_path / "index.html"
    assert main(["report", str(folder), "--output", str(index)]) == 0
    head, *rows = Rows(index.read_text()).rows
    assert "changed here" in head[1]
    rows = [(href, text) for href, text in rows if href]
    assert len(rows) == 16
    assert "2026-01-16" in rows[0][1]
    assert "2026-01-01" in rows[-1][1]
    assert [at for at, (_, text) in enumerate(rows) if "bench -" in text] == [7], (
        "the ninth night, of sixteen"
    )
    assert all(
        (tmp_path / href.replace("%2B", "+").replace("%3A", ":")).is_file() for href, _ in rows
    )


def test_a_report_that_is_newer_than_its_run_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    runs = [saved_file(folder, Made(seed=seed, blocks=3), f"{seed}.json") for seed in (1, 2)]
    index = tmp_path / "index.html"
    for _ in range(2):
        assert main(["report", str(folder), "--output", str(index)]) == 0
    reports = sorted(tmp_path.glob("index-*.html"))
    assert len(reports) == 2
    assert "2 runs, each with a report beside it" in " ".join(capsys.readouterr().out.split())
    before = [one.stat().st_mtime_ns for one in reports]
    os.utime(runs[0], (2**32, 2**32))
    main(["report", str(folder), "--output", str(index)])
    assert [one.stat().st_mtime_ns == old for one, old in zip(reports, before, strict=True)].count(
        True
    ) == 1


def test_a_run_with_failing_arithmetic_is_named_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for seed in (1, 2, 3):
        saved_file(folder, Made(seed=seed, blocks=3), f"{seed}.json")

    def choke(run: Run) -> list[Comparison]:
        if run.origin.endswith("2.json"):
            raise OverflowError("made up")
        return compare(run)

    monkeypatch.setattr("analysis.ending.compare", choke)
    index = tmp_path / "index.html"
    assert main(["report", str(folder), "--output", str(index)]) == 0
    assert len(Rows(index.read_text()).rows) == 3, "a head and two runs"
    assert "2.json: cannot be reported (OverflowError: made up)" in index.read_text()
