"""The figures of docs/designs.md are those of the designs themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures import designs
from fixtures.designs import Laid, Options, fractional
from fixtures.designs._factors import LETTERS, MOST_RUNS, factors
from fixtures.designs.fractional import smallest
from fixtures.terms import BadInput
from fixtures.tweaks import available
from fixtures.tweaks.manifest import read
from tests.designs.profiles import sysctls

PAGE = (Path(__file__).parents[2] / "docs" / "designs.md").read_text()
COSTS = re.findall(r"^\| (\d+) \| (\S+) \| (\S+) \| (\S+) \|$", PAGE, flags=re.MULTILINE)
STOCKS = 2  # stock and stock-again


@pytest.mark.parametrize("row", COSTS, ids=lambda row: row[0])
def test_the_cells_of_a_block_are_those_that_are_laid_out(row: tuple[str, ...]) -> None:
    profile = sysctls(*(f"vm.k{n:02d}" for n in range(int(row[0]))))
    for name, cells in zip(("ablation", "factorial", "fractional"), row[1:], strict=True):
        try:
            laid: Laid = designs.load(name).points(profile, factors(profile), Options())
        except BadInput:
            assert cells == "–"
        else:
            assert int(cells) == len(laid.points) + STOCKS


def test_there_are_costs_to_check() -> None:
    assert len(COSTS) > 10


@pytest.mark.parametrize(("roman", "resolution"), [("III", 3), ("IV", 4), ("V and more", 5)])
def test_so_many_settings_fit_into_so_many_runs(roman: str, resolution: int) -> None:
    """Letters end at 47; without that the 64 runs of resolution III would hold 63."""
    said = re.search(rf"^\| {roman} \|.*\| ([\d, ]+) \|$", PAGE, flags=re.MULTILINE)
    assert said
    for runs, number in zip((8, 16, 32, MOST_RUNS), map(int, said[1].split(", ")), strict=True):
        fits, more = (smallest(count, resolution, MOST_RUNS) for count in (number, number + 1))
        assert fits
        assert fits.runs <= runs
        assert number == len(LETTERS) or more is None or more.runs > runs


def test_the_aliases_that_are_shown_are_those_of_the_catalogues_set() -> None:
    profile = read(available()["training-host"])
    shown = re.search(r"<!-- fractional training-host -->\n```text\n(.*?)\n```", PAGE, flags=re.DOTALL)
    assert shown
    assert shown[1].split("\n") == list(fractional.points(profile, factors(profile), Options()).said)


def test_every_design_has_its_row() -> None:
    questions = PAGE.split("\n## Which design answers which question\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", questions, flags=re.MULTILINE)
    assert sorted(rows) == sorted(designs.names())
