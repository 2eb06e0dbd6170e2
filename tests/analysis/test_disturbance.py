"""Use of the machine by others during a run, from telemetry: always shown at the run's head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from analysis.checks import disturbances, partial, share_of_others, warnings_of
from analysis.compare import compare
from analysis.compare_answer import answer_of
from analysis.load import from_json
from analysis.render.text import render
from analysis.terms import Run
from tests.synthetic import Made, saved_run


def run(
    others: Sequence[float], *, stolen: float = 0.0, cpus: int | None = 4, **fields: object
) -> Run:
    whole = from_json(saved_run(Made()), "made up")
    cells = []
    for number, cell in enumerate(whole.cells):
        busy = 150 / (cpus or 1) + 100 * others[number % len(others)]
        telemetry = {
            "cpu_busy_percent_mean": busy,
            "process_cpu_percent_mean": 150.0,
            "cpu_steal_percent_mean": 100 * stolen,
        }
        cells.append(replace(cell, telemetry=telemetry, **fields))  # type: ignore[arg-type]
    return replace(whole, cells=tuple(cells), machine={**whole.machine, "cpu_count": cpus})


def test_a_cell_in_turns_has_the_disturbance_of_its_slices() -> None:
    """0.3 and 0.6 CPU seconds in slices of 0.5 and 1 s, one slice unseen: 0.9 of 6 (4 CPUs)."""
    slices = ((0.2, 0.3), (0.5, 0.5), (9.0, 9.0))
    made = run([0.5], slices_s=slices, others_cpu_s=(0.3, 0.6, None), report={"io": ({},)})
    assert share_of_others(made, made.cells[0]) == pytest.approx(0.15)


@pytest.mark.parametrize(
    "made", [run([0.5], cpus=None), run([0.5], report={"job": ({},)}), run([0.5], monitor={"x": 1})]
)
def test_indistinguishable_helpers_make_the_disturbance_unknown(made: Run) -> None:
    assert {share_of_others(made, cell) for cell in made.cells} == {None}
    assert warnings_of(made, []) == []


@pytest.mark.parametrize(
    ("others", "disturbed"),
    [([0.01], 0), ([0.09, 0.0], 0), ([0.0] * 11 + [0.4], 0), ([0.05] * 3 + [0.4], 3)],
)
def test_over_a_tenth_in_over_a_tenth_of_cells_is_a_disturbance(
    others: Sequence[float], disturbed: int
) -> None:
    made = run(others)
    found = list(disturbances(made))
    assert len(found) == bool(disturbed)
    for line in found:
        assert "5 % of the CPUs (median of 12 cells; up to 40 %, in block " in line
        assert f"more than 10 % in {disturbed} of them" in line


@pytest.mark.parametrize(("stolen", "disturbed"), [(0.04, 0), (0.06, 12)])
def test_so_is_a_twentieth_that_the_hypervisor_gave_to_others(
    stolen: float, disturbed: int
) -> None:
    found = list(disturbances(run([0.0], stolen=stolen)))
    assert len(found) == bool(disturbed)
    assert all(f"more than 5 % in {disturbed} of them" in line for line in found)


def test_it_stands_at_the_head_and_once() -> None:
    made = run([0.3])
    (line,) = warnings_of(made, [])
    answer = answer_of(compare(made), [made])
    assert line in [one.text for one in answer.findings]
    text = " ".join(render(answer).split())
    assert text.count("Disturbed:") == 1


@pytest.mark.parametrize(
    ("more_s", "told"), [(0.1, True), (-0.1, True), (0.005, False), (0.0, False)]
)
def test_others_always_busier_beside_one_arm_may_be_its_doing(
    more_s: float,
    told: bool,  # noqa: FBT001
) -> None:
    """A tenth of a core more beside it in every block; a two-hundredth moves nothing.

    Seen or not, what differs by chance does not.
    """
    made = run([0.0])
    name = compare(made)[0].tweakset
    cells = [
        replace(
            one,
            slices_s=((0.5, 0.5),),
            others_cpu_s=(0.3 + 0.01 * (one.order % 3) + more_s * (one.tweakset == name),),
        )
        for one in made.cells
    ]
    made = replace(made, cells=tuple(cells))
    assert [name in line for line in partial(made, compare(made))] == [True] * told
