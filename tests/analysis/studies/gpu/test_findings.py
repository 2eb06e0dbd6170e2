"""Relations, bounds and courses, on known values."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from analysis.load import from_json
from analysis.studies.gpu.findings import (
    bounds_of,
    dip_of,
    findings_of,
    fitted,
    limits,
    misled,
)
from analysis.studies.gpu.grid import (
    GRACT,
    MAX,
    SMACT,
    SMOCC,
    UTILIZATION,
    Chip,
    GridCell,
    KernelGrid,
)
from tests.synthetic import saved_run

A100 = Chip("A100", 108, 64)
shares = st.floats(0, 1, allow_nan=False)


def cell(
    blocks: int = 128, threads: int = 32, duty: float | None = None, **columns: list[float]
) -> GridCell:
    return GridCell(
        f"{blocks}.{threads}",
        blocks,
        threads,
        pd.DataFrame(columns, dtype=float),
        work={"duty": duty},
    )


RUN = from_json(saved_run(), "made.json")


def grid(*cells: GridCell) -> KernelGrid:
    return KernelGrid(RUN, cells, A100)


def grid_of_rows(rows: dict[tuple[int, int], dict[str, float]]) -> KernelGrid:
    """Cells of one sample each."""
    return grid(
        *(
            cell(blocks, threads, None, **{name: [value] for name, value in row.items()})
            for (blocks, threads), row in rows.items()
        )
    )


def test_a_line_is_the_textbooks() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 20))
    fit = fitted(x, y)
    assert not isinstance(fit, str)
    slope, intercept, r2 = fit
    assert (slope, intercept) == pytest.approx(tuple(np.polyfit(x, y, 1)))
    assert r2 == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)


def test_too_few_cells_and_a_constant_metric_have_no_line() -> None:
    few = grid_of_rows(
        {(1, 1): {GRACT: 1.0, SMACT: 0.1, SMOCC: 0.1}, (2, 1): {GRACT: 1.0, SMACT: 0.2, SMOCC: 0.1}}
    )
    same = grid_of_rows(
        {(blocks, 1): {UTILIZATION: 100.0, GRACT: 0.9 + blocks / 100} for blocks in (1, 2, 3)}
    )
    for line in (findings_of(few).lines[2], findings_of(same).lines[0]):
        assert line.slope is None
        assert line.missing


def test_a_metric_that_differs_by_rounding_alone_has_no_line() -> None:
    """Utilisation of 99.79 to 99.81 % and GRACT of .998 to .999, as the saved grid has them."""
    rows = {
        (blocks, 32): {UTILIZATION: 99.8 + off, GRACT: 0.998 + off / 20, SMACT: blocks / 132}
        for blocks, off in ((1, 0.0), (66, 0.01), (132, -0.01))
    }
    of_utilization, of_gract, _ = findings_of(grid_of_rows(rows)).lines
    assert (of_utilization.slope, of_utilization.r2) == (None, None)
    assert (of_gract.slope, of_gract.r2) == (None, None)


def test_the_active_part_is_the_longest_stretch_with_work() -> None:
    """6 % is from before; then two idle samples, four of work, one idle."""
    one = cell(gract=[0.06, 0, 0, 0.5, 1, 1, 1, 0])
    assert one.idle == (3, 4, 1)
    assert one.figures["gract_active"] == pytest.approx(3.5 / 4)


def test_runs_of_one_size_are_one_cell() -> None:
    both = grid(cell(smact=[0.2, 0.2], gract=[1, 1]), cell(smact=[0.4, 0.4], gract=[1, 1]))
    assert both.column(SMACT, MAX) == {(128, 32): pytest.approx(0.3)}


REACHED = {
    (1, 1024): (1 / 108, 32 / 64 / 108),  # one SM of 108 has half its warps
    (54, 32): (0.5, 54 / 64 / 108),
    (108, 1024): (1, 0.5),
    (216, 1024): (1, 1),
    (131072, 1): (1, 0.5),  # no more than 32 blocks of one warp fit on an SM
    (131072, 33): (1, 1),  # 33 threads are two warps
}


def test_a_kernel_reaches_at_most_the_sms_and_warps_of_its_size() -> None:
    for size, reached in REACHED.items():
        most = limits(size, A100)
        assert most is not None
        assert most[:2] == pytest.approx(reached)


BROKEN: list[tuple[dict[str, list[float]], str, int]] = [
    ({"gract": [1, 1, 1.01]}, "every share ≤ 1", 1),
    ({"gract": [1, -0.01, -0.01]}, "0 ≤ every share", 2),
    ({"gract": [0.5] * 3, "smact": [0.4, 0.5, 0.51]}, "SMACT ≤ GRACT", 1),
    ({"smact": [0.1] * 3, "smocc": [0.2, 0.1, 0.0]}, "SMOCC ≤ SMACT", 1),
    ({"gract": [1] * 3, "smact": [0.51, 0.5, 0.5]}, "SMACT ≤ min(b, SMs) / SMs", 1),
    (
        {"gract": [1] * 3, "smact": [0.5] * 3, "smocc": [0.007, 0.1, 0.0]},
        "SMOCC ≤ b × warps / all warps",
        1,
    ),
    (
        {"gract": [1] * 3, "smact": [0.01] * 3, "smocc": [0.0075, 0.005, 0.0]},
        "SMOCC ≤ SMACT × warps that fit",
        1,
    ),
]


def test_a_broken_bound_is_named_with_its_samples() -> None:
    """54 one-warp blocks reach half of 108 SMs and .0078 of 6912 warps; an SM holds 32 of 64."""
    for columns, bound, count in BROKEN:
        found = bounds_of([cell(54, 32, None, **columns)], A100)
        assert {one.bound: (one.count, one.of) for one in found.violations}[bound] == (count, 3)


def test_a_mean_above_the_duty_violates_it_with_samples_in_bound() -> None:
    """Half the SMs for a quarter of the time is .125; .2 was seen."""
    found = bounds_of([cell(54, 32, 0.25, gract=[0.3] * 4, smact=[0.2] * 4)], A100)
    assert [one.bound.split()[0] for one in found.violations] == ["mean"]


def test_utilisation_and_smact_are_counted_by_cell() -> None:
    rows = {
        (1, 1): {UTILIZATION: 91.0, GRACT: 0.91, SMACT: 0.002, SMOCC: 0.0},
        (2, 1): {UTILIZATION: 99.0, GRACT: 0.99, SMACT: 0.29, SMOCC: 0.2},
        (3, 1): {UTILIZATION: 99.0, GRACT: 0.99, SMACT: 0.9, SMOCC: 0.05},
        (4, 1): {UTILIZATION: 50.0, GRACT: 0.5, SMACT: 0.1, SMOCC: 0.05},
    }
    one = misled(grid_of_rows(rows))
    assert one is not None
    assert (one.cells, one.busy, one.busy_low_smact, one.busy_low_smocc, one.example) == (
        4,
        3,
        2,
        2,
        (1, 1),
    )
    assert misled(grid_of_rows({(1, 1): {SMACT: 0.5}})) is None


def test_a_course_that_falls_is_said_to_from_where_to_where() -> None:
    values = {1: 0.1, 2: 0.3, 4: 0.295, 8: 0.2, 16: 0.9}
    assert dip_of(list(values.items())) == (2, 0.3, 8, 0.2)
    assert dip_of([(2, 0.3), (4, 0.295)]) is None  # .005 is rounding and noise


def test_rounding_is_no_violation_and_missing_samples_are_none() -> None:
    found = bounds_of(
        [cell(54, 32, gract=[0.3, math.nan], smact=[0.302, 0.4], smocc=[math.nan, math.nan])], A100
    )
    assert found.violations == []
    assert found.tested["SMACT ≤ GRACT"] == (1, 1)
    assert "bounds of SMOCC" in found.untested
