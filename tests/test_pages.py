"""What README and docs claim is what the saved runs in the repository say."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.studies.gate.gate import Ruled
from analysis.terms import Comparison, Effect

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "data/README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text()
# A command, the exit code where it is not 0, and what it printed.
QUOTED = [
    pytest.param(shlex.split(command), int(code or 0), said, id=f"{page.name}: {command}")
    for page in PAGES
    for command, code, said in re.findall(
        r"<!-- \$ python -m analysis (.*?)(?: → (\d))? -->\n```text\n(.*?)```", page.read_text(), flags=re.DOTALL
    )
]
COSTS = re.findall(r"^\| (bench_[\w\[\]]+) \|.*\| ([\d.]+) ms \|$", README, flags=re.MULTILINE)


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


def test_the_readme_quotes_a_saved_run() -> None:
    assert any(str(parameter.id).startswith("README.md: compare") for parameter in QUOTED)


def test_what_the_harness_costs_is_what_its_own_benchmark_measured() -> None:
    """Medians in milliseconds, to the digits shown."""
    saved = json.loads((ROOT / "data/runs/harness-cost.json").read_text())
    measured = {b["name"]: 1e3 * b["stats"]["median"] for b in saved["benchmarks"]}
    claimed = {name: float(value) for name, value in COSTS}
    assert claimed.keys() == measured.keys()
    assert claimed == pytest.approx(measured, abs=0.05)


def test_what_a_cluster_run_costs_is_what_its_own_benchmark_measured() -> None:
    """Medians in seconds, to the digits shown; and the most requests a second of any pair."""
    saved = json.loads((ROOT / "data/runs/harness-cluster.json").read_text())
    page = (ROOT / "docs/kubernetes.md").read_text()
    claimed = {name: float(value) for name, value in re.findall(r"\| (bench_[\w\[\]]+) \|.*\| ([-\d.]+) s \|", page)}
    assert claimed == pytest.approx({b["name"]: b["stats"]["median"] for b in saved["benchmarks"]}, abs=0.005)
    (most,) = re.findall(r"at most ([\d.]+) requests a second", page)
    assert max(saved["benchmarks"][0]["extra_info"]["requests_per_s"]) <= float(most)


def test_what_the_loader_supplies_is_what_its_own_benchmark_measured() -> None:
    """Ratios to fio with their intervals, to the digits shown, and none below the limit."""
    saved = {b["extra_info"]["cache"]: b["extra_info"] for b in json.loads((ROOT / "data/runs/io-supply.json").read_text())["benchmarks"]}
    rows = re.findall(r"^\| (warm|cold) \| (.+) of fio \| (.+) of fio \|$", (ROOT / "docs/io_patterns.md").read_text(), flags=re.MULTILINE)
    assert {cache for cache, _, _ in rows} == saved.keys() == {"warm", "cold"}
    for cache, *columns in rows:
        for column, arm in zip(columns, ("loader", "loader_whole_samples"), strict=True):
            measured = saved[cache]["ratio_to_fio"][arm]
            shown = [float(number) for number in re.findall(r"\d\.\d+", column)]
            assert shown == pytest.approx([measured[name] for name in ("ratio", "low", "high")], abs=0.0006)
        assert saved[cache]["ratio_to_fio"]["loader"]["ratio"] >= saved[cache]["min_ratio"] == 0.9


def test_links_lead_somewhere() -> None:
    """Links to files of the repository, in every page."""
    targets = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()) if "://" not in link]
    assert targets
    assert not [f"{page.name}: {link}" for page, link in targets if not (page.parent / link).exists()]


@pytest.mark.parametrize(("record", "title"), [(Comparison, "comparison"), (Effect, "effect"), (Ruled, "ruling")])
def test_the_json_of_compare_and_gate_is_explained_field_by_field(record: type, title: str) -> None:
    page = (ROOT / "docs/verdicts.md").read_text()
    (table,) = re.findall(rf"\| of an? {title} \| \|\n\|---\|---\|\n(.*?)\n(?:\n|\Z)", page, flags=re.DOTALL)
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    also = set(re.findall(r"`(\w+_run)`", table))
    assert named | also == {one.name for one in fields(record)}
