"""The summary tables: absolute numbers checked by hand, and no winner without a verdict."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.__main__ import main
from analysis.compare import compare
from analysis.ending import answer_of_run
from analysis.load import from_json, load
from analysis.render import csv as as_csv
from analysis.render import markdown
from analysis.render import text as as_text
from analysis.summary import (
    Row,
    answer,
    changes,
    counted_settings,
    energy_j,
    energy_j_per_sample,
    geometric_mean,
    measured_s,
    rows_of,
    step_time_mean_s,
    throughput_samples_per_s,
)
from analysis.terms import Cell, Run, Setting, Steps
from tests.deeptweak_like import SCRIPTS, SYSCTLS, Like, directory
from tests.made_telemetry import sampled_file
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_file, saved_run

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


FAST = Arm("tcp|cubic", gain=0.15, requested={"net.ipv4.tcp_congestion_control": "cubic"})
MADE = Made(arms=(STOCK, AGAIN, FAST), workloads=("cnn_train", "lora"), blocks=5, seed=3)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load(sampled_file(tmp_path_factory.mktemp("made"), MADE))


@pytest.fixture(scope="module")
def rows(run: Run) -> list[Row]:
    return rows_of([run])


def cell(wall_s: tuple[float, ...], samples: int, **telemetry: float) -> Cell:
    steps = Steps(wall_s, (samples,) * len(wall_s), None, None, 1)
    return Cell("c", "s", "w", "t", 1, 1, "measured", steps=steps, telemetry=telemetry)


def test_averages_are_of_all_work_over_all_time() -> None:
    """After warm-up, 8 samples in 2 s and 8 in 6 s are 2 per second; the mean of rates is 2.67."""
    cells = [cell((9.0, 2.0), 8), cell((9.0, 6.0), 8)]
    assert throughput_samples_per_s(cells) == 2.0
    assert step_time_mean_s(cells) == 4.0
    assert throughput_samples_per_s([]) is None


def test_overlapping_steps_last_their_window_without_throughput() -> None:
    """Jobs of 2 s and 6 s that began together: 6 s at 10 W are 60 J; a rate is another question."""
    alone = cell((9.0, 2.0, 6.0), 1, gpu0_power_w_mean=10.0)
    assert alone.steps
    both = replace(alone, steps=replace(alone.steps, overlap=True), window_s=(100.0, 106.0))
    assert (throughput_samples_per_s([both]), measured_s(both), energy_j(both)) == (None, 6.0, 60.0)
    assert measured_s(replace(both, window_s=None)) is None
    assert (throughput_samples_per_s([alone]), measured_s(alone)) == (0.25, 8.0)


def test_energy_is_the_counters_and_else_power_times_time() -> None:
    """A GPU with a 500 J counter, another with 100 W over 3 s: 800 J over 3 steps of 4 samples."""
    one = cell(
        (9.0, 1.0, 1.0, 1.0),
        4,
        gpu0_energy_j_total=500.0,
        gpu0_power_w_mean=1.0,
        gpu1_power_w_mean=100.0,
    )
    assert energy_j(one) == 800.0
    assert energy_j_per_sample([one]) == pytest.approx(800 / 12)
    assert energy_j(cell((9.0, 1.0), 4)) is None
    assert energy_j_per_sample([one, cell((9.0, 1.0), 4)]) is None


def test_a_row_an_arm_the_baseline_first(rows: list[Row], run: Run) -> None:
    assert [(row["workload"], row["tweakset"]) for row in rows] == [
        (workload, name)
        for workload in ("cnn_train", "lora")
        for name in ("stock", "stock-again", "tcp|cubic")
    ]
    first = rows[0]
    mine = [one for one in run.cells if (one.workload, one.tweakset) == ("cnn_train", "stock")]
    seconds = math.fsum(sum(one.steps.wall_s[2:]) for one in mine if one.steps)
    assert first["cells"] == 5
    assert first["throughput_samples_per_s"] == pytest.approx(5 * 12 * 8 / seconds)
    assert (
        first["gpu_util_percent"],
        first["gpu_power_w"],
        first["cpu_busy_percent"],
    ) == pytest.approx((95, 60, 97))
    assert first["energy_j_per_sample"] == pytest.approx(60 * seconds / (5 * 12 * 8))
    assert first["memory_used_gib"] is None  # the machine does not say how much memory it has
    assert (rows[2]["parameters"], rows[2]["sysctl_parameters"]) == ("1 sysctl", 1)


def test_memory_used_is_what_is_not_available() -> None:
    """20 GiB of 24 are available."""
    saved = saved_run(Made(arms=(STOCK,), blocks=1))
    saved["machine_info"]["deeptweak"]["mem_total_bytes"] = 24 * 2**30
    saved["benchmarks"][0]["extra_info"]["telemetry"]["summary"] = {
        "mem_available_bytes_mean": 20 * 2**30
    }
    assert rows_of([from_json(saved, "run.json")])[0]["memory_used_gib"] == pytest.approx(4.0)


def test_csv_has_every_row_with_units_and_blanks_if_unmeasured(rows: list[Row]) -> None:
    records = list(csv.DictReader(StringIO(as_csv.render(answer(rows)))))
    assert len(records) == len(rows)
    assert float(records[0]["throughput_samples_per_s"]) == rows[0]["throughput_samples_per_s"]
    assert records[0]["memory_used_gib"] == ""
    assert (records[2]["sysctl_parameters"], records[2]["script_parameters"]) == ("1", "0")
    assert {
        "run_id",
        "machine",
        "gpu_power_w",
        "energy_j_per_sample",
        "cpu_busy_percent",
        "primary_metric",
    } <= records[0].keys()


def test_the_means_are_those_the_gains_are_ratios_of(rows: list[Row], run: Run) -> None:
    base, faster = (
        {**record} for record in list(csv.DictReader(StringIO(as_csv.render(answer(rows)))))[:3:2]
    )
    gain = next(
        found.primary.gain
        for found in compare(run)
        if found.tweakset == FAST.name and found.primary
    )
    ratio = float(faster["throughput_samples_per_s_geomean"]) / float(
        base["throughput_samples_per_s_geomean"]
    )
    assert ratio - 1 == pytest.approx(gain, rel=1e-9)
    assert float(base["telemetry.gpu0_power_w_mean"]) == pytest.approx(60)
    assert (geometric_mean([]), geometric_mean([1.0, 0.0])) == (None, None)


def test_a_run_of_lost_cells_says_why_in_one_line_per_reason(tmp_path: Path) -> None:
    lost = {
        1: ("failed", "out of memory"),
        2: ("failed", "out of memory"),
        3: ("skipped", "no root"),
    }
    made = Made(arms=(Arm("stock", broken=lost),), blocks=3)
    found = answer_of_run(load(saved_file(tmp_path, made)), brief=False)
    assert found.sections == []
    failed, skipped = (line.text for line in found.findings)
    assert failed.startswith("2 cells failed: out of memory")
    assert skipped == "cnn_train-stock-b3 skipped: no root."


@pytest.mark.parametrize(
    "arms", [(FAST,), (replace(STOCK, broken=dict.fromkeys((1, 2), ("failed", ""))), FAST)]
)
def test_a_run_without_its_baseline_shows_the_rest(arms: tuple[Arm, ...], tmp_path: Path) -> None:
    run = str(saved_file(tmp_path, Made(arms=arms, blocks=2)))
    shown = as_text.render(answer_of_run(load(run), brief=False))
    assert shown.startswith("Nothing to compare: no cell of stock was measured.")
    assert "tcp|cubic      2" in shown
    assert main(["report", run, "--output", str(tmp_path / "page.html")]) == 0


def test_markdown_has_a_table_for_each_workload(
    rows: list[Row], snapshot: SnapshotAssertion
) -> None:
    """A bar in a name begins no column; a column that is empty in every row is left out."""
    assert markdown.render(answer(rows)) == snapshot


def test_sections_count_settings_and_seen_changes_of_scripts(tmp_path: Path) -> None:
    """A script counts by its changes; a script without seen changes still counts as one."""
    run = load(
        directory(
            tmp_path, Like("base"), Like("exp1", manifest=SYSCTLS), Like("exp2", manifest=SCRIPTS)
        )
    )
    assert counted_settings(changes(run, "base")) == "none"
    assert counted_settings(changes(run, "exp2")) == "1 ulimit, 1 service setting, 1 by script"
    assert [one.key for one in changes(run, "exp1") if one.kind == "sysctl"] == [
        "vm.swappiness",
        "net.ipv4.tcp_rmem",
    ]
    saved = saved_run(
        Made(arms=(STOCK, Arm("thp", scripts=2, side_effects={"/sys/a": ["0", "1"]})))
    )
    for one in saved["benchmarks"]:
        one["extra_info"]["tweak"]["side_effects"] |= {"/sys/gone": ["0", None]}
    assert changes(from_json(saved, "run.json"), "thp") == [Setting("script", "/sys/a", "1")]
