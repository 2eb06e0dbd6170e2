"""`cells`: a row per cell, whose parameters, settings and telemetry are columns."""

from __future__ import annotations

from pathlib import Path

from analysis.cells import cells
from analysis.load import load

RUNS = Path("data/runs")
JOBS = RUNS / "cluster-scheduling_2026-11-22_amd-epyc-2cpu.json"
GATE = RUNS / "2026-11-21_gate_amd-epyc-2cpu.json"


def test_a_cell_is_a_row_in_the_order_in_which_it_ran() -> None:
    run = load(str(GATE))
    frame = cells([run])
    assert list(frame["order"]) == sorted(cell.order for cell in run.cells)
    assert frame.groupby("tweakset").size().to_dict() == {
        "stock": 16,
        "stock-again": 16,
        "tcp-buffers-tiny": 16,
    }
    first = min(run.cells, key=lambda cell: cell.order)
    assert frame.loc[0, "step_time_median_s"] == first.metrics["step_time_median_s"]
    assert frame.loc[0, "machine.kernel_release"] == run.machine["kernel_release"]


def test_parameters_are_columns() -> None:
    assert set(cells([load(str(JOBS))])["param.policy"]) == {
        "fifo",
        "sjf",
        "least_slack",
        "fair_share",
        "priority",
    }


def test_what_was_in_force_is_a_column() -> None:
    frame = cells([load(str(GATE))])
    tiny = frame[frame["tweakset"] == "tcp-buffers-tiny"]
    assert tiny["setting.net.ipv4.tcp_rmem"].nunique() == 1
    assert frame.loc[frame["tweakset"] == "stock", "setting.net.ipv4.tcp_rmem"].isna().all()


def test_a_study_adds_its_figures_or_leaves_a_cell_out() -> None:
    run = load(str(GATE))
    frame = cells([run], lambda _, cell: {"twice": 2.0} if cell.block == 1 else None)
    assert (set(frame["block"]), set(frame["twice"])) == ({1}, {2.0})
