"""Claims of README and docs are those of the saved runs in the repository."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from control.called import NAME
from docs import generate
from fixtures.studies.command.formats import ROWS

if TYPE_CHECKING:
    from tests.sessions import Place

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("**/*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "data/README.md", *DOCS]
# Made by commands and looked up, not read from end to end.
GENERATED = {f"reference/{name}" for name in generate.PAGES}
# A command, the exit code where it is not 0, and what it printed.
QUOTED = [
    pytest.param(shlex.split(command), int(code or 0), said, id=f"{page.name}: {command}")
    for page in PAGES
    for command, code, said in re.findall(
        r"<!-- \$ python -m analysis (.*?)(?: → (\d))? -->\n```text\n(.*?)```",
        page.read_text(),
        flags=re.DOTALL,
    )
]
COSTS = (
    "bench_apply_read_back_restore",
    "bench_cpu_of_a_cell[matrix]",
    "bench_cpu_of_a_cell[turns]",
    "bench_sampler_cpu",
)


@pytest.mark.parametrize(("command", "code", "said"), QUOTED)
def test_what_a_page_quotes_is_what_the_command_prints(
    command: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the letter, from the repository's saved runs: an edited or foreign table is found."""
    monkeypatch.chdir(ROOT)
    # The command of `next:`, as a user who started `deeptweak` sees it.
    monkeypatch.setattr("analysis.answer.JUDGE", NAME)
    lines = None
    if "|" in command:  # … | head -11
        *command, _, _, count = command
        lines = -int(count)
    assert main(command) == code
    assert capsys.readouterr().out.splitlines()[:lines] == said.splitlines()


@pytest.mark.needs("torch")
def test_the_first_run_is_planned_as_its_page_shows(place: Place) -> None:
    page = (ROOT / "docs/first_run.md").read_text(encoding="utf-8")
    ((words, plan),) = re.findall(
        r"<!-- \$ pytest (.*?) -->\n```text\n(.*?)```", page, flags=re.DOTALL
    )
    done = place.call(sys.executable, "-m", "pytest", *words.split())
    assert plan in done.out


