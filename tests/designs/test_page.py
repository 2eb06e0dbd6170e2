"""The figures of docs/designs.md are those of the designs themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures import designs
from fixtures.designs import Laid, fractional
from fixtures.designs._factors import MOST_RUNS, factors
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
            laid: Laid = designs.load(name).points(profile, factors(profile))
        except BadInput:
            assert cells == "–"
        else:
            assert int(cells) == len(laid.points) + STOCKS


@pytest.mark.parametrize(("roman", "resolution"), [("III", 3), ("IV", 4), ("V and more", 5)])
def test_so_many_settings_fit_into_so_many_runs(roman: str, resolution: int) -> None:
    said = re.search(rf"^\| {roman} \|.*\| ([\d, –]+) \|$", PAGE, flags=re.MULTILINE)
    assert said
    runs = {
        count: 1 << found.base for count in range(2, 17) if (found := smallest(count, resolution))
    }
    fits = {
        most: max(count for count, own in runs.items() if own <= most)
        for most in (8, 16, 32, MOST_RUNS)
    }
    # In no more runs than it takes.
    once = {number: most for most, number in reversed(fits.items())}
    assert said[1].split(", ") == [
        str(number) if once[number] == most else "–" for most, number in fits.items()
    ]


def test_the_page_shows_the_aliases_of_the_catalogue_set() -> None:
    profile = read(available()["training-host"])
    shown = re.search(
        r"<!-- fractional training-host \| head -(\d+) -->\n```text\n(.*?)\n```",
        PAGE,
        flags=re.DOTALL,
    )
    assert shown
    count, lines = shown.groups()
    said = list(fractional.points(profile, factors(profile)).said)
    assert lines.split("\n") == said[: int(count)]
