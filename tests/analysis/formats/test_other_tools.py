"""Files that hyperfine, google-benchmark, asv and AIPerf wrote are read like pytest-benchmark's, and written for Bencher and others."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.__main__ import main
from analysis.commands import export
from analysis.formats.fields import LONGEST_S
from analysis.load import from_json, load
from analysis.terms import Unreadable

HERE = Path(__file__).parent / "other_tools"  # as hyperfine 1.15, google-benchmark 1.7 and asv 0.6 wrote them on one machine
TURNS = Path(__file__).parents[3] / "data/runs/turns_2026-11-25_amd-epyc-2cpu.json"
# The field names of AIPerf 0.3's export, with made-up numbers: it needs a server to measure.
AIPERF: dict[str, Any] = {
    "request_throughput": {"unit": "requests/sec", "avg": 8.0},
    "request_latency": {"unit": "ms", "avg": 130.0, "min": 100.0, "p25": 110.0, "p50": 120.0, "p75": 140.0, "max": 200.0},
}


def cells(name: str) -> dict[str, int]:
    return {cell.workload: len(cell.steps.wall_s) if cell.steps else 0 for cell in load(HERE / name).cells}


def test_a_command_of_hyperfine_is_a_benchmark_and_each_run_a_step() -> None:
    assert cells("hyperfine.json") == {"sleep 0.01": 5, "sleep 0.02": 5}
    first, second = load(HERE / "hyperfine.json").cells
    assert 0.01 < first.metrics["step_time_median_s"] < 0.02 < second.metrics["step_time_median_s"]


def test_repetitions_of_google_benchmark_are_steps_and_its_own_summaries_are_not() -> None:
    assert cells("google.json") == {"BM_Push/64/min_time:0.010": 3, "BM_Push/512/min_time:0.010": 3}
    run = load(HERE / "google.json")
    saved = json.loads((HERE / "google.json").read_text())["benchmarks"]
    first = [one["real_time"] * 1e-9 for one in saved if one["run_type"] == "iteration"][:3]
    assert run.cells[0].steps is not None
    assert list(run.cells[0].steps.wall_s) == pytest.approx(first)
    assert run.machine["cpu_count"] == 2
    assert run.started_utc


def test_each_combination_of_parameters_is_a_benchmark_of_asv_and_only_times_are_read() -> None:
    names = {f"b.Sort.time_sort({n}, '{way}')" for n in (10, 1000) for way in ("up", "down")}
    assert cells("asv.json").keys() == {"b.time_sum", *names}
    run = load(HERE / "asv.json")
    assert run.commit
    assert run.started_utc


def test_of_aiperf_the_latency_is_read_from_its_quantiles() -> None:
    (cell,) = from_json(AIPERF, "a.json").cells
    assert cell.metrics["step_time_median_s"] == pytest.approx(0.12)
    assert cell.metrics["step_time_mean_s"] == pytest.approx(0.13)


@pytest.mark.parametrize(
    ("saved", "why"),
    [
        ({"results": [{"command": "x", "times": [0.1, -1.0]}]}, "times"),
        ({"results": [{"command": "x", "times": []}]}, "no times"),
        ({"results": [{"command": "x", "times": [LONGEST_S * 2]}]}, "times"),
        ({"results": [{"command": "x", "times": [0.1], "exit_codes": [1]}]}, "did not end with 0"),
        ({"results": [{"command": 7, "times": [0.1]}]}, "command"),
        ({"context": {}, "benchmarks": [{"name": "x", "real_time": 1.0, "time_unit": "weeks"}]}, "weeks"),
        ({"context": {}, "benchmarks": []}, "no benchmark"),
        ({"result_columns": ["result"], "results": {"b.time_x": 3}}, "row"),
        ({"result_columns": ["result", "params"], "results": {"b.time_x": [[1.0], [["1", "2"]]]}}, "parameters"),
        ({**AIPERF, "request_latency": {"unit": "ms"}}, "min"),
    ],
)
def test_a_damaged_file_is_refused_by_name(saved: dict[str, Any], why: str) -> None:
    with pytest.raises(Unreadable, match=why) as refused:
        from_json(saved, "odd.json")
    assert str(refused.value).startswith("odd.json: ")


def test_what_another_tool_measured_can_be_compared_and_gated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One run against one: neither claims anything, and the gate does not pass by default."""
    later = json.loads((HERE / "hyperfine.json").read_text())
    for one in later["results"]:
        one["times"] = [2 * time_s for time_s in one["times"]]
    (tmp_path / "later.json").write_text(json.dumps(later))
    both = [str(HERE / "hyperfine.json"), str(tmp_path / "later.json")]
    assert main(["compare", *both]) == 0
    assert "sleep 0.01" in capsys.readouterr().out
    assert main(["gate", *both, "--max-regression=3%"]) == 3


