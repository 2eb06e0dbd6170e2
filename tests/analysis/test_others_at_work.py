"""What other programs used while a run was measured, out of its telemetry: said where it may be why nothing was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from analysis.checks import cpus_of_others, warnings_of
from analysis.load import from_json
from tests.synthetic import Made, saved_run

if TYPE_CHECKING:
    from analysis.terms import Run


def run(others: list[float], *, cpus: int | None = 4, **fields: object) -> Run:
    """Each cell's workload keeps one CPU busy and a half, and others as many as these, in turn."""
    whole = from_json(saved_run(Made()), "made up")
    cells = []
    for number, cell in enumerate(whole.cells):
        busy = 100 * (1.5 + others[number % len(others)]) / (cpus or 1)
        cells.append(replace(cell, telemetry={"cpu_busy_percent_mean": busy, "process_cpu_percent_mean": 150.0}, **fields))  # type: ignore[arg-type]
    return replace(whole, cells=tuple(cells), machine={**whole.machine, "cpu_count": cpus})


def test_it_is_what_is_busy_less_what_the_workload_uses() -> None:
    made = run([0.75])
    assert cpus_of_others(made, made.cells[0]) == pytest.approx(0.75)


@pytest.mark.parametrize("made", [run([0.75], cpus=None), run([0.75], report={"job": ({},)}), run([0.75], monitor={"x": 1})])
def test_where_helpers_cannot_be_told_from_others_it_is_not_known(made: Run) -> None:
    assert {cpus_of_others(made, cell) for cell in made.cells} == {None}
    assert warnings_of(made, []) == []


@pytest.mark.parametrize(
    ("others", "disturbed"), [([0.02], False), ([0.1, 0.19], False), ([0.0] * 9 + [1.5], False), ([0.0] * 3 + [1.5], True)]
)
def test_more_than_one_cell_of_ten_that_was_disturbed_is_a_warning(others: list[float], *, disturbed: bool) -> None:
    made = run(others)
    count = sum((cpus_of_others(made, cell) or 0) > 1 for cell in made.cells)
    lines = warnings_of(made, [])
    assert len(lines) == disturbed
    assert not disturbed or f"in {count} of {len(made.cells)} cells they used 1.5 to 1.5 of 4 CPUs" in lines[0]