def test_pytest_benchmark_compares_a_saved_run_as_its_page_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/reading.md").read_text(encoding="utf-8")
    (shown,) = re.findall(
        r"<!-- \$ pytest-benchmark (.*?) \| head -(\d+) -->\n```text\n(.*?)```",
        page,
        flags=re.DOTALL,
    )
    words, count, said = shown
    command = [sys.executable, "-m", "pytest_benchmark", *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[: int(count)] == said.splitlines()


# The most words of each page that a person writes, with its tables, commands and outputs.
WORDS = {
    "README.md": 800,
    "CONTRIBUTING.md": 1200,
    "data/README.md": 600,
    "docs/README.md": 600,
    "docs/ci.md": 1000,
    "docs/designs.md": 1300,
    "docs/effects.md": 700,
    "docs/evidence.md": 725,
    "docs/first_run.md": 740,
    "docs/gpu.md": 700,
    "docs/io.md": 1200,
    "docs/jobs.md": 1400,
    "docs/kubernetes.md": 1300,
    "docs/monitoring.md": 900,
    "docs/own_command.md": 560,
    "docs/pictures.md": 550,
    "docs/power.md": 1100,
    "docs/reading.md": 450,
    "docs/results.md": 600,
    "docs/settings.md": 950,
    "docs/tune.md": 735,
    "docs/verdicts.md": 1340,
}
WORDS_IN_ALL = 20_000
QUESTIONS = 20
STUDIES = ("gpu", "io", "jobs", "monitoring", "power")
STUDY_PARTS = ("Run it", "Read it", "One result", "What it cannot say")
OUTPUT_LINES = 15  # as many as a reader takes in at once
WRITTEN = [
    name
    for page in PAGES
    if (name := str(page.relative_to(ROOT))).removeprefix("docs/") not in GENERATED
]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_page_is_short(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").split()) <= WORDS[name]


def test_all_pages_are_read_in_an_evening() -> None:
    assert sum(WORDS.values()) <= WORDS_IN_ALL


@pytest.mark.parametrize("study", STUDIES)
def test_the_page_of_a_study_has_four_parts_and_one_output(study: str) -> None:
    page = (ROOT / f"docs/{study}.md").read_text(encoding="utf-8")
    (output,) = re.findall(r"-->\n```text\n(.*?)```", page, flags=re.DOTALL)
    assert len(output.splitlines()) <= OUTPUT_LINES
    heads = re.findall(r"^## (.*)$", page, flags=re.MULTILINE)
    assert [head for head in heads if head in STUDY_PARTS] == list(STUDY_PARTS)


def test_the_readme_quotes_saved_runs() -> None:
    assert any(str(parameter.id).startswith("README.md: evidence") for parameter in QUOTED)


def test_the_page_quotes_the_measured_costs_of_the_harness() -> None:
    """Medians in milliseconds, in the order of `COSTS`, to the digits shown."""
    saved = json.loads((ROOT / "data/runs/harness-cost.json").read_text())
    medians_ms = {b["name"]: 1e3 * b["stats"]["median"] for b in saved["benchmarks"]}
    page = (ROOT / "docs/designs.md").read_text(encoding="utf-8")
    section = page.partition("## What the harness costs")[2]
    claimed_ms = [float(number) for number in re.findall(r"([\d.]+) ms", section)]
    assert medians_ms.keys() == set(COSTS)
    assert claimed_ms == pytest.approx([medians_ms[name] for name in COSTS], abs=0.05)


def test_the_page_quotes_the_measured_costs_of_a_cluster_run() -> None:
    """Medians in seconds, to the digits shown; and the most requests a second of any pair."""
    saved = json.loads((ROOT / "data/runs/harness-cluster.json").read_text())
    page = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")
    (sooner_s,) = re.findall(r"ends ([\d.]+) s before its Job", page)
    (apply_s,) = re.findall(r"applied and restored in ([\d.]+) s", page)
    medians_s = {b["name"]: b["stats"]["median"] for b in saved["benchmarks"]}
    claimed_s = {
        "bench_cell_beyond_its_job": -float(sooner_s),
        "bench_apply_and_restore[agent]": float(apply_s),
    }
    assert claimed_s == pytest.approx(medians_s, abs=0.005)
    (most,) = re.findall(r"at most ([\d.]+) requests per second", page)
    assert max(saved["benchmarks"][0]["extra_info"]["requests_per_s"]) <= float(most)


def anchors(page: Path) -> set[str]:
    """Where a link into a page can lead, as GitHub names its headings."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_lead_somewhere() -> None:
    links = [
        (page, link)
        for page in PAGES
        for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
        if "://" not in link
    ]
    assert links
    for page, link in links:
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def questions() -> dict[str, list[str]]:
    """Questions of users on the map, with the links that answer them."""
    page = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    table = page.partition("| question | answer |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|]*\?) \| (.*) \|$", table, flags=re.MULTILINE)
    return {question: re.findall(r"\]\(([^)]+)\)", answer) for question, answer in rows}


def test_the_readme_leads_to_twenty_questions() -> None:
    assert "](docs/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(questions()) >= QUESTIONS


@pytest.mark.parametrize(("question", "links"), questions().items(), ids=questions())
def test_a_question_leads_to_the_heading_that_answers_it(question: str, links: list[str]) -> None:
    assert links, question
    for link in links:
        name, _, anchor = link.partition("#")
        assert anchor in anchors(ROOT / "docs" / name), link


@pytest.mark.parametrize("name", generate.PAGES)
def test_a_reference_page_is_what_the_code_says(name: str) -> None:
    page = (generate.FOLDER / name).read_text(encoding="utf-8")
    assert page == generate.page(name), "run: python -m docs.generate"


def test_every_page_is_on_the_map() -> None:
    linked = re.findall(
        r"\]\(([^)#]+\.md)(?:#[^)]*)?\)", (ROOT / "docs/README.md").read_text(encoding="utf-8")
    )
    pages = {str(page.relative_to(ROOT / "docs")) for page in DOCS} - {"README.md"}
    assert {link for link in linked if not link.startswith("..")} == pages


def test_the_readme_names_formats_of_the_table() -> None:
    known = " ".join(f"{row.name} {row.what}" for row in ROWS).lower()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = [
        name
        for part in re.findall(r"\(([^()]* …)\)", readme)
        for name in part.removesuffix(" …").split(", ")
    ]
    assert len(named) > 10
    assert [name for name in named if name.lower() not in known] == []


def test_files_of_the_repository_in_examples_exist() -> None:
    sources = [
        path.read_text(encoding="utf-8") for path in (ROOT / "analysis/commands").glob("*.py")
    ]
    named = {path for source in sources for path in re.findall(r"\bdata/[\w./*-]+\w", source)}
    assert len(named) > 1
    assert [path for path in sorted(named) if not [*ROOT.glob(path)]] == []