def test_a_frame_has_a_row_a_cell_with_what_its_run_knows_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Runs of two studies in one: what one of them has not is missing there."""
    paths = [TURNS, TURNS.with_name("io_readahead_2026-11-22_amd-epyc-2cpu.json")]
    assert main(["export", *map(str, paths), "--to=csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    turns, reads = map(load, paths)
    assert [row["run"] for row in rows] == [run.run_id for run in (turns, reads) for _ in run.cells]
    for cell, row in zip(turns.cells, rows, strict=False):
        assert (row["workload"], row["tweakset"], row["block"]) == (cell.workload, cell.tweakset, str(cell.block))
        assert {name: float(row[name]) for name in cell.metrics} == cell.metrics
        assert {name: float(row[f"telemetry.{name}"]) for name in cell.telemetry} == cell.telemetry
    assert [bool(row["param.read_threads"]) for row in rows] == [False] * len(turns.cells) + [True] * len(reads.cells)


def test_bencher_gets_nanoseconds_with_an_interval_over_blocks() -> None:
    found = {one.name: one for one in export.figures(load(TURNS))}
    told = export.bmf(list(found.values()))["cnn_train malloc-keep-memory"]["latency"]
    run = load(TURNS)
    values = [c.metrics["step_time_round_adjusted_s"] for c in run.cells if (c.workload, c.tweakset) == ("cnn_train", "malloc-keep-memory")]
    assert told["value"] == pytest.approx(1e9 * sum(values) / len(values))
    assert told["lower_value"] < told["value"] < told["upper_value"]


def test_github_action_benchmark_gets_a_list_of_names_units_and_values() -> None:
    told = export.github_action(list(export.figures(load(HERE / "hyperfine.json"))))
    assert [(one["name"], one["extra"]) for one in told] == [("sleep 0.01", "1 blocks"), ("sleep 0.02", "1 blocks")]
    assert all(one["value"] > 0 and "range" not in one for one in told)


def test_otava_gets_a_row_a_run_oldest_first_and_an_empty_place_for_what_a_run_lacks() -> None:
    asv, google = load(HERE / "asv.json"), load(HERE / "google.json")
    head, *rows = csv.reader(io.StringIO(export.otava([google, asv])))
    assert head[:2] == ["time", "commit"]
    assert [row[0] for row in rows] == sorted([asv.started_utc, google.started_utc])
    assert sum(not place for place in rows[0]) + sum(not place for place in rows[1]) >= len(head) - 2


@pytest.mark.parametrize("words", [["--to=bmf"], ["--to=github-action"]])
def test_one_run_at_a_time_where_the_format_has_no_time(words: list[str]) -> None:
    assert main(["export", str(HERE / "asv.json"), str(HERE / "google.json"), *words]) == 2


def test_a_run_without_a_date_has_no_place_in_a_history() -> None:
    assert main(["export", str(HERE / "hyperfine.json"), "--to=otava"]) == 2
