"""The page as a whole: the words of `compare`, every section, nothing from outside, and no value of a file that is taken for markup."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from analysis.compare import compare
from analysis.load import from_json, load
from analysis.report.answers import answers
from analysis.report.page import page_of
from analysis.verdict import ONE_RUN
from tests.analysis.report.pages import EVERYTHING, SWAPPINESS, page, read, row, text_of
from tests.deeptweak_like import SYSCTLS, Like, directory
from tests.stock_files import benchmark, document, times
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.synthetic import JSON

pytestmark = pytest.mark.usefixtures("few_pictures")
EVIL = "<script>alert('x')</script>"
VOID = {"meta", "link", "br", "img", "input", "hr"}


def download(html: str, name: str) -> str:
    encoded = re.search(rf'download="{name}" href="data:[^;]+;charset=utf-8;base64,([^"]+)"', html)
    assert encoded
    return base64.b64decode(encoded.group(1)).decode()


def test_each_row_of_the_table_has_the_verdict_of_compare() -> None:
    run = read()
    html = page(run).html
    tables = html.split('<table class="verdicts"')[1:]
    found = [
        (name, verdict)
        for table in tables
        for name, verdict in re.findall(
            r'role="rowheader">([^<]+)(?:<small>.*?</small>)?</th><td role="cell"><span class="chip [a-z-]+">([a-z ]+)<', table
        )
    ]
    wanted = [(one.tweakset, one.verdict) for one in compare(run)]
    assert found == wanted
    assert {verdict for _, verdict in found} == {"improved", "regressed", "equivalent", "not comparable"}


def test_each_reason_stands_in_its_row() -> None:
    text = text_of(page(read()).html)
    for one in compare(read()):
        assert one.reason[1:] in text
    assert "ignored was not in force: vm.swappiness was to be 1" in text  # a name is spelt as it is


def test_the_answers_stand_first() -> None:
    run = read()
    text = text_of(page(run).html)
    before = text[: text.index("Gain: percent more work")]
    assert run.studies["made_up"].question in before
    for answer in answers(run, compare(run)):
        assert answer.sentence in before
    assert "Control: stock-again changes nothing" in before


def test_every_section_is_there_and_linked() -> None:
    html = page(read()).html
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="#([^"]+)"', html)
    assert {"verdicts", "pictures", "tweaks", "order", "machine", "rules", "methods", "data", "again"} <= set(links)
    assert set(links) <= set(ids)


def test_it_asks_nothing_of_the_network_and_runs_no_script() -> None:
    html = page(read()).html
    assert "<script" not in html
    assert not re.search(r'(src|href)="(?!#|data:)', html)
    assert not re.search(r"url\((?!#)|@import", html)


def test_a_browser_is_told_to_keep_it_so() -> None:
    assert (
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">"""
        in page(read()).html
    )


def test_every_table_has_heads_with_a_scope() -> None:
    html = page(read()).html
    heads = re.findall(r"<th\b[^>]*>", html)
    assert len(heads) > 50
    assert all("scope=" in head for head in heads)


