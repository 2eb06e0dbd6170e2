"""The published figures come out of the published logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.studies.gpu import findings, logs
from analysis.studies.gpu.grid import MAX, SMACT, SMOCC
from analysis.studies.gpu.sources import read_grids

if TYPE_CHECKING:
    from analysis.studies.gpu.findings import Findings

pytestmark = pytest.mark.needs("reference")
LOGS = Path(__file__).parents[5] / "shared/reference/pmdlt/metric_data"
# Blocks → the highest SMACT and SMOCC at 1024 threads a block, as the study's maxima have them.
AT_1024 = {1: (0.002, 0.001), 128: (0.255, 0.137), 1024: (0.555, 0.388), 8192: (0.934, 0.691), 16384: (0.963, 0.745)}


@pytest.fixture(scope="module")
def found() -> Findings:
    (only,) = read_grids([str(LOGS)]).grids
    return only


def test_every_published_mean_with_a_log_comes_out_of_it(found: Findings) -> None:
    """25 cells × 6 figures, over the whole log, idle ends and all."""
    (agreement,) = found.agreements
    assert (agreement.cells, agreement.of, agreement.compared) == (25, 84, 150)
    assert agreement.differing == ()
    assert agreement.largest < 1e-9


def test_gpu_0_of_5_ran_the_kernels_and_its_rows_were_found_without_an_index(found: Findings) -> None:
    assert {log.gpu for cell in found.grid.cells for log in cell.logs} == {"0", "GPU 0"}
    assert (found.grid.chip.sms, found.grid.chip.source) == (108, "by its name")
    assert found.grid.ignored == ()


def test_the_maxima_are_the_published_ones(found: Findings) -> None:
    peaks = found.tables[MAX].rows
    assert {blocks: (peaks[blocks, 1024][SMACT], peaks[blocks, 1024][SMOCC]) for blocks in AT_1024} == AT_1024


def test_utilisation_misleads(found: Findings) -> None:
    """Of the 26 cells here all reach 90 %; counted by hand in the logs: 19 stay below SMACT .3, 18 below SMOCC .1."""
    one = found.misled
    assert one is not None
    assert (one.cells, one.busy, one.busy_low_smact, one.busy_low_smocc) == (26, 26, 19, 18)
    assert one.least_utilization == 90
    assert one.least_gract == pytest.approx(0.901)
    assert one.example == (1, 1)
    assert [one.example_values[name] for name in ("utilization_percent", "gract", SMACT, SMOCC)] == [91, 0.911, 0.002, 0]


def test_lines_over_all_84_cells_are_the_published_ones() -> None:
    """SMOCC on SMACT: slope .7462, intercept -.0915, R² .8996; GRACT on utilisation: .759, 23.1, .9424."""
    table = logs.read_table(LOGS / "mean.csv")
    gract, _, smocc = findings.lines(table)
    assert smocc.n == 84
    assert [smocc.slope, smocc.intercept, smocc.r2] == pytest.approx([0.7462, -0.0915, 0.8996], abs=1e-3)
    assert [gract.slope, gract.r2] == pytest.approx([0.759, 0.9424], abs=1e-3)
    assert gract.intercept == pytest.approx(23.1, abs=0.1)


def test_the_line_holds_only_within_large_blocks(found: Findings) -> None:
    by_threads = {line.among: line.r2 for line in found.by_threads}
    assert by_threads["1024 threads"] is not None
    assert by_threads["1024 threads"] > 0.99
    assert by_threads["1 thread"] is not None
    assert by_threads["1 thread"] < 0.6


def test_used_memory_is_what_the_kernel_allocates(found: Findings) -> None:
    """A MiB a MiB, on peaks; smallest allocations are 2 MiB, which bends it a little."""
    peaks = found.memory[0]
    assert peaks.slope == pytest.approx(1, abs=0.02)
    assert peaks.r2 == pytest.approx(1, abs=1e-3)


def test_more_blocks_are_not_more_smact(found: Findings) -> None:
    """At 256 threads the means fall from .193 at 128 blocks to .092 at 1024."""
    dips = {one.threads: one.dip for one in found.courses if one.metric == SMACT}
    assert all(dips.values())
    assert list(dips[256] or ()) == pytest.approx([128, 0.193, 1024, 0.0921], abs=5e-4)


def test_the_cell_that_ran_less_is_named_and_no_other(found: Findings) -> None:
    """9632 × 1024 has 79 samples, where 8192 has 226 active ones, which in proportion are 268, two for the error of a count included."""
    (odd,) = found.odd
    assert (odd.size, odd.samples) == ((9632, 1024), 79)
    assert odd.most == pytest.approx((226 + 2) * 9632 / 8192)
    assert odd.least == pytest.approx((403 - 2) * 9632 / 16384)


def test_no_sample_breaks_a_bound(found: Findings) -> None:
    assert found.bounds.violations == ()
    assert found.bounds.tested["SMOCC ≤ SMACT"] == found.bounds.tested["SMACT ≤ GRACT"] == (1222, 26)
    assert any("duty" in bound for bound in found.bounds.untested)
