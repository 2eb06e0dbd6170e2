"""What the README claims is what the saved runs in the repository say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from analysis.compare import compare
from analysis.load import load
from analysis.table import render_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
QUOTED = re.findall(r"<!-- compare (\S+) -->\n```text\n(.*?)```", README, flags=re.DOTALL)
COSTS = re.findall(r"^\| (bench_\w+) \|.*\| ([\d.]+) ms \|$", README, flags=re.MULTILINE)


def test_the_readme_quotes_a_saved_run() -> None:
    assert QUOTED


@pytest.mark.parametrize(("saved", "table"), QUOTED, ids=[saved for saved, _ in QUOTED])
def test_the_table_in_the_readme_is_what_compare_prints(saved: str, table: str) -> None:
    """To the letter: a table that was touched up, or belongs to another run, is found."""
    run = load(ROOT / saved)
    assert render_table(compare(run), run).rstrip() == table.rstrip()


def test_what_the_harness_costs_is_what_its_own_benchmark_measured() -> None:
    """Medians in milliseconds, to the digits shown."""
    saved = json.loads((ROOT / "data/runs/harness-cost.json").read_text())
    measured = {b["name"]: 1e3 * b["stats"]["median"] for b in saved["benchmarks"]}
    claimed = {name: float(value) for name, value in COSTS}
    assert claimed.keys() == measured.keys()
    assert claimed == pytest.approx(measured, abs=0.05)


def test_links_lead_somewhere() -> None:
    """Links to files of the repository, in every page."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "data/README.md", ROOT / "docs/tweaks.md"]
    targets = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()) if "://" not in link]
    assert targets
    assert not [f"{page.name}: {link}" for page, link in targets if not (page.parent / link).exists()]