def test_headings_go_down_one_step_at_a_time() -> None:
    levels = [int(level) for level in re.findall(r"<h([1-6])", page(read(), read(Made(seed=2), origin="two.json")).html)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def evil(saved: JSON) -> JSON:
    """Put markup wherever a run file has text of its own."""
    text = json.dumps(saved)
    for name in (
        "cnn_train",
        "tuned",
        "made_up",
        "Made-up CPU",
        "6.18.0",
        "out of memory",
        "made-up-1",
        "Does a made-up tweak",
        "odd warning",
    ):
        text = text.replace(name, EVIL + name)
    changed: JSON = json.loads(text)
    changed["commit_info"] = {"id": EVIL}
    return changed


def test_no_value_of_a_run_file_is_taken_for_markup() -> None:
    made = Made(arms=(STOCK, Arm("tuned", 0.1, {EVIL: "1"}, broken={2: ("failed", "out of memory")}, warnings=["odd warning"])))
    run = from_json(evil(saved_run(made)), f"{EVIL}.json")
    html = page(run).html
    assert "<script" not in html
    assert html.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;") > 40
    assert EVIL in text_of(html)


def test_characters_that_would_show_other_words_are_shown_themselves() -> None:
    run = read(Made(arms=(STOCK, Arm("a\u202eb\x7fc", requested=SWAPPINESS))))
    html = page(run).html
    assert "a\\u202eb\\x7fc" in text_of(html)
    assert not any(odd in html for odd in ("\u202e", "\x7f"))


def test_the_csv_of_the_page_is_the_data_of_the_run() -> None:
    run = read()
    html = page(run).html
    found = list(csv.DictReader(io.StringIO(download(html, "cells.csv"), newline="")))
    assert [float(one["throughput_samples_per_s"]) for one in found if one["throughput_samples_per_s"]] == [
        cell.metrics["throughput_samples_per_s"] for cell in run.cells if cell.metrics
    ]
    verdicts = [one["verdict"] for one in csv.DictReader(io.StringIO(download(html, "comparisons.csv"), newline=""))]
    assert verdicts == [one.verdict for one in compare(run)]


def test_the_summary_is_there_as_markdown_too() -> None:
    lines = download(page(read(EVERYTHING)).html, "summary.md").splitlines()
    assert lines[0] == "### made-up-1"
    assert lines[2].startswith("| workload | tweak set | settings | cells | throughput, samples/s | p10 step, ms |")
    assert len(lines) == 4 + 2 * 7
    assert all(line.count("|") == lines[2].count("|") for line in lines[2:])


def test_failures_stand_in_red_and_in_words() -> None:
    html = page(read()).html
    failed = re.findall(r'<tr class="failed-row">.*?</tr>', html, re.DOTALL)
    assert [text_of(one) for one in failed] == [
        "vm.swappiness 1 0 60 0 Failed: not in force: the kernel answered 60 (blocks 1, 2, 3, 4, 5, 6, 7, 8)."
    ]


def test_cells_that_were_not_measured_are_listed_with_their_reason() -> None:
    line = row(page(read()).html, "isolate cnn_train")
    assert line == "isolate cnn_train skipped blocks 1, 2, 3, 4, 5, 6, 7, 8 no such boot token"


def test_warnings_are_counted_above_and_told_below() -> None:
    run = read(Made(arms=(STOCK, Arm("tuned", requested=SWAPPINESS, warnings=["an odd key"]))))
    html = page(run).html
    assert '<a href="#run1-warnings">1 warning</a>' in html
    assert "tuned: an odd key" in text_of(html)
    assert "No warnings." in text_of(page(read(Made())).html)


def test_the_rules_stand_with_their_reasons() -> None:
    text = text_of(page(read()).html)
    assert re.search(
        r"^2\. Give the reason for every subset that is reported\. met 16 of 112 planned cells were not measured", text, re.MULTILINE
    )
    assert re.search(r"^11\. Show bounds: how fast could it be\? not met No ideal time", text, re.MULTILINE)


def test_a_picture_that_is_missing_leaves_its_reason() -> None:
    text = text_of(page(read()).html)
    assert "Not drawn: no GPU <was> measured." in text


def test_how_to_do_it_again_is_told() -> None:
    text = text_of(page(read(Made(arms=(STOCK, AGAIN, Arm("tuned", requested=SWAPPINESS)), blocks=3))).html)
    assert "python -m analysis report 'made up.json'" in text
    wanted = "python -m pytest benchmarks/bench_made_up.py --seed=1 --blocks=3 --steps=12 --tweaks=tuned --workloads=cnn_train"
    assert f"{wanted} --benchmark-save=again" in text


def test_of_a_study_that_pairs_them_itself_only_its_file_is_named() -> None:
    """With --tweaks the workloads that none of them meets would not be measured again."""
    made = saved_run(Made(arms=(STOCK, AGAIN, Arm("tuned", requested=SWAPPINESS)), workloads=("cnn_train", "idle"), blocks=3))
    gone = {f"idle-tuned-b{block}" for block in (1, 2, 3)}
    made["deeptweak"]["cells"] = [one for one in made["deeptweak"]["cells"] if one["id"] not in gone]
    made["deeptweak"]["design"]["order"] = [one["id"] for one in made["deeptweak"]["cells"]]
    made["benchmarks"] = [one for one in made["benchmarks"] if one["extra_info"]["id"] not in gone]
    text = text_of(page(from_json(made, "made up")).html)
    assert "python -m pytest benchmarks/bench_made_up.py --seed=1 --blocks=3 --steps=12 --benchmark-save=again" in text


def test_several_runs_are_told_apart_and_set_against_the_first() -> None:
    def newer(saved: JSON) -> None:
        saved["machine_info"]["deeptweak"]["kernel_release"] = "6.19.0"

    arms = (STOCK, AGAIN, Arm("tuned", 0.1, SWAPPINESS))
    one, other = read(Made(arms=arms), origin="one.json"), read(Made(arms=arms, seed=2), newer, origin="two.json")
    html = page(one, other).html
    text = text_of(html)
    assert re.search(r"^kernel_release 6\.18\.0 6\.19\.0$", text, re.MULTILINE)
    assert not re.search(r"^cpu_model \S+ \S+ Made-up", text, re.MULTILINE)
    assert "Between the runs" in text
    between = text[text.index("Between the runs\n") : text.index("What the verdicts mean")]
    assert [line.split(maxsplit=1)[0] for line in between.splitlines() if "not comparable" in line] == ["stock", "stock-again", "tuned"]
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_many_workloads_of_one_row_share_a_table() -> None:
    """Two files of pytest-benchmark can have hundreds of benchmarks in common."""
    names = [f"test_{at}" for at in range(5)]
    one, other = (
        from_json(
            document([benchmark(name, times(day * 10 + at)) for at, name in enumerate(names)], f"2026-01-0{day}T10:00:00"), f"{day}.json"
        )
        for day in (1, 2)
    )
    html = page(one, other).html
    assert html.count('<table class="verdicts"') == 1
    assert "5 workloads" in text_of(html)
    assert [line.split()[0].rpartition("::")[2] for line in text_of(html).splitlines() if ONE_RUN in line and "::" in line] == names


def test_runs_with_nothing_in_common_say_so_in_place_of_a_table() -> None:
    one, other = read(Made(), origin="one.json"), read(Made(workloads=("other_train",), seed=2), origin="two.json")
    assert "one.json has no workload and tweak set in common with two.json." in text_of(page(one, other).html)


def test_files_that_were_refused_are_named_on_the_page() -> None:
    assert "Refused: bad.json: not JSON <here>" in text_of(page_of([read()], "again", ["bad.json: not JSON <here>"]).html)


def test_deeptweak_directories_are_inconclusive(tmp_path: Path) -> None:
    run = load(directory(tmp_path / "one_node", Like("base"), Like("exp1", manifest=SYSCTLS, run_effect=0.1)))
    text = text_of(page(run).html)
    assert f"exp1 inconclusive {compare(run)[0].observed * 100:+.1f} (one run)" in text  # type: ignore[operator]
    assert f"Nothing is claimed: inconclusive for exp1 ({ONE_RUN})." in text
    assert not re.search(r"\b[1-9]\d* (improved|regressed|equivalent)", text)


def test_settings_of_foreign_files_are_unknown_and_their_base_is_told_all_the_same(tmp_path: Path) -> None:
    run = load(directory(tmp_path / "one_node", Like("base"), Like("exp1", manifest=SYSCTLS)))
    text = text_of(page(run).html)
    asked = len(run.tweaksets["exp1"].requested)
    assert f"{asked} unknown Not known to have been in force." in text
    assert " held " not in text
    assert f"Baseline base: {run.cells[0].metrics['throughput_samples_per_s']:.4g} samples/s" in text


def test_settings_are_counted_by_what_came_of_them() -> None:
    text = text_of(page(read()).html)
    assert "1 failed Not in force or not put back: the rows in red. 3 held In force in every measured cell" in text
    assert "1 unknown Not known to have been in force." in text


def test_stock_pytest_benchmark_files_are_inconclusive() -> None:
    one, other = (from_json(document([benchmark("test_sort", times(day))], f"2026-01-0{day}T10:00:00"), f"{day}.json") for day in (1, 2))
    text = text_of(page(one, other).html)
    assert f"Inconclusive: {ONE_RUN}." in text
    assert "Between the runs: 1 inconclusive The table." in text


@pytest.mark.parametrize(
    "made",
    [
        Made(arms=(STOCK,)),
        Made(blocks=1),
        Made(arms=(STOCK, Arm("lost", broken=dict.fromkeys(range(1, 7), ("failed", "killed"))))),
        Made(run_cv=3.0, blocks=3),
    ],
)
def test_a_poor_run_has_a_report_too(made: Made) -> None:
    html = page(read(made)).html
    opened = re.findall(r"<([a-z0-9]+)\b[^>]*?(/?)>", html)
    assert sum(name not in VOID and not closed for name, closed in opened) == len(re.findall(r"</[a-z0-9]+>", html))
