"""The whole page: `compare`'s words, every section, nothing external, no file value as markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.answer import Table
from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.load import from_json, load
from analysis.terms import Run
from tests.analysis.report.pages import EVERYTHING, SWAPPINESS, page, read, section, text_of
from tests.deeptweak_like import SYSCTLS, Like, directory
from tests.stock_files import benchmark, document, times
from tests.synthetic import AGAIN, JSON, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from analysis.report.page import HtmlPage

EVIL = "<script>alert('x')</script>"
TUNED = Arm("tuned", 0.1, SWAPPINESS)


@pytest.fixture(scope="module")
def two() -> HtmlPage:
    """Two runs of one matrix, the second on another kernel."""

    def newer(saved: JSON) -> None:
        saved["machine_info"]["deeptweak"]["kernel_release"] = "6.19.0"

    arms = (STOCK, AGAIN, TUNED)
    one, other = (
        read(Made(arms=arms), origin="one.json"),
        read(Made(arms=arms, seed=2), newer, origin="two.json"),
    )
    return page(one, other)


# What is read on a page


def test_the_whole_page_of_a_run(snapshot: SnapshotAssertion) -> None:
    """Every verdict, a setting not in force, skipped and failed cells, a warning, a lost plot."""
    lost = replace(
        EVERYTHING.arms[3], broken={2: ("failed", "out of memory")}, warnings=["an odd key"]
    )
    arms = tuple(lost if arm.name == lost.name else arm for arm in EVERYTHING.arms)
    run = read(replace(EVERYTHING, arms=arms, workloads=("cnn_train",), primaries={}, blocks=4))
    html = page(run, refused=["bad.json: not JSON <here>"]).html
    assert text_of(html) == snapshot


def test_two_runs_are_told_apart_and_set_against_the_first(
    two: HtmlPage, snapshot: SnapshotAssertion
) -> None:
    """One run per arm: nothing can be compared between the runs."""
    for place in ("answer", "run1-verdicts", "between", "again"):
        assert section(two.html, place) == snapshot(name=place)
    assert section(two.html, "machine").partition("\nmade-up-1\n")[0] == snapshot(
        name="how they differ"
    )


def test_runs_of_others_as_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """With one run each there is no verdict and no known setting, yet the base is shown."""
    monkeypatch.chdir(tmp_path)
    run = load(
        directory(Path("one_node"), Like("base"), Like("exp1", manifest=SYSCTLS, run_effect=0.1))
    )
    html = page(run).html
    assert [one.verdict for one in compare(run)] == ["inconclusive"]
    assert f"{run.cells[0].metrics['throughput_samples_per_s']:.4g} samples/s" in section(
        html, "verdicts"
    )
    for place in ("answer", "verdicts", "tweaks", "order"):
        assert section(html, place) == snapshot(name=place)


def stock_file(day: int, names: list[str]) -> Run:
    """A file of pytest-benchmark alone."""
    made = [benchmark(name, times(day * 10 + at)) for at, name in enumerate(names)]
    return from_json(document(made, f"2026-01-0{day}T10:00:00"), f"{day}.json")


def test_runs_with_nothing_in_common_say_so_in_place_of_a_table() -> None:
    one, other = (
        read(Made(), origin="one.json"),
        read(Made(workloads=("other_train",), seed=2), origin="two.json"),
    )
    told = page(one, other)
    assert told.between is not None
    assert "in common" in told.between.title
    assert told.between.title in section(told.html, "answer")
    assert 'id="between"' not in told.html


# What it stands on


def test_the_tables_of_the_page_are_those_of_the_answer(everything: HtmlPage) -> None:
    """Row for row: no second vocabulary."""
    (told,) = everything.told
    (verdicts,) = told[1]
    comparisons = compare(read())
    wanted = answer_of(comparisons, [read()], every=True)
    assert verdicts.answer.sections == wanted.sections
    text = section(everything.html, "verdicts")
    for row in (
        row for part in wanted.sections[0].parts if isinstance(part, Table) for row in part.rows
    ):
        assert f"{row[0]} {row[1]}" in text
    assert wanted.title in section(everything.html, "answer")


def test_a_setting_that_was_not_in_force_is_marked(everything: HtmlPage) -> None:
    (failed,) = re.findall(
        r'<tr>(?:(?!</tr>).)*?<span class="bad">failed: .*?</tr>', everything.html, re.DOTALL
    )
    assert text_of(failed).startswith("ignored vm.swappiness 1 0 60 0 failed:")


# What holds of its markup


def test_every_section_is_there_and_linked(everything: HtmlPage, two: HtmlPage) -> None:
    for html in (everything.html, two.html):
        ids = re.findall(r'\bid="([^"]+)"', html)
        assert len(ids) == len(set(ids))
        links = re.findall(r'href="#([^"]+)"', html)
        assert {
            "answer",
            "pictures",
            "tweaks",
            "order",
            "machine",
            "measured",
            "methods",
            "again",
        } <= set(links)
        assert set(links) <= set(ids)


SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
SCRIPT_BYTES = 20_000


def test_a_page_needs_no_network_and_no_script_but_its_own(everything: HtmlPage) -> None:
    """The browser must keep it so: the policy has the digest of that one script."""
    html = everything.html
    (script,) = SCRIPT.findall(html)
    assert html.count("<script") == 1
    assert len(script.encode()) <= SCRIPT_BYTES
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert not re.search(r'(src|href)="(?!#|data:)', html)
    assert not re.search(r"url\((?!#)|@import", html)
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)
    assert policy.split("; ") == [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        f"script-src 'sha256-{digest}'",
    ]


def evil(saved: JSON) -> JSON:
    """Put markup wherever a run file has text of its own."""
    text = json.dumps(saved)
    texts = (
        "cnn_train",
        "tuned",
        "made_up",
        "Made-up CPU",
        "6.18.0",
        "out of memory",
        "made-up-1",
        "Does a made-up tweak",
        "odd warning",
    )
    for name in texts:
        text = text.replace(name, EVIL + name)
    changed: JSON = json.loads(text)
    changed["commit_info"] = {"id": EVIL}
    return changed


def test_no_value_of_a_run_file_is_taken_for_markup() -> None:
    made = Made(
        arms=(
            STOCK,
            Arm(
                "tuned",
                0.1,
                {EVIL: "1"},
                broken={2: ("failed", "out of memory")},
                warnings=["odd warning"],
            ),
        )
    )
    html = page(from_json(evil(saved_run(made)), f"{EVIL}.json")).html
    assert "<script" not in SCRIPT.sub("", html)
    assert html.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;") > 30
    assert EVIL in text_of(html)
