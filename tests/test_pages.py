"""What README and docs claim is what the saved runs in the repository say."""

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
        r"<!-- \$ python -m analysis (.*?)(?: → (\d))? -->\n```text\n(.*?)```", page.read_text(), flags=re.DOTALL
    )
]
COSTS = ("bench_apply_read_back_restore", "bench_cpu_of_a_cell[matrix]", "bench_cpu_of_a_cell[turns]", "bench_sampler_cpu")


@pytest.mark.parametrize(("command", "code", "said"), QUOTED)
def test_what_a_page_quotes_is_what_the_command_prints(
    command: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the letter, from the saved runs in the repository: a table that was touched up, or belongs to another run, is found."""
    monkeypatch.chdir(ROOT)
    lines = None
    if "|" in command:  # … | head -11
        *command, _, _, count = command
        lines = -int(count)
    assert main(command) == code
    assert capsys.readouterr().out.splitlines()[:lines] == said.splitlines()


@pytest.mark.needs("torch")
def test_the_first_run_is_planned_as_its_page_shows(place: Place) -> None:
    page = (ROOT / "docs/first_run.md").read_text(encoding="utf-8")
    ((words, plan),) = re.findall(r"<!-- \$ pytest (.*?) -->\n```text\n(.*?)```", page, flags=re.DOTALL)
    done = place.call(sys.executable, "-m", "pytest", *words.split())
    assert plan in done.out


def test_pytest_benchmark_compares_a_saved_run_as_its_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/reading.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"<!-- \$ pytest-benchmark (.*?) \| head -(\d+) -->\n```text\n(.*?)```", page, flags=re.DOTALL)
    words, count, said = shown
    command = [sys.executable, "-m", "pytest_benchmark", *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[: int(count)] == said.splitlines()


README_WORDS = 800
PAGE_WORDS = 1500
# Pages of studies, everything counted; each prints one output, as much of it as a reader takes in at once.
STUDY_WORDS = {"io.md": 1200, "monitoring.md": 900, "gpu.md": 700, "power.md": 1100, "jobs.md": 1400}
STUDY_PARTS = ("Run it", "Read it", "One result", "What it cannot say")
OUTPUT_LINES = 15


def words(page: str) -> int:
    """Words of a page: what has a letter or a digit, tables included; commands and what they print do not count."""
    prose = re.sub(r"^```.*?^```$|<!--.*?-->", "", page, flags=re.DOTALL | re.MULTILINE)
    return sum(any(sign.isalnum() for sign in word) for word in prose.split())


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_a_page_is_read_in_one_sitting(page: Path) -> None:
    if str(page.relative_to(ROOT / "docs")) not in GENERATED:
        assert words(page.read_text(encoding="utf-8")) <= PAGE_WORDS


@pytest.mark.parametrize(("name", "most"), STUDY_WORDS.items(), ids=STUDY_WORDS)
def test_the_page_of_a_study_is_short(name: str, most: int) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert len(page.split()) <= most
    (output,) = re.findall(r"-->\n```text\n(.*?)```", page, flags=re.DOTALL)
    assert len(output.splitlines()) <= OUTPUT_LINES
    assert [head for head in re.findall(r"^## (.*)$", page, flags=re.MULTILINE) if head in STUDY_PARTS] == list(STUDY_PARTS)


# Pages on running, everything counted.
RUN_WORDS = {"designs.md": 1300, "first_run.md": 700, "kubernetes.md": 1300, "own_command.md": 500, "settings.md": 900}


@pytest.mark.parametrize(("name", "most"), RUN_WORDS.items(), ids=RUN_WORDS)
def test_a_page_on_running_is_short(name: str, most: int) -> None:
    assert len((ROOT / "docs" / name).read_text(encoding="utf-8").split()) <= most


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= README_WORDS


def test_the_readme_quotes_saved_runs() -> None:
    assert any(str(parameter.id).startswith("README.md: evidence") for parameter in QUOTED)


def test_what_the_harness_costs_is_what_its_own_benchmark_measured() -> None:
    """Medians in milliseconds, in the order of `COSTS`, to the digits shown."""
    saved = json.loads((ROOT / "data/runs/harness-cost.json").read_text())
    medians_ms = {b["name"]: 1e3 * b["stats"]["median"] for b in saved["benchmarks"]}
    page = (ROOT / "docs/designs.md").read_text(encoding="utf-8")
    section = page.partition("## What the harness costs")[2]
    claimed_ms = [float(number) for number in re.findall(r"([\d.]+) ms", section)]
    assert medians_ms.keys() == set(COSTS)
    assert claimed_ms == pytest.approx([medians_ms[name] for name in COSTS], abs=0.05)


def test_what_a_cluster_run_costs_is_what_its_own_benchmark_measured() -> None:
    """Medians in seconds, to the digits shown; and the most requests a second of any pair."""
    saved = json.loads((ROOT / "data/runs/harness-cluster.json").read_text())
    page = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")
    (sooner_s,) = re.findall(r"ends ([\d.]+) s before its Job", page)
    (apply_s,) = re.findall(r"applied and restored in ([\d.]+) s", page)
    medians_s = {b["name"]: b["stats"]["median"] for b in saved["benchmarks"]}
    claimed_s = {"bench_cell_beyond_its_job": -float(sooner_s), "bench_apply_and_restore[agent]": float(apply_s)}
    assert claimed_s == pytest.approx(medians_s, abs=0.005)
    (most,) = re.findall(r"at most ([\d.]+) requests per second", page)
    assert max(saved["benchmarks"][0]["extra_info"]["requests_per_s"]) <= float(most)


def anchors(page: Path) -> set[str]:
    """Where a link into a page can lead, as GitHub names its headings."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_lead_somewhere() -> None:
    """Links to files of the repository, and to their headings, in every page."""
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")) if "://" not in link]
    assert links
    for page, link in links:
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


@pytest.mark.parametrize("name", generate.PAGES)
def test_a_reference_page_is_what_the_code_says(name: str) -> None:
    page = (generate.FOLDER / name).read_text(encoding="utf-8")
    assert page == generate.page(name), "run: python -m docs.generate"


def test_every_page_is_on_the_map() -> None:
    linked = re.findall(r"\]\(([^)#]+\.md)\)", (ROOT / "docs/README.md").read_text(encoding="utf-8"))
    pages = {str(page.relative_to(ROOT / "docs")) for page in DOCS} - {"README.md"}
    assert {link for link in linked if not link.startswith("..")} == pages


def test_the_readme_names_formats_of_the_table() -> None:
    known = " ".join(f"{row.name} {row.what}" for row in ROWS).lower()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = [name for part in re.findall(r"\(([^()]* …)\)", readme) for name in part.removesuffix(" …").split(", ")]
    assert len(named) > 10
    assert [name for name in named if name.lower() not in known] == []
